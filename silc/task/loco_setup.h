// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "silc/physics/batch.h"
#include "silc/robot/robot_model.h"
#include "silc/task/motion_file.h"
#include "silc/task/reach_table.h"
#include "silc/task/task_layout.h"
#include "silc/task/task_step.h"

namespace silc {

/// Adds up what blocks of robots contribute, over all processes that train together and in the
/// order of the blocks' numbers: the result has the same bits however the blocks are shared out.
/// @param parts (groups, n) of the blocks here   @return (n)
using SumOverAll =
    std::function<std::vector<double>(std::span<const double> parts, std::size_t groups)>;
/// `sum`, or where it is null the blocks here alone.
std::vector<double> SumParts(std::span<const double> parts,
                             std::size_t groups,
                             const SumOverAll& sum);

struct LocoEnvOptions {
  TaskConfig config;
  std::optional<ObservationLayout> layout;  // none: layouts/g1_loco.yaml
  std::string robot = kDefaultRobot;
  std::optional<GainSet> gains;   // of the servo; none: the robot's default
  std::string backend = "batch";  // of LocoEnv: "batch" (CPU) or "mujoco"
  std::string kernel;             // of "batch"; empty: the widest
  int num_envs = 1;
  int threads = 1;
  std::uint64_t seed = 1;
  bool samples = false;  // fill LocoStep::jacobian
  bool stagger =
      true;  // first episodes begin at random ages, so that time-outs do not come at once
  MotionLibrary motions;  // empty: generated reaches
  BudgetCommand budget;   // what the layout's budget terms show; without ranges it has none
  // Where several processes train together, each has robots of its own. Robot i here is robot
  // first_env + i of total_envs, and draws what it would draw in one process with all of them.
  int first_env = 0;
  int total_envs = 0;  // 0: num_envs
  int groups = 1;      // blocks of robots here of which sums are taken apart; divides num_envs
  SumOverAll sum;      // null: this process is alone
};

/// What a control step reads of the physics' kinematics: Jacobians of a stance for samples alone.
inline KinematicsLevel NeededKinematics(bool samples) {
  return samples ? KinematicsLevel::kStance : KinematicsLevel::kFrames;
}

/// What an environment is made of before it has robots: the same for every back end.
struct LocoSetup {
  std::unique_ptr<RobotModel> model;
  std::shared_ptr<mjModel> mujoco;  // without self-collision
  BatchModel compiled;
  TaskLayout layout;
  OwnedReachTable reaches;
  MotionLibrary motions;
  TaskContext context;  // pointers into this struct's host memory; progress is the caller's to set
};
/// Throws ConfigError for a robot or config that does not fit.
LocoSetup MakeLocoSetup(LocoEnvOptions options);

/// What is drawn once per robot.
struct StartupDraw {
  float friction_scale;      // [1]
  std::vector<double> mass;  // [kg] per body of the batch model
  std::vector<double> com;   // [m] 3 per body, in its frame; empty: the model's
};
StartupDraw DrawStartup(const LocoSetup& setup, int env);

/// The progress of an environment that has just been reset.
TaskProgress FirstProgress(const TaskConfig& config);

/// Means since the last TakeStats().
struct LocoStats {
  double steps = 0;
  double seconds = 0;  // all robots' together
  double episodes = 0, failures = 0, diverged = 0;
  double episode_length = 0;  // [s] of ended episodes
  double survival = 0;        // [1] share of their length, of ended episodes
  double walk_share = 0;
  double walk_velocity_error = 0;  // [m/s]
  double walk_yaw_rate_error = 0;  // [rad/s]
  double stand_speed = 0;          // [m/s]
  double arm_error_rms = 0;        // [rad]
  double height_error = 0;         // [m]
  double phase_match = 0;          // [1] feet as the gait clock expects
  double penalty_scale = 0;        // curriculum, now
  double force_scale = 0;          // curricula per robot, mean
  double height_scale = 0;
  std::array<double, kNumRewards> term{};  // mean contribution per step
};
/// Sums of each block of robots. @return (groups, kNumTracking + kNumRewards)
/// @param tracking (num_envs, kNumTracking), @param terms (num_envs, kNumRewards)
std::vector<double> StatSums(std::span<const float> tracking,
                             std::span<const float> terms,
                             std::size_t groups);
/// @param sums (kNumTracking + kNumRewards)
LocoStats MakeStats(std::span<const double> sums, float control_dt, float penalty_scale);

/// A robot the physics lost, with what replays it: the state before the step and the action.
struct DivergedRobot {
  std::uint64_t seed;
  int env;
  std::uint32_t step;
  int fault;                      // silc/physics/step_model.h; 0: the task's own speed limit
  std::vector<float> qpos, qvel;  // before the step
  std::vector<float> action;      // task order
};
inline constexpr std::size_t kMaxDivergedKept = 1000;

/// What the next step of an environment depends on besides the physics' fields.
struct LocoMemory {
  TaskProgress progress{};
  std::vector<EnvState> states;
  std::vector<float> obs, critic_obs, terms, tracking;
  std::vector<ContactMode> mode;

  void Resize(int num_envs, const TaskObservation& observation);
};
/// As bytes, with the fields: an environment with the same options goes on from them as this one
/// would, on any back end.
std::string PackState(const LocoMemory& memory, std::uint64_t seed, PhysicsBatch* batch);
/// States of robots that follow each other, from several processes, as one process with all of them
/// would have saved them. @param memory, batch of an environment like those that saved
std::string JoinStates(std::span<const std::string> parts,
                       const LocoMemory& memory,
                       PhysicsBatch* batch);
/// Takes robots [first, first + num_envs) out of the state of `total`.
/// @param memory sized for this environment. Throws RunError when the bytes are not of one like it.
void UnpackState(const std::string& bytes,
                 std::uint64_t seed,
                 int first,
                 int total,
                 PhysicsBatch* batch,
                 LocoMemory* memory);

/// How far the curricula have come. A run that goes on without its robots' states goes on from
/// here.
struct LocoCurricula {
  std::string shared;     // of all robots: a TaskProgress
  std::string of_robots;  // (robots, 2) floats: scale of the forces, of the heights
};
LocoCurricula PackCurricula(const TaskProgress& progress, std::span<const EnvState> states);
/// Robot i takes the scales of robot i, or, where fewer were saved, of i modulo their number.
/// @param first number of states[0] among all robots. Throws RunError when the bytes are no
/// curricula.
void UnpackCurricula(const LocoCurricula& from,
                     int first,
                     TaskProgress* progress,
                     std::span<EnvState> states);

/// Binds the task's fields to a batch's memory.
PhysicsView ViewOf(PhysicsBatch* batch);

}  // namespace silc
