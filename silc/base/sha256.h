// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace silc {

/// SHA-256 (FIPS 180-4) of bytes, as 64 hexadecimal digits. Names a policy by its content; nothing
/// here is a secret.
std::string Sha256(std::string_view bytes);

}  // namespace silc
