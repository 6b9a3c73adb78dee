// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "silc/base/rng.h"

namespace silc {
namespace {

// The third difference of c t³ is 6 c Δt³ exactly, of a parabola zero: jitter is the third
// derivative's magnitude, averaged over channels.
TEST(Jitter, OfACubicIsItsThirdDerivative) {
  const double dt = 0.02;
  std::vector<double> rows;
  for (int t = 0; t < 50; ++t) {
    const double s = t * dt;
    rows.push_back(-2 * s * s * s + s * s);  // third derivative −12
    rows.push_back(5 * s * s - s + 3);       // 0
  }
  // differences of numbers near 10 are exact to 1e-15, divided by 8e-6
  EXPECT_NEAR(Jitter(rows, 2, dt), 6, 1e-7);
  EXPECT_NEAR(ThirdDifference(rows, 2), 6 * dt * dt * dt, 1e-13);
}

// (paper's eq. jitter) by hand: 0, 0, 0, 1, 0 has third differences 1 and −3.
TEST(Jitter, IsAveragedOverTimeMinusThree) {
  const std::vector<double> rows = {0, 0, 0, 1, 0};
  EXPECT_DOUBLE_EQ(ThirdDifference(rows, 1), 2);
  EXPECT_DOUBLE_EQ(Jitter(rows, 1, 0.1), 2 / (0.1 * 0.1 * 0.1));
  EXPECT_TRUE(std::isnan(Jitter(std::vector<double>{1, 2, 3}, 1, 0.1)));
}

TEST(ThirdDifferenceMeter, DoesNotLookAcrossABreak) {
  ThirdDifferenceMeter meter(1);
  for (const double x : {0.0, 0.0, 0.0, 1.0}) meter.Add(std::span<const double>(&x, 1));
  meter.Break();
  for (const double x : {9.0, 9.0, 9.0, 9.0}) meter.Add(std::span<const double>(&x, 1));
  EXPECT_DOUBLE_EQ(meter.Mean(), 0.5);  // |1| and |0|
}

TEST(MeanAbsolutePower, CountsBrakingAsMuchAsDriving) {
  const std::vector<double> tau = {1, -2, 3, 4}, qd = {2, 2, -1, 0};
  EXPECT_DOUBLE_EQ(MeanAbsolutePower(tau, qd, 2), (2 + 4 + 3 + 0) / 4.0);
  EXPECT_TRUE(std::isnan(MeanAbsolutePower({}, {}, 2)));
}

TEST(RootMeanSquare, OfASineIsItsAmplitudeOverRootTwo) {
  std::vector<double> s;
  for (int k = 0; k < 1000; ++k) s.push_back(3 * std::sin(2 * std::numbers::pi * k / 100));
  EXPECT_NEAR(RootMeanSquare(s), 3 / std::sqrt(2.0), 1e-12);
}

// 0 … 100 has its percentiles at their own numbers, and outliers in one twentieth do not matter.
TEST(PeakToPeak, LeavesOutATwentiethAtEachEnd) {
  std::vector<double> s;
  for (int k = 0; k <= 100; ++k) s.push_back(k);
  EXPECT_DOUBLE_EQ(PeakToPeak(s), 90);
  s[100] = 1e9;
  s[0] = -1e9;
  EXPECT_DOUBLE_EQ(PeakToPeak(s), 90);
}

// Parseval: a sine of amplitude A carries A²/2 in its band and nothing outside, wherever it lies
// between the bins; the Hann window's sidelobes fall off quickly.
TEST(Welch, ASineCarriesHalfItsSquareInItsBand) {
  for (const double hz : {20.0, 33.3, 61.7}) {
    std::vector<double> s;
    for (int k = 0; k < 5000; ++k) {
      s.push_back(7 + 0.4 * std::sin(2 * std::numbers::pi * hz * k / 1000));
    }
    const PowerSpectrum spectrum = Welch(s, 1000);
    EXPECT_DOUBLE_EQ(spectrum.resolution, 1);
    EXPECT_NEAR(BandPower(spectrum, 5, 100), 0.08, 0.08 * 1e-3) << hz;
    EXPECT_LT(BandPower(spectrum, hz + 10, 500), 0.08 * 1e-5) << hz;
  }
}

// White noise of variance 1 at 1 kHz has a density of 2/1000 per hertz: 95 Hz of it carry 0.19.
// A weight that is caught in the last moment leaves a few samples.
TEST(Welch, AFewSamplesHaveNoSpectrum) {
  const std::vector<double> few = {1, 2, 3, 2, 1, 0, 1};
  const PowerSpectrum spectrum = Welch(few, 1000);
  EXPECT_TRUE(spectrum.density.empty());
  EXPECT_TRUE(std::isnan(BandPower(spectrum, 5, 100)));
}

TEST(Welch, WhiteNoiseIsFlat) {
  Rng rng(3);
  std::vector<double> s;
  for (int k = 0; k < 20000; ++k) s.push_back(rng.Normal());
  // 39 half-overlapping segments of 96 bins: some 2000 independent squares, 2 to 3 % each way
  EXPECT_NEAR(BandPower(Welch(s, 1000), 5, 100), 0.192, 0.1 * 0.192);
}

// A decaying exponential e^{−t/τ} is within 5 % after τ ln 20 and within 2 % after τ ln 50.
TEST(SettlingTime, OfAnExponentialIsItsLogarithm) {
  const double dt = 0.001, tau = 0.4;
  std::vector<double> s;
  for (int k = 0; k < 8000; ++k) s.push_back(-0.3 + 0.1 * std::exp(-k * dt / tau));
  const Settling five = SettlingTime(s, dt, 0.05), two = SettlingTime(s, dt, 0.02);
  EXPECT_NEAR(five.time, tau * std::log(20), 2 * dt);
  EXPECT_NEAR(two.time, tau * std::log(50), 2 * dt);
  EXPECT_NEAR(five.final, -0.3, 1e-7);
  EXPECT_NEAR(five.peak, 0.1, 1e-7);
}

TEST(SettlingTime, OfASignalThatSwaysOnIsInfinite) {
  std::vector<double> s;
  for (int k = 0; k < 5000; ++k) s.push_back(std::sin(0.01 * k) * (0.2 + std::exp(-0.002 * k)));
  EXPECT_TRUE(std::isinf(SettlingTime(s, 0.001, 0.05).time));
  EXPECT_GT(SettlingTime(s, 0.001, 0.05).tail_sway, 0.19);
}

}  // namespace
}  // namespace silc
