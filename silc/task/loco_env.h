// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "silc/task/loco_setup.h"

namespace silc {

/// What one Step() (or Reset()) produced for every robot. Views into the LocoEnv, valid until the
/// next call. Robots whose episode ended have been reset: their observation is the first of the new
/// episode, their reward and flag belong to the step that ended the old one.
struct LocoStep {
  std::span<const float> obs;                 // (num_envs, obs_width())
  std::span<const float> critic_obs;          // (num_envs, critic_width())
  std::span<const float> reward;              // (num_envs, 2)          lower, upper agent
  std::span<const std::uint8_t> flag;         // (num_envs)             StepFlag
  std::span<const ContactMode> contact_mode;  // (num_envs)      or kModeUnknown
  std::span<const float> jacobian;            // (num_envs, SampleRows::kEnd, joints); may be empty
};

/// The task on a batch of robots. Results depend on the config, the seed and the actions; not on
/// the number of threads, and a robot's not on the number of robots beside it but through the
/// penalty scale, which follows the performance of all.
class LocoEnv {
 public:
  /// Throws ConfigError for a robot, backend or config that does not fit.
  explicit LocoEnv(const LocoEnvOptions& options);

  int num_envs() const { return num_envs_; }
  /// With what it leaves to the layout filled in.
  const TaskConfig& config() const { return setup_.context.config; }
  const TaskLayout& layout() const { return setup_.layout; }
  int obs_width() const { return setup_.context.observation.width; }
  int critic_width() const { return setup_.context.observation.critic_width(); }
  const TaskRobot& robot() const { return setup_.context.robot; }
  const RobotModel& robot_model() const { return *setup_.model; }
  PhysicsBatch& physics() { return *batch_; }
  /// The threads of task and physics, free between calls.
  const std::shared_ptr<ThreadPool>& pool() const { return pool_; }
  const EnvState& state(int env) const { return memory_.states[env]; }
  LocoStep view() const;

  /// All robots start over, at step 0.
  LocoStep Reset();
  /// One control step. @param actions (num_envs, joints), task order, raw. Throws RunError when one
  /// is not finite; of the robots beside that one some have made their step then.
  /// @param then  called for robots [begin, end) as soon as they have made theirs, by several
  ///              threads: view() has their results
  LocoStep Step(std::span<const float> actions,
                const std::function<void(int begin, int end)>& then = {});

  /// Sets what all robots are asked, until their next resampling: for evaluation and viewers.
  void SetCommand(const TaskCommand& command);

  LocoStats TakeStats();
  /// Robots lost since the start (the first 1000 are kept), and how many there were.
  const std::vector<DivergedRobot>& diverged() const { return diverged_; }
  long num_diverged() const { return num_diverged_; }

  /// Everything that the next Step() depends on, as bytes: an env with the same options that loads
  /// them goes on as this one would.
  std::string Save() const;
  /// Throws RunError when the bytes are not of an env like this one, or of all robots where others
  /// have the rest of them (JoinStates()).
  void Load(const std::string& bytes);
  /// What one environment with all robots would save, from what each of several saved.
  std::string Join(std::span<const std::string> parts) const;
  /// How far the curricula are, and setting them after a Reset(), which puts them to their start.
  LocoCurricula SaveCurricula() const;
  void LoadCurricula(const LocoCurricula& curricula);

 private:
  StepOutput OutputOf(int env);
  void Remember(int env);
  std::size_t sample_size() const { return SampleSize(robot().num_joints); }
  void ForEnvs(const std::function<void(int env)>& body);

  LocoSetup setup_;
  std::shared_ptr<ThreadPool> pool_;
  std::unique_ptr<HostBatch> batch_;
  PhysicsView physics_{};
  bool samples_, stagger_;
  int num_envs_, total_envs_;
  std::size_t groups_;
  SumOverAll sum_;

  LocoMemory memory_;
  std::vector<float> reward_, jacobian_, survival_;
  std::vector<float> qpos_before_, qvel_before_;
  std::vector<int> fault_;  // of the step; the physics forgets it when the robot is reset
  std::vector<std::uint8_t> flag_;
  std::vector<DivergedRobot> diverged_;
  long num_diverged_ = 0;
};

}  // namespace silc
