// SPDX-License-Identifier: Apache-2.0
// The task with robots that are not the G1: the T1, whose robot order is not the task's and whose
// head has no reference, and the Berkeley Humanoid, which has no arms.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/rng.h"
#include "silc/base/test_paths.h"
#include "silc/policy/policy.h"
#include "silc/policy/test_networks.h"
#include "silc/robot/kinematics.h"
#include "silc/stiffness/contact_jacobian.h"
#include "silc/task/loco_env.h"

namespace silc {
namespace {

struct Shipped {
  std::string task;
  int joints, lower;
  bool hands;
};

LocoEnvOptions OptionsOf(const Shipped& shipped, int envs) {
  const TaskFile task = ReadTaskFile(FindTaskFile(shipped.task));
  LocoEnvOptions options;
  options.config = task.config;
  options.layout = ReadTaskLayout(task.layout);
  options.robot = task.robot;
  options.num_envs = envs;
  options.seed = 5;
  options.stagger = false;
  return options;
}

std::vector<float> NormalActions(int count, std::uint32_t step, double size) {
  Rng rng(17, 0, step);
  std::vector<float> actions(count);
  for (float& a : actions) a = static_cast<float>(size * rng.Normal());
  return actions;
}

class OtherRobots : public ::testing::TestWithParam<Shipped> {};

TEST_P(OtherRobots, AreKnownByTheirRoles) {
  const Shipped& s = GetParam();
  LocoEnv env(OptionsOf(s, 1));
  const TaskRobot& r = env.robot();
  const RobotModel& robot = env.robot_model();
  EXPECT_EQ(r.num_joints, s.joints);
  EXPECT_EQ(r.num_lower, s.lower);
  EXPECT_EQ(r.has_hands, s.hands);
  EXPECT_EQ(std::count(r.is_leg, r.is_leg + r.num_joints, true), 12);
  const std::vector<int> order = TaskOrder(robot.spec());
  for (int side = 0; side < 2; ++side) {
    EXPECT_EQ(order[r.knee[side]], robot.spec().roles.knee[side]);
    EXPECT_EQ(r.knee_bend[side], 1);
    EXPECT_EQ(r.arm_joints[side], s.hands ? 7 : 0);
  }
  // a bent left leg beside its mirror image: the same pose from the other side
  const mjModel& m = *robot.model();
  const auto foot = [&](int side) {
    const MjDataPtr data = robot.MakeData();
    for (int i = 0; i < m.nq; ++i) data->qpos[i] = 0;
    data->qpos[robot.base_qpos_address() + 3] = 1;
    const int* pairs[kNumLegRoles] = {
        r.hip_pitch, r.hip_roll, r.hip_yaw, r.knee, r.ankle_pitch, r.ankle_roll};
    for (int role = 0; role < kNumLegRoles; ++role) {
      const double left = 0.1 + 0.07 * role;
      data->qpos[r.qpos[pairs[role][side]]] = side == 0 ? left : r.mirror[role] * left;
    }
    mj_kinematics(&m, data.get());
    return Eigen::Vector3d(data->site_xpos + 3 * robot.foot_site()[side]);
  };
  const Eigen::Vector3d left = foot(0), right = foot(1);
  EXPECT_LT((left - Eigen::Vector3d(right.x(), -right.y(), right.z())).norm(), 1e-5);
}

// (S5) of the sample against MuJoCo's Jacobians at the same state: columns in task order.
TEST_P(OtherRobots, HaveTheContactConsistentJacobians) {
  const Shipped& s = GetParam();
  LocoEnvOptions options = OptionsOf(s, 8);
  options.samples = true;
  options.config.randomisation.mass_min = options.config.randomisation.mass_max = 1;
  options.config.randomisation.pelvis_mass_min = options.config.randomisation.pelvis_mass_max = 0;
  LocoEnv env(options);
  const RobotModel& robot = env.robot_model();
  const std::vector<int> order = TaskOrder(robot.spec());
  int compared = 0;
  for (int t = 0; t < 20; ++t) {
    const LocoStep step = env.Step(NormalActions(8 * s.joints, t, 0.3));
    for (int e = 0; e < 8; ++e) {
      const ContactMode mode = step.contact_mode[e];
      if (mode == kModeUnknown || mode == ContactMode::kFlight) continue;
      const MjDataPtr data = robot.MakeData();
      const FieldView qpos = env.physics().view(Field::kQpos);
      for (int i = 0; i < robot.model()->nq; ++i) data->qpos[i] = qpos(e, i);
      mj_kinematics(robot.model(), data.get());
      mj_comPos(robot.model(), data.get());
      BodyJacobians body;
      ComputeBodyJacobians(robot, data.get(), &body);
      ContactKinematics expected;
      ASSERT_EQ(ComputeContactKinematics(body, mode, nullptr, &expected), StiffnessStatus::kOk);
      using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
      const Eigen::MatrixXd task_order =
          Eigen::Map<const Rows>(
              &step.jacobian[e * SampleSize(s.joints)], SampleRows::kEnd, s.joints)
              .cast<double>();
      Eigen::MatrixXd sample(SampleRows::kEnd, s.joints);  // in the robot's order
      for (int t_joint = 0; t_joint < s.joints; ++t_joint) {
        sample.col(order[t_joint]) = task_order.col(t_joint);
      }
      Eigen::MatrixXd com = sample.middleRows(SampleRows::kCom, 3) - expected.com;
      Eigen::MatrixXd turned = sample.middleRows(SampleRows::kGravity, 3) - expected.E;
      if (expected.closed) {
        com = com * expected.N;
        turned = turned * expected.N;
        EXPECT_LT((sample.middleRows(SampleRows::kClosing, 6) * expected.N).norm(), 2e-5);
      }
      EXPECT_LT(com.norm(), 2e-5);
      EXPECT_LT(turned.norm(), 2e-5);
      for (int h = 0; h < 2; ++h) {
        const Eigen::MatrixXd hand = sample.middleRows(SampleRows::kHandOnBase + 3 * h, 3);
        if (s.hands) {
          EXPECT_LT((hand - expected.hand_on_base[h]).norm(), 2e-5);
        } else {
          EXPECT_EQ(hand.norm(), 0);
        }
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 20);
}

// What the environment trains on is what an exported policy is given on the robot, and the targets
// are its own, joint by joint in the robot's order.
TEST_P(OtherRobots, ObserveAsTheirPoliciesDo) {
  const Shipped& s = GetParam();
  LocoEnvOptions options = OptionsOf(s, 4);
  options.config.noise = {};
  options.config.noise.joint_pos = options.config.noise.joint_vel = options.config.noise.torque = 0;
  options.config.commands.walk_prob = 0.5f;
  options.config.commands.resample = 0.2f;
  options.config.action.delay_max = 0;
  LocoEnv env(options);
  const ObservationLayout& layout = env.layout().layout;
  const int width = env.obs_width();
  Rng rng(3);
  MlpNetwork network;
  network.inputs = width;
  network.branches.push_back(RandomLayers(&rng, width, {16, s.lower}));
  if (s.joints > s.lower) {
    network.branches.push_back(RandomLayers(&rng, width, {16, s.joints - s.lower}));
  }
  const auto graph = std::make_shared<const Graph>(MlpGraph(network, "obs", "actions"));
  const RobotSpec& spec = env.robot_model().spec();
  const std::vector<int> order = TaskOrder(spec);
  std::vector<Policy> policies;
  for (int i = 0; i < 4; ++i) {
    policies.emplace_back(graph, layout, PolicyRobot{spec.joints, spec.StandingPose().q});
  }
  LocoStep step = env.view();
  std::vector<float> actions(4 * s.joints);
  std::vector<Eigen::VectorXd> targets(4, Eigen::VectorXd::Zero(s.joints));
  for (int t = 0; t < 20; ++t) {
    for (int i = 0; i < 4; ++i) {
      if (step.flag[i] != kRunning) policies[i].Reset();
      const TaskRobot& r = env.robot();
      const FieldView qpos = env.physics().view(Field::kQpos),
                      qvel = env.physics().view(Field::kQvel),
                      torque = env.physics().view(Field::kTorque);
      ObservationInput in;
      in.q = in.qd = in.tau = in.q_ref = Eigen::VectorXd::Zero(s.joints);
      for (int j = 0; j < s.joints; ++j) {
        in.q[order[j]] = qpos(i, r.qpos[j]);
        in.qd[order[j]] = qvel(i, r.dof[j]);
        in.tau[order[j]] = torque(i, r.actuator[j]);
        if (j >= s.lower) in.q_ref[order[j]] = env.state(i).arms.ref[j - s.lower];
      }
      const Eigen::Quaterniond R_WB(qpos(i, 3), qpos(i, 4), qpos(i, 5), qpos(i, 6));
      in.g_B = R_WB.conjugate() * Eigen::Vector3d(0, 0, -1);
      for (int k = 0; k < 3; ++k) in.w_WB_B[k] = qvel(i, 3 + k);
      const TaskCommand& c = env.state(i).command;
      in.command.lin_vel << c.vx, c.vy;
      in.command.yaw_rate = c.yaw_rate;
      in.command.height = c.height;
      in.command.walk = c.walk;
      in.command.waist << c.waist[0], c.waist[1], c.waist[2];
      ASSERT_EQ(policies[i].Act(in, &targets[i]), PolicyStatus::kOk);
      for (int k = 0; k < width; ++k) {
        ASSERT_NEAR(policies[i].observation()[k], step.obs[i * width + k], 2e-5)
            << "step " << t << ", robot " << i << ", element " << k;
      }
      for (int j = 0; j < s.joints; ++j) {
        // the network's answer, in the layout's order of actions, which is the task's
        actions[i * s.joints + j] = static_cast<float>(policies[i].raw_action()[order[j]]);
      }
    }
    step = env.Step(actions);
    for (int i = 0; i < 4; ++i) {
      if (step.flag[i] != kRunning) continue;
      for (int j = 0; j < s.joints; ++j) {
        EXPECT_NEAR(env.physics().view(Field::kTarget)(i, env.robot().actuator[j]),
                    targets[i][order[j]],
                    1e-5);
      }
    }
  }
}

TEST_P(OtherRobots, StandForASecondUnderTheirServosAtTheTasksHeight) {
  const Shipped& s = GetParam();
  LocoEnvOptions options = OptionsOf(s, 8);
  options.config.episode.start_speed = 0;
  options.config.episode.start_legs = 0;
  options.config.push.force = 0;
  LocoEnv env(options);
  const std::vector<float> still(8 * s.joints, 0.0f);
  LocoStep step = env.view();
  int down = 0;
  for (int t = 0; t < 25; ++t) {
    step = env.Step(still);
    for (int e = 0; e < 8; ++e) {
      ASSERT_EQ(step.flag[e], kRunning) << "step " << t;
      down += step.contact_mode[e] == ContactMode::kDoubleSupport;
    }
  }
  EXPECT_GT(down, 8 * 15);
  const FieldView qpos = env.physics().view(Field::kQpos);
  for (int e = 0; e < 8; ++e) {
    EXPECT_NEAR(qpos(e, env.robot().base_qpos + 2), options.config.commands.height, 0.05);
  }
  EXPECT_EQ(env.num_diverged(), 0);
}

INSTANTIATE_TEST_SUITE_P(Shipped,
                         OtherRobots,
                         ::testing::Values(Shipped{"t1-stand", 29, 15, true},
                                           Shipped{"berkeley-stand", 12, 12, false}),
                         [](const auto& p) { return std::string(p.param.task, 0, 2); });

// Joints draw at a reset one after the other, those of the legs once more than the others; a group
// whose members each have a joint must not let two share a draw. The legs of a robot need not come
// first.
TEST(OtherRobots, DrawAtAResetJointAfterJointWhereverTheLegsAre) {
  LocoEnvOptions options = OptionsOf({"t1-stand", 29, 15, true}, 1);
  options.config.action.delay_max = 4;
  LocoSetup setup = MakeLocoSetup(options);
  TaskProgress progress = FirstProgress(options.config);
  setup.context.progress = &progress;
  TaskRobot& robot = setup.context.robot;
  for (int j = 0; j < robot.num_joints; ++j) robot.is_leg[j] = j < robot.num_lower && j % 3 != 0;
  CpuBatch batch(setup.compiled, 1, {});
  const PhysicsView view = ViewOf(&batch);
  for (std::uint32_t step = 0; step < 20; ++step) {
    progress.step = step;
    EnvState s = {};
    step::ClearEnv(setup.context, view, 0, SingleThread(), &s);
    step::PlaceEnv(setup.context, view, 0, SingleThread(), &s);
    const TaskConfig& c = setup.context.config;
    const auto& r = c.randomisation;
    Draw draw(options.seed, 0, step, DrawPurpose::kReset);
    EXPECT_EQ(s.push_wait, draw.Uniform(c.push.interval_min, c.push.interval_max));
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(view.qvel(0, robot.base_dof + i),
                draw.Uniform(-c.episode.start_speed, c.episode.start_speed));
    }
    for (int j = 0; j < robot.num_joints; ++j) {
      float q = j < robot.num_lower ? robot.default_q[j] : s.arms.ref[j - robot.num_lower];
      if (robot.is_leg[j]) q *= draw.Uniform(1 - c.episode.start_legs, 1 + c.episode.start_legs);
      EXPECT_EQ(view.qpos(0, robot.qpos[j]), q) << j;
      EXPECT_EQ(view.kp(0, robot.actuator[j]), robot.kp[j] * draw.Uniform(r.gain_min, r.gain_max));
      EXPECT_EQ(view.kd(0, robot.actuator[j]), robot.kd[j] * draw.Uniform(r.gain_min, r.gain_max));
    }
    EXPECT_EQ(view.delay(0, 0), static_cast<float>(draw.Index(c.action.delay_max + 1)));
  }
}

// A reference is followed only where the robot has hands and arms; a robot without has no such
// reward.
TEST(OtherRobots, WithoutArmsNothingIsPaidForThem) {
  LocoEnv env(OptionsOf({"berkeley-stand", 12, 12, false}, 2));
  for (int t = 0; t < 3; ++t) env.Step(NormalActions(24, t, 0.2));
  const LocoStats stats = env.TakeStats();
  for (int i = 0; i < kNumRewards; ++i) {
    if (kRewardTerms[i].agent == RewardAgent::kUpper) {
      EXPECT_EQ(stats.term[i], 0) << kRewardTerms[i].name;
    }
  }
  EXPECT_EQ(stats.arm_error_rms, 0);
}

std::string Refusal(const std::string& robot, const std::string& from, const std::string& to) {
  const std::string source = SourcePath("robots/" + robot + "/");
  std::string yaml = ReadFile(source + "robot.yaml");
  const std::size_t at = yaml.find(from);
  if (at == std::string::npos) return "the test's text is gone: " + from;
  yaml.replace(at, from.size(), to);
  const std::string model = "model: " + robot + ".xml";
  yaml.replace(yaml.find(model), model.size(), "model: " + source + robot + ".xml");
  const std::string file = ::testing::TempDir() + "other_robot.yaml";
  WriteFileAtomically(file, yaml);
  try {
    LocoEnvOptions options = OptionsOf({robot + "-stand", 0, 0, false}, 1);
    options.robot = file;
    LocoEnv env(options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

// What a task says of parts that a robot does not have.
TEST(OtherRobots, AreNotDisturbedWhereTheyHaveNothing) {
  const auto refusal = [](const std::string& task, const std::string& key) {
    LocoEnvOptions options = OptionsOf({task, 0, 0, false}, 1);
    SetTaskField(&options.config, key, "0.1");
    try {
      LocoEnv env(options);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  for (const std::string robot : {"t1", "berkeley"}) {
    for (const std::string key :
         {"push.torso_share", "randomisation.torso_mass_max", "randomisation.torso_com"}) {
      EXPECT_EQ(refusal(robot + "-stand", key),
                "task: " + key + ": 0.1, but " + robot +
                    " has no torso apart from its base (the second of `imus` would be in it); set "
                    "it to 0");
    }
  }
  EXPECT_EQ(refusal("berkeley-stand", "randomisation.hand_mass_max"),
            "task: randomisation.hand_mass_max: 0.1, but berkeley has no hands; set it to 0");
  EXPECT_EQ(refusal("t1-stand", "randomisation.hand_mass_max"), "no error");
}

// Pushes reach the base of a robot without hands, whose hands' places in the table are the base's
// too, as they reach any other's.
TEST(OtherRobots, WithoutHandsArePushedAtTheBaseAlone) {
  LocoEnvOptions options = OptionsOf({"berkeley-stand", 12, 12, false}, 4);
  options.config.push.interval_min = options.config.push.interval_max = 0.1f;
  LocoEnv env(options);
  const FieldView steps = env.physics().view(Field::kWrenchSteps);
  int pushed = 0;
  for (int t = 0; t < 20; ++t) {
    const LocoStep step = env.Step(NormalActions(4 * 12, t, 0.1));
    for (int e = 0; e < 4; ++e) {
      pushed += steps(e, kPushBase) > 0;
      EXPECT_EQ(steps(e, kPushLeftHand), 0);
      EXPECT_EQ(steps(e, kPushRightHand), 0);
      // what the critic sees of hand forces, after v_B 3, quaternion 4, height 1
      const float* privileged = &step.critic_obs[(e + 1) * env.critic_width() - kPrivilegedObs];
      for (int k = 8; k < 14; ++k) EXPECT_EQ(privileged[k], 0);
    }
  }
  EXPECT_GT(pushed, 4);
}

TEST(OtherRobots, ThatCannotBeTrainedAreToldWhy) {
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(Refusal("berkeley", "  lower: [left_leg, right_leg]", "  legs: [left_leg, right_leg]"),
         "the robot has no actor 'lower'");
  expect(Refusal("berkeley",
                 "  lower: [left_leg, right_leg]",
                 "  lower: [left_leg]\n  other: [right_leg]"),
         "actors: 'other' is neither 'lower' (legs) nor 'upper' (arms)");
  expect(Refusal("t1",
                 "  lower: [legs, Waist, head]\n  upper: [arms]",
                 "  lower: [legs, Waist]\n  upper: [arms, head]"),
         "actors.upper: 16 joints; at most 14 can follow a reference");
  expect(Refusal("berkeley", "imus:\n  torso: imu\n", ""), "it has no `imus`");
  expect(Refusal("berkeley", "  hip_yaw: [LL_HR, LR_HR]", "  hip_yaw: [LL_HR]"),
         "roles.hip_yaw: must be a list of two joints, left and right");
  expect(Refusal("berkeley", "  knee: [LL_KFE, LR_KFE]", "  knee: [LL_KFE, LR_KEF]"),
         "did you mean LR_KFE, ");
  expect(Refusal("berkeley", "  knee: [LL_KFE, LR_KFE]", "  knee: [LL_HR, LR_HR]"),
         "has two roles");
  expect(Refusal("t1", "Left_Elbow_Yaw: [-1.6, 0]", "Left_Elbow_Yaw: [0, -1.6]"),
         "the lowest angle is above the highest");
  expect(Refusal("t1", "base_height: 0.67585", "base_height: 0.9"), "episode.start_height: 0.69 m");
}

}  // namespace
}  // namespace silc
