// SPDX-License-Identifier: Apache-2.0
// The four ways a run is told, on one short run.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

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

// What others need to build a moment again: the robot's state, what the policy saw and answered.
TEST_F(Report, JsonCarriesTheStateOfAMoment) {
  const auto json = nlohmann::json::parse(ObservationJson(*run_, Summarize(*run_), std::nullopt));
  const Moment& last = run_->moments.back();
  const std::map<std::string, Eigen::VectorXd> state = {
      {"p_WB", last.p_WB},
      {"quat_wxyz", last.quat_wxyz},
      {"v_WB", last.v_WB},
      {"w_WB_B", last.w_WB_B},
      {"q", last.q},
      {"qd", last.qd},
      {"observation", last.observation.cast<double>()},
      {"action", last.action}};
  for (const auto& [key, values] : state) {
    ASSERT_GT(values.cwiseAbs().maxCoeff(), 0) << key;
    const auto& written = json["moments"].back()[key];
    ASSERT_EQ(written.size(), static_cast<std::size_t>(values.size())) << key;
    for (int i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(written[i].get<double>(), values[i], 1e-6 * std::abs(values[i])) << key << i;
    }
  }
}

// `left_hand` is a key of budgets, on the base; a reading says which of the two it is. What the
// budget bounds stands beside the hand on the base alone.
TEST_F(Report, HandsInTheWorldAndOnTheBaseHaveTheirOwnNames) {
  const auto json = nlohmann::json::parse(ObservationJson(*run_, Summarize(*run_), std::nullopt));
  EXPECT_TRUE(json["budget"].contains("left_hand"));
  const auto& first = json["moments"][0];
  const MomentReading& reading = run_->moments[0].reading;
  for (const auto& [name, hand, on_base] :
       {std::tuple("left", 0, false), {"left", 0, true}, {"right", 1, false}, {"right", 1, true}}) {
    EXPECT_FALSE(first.contains(std::string(name) + "_hand"));
    const std::string key = std::string(name) + (on_base ? "_hand_on_base" : "_hand_in_world");
    const PointReading& point = on_base ? reading.hand_on_base[hand] : reading.hand_in_world[hand];
    ASSERT_TRUE(first.contains(key)) << key;
    EXPECT_NEAR(
        first[key]["one_axis"][2].get<double>(), point.one_axis[2], 1e-6 * point.one_axis[2]);
    EXPECT_EQ(first[key]["worst"].is_null(), !on_base) << key;
  }
  // legs in series: nobody can mistake one for the other
  const Eigen::Matrix3d &on_base = reading.hand_on_base[0].C_x,
                        &in_world = reading.hand_in_world[0].C_x;
  EXPECT_GT((in_world - on_base).norm(), 0.1 * on_base.norm());

  const std::string csv = ObservationCsv(*run_), header = csv.substr(0, csv.find('\n'));
  for (const char* column : {"left_hand_in_world_z_N_per_m", "right_hand_on_base_x_N_per_m"}) {
    EXPECT_NE(header.find(column), std::string::npos) << column;
  }
  EXPECT_EQ(header.find("left_hand_z"), std::string::npos);

  const RunSummary summary = Summarize(*run_);
  ASSERT_EQ(summary.points.size(), 5u);
  EXPECT_EQ(summary.points[1].name, "left hand in the world");
  EXPECT_TRUE(std::isnan(summary.points[1].budget[2]));
  EXPECT_EQ(summary.points[3].name, "left hand on the base");
  EXPECT_EQ(summary.points[3].budget, *ReadBudget("soft-hand").spec.hand[0]);
  EXPECT_GT(summary.points[3].worst_median, 0);
}

// A hand on the base by its definition: what the base sees of the hand, by finite differences, and
// the joint stiffness, inverted over the motions that the feet leave.
TEST(MomentReading, AHandOnTheBaseIsJointStiffnessSeenFromTheBase) {
  const RobotModel robot = RobotModel::Load("g1");
  const mjModel* model = robot.model();
  ObservationOptions options;
  options.budget = ReadBudget("soft-hand");
  int moments = 0;
  options.on_contact = [&](const Moment& moment, const ContactKinematics& contact) {
    if (++moments > 2) return;
    ASSERT_TRUE(contact.closed);
    const std::unique_ptr<mjData, void (*)(mjData*)> data(mj_makeData(model), mj_deleteData);
    Eigen::Map<Eigen::Vector4d>(data->qpos + robot.base_qpos_address() + 3) = moment.quat_wxyz;
    const auto hand_at = [&](const Eigen::VectorXd& q, int hand) {
      for (int i = 0; i < robot.num_joints(); ++i) data->qpos[robot.qpos_address()[i]] = q[i];
      mj_kinematics(model, data.get());
      return Eigen::Vector3d(
          Eigen::Map<const Eigen::Vector3d>(data->site_xpos + 3 * robot.hand_site()[hand]));
    };
    const Eigen::MatrixXd N = contact.N, K = N.transpose() * moment.reading.K_s * N;
    for (const int hand : {kLeft, kRight}) {
      constexpr double h = 1e-5;  // [rad] truncation ~h², rounding ~1e-16/h: both under 1e-9
      Eigen::MatrixXd J(3, robot.num_joints());
      for (int i = 0; i < robot.num_joints(); ++i) {
        Eigen::VectorXd plus = moment.q, minus = moment.q;
        plus[i] += h;
        minus[i] -= h;
        J.col(i) = (hand_at(plus, hand) - hand_at(minus, hand)) / (2 * h);
      }
      const Eigen::MatrixXd JN = J * N;
      const Eigen::Matrix3d C = JN * K.inverse() * JN.transpose();
      const PointReading& point = moment.reading.hand_on_base[hand];
      EXPECT_EQ(point.status, StiffnessStatus::kOk);
      EXPECT_LT((point.C_x - C).norm(), 1e-6 * C.norm());
    }
  };
  ObserveRollout(MakeLoop(robot, MakeStandPolicy(robot)), 0.1, 0, options);
  EXPECT_GT(moments, 2);
}

TEST_F(Report, CsvHasAsManyCellsInEveryRow) {
  std::istringstream lines(ObservationCsv(*run_));
  std::string line;
  std::vector<long> commas;
  while (std::getline(lines, line)) commas.push_back(std::count(line.begin(), line.end(), ','));
  ASSERT_EQ(commas.size(), run_->moments.size() + 1);
  for (const long count : commas) EXPECT_EQ(count, commas[0]);
  EXPECT_EQ(commas[0] + 1, 13 + 5 * 3 + 2 * 29);
}

TEST_F(Report, TextNamesTheVerdictAndWhatIsMissing) {
  const std::string text = ObservationText(*run_, Summarize(*run_));
  EXPECT_NE(text.find("stand.onnx on g1: rollout of 0.2 s"), std::string::npos);
  EXPECT_NE(text.find("left_knee_joint"), std::string::npos);
  EXPECT_NE(text.find("No static stiffness in 1 of 10 observations"), std::string::npos);
  EXPECT_NE(text.find("The budget 'soft-hand' is VIOLATED in 100 % of 9 judged observations."),
            std::string::npos);
  // every table of stiffness says under which channels: two that are felt, and the verdict's
  EXPECT_NE(text.find("damping as they are felt, torque and gravity followed;"), std::string::npos);
  EXPECT_NE(text.find("through the contacts, torque and gravity followed.\n"), std::string::npos);
  EXPECT_NE(text.find("Judged with gravity held, torque followed, disc;"), std::string::npos);
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
  EXPECT_EQ(summary.modes.back().over, 0);
  EXPECT_DOUBLE_EQ(summary.modes.back().violations, 0.1);  // not shown to be soft
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
                            "left hand on the base",  // where the budget bounds it
                            "right hand on the base",
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
    for (PointReading* point :
         {&moment.reading.com, &moment.reading.hand_on_base[0], &moment.reading.hand_on_base[1]}) {
      point->one_axis.setConstant(NAN);
      point->C_x.setConstant(NAN);
    }
  }
  EXPECT_NE(ObservationSvg(run).find("no static stiffness: the report says why"),
            std::string::npos);
}

}  // namespace
}  // namespace silc
