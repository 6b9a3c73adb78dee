// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/test_crowd.h"

#include <numeric>
#include <span>
#include <utility>

#include "silc/base/rng.h"
#include "silc/physics/test_models.h"

namespace silc::physics_test {

BatchModelOptions G1Outputs(std::vector<std::string> pushes) {
  return {.feet = {"left_ankle_roll_link", "right_ankle_roll_link"},
          .imus = {"imu_in_pelvis", "imu_in_torso"},
          .frames = {"left_foot", "right_palm"},
          .pushes = std::move(pushes)};
}

std::vector<int> Range(int n) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), 0);
  return v;
}

std::vector<float> All(PhysicsBatch* batch, Field field) {
  std::vector<float> values(static_cast<std::size_t>(batch->num_envs()) * batch->width(field));
  batch->Read(field, values);
  return values;
}

void Equip(PhysicsBatch* batch, int env, int identity, const mjModel& m, mjData* d) {
  RandomState(m, 1 + identity % 4, 1000 + identity, d);
  const std::vector<float> qpos(d->qpos, d->qpos + m.nq), qvel(d->qvel, d->qvel + m.nv);
  const std::vector<int> one = {env};
  batch->Reset(one, qpos, qvel);
  Rng rng(77, identity);
  const auto fill = [&](Field field, double low, double high) {
    std::vector<float> values(batch->width(field));
    for (float& x : values) x = static_cast<float>(rng.Uniform(low, high));
    batch->Write(field, one, values);
  };
  fill(Field::kTarget, -0.4, 0.4);
  fill(Field::kFeedforward, -1, 1);
  fill(Field::kKp, 20, 100);
  fill(Field::kKd, 1, 3);
  fill(Field::kFriction, 0.5, 1.5);
  fill(Field::kWrench, -60, 60);
  batch->Write(Field::kDelay, one, std::vector<float>{static_cast<float>(identity % 3)});
  batch->Write(Field::kWrenchSteps, one, std::vector<float>{3, static_cast<float>(identity % 9)});
  std::vector<double> mass, com;
  for (const BatchBody& body : batch->model().bodies) {
    mass.push_back(body.mass * rng.Uniform(0.8, 1.3));
    for (const double c : body.com) com.push_back(c + rng.Uniform(-0.01, 0.01));
  }
  batch->SetBodies(env, mass, com);
}

Crowd MakeCrowd(const mjModel& m, mjData* d, int kinds, int n) {
  Crowd c;
  c.size = n;
  for (int env = 0; env < n; ++env) {
    Rng rng(3, env);
    if (kinds > 0) {
      RandomState(m, env % kinds, env, d);
    } else {
      mj_resetDataKeyframe(&m, d, 0);
      for (int i = 7; i < m.nq; ++i) d->qpos[i] += 0.05 * rng.Normal();
      for (int i = 0; i < m.nv; ++i) d->qvel[i] = 0.1 * rng.Normal();
    }
    c.qpos.insert(c.qpos.end(), d->qpos, d->qpos + m.nq);
    c.qvel.insert(c.qvel.end(), d->qvel, d->qvel + m.nv);
    for (int u = 0; u < m.nu; ++u) {
      c.kp.push_back(static_cast<float>(8000 * m.dof_armature[6 + u]));
      c.kd.push_back(static_cast<float>(200 * m.dof_armature[6 + u]));
      c.target.push_back(static_cast<float>(m.key_qpos[7 + u] + 0.05 * rng.Normal()));
    }
    c.friction.push_back(static_cast<float>(rng.Uniform(0.6, 1.4)));
    for (int k = 0; k < 6; ++k)
      c.wrench.push_back(static_cast<float>(k < 2 ? rng.Uniform(-10, 10) : 0));
    c.steps.push_back(1e6f);
  }
  return c;
}

void Equip(PhysicsBatch* batch, const Crowd& c, const std::vector<int>& place) {
  const std::size_t n = place.size();
  const auto part = [&](const std::vector<float>& v) {
    return std::span<const float>(v).first(v.size() / c.size * n);
  };
  batch->Reset(place, part(c.qpos), part(c.qvel));
  batch->Write(Field::kKp, place, part(c.kp));
  batch->Write(Field::kKd, place, part(c.kd));
  batch->Write(Field::kTarget, place, part(c.target));
  batch->Write(Field::kFriction, place, part(c.friction));
  batch->Write(Field::kWrench, place, part(c.wrench));
  batch->Write(Field::kWrenchSteps, place, part(c.steps));
}
void Equip(PhysicsBatch* batch, const Crowd& c) { Equip(batch, c, Range(batch->num_envs())); }

}  // namespace silc::physics_test
