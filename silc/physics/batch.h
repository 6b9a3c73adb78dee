// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "silc/base/thread_pool.h"
#include "silc/physics/batch_model.h"
#include "silc/physics/field_view.h"
#include "silc/physics/fields.h"

namespace silc {

/// Many robots of one model, stepped together. Three implementations that a caller can tell apart
/// by their speed alone: CpuBatch, CudaBatch, and MujocoBatch, which runs mj_step and is the
/// reference.
///
/// The result of a robot depends on its own fields only: not on the size of the batch, its place in
/// it, the number of threads or its neighbours.
class PhysicsBatch {
 public:
  virtual ~PhysicsBatch() = default;

  int num_envs() const { return num_envs_; }
  const BatchModel& model() const { return model_; }
  int width(Field field) const { return FieldWidth(model_.step, field); }

  virtual FieldView view(Field field) = 0;

  /// Copies a field of all robots to (num_envs, width), or of some robots from (envs, width).
  virtual void Read(Field field, std::span<float> values);
  virtual void Write(Field field, std::span<const int> envs, std::span<const float> values);

  /// Puts robots into a state and clears what the past left: fault, pushes, warm start, delayed
  /// targets (which become the state's joint positions). Costs those robots only.
  /// @param qpos (envs, nq), @param qvel (envs, nv)
  void Reset(std::span<const int> envs, std::span<const float> qpos, std::span<const float> qvel);

  /// Masses [kg] and centres of mass [m, body frame] of one robot's bodies, in MuJoCo's numbering;
  /// empty means the model's. Constants that MuJoCo derives at compile time (invweights) stay the
  /// model's.
  virtual void SetBodies(int env,
                         const std::vector<double>& mass,
                         const std::vector<double>& com) = 0;

  /// n physics steps with targets, gains and pushes held. A delay must not exceed n.
  virtual void Advance(int substeps) = 0;

  /// Fills the fields kCom … kStanceJacobian that are wanted from the present state. The
  /// others hold what they held, or more than was asked for.
  virtual void UpdateKinematics(KinematicsLevel wanted) = 0;
  void UpdateKinematics() { UpdateKinematics(KinematicsLevel::kStance); }

  virtual std::string name() const = 0;

 protected:
  PhysicsBatch(BatchModel model, int num_envs);
  const BatchModel model_;

 private:
  const int num_envs_;
};

/// A batch that threads of a pool work on, in memory that they share.
class HostBatch : public PhysicsBatch {
 public:
  /// Robots that are worked out side by side.
  virtual int lanes() const = 0;
  /// Advance(substeps) and UpdateKinematics(wanted) of robots [begin, end) alone. To be called from
  /// a loop on the batch's own pool, whose `worker` this is: what comes before and after the
  /// physics of a few robots then finds them in the core's cache.
  /// @param begin, end  multiples of lanes(), or num_envs()
  virtual void AdvanceRange(
      int worker, int begin, int end, int substeps, KinematicsLevel wanted) = 0;

 protected:
  using PhysicsBatch::PhysicsBatch;
};

struct CpuBatchOptions {
  int threads = 1;
  std::shared_ptr<ThreadPool> pool;  // to work on; null: one of `threads` threads of its own
  std::string kernel;  // "avx512", "avx2", "baseline"; empty: the widest this machine has
  StepOptions step = {.max_iterations = 30, .line_search = 10, .tolerance = 1e-8};
};

/// The batch stepper on CPU threads, float, one SIMD lane per robot.
class CpuBatch final : public HostBatch {
 public:
  CpuBatch(BatchModel model, int num_envs, const CpuBatchOptions& options = {});
  ~CpuBatch() override;

  FieldView view(Field field) override;
  void SetBodies(int env, const std::vector<double>& mass, const std::vector<double>& com) override;
  void Advance(int substeps) override;
  using PhysicsBatch::UpdateKinematics;
  void UpdateKinematics(KinematicsLevel wanted) override;
  void AdvanceRange(int worker, int begin, int end, int substeps, KinematicsLevel wanted) override;
  std::string name() const override;
  int lanes() const override;

  /// Work done since construction, over all threads.
  StepCounts counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// mj_step for every robot, double precision inside. The mjModel is copied; contacts between moving
/// bodies are left out as BatchModel leaves them out.
class MujocoBatch final : public HostBatch {
 public:
  MujocoBatch(const mjModel& mujoco, BatchModel model, int num_envs, int threads = 1);
  MujocoBatch(const mjModel& mujoco,
              BatchModel model,
              int num_envs,
              std::shared_ptr<ThreadPool> pool);
  ~MujocoBatch() override;

  FieldView view(Field field) override;
  void SetBodies(int env, const std::vector<double>& mass, const std::vector<double>& com) override;
  void Advance(int substeps) override;
  using PhysicsBatch::UpdateKinematics;
  void UpdateKinematics(KinematicsLevel wanted) override;
  void AdvanceRange(int worker, int begin, int end, int substeps, KinematicsLevel wanted) override;
  std::string name() const override { return "mujoco"; }
  int lanes() const override { return 1; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace silc
