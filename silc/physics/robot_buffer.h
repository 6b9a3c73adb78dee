// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "silc/physics/batch_model.h"
#include "silc/physics/step.h"

namespace silc::SILC_KERNEL {

/// Memory for one RobotData<Real>, with the model's own parameters in it, at rest in qpos0.
template <class Real>
class RobotBuffer {
 public:
  explicit RobotBuffer(const BatchModel& model) {
    const StepModel<double>& s = model.step;
    const int nu = s.num_actuators;
    const auto add = [&](Column<Real>* column, int count) {
      parts_.push_back(std::make_unique<std::vector<Real>>(count + 1, Real(0)));
      column->data = parts_.back()->data();
      column->stride = 1;
    };
    add(&data_.qpos, s.nq);
    add(&data_.qvel, s.nv);
    add(&data_.qacc, s.nv);
    add(&data_.fault, 1);
    add(&data_.target, nu);
    add(&data_.previous_target, nu);
    add(&data_.delay, 1);
    add(&data_.feedforward, nu);
    add(&data_.kp, nu);
    add(&data_.kd, nu);
    add(&data_.inertia, 10 * s.num_links);
    add(&data_.armature, s.num_links);
    add(&data_.friction_scale, 1);
    add(&data_.wrench, 6 * s.num_pushes);
    add(&data_.wrench_steps, s.num_pushes);
    add(&data_.torque, nu);
    add(&data_.foot_force, 3 * s.num_feet);
    add(&data_.imu, 6 * s.num_imus);
    using T = ScalarOf<Real>;
    for (int i = 0; i < s.nq; ++i) data_.qpos[i] = Real(T(model.qpos0[i]));
    for (int u = 0; u < nu; ++u) {
      data_.kp[u] = Real(T(model.default_kp[u]));
      data_.kd[u] = Real(T(model.default_kd[u]));
    }
    const std::vector<double> inertia = LinkInertias(model);
    for (int i = 0; i < 10 * s.num_links; ++i) data_.inertia[i] = Real(T(inertia[i]));
    for (int b = 0; b < s.num_links; ++b) data_.armature[b] = Real(T(s.link[b].armature));
    data_.friction_scale[0] = Real(T(1));
  }

  const RobotData<Real>& data() const { return data_; }

 private:
  std::vector<std::unique_ptr<std::vector<Real>>> parts_;
  RobotData<Real> data_;
};

}  // namespace silc::SILC_KERNEL
