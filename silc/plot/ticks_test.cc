// SPDX-License-Identifier: Apache-2.0
#include "silc/plot/ticks.h"

#include <gtest/gtest.h>

#include <cmath>

namespace silc::plot {
namespace {

TEST(LinearTicks, AreRoundAndInside) {
  EXPECT_EQ(LinearTicks(0, 10, 6), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  const auto tenths = LinearTicks(-0.3, 0.31, 8);
  ASSERT_EQ(tenths.size(), 7u);
  for (int i = 0; i < 7; ++i) EXPECT_NEAR(tenths[i], 0.1 * (i - 3), 1e-12);
  for (const double span : {1e-6, 0.37, 1.0, 42.0, 9e8}) {
    for (const int count : {2, 5, 9}) {
      const auto ticks = LinearTicks(1.7, 1.7 + span, count);
      EXPECT_LE(static_cast<int>(ticks.size()), count);
      EXPECT_GE(static_cast<int>(ticks.size()), 1);
      for (const double tick : ticks) {
        EXPECT_GE(tick, 1.7 - 1e-6 * span);
        EXPECT_LE(tick, 1.7 + span * (1 + 1e-6));
      }
    }
  }
}

TEST(LogTicks, FillDecadesWhenThereIsRoom) {
  EXPECT_EQ(LogTicks(1, 100, 9), (std::vector<double>{1, 2, 5, 10, 20, 50, 100}));
  const auto ticks = LogTicks(1e-6, 1e6, 5);
  EXPECT_LE(ticks.size(), 5u);
  for (const double tick : ticks)
    EXPECT_NEAR(std::log10(tick), std::round(std::log10(tick)), 1e-12);
}

TEST(TickLabel, IsShort) {
  EXPECT_EQ(TickLabel(0.30000000000000004), "0.3");
  EXPECT_EQ(TickLabel(20000), "2e4");
  EXPECT_EQ(TickLabel(200), "200");
  EXPECT_EQ(TickLabel(0), "0");
}

}  // namespace
}  // namespace silc::plot
