// SPDX-License-Identifier: Apache-2.0
#include "silc/task/cuda_loco_env.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "silc/base/rng.h"
#include "silc/physics/cuda_batch.h"
#include "silc/physics/device_array.h"
#include "silc/task/loco_env.h"

namespace silc {
namespace {

constexpr int kRobots = 300;  // ragged against warps

std::vector<float> RandomActions(int step, double size, int joints = kTaskJoints) {
  Rng rng(5, static_cast<std::uint32_t>(step));
  std::vector<float> actions(static_cast<std::size_t>(kRobots) * joints);
  for (float& a : actions) a = static_cast<float>(size * rng.Normal());
  return actions;
}

// What a learner gets, on the host.
struct Copy {
  std::vector<float> obs, critic_obs, reward, com, hand_on_base, closing, gravity;
  std::vector<std::uint8_t> done, timed_out;
  std::vector<ContactMode> mode;
};

Copy Fetch(CudaLocoEnv* env) {
  constexpr std::size_t n = kRobots;
  const TaskObservation observation = env->layout().view();
  const std::size_t joints = env->robot().num_joints;
  DeviceArray<float> obs(n * observation.width), critic(n * observation.critic_width()),
      reward(n * 2), com(n * 3 * joints), hand_on_base(n * 6 * joints), closing(n * 6 * joints),
      gravity(n * 3 * joints);
  DeviceArray<std::uint8_t> done(n), timed_out(n);
  DeviceArray<ContactMode> mode(n);
  env->Deliver({.obs = obs.get(),
                .obs_stride = observation.width,
                .critic_obs = critic.get(),
                .critic_obs_stride = observation.critic_width(),
                .reward = reward.get(),
                .agents = 2,
                .done = done.get(),
                .timed_out = timed_out.get(),
                .mode = mode.get(),
                .com = com.get(),
                .hand_on_base = hand_on_base.get(),
                .closing = closing.get(),
                .gravity = gravity.get()});
  Copy c;
  const auto get = [&](const auto& array, auto* to) {
    to->resize(array.size());
    array.Download(to->data(), env->stream());
  };
  get(obs, &c.obs);
  get(critic, &c.critic_obs);
  get(reward, &c.reward);
  get(com, &c.com);
  get(hand_on_base, &c.hand_on_base);
  get(closing, &c.closing);
  get(gravity, &c.gravity);
  get(done, &c.done);
  get(timed_out, &c.timed_out);
  get(mode, &c.mode);
  CudaCheck(cudaStreamSynchronize(env->stream()), "test");
  return c;
}

class CudaLocoEnvTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CudaAvailable()) GTEST_SKIP() << "no GPU answers";
  }
};

void StepBoth(LocoEnv* cpu, CudaLocoEnv* gpu, const std::vector<float>& actions) {
  DeviceArray<float> device(actions.size());
  device.Upload(actions.data(), gpu->stream());
  gpu->Step(device.get());
  cpu->Step(actions);
  CudaCheck(cudaStreamSynchronize(gpu->stream()), "test");
}

// Robots whose numbers differ by more than `tolerance` of max(1, |value|).
int Differing(std::span<const float> a, std::span<const float> b, double tolerance) {
  EXPECT_EQ(a.size(), b.size());
  const std::size_t width = a.size() / kRobots;
  int robots = 0;
  for (std::size_t env = 0; env < kRobots; ++env) {
    bool differs = false;
    for (std::size_t i = env * width; i < (env + 1) * width; ++i) {
      differs |= !(std::abs(a[i] - b[i]) <= tolerance * std::max(1.0f, std::abs(b[i])));
    }
    robots += differs;
  }
  return robots;
}

class CudaLocoEnvOf : public CudaLocoEnvTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(CudaLocoEnvOf, TellsTheCpusStory) {
  const TaskFile task = ReadTaskFile(FindTaskFile(GetParam()));
  LocoEnvOptions options = {.num_envs = kRobots, .seed = 3, .samples = true};
  options.config = task.config;
  options.layout = ReadTaskLayout(task.layout);
  options.robot = task.robot;
  LocoEnv cpu(options);
  const int joints = cpu.robot().num_joints;
  CudaLocoEnv gpu(options, nullptr);
  const Copy start = Fetch(&gpu);
  // nothing but the same draws and sines so far
  EXPECT_EQ(Differing(start.obs, cpu.view().obs, 1e-5), 0);
  EXPECT_EQ(Differing(start.critic_obs, cpu.view().critic_obs, 1e-5), 0);
  for (int t = 1; t <= 5; ++t) {
    StepBoth(&cpu, &gpu, RandomActions(t, 0.5, joints));
    const LocoStep c = cpu.view();
    const Copy g = Fetch(&gpu);
    // 20 ms are four impacts at most; float rounding grows with each, and a foot that just touches
    // for one of the two is a discontinuity, hence a share of robots
    const int allowed = kRobots * t / 50;
    EXPECT_LE(Differing(g.obs, c.obs, 2e-3), allowed) << t;
    EXPECT_LE(Differing(g.critic_obs, c.critic_obs, 2e-3), allowed) << t;
    EXPECT_LE(Differing(g.reward, c.reward, 2e-3), allowed) << t;
    int modes = 0, ends = 0;
    for (int env = 0; env < kRobots; ++env) {
      modes += g.mode[env] != c.contact_mode[env];
      ends += g.done[env] != (c.flag[env] != kRunning);
    }
    EXPECT_LE(modes, allowed) << t;
    EXPECT_LE(ends, allowed) << t;
    std::vector<float> jacobian;
    for (std::size_t env = 0; env < kRobots; ++env) {
      const auto add = [&](const std::vector<float>& from, std::size_t rows) {
        const float* first = &from[env * rows * joints];
        jacobian.insert(jacobian.end(), first, first + rows * joints);
      };
      add(g.com, SampleRows::kComSize);
      add(g.hand_on_base, SampleRows::kHandOnBaseSize);
      add(g.closing, SampleRows::kClosingSize);
      add(g.gravity, SampleRows::kGravitySize);
    }
    EXPECT_LE(Differing(jacobian, c.jacobian, 2e-3), allowed) << t;
  }
}

// Budget commands are a function of (seed, robot, episode, step): the GPU shows the CPU's.
TEST_F(CudaLocoEnvTest, ShowsTheCpusBudgetCommands) {
  LocoEnvOptions options = {.num_envs = kRobots, .seed = 3, .samples = true};
  options.budget.range = {BudgetRange{200, 3000}, BudgetRange{100, 1000}, BudgetRange{20, 300}};
  options.config.budget_command.change = 0.2f;
  options.config.budget_command.ramp_min = 0.06f;
  options.config.budget_command.ramp_max = 0.2f;
  options.layout = ReadTaskLayout(kDefaultTaskLayout);
  AddBudgetTerms(options.budget, &*options.layout);
  LocoEnv cpu(options);
  CudaLocoEnv gpu(options, nullptr);
  const std::size_t width = cpu.obs_width();
  for (int t = 0; t <= 40; ++t) {
    if (t > 0) StepBoth(&cpu, &gpu, RandomActions(t, 0.2));
    const Copy g = Fetch(&gpu);
    int differing = 0;
    for (std::size_t env = 0; env < kRobots; ++env) {
      bool differs = false;
      // the newest frame is the last, and the budget its last three numbers
      for (std::size_t i = (env + 1) * width - kNumCommanded; i < (env + 1) * width; ++i) {
        EXPECT_LE(std::abs(g.obs[i]), 1 + 1e-5);
        differs |= std::abs(g.obs[i] - cpu.view().obs[i]) > 1e-5;
      }
      differing += differs;
    }
    // a robot that fell for one of the two has begun another episode
    EXPECT_LE(differing, kRobots * t / 400) << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Robots,
                         CudaLocoEnvOf,
                         ::testing::Values("g1-loco", "t1-stand", "berkeley-stand"),
                         [](const auto& test) { return std::string(test.param, 0, 2); });

TEST_F(CudaLocoEnvTest, StatisticsOfALongerRunAreTheCpus) {
  const LocoEnvOptions options = {.num_envs = kRobots, .seed = 4};
  LocoEnv cpu(options);
  CudaLocoEnv gpu(options, nullptr);
  for (int t = 1; t <= 150; ++t) StepBoth(&cpu, &gpu, RandomActions(t, 0.3));
  const LocoStats c = cpu.TakeStats(), g = gpu.TakeStats();
  EXPECT_EQ(g.steps, c.steps);
  EXPECT_GT(g.episodes, kRobots / 2) << "no falls were compared";
  // chaos has set in: means of some hundred falls agree to a few percent
  EXPECT_NEAR(g.episodes, c.episodes, 0.1 * c.episodes);
  EXPECT_NEAR(g.episode_length, c.episode_length, 0.1 * c.episode_length);
  EXPECT_NEAR(g.arm_error_rms, c.arm_error_rms, 0.05 * c.arm_error_rms);
  EXPECT_NEAR(g.force_scale, c.force_scale, 0.01);
  EXPECT_FLOAT_EQ(static_cast<float>(g.penalty_scale), static_cast<float>(c.penalty_scale));
}

TEST_F(CudaLocoEnvTest, GoesOnFromSavedBytesAndSoDoesTheCpu) {
  const LocoEnvOptions options = {.num_envs = kRobots, .seed = 6, .samples = true};
  CudaLocoEnv a(options, nullptr), b(options, nullptr);
  LocoEnv cpu(options);
  for (int t = 1; t <= 20; ++t) StepBoth(&cpu, &a, RandomActions(t, 0.3));
  const std::string bytes = a.Save();
  b.Load(bytes);
  cpu.Load(bytes);
  EXPECT_TRUE(b.Save() == bytes);
  const Copy ours = Fetch(&a), loaded = Fetch(&b);
  EXPECT_TRUE(ours.obs == loaded.obs);
  EXPECT_TRUE(ours.mode == loaded.mode);
  EXPECT_EQ(Differing(loaded.hand_on_base, ours.hand_on_base, 1e-6), 0);
  const std::vector<float> actions = RandomActions(21, 0.3);
  StepBoth(&cpu, &a, actions);
  StepBoth(&cpu, &b, actions);
  EXPECT_TRUE(Fetch(&a).obs == Fetch(&b).obs);
}

TEST_F(CudaLocoEnvTest, AnActionThatIsNotFiniteIsReported) {
  CudaLocoEnv gpu({.num_envs = kRobots}, nullptr);
  std::vector<float> actions(static_cast<std::size_t>(kRobots) * kTaskJoints, 0.0f);
  actions[7 * kTaskJoints + 3] = NAN;
  DeviceArray<float> device(actions.size());
  device.Upload(actions.data(), gpu.stream());
  gpu.Step(device.get());
  EXPECT_THROW(gpu.TakeStats(), RunError);
}

}  // namespace
}  // namespace silc
