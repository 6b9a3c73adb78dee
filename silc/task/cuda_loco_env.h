// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "silc/task/cuda_step.h"
#include "silc/task/loco_setup.h"

namespace silc {

/// LocoEnv on a GPU: the same task by the same code, everything in device memory. Reset(), Step()
/// and Deliver() enqueue on the stream and do not wait, so that they can be captured in a graph;
/// the others wait.
///
/// Sums over robots aside, a robot's results are those of the CPU to float rounding.
class CudaLocoEnv {
 public:
  /// @param stream a cudaStream_t that outlives the environment; null: its own
  /// Throws ConfigError for a robot or config that does not fit, RunError without a GPU.
  CudaLocoEnv(LocoEnvOptions options, CUstream_st* stream);
  ~CudaLocoEnv();

  int num_envs() const;
  const TaskConfig& config() const;
  const TaskLayout& layout() const;
  const TaskRobot& robot() const;
  const RobotModel& robot_model() const;
  PhysicsBatch& physics();
  CUstream_st* stream() const;

  void Reset();
  /// @param actions (num_envs, joints), raw, device memory
  void Step(const float* actions);
  /// Copies what the last Reset() or Step() produced to a learner's arrays.
  void Deliver(const DeviceDelivery& to);

  /// Means since the last call, over the robots of all processes. What follows the performance of
  /// all robots follows those of this process within an iteration: here it is brought to the mean
  /// of all. Throws RunError when an action since the last call was not finite.
  LocoStats TakeStats();
  const std::vector<DivergedRobot>& diverged() const;
  long num_diverged() const;

  /// The bytes of LocoEnv::Save(): a run may go on with another back end.
  std::string Save() const;
  void Load(const std::string& bytes);
  std::string Join(std::span<const std::string> parts) const;
  /// How far the curricula are, and setting them after a Reset(), which puts them to their start.
  LocoCurricula SaveCurricula() const;
  void LoadCurricula(const LocoCurricula& curricula);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace silc
