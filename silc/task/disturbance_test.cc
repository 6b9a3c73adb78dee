// SPDX-License-Identifier: Apache-2.0
// Pushes, kicks, payload, motor strength and sensor bias: what a task draws beside its commands.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "silc/task/loco_env.h"

namespace silc {
namespace {

// One robot after its reset, on which BeginStep() can be called as often as one likes: the physics
// does not run, so that what changes is what the task did.
struct Still {
  explicit Still(const TaskConfig& config, int envs = 1)
      : setup(MakeLocoSetup({.config = config, .num_envs = envs})),
        batch(setup.compiled, envs, {}),
        view(ViewOf(&batch)),
        states(envs) {
    progress = FirstProgress(config);
    setup.context.progress = &progress;
    std::vector<float> obs(setup.context.observation.width),
        critic(setup.context.observation.critic_width());
    StepOutput out{};
    out.actor_obs = obs.data();
    out.critic_obs = critic.data();
    for (int e = 0; e < envs; ++e) StartEnv(setup.context, view, e, false, &states[e], &out);
  }
  void Begin(int env) {
    const std::vector<float> zero(kTaskJoints, 0.0f);
    ++progress.step;
    ASSERT_TRUE(BeginStep(setup.context, view, env, zero.data(), &states[env]));
  }
  LocoSetup setup;
  CpuBatch batch;
  PhysicsView view;
  TaskProgress progress;
  std::vector<EnvState> states;
};

TaskConfig Quiet() {
  TaskConfig config;
  config.noise = {.joint_pos = 0, .joint_vel = 0, .torque = 0};
  config.hand_force = {.max_x = 0, .max_y = 0, .max_up = 0, .max_down = 0};
  return config;
}

TEST(Disturbance, PushesActOnPelvisAndTorsoInTheirShares) {
  TaskConfig config = Quiet();
  config.push = {.force = 600,
                 .min_share = 1,
                 .duration = 0.08f,
                 .interval_min = 0.1f,
                 .interval_max = 0.1f,
                 .torso_share = 0.3f};
  config.curriculum.force_start = 0.5f;
  Still still(config);
  const PhysicsView& view = still.view;
  ASSERT_EQ(still.batch.model().pushes.back(), "torso_link");
  int on[kMaxTaskPushes] = {};
  double sum_x = 0;
  for (int t = 0; t < 8000; ++t) {
    for (int body = 0; body < kMaxTaskPushes; ++body) view.wrench_steps(0, body) = 0;
    still.Begin(0);
    for (const int body : {kPushBase, kPushTorso}) {
      if (view.wrench_steps(0, body) == 0) continue;
      ++on[body];
      EXPECT_EQ(view.wrench_steps(0, body), 16);  // 0.08 s of 5 ms
      const float x = view.wrench(0, 6 * body), y = view.wrench(0, 6 * body + 1);
      EXPECT_NEAR(std::hypot(x, y), 300, 1e-3);  // the curriculum's half of 600 N
      EXPECT_EQ(view.wrench(0, 6 * body + 2), 0);
      sum_x += x;
    }
  }
  const double pushes = on[kPushBase] + on[kPushTorso];
  EXPECT_GT(pushes, 1000);  // every 0.1 s of 160 s
  // four standard deviations of a coin of 0.3, and of the mean of 300 cos(angle)
  EXPECT_NEAR(on[kPushTorso] / pushes, 0.3, 4 * std::sqrt(0.21 / pushes));
  EXPECT_NEAR(sum_x / pushes, 0, 4 * 300 / std::sqrt(2 * pushes));
}

TEST(Disturbance, KicksMoveTheVelocityAtTheirRateAndNoFurtherThanTheCurriculumAllows) {
  TaskConfig config = Quiet();
  config.push.kick_velocity = 1.0f;
  config.push.kick_turn = 0.5f;
  config.push.kick_interval = 0.5f;  // one step in 25
  config.curriculum.force_start = 0.4f;
  Still still(config);
  const int dof = still.setup.context.robot.base_dof;
  int kicks = 0;
  double farthest = 0, fastest = 0;
  constexpr int kSteps = 20000;
  for (int t = 0; t < kSteps; ++t) {
    for (int k = 0; k < 6; ++k) still.view.qvel(0, dof + k) = 0;
    still.Begin(0);
    const double size = std::hypot(still.view.qvel(0, dof), still.view.qvel(0, dof + 1));
    if (size == 0) continue;
    ++kicks;
    farthest = std::max(farthest, size);
    EXPECT_EQ(still.view.qvel(0, dof + 2), 0);
    for (int k = 3; k < 6; ++k) {
      fastest = std::max(fastest, double(std::abs(still.view.qvel(0, dof + k))));
    }
  }
  EXPECT_NEAR(kicks, kSteps / 25.0, 4 * std::sqrt(kSteps / 25.0));
  EXPECT_LE(farthest, 0.4 + 1e-6);
  EXPECT_GT(farthest, 0.38);
  EXPECT_LE(fastest, 0.2 + 1e-6);
  EXPECT_GT(fastest, 0.19);
}

TEST(Disturbance, AStandingRobotMayStepForAsLongAsARecoveryTakes) {
  TaskConfig config = Quiet();
  config.push = {.force = 600, .interval_min = 1, .interval_max = 1, .recovery = 0.5f};
  Still still(config);
  const float dt = still.setup.context.robot.control_dt;
  float since = -1;  // [s] since the last push; none yet
  int pushes = 0, unsettled = 0;
  for (int t = 0; t < 500; ++t) {
    still.view.wrench_steps(0, kPushBase) = 0;
    still.Begin(0);
    const bool pushed = still.view.wrench_steps(0, kPushBase) > 0;
    pushes += pushed ? 1 : 0;
    since = pushed ? 0 : since < 0 ? since : since + dt;
    const float left = still.states[0].unsettled;
    EXPECT_NEAR(left, since < 0 ? 0 : std::max(0.0f, 0.5f - since), 1e-4f) << t;
    unsettled += left > 0.5f * dt ? 1 : 0;
  }
  EXPECT_GT(pushes, 5);
  EXPECT_NEAR(unsettled, pushes * 25, 25);
}

TEST(Disturbance, StrengthScalesKpAndKdOfAMotorTogether) {
  TaskConfig config;
  config.randomisation.gain_min = config.randomisation.gain_max = 1;
  config.randomisation.strength_min = 0.7f;
  config.randomisation.strength_max = 1.2f;
  Still still(config, 20);
  const TaskRobot& r = still.setup.context.robot;
  double low = 9, high = 0;
  for (int e = 0; e < 20; ++e) {
    for (int j = 0; j < kTaskJoints; ++j) {
      const double kp = still.view.kp(e, r.actuator[j]) / r.kp[j];
      EXPECT_NEAR(still.view.kd(e, r.actuator[j]) / r.kd[j], kp, 1e-6);
      low = std::min(low, kp);
      high = std::max(high, kp);
    }
  }
  EXPECT_GE(low, 0.7 - 1e-6);
  EXPECT_LT(low, 0.72);
  EXPECT_LE(high, 1.2 + 1e-6);
  EXPECT_GT(high, 1.18);
}

TEST(Disturbance, PayloadIsOnTorsoAndHandsAndMovesNothingElse) {
  TaskConfig config;
  const LocoSetup plain = MakeLocoSetup({.config = config, .seed = 3});
  config.randomisation.torso_mass_min = 1;
  config.randomisation.torso_mass_max = 5;
  config.randomisation.hand_mass_max = 2;
  config.randomisation.torso_com = 0.03f;
  const LocoSetup loaded = MakeLocoSetup({.config = config, .seed = 3});
  std::set<double> torso_mass;
  for (int env = 0; env < 10; ++env) {
    const StartupDraw a = DrawStartup(plain, env), b = DrawStartup(loaded, env);
    EXPECT_EQ(a.friction_scale, b.friction_scale);
    EXPECT_TRUE(a.com.empty());
    ASSERT_EQ(b.com.size(), 3 * b.mass.size());
    for (std::size_t i = 0; i < a.mass.size(); ++i) {
      const BatchBody& body = plain.compiled.bodies[i];
      const double more = b.mass[i] - a.mass[i];
      const double moved = std::hypot(b.com[3 * i] - body.com[0],
                                      b.com[3 * i + 1] - body.com[1],
                                      b.com[3 * i + 2] - body.com[2]);
      if (body.name == "torso_link") {
        EXPECT_GE(more, 1);
        EXPECT_LE(more, 5);
        EXPECT_GT(moved, 0);
        EXPECT_LE(moved, 0.03 * std::sqrt(3.0) + 1e-6);
        torso_mass.insert(more);
      } else {
        EXPECT_EQ(moved, 0);
        const bool hand = body.name.find("_wrist_yaw_link") != std::string::npos;
        EXPECT_GE(more, 0);
        EXPECT_LE(more, hand ? 2 : 0) << body.name;
      }
    }
  }
  EXPECT_EQ(torso_mass.size(), 10u);
}

// The actor's newest frame less the critic's clean one, without noise: the bias.
std::vector<float> Biases(const LocoEnv& env, int robot) {
  const LocoStep s = env.view();
  const int frame = env.critic_width() - kPrivilegedObs;
  std::vector<float> out(frame);
  for (int e = 0; e < frame; ++e) {
    out[e] = s.obs[(robot + 1) * env.obs_width() - frame + e] -
             s.critic_obs[robot * env.critic_width() + e];
  }
  return out;
}

TEST(Disturbance, BiasStaysForAnEpisodeAndReachesTheActorsSensorsAlone) {
  TaskConfig config = Quiet();
  config.episode.length = 0.2f;  // ten steps
  LocoEnv clean({.config = config, .num_envs = 2, .seed = 5, .stagger = false});
  config.noise.joint_pos_bias = 0.02f;
  config.noise.gravity_bias = 0.05f;
  config.noise.base_ang_vel_bias = 0.2f;
  LocoEnv env({.config = config, .num_envs = 2, .seed = 5, .stagger = false});
  const std::vector<float> zero(2 * kTaskJoints, 0.0f);
  std::vector<std::vector<float>> of_episode;
  for (int t = 0; t < 20; ++t) {
    const std::vector<float> now = Biases(env, 0);
    if (t % 10 == 0) of_episode.push_back(now);
    // float observations of up to 1: a difference of two has some 1e-7
    for (std::size_t e = 0; e < now.size(); ++e) EXPECT_NEAR(now[e], of_episode.back()[e], 1e-6);
    // what the robot does and what the critic sees is the same without
    for (int i = 0; i < 2 * env.critic_width(); ++i) {
      ASSERT_EQ(env.view().critic_obs[i], clean.view().critic_obs[i]) << t;
    }
    env.Step(zero);
    clean.Step(zero);
  }
  ASSERT_EQ(of_episode.size(), 2u);
  const ObservationTable& table = env.layout().table;
  int biased = 0, changed = 0, differs = 0;
  const std::vector<float> other = Biases(env, 1), present = Biases(env, 0);
  for (int e = 0; e < table.frame_width(); ++e) {
    const ObservationEntry<double>& entry = table.entries[e];
    const double limit = entry.source == TermSource::kJointPos           ? 0.02
                         : entry.source == TermSource::kProjectedGravity ? 0.05
                         : entry.source == TermSource::kBaseAngVel       ? 0.2
                                                                         : 0;
    EXPECT_LE(std::abs(of_episode[0][e]), limit * entry.scale + 1e-6) << e;
    if (limit == 0) continue;
    biased += std::abs(of_episode[0][e]) > 1e-5;
    changed += std::abs(of_episode[0][e] - of_episode[1][e]) > 1e-6;
    differs += std::abs(present[e] - other[e]) > 1e-6;
  }
  EXPECT_GE(biased, 33);  // of 35
  EXPECT_GE(changed, 33);
  EXPECT_GE(differs, 33);
}

}  // namespace
}  // namespace silc
