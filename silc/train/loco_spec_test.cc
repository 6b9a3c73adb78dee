// SPDX-License-Identifier: Apache-2.0
#include "silc/train/loco_spec.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <functional>

#include "silc/policy/mlp.h"
#include "silc/policy/policy_metadata.h"
#include "silc/policy/test_networks.h"
#include "silc/stiffness/joint_stiffness.h"
#include "silc/task/test_layouts.h"

namespace silc {
namespace {

// The task's own observation code without noise, over as many frames as the layout keeps; `change`
// may touch the values (ObservationSources) of the frame of this age, 0 the newest.
Eigen::VectorXf Observe(const TaskLayout& layout,
                        const std::function<void(int age, float* values)>& change) {
  const TaskObservation observation = layout.view();
  Eigen::VectorXf obs(observation.width);
  std::vector<float> clean(observation.frame_width);
  for (int age = observation.frames - 1; age >= 0; --age) {
    std::vector<float> values(kNumValues);
    // small enough that no clip of the layouts holds
    for (int j = 0; j < kTaskJoints; ++j) values[j] = 0.01f * static_cast<float>(j);
    change(age, values.data());
    Draw unused(0, 0, 0, DrawPurpose::kNoise);
    const bool first = age == observation.frames - 1;
    ObserveFrame(observation, values.data(), first, {}, unused, obs.data(), clean.data());
  }
  return obs;
}

ObservationLayout EditedLayout() {
  ObservationLayout layout = ShippedLayout();
  for (ObservationTerm& term : layout.terms) {
    if (term.name == "dof_pos") term.scale = {3};  // was 1
    if (term.name == "actions") term.scale = {0.5};
  }
  return layout;
}

class LocoSpec : public ::testing::TestWithParam<TestLayout> {
 protected:
  LocoSpec() {
    config_.noise = {.joint_pos = 0, .joint_vel = 0, .torque = 0, .base_ang_vel = 0, .gravity = 0};
    layout_ = MakeTaskLayout(GetParam().make(), model_.spec(), &config_);
    spec_ = MakeLocoSpec(model_, layout_, {}, 7);
  }
  RobotModel model_ = RobotModel::Load("g1");
  TaskConfig config_;
  TaskLayout layout_;
  EnvSpec spec_;
};

// The observation is affine in what is perturbed, so a difference quotient has rounding errors
// alone: 1e-7 of a value below 1, over a step of 1/4.
TEST_P(LocoSpec, ColumnsAreTheDerivativesOfTheTasksObservation) {
  const auto expect = [&](const char* what,
                          const std::vector<ColumnEntry>& entries,
                          int columns,
                          bool newest_alone,
                          TermSource source) {
    Eigen::MatrixXf E = Eigen::MatrixXf::Zero(spec_.obs_dim, columns);
    for (const ColumnEntry& entry : entries) E(entry.input, entry.column) += entry.value;
    for (int c = 0; c < columns; ++c) {
      const auto moved = [&](float by) {
        return Observe(layout_, [&](int age, float* values) {
          if (age == 0 || !newest_alone) values[TaskSources().At(source) + c] += by;
        });
      };
      const Eigen::VectorXf slope = (moved(0.125f) - moved(-0.125f)) / 0.25f;
      EXPECT_LT((slope - E.col(c)).cwiseAbs().maxCoeff(), 2e-6) << what << " " << c;
    }
    EXPECT_GT(E.norm(), 0) << what;
  };
  const StiffnessSpec& s = spec_.stiffness_spec;
  // a history that begins with zeros holds the frames that were observed all the same
  expect("newest q", s.q0, kTaskJoints, true, TermSource::kJointPos);
  expect("q", s.q, kTaskJoints, false, TermSource::kJointPos);
  expect("action", s.a, kTaskJoints, false, TermSource::kPrevAction);
  expect("torque", s.tau, kTaskJoints, false, TermSource::kJointTorque);
  expect("gravity", s.g, 3, false, TermSource::kProjectedGravity);
}

// (S2) from the learner's columns is −∂τ/∂q of a servo behind the same network, by differences
// through the task's own observation. τ = kp (q_ref + α a − q).
TEST_P(LocoSpec, OneStepStiffnessIsThatOfTheTrainedLoop) {
  Rng rng(6);
  MlpNetwork network;
  network.inputs = spec_.obs_dim;
  for (const int outputs : {kLowerJoints, kUpperJoints}) {
    network.branches.push_back(RandomLayers(&rng, spec_.obs_dim, {24, outputs}, Activation::kTanh));
    // firm answers, so that the policy's part of K₁ is a good share of kp
    for (float& w : network.branches.back().back().weight) w *= 8;
  }
  MlpEngine engine(network);
  std::vector<float> action(kTaskJoints);
  const auto act = [&](int joint, float by) {
    const Eigen::VectorXf obs = Observe(layout_, [&](int age, float* values) {
      if (age == 0) values[TaskSources().At(TermSource::kJointPos) + joint] += by;
    });
    engine.Forward({obs.data(), static_cast<std::size_t>(obs.size())}, action);
    return Eigen::Map<const Eigen::VectorXf>(action.data(), kTaskJoints).cast<double>().eval();
  };

  act(0, 0);
  engine.PullBack();
  const MlpEngine::Columns columns = engine.MakeColumns(kTaskJoints, spec_.stiffness_spec.q0);
  std::vector<float> result(engine.ResultSize(columns));
  Eigen::MatrixXd J_q0(kTaskJoints, kTaskJoints);
  for (int b = 0; b < engine.num_blocks(); ++b) {
    const MlpEngine::Block block = engine.Times(columns, b, result);
    for (int c = 0; c < kTaskJoints; ++c) {
      for (int r = 0; r < block.rows; ++r) {
        J_q0(block.first_output + r, c) = result[c * kRowLanes + r];
      }
    }
  }
  const Servo& servo = spec_.stiffness_spec.servo;
  JointMatrix K_1;
  ASSERT_EQ(OneStepStiffness(servo, J_q0, &K_1), StiffnessStatus::kOk);

  constexpr float kStep = 0.01f;  // [rad]
  double policys_part = 0;
  for (int c = 0; c < kTaskJoints; ++c) {
    const Eigen::VectorXd slope = (act(c, kStep) - act(c, -kStep)) / (2.0 * kStep);
    for (int r = 0; r < kTaskJoints; ++r) {
      const double servos = r == c ? servo.kp[r] : 0.0;
      const double K = servos - servo.kp[r] * servo.alpha[r] * slope[r];
      // float's rounding is 1e-4 of an action over this step, truncation is of its square
      EXPECT_NEAR(K_1(r, c), K, 1e-3 * servo.kp[r]) << r << ", " << c;
      policys_part = std::max(policys_part, std::abs(K - servos) / servo.kp[r]);
    }
  }
  EXPECT_GT(policys_part, 0.05) << "nothing but the servo was compared";
}

constexpr TestLayout kSpecLayouts[] = {{"Shipped", ShippedLayout},
                                       {"Edited", EditedLayout},
                                       {"Shuffled", ShuffledLayout},
                                       {"TermMajor", TermMajorLayout}};
INSTANTIATE_TEST_SUITE_P(Layouts,
                         LocoSpec,
                         ::testing::ValuesIn(kSpecLayouts),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(LocoSpecOfTheTask, TheServoIsTheOneThePhysicsRuns) {
  const RobotModel model = RobotModel::Load("g1");
  TaskConfig config;
  const TaskRobot robot = MakeTaskRobot(model, config);
  const EnvSpec spec =
      MakeLocoSpec(model, MakeTaskLayout(ShippedLayout(), model.spec(), &config), {}, 7);
  EXPECT_EQ(spec.num_envs, 7);
  EXPECT_EQ(spec.obs_dim, 655);
  EXPECT_EQ(spec.critic_obs_dim, 152);
  EXPECT_EQ(spec.num_actions(), kTaskJoints);
  EXPECT_EQ(spec.agents[0].num_actions, kLowerJoints);
  const Servo& servo = spec.stiffness_spec.servo;
  for (int j = 0; j < kTaskJoints; ++j) {
    EXPECT_FLOAT_EQ(static_cast<float>(servo.kp[j]), robot.kp[j]);
    EXPECT_FLOAT_EQ(static_cast<float>(servo.kd[j]), robot.kd[j]);
    EXPECT_FLOAT_EQ(static_cast<float>(servo.alpha[j]), robot.action_scale[j]);
  }
}

TEST(LocoSpecOfTheTask, TheLayoutFollowsTheConfigAndSurvivesTheFile) {
  const RobotModel model = RobotModel::Load("g1");
  TaskConfig config;
  config.gait.period = 0.9f;
  config.action.clip = 50;
  const TaskRobot robot = MakeTaskRobot(model, config);
  const ObservationLayout layout = MakeTaskLayout(ShippedLayout(), model.spec(), &config).layout;
  const ObservationLayout read = LayoutFromSilcBlock(MetadataFor(layout, "run"), "test");
  EXPECT_EQ(read.clock.period, 0.9);
  EXPECT_EQ(read.action.clip, 50);
  ASSERT_EQ(read.kp.size(), 29u);
  for (int j = 0; j < kTaskJoints; ++j) {
    EXPECT_FLOAT_EQ(static_cast<float>(read.kp[j]), robot.kp[j]);
    EXPECT_FLOAT_EQ(static_cast<float>(read.default_pose[j]), robot.default_q[j]);
  }
  EXPECT_EQ(read.control_dt, 0.02);
}

}  // namespace
}  // namespace silc
