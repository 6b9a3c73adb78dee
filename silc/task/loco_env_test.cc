// SPDX-License-Identifier: Apache-2.0
#include "silc/task/loco_env.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/rng.h"
#include "silc/robot/kinematics.h"
#include "silc/stiffness/contact_jacobian.h"

namespace silc {
namespace {

constexpr int kActorObs = 655;  // of layouts/g1_loco.yaml: 5 frames of 131

std::vector<float> RandomActions(int envs, std::uint32_t step, double size = 0.3) {
  std::vector<float> actions(static_cast<std::size_t>(envs) * kTaskJoints);
  for (int env = 0; env < envs; ++env) {
    Rng rng(99, static_cast<std::uint32_t>(env), step);
    for (int j = 0; j < kTaskJoints; ++j) {
      actions[static_cast<std::size_t>(env) * kTaskJoints + j] =
          static_cast<float>(size * rng.Normal());
    }
  }
  return actions;
}

// Everything a learner gets, as one string of bytes.
std::string Bytes(const LocoStep& s) {
  std::string out;
  const auto add = [&](const auto& span) {
    out.append(reinterpret_cast<const char*>(span.data()), span.size_bytes());
  };
  add(s.obs);
  add(s.critic_obs);
  add(s.reward);
  add(s.flag);
  add(s.contact_mode);
  add(s.jacobian);
  return out;
}

TEST(LocoEnv, ResultsDoNotDependOnTheNumberOfThreads) {
  constexpr int kRobots = 200;  // the last chunk is ragged
  std::string reference;
  for (const int threads : {1, 2, 3}) {
    LocoEnv env({.num_envs = kRobots, .threads = threads, .seed = 11, .samples = true});
    std::string bytes;
    for (int t = 0; t < 60; ++t) bytes += Bytes(env.Step(RandomActions(kRobots, t, 1.0)));
    const LocoStats stats = env.TakeStats();
    EXPECT_GT(stats.episodes, 0) << "no reset was tested";
    bytes += std::to_string(stats.term[0]) + std::to_string(stats.penalty_scale);
    if (reference.empty()) reference = bytes;
    EXPECT_TRUE(bytes == reference) << threads << " threads";
  }
}

// What is called for some robots as soon as they have made their step finds what all would have
// found after it, and is called once for each.
TEST(LocoEnv, TellsOfRobotsAsSoonAsTheyHaveMadeTheirStep) {
  constexpr int kRobots = 70;
  LocoEnv env({.num_envs = kRobots, .threads = 2, .samples = true});
  std::vector<float> obs(kRobots * kActorObs), reward(kRobots * 2);
  std::vector<int> calls(kRobots, 0);
  for (int t = 0; t < 3; ++t) {
    const LocoStep step = env.Step(RandomActions(kRobots, t), [&](int begin, int end) {
      const LocoStep seen = env.view();
      for (int i = begin; i < end; ++i) ++calls[i];
      std::copy_n(&seen.obs[begin * kActorObs], (end - begin) * kActorObs, &obs[begin * kActorObs]);
      std::copy_n(&seen.reward[2 * begin], 2 * (end - begin), &reward[2 * begin]);
    });
    EXPECT_EQ(calls, std::vector<int>(kRobots, t + 1));
    EXPECT_TRUE(std::equal(obs.begin(), obs.end(), step.obs.begin()));
    EXPECT_TRUE(std::equal(reward.begin(), reward.end(), step.reward.begin()));
  }
}

TEST(LocoEnv, ARobotDoesNotSeeItsNeighbours) {
  TaskConfig config;
  config.curriculum.penalty_rate = 0;  // the one thing that all robots share
  LocoEnv few({.config = config, .num_envs = 3, .seed = 4});
  LocoEnv many({.config = config, .num_envs = 90, .seed = 4});
  for (int t = 0; t < 30; ++t) {
    few.Step(RandomActions(3, t));
    many.Step(RandomActions(90, t));
    for (int i = 0; i < 3 * kActorObs; ++i) ASSERT_EQ(few.view().obs[i], many.view().obs[i]) << t;
    for (int i = 0; i < 6; ++i) ASSERT_EQ(few.view().reward[i], many.view().reward[i]) << t;
  }
}

TEST(LocoEnv, SeedsDiffer) {
  LocoEnv a({.num_envs = 2, .seed = 1}), b({.num_envs = 2, .seed = 2});
  EXPECT_NE(Bytes(a.view()), Bytes(b.view()));
}

TEST(LocoEnv, SavedAndLoadedGoesOnAsIfNothingHadHappened) {
  const auto make = [] { return LocoEnv({.num_envs = 40, .seed = 3, .samples = true}); };
  LocoEnv env = make(), other = make();
  for (int t = 0; t < 25; ++t) env.Step(RandomActions(40, t));
  const std::string saved = env.Save();
  for (int t = 0; t < 5; ++t) other.Step(RandomActions(40, 1000 + t));  // somewhere else entirely
  other.Load(saved);
  EXPECT_TRUE(Bytes(env.view()).substr(0, 40 * kActorObs) ==
              Bytes(other.view()).substr(0, 40 * kActorObs));
  for (int t = 25; t < 60; ++t) {
    const std::string a = Bytes(env.Step(RandomActions(40, t)));
    ASSERT_TRUE(a == Bytes(other.Step(RandomActions(40, t)))) << t;
  }
  EXPECT_TRUE(env.Save() == other.Save());
  EXPECT_THROW(other.Load(saved.substr(0, saved.size() - 1)), RunError);
  EXPECT_THROW(LocoEnv({.num_envs = 40, .seed = 4}).Load(saved), RunError);
}

// A state no physics comes back from, put into one robot: the learner sees the price of a fall and
// a fresh robot; the neighbours see nothing; the log says where it was.
TEST(LocoEnv, ADivergedRobotIsResetCountedAndNeverSeen) {
  const float bad_values[] = {
      std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e7f};
  for (const float bad : bad_values) {
    LocoEnv env({.num_envs = 20, .seed = 6, .samples = true, .stagger = false});
    LocoEnv twin({.num_envs = 20, .seed = 6, .samples = true, .stagger = false});
    const auto actions = RandomActions(20, 0);
    for (int t = 0; t < 3; ++t) {
      env.Step(actions);
      twin.Step(actions);
    }
    env.physics().view(Field::kQvel)(7, 12) = bad;
    const LocoStep step = env.Step(actions);
    twin.Step(actions);
    EXPECT_EQ(step.flag[7], kFailed | kDiverged);
    EXPECT_FLOAT_EQ(step.reward[14], -250 * 0.02f);
    EXPECT_EQ(step.reward[15], 0);
    for (const float x : step.obs) ASSERT_TRUE(std::isfinite(x));
    for (const float x : step.critic_obs) ASSERT_TRUE(std::isfinite(x));
    for (const float x : step.jacobian) ASSERT_TRUE(std::isfinite(x));
    EXPECT_EQ(env.num_diverged(), 1);
    ASSERT_EQ(env.diverged().size(), 1u);
    EXPECT_EQ(env.diverged()[0].env, 7);
    EXPECT_EQ(env.diverged()[0].step, 4u);
    EXPECT_EQ(env.diverged()[0].seed, 6u);
    EXPECT_EQ(env.diverged()[0].action[3], actions[7 * kTaskJoints + 3]);
    for (int i = 0; i < 20 * kActorObs; ++i) {
      if (i / kActorObs == 7) continue;
      ASSERT_EQ(step.obs[i], twin.view().obs[i]);
    }
    // and it lives on
    for (int t = 0; t < 5; ++t) env.Step(actions);
    EXPECT_EQ(env.state(7).k, 5);
    EXPECT_EQ(env.num_diverged(), 1);
  }
}

// A policy that has diverged is told by robot and step, and not by the falls that would follow.
TEST(LocoEnv, AnActionThatIsNoNumberNamesItsRobotAndStep) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    LocoEnv env({.num_envs = 70, .threads = 2});
    for (int t = 0; t < 3; ++t) env.Step(RandomActions(70, t));
    std::vector<float> actions = RandomActions(70, 3);
    actions[66 * kTaskJoints + 5] = bad;
    actions[68 * kTaskJoints] = bad;
    try {
      env.Step(actions);
      FAIL() << bad;
    } catch (const RunError& error) {
      EXPECT_NE(std::string(error.what()).find("robot 66 at control step 4 is not finite"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(LocoEnv, FallsAndTimeOutsEndEpisodesAndMoveTheCurricula) {
  TaskConfig config;
  config.episode.length = 0.2f;  // 10 steps: time-outs before the falls
  config.curriculum.penalty_window = 0.5f;
  config.curriculum.penalty_rate = 0.1f;
  LocoEnv env({.config = config, .num_envs = 8, .stagger = false});
  const std::vector<float> zero(8 * kTaskJoints, 0.0f);
  for (int t = 1; t <= 9; ++t) {
    for (const auto flag : env.Step(zero).flag) ASSERT_EQ(flag, kRunning);
  }
  const float force_before = env.state(0).force_scale;
  const LocoStep out = env.Step(zero);
  for (const auto flag : out.flag) EXPECT_EQ(flag, kTimedOut);
  EXPECT_EQ(env.state(0).k, 0);
  EXPECT_FLOAT_EQ(env.state(0).force_scale, force_before + 0.02f);
  EXPECT_FLOAT_EQ(env.state(0).height_scale, 0.12f);
  const LocoStats stats = env.TakeStats();
  EXPECT_EQ(stats.episodes, 8);
  EXPECT_EQ(stats.failures, 0);
  EXPECT_NEAR(stats.episode_length, 0.2, 1e-6);
  EXPECT_FLOAT_EQ(static_cast<float>(stats.penalty_scale), 0.11f);  // all survived: 0.1 · (1 + 0.1)

  // lying on its side is a fall, and costs
  const FieldView qpos = env.physics().view(Field::kQpos);
  qpos(3, 3) = qpos(3, 4) = std::sqrt(0.5f);
  const float scale = env.state(3).force_scale;
  const LocoStep fallen = env.Step(zero);
  EXPECT_EQ(fallen.flag[3], kFailed);
  EXPECT_LT(fallen.reward[6], -4);
  EXPECT_FLOAT_EQ(env.state(3).force_scale, scale - 0.02f);
  EXPECT_EQ(fallen.flag[2], kRunning);
}

TEST(LocoEnv, EpisodesThatBeganOldAndTimeOutMoveNoCurriculum) {
  TaskConfig config;
  config.episode.length = 0.2f;
  LocoEnv env({.config = config, .num_envs = 30});
  const std::vector<float> zero(30 * kTaskJoints, 0.0f);
  for (int t = 0; t < 9; ++t) env.Step(zero);
  const LocoStats stats = env.TakeStats();
  EXPECT_GT(stats.episodes, 15);  // ages are spread over the ten steps
  EXPECT_FLOAT_EQ(static_cast<float>(stats.force_scale), 0.1f);
  EXPECT_FLOAT_EQ(static_cast<float>(stats.penalty_scale), 0.1f);
}

TEST(LocoEnv, RandomisationIsDrawnPerRobotInsideItsRanges) {
  LocoEnv env({.num_envs = 50});
  const TaskRobot& r = env.robot();
  const TaskConfig::Randomisation c;
  const FieldView friction = env.physics().view(Field::kFriction),
                  kp = env.physics().view(Field::kKp),
                  inertia = env.physics().view(Field::kInertia),
                  delay = env.physics().view(Field::kDelay);
  double lightest = 1e9, heaviest = 0, slippery = 1e9, sticky = 0;
  int delays[5] = {};
  for (int e = 0; e < 50; ++e) {
    const double mu = friction(e, 0) * r.sole_friction;
    EXPECT_GE(mu, c.friction_min - 1e-6);
    EXPECT_LE(mu, c.friction_max + 1e-6);
    slippery = std::min(slippery, mu);
    sticky = std::max(sticky, mu);
    double mass = 0;
    for (int i = 0; i < inertia.width; i += 10) mass += inertia(e, i);
    lightest = std::min(lightest, mass);
    heaviest = std::max(heaviest, mass);
    for (int j = 0; j < kTaskJoints; ++j) {
      const double gain = kp(e, r.actuator[j]) / r.kp[j];
      EXPECT_GE(gain, 0.9 - 1e-6);
      EXPECT_LE(gain, 1.1 + 1e-6);
    }
    ASSERT_LE(delay(e, 0), 4);
    ++delays[static_cast<int>(delay(e, 0))];
  }
  EXPECT_LT(slippery, 0.6);
  EXPECT_GT(sticky, 1.0);
  // nominal 33.3 kg; pelvis −1 … +3 kg and 9 links at 0.9 … 1.2
  EXPECT_LT(lightest, 35);
  EXPECT_GT(heaviest, 35.5);
  for (const int n : delays) EXPECT_GT(n, 0);
}

// (S5) of the sample against MuJoCo's Jacobians at the same state, in double precision.
TEST(LocoEnv, SampleJacobiansAreTheContactConsistentOnes) {
  LocoEnv env({.num_envs = 16, .seed = 8, .samples = true, .stagger = false});
  int seen[4] = {};
  for (int t = 0; t < 40; ++t) {
    const LocoStep step = env.Step(RandomActions(16, t, 0.5));
    for (int e = 0; e < 16; ++e) {
      const ContactMode mode = step.contact_mode[e];
      if (mode == kModeUnknown) continue;
      if (++seen[static_cast<int>(mode)] > 6) continue;
      const RobotModel& robot = env.robot_model();
      const MjDataPtr data = robot.MakeData();
      // masses differ from robot to robot: the centre of mass is compared to the physics' own below
      const FieldView qpos = env.physics().view(Field::kQpos);
      for (int i = 0; i < robot.model()->nq; ++i) data->qpos[i] = qpos(e, i);
      mj_kinematics(robot.model(), data.get());
      mj_comPos(robot.model(), data.get());
      BodyJacobians body;
      ComputeBodyJacobians(robot, data.get(), &body);
      ContactKinematics expected;
      ASSERT_EQ(ComputeContactKinematics(body, mode, nullptr, &expected), StiffnessStatus::kOk);
      using Rows = Eigen::Matrix<float, Eigen::Dynamic, kTaskJoints, Eigen::RowMajor>;
      const Eigen::MatrixXd sample =
          Eigen::Map<const Rows>(
              &step.jacobian[e * SampleSize(kTaskJoints)], SampleRows::kEnd, kTaskJoints)
              .cast<double>();
      for (int h = 0; h < 2; ++h) {
        // float kinematics over a chain of 10 joints of lengths below 1 m
        const Eigen::MatrixXd off =
            sample.middleRows(SampleRows::kHandOnBase + 3 * h, 3) - expected.hand_on_base[h];
        EXPECT_LT(off.norm(), 2e-5) << "hand " << h << ", " << Name(mode);
      }
      const Eigen::MatrixXd closing = sample.middleRows(SampleRows::kClosing, 6);
      if (mode == ContactMode::kDoubleSupport) {
        EXPECT_LT((closing * expected.N).norm(), 2e-5);
        EXPECT_EQ(Eigen::FullPivLU<Eigen::MatrixXd>(closing).rank(), 6);
      } else {
        EXPECT_EQ(closing.norm(), 0);
      }
      Eigen::MatrixXd turned = sample.middleRows(SampleRows::kGravity, 3) - expected.E;
      if (expected.closed) turned = turned * expected.N;
      EXPECT_LT(turned.norm(), 2e-5) << "gravity, " << Name(mode);
      if (mode == ContactMode::kFlight) {
        EXPECT_EQ(sample.middleRows(SampleRows::kCom, 3).norm(), 0);
      } else {
        EXPECT_GT(sample.middleRows(SampleRows::kCom, 3).norm(), 0.1);
      }
    }
  }
  for (const ContactMode mode :
       {ContactMode::kDoubleSupport, ContactMode::kLeftSupport, ContactMode::kRightSupport}) {
    EXPECT_GT(seen[static_cast<int>(mode)], 0) << Name(mode) << " was not met";
  }
}

TEST(LocoEnv, TheSamplesCentreOfMassIsMuJoCosAtNominalMasses) {
  TaskConfig config;
  config.randomisation.mass_min = config.randomisation.mass_max = 1;
  config.randomisation.pelvis_mass_min = config.randomisation.pelvis_mass_max = 0;
  LocoEnv env({.config = config, .num_envs = 4, .seed = 8, .samples = true, .stagger = false});
  const LocoStep step = [&] {
    for (int t = 0; t < 4; ++t) env.Step(RandomActions(4, t, 0.5));
    return env.view();
  }();
  const RobotModel& robot = env.robot_model();
  for (int e = 0; e < 4; ++e) {
    ASSERT_NE(step.contact_mode[e], kModeUnknown);
    const MjDataPtr data = robot.MakeData();
    for (int i = 0; i < robot.model()->nq; ++i)
      data->qpos[i] = env.physics().view(Field::kQpos)(e, i);
    mj_kinematics(robot.model(), data.get());
    mj_comPos(robot.model(), data.get());
    BodyJacobians body;
    ComputeBodyJacobians(robot, data.get(), &body);
    ContactKinematics expected;
    ComputeContactKinematics(body, step.contact_mode[e], nullptr, &expected);
    for (int row = 0; row < 3; ++row) {
      Eigen::RowVectorXd ours(kTaskJoints);
      for (int j = 0; j < kTaskJoints; ++j) {
        ours[j] =
            step.jacobian[e * SampleSize(kTaskJoints) + (SampleRows::kCom + row) * kTaskJoints + j];
      }
      if (step.contact_mode[e] == ContactMode::kFlight) continue;
      Eigen::MatrixXd difference = ours - expected.com.row(row);
      if (expected.closed) difference = difference * expected.N;
      EXPECT_LT(difference.norm(), 2e-5) << "row " << row;
    }
  }
}

// The wrench about the hand's centre of mass is the force at a point of the hand: MuJoCo maps both
// to the same generalised force.
TEST(LocoEnv, HandForcesActOnTheHand) {
  TaskConfig config;
  config.curriculum.force_start = 1;
  LocoEnv env({.config = config, .num_envs = 8, .seed = 12, .stagger = false});
  const RobotModel& robot = env.robot_model();
  const mjModel* m = robot.model();
  const auto actions = RandomActions(8, 0);
  env.Step(actions);
  for (int e = 0; e < 8; ++e) {  // none in the first step: where the hand is was not known
    for (int h = 0; h < 2; ++h) EXPECT_EQ(env.state(e).hand_force.force[h][2], 0);
  }
  std::vector<MjDataPtr> before;
  for (int e = 0; e < 8; ++e) {
    before.push_back(robot.MakeData());
    for (int i = 0; i < m->nq; ++i) {
      before[e]->qpos[i] = env.physics().view(Field::kQpos)(e, i);
    }
    mj_kinematics(m, before[e].get());
    mj_comPos(m, before[e].get());
  }
  env.Step(actions);
  double largest = 0;
  for (int e = 0; e < 8; ++e) {
    for (int h = 0; h < 2; ++h) {
      const HandForceState& state = env.state(e).hand_force;
      const int body = robot.hand_body()[h];
      // between the wrist end and the tip of the hand, mirrored
      const double side = h == 0 ? 1 : -1, r = state.along[h];
      const Eigen::Vector3d p_H(
          0.0415 + r * (0.18 - 0.0415), side * (0.003 + r * (-0.025 - 0.003)), 0);
      const mjData& d = *before[e];
      const Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>> R(d.xmat + 9 * body);
      const Eigen::Vector3d point = Eigen::Map<const Eigen::Vector3d>(d.xpos + 3 * body) + R * p_H;
      double wrench[6], force[3], zero[3] = {0, 0, 0};
      for (int k = 0; k < 6; ++k) {
        wrench[k] = env.physics().view(Field::kWrench)(e, 6 * (kPushLeftHand + h) + k);
      }
      for (int k = 0; k < 3; ++k) {
        force[k] = state.force[h][k];
        EXPECT_FLOAT_EQ(static_cast<float>(wrench[k]), state.force[h][k]);
      }
      std::vector<double> expected(m->nv, 0.0), applied(m->nv, 0.0);
      mj_applyFT(m, before[e].get(), force, zero, point.data(), body, expected.data());
      mj_applyFT(m, before[e].get(), wrench, wrench + 3, d.xipos + 3 * body, body, applied.data());
      for (int i = 0; i < m->nv; ++i) {
        EXPECT_NEAR(applied[i], expected[i], 1e-4);  // float poses and forces of up to 50 N
        largest = std::max(largest, std::abs(expected[i]));
      }
    }
  }
  EXPECT_GT(largest, 1);
}

// The two physics agree for the first control steps: same targets, forces, resets, observations.
TEST(LocoEnv, TheBatchAndMuJoCoTellTheSameStory) {
  TaskConfig config;
  config.curriculum.force_start = 1;
  config.push.force = 100;
  config.push.interval_min = config.push.interval_max = 0.1f;
  config.push.torso_share = 0.5f;
  config.push.kick_velocity = 0.5f;
  config.push.kick_turn = 0.5f;
  config.push.kick_interval = 0.1f;
  config.noise.joint_pos_bias = 0.02f;
  config.randomisation.strength_min = 0.8f;
  config.randomisation.hand_mass_max = 1;
  config.randomisation.torso_com = 0.02f;
  LocoEnv batch({.config = config, .num_envs = 6, .seed = 2, .samples = true});
  LocoEnv mujoco(
      {.config = config, .backend = "mujoco", .num_envs = 6, .seed = 2, .samples = true});
  ASSERT_TRUE(Bytes(batch.view()) == Bytes(mujoco.view()));
  for (int t = 0; t < 8; ++t) {
    const LocoStep a = batch.Step(RandomActions(6, t)), b = mujoco.Step(RandomActions(6, t));
    for (int i = 0; i < 6 * kActorObs; ++i) {
      // float against double over 4 · 8 substeps with contact: 1e-6 grows a hundredfold
      ASSERT_NEAR(a.obs[i], b.obs[i], 2e-3) << "step " << t << " element " << i % 131;
    }
    for (int i = 0; i < 12; ++i) ASSERT_NEAR(a.reward[i], b.reward[i], 5e-3) << t;
    for (int i = 0; i < 6; ++i) ASSERT_EQ(a.contact_mode[i], b.contact_mode[i]) << t;
  }
}

TEST(LocoEnv, UnknownBackendsAndTooLongDelaysAreRefused) {
  EXPECT_THROW(LocoEnv({.backend = "bacth"}), ConfigError);
  TaskConfig config;
  config.action.delay_max = 5;
  EXPECT_THROW(LocoEnv({.config = config}), ConfigError);
}

}  // namespace
}  // namespace silc
