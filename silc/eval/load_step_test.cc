// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/load_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace silc {
namespace {

constexpr double kForce = -40, kPeriod = 0.02;
constexpr std::size_t kWindow = 100;  // 2 s

// A spring of 800 N/m with a dashpot, time constant 0.1 s, and a sway of so much on top.
LoadStep OfASpring(double sway, bool stepped = false) {
  std::vector<double> time, moved;
  for (int k = 1; k <= 250; ++k) {
    const double t = k * kPeriod;
    time.push_back(t);
    moved.push_back(-0.05 * (1 - std::exp(-t / 0.1)) + sway * std::sin(2 * std::numbers::pi * t));
  }
  return ReadLoadStep(time, moved, kWindow, kForce, stepped);
}

TEST(LoadStep, ASpringIsReadAsItIs) {
  const LoadStep step = OfASpring(0);
  EXPECT_NEAR(step.stiffness, 800, 1e-6);
  EXPECT_NEAR(step.response, 0.1 * std::log(10), kPeriod);
  EXPECT_NEAR(step.sway, 0, 1e-9);
}

// Where there is no stiffness there is no response time: it would be that of a mean over nothing.
TEST(LoadStep, WhatDoesNotRestHasNeitherStiffnessNorResponse) {
  const LoadStep sways = OfASpring(0.04);
  EXPECT_NEAR(sways.sway, 0.08, 0.002);
  EXPECT_TRUE(std::isnan(sways.stiffness));
  EXPECT_TRUE(std::isnan(sways.response));
  const LoadStep stepped = OfASpring(0, true);
  EXPECT_TRUE(std::isnan(stepped.stiffness));
  EXPECT_TRUE(std::isnan(stepped.response));
  EXPECT_FALSE(std::isnan(OfASpring(0.01).stiffness)) << "a little sway is no reason";
}

}  // namespace
}  // namespace silc
