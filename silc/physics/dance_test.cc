// SPDX-License-Identifier: Apache-2.0
// A recorded dance replayed: targets of 250 control steps of four substeps, on the model it was
// recorded with. How long stay the stepper and MuJoCo together, and how long MuJoCo and itself when
// it is nudged by a rounding error of a float at every control step?
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "silc/base/rng.h"
#include "silc/base/test_paths.h"
#include "silc/npz/npz.h"
#include "silc/physics/batch.h"
#include "silc/physics/test_models.h"

namespace silc {
namespace {

using physics_test::DataPtr;
using physics_test::ModelPtr;

constexpr int kRobots = 32;  // one as recorded; others begin (ours) or are nudged (MuJoCo's) aside
constexpr int kSubsteps = 4;
constexpr double kApart[] = {1e-4, 1e-3, 1e-2};  // [rad or m] largest difference in qpos

/// First control step at which robot `a` and robot `b` differ by more than each bound.
struct Parting {
  std::vector<int> steps = std::vector<int>(3, -1);
  void Look(const FieldView& a, int i, const FieldView& b, int j, int t) {
    double worst = 0;
    for (int k = 0; k < a.width; ++k) worst = std::max<double>(worst, std::abs(a(i, k) - b(j, k)));
    for (int k = 0; k < 3; ++k) {
      if (steps[k] < 0 && !(worst < kApart[k])) steps[k] = t;
    }
  }
};

/// Changes a robot's state by one rounding error of a float, at random: what single precision does
/// at least once a control step.
void Nudge(PhysicsBatch* batch, int env, Rng* rng) {
  for (const Field field : {Field::kQpos, Field::kQvel}) {
    const FieldView view = batch->view(field);
    for (int k = 0; k < view.width; ++k) {
      view(env, k) *= 1 + static_cast<float>((rng->Uniform() < 0.5 ? -1 : 1) * 1.2e-7);
    }
  }
}

double MedianSeconds(const std::vector<Parting>& all, int bound, int steps) {
  std::vector<double> times;
  for (const Parting& p : all) {
    times.push_back(0.02 * (p.steps[bound] < 0 ? steps : p.steps[bound]));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// The recording and the model it was made with.
struct Recording {
  /// Empty, or what is missing.
  std::string Load(bool self_collision) {
    const std::string folder = ReferencePath("g1/");
    const std::string motion = folder + "motions/shuffle_dance.npz";
    const std::string scene = folder + "scene_flat.xml";
    for (const std::string& file : {motion, scene}) {
      if (!std::filesystem::exists(file)) return "no reference data: " + file;
    }
    char error[1000] = "";
    model.reset(mj_loadXML(scene.c_str(), nullptr, error, sizeof error));
    if (!model) return std::string("reference model: ") + error;
    // the recording's solver stopped early; here both are to find the minimum
    model->opt.iterations = 100;
    model->opt.tolerance = 1e-12;
    if (!self_collision) RemoveSelfCollision(model.get());
    const NpzFile npz = ReadNpz(motion);
    ctrl = npz["ctrl"].AsDoubles({kAnySize, model->nu});
    steps = static_cast<int>(ctrl.size()) / static_cast<int>(model->nu);
    qpos = npz["qpos"].AsDoubles({steps + 1, model->nq});
    qvel = npz["qvel"].AsDoubles({steps + 1, model->nv});
    return "";
  }
  ModelPtr model;
  std::vector<double> qpos, qvel, ctrl;
  int steps;
};

/// With and without contacts between the robot's own links; the recording was made with them.
class Dance : public testing::TestWithParam<bool> {};

TEST_P(Dance, StaysWithMujocoAsLongAsMujocoDoes) {
  const bool self_collision = GetParam();
  Recording recording;
  if (const std::string missing = recording.Load(self_collision); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  const mjModel& m = *recording.model;
  const std::vector<double>&qpos = recording.qpos, &qvel = recording.qvel, &ctrl = recording.ctrl;
  const int nq = static_cast<int>(m.nq), nv = static_cast<int>(m.nv), nu = static_cast<int>(m.nu);
  const int steps = recording.steps;
  const BatchModel model = CompileBatchModel(m, {.self_collision = self_collision});
  CpuBatch cpu(model, kRobots);
  MujocoBatch mujoco(m, model, kRobots, 2);
  Rng rng(11);
  for (int env = 0; env < kRobots; ++env) {
    const std::vector<float> q(qpos.begin(), qpos.begin() + nq), v(qvel.begin(), qvel.begin() + nv);
    cpu.Reset(std::vector<int>{env}, q, v);
    mujoco.Reset(std::vector<int>{env}, q, v);
    if (env > 0) Nudge(&cpu, env, &rng);
  }
  std::vector<Parting> ours(kRobots), mujocos(kRobots - 1);
  Parting recorded;
  double lowest = 10;
  for (int t = 0; t < steps; ++t) {
    const std::vector<float> target(ctrl.begin() + t * nu, ctrl.begin() + (t + 1) * nu);
    for (int env = 0; env < kRobots; ++env) {
      cpu.Write(Field::kTarget, std::vector<int>{env}, target);
      mujoco.Write(Field::kTarget, std::vector<int>{env}, target);
    }
    for (int env = 1; env < kRobots; ++env) Nudge(&mujoco, env, &rng);
    cpu.Advance(kSubsteps);
    mujoco.Advance(kSubsteps);
    const FieldView a = cpu.view(Field::kQpos), b = mujoco.view(Field::kQpos);
    // the robots of ours, and those of MuJoCo that are nudged, against MuJoCo's first
    for (int env = 0; env < kRobots; ++env) ours[env].Look(a, env, b, 0, t);
    for (int env = 1; env < kRobots; ++env) mujocos[env - 1].Look(b, env, b, 0, t);
    std::vector<float> row(qpos.begin() + (t + 1) * nq, qpos.begin() + (t + 2) * nq);
    recorded.Look(b, 0, FieldView{row.data(), 1, 0, nq, false}, 0, t);
    lowest = std::min<double>(lowest, b(0, 2));
  }
  const auto seconds = [&](int k) {
    return 0.02 * (recorded.steps[k] < 0 ? steps : recorded.steps[k]);
  };
  std::printf("self-collision %s, %.4f contacts of links a step; base no lower than %.2f m\n",
              self_collision ? "on" : "off",
              static_cast<double>(cpu.counts().self_contacts) / cpu.counts().steps,
              lowest);
  for (int k = 0; k < 3; ++k) {
    std::printf(
        "apart by %.0e: MuJoCo 3.17 and the recording after %.2f s\n", kApart[k], seconds(k));
  }
  for (int k = 0; k < 3; ++k) {
    const double mine = MedianSeconds(ours, k, steps), theirs = MedianSeconds(mujocos, k, steps);
    std::printf(
        "apart by %.0e: stepper and MuJoCo after %.2f s, MuJoCo and itself after %.2f s (medians "
        "of %d)\n",
        kApart[k],
        mine,
        theirs,
        kRobots);
    // single precision in every step against single precision once: not much sooner
    EXPECT_GT(mine, 0.5 * theirs);
  }
}

// half seconds from many places of the dance, so that what is compared is dancing, not lying
TEST_P(Dance, HalfSecondsFromAnywhere) {
  Recording recording;
  if (const std::string missing = recording.Load(GetParam()); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  const mjModel& m = *recording.model;
  const int nq = static_cast<int>(m.nq), nv = static_cast<int>(m.nv), nu = static_cast<int>(m.nu);
  constexpr int kSteps = 25, kStride = 3;
  const int starts = (recording.steps - kSteps) / kStride;
  const BatchModel model = CompileBatchModel(m, {.self_collision = GetParam()});
  CpuBatch cpu(model, starts);
  MujocoBatch mujoco(m, model, starts, 2), nudged(m, model, starts, 2);
  for (int env = 0; env < starts; ++env) {
    const int row = kStride * env;
    const std::vector<int> one = {env};
    const std::vector<float> q(recording.qpos.begin() + row * nq,
                               recording.qpos.begin() + (row + 1) * nq);
    const std::vector<float> v(recording.qvel.begin() + row * nv,
                               recording.qvel.begin() + (row + 1) * nv);
    cpu.Reset(one, q, v);
    mujoco.Reset(one, q, v);
    nudged.Reset(one, q, v);
  }
  Rng rng(12);
  for (int t = 0; t < kSteps; ++t) {
    for (int env = 0; env < starts; ++env) {
      const auto at = recording.ctrl.begin() + (kStride * env + t) * nu;
      const std::vector<float> target(at, at + nu);
      const std::vector<int> one = {env};
      cpu.Write(Field::kTarget, one, target);
      mujoco.Write(Field::kTarget, one, target);
      nudged.Write(Field::kTarget, one, target);
      Nudge(&nudged, env, &rng);
    }
    cpu.Advance(kSubsteps);
    mujoco.Advance(kSubsteps);
    nudged.Advance(kSubsteps);
  }
  const auto apart = [&](const auto& other) {
    std::vector<double> all;
    for (int env = 0; env < starts; ++env) {
      double worst = 0;
      for (int k = 0; k < nq; ++k) {
        worst =
            std::max<double>(worst, std::abs(other(env, k) - mujoco.view(Field::kQpos)(env, k)));
      }
      all.push_back(worst);
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  const std::vector<double> ours = apart(cpu.view(Field::kQpos)),
                            itself = apart(nudged.view(Field::kQpos)),
                            recorded = apart([&](int env, int k) {
                              return recording.qpos[(kStride * env + kSteps) * nq + k];
                            });
  const auto print = [&](const char* who, const std::vector<double>& x) {
    std::printf("%s after 0.5 s: median %.1e, p90 %.1e, worst %.1e (%d starts)\n",
                who,
                x[starts / 2],
                x[starts * 9 / 10],
                x.back(),
                starts);
  };
  print("stepper and MuJoCo     ", ours);
  print("MuJoCo nudged          ", itself);
  print("recording and MuJoCo   ", recorded);
  // Rounding in every substep against rounding in every fourth: twice as much, if at random. The
  // worst starts are those in which a point of a sole is within a rounding error of the floor, for
  // one touches and for the other not: centimetres, in either column.
  EXPECT_LT(ours[starts / 2], 5 * itself[starts / 2]);
  EXPECT_LT(ours[starts * 3 / 4], 1e-4);
}

INSTANTIATE_TEST_SUITE_P(SelfCollision, Dance, testing::Bool());

}  // namespace
}  // namespace silc
