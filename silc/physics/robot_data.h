// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/fields.h"
#include "silc/physics/step.h"

namespace silc::SILC_KERNEL {

/// The columns of one robot (or group of lanes) whose fields lie one after the other from `memory`
/// on, neighbouring values `stride` apart.
template <class Real>
SILC_HD Column<Real> FieldColumn(const FieldLayout& layout, Real* memory, int stride, Field field) {
  return {memory + static_cast<long>(layout.offset[static_cast<int>(field)]) * stride, stride};
}

template <class Real>
SILC_HD RobotData<Real> BindRobot(const FieldLayout& layout, Real* memory, int stride) {
  RobotData<Real> r;
  const auto column = [&](Field f) { return FieldColumn(layout, memory, stride, f); };
  r.qpos = column(Field::kQpos);
  r.qvel = column(Field::kQvel);
  r.qacc = column(Field::kQacc);
  r.fault = column(Field::kFault);
  r.target = column(Field::kTarget);
  r.previous_target = column(Field::kPreviousTarget);
  r.delay = column(Field::kDelay);
  r.feedforward = column(Field::kFeedforward);
  r.kp = column(Field::kKp);
  r.kd = column(Field::kKd);
  r.inertia = column(Field::kInertia);
  r.armature = column(Field::kArmature);
  r.friction_scale = column(Field::kFriction);
  r.wrench = column(Field::kWrench);
  r.wrench_steps = column(Field::kWrenchSteps);
  r.torque = column(Field::kTorque);
  r.foot_force = column(Field::kFootForce);
  r.imu = column(Field::kImu);
  return r;
}

/// Substeps with targets held; then the targets become the previous ones and pushes run on.
template <class Real, class Work, class T>
SILC_HD void AdvanceRobot(const StepModel<T>& model,
                          const RobotData<Real>& robot,
                          const StepOptions& options,
                          int substeps,
                          StepCounts* counts,
                          Work& work) {
  const Real zero(0);
  if (All(robot.fault[0] > zero)) return;
  for (int k = 0; k < substeps; ++k) {
    Step<Real>(model, robot, options, k, k + 1 == substeps, counts, work);
  }
  using Team = typename Work::Team;
  for (int own = 0; own < Team::NumOwn(model); ++own) {
    const int u = model.link[Team::Own(own)].actuator;
    if (u >= 0) robot.previous_target[u] = robot.target[u];
  }
  if (!Team::Leads()) return;
  for (int i = 0; i < model.num_pushes; ++i) {
    robot.wrench_steps[i] = Max(robot.wrench_steps[i] - Real(T(substeps)), zero);
  }
}

}  // namespace silc::SILC_KERNEL
