// SPDX-License-Identifier: Apache-2.0
#include "silc/certify/mlp_relaxation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "silc/policy/test_networks.h"

namespace silc {
namespace {

constexpr int kInputs = 11;

// Two symbols move two inputs each, the others one.
ObservationBox RandomBox(double radius, Rng* rng) {
  ObservationBox box;
  box.centre.resize(kInputs);
  for (int i = 0; i < kInputs; ++i) box.centre[i] = rng->Uniform(-1, 1);
  box.symbols = kInputs - 2;
  for (int i = 0; i < kInputs; ++i) {
    box.entries.push_back({i, i % box.symbols, radius * rng->Uniform(-1, 1)});
  }
  return box;
}

Eigen::VectorXd PointOf(const ObservationBox& box, const Eigen::VectorXd& t) {
  Eigen::VectorXd x = box.centre;
  for (const auto& entry : box.entries) x[entry.input] += entry.radius * t[entry.symbol];
  return x;
}

// (C3): slopes are where the affine form says, over the whole box.
TEST(MlpRelaxation, SlopesStayInsideOverTheBox) {
  Rng rng(11);
  for (int trial = 0; trial < 24; ++trial) {
    MlpNetwork network = RandomTwoActors(&rng, kInputs, 5, 4);
    const Activation kinds[] = {Activation::kElu, Activation::kTanh, Activation::kRelu};
    for (auto& layer : network.branches[0]) {
      if (layer.activation != Activation::kNone) layer.activation = kinds[trial % 3];
    }
    const DenseNetwork dense = MakeDenseNetwork(network);
    const ObservationBox box = RandomBox(trial < 3 ? 0 : std::pow(10.0, -(trial % 4)), &rng);
    for (int branch = 0; branch < 2; ++branch) {
      const std::vector<LayerRelaxation> layers = RelaxBranch(dense, branch, box);
      for (int sample = 0; sample < 100; ++sample) {
        Eigen::VectorXd t(box.symbols);
        for (Eigen::Index j = 0; j < t.size(); ++j) {
          t[j] = rng.Uniform(-1, 1);
          if (sample % 2 == 0) t[j] = t[j] < 0 ? -1 : 1;
        }
        const auto slopes = BranchSlopes(dense, branch, PointOf(box, t));
        for (std::size_t l = 0; l < layers.size(); ++l) {
          Eigen::VectorXd middle = layers[l].slope;
          if (!layers[l].is_constant) middle += layers[l].tilt * t;
          for (Eigen::Index k = 0; k < middle.size(); ++k) {
            const double d = slopes[l][k];
            // 1e-15: the middle itself is rounded here
            ASSERT_LE(std::abs(d - middle[k]), layers[l].own[k] + 1e-15) << trial << " " << l;
            ASSERT_LE(std::abs(d - layers[l].slope[k]), layers[l].spread[k] + 1e-15);
          }
        }
      }
    }
  }
}

// Ten units in a row with weights of 1e38 are beyond a double. What is after them is not known,
// however small: the last unit sees -1, the end of the ELU, but no enclosure of it was computed.
TEST(MlpRelaxation, KnowsNothingBehindAnOverflow) {
  for (const Activation activation : {Activation::kNone, Activation::kElu}) {
    MlpNetwork network;
    network.inputs = 1;
    network.branches.emplace_back();
    for (int l = 0; l < 12; ++l) {
      MlpLayer layer;
      layer.inputs = layer.outputs = 1;
      layer.weight = {l < 10 ? 1e38f : l == 10 ? -1e38f : 1e-3f};
      layer.bias = {l == 0 ? 1.0f : 0.0f};
      layer.activation = l == 11 ? Activation::kNone : l == 10 ? Activation::kElu : activation;
      network.branches[0].push_back(layer);
    }
    const DenseNetwork dense = MakeDenseNetwork(network);
    ObservationBox box;
    box.centre = Eigen::VectorXd::Constant(1, 1.0);
    box.symbols = 1;
    for (const double radius : {0.0, 0.1}) {
      box.entries = {{0, 0, radius}};
      const std::vector<LayerRelaxation> layers = RelaxBranch(dense, 0, box);
      EXPECT_EQ(layers.back().spread[0], HUGE_VAL);
      EXPECT_EQ(layers.back().low[0], -HUGE_VAL);
      for (const LayerRelaxation& layer : layers) {
        EXPECT_TRUE(std::isfinite(layer.slope[0]));
        EXPECT_FALSE(std::isnan(layer.own[0]) || std::isnan(layer.spread[0]));
        EXPECT_LE(layer.low[0], layer.high[0]);
      }
    }
  }
}

// The double network is the one that runs: outputs of the last layer, inside its clips.
TEST(MlpRelaxation, IsTheNetworkOfTheEngine) {
  Rng rng(12);
  const MlpNetwork network = RandomTwoActors(&rng, kInputs, 5, 4);
  const DenseNetwork dense = MakeDenseNetwork(network);
  MlpEngine engine(network);
  ObservationBox box = RandomBox(0, &rng);
  std::vector<float> x(box.centre.data(), box.centre.data() + kInputs), y(9);
  for (int i = 0; i < kInputs; ++i) box.centre[i] = x[static_cast<std::size_t>(i)];
  engine.Forward(x, y);
  ASSERT_FALSE(engine.clipped());
  int output = 0;
  for (int branch = 0; branch < 2; ++branch) {
    const LayerRelaxation last = RelaxBranch(dense, branch, box).back();
    for (Eigen::Index k = 0; k < last.low.size(); ++k, ++output) {
      EXPECT_NEAR(0.5 * (last.low[k] + last.high[k]), y[static_cast<std::size_t>(output)], 1e-5);
      EXPECT_NEAR(last.low[k], last.high[k], 1e-10);
    }
  }
}

// Where the normaliser clips, as DenseNetwork has it: the engine says the same.
TEST(MlpRelaxation, KnowsTheClipsOfTheNormaliser) {
  Rng rng(13);
  const MlpNetwork network = RandomTwoActors(&rng, kInputs, 5, 4);
  const DenseNetwork dense = MakeDenseNetwork(network);
  MlpEngine engine(network);
  std::vector<float> y(9);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<float> x(kInputs);
    bool clipped = false;
    for (int i = 0; i < kInputs; ++i) {
      x[static_cast<std::size_t>(i)] = static_cast<float>(rng.Uniform(-5, 5));
      const double value = x[static_cast<std::size_t>(i)];
      clipped = clipped || value < dense.clip_low[i] || value > dense.clip_high[i];
    }
    engine.Forward(x, y);
    EXPECT_EQ(engine.clipped(), clipped);
  }
}

}  // namespace
}  // namespace silc
