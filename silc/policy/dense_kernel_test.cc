// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/dense_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "silc/base/rng.h"
#include "silc/policy/index.h"

namespace silc {
namespace {

std::vector<float> Random(Rng* rng, int count) {
  std::vector<float> values(U(count));
  for (float& value : values) value = static_cast<float>(rng->Normal());
  return values;
}

// float32 sums of n products of numbers near 1: n · 6e-8 and some
double Tolerance(int depth) { return 1e-6 * (10 + depth); }

TEST(DenseKernel, PullBackIsTheProductWithWForEveryKernelAndRaggedSize) {
  Rng rng(1);
  for (const DenseKernel& kernel : AvailableKernels()) {
    for (const int depth : {1, 7, 128}) {
      for (const int cols : {1, 5, 28, 29, 100}) {
        const std::vector<float> W = Random(&rng, depth * cols),
                                 X = Random(&rng, depth * kRowLanes);
        const std::vector<float> scale = Random(&rng, cols);
        const std::vector<float> panels = PackPanels(W.data(), depth, cols, kernel.panel);
        for (const float* s : {scale.data(), static_cast<const float*>(nullptr)}) {
          std::vector<float> Y(U(RoundUp(cols, kernel.panel) * kRowLanes), -1.0f);
          kernel.pull_back(X.data(), panels.data(), depth, cols, s, Y.data());
          for (int c = 0; c < cols; ++c) {
            for (int r = 0; r < kRowLanes; ++r) {
              double sum = 0;
              for (int k = 0; k < depth; ++k)
                sum += double{W[U(k * cols + c)]} * X[U(k * kRowLanes + r)];
              if (s != nullptr) sum *= s[c];
              ASSERT_NEAR(Y[U(c * kRowLanes + r)], sum, Tolerance(depth))
                  << kernel.name << " depth " << depth << " cols " << cols << " at " << c << ", "
                  << r;
            }
          }
        }
      }
    }
  }
}

TEST(DenseKernel, ForwardIsWxPlusBForEveryKernelAndRaggedSize) {
  Rng rng(2);
  for (const DenseKernel& kernel : AvailableKernels()) {
    for (const int depth : {1, 9, 575}) {
      for (const int outputs : {1, 15, 64, 130}) {
        const std::vector<float> Wt = Random(&rng, depth * outputs), x = Random(&rng, depth);
        std::vector<float> b = Random(&rng, outputs);
        b.resize(U(RoundUp(outputs, kForwardLanes)), 0.0f);
        const std::vector<float> lanes = PackPanels(Wt.data(), depth, outputs, kForwardLanes);
        std::vector<float> y(b.size(), -1.0f);
        kernel.forward(x.data(), lanes.data(), depth, outputs, b.data(), y.data());
        for (int o = 0; o < outputs; ++o) {
          double sum = b[U(o)];
          for (int k = 0; k < depth; ++k) sum += double{Wt[U(k * outputs + o)]} * x[U(k)];
          ASSERT_NEAR(y[U(o)], sum, Tolerance(depth))
              << kernel.name << " depth " << depth << " output " << o;
        }
      }
    }
  }
}

TEST(DenseKernel, ANanInOneRowStaysInThatRow) {
  for (const DenseKernel& kernel : AvailableKernels()) {
    const std::vector<float> W(4 * 4, 1.0f);
    std::vector<float> X(4 * kRowLanes, 1.0f);
    X[3] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> panels = PackPanels(W.data(), 4, 4, kernel.panel);
    std::vector<float> Y(U(RoundUp(4, kernel.panel) * kRowLanes));
    kernel.pull_back(X.data(), panels.data(), 4, 4, nullptr, Y.data());
    for (int r = 0; r < kRowLanes; ++r) EXPECT_EQ(std::isnan(Y[U(r)]), r == 3) << kernel.name;
  }
}

}  // namespace
}  // namespace silc
