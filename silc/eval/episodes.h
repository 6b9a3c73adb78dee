// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "silc/policy/policy.h"
#include "silc/stiffness/observer.h"
#include "silc/task/task_config.h"

namespace silc {

struct EpisodeOptions {
  TaskConfig task;     // what an episode is; see NominalTask()
  int episodes = 100;  // one per robot
  int threads = 1;
  std::uint64_t seed = 1;
  BudgetSpec budget;       // (S6) σ is held against
  int observe_every = 50;  // control steps between observations of the stiffness; 0: none
  std::string backend = "mujoco";
};

/// The task on the robot as its model has it: no sensor noise, no delay, nominal masses and gains,
/// a dry floor. Commands and arm motions stay; hand forces and pushes have `force_scale` of their
/// full size, lowered stances their full depth.
TaskConfig NominalTask(TaskConfig task, float force_scale);

/// The paper's measures (metrics.h) of the walking part of an episode, sampled once per control
/// step. NaN when it never walked.
struct MotionMeasures {
  double action_jitter = kNone;    // [1/s³]
  double velocity_jitter = kNone;  // [rad/s⁴]
  double torque_jitter = kNone;    // [N·m/s³]
  double power = kNone;            // [W] mean |τ q̇| of a joint
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
};

/// What happened in one episode.
struct EpisodeResult {
  bool fell = false;
  double seconds = 0;
  // means over its control steps, squares for RMS
  double walking = 0;          // [s] counted: walking, 2 s or more after the command changed
  double velocity_error2 = 0;  // [m²/s²] command against horizontal velocity, at each moment
  double gait_error2 = 0;      // [m²/s²] the same against the mean over the last gait cycle
  double arm_error2 = 0;       // [rad²] mean over the arms' joints
  double saturation = 0;       // [1] share of joints and control steps at the effort limit
  MotionMeasures all, lower, upper;  // of all joints, of legs and waist, of the arms
};

/// σ of (S7c) on K_s, of the budget's own condition, and what the paper's own method bounds, at one
/// moment.
struct SigmaSample {
  int episode = 0;
  ContactMode mode;
  bool sound = false;      // K_s and its budget exist and the action loop is proven stable
  double disc = 0;         // [1] (S7c) on K_s
  double own = 0;          // [1] the budget's condition on K_s: `disc` where that is the disc
  double worst = 0;        // [1] λ_max of the quadratic form of K_s against the budget
  double paper = 0;        // [1] (S7a) on K₁
  double paper_worst = 0;  // [1] λ_max of the quadratic form of K₁ against the budget
};

struct EpisodeReport {
  std::vector<EpisodeResult> episodes;
  std::vector<SigmaSample> sigma;
};

/// Runs the deployed policy, each robot with a history of its own, for one episode per robot.
/// The observation is the policy's own, from the state: what it would see on the robot.
/// The servo has the policy's own gains. Throws ConfigError when the policy does not fit the task's
/// robot: joints, control period.
EpisodeReport RunEpisodes(const Policy& policy,
                          const EpisodeOptions& options,
                          const std::function<void(double)>& progress = {});

}  // namespace silc
