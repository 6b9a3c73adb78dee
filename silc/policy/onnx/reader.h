// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "silc/policy/graph.h"

namespace silc {

/// What is kept of an ONNX file.
struct OnnxModel {
  std::shared_ptr<const Graph> graph;
  std::map<std::string, std::string> metadata;  // metadata_props
  std::string producer;
  int opset = 0;
};

/// Reads a policy: operators of opsets 7 to 21 as docs/policies.md lists them, batch size 1.
///
/// A file that is truncated, corrupted, too large, cyclic, incomplete, keeps its weights elsewhere
/// or holds an operator that is not supported gives a ConfigError that begins with `place`. Sizes
/// are checked against `limits` before anything of that size is allocated.
OnnxModel ReadOnnx(const std::string& path, const GraphLimits& limits = {});
OnnxModel ParseOnnx(std::string_view bytes,
                    const std::string& place,
                    const GraphLimits& limits = {});

/// Files larger than this are refused unread.
inline constexpr std::size_t kMaxOnnxBytes = std::size_t{1} << 28;

}  // namespace silc
