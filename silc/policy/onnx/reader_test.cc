// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/onnx/reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/rng.h"
#include "silc/base/test_paths.h"
#include "silc/policy/mlp.h"
#include "silc/policy/onnx/writer.h"
#include "silc/policy/test_networks.h"
#include "silc_onnx_schema.pb.h"

namespace silc {
namespace {

namespace pb = onnx_schema;

const std::string kCorpus = SourcePath("silc/policy/onnx/fuzz_corpus");

void AddValue(pb::ValueInfoProto* info,
              const std::string& name,
              const std::vector<std::int64_t>& shape) {
  info->set_name(name);
  auto* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(pb::TensorProto::FLOAT);
  for (const std::int64_t size : shape) type->mutable_shape()->add_dim()->set_dim_value(size);
}

pb::NodeProto* AddNode(pb::GraphProto* graph,
                       const char* op,
                       const std::vector<std::string>& inputs,
                       const std::string& output) {
  pb::NodeProto* node = graph->add_node();
  node->set_op_type(op);
  node->set_name("/" + output);
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(output);
  return node;
}

pb::TensorProto* AddTensor(pb::GraphProto* graph,
                           const std::string& name,
                           const std::vector<std::int64_t>& shape,
                           const std::vector<float>& data) {
  pb::TensorProto* tensor = graph->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(pb::TensorProto::FLOAT);
  for (const std::int64_t size : shape) tensor->add_dims(size);
  for (const float x : data) tensor->add_float_data(x);
  return tensor;
}

// y = tanh(x + w), x [1, 2]
pb::ModelProto Model() {
  pb::ModelProto model;
  model.set_ir_version(7);
  model.add_opset_import()->set_version(13);
  pb::GraphProto* graph = model.mutable_graph();
  AddValue(graph->add_input(), "x", {1, 2});
  AddValue(graph->add_output(), "y", {1, 2});
  AddTensor(graph, "w", {2}, {0.5f, -0.5f});
  AddNode(graph, "Add", {"x", "w"}, "h");
  AddNode(graph, "Tanh", {"h"}, "y");
  return model;
}

std::string ErrorOf(const pb::ModelProto& model) {
  try {
    ParseOnnx(model.SerializeAsString(), "p.onnx");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string ErrorAfter(const std::function<void(pb::ModelProto*)>& spoil) {
  pb::ModelProto model = Model();
  spoil(&model);
  return ErrorOf(model);
}

TEST(OnnxReader, ReadsGraphAndMetadata) {
  pb::ModelProto model = Model();
  model.set_producer_name("someone");
  auto* entry = model.add_metadata_props();
  entry->set_key("kp");
  entry->set_value("[1]");
  const OnnxModel read = ParseOnnx(model.SerializeAsString(), "p.onnx");
  EXPECT_EQ(read.metadata, (std::map<std::string, std::string>{{"kp", "[1]"}}));
  EXPECT_EQ(read.producer, "someone");
  EXPECT_EQ(read.opset, 13);
  GraphEvaluator<double> evaluator(read.graph);
  evaluator.input(0)[0] = 1;
  evaluator.input(0)[1] = 2;
  evaluator.Evaluate();
  EXPECT_DOUBLE_EQ(evaluator.output(0)[0], std::tanh(1.5));
  EXPECT_DOUBLE_EQ(evaluator.output(0)[1], std::tanh(1.5));
}

TEST(OnnxReader, ABatchWithoutASizeIsOne) {
  const auto spoil = [](pb::ModelProto* m) {
    m->mutable_graph()
        ->mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_param("batch");
  };
  EXPECT_EQ(ErrorAfter(spoil), "no error");
}

TEST(OnnxReader, WeightsAmongTheInputsAreNoInputs) {
  pb::ModelProto model = Model();
  AddValue(model.mutable_graph()->add_input(), "w", {2});
  EXPECT_EQ(ParseOnnx(model.SerializeAsString(), "p").graph->inputs().size(), 1u);
}

TEST(OnnxReader, AnUnsupportedNodeIsNamedWithItsType) {
  EXPECT_EQ(ErrorAfter([](auto* m) { m->mutable_graph()->mutable_node(1)->set_op_type("LSTM"); }),
            "p.onnx: node '/y': operator type LSTM is not supported (docs/policies.md lists those "
            "that are)");
  EXPECT_EQ(
      ErrorAfter([](auto* m) { m->mutable_graph()->mutable_node(1)->set_domain("com.microsoft"); }),
      "p.onnx: node '/y (Tanh)': operators of domain 'com.microsoft' are not supported");
}

TEST(OnnxReader, CyclesAndMissingOperandsAreTold) {
  EXPECT_EQ(
      ErrorAfter([](auto* m) { m->mutable_graph()->mutable_node(0)->set_input(1, "y"); }),
      "p.onnx: node '/h (Add)': reads 'y' before it is made: the graph is cyclic or out of order");
  EXPECT_EQ(
      ErrorAfter([](auto* m) { m->mutable_graph()->mutable_node(0)->set_input(1, "nowhere"); }),
      "p.onnx: node '/h (Add)': reads 'nowhere', which nothing makes");
  EXPECT_EQ(ErrorAfter([](auto* m) {
              m->mutable_graph()->mutable_node(0)->mutable_input()->RemoveLast();
            }),
            "p.onnx: node '/h (Add)': operand 1 is missing");
  EXPECT_EQ(ErrorAfter([](auto* m) { m->mutable_graph()->mutable_output(0)->set_name("z"); }),
            "p.onnx: output 'z' is made by no node");
}

TEST(OnnxReader, DuplicateNamesAreTold) {
  EXPECT_EQ(ErrorAfter([](auto* m) { m->mutable_graph()->mutable_node(1)->set_output(0, "h"); }),
            "p.onnx: 'h' is defined twice");
  EXPECT_EQ(ErrorAfter([](auto* m) { AddTensor(m->mutable_graph(), "w", {1}, {1}); }),
            "p.onnx: 'w' is defined twice");
  EXPECT_EQ(ErrorAfter([](auto* m) { AddValue(m->mutable_graph()->add_input(), "x", {1}); }),
            "p.onnx: 'x' is defined twice");
  EXPECT_EQ(ErrorAfter([](auto* m) {
              for (int i = 0; i < 2; ++i) m->add_metadata_props()->set_key("k");
            }),
            "p.onnx: metadata key 'k' stands there twice");
}

TEST(OnnxReader, ExternalDataAndSparseTensorsAreRefused) {
  EXPECT_EQ(
      ErrorAfter([](auto* m) {
        m->mutable_graph()->mutable_initializer(0)->set_data_location(pb::TensorProto::EXTERNAL);
      }),
      "p.onnx: tensor 'w': its data is in another file");
  EXPECT_EQ(ErrorAfter([](auto* m) { m->mutable_graph()->add_sparse_initializer(); }),
            "p.onnx: sparse tensors are not supported");
}

TEST(OnnxReader, SizesArePromisesThatAreCheckedFirst) {
  const auto dims = [](std::vector<std::int64_t> sizes) {
    return ErrorAfter([&](auto* m) {
      auto* tensor = m->mutable_graph()->mutable_initializer(0);
      tensor->clear_dims();
      for (const auto size : sizes) tensor->add_dims(size);
    });
  };
  EXPECT_EQ(dims({std::int64_t{1} << 40, std::int64_t{1} << 40}),
            "p.onnx: tensor 'w': larger than 16777216 elements");
  EXPECT_EQ(dims({1000, 1000}),
            "p.onnx: tensor 'w': 2 numbers where its shape needs 1000000; the file is damaged");
  EXPECT_EQ(dims({-2}), "p.onnx: tensor 'w': size -2");
  EXPECT_EQ(dims(std::vector<std::int64_t>(20, 1)), "p.onnx: tensor 'w': 20 axes");
  EXPECT_NE(ErrorAfter([](auto* m) {
              m->mutable_graph()
                  ->mutable_input(0)
                  ->mutable_type()
                  ->mutable_tensor_type()
                  ->mutable_shape()
                  ->mutable_dim(1)
                  ->set_dim_value(std::int64_t{1} << 60);
            }).find("is larger than"),
            std::string::npos);
  EXPECT_EQ(ErrorAfter([](auto* m) {
              m->mutable_graph()
                  ->mutable_input(0)
                  ->mutable_type()
                  ->mutable_tensor_type()
                  ->mutable_shape()
                  ->mutable_dim(1)
                  ->set_dim_param("n");
            }),
            "p.onnx: input 'x': axis 1 has no fixed size ('n')");
}

// Doubling a list of integers forty times would be 8 TB.
TEST(OnnxReader, GrowingIntegersAreStopped) {
  pb::ModelProto model = Model();
  pb::GraphProto* graph = model.mutable_graph();
  pb::TensorProto* tensor = graph->add_initializer();
  tensor->set_name("i0");
  tensor->set_data_type(pb::TensorProto::INT64);
  tensor->add_dims(1);
  tensor->add_int64_data(1);
  for (int i = 0; i < 40; ++i) {
    pb::NodeProto* node = AddNode(graph,
                                  "Concat",
                                  {"i" + std::to_string(i), "i" + std::to_string(i)},
                                  "i" + std::to_string(i + 1));
    auto* axis = node->add_attribute();
    axis->set_name("axis");
    axis->set_type(pb::AttributeProto::INT);
    axis->set_i(0);
  }
  EXPECT_NE(ErrorOf(model).find("more than 65536 integers"), std::string::npos) << ErrorOf(model);
}

// And doubling a tensor by Concat runs into the graph's limits.
TEST(OnnxReader, GrowingTensorsAreStopped) {
  pb::ModelProto model = Model();
  pb::GraphProto* graph = model.mutable_graph();
  std::string last = "y";
  for (int i = 0; i < 40; ++i) {
    const std::string next = "g" + std::to_string(i);
    auto* axis = AddNode(graph, "Concat", {last, last}, next)->add_attribute();
    axis->set_name("axis");
    axis->set_type(pb::AttributeProto::INT);
    axis->set_i(1);
    last = next;
  }
  EXPECT_NE(ErrorOf(model).find("elements"), std::string::npos);
}

TEST(OnnxReader, AttributesAreReadStrictly) {
  const auto attribute = [](const char* name, bool as_float) {
    return ErrorAfter([&](auto* m) {
      auto* node = m->mutable_graph()->mutable_node(1);
      node->set_op_type("Elu");
      auto* a = node->add_attribute();
      a->set_name(name);
      a->set_type(as_float ? pb::AttributeProto::FLOAT : pb::AttributeProto::INT);
      a->set_f(1);
    });
  };
  EXPECT_EQ(attribute("alpha", true), "no error");
  EXPECT_EQ(attribute("alpha", false),
            "p.onnx: node '/y (Elu)': attribute 'alpha' has the wrong type");
  EXPECT_EQ(attribute("beta", true), "p.onnx: node '/y (Elu)': attribute 'beta' is not supported");
}

TEST(OnnxReader, OpsetsOutsideTheRangeAreRefused) {
  for (const auto& [version, ok] :
       std::vector<std::pair<int, bool>>{{6, false}, {7, true}, {21, true}, {22, false}}) {
    const int v = version;
    EXPECT_EQ(
        ErrorAfter([v](auto* m) { m->mutable_opset_import(0)->set_version(v); }) == "no error", ok)
        << version;
  }
}

TEST(OnnxReader, OtherFilesAreToldApart) {
  for (const std::string& bytes :
       {std::string(), std::string("hello"), std::string(1000, '\xff'), std::string(100, '\0')}) {
    EXPECT_THROW(ParseOnnx(bytes, "p.onnx"), ConfigError);
  }
  EXPECT_THROW(ReadOnnx("/nowhere/at.onnx"), ConfigError);
  EXPECT_THROW(ReadOnnx(SourcePath("")), ConfigError);
}

TEST(OnnxReader, HalfPrecisionWeightsAreExact) {
  const auto value = [](std::uint16_t bits, int type) {
    pb::ModelProto model = Model();
    pb::TensorProto* w = model.mutable_graph()->mutable_initializer(0);
    w->clear_float_data();
    w->set_data_type(type);
    for (int i = 0; i < 2; ++i) w->add_int32_data(bits);
    const OnnxModel read = ParseOnnx(model.SerializeAsString(), "p");
    for (const GraphValue& v : read.graph->values()) {
      if (v.is_constant) return v.data[0];
    }
    return -1.0f;
  };
  const int half = pb::TensorProto::FLOAT16, brain = pb::TensorProto::BFLOAT16;
  EXPECT_EQ(value(0x3c00, half), 1.0f);
  EXPECT_EQ(value(0xc000, half), -2.0f);
  EXPECT_EQ(value(0x3555, half), 0.333251953125f);
  EXPECT_EQ(value(0x0001, half), 5.9604644775390625e-08f);
  EXPECT_EQ(value(0x7bff, half), 65504.0f);
  EXPECT_THROW(value(0x7c00, half), ConfigError);  // infinity
  EXPECT_EQ(value(0x3f80, brain), 1.0f);
  EXPECT_EQ(value(0xc040, brain), -3.0f);
}

// A training that was lost leaves NaN in its weights, and a robot with those falls like any other.
TEST(OnnxReader, WeightsThatAreNoNumbersAreRefusedByName) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    pb::ModelProto model = Model();
    model.mutable_graph()->mutable_initializer(0)->set_float_data(1, bad);
    try {
      ParseOnnx(model.SerializeAsString(), "p");
      FAIL() << bad << " was read";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("p: node '/h (Add)': its weights 'w' hold a"),
                std::string::npos)
          << error.what();
    }
  }
  // a bound that bounds nothing is none of them
  pb::ModelProto model = Model();
  pb::GraphProto* graph = model.mutable_graph();
  graph->mutable_initializer(0)->set_float_data(1, std::numeric_limits<float>::infinity());
  graph->mutable_node(0)->set_op_type("Min");
  EXPECT_NO_THROW(ParseOnnx(model.SerializeAsString(), "p"));
}

// Little in the file, much in the memory: 20 nodes that each keep a million numbers of the input.
TEST(OnnxReader, WhatTheInputGrowsToIsBounded) {
  pb::ModelProto model = Model();
  pb::GraphProto* graph = model.mutable_graph();
  pb::TensorProto* shape = graph->add_initializer();
  shape->set_name("shape");
  shape->set_data_type(pb::TensorProto::INT64);
  shape->add_dims(2);
  shape->add_int64_data(500000);
  shape->add_int64_data(2);
  AddNode(graph, "Expand", {"y", "shape"}, "z");
  graph->mutable_output(0)->set_name("z");
  try {
    ParseOnnx(model.SerializeAsString(), "p");
    FAIL() << "read";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("what depends on the input"), std::string::npos)
        << error.what();
  }
}

// An empty entry takes two bytes of a file and a hundred of memory. At any depth, and before the
// place where the file is cut short.
TEST(OnnxReader, EntriesWithoutEndAreRefusedUnread) {
  std::string entries, nodes;
  for (std::int64_t k = 0; k <= kMaxOnnxFields; ++k) {
    entries += std::string("\x72\x00", 2);  // metadata_props
    nodes += std::string("\x0a\x00", 2);    // graph.node
  }
  std::string graph = "\x3a";  // model.graph
  for (std::size_t size = nodes.size();; size >>= 7) {
    graph += static_cast<char>((size & 0x7F) | (size > 0x7F ? 0x80 : 0));
    if (size <= 0x7F) break;
  }
  for (const std::string& bytes : {entries, graph + nodes, entries + "\x72\x7f"}) {
    try {
      ParseOnnx(bytes, "p");
      FAIL() << "read";
    } catch (const ConfigError& error) {
      EXPECT_EQ(std::string(error.what()), "p: more than 1048576 entries; no policy has as many");
    }
  }
}

TEST(OnnxReader, MetadataOfMegabytesIsRefused) {
  pb::ModelProto model = Model();
  for (int k = 0; k < 3; ++k) {
    pb::StringStringEntryProto* entry = model.add_metadata_props();
    entry->set_key("silc_" + std::to_string(k));
    entry->set_value(std::string(kMaxMetadataBytes / 2, 'a'));
  }
  try {
    ParseOnnx(model.SerializeAsString(), "p");
    FAIL() << "read";
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()), "p: metadata has more than 4194304 bytes");
  }
}

class ExternalData : public ::testing::Test {
 protected:
  ExternalData() : folder_(std::filesystem::path(::testing::TempDir()) / "silc_external_data") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "model");
    const float weights[3] = {7, 0.5f, -0.25f};
    WriteFileAtomically(Path("weights.data"),
                        {reinterpret_cast<const char*>(weights), sizeof(weights)});
    WriteFileAtomically((folder_ / "secret").string(),
                        {reinterpret_cast<const char*>(weights), sizeof(weights)});
  }
  ~ExternalData() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return (folder_ / "model" / name).string(); }

  // Writes the model with w in another file and reads it; what went wrong, or "".
  std::string Read(const std::string& location, const char* offset, const char* length) {
    pb::ModelProto model = Model();
    pb::TensorProto* w = model.mutable_graph()->mutable_initializer(0);
    w->clear_float_data();
    w->set_data_location(pb::TensorProto::EXTERNAL);
    const auto add = [&](const char* key, const std::string& value) {
      pb::StringStringEntryProto* entry = w->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    };
    add("location", location);
    if (offset != nullptr) add("offset", offset);
    if (length != nullptr) add("length", length);
    WriteFileAtomically(Path("p.onnx"), model.SerializeAsString());
    try {
      model_ = ReadOnnx(Path("p.onnx"));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path folder_;
  OnnxModel model_;
};

TEST_F(ExternalData, IsReadFromTheFileBeside) {
  ASSERT_EQ(Read("weights.data", "4", "8"), "");
  GraphEvaluator<double> evaluator(model_.graph);
  evaluator.input(0)[0] = evaluator.input(0)[1] = 0;
  evaluator.Evaluate();
  EXPECT_NEAR(evaluator.output(0)[0], std::tanh(0.5), 1e-12);
  EXPECT_NEAR(evaluator.output(0)[1], std::tanh(-0.25), 1e-12);
}

// A policy is told from another by all of its weights, and by nothing that is none of them.
TEST_F(ExternalData, ItsHashIsOfWhatWasRead) {
  ASSERT_EQ(Read("weights.data", "4", "8"), "");
  const std::string hash = model_.external_hash;
  EXPECT_EQ(hash.size(), 64u);
  float weights[3] = {8, 0.5f, -0.25f};
  const auto write = [&] {
    WriteFileAtomically(Path("weights.data"),
                        {reinterpret_cast<const char*>(weights), sizeof(weights)});
  };
  write();
  ASSERT_EQ(Read("weights.data", "4", "8"), "");
  EXPECT_EQ(model_.external_hash, hash);
  weights[1] = 0.25f;
  write();
  ASSERT_EQ(Read("weights.data", "4", "8"), "");
  EXPECT_NE(model_.external_hash, hash);
  EXPECT_EQ(ParseOnnx(Model().SerializeAsString(), "p").external_hash, "");
}

TEST_F(ExternalData, NothingElseIsRead) {
  const auto expect = [&](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << error;
  };
  expect(Read("../secret", "4", "8"), "must be the name of a file in the policy's own folder");
  expect(Read("..", "4", "8"), "must be the name of a file in the policy's own folder");
  expect(Read((folder_ / "secret").string(), "4", "8"), "must be the name of a file");
  std::filesystem::create_symlink(folder_ / "secret", Path("link.data"));
  expect(Read("link.data", "4", "8"), "a link out of the policy's folder");
  expect(Read("none.data", "4", "8"), "which is not there");
  expect(Read("weights.data", "8", "8"), "beyond the end of that file");
  expect(Read("weights.data", "18446744073709551615", "8"), "beyond the end of that file");
  expect(Read("weights.data", "-4", "8"), "no whole number");
  expect(Read("weights.data", nullptr, nullptr), "12 bytes where its shape needs 8");
}

// -------------------------------------------------------------------------------------------
// damaged files

// A ConfigError, or a graph that evaluates and differentiates. Anything else ends the test program;
// under the sanitizers any stray access does too.
bool Survives(const std::string& bytes) {
  GraphLimits limits;
  limits.max_elements = 1 << 16;
  limits.max_total_elements = 1 << 18;
  limits.max_work = 1 << 22;
  limits.max_nodes = 1000;
  try {
    const OnnxModel model = ParseOnnx(bytes, "damaged", limits);
    GraphEvaluator<float> evaluator(model.graph);
    evaluator.Evaluate();
    evaluator.SetTangentCount(1);
    evaluator.PushTangents();
    RecogniseMlp(*model.graph, 0, 0);
    return true;
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("damaged: ", 0), 0u) << error.what();
    return false;
  }
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus))
    seeds.push_back(ReadFile(entry.path().string()));
  std::sort(seeds.begin(), seeds.end());
  Rng rng(1);
  seeds.push_back(SerializeOnnx(RandomTwoActors(&rng, 4, 2, 1), "obs", "actions", {{"a", "b"}}));
  return seeds;
}

TEST(OnnxReader, EverySeedIsReadAsItIs) {
  const std::vector<std::string> seeds = Seeds();
  EXPECT_GT(seeds.size(), 60u);
  for (const std::string& seed : seeds) EXPECT_TRUE(Survives(seed));
}

TEST(OnnxReader, WhatWasFoundByStrangersIsRefused) {
  const std::string folder = SourcePath("silc/policy/onnx/refused/fuzz_corpus");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_THROW(ReadOnnx(entry.path().string()), ConfigError) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0);
}

TEST(OnnxReader, EveryTruncationIsSurvived) {
  int refused = 0, count = 0;
  for (const std::string& seed : Seeds()) {
    const std::size_t step = seed.size() > 1000 ? 37 : 1;
    for (std::size_t n = 0; n < seed.size(); n += step) {
      refused += Survives(seed.substr(0, n)) ? 0 : 1;
      ++count;
    }
  }
  // a cut at a field's end can leave a whole smaller model; nearly all cuts do not
  EXPECT_GT(refused, count * 9 / 10);
}

TEST(OnnxReader, ThousandsOfFlippedBytesAreSurvived) {
  Rng rng(2);
  int read = 0;
  for (const std::string& seed : Seeds()) {
    for (int trial = 0; trial < 60; ++trial) {
      std::string bytes = seed;
      const int flips = 1 + static_cast<int>(rng.Uniform() * 4);
      for (int i = 0; i < flips; ++i) {
        const auto at = static_cast<std::size_t>(rng.Uniform() * static_cast<double>(bytes.size()));
        bytes[at] = static_cast<char>(rng.Bits() & 0xff);
      }
      read += Survives(bytes) ? 1 : 0;
    }
  }
  EXPECT_GT(read, 0);  // a flipped weight is still a weight
}

}  // namespace
}  // namespace silc
