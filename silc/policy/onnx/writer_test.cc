// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/onnx/writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/limits.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/policy.h"
#include "silc/policy/policy_metadata.h"
#include "silc/policy/test_networks.h"

namespace silc {
namespace {

void ExpectSame(const MlpNetwork& a, const MlpNetwork& b) {
  ASSERT_EQ(a.inputs, b.inputs);
  ASSERT_EQ(a.prefix.size(), b.prefix.size());
  for (std::size_t i = 0; i < a.prefix.size(); ++i) {
    EXPECT_EQ(a.prefix[i].kind, b.prefix[i].kind);
    EXPECT_EQ(a.prefix[i].operand, b.prefix[i].operand);
    EXPECT_EQ(a.prefix[i].low, b.prefix[i].low);
    EXPECT_EQ(a.prefix[i].high, b.prefix[i].high);
  }
  ASSERT_EQ(a.branches.size(), b.branches.size());
  for (std::size_t i = 0; i < a.branches.size(); ++i) {
    ASSERT_EQ(a.branches[i].size(), b.branches[i].size());
    for (std::size_t l = 0; l < a.branches[i].size(); ++l) {
      EXPECT_EQ(a.branches[i][l].weight, b.branches[i][l].weight);
      EXPECT_EQ(a.branches[i][l].bias, b.branches[i][l].bias);
      EXPECT_EQ(a.branches[i][l].activation, b.branches[i][l].activation);
      if (a.branches[i][l].activation == Activation::kElu ||
          a.branches[i][l].activation == Activation::kLeakyRelu) {
        EXPECT_EQ(a.branches[i][l].alpha, b.branches[i][l].alpha);
      }
    }
  }
}

// Infinity in place of a large weight would act, on some observations, and nobody would be told.
TEST(OnnxWriter, AWeightBeyondFloat16IsRefusedByItsLayersName) {
  MlpNetwork network;
  network.inputs = 1;
  network.branches = {{{.inputs = 1, .outputs = 2, .weight = {1, 65504}, .bias = {0, 1e6f}}}};
  SerializeOnnx(network, "obs", "actions", {}, OnnxWeights::kHalf);
  network.branches[0][0].weight[1] = -65520;  // the first that rounds to infinity
  SerializeOnnx(network, "obs", "actions", {}, OnnxWeights::kFloat);
  try {
    SerializeOnnx(network, "obs", "actions", {}, OnnxWeights::kHalf);
    FAIL() << "written";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("actor.0.0.weight: a weight of -65520"),
              std::string::npos)
        << error.what();
  }
}

// A layer of zeros.
MlpLayer Zeros(int inputs, int outputs) {
  const auto n = static_cast<std::size_t>(inputs), m = static_cast<std::size_t>(outputs);
  return {.inputs = inputs,
          .outputs = outputs,
          .weight = std::vector<float>(n * m),
          .bias = std::vector<float>(m)};
}

std::string RefusalOf(const MlpNetwork& network,
                      const std::map<std::string, std::string>& metadata,
                      OnnxWeights weights) {
  try {
    SerializeOnnx(network, "obs", "actions", metadata, weights);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "written";
}

// Nothing would read it again, and protobuf ends the program or writes nothing beyond 2 GiB. In
// half precision the file may be small enough and the tensor is not.
TEST(OnnxWriter, ATensorTooLargeToBeReadAgainIsNotWritten) {
  constexpr int kWide = 1 << 12;
  MlpNetwork network;
  network.inputs = kWide;
  network.branches = {{Zeros(kWide, kWide + 1)}};
  for (const OnnxWeights weights : {OnnxWeights::kFloat, OnnxWeights::kHalf}) {
    EXPECT_EQ(RefusalOf(network, {}, weights),
              "actor.0.0.weight: 16781312 numbers, more than the limit of 16777216 that one tensor "
              "is read with");
  }
}

// Each tensor is within its limit, the weights together just so; biases count, too.
TEST(OnnxWriter, ANetworkTooLargeToBeReadAgainIsNotWritten) {
  constexpr int kWide = 1 << 12;
  MlpNetwork network;
  network.inputs = kWide;
  network.branches = {std::vector<MlpLayer>(4, Zeros(kWide, kWide))};
  EXPECT_EQ(
      RefusalOf(network, {}, OnnxWeights::kFloat),
      "weights of 268500992 bytes, more than the limit of 268435456 that an ONNX file is read "
      "with");
}

TEST(OnnxWriter, MetadataTooLargeToBeReadAgainIsNotWritten) {
  Rng rng(5);
  const MlpNetwork network = RandomTwoActors(&rng, 7, 5, 4);
  // an 'f' begins no entry of a file: the reader, who counts them unread, sees one text
  std::map<std::string, std::string> metadata = {{"a", std::string(kMaxMetadataBytes - 1, 'f')}};
  const std::string bytes = SerializeOnnx(network, "obs", "actions", metadata);
  EXPECT_EQ(ParseOnnx(bytes, "p").metadata, metadata);
  metadata["b"] = "";
  EXPECT_EQ(RefusalOf(network, metadata, OnnxWeights::kFloat),
            "metadata of 4194305 bytes, more than the limit of 4194304 that it is read with");
}

// A float16's value from its definition.
double HalfValue(int bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

TEST(OnnxWriter, HalvesAreTheNearestAndTiesGoToEven) {
  for (int bits = 0; bits < 0x7c00; ++bits) {
    const double value = HalfValue(bits), next = HalfValue(bits + 1);
    ASSERT_EQ(HalfBits(static_cast<float>(value)), bits);
    ASSERT_EQ(HalfBits(static_cast<float>(-value)), bits | 0x8000);
    // 11 bits and one more fit a float: midpoints and their neighbours are exact
    const auto middle = static_cast<float>(0.5 * (value + (bits == 0x7bff ? 65536.0 : next)));
    ASSERT_EQ(HalfBits(middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(HalfBits(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(HalfBits(std::nextafter(middle, 1e9f)), bits + 1);
  }
  EXPECT_EQ(HalfBits(1e9f), 0x7c00);
  EXPECT_EQ(HalfBits(std::numeric_limits<float>::quiet_NaN()) & 0x7c00, 0x7c00);
}

TEST(OnnxWriter, HalfWeightsComeBackRoundedInHalfTheBytes) {
  Rng rng(4);
  const MlpNetwork network = RandomTwoActors(&rng, 64, 15, 14);
  const std::string whole = SerializeOnnx(network, "obs", "actions", {});
  const std::string half = SerializeOnnx(network, "obs", "actions", {}, OnnxWeights::kHalf);
  EXPECT_LT(half.size(), 0.65 * whole.size());
  const OnnxModel model = ParseOnnx(half, "test");
  const auto read = RecogniseMlp(*model.graph, 0, 0);
  ASSERT_TRUE(read);
  MlpNetwork rounded = network;
  for (auto& branch : rounded.branches) {
    for (MlpLayer& layer : branch) {
      for (float& w : layer.weight) w = static_cast<float>(HalfValue(HalfBits(w)));
    }
  }
  ExpectSame(*read, rounded);
}

TEST(OnnxWriter, WhatIsWrittenIsReadBitForBit) {
  Rng rng(1);
  for (const Activation activation : {Activation::kElu,
                                      Activation::kRelu,
                                      Activation::kLeakyRelu,
                                      Activation::kTanh,
                                      Activation::kSigmoid,
                                      Activation::kSoftplus}) {
    MlpNetwork network = RandomTwoActors(&rng, 17, 5, 4);
    network.branches[0][0].activation = activation;
    network.branches[0][0].alpha = 0.3f;
    network.branches[1].back().activation = Activation::kTanh;
    InputStep step;
    step.kind = InputStep::Kind::kMul;
    step.operand = RandomFloats(&rng, 17);
    network.prefix.push_back(step);
    step.kind = InputStep::Kind::kAdd;
    network.prefix.push_back(step);
    const std::map<std::string, std::string> metadata = {{"one", "1"},
                                                         {"two", std::string("\0\n\xc3\xa9", 4)}};
    const std::string bytes = SerializeOnnx(network, "obs", "actions", metadata);
    EXPECT_EQ(bytes, SerializeOnnx(network, "obs", "actions", metadata));
    const OnnxModel model = ParseOnnx(bytes, "twin");
    EXPECT_EQ(model.metadata, metadata);
    EXPECT_EQ(model.producer, "silc");
    EXPECT_EQ(model.graph->FindInput("obs"), 0);
    EXPECT_EQ(model.graph->FindOutput("actions"), 0);
    const auto read = RecogniseMlp(*model.graph, 0, 0);
    ASSERT_TRUE(read.has_value());
    ExpectSame(network, *read);
  }
}

TEST(OnnxWriter, OneActorNeedsNoConcat) {
  Rng rng(2);
  for (const Activation last : {Activation::kNone, Activation::kTanh}) {
    MlpNetwork network = RandomTwoActors(&rng, 7, 5, 4);
    network.branches.pop_back();
    network.branches[0].back().activation = last;
    network.prefix.clear();
    const OnnxModel model = ParseOnnx(SerializeOnnx(network, "obs", "actions", {}), "twin");
    const auto read = RecogniseMlp(*model.graph, 0, 0);
    ASSERT_TRUE(read.has_value());
    ExpectSame(network, *read);
  }
}

// A policy saved and loaded does the same, to the last bit, from the file alone.
TEST(OnnxWriter, ASavedPolicyActsAsTheOneThatWasSaved) {
  Rng rng(3);
  ObservationLayout layout = ThreeJointLayout();
  for (double& x : layout.default_pose) x = rng.Normal();
  for (double& x : layout.action.scale) x = rng.Uniform();
  const MlpNetwork network = RandomTwoActors(&rng, ObservationWidth(layout), 2, 1);
  const std::string path =
      (std::filesystem::temp_directory_path() / "silc_writer_test.onnx").string();
  WriteOnnx(path, network, "obs", "actions", MetadataFor(layout, "run"));
  const OnnxModel model = ReadOnnx(path);
  std::filesystem::remove(path);

  const PolicyRobot robot = {{"a", "b", "c"}, Eigen::Vector3d::Zero()};
  Policy saved(std::make_shared<const Graph>(MlpGraph(network, "obs", "actions")), layout, robot);
  Policy loaded(model.graph, LayoutFromSilcBlock(model.metadata, path), robot);
  EXPECT_TRUE(loaded.is_mlp());
  EXPECT_EQ(saved.kp(), loaded.kp());
  ObservationInput in;
  in.q = in.qd = in.tau = in.q_ref = Eigen::Vector3d::Zero();
  Eigen::VectorXd target_saved, target_loaded;
  for (int step = 0; step < 20; ++step) {
    for (Eigen::VectorXd* v : {&in.q, &in.qd, &in.tau, &in.q_ref}) {
      for (double& x : *v) x = 0.3 * rng.Normal();
    }
    ASSERT_EQ(saved.Act(in, &target_saved), PolicyStatus::kOk);
    ASSERT_EQ(loaded.Act(in, &target_loaded), PolicyStatus::kOk);
    ASSERT_EQ(target_saved, target_loaded);
  }
  SummedJacobians a, b;
  ASSERT_EQ(saved.Jacobians(&a), PolicyStatus::kOk);
  ASSERT_EQ(loaded.Jacobians(&b), PolicyStatus::kOk);
  EXPECT_EQ(a.S_q, b.S_q);
  EXPECT_EQ(a.S_a, b.S_a);
}

TEST(OnnxWriter, AFolderThatIsNotThereIsToldAndNothingIsLeft) {
  Rng rng(4);
  EXPECT_THROW(WriteOnnx("/nowhere/x.onnx", RandomTwoActors(&rng, 7, 5, 4), "obs", "actions", {}),
               RunError);
}

}  // namespace
}  // namespace silc
