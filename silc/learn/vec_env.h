// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "silc/base/thread_pool.h"
#include "silc/policy/mlp.h"
#include "silc/stiffness/budget.h"
#include "silc/stiffness/contact_mode.h"
#include "silc/stiffness/types.h"

namespace silc {

/// A part of the action with an actor, a critic and a reward of its own.
struct AgentSpec {
  std::string name;     // "lower"
  int num_actions = 0;  // the agents' actions stand side by side, in the order of the list
};

/// Where an observation tells a number of the budget: u = offset + o/scale, (B3) of
/// docs/command.md.
struct CommandInput {
  int input = -1;  // of the observation, in its newest frame; −1: not told
  double offset = 0, scale = 1;
};

/// How the robot's stiffness follows from the policy's Jacobians, for the methods that bound it.
struct StiffnessSpec {
  Servo servo;        // (S1), nv joints; actions are one per joint, in its order
  BudgetSpec budget;  // (S6)
  std::array<CommandInput, kNumCommanded> command;  // of what the budget has ranges for
  std::vector<ColumnEntry> q0;         // observation against the newest q, scales inside
  std::vector<ColumnEntry> q, a, tau;  // against every frame of q, previous action, torque
  std::vector<ColumnEntry> g;          // against projected gravity, 3 columns
  std::vector<ColumnEntry> v;          // against every frame of the joint velocities
  double period = 0.02;                // [s] from one action to the next
  std::vector<int> age;  // control steps, of each number of the observation; empty: one frame
};

struct EnvSpec {
  int num_envs = 0;
  int first_env = 0;   // number of robot 0 here among the robots of all processes …
  int total_envs = 0;  // … and how many those are; 0: num_envs
  int obs_dim = 0;
  int critic_obs_dim = 0;
  std::vector<AgentSpec> agents;
  bool on_gpu = false;     // all pointers below are CUDA memory
  bool stiffness = false;  // StiffnessView is filled
  StiffnessSpec stiffness_spec;

  int all_envs() const { return total_envs > 0 ? total_envs : num_envs; }
  int num_actions() const {
    int sum = 0;
    for (const AgentSpec& agent : agents) sum += agent.num_actions;
    return sum;
  }
};

/// What the physics knows of a moment for (S5), (S6). Null when nobody wants it.
struct StiffnessView {
  ContactMode* mode = nullptr;    // (num_envs)             kModeUnknown: no penalty
  float* com = nullptr;           // (num_envs, 3, nv)      contact-consistent [m/rad]
  float* hand_on_base = nullptr;  // (num_envs, 2, 3, nv)   left, right, with the base at rest
  float* closing = nullptr;       // (num_envs, 6, nv)      J_c, in double support
  float* gravity = nullptr;       // (num_envs, 3, nv)      E = ∂g_B/∂q [1/rad]
};

/// Where an environment writes what the policy sees next. The memory is the learner's.
struct ObservationView {
  float* obs = nullptr;         // (num_envs, obs_stride), of which obs_dim are written
  float* critic_obs = nullptr;  // (num_envs, critic_obs_stride), of which critic_obs_dim are
  StiffnessView stiffness;      // of the state these observations are of
  int obs_stride = 0;           // floats from one robot's obs to the next, ≥ obs_dim
  int critic_obs_stride = 0;    // likewise, ≥ critic_obs_dim
};

/// Where it writes what a step brought.
struct OutcomeView {
  float* reward = nullptr;            // (num_envs, agents)   [1/step]
  std::uint8_t* done = nullptr;       // (num_envs)           1: the episode ended, the next began
  std::uint8_t* timed_out = nullptr;  // (num_envs)           1: and it did so for lack of time
};

/// How far an environment's curricula are, as bytes: of all robots together, and one robot after
/// the other, so that those of several processes are joined by putting them behind each other.
struct Curricula {
  std::string shared, of_robots;
};

/// Many robots stepped together. The learner does not know which backend it has.
///
/// With on_gpu, calls enqueue on the current stream and nothing waits inside a rollout.
class VecEnv {
 public:
  virtual ~VecEnv() = default;
  virtual const EnvSpec& spec() const = 0;

  /// Every robot at the start of an episode.
  virtual void Reset(const ObservationView& first) = 0;
  /// One control step of every robot; those whose episode ends are reset, and `next` is of the new
  /// one. @param action (num_envs, num_actions)
  virtual void Step(const float* action,
                    const OutcomeView& outcome,
                    const ObservationView& next) = 0;

  /// Called before each iteration, for curricula.
  virtual void BeginIteration(int /*iteration*/) {}
  /// Means since the last call, by name ("task/velocity_error"); may wait for the device.
  virtual std::vector<std::pair<std::string, double>> TakeMetrics() { return {}; }
  /// How well the task went in the time TakeMetrics() last told of, higher is better; the
  /// multiplier of a penalty listens. NaN: the mean reward is taken.
  virtual double TaskScore() const;

  /// Threads that the learner may use between calls; null: it makes its own.
  virtual std::shared_ptr<ThreadPool> pool() const { return nullptr; }

  /// All that the next step depends on, as bytes: a resumed run goes on as if never stopped.
  virtual std::string SaveState() const { return {}; }
  /// The states of several processes' robots, in their order, as one process would have saved them.
  virtual std::string JoinStates(std::span<const std::string> parts) const;
  /// @param bytes of the robots of all processes: its own are taken
  virtual void LoadState(std::string_view /*bytes*/) {}
  /// How far the curricula are: little, and a run that starts its episodes over goes on with them.
  virtual Curricula SaveCurricula() const { return {}; }
  /// From the next Reset() on. @param curricula of the robots of any number of processes
  virtual void LoadCurricula(const Curricula& /*curricula*/) {}
};

}  // namespace silc
