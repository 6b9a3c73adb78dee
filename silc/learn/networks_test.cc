// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/networks.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>

#include "silc/policy/onnx/reader.h"
#include "silc/policy/onnx/writer.h"

namespace silc {
namespace {

MlpShape Small(int outputs) { return {.inputs = 12, .outputs = outputs}; }

Network Actor(int outputs, std::uint32_t stream, at::ScalarType type = at::kFloat) {
  MlpShape shape = Small(outputs);
  shape.hidden = {16, 8};
  return MakeNetwork(shape, std::vector<double>(outputs, 0.8), 3, stream, at::TensorOptions(type));
}

TEST(Network, StartsUniformWithinOneOverRootFanIn) {
  const Network network =
      MakeNetwork({.inputs = 400, .hidden = {300}, .outputs = 5}, {}, 7, 1, at::kDouble);
  const Tensor& weight = network.layers.weight[0];
  const double bound = 1 / std::sqrt(400.0);
  EXPECT_LE(weight.abs().max().item<double>(), bound);
  // 120,000 draws: variance bound²/3 to about 1 %, mean to bound/√(3·120000)
  EXPECT_NEAR(weight.var().item<double>() / (bound * bound / 3), 1, 0.02);
  EXPECT_NEAR(weight.mean().item<double>() / bound, 0, 0.01);
  EXPECT_FALSE(network.std.defined());
}

TEST(Network, LayersAreViewsOfOneVector) {
  Network network = Actor(5, 1);
  const float before = network.layers.bias[1][3].item<float>();
  {
    at::NoGradGuard no_tape;
    network.flat.add_(1);
  }
  EXPECT_FLOAT_EQ(network.layers.bias[1][3].item<float>(), before + 1);
  EXPECT_FLOAT_EQ(network.std[0].item<float>(), 1.8f);
  EXPECT_TRUE(network.layers.weight[0].is_leaf() && network.layers.weight[0].requires_grad());
}

// What is trained is what is deployed: torch, the CPU fast path and the file agree.
TEST(Network, AgreesWithTheDeployedNetworkAndItsFile) {
  const Network lower = Actor(5, 1), upper = Actor(3, 2);
  const Tensor x = at::randn({4, 12}, at::kFloat);
  const Tensor y = at::cat({Forward(lower.layers, x).output, Forward(upper.layers, x).output}, 1);
  const MlpNetwork network = ToMlpNetwork({lower.layers, upper.layers});
  const auto graph = ParseOnnx(SerializeOnnx(network, "obs", "action", {}), "test").graph;
  const auto read = RecogniseMlp(*graph, 0, 0);
  ASSERT_TRUE(read.has_value());
  for (const MlpNetwork& form : {network, *read}) {
    MlpEngine engine(form);
    for (int row = 0; row < 4; ++row) {
      const Tensor in = x[row].contiguous();
      std::vector<float> out(8);
      engine.Forward({in.data_ptr<float>(), 12}, out);
      // float32 sums of 16 products in another order
      for (int i = 0; i < 8; ++i) EXPECT_NEAR(out[i], y[row][i].item<float>(), 1e-6);
    }
  }
  Network copy = Actor(3, 9);
  FromMlpNetwork(*read, 1, &copy);
  EXPECT_TRUE(at::equal(Forward(copy.layers, x).output, Forward(upper.layers, x).output));
}

TEST(EluSlope, IsTheDerivativeOfElu) {
  const Tensor z = at::linspace(-3, 3, 40, at::kDouble);  // misses 0
  const double h = 1e-6;
  const Tensor difference = (at::elu(z + h) - at::elu(z - h)) / (2 * h);
  EXPECT_LT((difference - EluSlope(z)).abs().max().item<double>(), 1e-9);
}

TEST(SpectralNormaliser, BringsEverySingularValueToTheGain) {
  const Network network = Actor(5, 1, at::kDouble);
  const SpectralNormaliser normaliser = SpectralNormaliser::Make(network, 1.5, 400);
  const Layers layers = normaliser.Apply(network);
  for (const Tensor& weight : layers.weight) {
    const Tensor w = weight.detach().contiguous();
    const Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>
        map(w.data_ptr<double>(), w.size(0), w.size(1));
    // 400 power steps leave (σ₂/σ₁)^800
    EXPECT_NEAR(
        Eigen::JacobiSVD<Eigen::MatrixXd>(Eigen::MatrixXd(map)).singularValues()[0], 1.5, 1e-3);
  }
}

}  // namespace
}  // namespace silc
