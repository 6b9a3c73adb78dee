// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/onnx/writer.h"

#include <bit>
#include <cstddef>
#include <vector>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/limits.h"
#include "silc_onnx_schema.pb.h"

namespace silc {
namespace {

namespace pb = onnx_schema;

// IR 7 and opset 13: what exporters of the last years write, so every runtime reads it.
constexpr int kIrVersion = 7;
constexpr int kOpset = 13;

class Writer {
 public:
  explicit Writer(pb::GraphProto* graph) : graph_(graph) {}

  void Tensor(const std::string& name,
              const std::vector<std::int64_t>& shape,
              const std::vector<float>& data) {
    pb::TensorProto* tensor = graph_->add_initializer();
    tensor->set_name(name);
    for (const std::int64_t size : shape) tensor->add_dims(size);
    tensor->set_data_type(pb::TensorProto::FLOAT);
    tensor->set_raw_data(data.data(),
                         data.size() * sizeof(float));  // little-endian, as the reader checks
  }

  // A weight under `name`, float32 for whoever reads it.
  void Weight(const std::string& name,
              const std::vector<std::int64_t>& shape,
              const std::vector<float>& data,
              OnnxWeights weights) {
    if (weights == OnnxWeights::kFloat) {
      Tensor(name, shape, data);
      return;
    }
    std::vector<std::uint16_t> half;
    half.reserve(data.size());
    for (const float x : data) {
      half.push_back(HalfBits(x));
      if ((half.back() & 0x7c00u) != 0x7c00u) continue;
      throw ConfigError(name + ": a weight of " + std::to_string(x) +
                        " does not fit float16, which ends at 65504; write it in float32");
    }
    pb::TensorProto* tensor = graph_->add_initializer();
    tensor->set_name(name + ".half");
    for (const std::int64_t size : shape) tensor->add_dims(size);
    tensor->set_data_type(pb::TensorProto::FLOAT16);
    tensor->set_raw_data(half.data(), half.size() * sizeof(std::uint16_t));
    Attribute(Node("Cast", "/" + name + "/Cast", {name + ".half"}, name),
              "to",
              std::int64_t{pb::TensorProto::FLOAT});
  }

  pb::NodeProto* Node(const char* op,
                      const std::string& name,
                      const std::vector<std::string>& inputs,
                      const std::string& output) {
    pb::NodeProto* node = graph_->add_node();
    node->set_op_type(op);
    node->set_name(name);
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    return node;
  }

  static void Attribute(pb::NodeProto* node, const char* name, std::int64_t value) {
    pb::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(pb::AttributeProto::INT);
    attribute->set_i(value);
  }
  static void Attribute(pb::NodeProto* node, const char* name, float value) {
    pb::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(pb::AttributeProto::FLOAT);
    attribute->set_f(value);
  }

  static void Value(pb::ValueInfoProto* info, const std::string& name, int width) {
    info->set_name(name);
    auto* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(pb::TensorProto::FLOAT);
    type->mutable_shape()->add_dim()->set_dim_value(1);
    type->mutable_shape()->add_dim()->set_dim_value(width);
  }

 private:
  pb::GraphProto* graph_;
};

const char* ActivationName(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return "Identity";
    case Activation::kElu:
      return "Elu";
    case Activation::kRelu:
      return "Relu";
    case Activation::kLeakyRelu:
      return "LeakyRelu";
    case Activation::kTanh:
      return "Tanh";
    case Activation::kSigmoid:
      return "Sigmoid";
    case Activation::kSoftplus:
      return "Softplus";
  }
  return "Identity";
}

std::string LayerName(std::size_t branch, std::size_t layer) {
  return "actor." + std::to_string(branch) + "." + std::to_string(layer);
}

// Throws ConfigError where the file could not be read again: its limits are the reader's.
void NeedReadable(const MlpNetwork& network,
                  const std::map<std::string, std::string>& metadata,
                  OnnxWeights weights) {
  constexpr auto kMost = static_cast<std::size_t>(kMaxTensorElements);
  std::size_t bytes = 0, words = 0;
  for (const InputStep& step : network.prefix) bytes += step.operand.size() * sizeof(float);
  for (std::size_t b = 0; b < network.branches.size(); ++b) {
    for (std::size_t l = 0; l < network.branches[b].size(); ++l) {
      const MlpLayer& layer = network.branches[b][l];
      if (layer.weight.size() > kMost) {
        throw ConfigError(LayerName(b, l) + ".weight: " + std::to_string(layer.weight.size()) +
                          " numbers, more than the limit of " + std::to_string(kMost) +
                          " that one tensor is read with");
      }
      bytes += layer.weight.size() * (weights == OnnxWeights::kHalf ? 2 : 4);
      bytes += layer.bias.size() * sizeof(float);
    }
  }
  if (bytes > kMaxOnnxBytes) {
    throw ConfigError("weights of " + std::to_string(bytes) + " bytes, more than the limit of " +
                      std::to_string(kMaxOnnxBytes) + " that an ONNX file is read with");
  }
  for (const auto& [key, value] : metadata) words += key.size() + value.size();
  if (words > kMaxMetadataBytes) {
    throw ConfigError("metadata of " + std::to_string(words) + " bytes, more than the limit of " +
                      std::to_string(kMaxMetadataBytes) + " that it is read with");
  }
}

}  // namespace

std::string SerializeOnnx(const MlpNetwork& network,
                          const std::string& input,
                          const std::string& output,
                          const std::map<std::string, std::string>& metadata,
                          OnnxWeights weights) {
  network.Check();
  SILC_CHECK(!input.empty() && !output.empty() && input != output);
  NeedReadable(network, metadata, weights);
  pb::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("silc");
  model.add_opset_import()->set_version(kOpset);
  pb::GraphProto* graph = model.mutable_graph();
  graph->set_name("policy");
  Writer::Value(graph->add_input(), input, network.inputs);
  Writer::Value(graph->add_output(), output, network.outputs());
  Writer writer(graph);

  std::string x = input;
  for (std::size_t i = 0; i < network.prefix.size(); ++i) {
    const InputStep& step = network.prefix[i];
    const std::string name = "normalizer." + std::to_string(i);
    if (step.kind == InputStep::Kind::kClip) {
      writer.Tensor(name + ".min", {}, {step.low});
      writer.Tensor(name + ".max", {}, {step.high});
      writer.Node("Clip", "/" + name, {x, name + ".min", name + ".max"}, name);
    } else {
      static const char* const kOps[] = {"Add", "Sub", "Mul", "Div"};
      writer.Tensor(name + ".operand", {1, network.inputs}, step.operand);
      writer.Node(kOps[static_cast<int>(step.kind)], "/" + name, {x, name + ".operand"}, name);
    }
    x = name;
  }

  const bool several = network.branches.size() > 1;
  std::vector<std::string> parts;
  for (std::size_t b = 0; b < network.branches.size(); ++b) {
    const auto& layers = network.branches[b];
    std::string h = x;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const MlpLayer& layer = layers[l];
      const std::string name = LayerName(b, l);
      const bool ends = l + 1 == layers.size() && !several;
      const bool linear = layer.activation == Activation::kNone;
      writer.Weight(name + ".weight", {layer.outputs, layer.inputs}, layer.weight, weights);
      writer.Tensor(name + ".bias", {layer.outputs}, layer.bias);
      const std::string affine = ends && linear ? output : name + ".affine";
      pb::NodeProto* gemm =
          writer.Node("Gemm", "/" + name + "/Gemm", {h, name + ".weight", name + ".bias"}, affine);
      Writer::Attribute(gemm, "alpha", 1.0f);
      Writer::Attribute(gemm, "beta", 1.0f);
      Writer::Attribute(gemm, "transB", std::int64_t{1});
      h = affine;
      if (linear) continue;
      const char* op = ActivationName(layer.activation);
      const std::string active = ends ? output : name + ".out";
      pb::NodeProto* node = writer.Node(op, "/" + name + "/" + op, {h}, active);
      if (layer.activation == Activation::kElu || layer.activation == Activation::kLeakyRelu) {
        Writer::Attribute(node, "alpha", layer.alpha);
      }
      h = active;
    }
    parts.push_back(h);
  }
  if (several)
    Writer::Attribute(writer.Node("Concat", "/Concat", parts, output), "axis", std::int64_t{1});

  for (const auto& [key, value] : metadata) {
    pb::StringStringEntryProto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  // protobuf refuses more than 2 GiB, which NeedReadable() has refused long before
  std::string text;
  SILC_CHECK(model.SerializeToString(&text));
  return text;
}

void WriteOnnx(const std::string& path,
               const MlpNetwork& network,
               const std::string& input,
               const std::string& output,
               const std::map<std::string, std::string>& metadata,
               OnnxWeights weights) {
  WriteFileAtomically(path, SerializeOnnx(network, input, output, metadata, weights));
}

std::uint16_t HalfBits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return sign | 0x7e00u;   // not a number
  if (size >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and more round to infinity
  if (size < 0x38800000u) {
    // below 2⁻¹⁴: a whole number of 2⁻²⁴; adding ½ brings the float's own rounding to that bit
    const float shifted = std::bit_cast<float>(size) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  // exponents differ by 112; 13 bits are dropped, ties to even
  const std::uint32_t rounded = size - (112u << 23) + 0xfffu + (size >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | rounded >> 13);
}

}  // namespace silc
