// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "silc/physics/batch_model.h"
#include "silc/physics/robot_data.h"

namespace silc::SILC_KERNEL {

/// Memory for one robot of scalar type Real, with the model's own parameters in it, at rest in
/// qpos0.
template <class Real>
class RobotBuffer {
 public:
  explicit RobotBuffer(const BatchModel& model)
      : layout_(MakeLayout(model.step)), memory_(layout_.size + 1, Real(0)) {
    const std::vector<double> row = DefaultRow(model);
    for (int i = 0; i < layout_.size; ++i) memory_[i] = Real(ScalarOf<Real>(row[i]));
    data_ = BindRobot(layout_, memory_.data(), 1);
  }

  const RobotData<Real>& data() const { return data_; }
  const FieldLayout& layout() const { return layout_; }
  Real* memory() { return memory_.data(); }
  const Real* field(Field f) const { return memory_.data() + layout_.offset[static_cast<int>(f)]; }

 private:
  FieldLayout layout_;
  std::vector<Real> memory_;
  RobotData<Real> data_;
};

}  // namespace silc::SILC_KERNEL
