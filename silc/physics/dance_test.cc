// SPDX-License-Identifier: Apache-2.0
// A recorded dance replayed: targets of 250 control steps of four substeps, on the model it was
// recorded with. How long stay the stepper and MuJoCo together, and how long MuJoCo and itself when
// it starts a rounding error of a float away?
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "silc/base/rng.h"
#include "silc/npz/npz.h"
#include "silc/physics/batch.h"
#include "silc/physics/test_models.h"

namespace silc {
namespace {

using physics_test::DataPtr;
using physics_test::ModelPtr;

constexpr int kRobots = 32;  // one as recorded, the others a rounding error away
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

double MedianSeconds(const std::vector<Parting>& all, int bound, int steps) {
  std::vector<double> times;
  for (const Parting& p : all) {
    times.push_back(0.02 * (p.steps[bound] < 0 ? steps : p.steps[bound]));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

TEST(Dance, StaysWithMujocoAsLongAsMujocoDoes) {
  const std::string folder = SILC_REFERENCE_DIR "/g1/";
  const std::string motion = folder + "motions/shuffle_dance.npz",
                    scene = folder + "scene_flat.xml";
  for (const std::string& file : {motion, scene}) {
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "no reference data: " << file;
  }
  char error[1000] = "";
  const ModelPtr m(mj_loadXML(scene.c_str(), nullptr, error, sizeof error));
  if (!m) GTEST_SKIP() << "reference model: " << error;
  // the recording's solver stopped early; here both are to find the minimum
  m->opt.iterations = 100;
  m->opt.tolerance = 1e-12;
  RemoveSelfCollision(m.get());
  const NpzFile npz = ReadNpz(motion);
  const int nq = static_cast<int>(m->nq), nv = static_cast<int>(m->nv),
            nu = static_cast<int>(m->nu);
  const std::vector<double> qpos = npz["qpos"].AsDoubles({kAnySize, nq}),
                            qvel = npz["qvel"].AsDoubles({kAnySize, nv}),
                            ctrl = npz["ctrl"].AsDoubles({kAnySize, nu});
  const int steps = static_cast<int>(ctrl.size()) / nu;
  ASSERT_GE(qpos.size(), (ctrl.size() / nu + 1) * nq);

  const BatchModel model = CompileBatchModel(*m);
  CpuBatch cpu(model, kRobots);
  MujocoBatch mujoco(*m, model, kRobots, 2);
  for (int env = 0; env < kRobots; ++env) {
    Rng rng(11, env);
    std::vector<float> q(qpos.begin(), qpos.begin() + nq), v(qvel.begin(), qvel.begin() + nv);
    if (env > 0) {
      // joints and base a rounding error away
      for (float& x : q) x *= 1 + static_cast<float>((rng.Uniform() < 0.5 ? -1 : 1) * 1.2e-7);
    }
    for (PhysicsBatch* b :
         {static_cast<PhysicsBatch*>(&cpu), static_cast<PhysicsBatch*>(&mujoco)}) {
      b->Reset(std::vector<int>{env}, q, v);
    }
  }
  std::vector<Parting> ours(kRobots), mujocos(kRobots - 1);
  Parting recording;
  double fallen = 10;
  for (int t = 0; t < steps; ++t) {
    const std::vector<float> target(ctrl.begin() + t * nu, ctrl.begin() + (t + 1) * nu);
    for (int env = 0; env < kRobots; ++env) {
      cpu.Write(Field::kTarget, std::vector<int>{env}, target);
      mujoco.Write(Field::kTarget, std::vector<int>{env}, target);
    }
    cpu.Advance(kSubsteps);
    mujoco.Advance(kSubsteps);
    const FieldView a = cpu.view(Field::kQpos), b = mujoco.view(Field::kQpos);
    // each robot of ours against the same start in MuJoCo; MuJoCo's others against its first
    for (int env = 0; env < kRobots; ++env) ours[env].Look(a, env, b, env, t);
    for (int env = 1; env < kRobots; ++env) mujocos[env - 1].Look(b, env, b, 0, t);
    std::vector<float> row(qpos.begin() + (t + 1) * nq, qpos.begin() + (t + 2) * nq);
    const FieldView recorded = {row.data(), 1, 0, nq, false};
    recording.Look(b, 0, recorded, 0, t);
    fallen = std::min<double>(fallen, b(0, 2));
  }
  const auto text = [&](const Parting& p, int k) {
    return p.steps[k] < 0 ? steps * 0.02 : p.steps[k] * 0.02;
  };
  std::printf(
      "base no lower than %.2f m; the recording itself leaves MuJoCo 3.17 (%.0e, %.0e, %.0e) after "
      "%.2f, %.2f, %.2f s\n",
      fallen,
      kApart[0],
      kApart[1],
      kApart[2],
      text(recording, 0),
      text(recording, 1),
      text(recording, 2));
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

}  // namespace
}  // namespace silc
