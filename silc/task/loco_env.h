// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "silc/physics/batch.h"
#include "silc/physics/thread_pool.h"
#include "silc/robot/robot_model.h"
#include "silc/task/motion_file.h"
#include "silc/task/reach_table.h"
#include "silc/task/task_step.h"

namespace silc {

struct LocoEnvOptions {
  TaskConfig config;
  std::string robot = "g1";
  std::string backend = "batch";  // "batch" (CPU) or "mujoco"
  std::string kernel;             // of "batch"; empty: the widest
  int num_envs = 1;
  int threads = 1;
  std::uint64_t seed = 1;
  bool samples = false;  // fill LocoStep::jacobian
  bool stagger =
      true;  // first episodes begin at random ages, so that time-outs do not come at once
  MotionLibrary motions;  // empty: generated reaches
};

/// What one Step() (or Reset()) produced for every robot. Views into the LocoEnv, valid until the
/// next call. Robots whose episode ended have been reset: their observation is the first of the new
/// episode, their reward and flag belong to the step that ended the old one.
struct LocoStep {
  std::span<const float> obs;          // (num_envs, kActorObs)  actor, 5 frames, newest last
  std::span<const float> critic_obs;   // (num_envs, kCriticObs)
  std::span<const float> reward;       // (num_envs, 2)          lower, upper agent
  std::span<const std::uint8_t> flag;  // (num_envs)             StepFlag
  std::span<const std::uint8_t>
      contact_mode;                 // (num_envs)             ContactMode, or kModeUnknown
  std::span<const float> jacobian;  // (num_envs, 18, 29)     see kSampleJacobian; may be empty
};

/// A robot the physics lost, with what replays it: the state before the step and the action.
struct DivergedRobot {
  std::uint64_t seed;
  int env;
  std::uint32_t step;
  int fault;                      // silc/physics/step_model.h; 0: the task's own speed limit
  std::vector<float> qpos, qvel;  // before the step
  std::array<float, kTaskJoints> action;
};

/// Means since the last TakeStats().
struct LocoStats {
  double steps = 0;
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
  double force_scale = 0;          // mean over robots, now
  double height_scale = 0;
  std::array<double, kNumRewards> term{};  // mean contribution per step
};

/// The task on a batch of robots. Results depend on the config, the seed and the actions; not on
/// the number of threads, and a robot's not on the number of robots beside it but through the
/// penalty scale, which follows the performance of all.
class LocoEnv {
 public:
  /// Throws ConfigError for a robot, backend or config that does not fit.
  explicit LocoEnv(LocoEnvOptions options);

  int num_envs() const { return num_envs_; }
  const TaskConfig& config() const { return context_.config; }
  const TaskRobot& robot() const { return context_.robot; }
  const RobotModel& robot_model() const { return *model_; }
  PhysicsBatch& physics() { return *batch_; }
  const EnvState& state(int env) const { return states_[env]; }
  LocoStep view() const;

  /// All robots start over, at step 0.
  LocoStep Reset();
  /// One control step. @param actions (num_envs, 29), raw. Throws RunError when one is not finite.
  LocoStep Step(std::span<const float> actions);

  /// Sets what all robots are asked, until their next resampling: for evaluation and viewers.
  void SetCommand(const TaskCommand& command);

  LocoStats TakeStats();
  /// Robots lost since the start (the first 1000 are kept), and how many there were.
  const std::vector<DivergedRobot>& diverged() const { return diverged_; }
  long num_diverged() const { return num_diverged_; }

  /// Everything that the next Step() depends on, as bytes: an env with the same options that loads
  /// them goes on as this one would.
  std::string Save() const;
  /// Throws RunError when the bytes are not of an env like this one.
  void Load(const std::string& bytes);

 private:
  void Randomise();
  void BindViews();
  StepOutput OutputOf(int env);
  void ForEnvs(const std::function<void(int env)>& body);

  std::unique_ptr<RobotModel> model_;
  std::shared_ptr<mjModel> mujoco_;
  std::unique_ptr<PhysicsBatch> batch_;
  OwnedReachTable reaches_;
  MotionLibrary motions_;
  TaskContext context_{};
  PhysicsView physics_{};
  bool samples_, stagger_;
  int num_envs_;
  mutable ThreadPool pool_;
  float mean_survival_ = -1;  // of ended episodes; −1: none has ended

  std::vector<EnvState> states_;
  std::vector<float> obs_, critic_obs_, reward_, jacobian_, terms_, tracking_, survival_;
  std::vector<float> qpos_before_, qvel_before_;
  std::vector<std::uint8_t> flag_, mode_;
  std::vector<DivergedRobot> diverged_;
  long num_diverged_ = 0;
};

}  // namespace silc
