// SPDX-License-Identifier: Apache-2.0
// Single precision, as used in training: error of qacc against MuJoCo in double precision, in the
// norm |qacc − qacc_ref| / max(|qacc_ref|, |qacc_smooth|), for every instruction set of this
// machine.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "silc/physics/batch.h"
#include "silc/physics/group_kernel.h"
#include "silc/physics/robot_buffer.h"
#include "silc/physics/test_models.h"

namespace silc {
namespace {

using physics_test::DataPtr;
using physics_test::kStateKinds;
using physics_test::NamedModel;
using physics_test::RandomState;

#ifdef __SANITIZE_ADDRESS__
constexpr int kStates = 32;  // per model and kind
#else
constexpr int kStates = 512;
#endif

double Norm(const mjtNum* v, int n) { return mju_norm(v, n); }

double Quantile(std::vector<double>* sorted, double p) {
  std::sort(sorted->begin(), sorted->end());
  return (*sorted)[static_cast<std::size_t>(p * (sorted->size() - 1))];
}

void Load(PhysicsBatch* batch, int env, const mjModel& m, const mjData& d) {
  const std::vector<int> one = {env};
  const std::vector<float> qpos(d.qpos, d.qpos + m.nq), qvel(d.qvel, d.qvel + m.nv);
  batch->Reset(one, qpos, qvel);
  std::vector<float> guess(d.qacc_warmstart, d.qacc_warmstart + m.nv), target, feedforward;
  batch->Write(Field::kQacc, one, guess);
  for (int u = 0; u < m.nu; ++u) {
    const bool motor = batch->model().default_kp[u] == 0;
    target.push_back(motor ? 0 : static_cast<float>(d.ctrl[u]));
    feedforward.push_back(motor ? static_cast<float>(m.actuator_gear[6 * u] * d.ctrl[u]) : 0);
  }
  batch->Write(Field::kTarget, one, target);
  batch->Write(Field::kFeedforward, one, feedforward);
}

/// Contact points in touch as single and as double precision see them.
bool ContactsAgree(const BatchModel& model, const StepModel<float>& single, const mjData& d) {
  portable::RobotBuffer<float> a(model);
  portable::RobotBuffer<double> b(model);
  static portable::Workspace<float> work_a;
  static portable::Workspace<double> work_b;
  for (int i = 0; i < model.step.nq; ++i) {
    a.data().qpos[i] = static_cast<float>(d.qpos[i]);
    b.data().qpos[i] = d.qpos[i];
  }
  portable::Kinematics<float>(single, a.data(), 0, work_a);
  portable::Kinematics<double>(model.step, b.data(), 0, work_b);
  if (work_a.num_active != work_b.num_active) return false;
  for (int k = 0; k < work_a.num_active; ++k) {
    if (work_a.contact[k].id != work_b.contact[k].id) return false;
  }
  return true;
}

TEST(Accuracy, FloatAccelerationIsMujocosToFivedigits) {
  for (const NamedModel& named : physics_test::AllModels()) {
    mjModel& m = *named.model;
    m.opt.iterations = 100;
    m.opt.tolerance = 1e-14;
    const BatchModel model = CompileBatchModel(m);
    const StepModel<float> single = ToFloat(model.step);
    const DataPtr d(mj_makeData(&m));
    const int n = kStateKinds * kStates;
    std::vector<std::vector<mjtNum>> qacc(n);
    std::vector<double> scale(n);
    std::vector<bool> agree(n);
    int apart = 0;
    for (int i = 0; i < n; ++i) {
      RandomState(m, i % kStateKinds, i, d.get());
      agree[i] = ContactsAgree(model, single, *d);
      apart += !agree[i];
      mj_forward(&m, d.get());
      qacc[i].assign(d->qacc, d->qacc + m.nv);
      scale[i] = std::max(Norm(d->qacc, m.nv), Norm(d->qacc_smooth, m.nv));
    }
    for (const GroupKernel& kernel : AvailableGroupKernels()) {
      CpuBatch batch(model, n, {.threads = 1, .kernel = kernel.name});
      for (int i = 0; i < n; ++i) {
        RandomState(m, i % kStateKinds, i, d.get());
        Load(&batch, i, m, *d);
      }
      batch.Advance(1);
      const FieldView view = batch.view(Field::kQacc);
      std::vector<double> errors;
      for (int i = 0; i < n; ++i) {
        if (!agree[i]) continue;
        std::vector<mjtNum> difference(m.nv);
        for (int k = 0; k < m.nv; ++k) difference[k] = view(i, k) - qacc[i][k];
        errors.push_back(Norm(difference.data(), m.nv) / scale[i]);
      }
      const double median = Quantile(&errors, 0.5), p99 = Quantile(&errors, 0.99);
      std::printf(
          "%-18s %-9s median %.1e  p99 %.1e  max %.1e  (%zu states, %d with other contacts, "
          "%ld unconverged)\n",
          named.name.c_str(),
          kernel.name,
          median,
          p99,
          errors.back(),
          errors.size(),
          apart,
          batch.counts().unconverged);
      EXPECT_LT(median, 1e-5) << named.name << " " << kernel.name;
      EXPECT_LT(p99, 2e-4) << named.name << " " << kernel.name;
    }
  }
}

// A foot exactly on the ground touches in one precision and not in the other, and then lands one
// step earlier or later. That is no error of the stepper: MuJoCo does the same to itself when the
// robot is lifted by less than a float can tell. The two separations must be alike.
TEST(Accuracy, DisagreementAboutATouchIsHarmless) {
  const auto m = physics_test::G1();
  RemoveSelfCollision(m.get());
  const BatchModel model = CompileBatchModel(*m);
  const StepModel<float> single = ToFloat(model.step);
  const DataPtr d(mj_makeData(m.get()));
  const int n = 400;
  CpuBatch batch(model, n);
  MujocoBatch reference(*m, model, n), lifted(*m, model, n);
  std::vector<bool> apart(n), apart_lifted(n);
  const auto touching = [&] {
    mj_kinematics(m.get(), d.get());
    mj_comPos(m.get(), d.get());
    mj_collision(m.get(), d.get());
    return d->ncon;
  };
  for (int i = 0; i < n; ++i) {
    RandomState(*m, 1, i, d.get());
    mj_kinematics(m.get(), d.get());
    double lowest = 1e9;
    for (int g = 0; g < m->ngeom; ++g) {
      if (m->geom_type[g] == mjGEOM_SPHERE && m->geom_conaffinity[g]) {
        lowest = std::min(lowest, d->geom_xpos[3 * g + 2] - m->geom_size[3 * g]);
      }
    }
    d->qpos[2] = static_cast<float>(d->qpos[2] - lowest);
    apart[i] = !ContactsAgree(model, single, *d);
    const auto load = [&](PhysicsBatch* b) {
      Load(b, i, *m, *d);
      b->Write(Field::kKp, std::vector<int>{i}, std::vector<float>(m->nu, 60.0f));
      b->Write(Field::kKd, std::vector<int>{i}, std::vector<float>(m->nu, 2.0f));
    };
    load(&batch);
    load(&reference);
    const int before = touching();
    d->qpos[2] = std::nextafter(static_cast<float>(d->qpos[2]), 2.0f);  // 6e-8 m up
    apart_lifted[i] = touching() != before;
    load(&lifted);
  }
  batch.Advance(20);
  reference.Advance(20);
  lifted.Advance(20);
  const auto separation = [&](PhysicsBatch* a, int env) {
    double worst = 0;
    for (int k = 0; k < m->nq; ++k) {
      worst = std::max<double>(
          worst, std::abs(a->view(Field::kQpos)(env, k) - reference.view(Field::kQpos)(env, k)));
    }
    return worst;
  };
  std::vector<double> ours, mujocos;
  for (int i = 0; i < n; ++i) {
    if (apart[i]) ours.push_back(separation(&batch, i));
    if (apart_lifted[i]) mujocos.push_back(separation(&lifted, i));
  }
  ASSERT_GT(ours.size(), 20u) << "the states must be what they are for";
  ASSERT_GT(mujocos.size(), 20u);
  std::printf(
      "20 steps after a touch in doubt: float against MuJoCo median %.1e, p90 %.1e (%zu states); "
      "MuJoCo against itself lifted by 6e-8 m: %.1e, %.1e (%zu states)\n",
      Quantile(&ours, 0.5),
      Quantile(&ours, 0.9),
      ours.size(),
      Quantile(&mujocos, 0.5),
      Quantile(&mujocos, 0.9),
      mujocos.size());
  // quantiles of some hundred draws scatter by a factor below two
  EXPECT_LT(Quantile(&ours, 0.5), 2 * Quantile(&mujocos, 0.5));
  EXPECT_LT(Quantile(&ours, 0.9), 2 * Quantile(&mujocos, 0.9));
}

}  // namespace
}  // namespace silc
