// SPDX-License-Identifier: Apache-2.0
#include "silc/certify/activation_bounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "silc/base/rng.h"

namespace silc {
namespace {

constexpr Activation kAll[] = {Activation::kNone,
                               Activation::kElu,
                               Activation::kRelu,
                               Activation::kLeakyRelu,
                               Activation::kTanh,
                               Activation::kSigmoid,
                               Activation::kSoftplus};

// Intervals of every size, below, above and across the kink.
template <typename Check>
void ForIntervals(const Check& check) {
  Rng rng(3);
  for (const Activation activation : kAll) {
    for (int trial = 0; trial < 300; ++trial) {
      const double alpha = trial % 3 == 0 ? 1 : rng.Uniform(0.05, 1.5);
      const double radius = trial % 7 == 0 ? 0 : std::exp(rng.Uniform(-20, 1.5));
      const double centre = trial % 2 == 0 ? rng.Uniform(-4, 4) : rng.Uniform(-1, 1) * radius;
      check(activation, alpha, centre, radius, &rng);
    }
  }
}

// (C2) as it is written.
TEST(ActivationBounds, EncloseTheFunctionAndItsDerivative) {
  ForIntervals([](Activation activation, double alpha, double centre, double radius, Rng* rng) {
    const ActivationBounds bounds = BoundActivation(activation, alpha, centre, radius);
    for (int i = 0; i < 200; ++i) {
      double z = centre + radius * rng->Uniform(-1, 1);
      if (i == 0) z = centre - radius;
      if (i == 1) z = centre + radius;
      if (i == 2 && std::abs(centre) <= radius) z = 0;
      if (i == 3 && std::abs(centre) <= radius) z = -0.0;
      const auto distance = [&](const LineBound& line, double f) {
        return std::abs(f - line.value - line.slope * (z - centre)) - line.error;
      };
      EXPECT_LE(distance(bounds.value, EvaluateActivation(activation, alpha, z)), 0)
          << static_cast<int>(activation) << " at " << z << ", " << centre << " ± " << radius;
      EXPECT_LE(distance(bounds.slope, ActivationSlope(activation, alpha, z)), 0)
          << static_cast<int>(activation) << " at " << z << ", " << centre << " ± " << radius;
    }
  });
}

// A network with finite weights can bring a unit to infinity, or an interval too long for a double.
TEST(ActivationBounds, KnowNothingWhereADoubleOverflows) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double largest = std::numeric_limits<double>::max();
  for (const Activation activation : kAll) {
    for (const auto& [centre, radius] : {std::pair{infinity, 1.0},
                                         {-infinity, 1.0},
                                         {std::nan(""), 1.0},
                                         {0.0, infinity},
                                         {0.0, std::nan("")},
                                         {-largest, largest},
                                         {0.0, largest}}) {
      const ActivationBounds bounds = BoundActivation(activation, 0.5, centre, radius);
      for (const LineBound& line : {bounds.value, bounds.slope}) {
        EXPECT_TRUE(std::isfinite(line.value) && std::isfinite(line.slope));
        EXPECT_GE(line.error, 0) << static_cast<int>(activation) << " at " << centre;
      }
      if (!std::isfinite(centre) || !std::isfinite(radius)) {
        EXPECT_EQ(bounds.value.error, infinity);
        EXPECT_EQ(bounds.slope.error, infinity);
      }
    }
  }
}

// The derivative that the enclosures are about is that of the function: a central difference.
TEST(ActivationBounds, SlopeIsTheDerivative) {
  Rng rng(4);
  for (const Activation activation : kAll) {
    for (int trial = 0; trial < 50; ++trial) {
      const double z = rng.Uniform(-4, 4), h = 1e-5;
      if (std::abs(z) < 2 * h) continue;
      const double difference = (EvaluateActivation(activation, 0.7, z + h) -
                                 EvaluateActivation(activation, 0.7, z - h)) /
                                (2 * h);
      EXPECT_NEAR(ActivationSlope(activation, 0.7, z), difference, 1e-8);
    }
  }
}

// A chord of a smooth branch is off by f″ r²/4 at most: the enclosures of Elu are of second order.
TEST(ActivationBounds, EluIsOfSecondOrderAwayFromItsKink) {
  for (const double radius : {1e-1, 1e-2, 1e-3}) {
    for (const double centre : {-2.0, -0.5, 0.7}) {
      const ActivationBounds bounds = BoundActivation(Activation::kElu, 1, centre, radius);
      EXPECT_LE(bounds.value.error, 0.3 * radius * radius);
      EXPECT_LE(bounds.slope.error, 0.3 * radius * radius);
    }
  }
}

}  // namespace
}  // namespace silc
