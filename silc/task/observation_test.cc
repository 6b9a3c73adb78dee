// SPDX-License-Identifier: Apache-2.0
#include "silc/task/observation.h"

#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <memory>
#include <string>
#include <vector>

#include "silc/base/test_paths.h"
#include "silc/policy/layout_file.h"
#include "silc/policy/mlp.h"
#include "silc/policy/policy.h"
#include "silc/policy/test_networks.h"
#include "silc/task/loco_env.h"

namespace silc {
namespace {

const int kHistory = TaskConfig().observation.history;
const int kActorObs = ActorObs({});

ObservationLayout Layout() { return ReadLayoutFile(SourcePath("layouts/g1_loco.yaml")).layout; }

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

// The observation the task trains on is the one `silc observe` and a robot feed the exported
// policy: history, last action, gait clock and all, and so are the joint targets.
TEST(Observation, IsWhatTheDeployedPolicySees) {
  TaskConfig config;
  config.noise = {.joint_pos = 0, .joint_vel = 0, .torque = 0, .base_ang_vel = 0, .gravity = 0};
  config.commands.resample = 0.2f;  // stand and walk within the test
  constexpr int kRobots = 6;
  LocoEnv env({.config = config, .num_envs = kRobots, .seed = 5, .stagger = false});

  const ObservationLayout layout = Layout();
  ASSERT_EQ(ObservationWidth(layout), kActorObs);
  Rng rng(3);
  MlpNetwork network;
  network.inputs = kActorObs;
  network.branches.push_back(RandomLayers(&rng, kActorObs, {32, kLowerJoints}));
  network.branches.push_back(RandomLayers(&rng, kActorObs, {32, kUpperJoints}));
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
      for (int k = 0; k < kActorObs; ++k) {
        // one rounding of float each; the clock adds up its phase in float for 30 steps
        ASSERT_NEAR(policies[i].observation()[k], step.obs[i * kActorObs + k], 2e-5)
            << "step " << t << ", robot " << i << ", frame " << k / kActorFrame << ", element "
            << k % kActorFrame;
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

TEST(Observation, NoiseIsUniformOnSensorsAndOnNothingElse) {
  TaskConfig::Noise noise;
  TaskRobot robot = {};
  ObservationState s = {};
  float clean[kCriticObs], noisy[kActorFrame];
  CriticFrame(robot, s, clean);
  double square = 0;
  constexpr int kFrames = 400;
  for (int i = 0; i < kFrames; ++i) {
    Draw draw(1, static_cast<std::uint32_t>(i), 0, DrawPurpose::kNoise);
    ActorFrame(noise, robot, s, draw, noisy);
    for (int k = 0; k < kActorFrame; ++k) {
      const float error = noisy[k] - clean[k];
      // terms by offset: dof_pos 40, dof_vel 69 (× 0.05), torque 117 (× 0.04)
      const float bound = k >= 40 && k < 69   ? 0.01f
                          : k >= 69 && k < 98 ? 0.005f
                          : k >= 117          ? 0.004f
                                              : 0;
      ASSERT_LE(std::fabs(error), bound) << k;
      if (k >= 40 && k < 69) square += error * error;
    }
  }
  // variance of U(−a, a) is a²/3; the estimate's relative standard error is √(0.8/11600) = 0.8 %
  EXPECT_NEAR(square / (kFrames * 29), 1e-4 / 3, 1e-4 / 3 * 0.05);
}

TEST(Observation, TheCriticSeesTheActorsFrameCleanAndMore) {
  TaskRobot robot = {};
  ObservationState s = {};
  s.v_B[1] = 0.5f;
  s.quat_xyzw[3] = 1;
  s.height = 0.7f;
  s.hand_force_B[1][2] = -20;
  s.foot_height[0] = 0.04f;
  s.foot_force[1] = 150;
  s.push_B[0] = 40;
  float out[kCriticObs] = {};
  CriticFrame(robot, s, out);
  EXPECT_FLOAT_EQ(out[131 + 1], 1.0f);
  EXPECT_FLOAT_EQ(out[134 + 3], 1.0f);
  EXPECT_FLOAT_EQ(out[138], 0.7f);
  EXPECT_FLOAT_EQ(out[139 + 5], -2.0f);
  EXPECT_FLOAT_EQ(out[145], 0.04f);
  EXPECT_FLOAT_EQ(out[148], 0.5f);
  EXPECT_FLOAT_EQ(out[149], 2.0f);
}

TEST(Observation, AFreshHistoryIsFilledAndAnOldOneMovesOn) {
  std::vector<float> history(kActorObs, 7), frame(kActorFrame);
  for (int t = 1; t <= 3; ++t) {
    std::fill(frame.begin(), frame.end(), static_cast<float>(t));
    PushFrame(frame.data(), kHistory, t == 1, history.data());
  }
  const float expected[] = {1, 1, 1, 2, 3};
  ASSERT_EQ(kHistory, std::ssize(expected));
  for (int i = 0; i < kActorObs; ++i) ASSERT_EQ(history[i], expected[i / kActorFrame]) << i;
}

}  // namespace
}  // namespace silc
