// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/onnx/reader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "silc/base/file.h"
#include "silc/policy/onnx/reader_impl.h"

namespace silc {

OnnxModel OnnxReader::Read(const pb::ModelProto& model) {
  OnnxModel result;
  result.producer = model.producer_name();
  std::size_t metadata_bytes = 0;
  for (const auto& entry : model.metadata_props()) {
    metadata_bytes += entry.key().size() + entry.value().size();
    if (metadata_bytes > kMaxMetadataBytes) {
      Fail("metadata has more than " + std::to_string(kMaxMetadataBytes) + " bytes");
    }
    if (!result.metadata.emplace(entry.key(), entry.value()).second) {
      Fail("metadata key '" + entry.key() + "' stands there twice");
    }
  }
  if (!model.has_graph() || model.graph().node_size() == 0)
    Fail("no graph in it: not an ONNX model?");
  if (model.functions_size() > 0)
    Fail("model-local functions are not supported; export without them");
  opset_ = FindOpset(model);
  result.opset = opset_;
  ReadGraph(model.graph());
  result.graph = std::make_shared<const Graph>(builder_.Finish());
  RequireFinite(*result.graph);
  result.external_hash = external_hash_;
  return result;
}

// A NaN in a weight makes every answer one, and a robot that falls is not how to tell. Bounds may
// be infinite: of a Clip, and in Min and Max, where infinity is the one that bounds nothing.
void OnnxReader::RequireFinite(const Graph& graph) const {
  for (const GraphNode& node : graph.nodes()) {
    const bool bounds = node.op == Op::kMin || node.op == Op::kMax;
    for (const ValueId id : node.inputs) {
      for (const float x : graph.value(id).data) {
        if (std::isnan(x) || (!bounds && std::isinf(x))) {
          Fail("node '" + node.name + "': its weights '" + graph.value(id).name + "' hold " +
               (std::isnan(x) ? "a NaN" : "an infinity") + "; was the training lost?");
        }
      }
    }
    const bool clip = node.op == Op::kClip;
    for (const float x : {node.alpha, node.beta}) {
      if (std::isnan(x) || (!clip && std::isinf(x))) {
        Fail("node '" + node.name + "': a parameter is not a finite number");
      }
    }
  }
}

void OnnxReader::FailNode(const std::string& what) const { Fail("node '" + label_ + "': " + what); }

int OnnxReader::FindOpset(const pb::ModelProto& model) const {
  for (const auto& opset : model.opset_import()) {
    if (!opset.domain().empty() && opset.domain() != "ai.onnx") continue;
    if (opset.version() < kMinOpset || opset.version() > kMaxOpset) {
      Fail("opset " + std::to_string(opset.version()) + " is not supported; export with opset " +
           std::to_string(kMinOpset) + " to " + std::to_string(kMaxOpset));
    }
    return static_cast<int>(opset.version());
  }
  Fail("no opset version of the standard operators");
}

void OnnxReader::Define(const std::string& name, Binding binding) {
  if (name.empty()) Fail("a tensor without a name");
  total_ints_ += binding.ints.data.size();
  if (total_ints_ > kMaxTotalInts) {
    Fail("more than " + std::to_string(kMaxTotalInts) + " integers in shapes and indices");
  }
  if (!names_.emplace(name, std::move(binding)).second) Fail("'" + name + "' is defined twice");
}

void OnnxReader::ReadGraph(const pb::GraphProto& graph) {
  if (graph.sparse_initializer_size() > 0) Fail("sparse tensors are not supported");
  if (graph.node_size() > limits_.max_nodes) {
    Fail(std::to_string(graph.node_size()) + " nodes, at most " +
         std::to_string(limits_.max_nodes));
  }
  for (const auto& tensor : graph.initializer())
    Define(tensor.name(), ReadTensor(tensor, tensor.name()));
  for (const auto& input : graph.input()) {
    // before IR version 4 the weights were listed among the inputs
    if (names_.count(input.name()) > 0 && builder_inputs_.count(input.name()) == 0) continue;
    Binding binding;
    binding.value = builder_.AddInput(input.name(), InputShape(input));
    builder_inputs_.insert(input.name());
    Define(input.name(), binding);
  }
  if (builder_inputs_.empty()) Fail("the graph has no input");

  for (const auto& node : graph.node()) {
    for (const std::string& output : node.output()) later_.insert(output);
  }
  int index = 0;
  for (const auto& node : graph.node()) {
    label_ = (node.name().empty() ? "#" + std::to_string(index) : node.name()) + " (" +
             node.op_type() + ")";
    ++index;
    node_ = &node;
    used_.clear();
    if (!node.domain().empty() && node.domain() != "ai.onnx") {
      FailNode("operators of domain '" + node.domain() + "' are not supported");
    }
    try {
      ReadNode();
    } catch (const ConfigError& error) {
      // the graph builder does not know the file
      const std::string text = error.what();
      if (text.rfind(place_, 0) == 0) throw;
      throw ConfigError(place_ + ": " + text);
    }
    for (const auto& attribute : node.attribute()) {
      if (used_.count(attribute.name()) == 0)
        FailNode("attribute '" + attribute.name() + "' is not supported");
    }
  }
  if (graph.output_size() == 0) Fail("the graph has no output");
  std::set<std::string> outputs;
  for (const auto& output : graph.output()) {
    if (!outputs.insert(output.name()).second)
      Fail("output '" + output.name() + "' is listed twice");
    const auto at = names_.find(output.name());
    if (at == names_.end()) Fail("output '" + output.name() + "' is made by no node");
    if (at->second.is_int)
      Fail("output '" + output.name() + "' is an integer tensor, which is not supported");
    builder_.AddOutput(output.name(), at->second.value);
  }
}

Shape OnnxReader::InputShape(const pb::ValueInfoProto& input) const {
  const std::string what = "input '" + input.name() + "'";
  if (!input.type().has_tensor_type()) Fail(what + ": no tensor");
  const auto& type = input.type().tensor_type();
  if (!IsFloatType(type.elem_type()))
    Fail(what + ": element type " + std::to_string(type.elem_type()) +
         " is not supported; floats are");
  if (!type.has_shape()) Fail(what + ": no shape given");
  if (type.shape().dim_size() > limits_.max_rank)
    Fail(what + ": " + std::to_string(type.shape().dim_size()) + " axes");
  Shape shape;
  for (int i = 0; i < type.shape().dim_size(); ++i) {
    const auto& dim = type.shape().dim(i);
    if (dim.has_dim_value() && dim.dim_value() > 0) {
      shape.push_back(dim.dim_value());
    } else if (i == 0) {
      shape.push_back(1);  // the batch
    } else {
      Fail(what + ": axis " + std::to_string(i) + " has no fixed size" +
           (dim.dim_param().empty() ? "" : " ('" + dim.dim_param() + "')"));
    }
  }
  return shape;
}

namespace {

constexpr int kMaxMessageDepth = 100;  // protobuf's own

// A base-128 number at bytes[*at]; false where it is cut short or too long.
bool SkipVarint(std::string_view bytes, std::size_t* at, std::uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (*at >= bytes.size()) return false;
    const auto byte = static_cast<unsigned char>(bytes[(*at)++]);
    *value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Fields of a message and of every message inside it, before any of them is kept. Without the
// schema: what can be a message counts as one, and weights hardly ever can. Stops beyond the limit;
// −1 for what is no message.
std::int64_t CountFields(std::string_view bytes, int depth) {
  if (depth > kMaxMessageDepth) return -1;
  std::int64_t count = 0;
  for (std::size_t at = 0; at < bytes.size() && count <= kMaxOnnxFields;) {
    std::uint64_t tag = 0, size = 0;
    if (!SkipVarint(bytes, &at, &tag) || tag >> 3 == 0) return -1;
    ++count;
    switch (tag & 7) {
      case 0:
        if (!SkipVarint(bytes, &at, &size)) return -1;
        continue;
      case 1:
        size = 8;
        break;
      case 2:
        if (!SkipVarint(bytes, &at, &size)) return -1;
        break;
      case 3:
      case 4:  // where a group begins and ends
        break;
      case 5:
        size = 4;
        break;
      default:
        return -1;
    }
    if (size > bytes.size() - at) return -1;
    if ((tag & 7) == 2) {
      count += std::max<std::int64_t>(0, CountFields(bytes.substr(at, size), depth + 1));
    }
    at += size;
  }
  return count;
}

}  // namespace

OnnxModel ParseOnnx(std::string_view bytes,
                    const std::string& place,
                    const GraphLimits& limits,
                    const std::string& folder) {
  if (bytes.size() > kMaxOnnxBytes) {
    throw ConfigError(place + ": " + std::to_string(bytes.size()) +
                      " bytes, larger than any policy (" + std::to_string(kMaxOnnxBytes) + ")");
  }
  if (CountFields(bytes, 0) > kMaxOnnxFields) {
    throw ConfigError(place + ": more than " + std::to_string(kMaxOnnxFields) +
                      " entries; no policy has as many");
  }
  pb::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw ConfigError(place + ": not an ONNX file, or cut short");
  }
  try {
    return OnnxReader(place, limits, folder).Read(model);
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    if (text.rfind(place, 0) == 0) throw;
    throw ConfigError(place + ": " + text);
  }
}

OnnxModel ReadOnnx(const std::string& path, const GraphLimits& limits) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return ParseOnnx(
      ReadFile(path, kMaxOnnxBytes), path, limits, folder.empty() ? "." : folder.string());
}

}  // namespace silc
