// SPDX-License-Identifier: Apache-2.0
#include "silc/report/paper.h"

#include <gtest/gtest.h>

#include <cmath>

#include "silc/base/error.h"
#include "silc/base/test_paths.h"
#include "silc/config/budget_file.h"
#include "silc/eval/experiment_metrics.h"

namespace silc {
namespace {

Paper Published() { return ReadPaper(YamlNode::ParseFile(SourcePath("configs/paper.yaml"))); }

TEST(Paper, SumsOfItsTablesAreAsPrinted) {
  // each column added up by hand from the printed tables: a mistyped digit shows
  const Paper paper = Published();
  const auto sum = [&](MetricHandle metric) {
    const PaperMeasure* measure = paper.Find(metric);
    double total = 0;
    for (const PaperRow& row : measure->rows) total += row.value;
    return total;
  };
  EXPECT_NEAR(sum(metric::Walk().motion.action_jitter), 16.95e4, 1);
  EXPECT_NEAR(sum(metric::Walk().motion.velocity_jitter), 9.26e5, 1);
  EXPECT_NEAR(sum(metric::Walk().motion.torque_jitter), 24.55e5, 1);
  EXPECT_NEAR(sum(metric::Walk().motion.power), 27.29, 1e-9);
  EXPECT_NEAR(sum(metric::HandImpact().settling_time_z), 3.6, 1e-9);
  EXPECT_NEAR(sum(metric::HandImpact().band_power_z), 11.01e-8, 1e-15);
  EXPECT_NEAR(sum(metric::FoamStep().gyro_rms), 0.719, 1e-9);
  EXPECT_NEAR(sum(metric::FoamStep().gyro_p95_p5), 2.159, 1e-9);
  EXPECT_NEAR(sum(metric::FoamStep().acc_rms), 8.744, 1e-9);
  EXPECT_NEAR(sum(metric::FoamStep().acc_p95_p5), 26.46, 1e-9);
  EXPECT_NEAR(sum(metric::HandLoad().step_stiffness_z), 1400, 1e-9);
}

// The hands are in the text alone, the rest is Table I; the numbers are held to the paper's in
// budget_file_test.
TEST(Paper, ModesAreBudgetsThatShip) {
  EXPECT_EQ(Published().modes.size(), 5u);
  for (const PaperMode& mode : Published().modes) {
    const BudgetSpec spec = ReadBudget(mode.name).spec;
    EXPECT_TRUE(spec.com) << mode.name;
    EXPECT_EQ(spec.hand[0].has_value(), mode.where == "text") << mode.name;
  }
}

TEST(Paper, VerdictIsOnTheRatioWhereThePaperCompares) {
  const Paper paper = Published();
  const PaperMeasure& settling = *paper.Find(metric::HandImpact().settling_time_z);
  const RowKey soft{"silc-paper", "soft-hand"}, baseline{"baseline", ""};
  // ours settles in tenths of the paper's times, and in half of ours
  EXPECT_EQ(Judge(settling, soft, {0.10, 0.09, 0.11}, {0.2, 0.19, 0.21}), Verdict::kReproduced);
  EXPECT_EQ(Judge(settling, soft, {0.20, 0.19, 0.21}, {0.1, 0.09, 0.11}), Verdict::kNot);
  EXPECT_EQ(Judge(settling, soft, {0.10, 0.09, 0.11}, {}), Verdict::kOpen);
  // the row compared with is judged by its number
  EXPECT_EQ(Judge(settling, baseline, {2.3}, {2.3}), Verdict::kReproduced);
  EXPECT_EQ(Judge(settling, baseline, {0.2}, {0.2}), Verdict::kNot);
  EXPECT_EQ(Judge(settling, {"silc", "soft-hand"}, {1}, {2}), Verdict::kOpen);  // not in the paper
  const PaperMeasure& form = *paper.Find(metric::Budget().random_direction_violations_one_step);
  EXPECT_EQ(Judge(form, {"silc-paper", "compliance"}, {0}, {}), Verdict::kReproduced);
  EXPECT_EQ(Judge(form, baseline, {40}, {}), Verdict::kReproduced);  // [%]
  EXPECT_EQ(Judge(form, baseline, {4}, {}), Verdict::kPartly);
  EXPECT_EQ(Judge(form, baseline, {0}, {}), Verdict::kNot);
}

// A paper.yaml of one measure, with parts of it replaced; what is wrong with it.
std::string ErrorOf(const std::string& from = "", const std::string& to = "") {
  std::string text =
      "source: s\n"
      "modes: [{name: soft-hand, where: w}]\n"
      "measures:\n"
      "  - {metric: power, experiment: walk, where: w, unit: W, against: baseline,\n"
      "     rows: [{row: baseline, value: 2}, {row: silc-paper/soft-hand, says: smaller}]}\n"
      "claims: [{text: t, metric: power, experiment: walk, row: baseline}]\n";
  if (!from.empty()) {
    EXPECT_NE(text.find(from), text.npos) << from;
    text.replace(text.find(from), from.size(), to);
  }
  try {
    ReadPaper(YamlNode::Parse(text, "paper.yaml"));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Paper, ANameThatIsNotKnownIsRefusedWithItsLineAndTheNearest) {
  const auto expect = [](const std::string& from, const std::string& to, const std::string& say) {
    const std::string error = ErrorOf(from, to);
    EXPECT_EQ(error.rfind("paper.yaml:", 0), 0u) << error;
    EXPECT_NE(error.find(say), std::string::npos) << error;
  };
  EXPECT_EQ(ErrorOf(), "");
  expect("metric: power", "metric: powr", "paper.yaml:4: measures[0].metric");
  expect("metric: power", "metric: powr", "'powr' is no metric of walk; did you mean power");
  expect("experiment: walk", "experiment: wlak", "did you mean walk?");
  expect("unit: W", "unit: J", "must be that of the metric, 'W'");
  expect("{row: baseline, value", "{row: basline, value", "did you mean baseline?");
  expect("silc-paper/soft-hand", "silc-paper/soft-hnad", "did you mean soft-hand?");
  expect("t, metric: power", "t, metric: power_lower", "is none of the measures");
  expect("walk, row: baseline", "walk, row: silc/soft-hand", "is none of the measure's rows");
}

TEST(Paper, AComparisonWithoutReferenceIsRefused) {
  EXPECT_NE(ErrorOf("against: baseline,", "").find("no `against`"), std::string::npos);
  EXPECT_NE(ErrorOf("against: baseline", "against: silc").find("is none of the rows"),
            std::string::npos);
}

TEST(Paper, ARowOfSilcStandsBesideEachOfSilcPaper) {
  const std::vector<RowKey> rows =
      Published().RowsOf({metric::Budget().random_direction_violations_one_step});
  EXPECT_EQ(rows,
            (std::vector<RowKey>{{"baseline", ""},
                                 {"scalar-lcp", ""},
                                 {"silc-paper", "compliance"},
                                 {"silc", "compliance"}}));
}

}  // namespace
}  // namespace silc
