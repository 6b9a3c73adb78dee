// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/episodes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "silc/base/error.h"
#include "silc/base/test_paths.h"
#include "silc/eval/experiments.h"
#include "silc/observe/closed_loop.h"
#include "silc/policy/layout_file.h"
#include "silc/policy/mlp.h"
#include "silc/robot/robot_model.h"

namespace silc {
namespace {

// A policy that always answers zero: servos at the default pose, arms at their reference.
Policy Silent(double knee_gain = 200) {
  const RobotModel robot = RobotModel::Load("g1");
  ObservationLayout layout = ReadLayoutFile(SourcePath("layouts/g1_loco.yaml")).layout;
  layout.kp[3] = knee_gain;
  MlpNetwork network;
  network.inputs = ObservationWidth(layout);
  MlpLayer layer;
  layer.inputs = network.inputs;
  layer.outputs = 29;
  layer.weight.assign(static_cast<std::size_t>(layer.inputs) * layer.outputs, 0.0f);
  layer.bias.assign(layer.outputs, 0.0f);
  network.branches.push_back({layer});
  return Policy(std::make_shared<const Graph>(MlpGraph(network, "obs", "actions")),
                layout,
                {robot.spec().joints, robot.spec().StandingPose().q});
}

EpisodeOptions Options() {
  EpisodeOptions options;
  options.task = NominalTask({}, 0);
  options.task.episode.length = 3;
  options.task.episode.start_speed = 0;
  options.task.episode.start_legs = 0;
  options.episodes = 6;
  options.observe_every = 5;
  return options;
}

// The servos alone do not hold the robot up (their ankles have 40 N·m/rad against 216 of
// gravity's).
TEST(Episodes, ServosAloneFallAndTheirStiffnessIsTheGains) {
  EpisodeOptions options = Options();
  options.budget.com.reset();
  options.budget.weight = NullWeight::kServo;
  options.budget.null_stiffness = 1;  // M = Kp = K: on the edge of the disc, exactly
  const EpisodeReport report = RunEpisodes(Silent(), options);
  ASSERT_EQ(report.episodes.size(), 6u);
  for (const EpisodeResult& e : report.episodes) EXPECT_TRUE(e.fell);
  ASSERT_GT(report.sigma.size(), 30u);
  for (const SigmaSample& s : report.sigma) {
    ASSERT_TRUE(s.sound);
    EXPECT_NEAR(s.disc, 1, 1e-6);
    EXPECT_NEAR(s.worst, 1, 1e-6);
  }
  options.budget.null_stiffness = 0.5;  // ‖2 M⁻¹Kp − I‖ = 3
  const EpisodeReport half = RunEpisodes(Silent(), options);
  for (const SigmaSample& s : half.sigma) {
    EXPECT_NEAR(s.disc, 3, 1e-6);
    EXPECT_EQ(s.own, s.disc);
  }
  options.budget.condition = Condition::kTwoSided;  // ‖M⁻¹Kp‖ = 2, and the disc as before
  for (const SigmaSample& s : RunEpisodes(Silent(), options).sigma) {
    EXPECT_NEAR(s.own, 2, 1e-6);
    EXPECT_NEAR(s.disc, 3, 1e-6);
  }
}

TEST(Episodes, TheSameSeedGivesTheSameEpisodesAtAnyThreadCount) {
  EpisodeOptions options = Options();
  options.episodes = 40;
  options.task.episode.length = 0.5f;
  const EpisodeReport one = RunEpisodes(Silent(), options);
  options.threads = 3;
  const EpisodeReport three = RunEpisodes(Silent(), options);
  ASSERT_EQ(one.sigma.size(), three.sigma.size());
  for (std::size_t i = 0; i < one.episodes.size(); ++i) {
    EXPECT_EQ(one.episodes[i].arm_error2, three.episodes[i].arm_error2);
  }
  for (std::size_t i = 0; i < one.sigma.size(); ++i) {
    EXPECT_EQ(one.sigma[i].disc, three.sigma[i].disc);
  }
}

// A policy is judged under the gains it was trained with: as above M = Kp = K, but with the
// policy's own Kp, and the physics has them too.
TEST(Episodes, APolicyRunsUnderItsOwnGains) {
  EpisodeOptions options = Options();
  options.budget.com = Eigen::Vector3d(1e6, 1e6, 1e6);  // no bound that matters
  options.budget.null_stiffness = 200;                  // of W = I: the falcon knees' kp
  const EpisodeReport stiff = RunEpisodes(Silent(), options),
                      soft = RunEpisodes(Silent(100), options);
  ASSERT_FALSE(soft.sigma.empty() || stiff.sigma.empty());
  // another servo falls another way
  EXPECT_NE(stiff.episodes[0].arm_error2, soft.episodes[0].arm_error2);
  EXPECT_GT(stiff.sigma[0].worst, soft.sigma[0].worst);
  const RobotModel robot = RobotModel::Load("g1");
  EXPECT_EQ(GainsOf(robot, Silent()).name, "falcon");
  EXPECT_EQ(GainsOf(robot, Silent(100)).name, "own");
}

// Jitter and power are of the walking part: a robot told to stand has none.
TEST(Episodes, OnlyWalkingIsMeasuredForJitter) {
  EpisodeOptions options = Options();
  options.observe_every = 0;
  options.episodes = 2;
  options.task.episode.length = 0.4f;
  options.task.commands.walk_prob = 0;
  for (const EpisodeResult& e : RunEpisodes(Silent(), options).episodes) {
    EXPECT_TRUE(std::isnan(e.all.action_jitter));
    EXPECT_TRUE(std::isnan(e.all.power));
  }
  options.task.commands.walk_prob = 1;
  for (const EpisodeResult& e : RunEpisodes(Silent(), options).episodes) {
    EXPECT_EQ(e.all.action_jitter, 0);  // it always answers zero
    EXPECT_GT(e.all.torque_jitter, 0);
    EXPECT_GT(e.all.power, 0);
    // all joints are legs with waist, and arms
    EXPECT_NEAR(29 * e.all.power, 15 * e.lower.power + 14 * e.upper.power, 1e-9);
    EXPECT_NEAR(29 * e.all.velocity_jitter,
                15 * e.lower.velocity_jitter + 14 * e.upper.velocity_jitter,
                1e-6 * e.all.velocity_jitter);
  }
}

// By hand: √((20 · 0.01 + 5 · 0.06) / 25) for the arms, of all that was lived; the others are of
// the time that was walked. Half of the robots stood. Of two moments one is within the disc; the
// other has no K_s and counts as over it, but has a K₁.
TEST(Episodes, TheResultWeighsByTimeAndCountsUnsoundMomentsAsOver) {
  EpisodeReport report;
  report.episodes.resize(2);
  report.episodes[0] = {.fell = false,
                        .seconds = 20,
                        .walking = 10,
                        .velocity_error2 = 0.04,
                        .gait_error2 = 0.01,
                        .arm_error2 = 0.01};
  report.episodes[1] = {.fell = true,
                        .seconds = 5,
                        .walking = 0,
                        .velocity_error2 = 9,
                        .gait_error2 = 9,
                        .arm_error2 = 0.06};
  report.sigma = {
      {.episode = 0, .mode = ContactMode::kDoubleSupport, .sound = true, .disc = 1.04, .paper = 3},
      {.episode = 1,
       .mode = ContactMode::kDoubleSupport,
       .sound = false,
       .disc = 0.5,
       .paper = 0.9}};
  const metric::EpisodeMetrics& walk = metric::Walk();
  const ExperimentResult result = ResultOfEpisodes(walk, report, {});
  EXPECT_EQ(result.trials, 2);
  EXPECT_EQ(result.falls, 1);
  const auto value = [&](MetricHandle what) {
    const Metric* metric = result.Find(what);
    return metric ? metric->value : -1;
  };
  EXPECT_DOUBLE_EQ(value(walk.survival), 50);
  EXPECT_DOUBLE_EQ(value(walk.velocity_error), 0.2);
  EXPECT_DOUBLE_EQ(value(walk.gait_error), 0.1);
  EXPECT_DOUBLE_EQ(value(walk.arm_error), std::sqrt((20 * 0.01 + 5 * 0.06) / 25));
  EXPECT_DOUBLE_EQ(value(walk.disc_within), 50);
  EXPECT_DOUBLE_EQ(value(walk.paper_within), 50);
}

}  // namespace
}  // namespace silc
