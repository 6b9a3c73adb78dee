// SPDX-License-Identifier: Apache-2.0
// The four ways a run is told, on one short run.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "silc/observe/report_csv.h"
#include "silc/observe/report_json.h"
#include "silc/observe/report_plot.h"
#include "silc/observe/report_text.h"
#include "silc/observe/run.h"
#include "silc/observe/test_robot.h"

namespace silc {
namespace {

class Report : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const RobotModel robot = RobotModel::Load("g1");
    ObservationOptions options;
    options.budget = ReadBudget("soft-hand");
    run_ = new ObservationRun(
        ObserveRollout(MakeLoop(robot, MakeStandPolicy(robot)), 0.2, 0, options));
    run_->policy = "stand.onnx";
    // one moment without a static stiffness, as a walking policy has
    run_->moments[3].reading.static_status = StiffnessStatus::kUnstableActionLoop;
    run_->moments[3].reading.K_s.setConstant(NAN);
    run_->moments[3].reading.K_s_diag.setConstant(NAN);
    run_->moments[3].reading.quasi_static = {StiffnessStatus::kUnstableActionLoop, NAN, NAN};
  }
  static void TearDownTestSuite() { delete run_; }
  static ObservationRun* run_;
};
ObservationRun* Report::run_ = nullptr;

TEST_F(Report, JsonCarriesTheMatricesAndSaysWhyOneIsMissing) {
  const auto json = nlohmann::json::parse(ObservationJson(*run_, Summarize(*run_), std::nullopt));
  EXPECT_EQ(json["format"], "silc-observation");
  ASSERT_EQ(json["moments"].size(), run_->moments.size());
  const auto& first = json["moments"][0];
  for (const int i : {0, 7, 28}) {
    for (const int j : {0, 13, 28}) {
      const double expected = run_->moments[0].reading.K_s(i, j);
      EXPECT_NEAR(first["K_s"][i][j].get<double>(), expected, 1e-6 * std::abs(expected) + 1e-300);
    }
  }
  EXPECT_EQ(json["moments"][3]["K_s"][0][0], nullptr);
  EXPECT_EQ(json["moments"][3]["static_status"], Describe(StiffnessStatus::kUnstableActionLoop));
  EXPECT_EQ(json["sweep"]["K"].size(), run_->sweep.hz.size());
}

TEST_F(Report, CsvHasAsManyCellsInEveryRow) {
  std::istringstream lines(ObservationCsv(*run_));
  std::string line;
  std::vector<long> commas;
  while (std::getline(lines, line)) commas.push_back(std::count(line.begin(), line.end(), ','));
  ASSERT_EQ(commas.size(), run_->moments.size() + 1);
  for (const long count : commas) EXPECT_EQ(count, commas[0]);
  EXPECT_EQ(commas[0] + 1, 13 + 9 + 2 * 29);
}

TEST_F(Report, TextNamesTheVerdictAndWhatIsMissing) {
  const std::string text = ObservationText(*run_, Summarize(*run_));
  EXPECT_NE(text.find("stand.onnx on g1: rollout of 0.2 s"), std::string::npos);
  EXPECT_NE(text.find("left_knee_joint"), std::string::npos);
  EXPECT_NE(text.find("No static stiffness in 1 of 10 observations"), std::string::npos);
  EXPECT_NE(text.find("The budget 'soft-hand' is VIOLATED in 100 % of 9 judged observations."),
            std::string::npos);
  // a robot's joints give way: a radius of 1 or more forbids nothing that is measured on it
  ObservationRun shaky = *run_;
  for (Moment& moment : shaky.moments) moment.reading.loop.rho = 1.25;
  const std::string unstable = ObservationText(shaky, Summarize(shaky));
  EXPECT_NE(unstable.find("1.25 (largest); 1 or more is unstable with the joints held."),
            std::string::npos)
      << unstable;
}

// What could not be judged was not shown to hold.
TEST_F(Report, BudgetHoldsWhenEveryMomentWasJudgedAndNoneIsOver) {
  ObservationRun run = *run_;
  for (Moment& moment : run.moments) {
    if (moment.reading.quasi_static.status == StiffnessStatus::kOk) {
      moment.reading.quasi_static.sigma = 0.5;
    }
  }
  RunSummary summary = Summarize(run);
  EXPECT_EQ(summary.modes.back().violations, 0);
  EXPECT_FALSE(BudgetHolds(summary));
  const std::string text = ObservationText(run, summary);
  EXPECT_EQ(text.find("HOLDS"), std::string::npos) << text;
  EXPECT_NE(text.find("The budget 'soft-hand' is kept in 9 judged observations; 1 could not be "
                      "judged, so it is not shown to hold."),
            std::string::npos)
      << text;
  run.moments[3].reading.quasi_static = run.moments[2].reading.quasi_static;
  summary = Summarize(run);
  EXPECT_TRUE(BudgetHolds(summary));
  EXPECT_NE(ObservationText(run, summary).find("HOLDS in all 10 judged observations"),
            std::string::npos);
  run.moments[3].reading.quasi_static.sigma = 1.001;
  EXPECT_FALSE(BudgetHolds(Summarize(run)));
  EXPECT_FALSE(BudgetHolds(RunSummary()));
}

TEST_F(Report, SvgDrawsEveryPanel) {
  const std::string svg = ObservationSvg(*run_);
  for (const char* title : {"centre of mass",
                            "left hand",
                            "right hand",
                            "σ against budget",
                            "dynamic stiffness",
                            "damping",
                            "under 10 N"}) {
    EXPECT_NE(svg.find(title), std::string::npos) << title;
  }
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("no data"), std::string::npos);
  EXPECT_EQ(svg.find("no static stiffness"), std::string::npos);
  // where no moment has a static answer, the panels say that instead of standing empty
  ObservationRun run = *run_;
  for (Moment& moment : run.moments) {
    for (PointReading* point : {&moment.reading.com,
                                &moment.reading.hand_in_world[0],
                                &moment.reading.hand_in_world[1]}) {
      point->one_axis.setConstant(NAN);
      point->C_x.setConstant(NAN);
    }
  }
  EXPECT_NE(ObservationSvg(run).find("no static stiffness: the report says why"),
            std::string::npos);
}

}  // namespace
}  // namespace silc
