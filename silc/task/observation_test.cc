// SPDX-License-Identifier: Apache-2.0
#include "silc/task/observation.h"

#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <algorithm>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "silc/policy/mlp.h"
#include "silc/policy/policy.h"
#include "silc/policy/test_networks.h"
#include "silc/task/loco_env.h"
#include "silc/task/test_layouts.h"

namespace silc {
namespace {

TaskConfig WithoutNoise() {
  TaskConfig config;
  config.noise = {.joint_pos = 0, .joint_vel = 0, .torque = 0, .base_ang_vel = 0, .gravity = 0};
  config.commands.resample = 0.2f;  // stand and walk within a test
  return config;
}

// What the robot in `env` would report, from the physics alone: double precision, wxyz quaternion
// rotated by the textbook formula.
ObservationInput Report(LocoEnv& env, int robot) {
  const TaskRobot& r = env.robot();
  const FieldView qpos = env.physics().view(Field::kQpos), qvel = env.physics().view(Field::kQvel),
                  torque = env.physics().view(Field::kTorque);
  ObservationInput in;
  in.q = in.qd = in.tau = in.q_ref = Eigen::VectorXd::Zero(kTaskJoints);
  for (int j = 0; j < kTaskJoints; ++j) {
    in.q[j] = qpos(robot, r.qpos[j]);
    in.qd[j] = qvel(robot, r.dof[j]);
    in.tau[j] = torque(robot, r.actuator[j]);
    if (j >= kLowerJoints) in.q_ref[j] = env.state(robot).arms.ref[j - kLowerJoints];
  }
  const Eigen::Quaterniond orientation(
      qpos(robot, 3), qpos(robot, 4), qpos(robot, 5), qpos(robot, 6));
  in.g_B = orientation.conjugate() * Eigen::Vector3d(0, 0, -1);
  for (int k = 0; k < 3; ++k) in.w_WB_B[k] = qvel(robot, 3 + k);
  const TaskCommand& c = env.state(robot).command;
  in.command.lin_vel << c.vx, c.vy;
  in.command.yaw_rate = c.yaw_rate;
  in.command.height = c.height;
  in.command.walk = c.walk;
  in.command.waist << c.waist[0], c.waist[1], c.waist[2];
  return in;
}

// The table of docs/task.md, typed in: the numbers of one frame of g1_loco.
std::vector<double> FrameOfTheDocs(const ObservationInput& in, const EnvState& state) {
  std::vector<double> frame;
  const auto put = [&](double value) { frame.push_back(std::clamp(value, -100.0, 100.0)); };
  double pose[kTaskJoints] = {};  // [rad] hips, knees and ankles bent; the rest 0
  pose[0] = pose[6] = -0.1;
  pose[3] = pose[9] = 0.3;
  pose[4] = pose[10] = -0.2;
  for (int j = 0; j < 29; ++j) put(state.action[j]);
  for (int k = 0; k < 3; ++k) put(0.25 * in.w_WB_B[k]);
  put(in.command.yaw_rate);
  put(2 * in.command.height);
  put(in.command.lin_vel[0]);
  put(in.command.lin_vel[1]);
  put(in.command.walk);
  for (int k = 0; k < 3; ++k) put(in.command.waist[k]);
  for (int j = 0; j < 29; ++j) put(in.q[j] - pose[j]);
  for (int j = 0; j < 29; ++j) put(0.05 * in.qd[j]);
  for (int k = 0; k < 3; ++k) put(in.g_B[k]);
  for (int j = 15; j < 29; ++j) put(in.q_ref[j]);
  put(std::sin(2 * std::numbers::pi * state.phase));
  put(std::cos(2 * std::numbers::pi * state.phase));
  for (int j = 15; j < 29; ++j) put(0.04 * in.tau[j]);
  return frame;
}

TEST(Observation, OfTheShippedLayoutIsTheDocs) {
  constexpr int kRobots = 5;
  LocoEnv env({.config = WithoutNoise(), .num_envs = kRobots, .seed = 8, .stagger = false});
  ASSERT_EQ(env.obs_width(), 5 * 131);
  ASSERT_EQ(env.critic_width(), 152);
  Rng rng(4);
  std::vector<float> actions(kRobots * kTaskJoints);
  std::vector<std::vector<float>> before(kRobots);
  for (int t = 0; t < 20; ++t) {
    for (float& a : actions) a = static_cast<float>(0.7 * rng.Normal());
    const LocoStep step = env.Step(actions);
    for (int i = 0; i < kRobots; ++i) {
      const std::vector<double> frame = FrameOfTheDocs(Report(env, i), env.state(i));
      ASSERT_EQ(frame.size(), 131u);
      const std::vector<float> obs(&step.obs[i * 655], &step.obs[i * 655] + 655);
      for (int k = 0; k < 131; ++k) {
        // the newest frame stands last; roundings of float
        ASSERT_NEAR(obs[4 * 131 + k], frame[k], 1e-5) << "step " << t << ", element " << k;
        ASSERT_NEAR(step.critic_obs[i * 152 + k], frame[k], 1e-5) << "critic, element " << k;
      }
      for (int k = 0; k < 4 * 131; ++k) {
        // the others are those of before, or copies of the first
        const float expected = step.flag[i] != kRunning ? obs[4 * 131 + k % 131]
                               : t > 0                  ? before[i][k + 131]
                                                        : obs[k];
        ASSERT_EQ(obs[k], expected) << "step " << t << ", frame " << k / 131;
      }
      before[i] = obs;
    }
  }
}

class DeployedObservation : public ::testing::TestWithParam<TestLayout> {};

// The observation the task trains on is the one `silc observe` and a robot feed the exported
// policy: history, last action, gait clock and all, and so are the joint targets.
TEST_P(DeployedObservation, IsTheTrainedOne) {
  constexpr int kRobots = 6;
  LocoEnv env({.config = WithoutNoise(),
               .layout = GetParam().make(),
               .num_envs = kRobots,
               .seed = 5,
               .stagger = false});
  const ObservationLayout& layout = env.layout().layout;
  const int width = env.obs_width();
  ASSERT_EQ(ObservationWidth(layout), width);
  Rng rng(3);
  MlpNetwork network;
  network.inputs = width;
  network.branches.push_back(RandomLayers(&rng, width, {32, kLowerJoints}));
  network.branches.push_back(RandomLayers(&rng, width, {32, kUpperJoints}));
  const auto graph = std::make_shared<const Graph>(MlpGraph(network, "obs", "actions"));
  std::vector<Policy> policies;
  for (int i = 0; i < kRobots; ++i) {
    policies.emplace_back(
        graph,
        layout,
        PolicyRobot{env.robot_model().spec().joints, env.robot_model().spec().StandingPose().q});
  }

  LocoStep step = env.view();
  std::vector<float> actions(kRobots * kTaskJoints);
  int walked = 0, stood = 0;
  Eigen::VectorXd target = Eigen::VectorXd::Zero(kTaskJoints);
  std::vector<Eigen::VectorXd> targets(kRobots, target);
  for (int t = 0; t < 30; ++t) {
    for (int i = 0; i < kRobots; ++i) {
      if (step.flag[i] != kRunning) policies[i].Reset();
      ASSERT_EQ(policies[i].Act(Report(env, i), &targets[i]), PolicyStatus::kOk);
      ++(env.state(i).command.walk > 0.5f ? walked : stood);
      for (int k = 0; k < width; ++k) {
        // one rounding of float each; the clock adds up its phase in float for 30 steps
        ASSERT_NEAR(policies[i].observation()[k], step.obs[i * width + k], 2e-5)
            << "step " << t << ", robot " << i << ", element " << k;
      }
      for (int j = 0; j < kTaskJoints; ++j) {
        actions[i * kTaskJoints + j] = static_cast<float>(policies[i].raw_action()[j]);
      }
    }
    step = env.Step(actions);
    for (int i = 0; i < kRobots; ++i) {
      if (step.flag[i] != kRunning) continue;
      for (int j = 0; j < kTaskJoints; ++j) {
        EXPECT_NEAR(
            env.physics().view(Field::kTarget)(i, env.robot().actuator[j]), targets[i][j], 1e-5);
      }
    }
  }
  EXPECT_GT(walked, 20);
  EXPECT_GT(stood, 20);
}

INSTANTIATE_TEST_SUITE_P(Layouts,
                         DeployedObservation,
                         ::testing::ValuesIn(kTestLayouts),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(Observation, AnEditedScaleIsTrained) {
  const auto observe = [](ObservationLayout layout) {
    const LocoEnv env({.config = WithoutNoise(), .layout = layout, .seed = 2, .stagger = false});
    return std::vector<float>(env.view().obs.begin(), env.view().obs.end());
  };
  ObservationLayout edited = ShippedLayout();
  for (ObservationTerm& term : edited.terms) {
    if (term.name == "dof_vel") term.scale = {0.05};
    if (term.name == "base_ang_vel") term.scale = {0.5};  // was 0.25
  }
  const std::vector<float> before = observe(ShippedLayout()), after = observe(edited);
  double moved = 0;
  for (std::size_t k = 0; k < before.size(); ++k) {
    const bool gyro = k % 131 >= 29 && k % 131 < 32;
    EXPECT_FLOAT_EQ(after[k], gyro ? 2 * before[k] : before[k]) << k;
    moved += gyro ? std::abs(before[k]) : 0;
  }
  EXPECT_GT(moved, 0) << "the robots stood still: nothing was compared";
}

// g1_loco compiled, with the noise of the default config.
class ShippedObservation : public ::testing::Test {
 protected:
  ShippedObservation() {
    TaskConfig config;
    layout_ = MakeTaskLayout(ShippedLayout(), RobotModel::Load("g1").spec(), &config);
    observation_ = layout_.view();
  }
  TaskLayout layout_;
  TaskObservation observation_;
};

TEST_F(ShippedObservation, NoiseIsUniformOnSensorsAndOnNothingElse) {
  const std::vector<float> values(kNumValues, 0.0f);
  std::vector<float> noisy(observation_.width), clean(observation_.frame_width);
  double square = 0;
  constexpr int kFrames = 400;
  for (int i = 0; i < kFrames; ++i) {
    Draw draw(1, static_cast<std::uint32_t>(i), 0, DrawPurpose::kNoise);
    ObserveFrame(observation_, values.data(), true, {}, draw, noisy.data(), clean.data());
    for (int k = 0; k < 131; ++k) {
      const float error = noisy[4 * 131 + k] - clean[k];
      // terms by offset: dof_pos 40, dof_vel 69 (× 0.05), torque 117 (× 0.04)
      const float bound = k >= 40 && k < 69   ? 0.01f
                          : k >= 69 && k < 98 ? 0.005f
                          : k >= 117          ? 0.004f
                                              : 0;
      ASSERT_LE(std::fabs(error), bound * 1.00001f) << k;
      if (k >= 40 && k < 69) square += error * error;
    }
  }
  // variance of U(−a, a) is a²/3; the estimate's relative standard error is √(0.8/11600) = 0.8 %
  EXPECT_NEAR(square / (kFrames * 29), 1e-4 / 3, 1e-4 / 3 * 0.05);
}

TEST(Observation, TheCriticSeesMoreThanTheActors) {
  PrivilegedState s = {};
  s.v_B[1] = 0.5f;
  s.quat_xyzw[3] = 1;
  s.height = 0.7f;
  s.hand_force_B[1][2] = -20;
  s.foot_height[0] = 0.04f;
  s.foot_force[1] = 150;
  s.push_B[0] = 40;
  float out[kPrivilegedObs] = {};
  ObservePrivileged(s, out);
  EXPECT_FLOAT_EQ(out[1], 1.0f);
  EXPECT_FLOAT_EQ(out[3 + 3], 1.0f);
  EXPECT_FLOAT_EQ(out[7], 0.7f);
  EXPECT_FLOAT_EQ(out[8 + 5], -2.0f);
  EXPECT_FLOAT_EQ(out[14], 0.04f);
  EXPECT_FLOAT_EQ(out[17], 0.5f);
  EXPECT_FLOAT_EQ(out[18], 2.0f);
}

}  // namespace
}  // namespace silc
