// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace silc {

/// CRC-32C (Castagnoli, RFC 3720): of checkpoints, and of TensorBoard's records.
std::uint32_t Crc32c(std::string_view bytes);
/// TFRecord's form: rotated by 15 bits, plus 0xa282ead8.
std::uint32_t MaskedCrc32c(std::string_view bytes);

}  // namespace silc
