// SPDX-License-Identifier: Apache-2.0
#include "silc/train/loco_spec.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <functional>

#include "silc/policy/policy_metadata.h"
#include "silc/task/observation.h"

namespace silc {
namespace {

const int kHistory = TaskConfig().observation.history;
const int kActorObs = ActorObs({});

// Five frames of the task's own observation code without noise; `change` may touch the state of the
// frame of this age (0 the newest).
Eigen::VectorXf Observe(const TaskRobot& robot,
                        const std::function<void(int age, ObservationState*)>& change) {
  Eigen::VectorXf history(kActorObs);
  for (int age = kHistory - 1; age >= 0; --age) {
    ObservationState state = {};
    for (int j = 0; j < kTaskJoints; ++j) state.q[j] = 0.01f * static_cast<float>(j);
    change(age, &state);
    float frame[kActorFrame];
    Draw unused(0, 0, 0, DrawPurpose::kNoise);
    ActorFrame({.joint_pos = 0, .joint_vel = 0, .torque = 0, .base_ang_vel = 0, .gravity = 0},
               robot,
               state,
               unused,
               frame);
    PushFrame(frame, kHistory, age == kHistory - 1, history.data());
  }
  return history;
}

Eigen::MatrixXf Dense(const std::vector<ColumnEntry>& entries, int columns) {
  Eigen::MatrixXf E = Eigen::MatrixXf::Zero(kActorObs, columns);
  for (const ColumnEntry& entry : entries) E(entry.input, entry.column) += entry.value;
  return E;
}

class LocoSpec : public ::testing::Test {
 protected:
  RobotModel model_ = RobotModel::Load("g1");
  TaskConfig config_;
  TaskRobot robot_ = MakeTaskRobot(model_, config_);
  EnvSpec spec_ = MakeLocoSpec(model_, config_, {}, 7);
};

// The observation is affine in what is perturbed, so a difference quotient has rounding errors
// alone: 1e-7 of a value below 1, over a step of 1/4.
TEST_F(LocoSpec, ColumnsAreTheDerivativesOfTheTasksObservation) {
  const auto expect = [&](const char* what,
                          const std::vector<ColumnEntry>& entries,
                          int columns,
                          int oldest,
                          const std::function<float*(ObservationState*, int)>& at) {
    const Eigen::MatrixXf E = Dense(entries, columns);
    for (int c = 0; c < columns; ++c) {
      const auto moved = [&](float by) {
        return Observe(robot_, [&](int age, ObservationState* s) {
          if (age <= oldest) *at(s, c) += by;
        });
      };
      const Eigen::VectorXf slope = (moved(0.125f) - moved(-0.125f)) / 0.25f;
      EXPECT_LT((slope - E.col(c)).cwiseAbs().maxCoeff(), 1e-6) << what << " " << c;
    }
    EXPECT_GT(E.norm(), 0) << what;
  };
  const StiffnessSpec& s = spec_.stiffness_spec;
  const auto q = [](ObservationState* o, int j) { return &o->q[j]; };
  expect("newest q", s.q0, kTaskJoints, 0, q);
  expect("q", s.q, kTaskJoints, kHistory - 1, q);
  expect("action", s.a, kTaskJoints, kHistory - 1, [](ObservationState* o, int j) {
    return &o->action[j];
  });
  expect("torque", s.tau, kTaskJoints, kHistory - 1, [](ObservationState* o, int j) {
    return &o->tau[j];
  });
  expect("gravity", s.g, 3, kHistory - 1, [](ObservationState* o, int j) { return &o->g_B[j]; });
}

TEST_F(LocoSpec, TheServoIsTheOneThePhysicsRuns) {
  EXPECT_EQ(spec_.num_envs, 7);
  EXPECT_EQ(spec_.obs_dim, kActorObs);
  EXPECT_EQ(spec_.critic_obs_dim, kCriticObs);
  EXPECT_EQ(spec_.num_actions(), kTaskJoints);
  EXPECT_EQ(spec_.agents[0].num_actions, kLowerJoints);
  const Servo& servo = spec_.stiffness_spec.servo;
  for (int j = 0; j < kTaskJoints; ++j) {
    EXPECT_FLOAT_EQ(static_cast<float>(servo.kp[j]), robot_.kp[j]);
    EXPECT_FLOAT_EQ(static_cast<float>(servo.kd[j]), robot_.kd[j]);
    EXPECT_FLOAT_EQ(static_cast<float>(servo.alpha[j]), robot_.action_scale[j]);
  }
}

TEST_F(LocoSpec, TheLayoutFollowsTheConfigAndSurvivesTheFile) {
  config_.gait.period = 0.9f;
  config_.action.clip = 50;
  const ObservationLayout layout = LocoLayout(model_, config_);
  const ObservationLayout read = LayoutFromSilcBlock(MetadataFor(layout, "run"), "test");
  EXPECT_EQ(read.clock.period, 0.9);
  EXPECT_EQ(read.action.clip, 50);
  ASSERT_EQ(read.kp.size(), 29u);
  for (int j = 0; j < kTaskJoints; ++j) {
    EXPECT_FLOAT_EQ(static_cast<float>(read.kp[j]), robot_.kp[j]);
    EXPECT_FLOAT_EQ(static_cast<float>(read.default_pose[j]), robot_.default_q[j]);
  }
  EXPECT_EQ(read.control_dt, 0.02);
}

}  // namespace
}  // namespace silc
