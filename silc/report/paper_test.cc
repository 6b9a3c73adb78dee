// SPDX-License-Identifier: Apache-2.0
#include "silc/report/paper.h"

#include <gtest/gtest.h>

#include <cmath>

#include "silc/base/error.h"
#include "silc/base/test_paths.h"
#include "silc/config/budget_file.h"

namespace silc {
namespace {

Paper Published() { return ReadPaper(YamlNode::ParseFile(SourcePath("configs/paper.yaml"))); }

TEST(Paper, SumsOfItsTablesAreAsPrinted) {
  // each column added up by hand from the printed tables: a mistyped digit shows
  const Paper paper = Published();
  const auto sum = [&](const char* experiment, const char* metric) {
    const PaperMeasure* measure = paper.Find(experiment, metric);
    double total = 0;
    for (const PaperRow& row : measure->rows) total += row.value;
    return total;
  };
  EXPECT_NEAR(sum("walk", "action_jitter"), 16.95e4, 1);
  EXPECT_NEAR(sum("walk", "velocity_jitter"), 9.26e5, 1);
  EXPECT_NEAR(sum("walk", "torque_jitter"), 24.55e5, 1);
  EXPECT_NEAR(sum("walk", "power"), 27.29, 1e-9);
  EXPECT_NEAR(sum("hand-impact", "settling_time_z"), 3.6, 1e-9);
  EXPECT_NEAR(sum("hand-impact", "band_power_z"), 11.01e-8, 1e-15);
  EXPECT_NEAR(sum("foam-step", "gyro_rms"), 0.719, 1e-9);
  EXPECT_NEAR(sum("foam-step", "gyro_p95_p5"), 2.159, 1e-9);
  EXPECT_NEAR(sum("foam-step", "acc_rms"), 8.744, 1e-9);
  EXPECT_NEAR(sum("foam-step", "acc_p95_p5"), 26.46, 1e-9);
  EXPECT_NEAR(sum("hand-load", "step_stiffness_z"), 1400, 1e-9);
}

TEST(Paper, ModesAreTheBudgetsThatShip) {
  for (const PaperMode& mode : Published().modes) {
    const BudgetSpec spec = ReadBudget(mode.name).spec;
    ASSERT_TRUE(spec.com) << mode.name;
    EXPECT_EQ(*spec.com, Eigen::Vector3d(mode.com.data())) << mode.name;
    EXPECT_EQ(spec.null_stiffness, mode.null_space) << mode.name;
    EXPECT_EQ(spec.hand[0].has_value(), mode.hands.has_value()) << mode.name;
    if (mode.hands) {
      EXPECT_EQ(*spec.hand[0], Eigen::Vector3d(mode.hands->data())) << mode.name;
    }
  }
}

TEST(Paper, VerdictIsOnTheRatioWhereThePaperCompares) {
  const Paper paper = Published();
  const PaperMeasure& settling = *paper.Find("hand-impact", "settling_time_z");
  const RowKey soft{"silc-paper", "soft-hand"}, baseline{"baseline", ""};
  // ours settles in tenths of the paper's times, and in half of ours
  EXPECT_EQ(Judge(settling, soft, {0.10, 0.09, 0.11}, {0.2, 0.19, 0.21}), Verdict::kReproduced);
  EXPECT_EQ(Judge(settling, soft, {0.20, 0.19, 0.21}, {0.1, 0.09, 0.11}), Verdict::kNot);
  EXPECT_EQ(Judge(settling, soft, {0.10, 0.09, 0.11}, {}), Verdict::kOpen);
  // the row compared with is judged by its number
  EXPECT_EQ(Judge(settling, baseline, {2.3}, {2.3}), Verdict::kReproduced);
  EXPECT_EQ(Judge(settling, baseline, {0.2}, {0.2}), Verdict::kNot);
  EXPECT_EQ(Judge(settling, {"silc", "soft-hand"}, {1}, {2}), Verdict::kOpen);  // not in the paper
  const PaperMeasure& form = *paper.Find("budget", "form_violations_one_step");
  EXPECT_EQ(Judge(form, {"silc-paper", "compliance"}, {0}, {}), Verdict::kReproduced);
  EXPECT_EQ(Judge(form, baseline, {40}, {}), Verdict::kReproduced);  // [%]
  EXPECT_EQ(Judge(form, baseline, {4}, {}), Verdict::kPartly);
  EXPECT_EQ(Judge(form, baseline, {0}, {}), Verdict::kNot);
}

TEST(Paper, AComparisonWithoutReferenceIsRefused) {
  const auto parse = [](const std::string& rest) {
    return ReadPaper(
        YamlNode::Parse("source: s\nmodes: []\nmeasures:\n"
                        "  - {metric: m, experiment: e, where: w, label: l, unit: u, " +
                            rest + "}\n",
                        "paper.yaml"));
  };
  EXPECT_NO_THROW(parse("rows: [{row: a, value: 1}]"));
  EXPECT_THROW(parse("rows: [{row: a, says: larger}]"), ConfigError);
  EXPECT_THROW(parse("against: b, rows: [{row: a, value: 1}]"), ConfigError);
}

}  // namespace
}  // namespace silc
