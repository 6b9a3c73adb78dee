// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "silc/policy/mlp.h"

namespace silc {

/// The bytes of an ONNX file (opset 13) that holds the network, float32 [1, inputs] → [1, outputs],
/// and the metadata beside it. Weights come back bit for bit from ParseOnnx() and RecogniseMlp().
/// The same network and metadata give the same bytes.
std::string SerializeOnnx(const MlpNetwork& network,
                          const std::string& input,
                          const std::string& output,
                          const std::map<std::string, std::string>& metadata);

/// SerializeOnnx() into a file, all of it or nothing. Throws RunError.
void WriteOnnx(const std::string& path,
               const MlpNetwork& network,
               const std::string& input,
               const std::string& output,
               const std::map<std::string, std::string>& metadata);

}  // namespace silc
