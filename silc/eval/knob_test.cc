// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "silc/base/error.h"
#include "silc/config/budget_file.h"
#include "silc/eval/experiment.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/lqr/stand_policy.h"

namespace silc {
namespace {

// pushes go with the command: the regulator would not bear those of 3,000 N/m
BudgetSpec Ranges() { return ReadBudget("command,com=200..400").spec; }

constexpr int kGates = 6;
constexpr double kSoftest = 0.35;  // [1] of the servo's gain in the left arm

// Three numbers of hands are told apart by six gates: a stair from kSoftest to 1.
double ShareAt(double told) {
  int below = 0;
  for (int k = 0; k < kGates; ++k) below += told < -1 + (2.0 * k + 1) / kGates;
  return 1 - below * (1 - kSoftest) / kGates;
}

bool InLeftArm(const std::string& joint) {
  return joint.starts_with("left_shoulder") || joint.starts_with("left_elbow") ||
         joint.starts_with("left_wrist");
}

// The regulator of silc/lqr without its left arm, which a stair moves instead: below each of six
// thresholds of what is told of the hands, a gate lets the arm's targets give way with its joints,
// δq* = g δq, and so takes g of the servo's gain away. A gate is the difference of two ramps,
// g δq + M(θ − o) and M(θ − o): g δq where o is well below θ, nothing where it is well above.
//
// With `falls_walking` it also sees whether it is told to walk, and then bends its hips until it
// falls.
Policy GatedStand(const RobotModel& robot, bool falls_walking = false) {
  const StandPolicy stand = DesignStandPolicy(robot);
  ObservationLayout layout = stand.layout;
  AddBudgetTerms(Ranges().command, &layout);
  if (falls_walking) layout.terms.push_back({.name = "walk", .source = TermSource::kCommandWalk});
  const int n = robot.num_joints(), inputs = ObservationWidth(layout), told = 3 * n + kCommandHands;
  const MlpLayer& linear = stand.network.branches[0][0];
  MlpLayer hidden, out;
  hidden.inputs = inputs;
  hidden.activation = Activation::kRelu;
  std::vector<std::vector<float>> columns;  // of `out`, one per hidden unit
  const auto unit = [&](const std::vector<float>& row, float bias, const std::vector<float>& to) {
    hidden.weight.insert(hidden.weight.end(), row.begin(), row.end());
    hidden.bias.push_back(bias);
    columns.push_back(to);
  };
  for (int i = 0; i < n; ++i) {
    if (InLeftArm(robot.spec().joints[i])) continue;
    // the regulator's own answer, by its positive and its negative part
    for (const float sign : {1.0f, -1.0f}) {
      std::vector<float> row(inputs, 0.0f), to(n, 0.0f);
      for (int j = 0; j < 3 * n; ++j) {
        // an arm's previous action is not the regulator's own: it would answer to it
        const bool others = j >= 2 * n && InLeftArm(robot.spec().joints[j - 2 * n]);
        row[j] = others ? 0 : sign * linear.weight[i * 3 * n + j];
      }
      to[i] = sign;
      unit(row, sign * linear.bias[i], to);
    }
  }
  constexpr float kSlope = 20;
  for (int k = 0; k < kGates; ++k) {
    const auto threshold = static_cast<float>(-1 + (2.0 * k + 1) / kGates);
    std::vector<float> open(n, 0.0f);
    for (int j = 0; j < n; ++j) {
      if (!InLeftArm(robot.spec().joints[j])) continue;
      std::vector<float> row(inputs, 0.0f), to(n, 0.0f);
      row[j] = static_cast<float>((1 - kSoftest) / kGates / stand.layout.action.scale[j]);
      row[told] = -kSlope;
      to[j] = 1;
      open[j] = -1;
      unit(row, kSlope * threshold, to);
    }
    std::vector<float> row(inputs, 0.0f);
    row[told] = -kSlope;
    unit(row, kSlope * threshold, open);
  }
  if (falls_walking) {
    std::vector<float> row(inputs, 0.0f), to(n, 0.0f);
    row[inputs - 1] = 1;
    for (int j = 0; j < n; ++j) {
      const bool hip = robot.spec().joints[j].find("hip_pitch") != std::string::npos;
      to[j] = hip ? static_cast<float>(1.5 / stand.layout.action.scale[j]) : 0;  // 1.5 rad
    }
    unit(row, 0, to);
  }
  hidden.outputs = static_cast<int>(columns.size());
  out.inputs = hidden.outputs;
  out.outputs = n;
  out.bias.assign(n, 0.0f);
  for (int i = 0; i < n; ++i) {
    for (const std::vector<float>& column : columns) out.weight.push_back(column[i]);
  }
  MlpNetwork network;
  network.inputs = inputs;
  network.branches = {{hidden, out}};
  return Policy(std::make_shared<const Graph>(MlpGraph(network, "obs", "actions")),
                layout,
                {robot.spec().joints, robot.spec().StandingPose().q});
}

ExperimentOptions KnobOptions() {
  ExperimentOptions options;
  options.episodes = 1;
  options.values = 3;
  const BudgetSpec ranges = Ranges();
  options.budget = UserBudget{"command", BudgetAt(ranges, MiddleOf(ranges.command))};
  options.command = ranges.command;
  return options;
}

const Curve& FindCurve(const ExperimentResult& r,
                       const std::string& panel,
                       const std::string& label) {
  for (const Curve& curve : r.curves) {
    if (curve.panel == panel && curve.label == label) return curve;
  }
  ADD_FAILURE() << "no curve " << label << " in " << panel;
  static const Curve none{};
  return none;
}

// The knob's numbers on a policy whose answer to a command is known: hands follow, in a stair whose
// steps were built in; the centre of mass does not.
TEST(Knob, MeasuresWhatACommandChanges) {
  const RobotModel robot = RobotModel::Load("g1");
  const metric::KnobMetrics& m = metric::Knob();
  const ExperimentResult r =
      FindExperiment("knob").run(GatedStand(robot), KnobOptions(), Progress{});
  EXPECT_EQ(r.trials, 3 * 3 * 2);
  // the model is that of a linear robot, and pushes displace by centimetres where it is soft
  EXPECT_NEAR(r.Value(m.hand_on_base.over_model), 1, 0.06);
  EXPECT_NEAR(r.Value(m.com.over_model), 1, 0.06);
  EXPECT_EQ(r.Value(m.hand_on_base.monotone), 100);
  for (int axis = 0; axis < 3; ++axis) {
    const std::string panel = std::string("left hand against the base, ") + "xyz"[axis];
    const Curve& measured = FindCurve(r, panel, "measured");
    ASSERT_EQ(measured.x.size(), 3u);
    EXPECT_NEAR(measured.x[0], 100, 1e-9);
    EXPECT_NEAR(measured.x[1], std::sqrt(100 * 1000.0), 1e-9);
    EXPECT_NEAR(measured.x[2], 1000, 1e-9);
    // the arm's share of its gains goes from kSoftest to 1; the waist in series, and the weight of
    // the arm, do not follow
    const double span = measured.y[2] / measured.y[0];
    EXPECT_GT(span, 1.4) << panel;
    EXPECT_LT(span, 1.2 * ShareAt(1) / ShareAt(-1)) << panel;
    EXPECT_NEAR(r.Value(m.hand_on_base.span[axis]), span, 1e-12);
    double most = 0, least = HUGE_VAL;
    for (int k = 0; k < 3; ++k) {
      most = std::fmax(most, measured.y[k] / measured.x[k]);
      least = std::fmin(least, measured.y[k] / measured.x[k]);
    }
    EXPECT_NEAR(r.Value(m.hand_on_base.most[axis]), most, 1e-12);
    EXPECT_NEAR(r.Value(m.hand_on_base.least[axis]), least, 1e-12);
  }
  EXPECT_NEAR(r.Value(m.com.span.x), 1, 0.02) << "the centre of mass is not told";
  // it has no memory: the first decision has the new stiffness, but for what the arm's new pose
  // adds
  const Curve& after =
      FindCurve(r, "all three from the low to the high end, left hand", "standing");
  EXPECT_EQ(after.x[0], 0);
  EXPECT_GT(after.y[0], 0.8 * after.y.back());
  EXPECT_GT(after.y.back(), 1.5);
  EXPECT_LT(r.Value(m.standing.settling), 0.2);
  EXPECT_EQ(r.Value(m.standing.falls), 0);
  EXPECT_EQ(r.Value(m.walking.falls), 0) << "it stands when it is told to walk";
  // the loaded hand needs time to move
  EXPECT_GT(r.Value(m.loaded_displacement), 0.03);
  EXPECT_LT(r.Value(m.loaded_displacement), 1);
  // steps of the centre of mass alone are not answered, up and down, standing and "walking"; under
  // the load this regulator falls
  EXPECT_EQ(r.falls, std::lround(r.Value(m.loaded.falls) / 100 * 6));
  bool told = false;
  for (const std::string& note : r.notes) {
    told = told || note.find("in 4 of 18 steps of the command the stiffness changed by less") == 0;
    EXPECT_EQ(note.find("the robot fell in"), std::string::npos) << "while the values were told";
  }
  EXPECT_TRUE(told);
}

// A robot that is on the floor holds no budget: the moments that it lost count, and a note says so.
TEST(Knob, MomentsLostToAFallAreOverTheBudget) {
  const RobotModel robot = RobotModel::Load("g1");
  const metric::KnobMetrics& m = metric::Knob();
  ExperimentOptions options = KnobOptions();
  options.values = 2;
  const ExperimentResult r =
      FindExperiment("knob").run(GatedStand(robot, true), options, Progress{});
  EXPECT_EQ(r.Value(m.walking.falls), 100);
  EXPECT_EQ(r.Value(m.standing.falls), 0);
  for (const auto* point : {&m.com, &m.hand_on_base}) {
    EXPECT_EQ(r.Value(point->within_walking), 0);
    // standing it is measured all the same
    EXPECT_GT(r.Value(point->most.x), 0);
    EXPECT_FALSE(std::isnan(r.Value(point->within_standing)));
  }
  bool told = false;
  for (const std::string& note : r.notes) {
    told = told || note.find("walking, the robot fell in 4 of 4 trials") == 0;
    EXPECT_NE(note.find("standing, the robot fell"), 0u) << note;
  }
  EXPECT_TRUE(told);
}

TEST(Knob, NeedsAPolicyThatIsTold) {
  const RobotModel robot = RobotModel::Load("g1");
  const StandPolicy stand = DesignStandPolicy(robot);
  const Policy plain(std::make_shared<const Graph>(MlpGraph(stand.network, "obs", "actions")),
                     stand.layout,
                     {robot.spec().joints, robot.spec().StandingPose().q});
  EXPECT_THROW(FindExperiment("knob").run(plain, KnobOptions(), Progress{}), ConfigError);
  ExperimentOptions without = KnobOptions();
  without.command = {};
  EXPECT_THROW(FindExperiment("knob").run(GatedStand(robot), without, Progress{}), ConfigError);
}

}  // namespace
}  // namespace silc
