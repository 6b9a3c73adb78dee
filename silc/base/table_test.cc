// SPDX-License-Identifier: Apache-2.0
#include "silc/base/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>

#include "silc/base/rng.h"
#include "silc/base/utf8.h"

namespace silc {
namespace {

TEST(FormatNumber, ReadsLikeAPersonWroteIt) {
  EXPECT_EQ(FormatNumber(1234.5), "1235");  // half away from zero, all digits before the point
  EXPECT_EQ(FormatNumber(-1234.5), "-1235");
  EXPECT_EQ(FormatNumber(0.01234), "0.0123");
  EXPECT_EQ(FormatNumber(1.6e5), "1.6e5");
  EXPECT_EQ(FormatNumber(12345), "12345");
  EXPECT_EQ(FormatNumber(99999.4), "99999");
  EXPECT_EQ(FormatNumber(99999.5), "1e5");
  EXPECT_EQ(FormatNumber(123456), "1.23e5");
  EXPECT_EQ(FormatNumber(1e300), "1e300");
  EXPECT_EQ(FormatNumber(-4.567e-9), "-4.57e-9");
  EXPECT_EQ(FormatNumber(1e-4), "0.0001");
  EXPECT_EQ(FormatNumber(9.99e-5), "9.99e-5");
  EXPECT_EQ(FormatNumber(9.9996e-5), "0.0001");
  EXPECT_EQ(FormatNumber(0.5), "0.5");
  EXPECT_EQ(FormatNumber(100), "100");
  EXPECT_EQ(FormatNumber(99.96), "100");
  EXPECT_EQ(FormatNumber(9.996), "10");
  EXPECT_EQ(FormatNumber(0.99951), "1");
  EXPECT_EQ(FormatNumber(1.005, 3), "1.01");  // as decimal text has it, not the double just below
  EXPECT_EQ(FormatNumber(0.1, 17), "0.1");
  EXPECT_EQ(FormatNumber(160000, 6), "160000");
  EXPECT_EQ(FormatNumber(3.14159, 1), "3");
}

TEST(FormatNumber, NamesWhatIsNoNumber) {
  EXPECT_EQ(FormatNumber(0), "0");
  EXPECT_EQ(FormatNumber(-0.0), "0");
  EXPECT_EQ(FormatNumber(std::nan("")), "–");
  EXPECT_EQ(FormatNumber(std::numeric_limits<double>::infinity()), "∞");
  EXPECT_EQ(FormatNumber(-std::numeric_limits<double>::infinity()), "-∞");
}

// strtod is the independent reader: the text is within half a unit of its last digit of the value.
TEST(FormatNumber, StaysWithinHalfADigitOverAllMagnitudes) {
  Rng rng(3);
  for (int trial = 0; trial < 20000; ++trial) {
    const int significant = 1 + trial % 17;
    const double value = rng.Normal() * std::pow(10.0, rng.Uniform(-300, 300));
    const double read = std::strtod(FormatNumber(value, significant).c_str(), nullptr);
    // half a unit of the last of n digits is 0.5·10^(1-n) of the leading one; two ε for reading
    // back
    const double tolerance = 0.5 * std::pow(10.0, 1 - significant) + 4.5e-16;
    ASSERT_LE(std::abs(read - value), tolerance * std::abs(value))
        << FormatNumber(value, significant);
  }
}

TEST(Table, AlignsGlyphsUnderUnitsAndGroups) {
  Table table({{"joint", "", Align::kToLeft}, {"K₁", "N·m/rad"}, {"Kₛ", "N·m/rad"}, {"σ"}});
  table.Group("legs");
  table.Row({"left_knee", FormatNumber(128), FormatNumber(99.61), FormatNumber(0.7)});
  table.Row({"left_ankle_pitch", FormatNumber(40.12), FormatNumber(1.6e5), FormatNumber(1.25)});
  table.Group("arms");
  table.Row({"left_elbow", FormatNumber(14.2), FormatNumber(std::nan(""))});
  table.Group();
  table.Row({"all", "182"});
  EXPECT_EQ(table.Render(),
            "joint                  K₁       Kₛ     σ\n"
            "                  N·m/rad  N·m/rad\n"
            "── legs ────────────────────────────────\n"
            "left_knee             128     99.6   0.7\n"
            "left_ankle_pitch     40.1    1.6e5  1.25\n"
            "── arms ────────────────────────────────\n"
            "left_elbow           14.2        –\n"
            "────────────────────────────────────────\n"
            "all                   182\n");
}

TEST(Table, WithoutUnitsOrGroupsIsHeadersRuleRows) {
  Table table({{"mode", "", Align::kToLeft}, {"share"}});
  table.Row({"double", "62 %"});
  EXPECT_EQ(table.Render(),
            "mode    share\n"
            "─────────────\n"
            "double   62 %\n");
}

TEST(Table, EmptyStillShowsItsHeaders) {
  EXPECT_EQ(Table({{"a"}, {"b", "m"}}).Render(), "a  b\n   m\n────\n");
}

TEST(Table, ALongTitleWidensEveryRule) {
  Table table({TableColumn{"a"}});
  table.Row({"1"});
  table.Group("hands");
  table.Row({"2"});
  EXPECT_EQ(table.Render(), "a\n───────────\n1\n── hands ──\n2\n");
}

// A name read from somebody's file must not draw lines or move the cursor.
TEST(Table, ControlCharactersCannotBreakTheLines) {
  Table table({TableColumn{"name", "", Align::kToLeft}});
  table.Row({"a\nb\x1b[2J"});
  EXPECT_EQ(table.Render(), "name\n───────\na?b?[2J\n");
}

TEST(Table, RightAlignedCellsEndInOneColumn) {
  Rng rng(5);
  Table table({TableColumn{"x", "m"}});
  for (int i = 0; i < 200; ++i) {
    table.Row({FormatNumber(rng.Normal() * std::pow(10.0, rng.Uniform(-8, 8)))});
  }
  std::istringstream lines(table.Render());
  std::string line, first;
  std::getline(lines, first);
  while (std::getline(lines, line)) EXPECT_EQ(DisplayWidth(line), DisplayWidth(first)) << line;
}

}  // namespace
}  // namespace silc
