// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "silc/policy/mlp.h"

namespace silc {

enum class OnnxWeights {
  kFloat,  ///< as they are: they come back bit for bit from ParseOnnx() and RecogniseMlp()
  kHalf,   ///< rounded to float16, half the file; a Cast makes them float32 again, so inputs,
           ///< outputs and arithmetic stay float32. Biases stay as they are.
};

/// The bytes of an ONNX file (opset 13) that holds the network, float32 [1, inputs] → [1, outputs],
/// and the metadata beside it. The same network and metadata give the same bytes. Throws
/// ConfigError where ParseOnnx() could not read it again (a tensor, the file or the metadata is too
/// large), and, naming the layer, where a weight does not fit float16.
std::string SerializeOnnx(const MlpNetwork& network,
                          const std::string& input,
                          const std::string& output,
                          const std::map<std::string, std::string>& metadata,
                          OnnxWeights weights = OnnxWeights::kFloat);

/// SerializeOnnx() into a file, all of it or nothing. Throws RunError.
void WriteOnnx(const std::string& path,
               const MlpNetwork& network,
               const std::string& input,
               const std::string& output,
               const std::map<std::string, std::string>& metadata,
               OnnxWeights weights = OnnxWeights::kFloat);

/// The nearest float16, ties to even, as its bits; beyond ±65504 infinity.
std::uint16_t HalfBits(float value);

}  // namespace silc
