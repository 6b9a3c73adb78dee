// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/input_scaling.h"

#include <gtest/gtest.h>

namespace silc {
namespace {

double Largest(const Tensor& t) { return t.abs().max().item<double>(); }

TEST(InputScaling, PiecesAddUpToTheMeanAndVarianceOfTheWhole) {
  at::manual_seed(1);
  const Tensor spread = at::tensor({0.01f, 1.0f, 30.0f}), middle = at::tensor({2.0f, 0.0f, -50.0f});
  const Tensor x = at::randn({900, 3}) * spread + middle;
  InputScaling scaling = InputScaling::Make(3, at::kFloat);
  for (const auto& [first, count] : {std::pair{0, 1}, {1, 299}, {300, 600}}) {
    scaling.Add(x.narrow(0, first, count));
  }
  const Tensor whole = x.to(at::kDouble);
  EXPECT_LT(Largest((scaling.mean - whole.mean(0)) / spread), 1e-4);
  const Tensor variance = whole.var(0, /*unbiased=*/false);
  EXPECT_LT(Largest(scaling.square / 900 / variance - 1), 1e-4);
  // (P12), the first input moves less than 0.05
  EXPECT_LT(Largest(scaling.scale - (variance + 0.0025).rsqrt()), 2e-3);
  EXPECT_LT(scaling.scale[0].item<double>(), 20.001);
}

TEST(InputScaling, FoldedLayersActAsTheNetworkOnScaledInputs) {
  at::manual_seed(2);
  const Network network = MakeNetwork({5, {7}, 2}, {}, 1, 0, at::kFloat);
  const Tensor x = at::randn({40, 5}) * 3 + 1;
  InputScaling scaling = InputScaling::Make(5, at::kFloat);
  EXPECT_TRUE(at::equal(Forward(scaling.Apply(network.layers), x).output,
                        Forward(network.layers, x).output))
      << "before the first sample nothing is scaled";
  scaling.Add(x);
  const Tensor scaled = (x - scaling.shift) * scaling.scale;
  EXPECT_LT(Largest(scaled.mean(0)), 1e-5);
  EXPECT_LT(Largest(Forward(scaling.Apply(network.layers), x).output -
                    Forward(network.layers, scaled).output),
            2e-6);
}

}  // namespace
}  // namespace silc
