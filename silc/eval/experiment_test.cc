// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "silc/base/error.h"
#include "silc/base/test_paths.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiment_plot.h"
#include "silc/eval/experiments.h"
#include "silc/eval/trial.h"
#include "silc/lqr/stand_policy.h"
#include "silc/observe/load_policy.h"
#include "silc/observe/shake.h"

namespace silc {
namespace {

// The regulator of silc/lqr on the G1: a policy that stands and whose every derivative is known.
const Policy& Stand() {
  static const Policy policy = [] {
    const RobotModel robot = RobotModel::Load("g1");
    const StandPolicy stand = DesignStandPolicy(robot);
    return Policy(std::make_shared<const Graph>(MlpGraph(stand.network, "obs", "actions")),
                  stand.layout,
                  {robot.spec().joints, robot.spec().StandingPose().q});
  }();
  return policy;
}

ExperimentOptions Options(int episodes) {
  ExperimentOptions options;
  options.episodes = episodes;
  return options;
}

ExperimentResult Sample() {
  ExperimentResult r;
  r.experiment = "walk";
  r.policy = "policies/a \"quoted\" name.onnx";
  r.policy_hash = "00ff";
  r.layout = "g1_loco";
  r.robot = "g1";
  r.gains = "mjlab";
  r.mode = "compliance";
  r.budget = ReadBudget("soft-hand,com=1/2/3.25,torque=held").spec;
  r.seeds = {1, 18446744073709551615ull};
  r.settings = {{"force", "−150 N"}};
  r.metrics = {
      {metric::Walk().motion.action_jitter, 0.1, 1.0 / 3, HUGE_VAL, 7, {1e-300, NAN, -HUGE_VAL}},
      {metric::Walk().survival}};
  r.curves = {{"panel",
               "label",
               "time [s]",
               "y [m]",
               {0, 0.1},
               {NAN, 2},
               Curve::Style::kDotted,
               true,
               true}};
  r.spans = {{"panel", "push", 0, 0.05}};
  r.notes = {"the robot fell in 3 of 20"};
  r.trials = 20;
  r.falls = 3;
  return r;
}

TEST(ExperimentResult, ComesBackFromJsonAsItWas) {
  const ExperimentResult r = Sample();
  const std::string text = ToJson(r);
  const ExperimentResult back = FromJson(text, "text");
  EXPECT_EQ(ToJson(back), text);
  ASSERT_EQ(back.metrics.size(), 2u);
  EXPECT_EQ(back.metrics[0].low, 1.0 / 3);
  EXPECT_EQ(back.metrics[0].high, HUGE_VAL);
  EXPECT_TRUE(std::isnan(back.metrics[0].samples[1]));
  EXPECT_TRUE(std::isnan(back.metrics[1].value));
  EXPECT_EQ(back.seeds[1], 18446744073709551615ull);
  EXPECT_EQ(back.curves[0].style, Curve::Style::kDotted);
  EXPECT_TRUE(back.curves[0].shared && back.curves[0].log_x && !back.curves[0].log_y);
  EXPECT_EQ(back.falls, 3);
  EXPECT_EQ(ToJson(FromJson(ToJson(r, 2), "text")), text);
}

// A file may be named in any bytes; its result is kept all the same.
TEST(ExperimentResult, ANameThatIsNoTextIsWritten) {
  ExperimentResult r = Sample();
  r.policy = "a\xff.onnx";
  EXPECT_EQ(FromJson(ToJson(r), "text").policy, "a\uFFFD.onnx");
}

TEST(ExperimentResult, TextThatIsNoResultIsRefusedWithItsPlace) {
  std::string cut = ToJson(Sample());
  cut.resize(cut.size() / 2);
  for (const std::string& text : {std::string(), std::string("{}"), std::string("[1]"), cut}) {
    try {
      FromJson(text, "results/x.json");
      FAIL() << text;
    } catch (const ConfigError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("results/x.json: ", 0), 0u) << error.what();
    }
  }
}

// A megabyte of brackets took the stack of whoever wrote the value again.
TEST(ExperimentResult, ListsInListsWithoutEndAreRefused) {
  const std::string trials = "\"trials\":" + std::to_string(Sample().trials);
  for (const std::string& at : {trials, std::string("\"budget\":{"), std::string("\"seeds\":[")}) {
    std::string text = ToJson(Sample());
    const std::size_t begin = text.find(at);
    ASSERT_NE(begin, text.npos) << at;
    const std::size_t value = text.find(':', begin) + 1;
    text = text.substr(0, value) + std::string(1000000, '[') + std::string(1000000, ']') + "}";
    try {
      FromJson(text, "results/x.json");
      FAIL() << at;
    } catch (const ConfigError& error) {
      EXPECT_STREQ(error.what(), "results/x.json: nested deeper than 64 levels");
    }
  }
}

// What FromJson() says about Sample() with one piece of its text replaced; "" where it takes it.
std::string ErrorWith(const std::string& from, const std::string& to) {
  std::string text = ToJson(Sample());
  const auto at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  text.replace(at, from.size(), to);
  try {
    FromJson(text, "results/x.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// A renamed metric must not be read as a missing one, nor a number in another unit as ours.
TEST(ExperimentResult, AMetricThatIsNotDeclaredIsRefusedWithTheNearest) {
  EXPECT_EQ(ErrorWith("\"action_jitter\"", "\"acton_jitter\""),
            "results/x.json: 'acton_jitter' is no metric of walk; did you mean action_jitter?");
  EXPECT_EQ(ErrorWith("\"1/s³\"", "\"1/s²\""),
            "results/x.json: metric 'action_jitter' of walk is in [1/s³] and not in [1/s²]");
  EXPECT_NE(ErrorWith("\"survival\"", "\"action_jitter\""), "");
  EXPECT_NE(ErrorWith("\"walk\"", "\"wlak\"").find("did you mean walk?"), std::string::npos);
  // a label is text for people: today's is shown
  EXPECT_EQ(ErrorWith("\"action jitter\"", "\"jitter of the actions\""), "");
}

// A count beyond what an int holds was cut to one that fits: found by the fuzzer.
TEST(ExperimentResult, ACountOrASeedThatIsNoneIsRefused) {
  const std::string trials = "\"trials\":" + std::to_string(Sample().trials);
  for (const std::string no : {"3.5e+88", "-1", "1.5", "2147483648", "\"3\"", "null"}) {
    EXPECT_EQ(ErrorWith(trials, "\"trials\":" + no),
              "results/x.json: 'trials' must be a count and is " + no);
  }
  EXPECT_EQ(ErrorWith(trials, "\"trials\":2147483647"), "");
  EXPECT_EQ(ErrorWith("\"seeds\":[", "\"seeds\":[-1,"),
            "results/x.json: 'seeds' must be whole numbers from 0 and one is -1");
}

TEST(Experiments, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Experiment& experiment : Experiments()) {
    EXPECT_TRUE(names.insert(experiment.name).second) << experiment.name;
    EXPECT_FALSE(experiment.what.empty() || experiment.headline.empty());
    EXPECT_EQ(experiment.metrics.experiment(), experiment.name);
    for (const MetricHandle what : experiment.headline) {
      EXPECT_EQ(what->experiment, experiment.name) << what->name;
    }
    EXPECT_GT(experiment.episodes, 0);
  }
  EXPECT_EQ(&FindExperiment("hand-load"), &Experiments()[1]);
  try {
    FindExperiment("hand-lode");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("hand-load"), std::string::npos) << error.what();
  }
}

TEST(Experiments, ASeedCountsOnce) {
  EXPECT_NO_THROW(CheckSeeds({1, 2, 3}));
  EXPECT_THROW(CheckSeeds({}), ConfigError);
  try {
    CheckSeeds({1, 7, 7});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("7 is there twice"), std::string::npos);
  }
}

// Same seed, same bytes, at any number of threads; another seed is another experiment.
TEST(Experiments, AreAFunctionOfTheirSeed) {
  ExperimentOptions options = Options(2);
  const std::string one = ToJson(RunComImpulse(Stand(), options, {}));
  options.threads = 2;
  EXPECT_EQ(ToJson(RunComImpulse(Stand(), options, {})), one);
  options.seeds = {2};
  EXPECT_NE(ToJson(RunComImpulse(Stand(), options, {})), one);
}

// A regulator that cannot step, told to step on foam with one foot raised, or pushed hard, may
// fall: the result must say so and hold no numbers of robots that are not there.
TEST(Experiments, ARobotThatFallsIsCountedAndHasNoNumbers) {
  const RobotModel robot = RobotModel::Load("g1");
  StandPolicy stand = DesignStandPolicy(robot);
  MlpLayer& layer = stand.network.branches[0][0];
  std::fill(layer.weight.begin(), layer.weight.end(), 0.0f);  // servos alone: it falls
  const Policy falls(std::make_shared<const Graph>(MlpGraph(stand.network, "obs", "actions")),
                     stand.layout,
                     {robot.spec().joints, robot.spec().StandingPose().q});
  for (const char* name : {"com-impulse",
                           "hand-load",
                           "hand-impact",
                           "foam-step",
                           "frequency",
                           "com-load",
                           "com-load-walk",
                           "punch"}) {
    const ExperimentResult r = FindExperiment(name).run(falls, Options(1), {});
    EXPECT_EQ(r.trials, 1) << name;
    EXPECT_EQ(r.falls, 1) << name;
    EXPECT_EQ(r.Value(FindExperiment(name).metrics.survival), 0) << name;
    ASSERT_FALSE(r.notes.empty()) << name;
    EXPECT_NE(r.notes[0].find("fell"), std::string::npos) << r.notes[0];
    for (const MetricHandle what : FindExperiment(name).headline) {
      if (what == FindExperiment(name).metrics.survival) continue;
      EXPECT_TRUE(std::isnan(r.Value(what))) << name << " " << what->name;
    }
    EXPECT_FALSE(RenderSvg(FigureOf({&r}, {"falls"})).empty());
  }
}

// Ramps against a twin, and the derivatives of policy and contact (K_s with weight), share no
// code. The regulator does not step: −40 N at once are too much for it, and the result says that.
TEST(HandLoad, RampsAndModelAgree) {
  ExperimentOptions options = Options(1);
  options.budget = ReadBudget("soft-hand");
  const ExperimentResult r = RunHandLoad(Stand(), options, {});
  const metric::HandLoadMetrics& declared = metric::HandLoad();
  for (int axis = 0; axis < 3; ++axis) {
    const double measured = r.Value(declared.measured_2n[axis]),
                 model = r.Value(declared.static_with_weight[axis]);
    EXPECT_NEAR(measured, model, 0.05 * model) << axis;  // 2 N already bend the arm by centimetres
    // what is specified is the hand on the base, and it alone is held against the spec
    EXPECT_NEAR(
        r.Value(declared.on_base_over_spec[axis]), r.Value(declared.on_base[axis]) / 200, 1e-9);
  }
  // the legs in series make another hand of it, by more than the spread of trials
  EXPECT_GT(std::abs(r.Value(declared.on_base.x) / r.Value(declared.measured.x) - 1), 0.1);
  for (const Curve& curve : r.curves) {
    if (curve.label == "specified") {
      EXPECT_NE(curve.panel.find("on the base"), std::string::npos) << curve.panel;
    }
  }
  EXPECT_EQ(r.falls, 1);
  EXPECT_TRUE(std::isnan(r.Value(declared.step_stiffness_z)));
}

// The regulator with a root whose slope is infinite at every observation: 0.001 √|x − x|. It acts
// as the regulator does, so what is measured is measured; what is modelled is said to be no number.
TEST(HandLoad, GoesOnWhereThePolicyHasAnInfiniteSlope) {
  const RobotModel robot = RobotModel::Load("g1");
  const StandPolicy stand = DesignStandPolicy(robot);
  const MlpLayer& layer = stand.network.branches.at(0).at(0);
  ASSERT_EQ(stand.network.branches.size(), 1u);
  ASSERT_EQ(stand.network.branches[0].size(), 1u);
  ASSERT_TRUE(stand.network.prefix.empty());
  GraphBuilder builder;
  const ValueId x = builder.AddInput("obs", {1, layer.inputs});
  const ValueId weight = builder.AddConstant("weight", {layer.outputs, layer.inputs}, layer.weight);
  const ValueId bias = builder.AddConstant("bias", {layer.outputs}, layer.bias);
  const ValueId act = builder.AddGemm("act", x, weight, bias, 1, 1, false, true);
  const ValueId zero = builder.AddUnary(Op::kAbs, "abs", builder.AddBinary(Op::kSub, "x-x", x, x));
  const ValueId root = builder.AddUnary(Op::kSqrt, "root", zero);
  const ValueId some = builder.AddSlice("some", root, {0, 0}, {1, 1}, {1, layer.outputs});
  const ValueId small =
      builder.AddBinary(Op::kMul, "small", some, builder.AddConstant("0.001", {1}, {0.001f}));
  builder.AddOutput("actions", builder.AddBinary(Op::kAdd, "sum", act, small));
  const Policy policy(std::make_shared<const Graph>(builder.Finish()),
                      stand.layout,
                      {robot.spec().joints, robot.spec().StandingPose().q});

  const ExperimentOptions options = Options(1);
  const metric::HandLoadMetrics& declared = metric::HandLoad();
  const ExperimentResult plain = RunHandLoad(Stand(), options, {});
  ExperimentResult rooted = RunHandLoad(policy, options, {});
  EXPECT_EQ(rooted.falls, plain.falls);
  for (int axis = 0; axis < 3; ++axis) {
    // the two sum in another order: rounding of float, through seconds of contact
    EXPECT_NEAR(rooted.Value(declared.measured_2n[axis]),
                plain.Value(declared.measured_2n[axis]),
                0.05 * plain.Value(declared.measured_2n[axis]));
    EXPECT_TRUE(std::isfinite(rooted.Value(declared.pd[axis])));
    EXPECT_TRUE(std::isnan(rooted.Value(declared.one_step[axis])));
    EXPECT_TRUE(std::isnan(rooted.Value(declared.static_with_weight[axis])));
  }
  const std::string said = Describe(StiffnessStatus::kNotFinite);
  EXPECT_TRUE(std::any_of(rooted.notes.begin(), rooted.notes.end(), [&](const std::string& note) {
    return note.find(said) != std::string::npos;
  }));
  // and it can be kept and shown
  rooted.experiment = declared.experiment();
  rooted.budget = ReadBudget("compliance").spec;
  EXPECT_EQ(ToJson(FromJson(ToJson(rooted), "text")), ToJson(rooted));
  EXPECT_FALSE(RenderSvg(FigureOf({&rooted}, {"rooted"})).empty());
}

// 0/0 in the graph: no experiment takes that for a fall.
TEST(Experiments, TellAnActionThatIsNotFinite) {
  const RobotModel robot = RobotModel::Load("g1");
  const StandPolicy stand = DesignStandPolicy(robot);
  const MlpLayer& layer = stand.network.branches.at(0).at(0);
  GraphBuilder builder;
  const ValueId x = builder.AddInput("obs", {1, layer.inputs});
  const ValueId zero = builder.AddBinary(Op::kSub, "x-x", x, x);
  const ValueId nan = builder.AddBinary(Op::kDiv, "0/0", zero, zero);
  builder.AddOutput("actions", builder.AddSlice("some", nan, {0, 0}, {1, 1}, {1, layer.outputs}));
  const Policy policy(std::make_shared<const Graph>(builder.Finish()),
                      stand.layout,
                      {robot.spec().joints, robot.spec().StandingPose().q});
  for (const Experiment& experiment : Experiments()) {
    if (&experiment.metrics == &metric::Knob()) continue;  // of commanded policies
    try {
      RunExperiment(experiment, "nan.onnx", policy, Options(1), {});
      ADD_FAILURE() << experiment.name << " went through";
    } catch (const RunError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("step 1 (0.00 s): "), std::string::npos) << experiment.name << what;
    }
  }
}

// The same at the centre of mass, where a person pushes.
TEST(ComLoad, WhatIsFeltIsTheModelWithWeight) {
  ExperimentOptions options = Options(1);
  options.budget = ReadBudget("compliance,com=100/100/20000");
  const ExperimentResult r = RunComLoad(Stand(), options, {});
  const metric::ComLoadMetrics& declared = metric::ComLoad();
  EXPECT_EQ(r.falls, 0);
  for (int axis = 0; axis < 2; ++axis) {
    const double felt = r.Value(declared.measured_5n[axis]);
    EXPECT_NEAR(felt, r.Value(declared.static_with_weight[axis]), 0.1 * std::abs(felt)) << axis;
    EXPECT_NEAR(
        r.Value(declared.measured_over_spec[axis]), r.Value(declared.measured[axis]) / 100, 1e-9);
  }
}

// A robot that is told to stand walks at no speed, and feels as `com-load` says it does.
TEST(ComLoadWalk, ARobotThatStandsFeelsAsItDoesStanding) {
  ExperimentOptions options = Options(1);
  options.budget = ReadBudget("compliance,com=100/100/20000");
  options.walk_command = StandCommand();
  const ExperimentResult standing = RunComLoad(Stand(), options, {});
  const ExperimentResult walking = RunComLoadWalk(Stand(), options, {});
  const metric::ComLoadMetrics& still = metric::ComLoad();
  const metric::ComLoadWalkMetrics& declared = metric::ComLoadWalk();
  EXPECT_EQ(walking.falls, 0);
  EXPECT_EQ(walking.Value(declared.refused), 0);
  EXPECT_EQ(walking.Value(declared.modelled), 100);
  for (int axis = 0; axis < 3; ++axis) {
    const auto same = [&](MetricHandle ours, MetricHandle theirs) {
      // averaged up to 5 s later: the soles creep on, by 1.7 % of the 1.4 mm along y when measured
      EXPECT_NEAR(walking.Value(ours) / standing.Value(theirs), 1, 0.025) << ours->name;
    };
    same(declared.measured_5n[axis], still.measured_5n[axis]);
    same(declared.measured[axis], still.measured[axis]);
    same(declared.measured_20n[axis], still.measured_20n[axis]);
    same(declared.static_with_weight[axis], still.static_with_weight[axis]);
    same(declared.measured_over_model[axis], still.measured_over_model[axis]);
    same(declared.measured_over_spec[axis], still.measured_over_spec[axis]);
  }
}

// A policy that follows a velocity has no place to come back to: pushed along x it walks away as
// long as the push lasts, and the result says that instead of a stiffness.
TEST(ComLoadWalk, APolicyThatFollowsAVelocityIsRefused) {
  const RobotModel robot = RobotModel::Load("g1");
  const Policy policy = LoadPolicy(SourcePath("policies/g1_loco_baseline.onnx"), "", robot);
  const ExperimentResult r = RunComLoadWalk(policy, Options(1), {});
  const metric::ComLoadWalkMetrics& declared = metric::ComLoadWalk();
  EXPECT_EQ(r.falls, 0);
  EXPECT_TRUE(std::isnan(r.Value(declared.measured.x)));
  EXPECT_GT(r.Value(declared.speed.x), 0);  // along with the push
  EXPECT_GT(r.Value(declared.refused), 0);
  EXPECT_EQ(r.settings.at("gait cycle"), "0.8 s, the policy's clock");
  EXPECT_TRUE(std::any_of(r.notes.begin(), r.notes.end(), [](const std::string& note) {
    return note.find("walked away from its twin") != std::string::npos;
  }));
}

// Harder pushes fell more robots, a push is an impulse, and one start has eight sides.
TEST(Punch, CountsPushesBySideAndForce) {
  const ExperimentResult r = RunPunch(Stand(), Options(1), {});
  const metric::PunchMetrics& declared = metric::Punch();
  double before = 0;
  for (const MetricHandle what : declared.standing) {
    const Metric* share = r.Find(what);
    ASSERT_NE(share, nullptr);
    EXPECT_EQ(share->n, 1) << "eight pushes of one start";
    ASSERT_EQ(share->samples.size(), 1u);
    EXPECT_EQ(share->samples[0], share->value);
    EXPECT_GE(share->value, before) << what->name;
    before = share->value;
    EXPECT_EQ(std::remainder(share->value, 12.5), 0);  // of eight
    EXPECT_LE(share->low, share->value);
    EXPECT_GE(share->high, share->value);
  }
  // 900 N for 0.08 s are 2.2 m/s of 33 kg: no robot without steps stands that
  EXPECT_EQ(before, 100);
}

// A hand that is never at rest has no stiffness, and the result says why instead of a number.
TEST(RestingStiffness, ThereIsNoneWhereTheRobotStepsOrSways) {
  ShakeResult shake;
  ShakeLevel level;
  level.force = 10;
  level.plus = 0.02 * Eigen::Matrix3d::Identity();
  level.minus = -level.plus;
  level.end = {};
  level.sway.setConstant(0.001);
  shake.levels = {level};
  shake.sway_W.setConstant(0.001);
  EXPECT_NEAR(RestingStiffness(shake, 0, 1), 500, 1e-9);
  EXPECT_TRUE(std::isnan(RestingStiffness(shake, 1, 1)));
  ShakeResult other = shake;
  other.sway_W[1] = 0.021;
  EXPECT_TRUE(std::isnan(RestingStiffness(other, 0, 1)));
  EXPECT_FALSE(std::isnan(RestingStiffness(other, 0, 0)));
  other = shake;
  other.levels[0].sway[1] = 0.021;
  EXPECT_TRUE(std::isnan(RestingStiffness(other, 0, 1)));
  other = shake;
  other.levels[0].stepped[1] = true;
  EXPECT_TRUE(std::isnan(RestingStiffness(other, 0, 1)));
  other = shake;
  other.mode_changes = 1;
  EXPECT_TRUE(std::isnan(RestingStiffness(other, 0, 1)));
  other = shake;
  other.levels[0].minus(1, 1) = NAN;  // it fell
  EXPECT_TRUE(std::isnan(RestingStiffness(other, 0, 1)));
}

// (S4) with the joints' inertia against a shaker in MuJoCo, at the hand and the centre of mass.
TEST(Frequency, TheShakerFeelsWhatTheModelSays) {
  const metric::FrequencyMetrics& declared = metric::Frequency();
  ExperimentOptions options = Options(1);
  options.frequencies = {10, 1, 3};
  options.points = {"com_x", "hand_in_world_z"};
  const ExperimentResult r = RunFrequency(Stand(), options, {});
  ASSERT_EQ(r.falls, 0);
  // MuJoCo's servo is sampled every 5 ms and its soles give a little: per cent, not tenths
  for (const auto* point : {&declared.hand_in_world_z, &declared.com_x}) {
    EXPECT_LT(r.Value(point->error), 10) << point->name;
    EXPECT_LT(r.Value(point->residual), 10) << point->name;
    EXPECT_TRUE(std::isfinite(r.Value(point->at_3hz.damping))) << point->name;
  }
  // the least damping up to 5 Hz is that of the measured points, beside the bound of (S13)
  double least = HUGE_VAL, least_at_10_hz = HUGE_VAL;
  int bounds = 0;
  for (const Curve& curve : r.curves) {
    if (curve.panel.find("Im/ω") == std::string::npos) continue;
    if (curve.label == "measured") {
      least = std::min({least, curve.y[0], curve.y[1]});
      least_at_10_hz = std::min(least_at_10_hz, curve.y[2]);
    }
    if (curve.label.find("(S13)") == std::string::npos) continue;
    ++bounds;
    EXPECT_EQ(curve.y, (std::vector<double>{0, 0, 0}));
  }
  EXPECT_EQ(bounds, 2);
  EXPECT_EQ(r.Value(declared.least_damping), least);
  EXPECT_LT(least_at_10_hz, least) << "the test could not tell which frequencies count";
  // what was not asked for is not there
  EXPECT_EQ(r.Find(declared.hand_in_world_x.error), nullptr);
  EXPECT_TRUE(std::isnan(r.Value(declared.hand_in_world_z.at_0_5hz.stiffness)));
  EXPECT_EQ(r.curves.at(0).x, (std::vector<double>{1, 3, 10}));
}

// The budget over the frequencies: (S12) tells a budget that holds nothing from one that holds all,
// and its springs, where they are far stiffer than gravity and inertia, are what a shaker would
// feel.
TEST(Frequency, ShowsTheBudgetOverTheFrequencies) {
  ExperimentOptions options = Options(1);
  options.frequencies = {1, 4};
  options.points = {"com_x"};
  const auto run = [&](double com, double null_stiffness) {
    UserBudget budget = ReadBudget("compliance");
    budget.spec.com = Eigen::Vector3d::Constant(com);  // [N/m]
    budget.spec.null_stiffness = null_stiffness;       // [N·m/rad]
    options.budget = budget;
    return RunFrequency(Stand(), options, {});
  };
  const metric::FrequencyMetrics& declared = metric::Frequency();
  const ExperimentResult wide = run(1e6, 1e5), narrow = run(20, 1);
  // 2K/M − I is −I where K is nothing beside M
  EXPECT_NEAR(wide.Value(declared.frequency_sigma), 1, 0.05);
  EXPECT_GT(narrow.Value(declared.frequency_sigma), 5);
  EXPECT_TRUE(std::isfinite(wide.Value(declared.frequency_driving)));
  const auto curve =
      [](const ExperimentResult& r, const std::string& panel, const std::string& label) {
        for (const Curve& c : r.curves) {
          if (c.panel == panel && c.label == label) return c;
        }
        ADD_FAILURE() << "no curve " << panel << ", " << label;
        return Curve{};
      };
  const Curve springs = curve(wide, "centre of mass, x: Re", "the budget's springs");
  ASSERT_FALSE(springs.y.empty());
  EXPECT_NEAR(springs.y.front() / 1e6, 1, 0.05);
  EXPECT_LT(curve(narrow, "centre of mass, x: Re", "the budget's springs").y.front(), 1e3);
  for (const double y : curve(wide, "σ(ω), (S12)", "bound").y) EXPECT_EQ(y, 1);
}

// σ(ω) of a slow motion is σ of K_s: a robot that stands is judged as the observer judges it, with
// either weight of the null space.
TEST(Frequency, JudgesSlowMotionsAsTheObserverDoes) {
  for (const char* null_space :
       {"{weight: identity, stiffness: 120}", "{weight: gains, stiffness: 3}"}) {
    ExperimentOptions options = Options(1);
    options.budget = ParseBudget(
        std::string("com: [3000, 3000, 60000]\nnull_space: ") + null_space + "\n", "a test");
    options.frequencies = {0.05};
    options.points = {"com_x"};
    const ExperimentResult r = RunFrequency(Stand(), options, {});
    double slow = NAN;
    for (const Curve& curve : r.curves) {
      if (curve.panel == "σ(ω), (S12)" && !curve.shared) slow = curve.y.front();
    }
    options.seconds = 1;
    const double observed = RunBudget(Stand(), options, {}).Value(metric::Budget().all.disc_p99);
    // this regulator hardly answers a velocity, and stands in both experiments as it is told
    EXPECT_NEAR(slow, observed, 0.05 * observed) << null_space;
  }
}

TEST(Frequency, RefusesAPointThatIsNotThereAndWhatThePolicyCannotAnswer) {
  ExperimentOptions options = Options(1);
  options.points = {"hand_w"};
  EXPECT_THROW(RunFrequency(Stand(), options, {}), ConfigError);
  options.points = {};
  options.frequencies = {1, 0.5 / Stand().layout().control_dt};
  EXPECT_THROW(RunFrequency(Stand(), options, {}), ConfigError);
}

// Half of a rate of 1 Hz is the lowest of the usual frequencies, and none is below it.
TEST(Frequency, RefusesAPolicyWhoseRateLeavesNoFrequency) {
  const RobotModel robot = RobotModel::Load("g1");
  const StandPolicy stand = DesignStandPolicy(robot);
  ObservationLayout layout = stand.layout;
  layout.control_dt = 1;
  const Policy slow(std::make_shared<const Graph>(MlpGraph(stand.network, "obs", "actions")),
                    layout,
                    {robot.spec().joints, robot.spec().StandingPose().q});
  try {
    RunFrequency(slow, Options(1), {});
    FAIL() << "not refused";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("the policy's rate leaves no frequency"),
              std::string::npos)
        << error.what();
  }
}

// Galileo and a rope: the weight falls freely while the rope is slack, 0.2 m, and is then held to
// the rope's length but for its give.
TEST(HandImpact, TheWeightFallsFreelyUntilTheRopeIsTaut) {
  std::vector<double> z, length;
  ExperimentOptions options = Options(1);
  options.watch = [&](const RobotModel& robot, const mjData& data) {
    if (data.time < 3.5) return;  // it hangs under a hand that is still coming to rest
    const int body = mj_name2id(robot.model(), mjOBJ_BODY, "weight");
    z.push_back(data.xpos[3 * body + 2]);
    length.push_back(data.ten_length[0]);
  };
  const ExperimentResult r = RunHandImpact(Stand(), options, {});
  int falling = 0, taut = 0;
  for (std::size_t k = 2; k < z.size(); ++k) {
    const bool moving = z[k - 2] - z[k - 1] > 1e-3;
    if (moving && length[k] < 0.3 && taut == 0) {
      EXPECT_NEAR(z[k] - 2 * z[k - 1] + z[k - 2], -9.81 * 0.02 * 0.02, 1e-6);
      ++falling;
    }
    taut += length[k] > 0.3;
    EXPECT_LT(length[k], 0.33);
  }
  EXPECT_EQ(falling, 9);  // √(2·0.2/9.81) = 0.2019 s are ten periods; the first is not judged
  EXPECT_GT(taut, 10);
  // the hand does not move before
  const Curve& hand = r.curves[0];
  for (std::size_t k = 0; k < hand.x.size() && hand.x[k] < 0.19; ++k) {
    EXPECT_LT(std::abs(hand.y[k]), 2e-3);
  }
}

TEST(Budget, AStaticPolicysStiffnessIsHeldAgainstTheBudget) {
  ExperimentOptions options = Options(1);
  options.budget = ReadBudget("hard-nullspace");
  options.seconds = 2;
  const ExperimentResult r = RunBudget(Stand(), options, {});
  const metric::BudgetMetrics& declared = metric::Budget();
  ASSERT_EQ(r.falls, 0);
  EXPECT_EQ(r.Value(declared.judged_share), 100);
  // random directions are an average over directions, the eigenvalue is the worst of them
  EXPECT_GE(r.Value(declared.worst_moments_one_step),
            r.Value(declared.random_direction_moments_one_step));
  EXPECT_GE(r.Value(declared.all.worst_static_p99), 0.0);
  EXPECT_EQ(r.Find(declared.condition_p99), nullptr);  // the disc, which has its own metrics
}

// A budget is judged by its own condition, whichever that is; σ of the disc is there all the same.
TEST(Budget, IsJudgedByItsOwnCondition) {
  const metric::BudgetMetrics& declared = metric::Budget();
  ExperimentOptions options = Options(1);
  options.seconds = 1;
  options.budget = ReadBudget("hard-nullspace");
  const double disc = RunBudget(Stand(), options, {}).Value(declared.all.disc_p99);
  options.budget = ReadBudget("hard-nullspace,condition=two-sided");
  const ExperimentResult two_sided = RunBudget(Stand(), options, {});
  options.budget = ReadBudget("hard-nullspace,condition=one-sided");
  const ExperimentResult one_sided = RunBudget(Stand(), options, {});
  for (const ExperimentResult* r : {&two_sided, &one_sided}) {
    EXPECT_EQ(r->Value(declared.all.disc_p99), disc);
    EXPECT_GT(r->Value(declared.condition_p99), 0);
    EXPECT_EQ(r->Value(declared.condition_violations) > 1, r->Value(declared.condition_p99) > 1);
  }
  // ‖K̃‖ ≤ (‖2K̃ − I‖ + 1)/2, and ‖L⁻¹K‖ is another number than ‖L⁻¹KL⁻ᵀ‖
  EXPECT_LE(two_sided.Value(declared.condition_p99), (disc + 1) / 2 + 1e-9);
  EXPECT_NE(two_sided.Value(declared.condition_p99), disc);
  EXPECT_GT(
      std::abs(one_sided.Value(declared.condition_p99) / two_sided.Value(declared.condition_p99) -
               1),
      0.1);
}

TEST(PoolMetrics, IsTheMeanOfPoliciesWithTheirSpread) {
  const Metric a = MeanMetric(metric::Walk().motion.power, {1, 2, 3}),
               b = MeanMetric(metric::Walk().motion.power, {11, 12, 13});
  const Metric pooled = PoolMetrics({&a, &b});
  EXPECT_DOUBLE_EQ(pooled.value, 7);
  EXPECT_EQ(pooled.n, 6);
  EXPECT_LT(pooled.low, 3.1);  // both draws the first policy: a quarter of the time
  EXPECT_GT(pooled.high, 10.9);
  EXPECT_EQ(pooled.what->unit, "W");
}

TEST(StiffnessMetric, IsTheReciprocalOfTheMeanCompliance) {
  const Metric m = StiffnessMetric(metric::HandLoad().step_stiffness_z, {100, 300});
  EXPECT_DOUBLE_EQ(m.value, 150);
  // through infinity there is no interval
  EXPECT_TRUE(
      std::isnan(StiffnessMetric(metric::HandLoad().step_stiffness_z, {-2000, 1000, 3000}).low));
}

TEST(MedianMetric, KeepsInfinity) {
  const Metric m = MedianMetric(metric::ComImpulse().settling_time, {1, HUGE_VAL, HUGE_VAL, NAN});
  EXPECT_EQ(m.n, 3);
  EXPECT_EQ(m.value, HUGE_VAL);
}

}  // namespace
}  // namespace silc
