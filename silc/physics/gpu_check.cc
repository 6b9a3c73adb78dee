// SPDX-License-Identifier: Apache-2.0
// CUDA against the CPU on the same robots, and steps per second. Exit 0 equal, 1 not, 77 no GPU.
//   gpu_check [--no-bench] [--robots N]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "silc/base/rng.h"
#include "silc/physics/cuda_batch.h"
#include "silc/physics/test_models.h"

namespace silc {
namespace {

using physics_test::DataPtr;
using physics_test::G1;
using physics_test::ModelPtr;
using physics_test::RandomState;

BatchModelOptions Outputs() {
  return {.feet = {"left_ankle_roll_link", "right_ankle_roll_link"},
          .imus = {"imu_in_pelvis", "imu_in_torso"},
          .frames = {"left_foot", "right_palm"},
          .pushes = {"pelvis"}};
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<int> Range(int n) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), 0);
  return v;
}

/// The same crowd in any batch: kinds of states (−1: standing), gains, masses, frictions, pushes.
void Equip(PhysicsBatch* batch, const mjModel& m, mjData* d, int kinds) {
  const int n = batch->num_envs();
  std::vector<float> qpos, qvel, kp, kd, target, friction, wrench, steps;
  for (int env = 0; env < n; ++env) {
    Rng rng(3, env);
    if (kinds > 0) {
      RandomState(m, env % kinds, env, d);
    } else {
      mj_resetDataKeyframe(&m, d, 0);
      for (int i = 7; i < m.nq; ++i) d->qpos[i] += 0.05 * rng.Normal();
      for (int i = 0; i < m.nv; ++i) d->qvel[i] = 0.1 * rng.Normal();
    }
    qpos.insert(qpos.end(), d->qpos, d->qpos + m.nq);
    qvel.insert(qvel.end(), d->qvel, d->qvel + m.nv);
    for (int u = 0; u < m.nu; ++u) {
      kp.push_back(static_cast<float>(8000 * m.dof_armature[6 + u]));
      kd.push_back(static_cast<float>(200 * m.dof_armature[6 + u]));
      target.push_back(static_cast<float>(m.key_qpos[7 + u] + 0.05 * rng.Normal()));
    }
    friction.push_back(static_cast<float>(rng.Uniform(0.6, 1.4)));
    for (int k = 0; k < 6; ++k)
      wrench.push_back(static_cast<float>(k < 2 ? rng.Uniform(-10, 10) : 0));
    steps.push_back(1e6f);
  }
  const std::vector<int> envs = Range(n);
  batch->Reset(envs, qpos, qvel);
  batch->Write(Field::kKp, envs, kp);
  batch->Write(Field::kKd, envs, kd);
  batch->Write(Field::kTarget, envs, target);
  batch->Write(Field::kFriction, envs, friction);
  batch->Write(Field::kWrench, envs, wrench);
  batch->Write(Field::kWrenchSteps, envs, steps);
}

std::vector<float> All(PhysicsBatch* batch, Field field) {
  std::vector<float> values(static_cast<std::size_t>(batch->num_envs()) * batch->width(field));
  batch->Read(field, values);
  return values;
}

/// Per robot: largest difference over the robot's largest value (at least `floor`). True when the
/// median and the 99th percentile are within bounds.
bool Compare(const char* what,
             PhysicsBatch* a,
             PhysicsBatch* b,
             Field field,
             double floor,
             double median,
             double p99) {
  const std::vector<float> x = All(a, field), y = All(b, field);
  const int w = a->width(field);
  std::vector<double> errors;
  for (int env = 0; env < a->num_envs(); ++env) {
    double worst = 0, largest = floor;
    for (int i = 0; i < w; ++i) {
      const std::size_t k = static_cast<std::size_t>(env) * w + i;
      worst = std::max<double>(worst, std::abs(x[k] - y[k]));
      largest = std::max<double>(largest, std::abs(y[k]));
      if (!std::isfinite(x[k])) worst = std::numeric_limits<double>::infinity();
    }
    errors.push_back(worst / largest);
  }
  std::sort(errors.begin(), errors.end());
  const double at_median = errors[errors.size() / 2], at_p99 = errors[errors.size() * 99 / 100];
  const bool ok = at_median < median && at_p99 < p99;
  std::printf(
      "{\"name\":\"physics.cuda_error\",\"what\":\"%s\",\"median\":%.2e,\"p99\":%.2e,\"max\":%.2e,"
      "\"robots\":%d,\"ok\":%s}\n",
      what,
      at_median,
      at_p99,
      errors.back(),
      a->num_envs(),
      ok ? "true" : "false");
  return ok;
}

bool Check(const mjModel& m, mjData* d, int robots, const char* name) {
  const BatchModel model = CompileBatchModel(m, Outputs());
  CpuBatch cpu(model, robots);
  CudaBatch cuda(model, robots);
  Equip(&cpu, m, d, physics_test::kStateKinds);
  Equip(&cuda, m, d, physics_test::kStateKinds);
  cpu.Advance(1);
  cuda.Advance(1);
  cpu.UpdateKinematics();
  cuda.UpdateKinematics();
  std::printf("# %s, one step from random states\n", name);
  // both are single precision with sums in another order: each is within 1e-5 of MuJoCo
  bool ok = Compare("qacc", &cuda, &cpu, Field::kQacc, 1, 1e-5, 2e-4);
  ok &= Compare("qpos", &cuda, &cpu, Field::kQpos, 1, 1e-6, 1e-5);
  ok &= Compare("torque", &cuda, &cpu, Field::kTorque, 1, 1e-5, 1e-4);
  ok &= Compare("foot_force", &cuda, &cpu, Field::kFootForce, 300, 1e-4, 5e-3);
  ok &= Compare("imu", &cuda, &cpu, Field::kImu, 10, 1e-5, 1e-3);
  ok &= Compare("com", &cuda, &cpu, Field::kCom, 1, 1e-5, 1e-4);
  ok &= Compare("pose", &cuda, &cpu, Field::kPose, 1, 1e-5, 1e-4);
  ok &= Compare("frame_jacobian", &cuda, &cpu, Field::kFrameJacobian, 1, 1e-5, 1e-4);
  ok &= Compare("stance_jacobian", &cuda, &cpu, Field::kStanceJacobian, 1, 1e-5, 1e-4);

  // a mad robot is frozen and its neighbours do not notice
  const std::vector<float> before = All(&cuda, Field::kQpos);
  std::vector<float> poison(before.begin(), before.begin() + m.nq);
  poison[9] = std::numeric_limits<float>::quiet_NaN();
  CudaBatch clean(model, robots), sick(model, robots);
  Equip(&clean, m, d, -1);
  Equip(&sick, m, d, -1);
  sick.Write(Field::kQpos, std::vector<int>{5}, poison);
  for (int k = 0; k < 5; ++k) {
    clean.Advance(4);
    sick.Advance(4);
  }
  const std::vector<float> a = All(&clean, Field::kQpos), b = All(&sick, Field::kQpos);
  bool same = static_cast<int>(All(&sick, Field::kFault)[5]) == kFaultNotFinite;
  for (int env = 0; env < robots; ++env) {
    for (int i = 0; env != 5 && i < m.nq; ++i) {
      same &= a[static_cast<std::size_t>(env) * m.nq + i] ==
              b[static_cast<std::size_t>(env) * m.nq + i];
    }
  }
  std::printf("{\"name\":\"physics.cuda_poison\",\"ok\":%s}\n", same ? "true" : "false");
  return ok && same;
}

void Bench(const mjModel& m, mjData* d, double friction) {
  const BatchModel model = CompileBatchModel(m, Outputs());
  for (const int robots : {4096, 16384, 65536}) {
    const double begin = Seconds();
    CudaBatch batch(model, robots);
    const double made = Seconds();
    batch.Advance(4);
    batch.Synchronize();
    const double first = Seconds();
    Equip(&batch, m, d, -1);
    for (int t = 0; t < 5; ++t) batch.Advance(4);
    batch.Synchronize();
    Equip(&batch, m, d, -1);
    constexpr int kCalls = 50;
    const double start = Seconds();
    for (int t = 0; t < kCalls; ++t) batch.Advance(4);
    batch.Synchronize();
    const double rate = 4.0 * kCalls * robots / (Seconds() - start);
    const std::vector<float> fault = All(&batch, Field::kFault), qpos = All(&batch, Field::kQpos);
    double height = 0;
    for (int env = 0; env < robots; ++env) height += qpos[static_cast<std::size_t>(env) * m.nq + 2];
    const auto faults = std::count_if(fault.begin(), fault.end(), [](float f) { return f != 0; });
    std::printf(
        "{\"name\":\"physics.steps_per_s\",\"value\":%.4g,\"unit\":\"1/s\",\"backend\":\"cuda\","
        "\"model\":\"g1\",\"envs\":%d,\"substeps\":4,\"friction_loss\":%g,\"faults\":%ld,"
        "\"mean_height\":%.4f,\"construct_s\":%.3f,\"first_step_s\":%.3f}\n",
        rate,
        robots,
        friction,
        static_cast<long>(faults),
        height / robots,
        made - begin,
        first - made);
    std::fflush(stdout);
  }
}

int Main(int argc, char** argv) {
  bool bench = true;
  int robots = 2048;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--no-bench") == 0) bench = false;
    if (std::strcmp(argv[i], "--robots") == 0 && i + 1 < argc) robots = std::atoi(argv[++i]);
  }
  if (!CudaAvailable()) {
    std::printf("no GPU\n");
    return 77;
  }
  const ModelPtr m = G1();
  RemoveSelfCollision(m.get());
  const DataPtr d(mj_makeData(m.get()));
  bool ok = Check(*m, d.get(), robots, "g1");
  if (bench) Bench(*m, d.get(), 0);
  for (int i = 6; i < m->nv; ++i) m->dof_frictionloss[i] = 0.3;
  ok &= Check(*m, d.get(), robots, "g1 with friction loss");
  if (bench) Bench(*m, d.get(), 0.3);
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace silc

int main(int argc, char** argv) { return silc::Main(argc, argv); }
