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
  std::string external_hash;  // SHA-256 of what was read of other files, hexadecimal; "" if nothing
};

/// Reads a policy: operators of opsets 7 to 21 as docs/policies.md lists them, batch size 1.
///
/// Weights may lie in another file (external data) in the same folder: no path, no link out of it.
///
/// A file that is truncated, corrupted, too large, cyclic, incomplete, has weights that are no
/// finite numbers or holds an operator that is not supported gives a ConfigError that begins with
/// `place`. Sizes are checked against `limits` before anything of that size is allocated.
OnnxModel ReadOnnx(const std::string& path, const GraphLimits& limits = {});
/// `folder` is where external data may lie; "" for nowhere.
OnnxModel ParseOnnx(std::string_view bytes,
                    const std::string& place,
                    const GraphLimits& limits = {},
                    const std::string& folder = "");

}  // namespace silc
