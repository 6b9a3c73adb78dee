// SPDX-License-Identifier: Apache-2.0
#include "silc/report/verdict.h"

#include <gtest/gtest.h>

#include <cmath>

#include "silc/base/rng.h"

namespace silc {
namespace {

constexpr Verdict kYes = Verdict::kReproduced, kPartly = Verdict::kPartly, kNot = Verdict::kNot,
                  kOpen = Verdict::kOpen;

TEST(Verdict, ANumberIsReproducedWithinAFifthAndPartlyWithinAFactorOfTwo) {
  EXPECT_EQ(JudgeValue(400, {400}), kYes);
  EXPECT_EQ(JudgeValue(400, {320}), kYes);
  EXPECT_EQ(JudgeValue(400, {480}), kYes);
  EXPECT_EQ(JudgeValue(400, {481}), kPartly);
  EXPECT_EQ(JudgeValue(400, {200}), kPartly);
  EXPECT_EQ(JudgeValue(400, {800}), kPartly);
  EXPECT_EQ(JudgeValue(400, {801}), kNot);
  EXPECT_EQ(JudgeValue(400, {-400}), kNot);
  EXPECT_EQ(JudgeValue(400, {kNoNumber}), kOpen);
  EXPECT_EQ(JudgeValue(400, {HUGE_VAL}), kOpen);
  EXPECT_EQ(JudgeValue(kNoNumber, {400}), kOpen);
}

TEST(Verdict, AnEffectNeedsItsSideItsSizeAndAnIntervalWithoutOne) {
  // the paper halves it
  EXPECT_EQ(JudgeEffect(0.5, {0.5, 0.4, 0.6}), kYes);
  EXPECT_EQ(JudgeEffect(0.5, {0.7, 0.6, 0.8}), kYes);      // ln 0.7 is just over half of ln 0.5
  EXPECT_EQ(JudgeEffect(0.5, {0.75, 0.7, 0.8}), kPartly);  // right side, too small
  EXPECT_EQ(JudgeEffect(0.5, {0.6, 0.3, 1.2}), kPartly);   // right size, not sure
  EXPECT_EQ(JudgeEffect(0.5, {0.1, 0.05, 0.2}), kYes);     // stronger counts
  EXPECT_EQ(JudgeEffect(0.5, {1.01, 0.9, 1.1}), kNot);
  EXPECT_EQ(JudgeEffect(0.5, {0.5}), kYes);  // one run has no interval
  // the paper raises it
  EXPECT_EQ(JudgeEffect(1.2, {1.2, 1.1, 1.3}), kYes);
  EXPECT_EQ(JudgeEffect(1.2, {0.9, 0.8, 1.1}), kNot);
  // the paper sees no difference to speak of
  EXPECT_EQ(JudgeEffect(1.04, {0.92, 0.9, 0.95}), kYes);
  EXPECT_EQ(JudgeEffect(1.04, {1.2, 1.1, 1.3}), kPartly);
  EXPECT_EQ(JudgeEffect(1.04, {0.7, 0.6, 0.8}), kNot);
  EXPECT_EQ(JudgeEffect(0.5, {kNoNumber}), kOpen);
}

TEST(Verdict, WordsWithoutNumbers) {
  EXPECT_EQ(JudgeDirection(true, {1.3, 1.1, 1.5}), kYes);
  EXPECT_EQ(JudgeDirection(true, {1.3, 0.9, 1.5}), kPartly);
  EXPECT_EQ(JudgeDirection(true, {0.8, 0.7, 0.9}), kNot);
  EXPECT_EQ(JudgeDirection(false, {0.8, 0.7, 0.9}), kYes);
  EXPECT_EQ(JudgeDirection(false, {1, 0.7, 1.2}), kNot);
  EXPECT_EQ(JudgeNever(0), kYes);
  EXPECT_EQ(JudgeNever(0.0011), kPartly);
  EXPECT_EQ(JudgeNever(0.051), kNot);
  EXPECT_EQ(JudgeSometimes(0.3), kYes);
  EXPECT_EQ(JudgeSometimes(0.01), kPartly);
  EXPECT_EQ(JudgeSometimes(0), kNot);
  EXPECT_EQ(JudgeSometimes(kNoNumber), kOpen);
}

TEST(Verdict, ATableIsWhatItsRowsAre) {
  EXPECT_EQ(Together({}), kOpen);
  EXPECT_EQ(Together({kOpen, kOpen}), kOpen);
  EXPECT_EQ(Together({kYes, kOpen, kYes}), kYes);
  EXPECT_EQ(Together({kYes, kNot}), kPartly);
  EXPECT_EQ(Together({kPartly}), kPartly);
  EXPECT_EQ(Together({kNot, kOpen}), kNot);
}

// The interval of a ratio of two means, against drawing both: independent log-normal errors.
TEST(Verdict, RatioHasTheIntervalOfIndependentErrors) {
  const auto estimate = [](double value, double sigma) {  // 95 % interval of value·e^{σN}
    return Estimate{value, value * std::exp(-1.96 * sigma), value * std::exp(1.96 * sigma)};
  };
  const Estimate ratio = Ratio(estimate(3, 0.10), estimate(2, 0.05));
  EXPECT_DOUBLE_EQ(ratio.value, 1.5);
  Rng rng(5);
  int inside = 0;
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) {
    const double r = 1.5 * std::exp(0.10 * rng.Normal() - 0.05 * rng.Normal());
    inside += r >= ratio.low && r <= ratio.high;
  }
  EXPECT_NEAR(double(inside) / kDraws, 0.95, 0.004);  // four standard errors of the count

  EXPECT_TRUE(std::isnan(Ratio({1}, {2}).low));  // no intervals, none for the ratio
  EXPECT_TRUE(std::isnan(Ratio({0, 0, 0}, {2, 1, 3}).value));
  EXPECT_TRUE(std::isnan(Ratio({1, -1, 3}, {2, 1, 3}).low));
}

}  // namespace
}  // namespace silc
