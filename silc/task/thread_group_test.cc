// SPDX-License-Identifier: Apache-2.0
#include "silc/task/thread_group.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "silc/base/rng.h"
#include "silc/task/loco_env.h"
#include "silc/task/test_layouts.h"

/// A group does a robot's step on the CPU as a group of GPU threads does it: phase by phase. Inside
/// a phase the members come one after the other, first to last or last to first: one that read what
/// another writes would not get the same bits both ways.
namespace silc {
namespace {

constexpr int kWorldRobots = 24;

template <int kMembers>
struct Queue {
  static constexpr int kSize = kMembers;
  int member;
  int first() const { return member; }
  bool Does(int job) const { return member == job * 4 % kMembers; }
};

/// Members that wait for each other inside a phase.
struct Threads {
  static constexpr int kSize = 3;
  int member;
  std::barrier<>* barrier;
  int first() const { return member; }
  void Sync() const { barrier->arrive_and_wait(); }
};
template <class Body>
void Together(Body body) {
  std::barrier<> barrier(Threads::kSize);
  std::vector<std::thread> threads;
  for (int i = 0; i < Threads::kSize; ++i) {
    threads.emplace_back([&, i] { body(Threads{i, &barrier}); });
  }
  for (std::thread& t : threads) t.join();
}

/// Robots stepped by one thread each (kMembers = 1), or by a group.
class World {
 public:
  explicit World(const LocoEnvOptions& options)
      : setup_(MakeLocoSetup(options)),
        batch_(setup_.compiled, kWorldRobots),
        view_(ViewOf(&batch_)) {
    setup_.context.progress = &memory_.progress;
    memory_.Resize(kWorldRobots, setup_.context.observation);
    memory_.progress = FirstProgress(setup_.context.config);
    reward_.resize(kWorldRobots * 2);
    flag_.resize(kWorldRobots);
    jacobian_.resize(kWorldRobots * sample_size());
    survival_.resize(kWorldRobots);
  }

  template <int kMembers>
  void Start(bool backward) {
    for (int env = 0; env < kWorldRobots; ++env) {
      StepOutput out = Output(env);
      EnvState* s = &memory_.states[env];
      if constexpr (kMembers == 1) {
        StartEnv(context(), view_, env, true, s, &out);
      } else {
        step::Scratch w;
        const auto phase = [&](auto body) { Phase<kMembers>(backward, body); };
        phase([&](auto threads) { step::StartScales(context(), threads, s, &w); });
        phase([&](auto threads) { step::ClearEnv(context(), view_, env, threads, s); });
        phase([&](auto threads) {
          step::PlaceEnv(context(), view_, env, threads, s);
          step::StaggerEnv(context(), env, true, threads, s);
        });
        Observe<kMembers>(backward, env, true, &out, &w);
      }
    }
    memory_.progress.step = 1;
  }

  template <int kMembers>
  void Step(const std::vector<float>& actions, bool backward) {
    for (int env = 0; env < kWorldRobots; ++env) {
      const float* action = &actions[static_cast<std::size_t>(env) * joints()];
      EnvState* s = &memory_.states[env];
      if constexpr (kMembers == 1) {
        ASSERT_TRUE(BeginStep(context(), view_, env, action, s));
      } else {
        step::Scratch w;
        w.refused = false;
        const auto phase = [&](auto body) { Phase<kMembers>(backward, body); };
        phase([&](auto threads) { step::CheckAction(context().robot, action, threads, &w); });
        ASSERT_FALSE(w.refused);
        phase([&](auto threads) { step::Act(context(), view_, env, action, threads, s); });
      }
    }
    batch_.Advance(context().robot.substeps);
    batch_.UpdateKinematics(KinematicsLevel::kStance);
    double sum = 0;
    int ended = 0;
    for (int env = 0; env < kWorldRobots; ++env) {
      StepOutput out = Output(env);
      if constexpr (kMembers == 1) {
        survival_[env] = EndStep(context(), view_, env, &memory_.states[env], &out);
      } else {
        survival_[env] = EndByGroup<kMembers>(env, backward, &out);
      }
      if (survival_[env] < 0) continue;
      sum += survival_[env];
      ++ended;
    }
    EndStepOfAll(context().config.curriculum, kWorldRobots, sum, ended, &memory_.progress);
  }

  int joints() const { return context().robot.num_joints; }
  void Fault(int env) { view_.fault(env, 0) = kFaultNotFinite; }
  const std::vector<std::uint8_t>& flags() const { return flag_; }

  /// Everything that a step leaves behind.
  std::vector<float> Bits() {
    std::vector<float> all;
    for (const std::vector<float>* part : {&memory_.obs,
                                           &memory_.critic_obs,
                                           &memory_.terms,
                                           &memory_.tracking,
                                           &reward_,
                                           &jacobian_,
                                           &survival_}) {
      all.insert(all.end(), part->begin(), part->end());
    }
    all.insert(all.end(), flag_.begin(), flag_.end());
    for (const ContactMode mode : memory_.mode) all.push_back(static_cast<float>(mode));
    for (const Field field : {Field::kQpos,
                              Field::kQvel,
                              Field::kTarget,
                              Field::kKp,
                              Field::kKd,
                              Field::kDelay,
                              Field::kWrench,
                              Field::kWrenchSteps}) {
      std::vector<float> values(static_cast<std::size_t>(kWorldRobots) * batch_.width(field));
      batch_.Read(field, values);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  const TaskContext& context() const { return setup_.context; }
  std::size_t sample_size() const { return SampleSize(joints()); }
  StepOutput Output(int env) {
    const auto e = static_cast<std::size_t>(env);
    const TaskObservation& o = setup_.context.observation;
    return {.reward = &reward_[e * 2],
            .flag = &flag_[e],
            .actor_obs = &memory_.obs[e * o.width],
            .critic_obs = &memory_.critic_obs[e * o.critic_width()],
            .contact_mode = &memory_.mode[e],
            .jacobian = &jacobian_[e * sample_size()],
            .terms = &memory_.terms[e * kNumRewards],
            .tracking = &memory_.tracking[e * kNumTracking]};
  }

  template <int kMembers, class Body>
  static void Phase(bool backward, Body body) {
    for (int i = 0; i < kMembers; ++i) body(Queue<kMembers>{backward ? kMembers - 1 - i : i});
  }

  template <int kMembers>
  void Observe(bool backward, int env, bool restarted, StepOutput* out, step::Scratch* w) {
    const EnvState& s = memory_.states[env];
    Phase<kMembers>(backward, [&](auto threads) {
      step::GatherValues(context(), view_, env, s, restarted, threads, out, w);
    });
    Together([&](auto threads) {
      step::ObserveValues(context(), context().observation, env, s, threads, out, *w);
    });
  }

  template <int kMembers>
  float EndByGroup(int env, bool backward, StepOutput* out) {
    step::Scratch w;
    w.lost = false;
    EnvState* s = &memory_.states[env];
    const TaskContext& t = context();
    const auto phase = [&](auto body) { Phase<kMembers>(backward, body); };
    phase([&](auto threads) { step::Look(t, view_, env, *s, threads, &w); });
    phase([&](auto threads) { step::MoveOn(t, view_, env, threads, &w, s); });
    phase([&](auto threads) { step::Judge(t, threads, out, &w); });
    phase([&](auto threads) { step::Settle(t, env, threads, out, &w, s); });
    const bool ended = w.flag != kRunning;
    phase([&](auto threads) {
      step::Sample(t, view_, env, *s, threads, out, &w);
      if (ended) step::ClearEnv(t, view_, env, threads, s);
    });
    phase([&](auto threads) {
      if (ended) step::PlaceEnv(t, view_, env, threads, s);
    });
    Observe<kMembers>(backward, env, ended, out, &w);
    return w.survival;
  }

  LocoSetup setup_;
  CpuBatch batch_;
  PhysicsView view_;
  LocoMemory memory_;
  std::vector<float> reward_, jacobian_, survival_;
  std::vector<std::uint8_t> flag_;
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void ExpectTheBitsOfOneThread(LocoEnvOptions options) {
  options.num_envs = kWorldRobots;
  options.seed = 11;
  options.samples = true;
  options.config.push.interval_min = 0.1f;  // pushes within the test
  options.config.push.interval_max = 0.3f;
  World alone(options), threads(options), backward(options);
  alone.Start<1>(false);
  threads.Start<32>(false);
  backward.Start<32>(true);
  ASSERT_TRUE(SameBits(alone.Bits(), threads.Bits())) << "after the start";
  ASSERT_TRUE(SameBits(alone.Bits(), backward.Bits())) << "after the start";
  int failed = 0, lost = 0;
  for (int k = 1; k <= 40; ++k) {
    Rng rng(5, static_cast<std::uint32_t>(k));
    std::vector<float> actions(static_cast<std::size_t>(kWorldRobots) * alone.joints());
    for (float& a : actions) a = static_cast<float>(2 * rng.Normal());
    for (World* world : {&alone, &threads, &backward}) {
      if (k % 10 == 0) world->Fault(k / 10);
    }
    alone.Step<1>(actions, false);
    threads.Step<32>(actions, false);
    backward.Step<32>(actions, true);
    ASSERT_TRUE(SameBits(alone.Bits(), threads.Bits())) << k;
    ASSERT_TRUE(SameBits(alone.Bits(), backward.Bits())) << k;
    for (const std::uint8_t flag : alone.flags()) {
      failed += flag == kFailed;
      lost += (flag & kDiverged) != 0;
    }
  }
  EXPECT_GT(failed, kWorldRobots / 2) << "hardly an episode ended: resets were not compared";
  EXPECT_GE(lost, 4);
}

class ThreadGroup : public ::testing::TestWithParam<TestLayout> {};

TEST_P(ThreadGroup, LeavesTheBitsOfOneThread) {
  LocoEnvOptions options;
  options.layout = GetParam().make();
  ExpectTheBitsOfOneThread(std::move(options));
}

INSTANTIATE_TEST_SUITE_P(Layouts,
                         ThreadGroup,
                         ::testing::ValuesIn(kTestLayouts),
                         [](const auto& test) { return test.param.name; });

// Robots with other numbers of joints, in another order than their own, without hands.
class ThreadGroupOf : public ::testing::TestWithParam<const char*> {};

TEST_P(ThreadGroupOf, AnotherRobotLeavesTheBitsOfOneThread) {
  const TaskFile task = ReadTaskFile(FindTaskFile(GetParam()));
  LocoEnvOptions options;
  options.config = task.config;
  options.layout = ReadTaskLayout(task.layout);
  options.robot = task.robot;
  ExpectTheBitsOfOneThread(std::move(options));
}

INSTANTIATE_TEST_SUITE_P(Robots,
                         ThreadGroupOf,
                         ::testing::Values("t1-stand", "berkeley-stand"),
                         [](const auto& test) { return std::string(test.param, 0, 2); });

}  // namespace
}  // namespace silc
