// SPDX-License-Identifier: Apache-2.0
// Mechanics that must hold whatever the numbers are, and rollouts against MuJoCo's as
// distributions.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "silc/base/rng.h"
#include "silc/physics/batch.h"
#include "silc/physics/robot_buffer.h"
#include "silc/physics/test_models.h"

namespace silc {
namespace {

using physics_test::DataPtr;
using physics_test::RandomState;

// Sanitizer builds run MuJoCo's side tenfold slower: fewer robots, for less long, which then can
// tell less. The figures of docs/physics.md are those of the full size.
#ifdef __SANITIZE_ADDRESS__
constexpr int kRobots = 200;
constexpr int kControlSteps = 150;
#else
constexpr int kRobots = 1000;
constexpr int kControlSteps = 250;  // of 4 × 5 ms: 5 s
#endif

BatchModelOptions Options() {
  return {.feet = {"left_ankle_roll_link", "right_ankle_roll_link"}, .pushes = {"pelvis"}};
}

/// Servos around the pose of the first keyframe. kp is given per inertia of the motor [1/s²]: up to
/// 30000, and with the damping below, they are stable at 5 ms; ankles need 15000 to hold the robot
/// up.
void Hold(PhysicsBatch* batch, const mjModel& m, int env, double stiffness) {
  const std::vector<int> one = {env};
  std::vector<float> target, kp, kd;
  for (int u = 0; u < m.nu; ++u) {
    target.push_back(static_cast<float>(m.key_qpos[7 + u]));
    kp.push_back(static_cast<float>(stiffness * m.dof_armature[6 + u]));
    kd.push_back(static_cast<float>(250 * m.dof_armature[6 + u]));
  }
  batch->Write(Field::kTarget, one, target);
  batch->Write(Field::kKp, one, kp);
  batch->Write(Field::kKd, one, kd);
}

// at rest the ground carries the robot
TEST(Mechanics, FeetCarryTheWeight) {
  const auto m = physics_test::G1();
  CpuBatch batch(CompileBatchModel(*m, Options()), 1);
  const std::vector<float> qpos(m->key_qpos, m->key_qpos + m->nq), qvel(m->nv, 0.0f);
  batch.Reset(std::vector<int>{0}, qpos, qvel);
  Hold(&batch, *m, 0, 30000);
  for (int k = 0; k < 100; ++k) batch.Advance(4);
  const FieldView force = batch.view(Field::kFootForce);
  const double weight = m->body_subtreemass[0] * 9.81;
  // still swaying a little after 2 s: accelerations of a hundredth of gravity
  EXPECT_NEAR(force(0, 2) + force(0, 5), weight, 0.01 * weight);
  EXPECT_EQ(batch.view(Field::kFault)(0, 0), 0);
}

/// Kinetic and potential energy, momentum and angular momentum about the centre of mass.
struct Motion {
  double energy;
  portable::Vec3<double> momentum, spin;
};

Motion Measure(const StepModel<double>& s,
               const portable::RobotData<double>& r,
               const portable::Workspace<double>& w) {
  using portable::Spatial;
  // (D2) velocities are relative to the base's, which is added here
  const portable::Vec3<double> v0 = {r.qvel[0], r.qvel[1], r.qvel[2]};
  Motion out = {0, {0, 0, 0}, {0, 0, 0}};
  portable::Vec3<double> h = {0, 0, 0};
  double mass = 0;
  for (int b = 0; b < s.num_links; ++b) {
    portable::LinkFrame<double> frame = w.frame[b];
    Spatial<double> v = frame.v;
    v.lin = v.lin + v0;
    const Spatial<double> L = w.link[b].G * v;
    out.energy += 0.5 * Dot(v, L) + 0.5 * s.link[b].armature * (b > 0) *
                                        std::pow(b > 0 ? r.qvel[s.link[b].dof] : 0, 2);
    out.energy += 9.81 * (w.link[b].G.h.z + w.link[b].G.m * r.qpos[2]);
    out.momentum = out.momentum + L.lin;
    out.spin = out.spin + L.ang;
    h = h + w.link[b].G.h;
    mass += w.link[b].G.m;
  }
  out.spin = out.spin - Cross(h * (1 / mass), out.momentum);
  return out;
}

// A robot in the air, motors off: momentum changes by gravity alone, spin not at all, energy not at
// all. The rates are taken over a step of 1 µs, so what the integrator does to them is out of
// sight.
TEST(Mechanics, FlightConservesEnergyAndMomentum) {
  const auto m = physics_test::G1();
  m->opt.timestep = 1e-6;
  BatchModel model = CompileBatchModel(*m);
  for (int b = 0; b < model.step.num_links; ++b) {
    model.step.link[b].keep_frame = 1;
    model.step.link[b].limited = 0;
    model.step.link[b].armature = 0;  // its momentum is not a body's
  }
  const DataPtr d(mj_makeData(m.get()));
  const auto work = std::make_unique<portable::Workspace<double>>();
  for (unsigned seed = 0; seed < 20; ++seed) {
    RandomState(*m, 0, seed, d.get());
    portable::RobotBuffer<double> robot(model);
    const portable::RobotData<double>& r = robot.data();
    for (int i = 0; i < m->nq; ++i) r.qpos[i] = d->qpos[i];
    for (int i = 0; i < m->nv; ++i) r.qvel[i] = d->qvel[i];
    r.qpos[2] = 3;
    const double h = model.step.timestep;
    const auto measure = [&] {
      portable::Kinematics<double>(model.step, r, 0, *work);
      return Measure(model.step, r, *work);
    };
    const Motion before = measure();
    portable::Step<double>(
        model.step, r, {.max_iterations = 50, .line_search = 20}, 0, false, nullptr, *work);
    ASSERT_EQ(work->num_active, 0);
    const Motion after = measure();
    const double mass = m->body_subtreemass[0];
    // rates, relative to weight and to weight × metre; first order in the step: 1e-6 s × 1e3 1/s
    EXPECT_NEAR((after.momentum.x - before.momentum.x) / h / (mass * 9.81), 0, 1e-3) << seed;
    EXPECT_NEAR((after.momentum.y - before.momentum.y) / h / (mass * 9.81), 0, 1e-3) << seed;
    EXPECT_NEAR((after.momentum.z - before.momentum.z) / h / (mass * 9.81), -1, 1e-3) << seed;
    EXPECT_NEAR((after.spin.x - before.spin.x) / h / (mass * 9.81), 0, 1e-3) << seed;
    EXPECT_NEAR((after.spin.y - before.spin.y) / h / (mass * 9.81), 0, 1e-3) << seed;
    EXPECT_NEAR((after.spin.z - before.spin.z) / h / (mass * 9.81), 0, 1e-3) << seed;
    EXPECT_NEAR((after.energy - before.energy) / h / before.energy, 0, 0.05) << seed;
  }
}

/// Probability that two samples of one distribution differ as much as these (Kolmogorov and
/// Smirnov, the asymptotic formula).
double SameDistribution(std::vector<double> a, std::vector<double> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  double distance = 0;
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    const double x = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= x) ++i;
    while (j < b.size() && b[j] <= x) ++j;
    distance = std::max(distance,
                        std::abs(static_cast<double>(i) / static_cast<double>(a.size()) -
                                 static_cast<double>(j) / static_cast<double>(b.size())));
  }
  const double n =
      static_cast<double>(a.size() * b.size()) / static_cast<double>(a.size() + b.size());
  const double lambda = (std::sqrt(n) + 0.12 + 0.11 / std::sqrt(n)) * distance;
  double p = 0;
  for (int k = 1; k < 100; ++k) {
    p += 2 * (k % 2 ? 1 : -1) * std::exp(-2.0 * k * k * lambda * lambda);
  }
  return lambda < 0.2 ? 1 : std::clamp(p, 0.0, 1.0);
}

constexpr double kMoments[] = {0.1, 0.3, 1};  // when robots are measured, as shares of the rollout

// fixed seeds; a sound stepper fails one of the ten p-values once in a thousand choices of them
constexpr double kLeast = 1e-4;

struct Outcome {
  std::vector<double> height[3], left_force[3], both_forces[3], fall_time;
  double cone = 0;  // largest (|f_x| + |f_y|) / (μ f_z) of a foot's force, 1 on the pyramid
};

/// Robots of random stiffness that stand and are pushed at random; four in five of them fall.
/// Limp robots reach across themselves, and all fall.
Outcome Roll(
    PhysicsBatch* batch, const mjModel& m, unsigned stream, int control_steps, bool limp = false) {
  const int n = batch->num_envs();
  for (int env = 0; env < n; ++env) {
    Rng rng(5, stream, env);
    const std::vector<int> one = {env};
    std::vector<float> qpos(m.key_qpos, m.key_qpos + m.nq), qvel(m.nv, 0.0f);
    for (int i = 7; i < m.nq; ++i) qpos[i] += static_cast<float>(0.01 * rng.Normal());
    for (float& v : qvel) v = static_cast<float>(0.02 * rng.Normal());
    batch->Reset(one, qpos, qvel);
    Hold(batch, m, env, limp ? rng.Uniform(1000, 4000) : rng.Uniform(20000, 30000));
    if (limp) {
      const FieldView target = batch->view(Field::kTarget);
      for (int u = 0; u < m.nu; ++u) target(env, u) += static_cast<float>(0.6 * rng.Normal());
    }
    std::vector<float> wrench(6, 0.0f);
    wrench[0] = static_cast<float>(rng.Uniform(-20, 20));
    wrench[1] = static_cast<float>(rng.Uniform(-20, 20));
    batch->Write(Field::kWrench, one, wrench);
    batch->Write(Field::kWrenchSteps,
                 one,
                 std::vector<float>{static_cast<float>(std::floor(rng.Uniform(10, 60)))});
  }
  const int geom = mj_name2id(&m, mjOBJ_GEOM, "left_foot_toe_inner");
  const double mu = m.geom_friction[3 * geom] * batch->view(Field::kFriction)(0, 0);
  Outcome out;
  std::vector<double> fall(n, control_steps);
  for (int t = 0; t < control_steps; ++t) {
    batch->Advance(4);
    const FieldView q = batch->view(Field::kQpos), f = batch->view(Field::kFootForce);
    for (int env = 0; env < n; ++env) {
      if (q(env, 2) < 0.5f && fall[env] == control_steps) fall[env] = t;
      for (int foot = 0; foot < 6; foot += 3) {
        // the feet's contacts share one pyramid, along x and y, so their sum stays in it too; 1 N
        // hides what single precision makes of nearly nothing
        const double along = std::abs(f(env, foot)) + std::abs(f(env, foot + 1));
        out.cone = std::max(out.cone, along / (mu * (f(env, foot + 2) + 1)));
      }
    }
    for (int k = 0; k < 3; ++k) {
      if (t + 1 != static_cast<int>(kMoments[k] * control_steps)) continue;
      for (int env = 0; env < n; ++env) {
        out.height[k].push_back(q(env, 2));
        out.left_force[k].push_back(f(env, 2));
        out.both_forces[k].push_back(f(env, 2) + f(env, 5));
      }
    }
  }
  out.fall_time = fall;
  return out;
}

/// Prints and judges how likely two outcomes are of one distribution.
void Compare(const Outcome& ours, const Outcome& theirs, int control_steps) {
  const auto fallen = [&](const Outcome& o) {
    return std::count_if(
        o.fall_time.begin(), o.fall_time.end(), [&](double t) { return t < control_steps; });
  };
  const double seconds = 0.02 * control_steps;
  std::printf("%zu robots against %zu others in MuJoCo, %.1f s; %ld and %ld fell\n",
              ours.fall_time.size(),
              theirs.fall_time.size(),
              seconds,
              static_cast<long>(fallen(ours)),
              static_cast<long>(fallen(theirs)));
  for (int k = 0; k < 3; ++k) {
    const double height = SameDistribution(ours.height[k], theirs.height[k]);
    const double left = SameDistribution(ours.left_force[k], theirs.left_force[k]);
    const double both = SameDistribution(ours.both_forces[k], theirs.both_forces[k]);
    std::printf("p-values at %.1f s: base height %.2f, left foot %.2f, both feet %.2f\n",
                kMoments[k] * seconds,
                height,
                left,
                both);
    EXPECT_GT(height, kLeast);
    EXPECT_GT(left, kLeast);
    EXPECT_GT(both, kLeast);
  }
  const double fall = SameDistribution(ours.fall_time, theirs.fall_time);
  std::printf("p-value of the time of fall: %.2f\n", fall);
  EXPECT_GT(fall, kLeast);
  std::printf(
      "feet at most at %.6f of the friction pyramid (MuJoCo: %.6f)\n", ours.cone, theirs.cone);
  EXPECT_LT(ours.cone, 1 + 1e-5);  // sums in single precision
  EXPECT_GT(ours.cone, 0.9) << "some robots must slip";
}

int Faults(PhysicsBatch* batch) {
  int faults = 0;
  for (int env = 0; env < batch->num_envs(); ++env) {
    faults += batch->view(Field::kFault)(env, 0) != 0;
  }
  return faults;
}

// Other robots in each, so that the samples are independent: chaos makes single paths incomparable.
TEST(Rollout, DistributionsAreMujocos) {
  const auto m = physics_test::G1();
  const BatchModel model = CompileBatchModel(*m, Options());
  CpuBatch batch(model, kRobots, {.threads = 2});
  MujocoBatch reference(*m, model, kRobots, 2);
  const Outcome ours = Roll(&batch, *m, 1, kControlSteps),
                theirs = Roll(&reference, *m, 2, kControlSteps);
  EXPECT_EQ(Faults(&batch), 0);
  Compare(ours, theirs, kControlSteps);
  // the test can fail: the same robots with a tenth of the friction fall otherwise
  for (int env = 0; env < kRobots; ++env) batch.view(Field::kFriction)(env, 0) = 0.1f;
  const Outcome slippery = Roll(&batch, *m, 1, kControlSteps);
  EXPECT_LT(SameDistribution(slippery.fall_time, theirs.fall_time), kLeast);
}

// with contacts between the robots' own links
TEST(Rollout, WithSelfCollisionToo) {
  constexpr int kFewer = kRobots / 4, kShorter = kControlSteps / 2;
  const auto m = physics_test::G1();
  BatchModelOptions options = Options();
  options.self_collision = true;
  const BatchModel model = CompileBatchModel(*m, options);
  CpuBatch batch(model, kFewer, {.threads = 2});
  MujocoBatch reference(*m, model, kFewer, 2);
  const Outcome ours = Roll(&batch, *m, 3, kShorter, true),
                theirs = Roll(&reference, *m, 4, kShorter, true);
  EXPECT_EQ(Faults(&batch), 0);
  Compare(ours, theirs, kShorter);
  const StepCounts counts = batch.counts();
  std::printf("%.2f self-contacts a step\n",
              static_cast<double>(counts.self_contacts) / static_cast<double>(counts.steps));
  EXPECT_GT(counts.self_contacts, counts.steps / 10) << "the robots must be what they are for";
  // the test can fail: robots that pass through themselves lie otherwise
  CpuBatch ghosts(CompileBatchModel(*m, Options()), kFewer, {.threads = 2});
  const Outcome through = Roll(&ghosts, *m, 3, kShorter, true);
  const double p = SameDistribution(through.height[2], theirs.height[2]);
  std::printf("p-value of the base's height without self-collision: %.1e\n", p);
#ifndef __SANITIZE_ADDRESS__  // fifty robots cannot tell
  EXPECT_LT(p, 0.01);
#endif
}

}  // namespace
}  // namespace silc
