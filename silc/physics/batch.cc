// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/batch.h"

#include <algorithm>

#include "silc/base/check.h"

namespace silc {

PhysicsBatch::PhysicsBatch(BatchModel model, int num_envs)
    : model_(std::move(model)), num_envs_(num_envs) {
  SILC_CHECK(num_envs >= 1);
}

void PhysicsBatch::Read(Field field, std::span<float> values) {
  const FieldView v = view(field);
  SILC_CHECK(!v.on_device && values.size() == static_cast<std::size_t>(num_envs_) * v.width);
  for (int env = 0; env < num_envs_; ++env) {
    for (int i = 0; i < v.width; ++i)
      values[static_cast<std::size_t>(env) * v.width + i] = v(env, i);
  }
}

void PhysicsBatch::Write(Field field, std::span<const int> envs, std::span<const float> values) {
  const FieldView v = view(field);
  SILC_CHECK(!v.on_device && values.size() == envs.size() * v.width);
  // masses come in through SetBodies(), which knows about bodies that share a link
  SILC_CHECK(field != Field::kInertia);
  for (std::size_t k = 0; k < envs.size(); ++k) {
    SILC_CHECK(envs[k] >= 0 && envs[k] < num_envs_);
    for (int i = 0; i < v.width; ++i) v(envs[k], i) = values[k * v.width + i];
  }
}

void PhysicsBatch::Reset(std::span<const int> envs,
                         std::span<const float> qpos,
                         std::span<const float> qvel) {
  const StepModel<double>& s = model_.step;
  SILC_CHECK(qpos.size() == envs.size() * s.nq && qvel.size() == envs.size() * s.nv);
  Write(Field::kQpos, envs, qpos);
  Write(Field::kQvel, envs, qvel);
  const std::vector<float> zeros(envs.size() * std::max({s.nv, s.num_pushes, 1}), 0.0f);
  const auto clear = [&](Field field) {
    Write(field, envs, std::span(zeros).first(envs.size() * width(field)));
  };
  clear(Field::kQacc);
  clear(Field::kFault);
  clear(Field::kWrenchSteps);
  std::vector<float> held(envs.size() * s.num_actuators);
  for (std::size_t k = 0; k < envs.size(); ++k) {
    for (int u = 0; u < s.num_actuators; ++u) {
      held[k * s.num_actuators + u] = qpos[k * s.nq + s.link[s.actuator[u].link].qpos];
    }
  }
  Write(Field::kPreviousTarget, envs, held);
}

}  // namespace silc
