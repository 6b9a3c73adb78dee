// SPDX-License-Identifier: Apache-2.0
// (D12) Contacts between a robot's own links, against MuJoCo's.
#include "silc/physics/pairs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "silc/base/error.h"
#include "silc/base/rng.h"
#include "silc/physics/batch.h"
#include "silc/physics/group_kernel.h"
#include "silc/physics/robot_buffer.h"
#include "silc/physics/test_models.h"

namespace silc {
namespace {

using physics_test::DataPtr;
using physics_test::kStateKinds;
using physics_test::ModelPtr;
using physics_test::NamedModel;
using physics_test::RandomState;
using Work = portable::PairedWorkspace<double>;

#ifdef __SANITIZE_ADDRESS__
constexpr int kStates = 20;  // per model and kind
#else
constexpr int kStates = 300;
#endif

/// Two chains on a free body and a ball beside them, made to meet: friction, margins, priorities,
/// stiffness of several kinds, an explicit pair of parent and child, an excluded one, damping.
const char kTangle[] = R"(
<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.002" impratio="1.5"/>
  <default>
    <geom condim="3" friction="0.7" margin="0.004" solimp="0.9 0.95 0.004"/>
    <joint armature="0.01" damping="0.3" range="-2 2"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="trunk" pos="0 0 0.5">
      <freejoint/>
      <geom name="trunk" type="capsule" size="0.06" fromto="-0.1 0 0 0.1 0 0" mass="4"/>
      <body name="a1" pos="0.1 0.05 0"><joint axis="0 0 1"/>
        <geom name="a1" type="capsule" size="0.03" fromto="0 0 0 0.2 0 0" mass="1" condim="1" solref="0.01 1.2"/>
        <body name="a2" pos="0.2 0 0"><joint axis="0 1 0.3"/>
          <geom name="a2" type="capsule" size="0.025" fromto="0 0 0 0.2 0.02 0" mass="0.6"/>
          <body name="a3" pos="0.2 0.02 0"><joint axis="0 0.2 1" range="-2.8 2.8"/>
            <geom name="a3" type="sphere" size="0.05" pos="0.08 0 0" mass="0.4" friction="1.2" priority="1" solimp="0.8 0.97 0.005 0.4 3"/>
          </body>
        </body>
      </body>
      <body name="b1" pos="0.1 -0.05 0"><joint axis="0 0.1 1"/>
        <geom name="b1" type="capsule" size="0.03" fromto="0 0 0 0.2 0 0" mass="1" condim="1" solmix="3"/>
        <body name="b2" pos="0.2 0 0"><joint axis="0 1 0"/>
          <geom name="b2" type="capsule" size="0.03" fromto="0 0 0 0.18 0 0" mass="0.6" solref="-4000 -80"/>
          <geom name="b3" type="sphere" size="0.04" pos="0.2 0.02 0" mass="0.3"/>
        </body>
      </body>
    </body>
    <body name="ball" pos="0.3 0 0.5"><freejoint/>
      <geom name="ball" type="sphere" size="0.08" mass="0.5" margin="0.01"/></body>
  </worldbody>
  <contact>
    <exclude body1="trunk" body2="a2"/>
    <pair geom1="a2" geom2="a3" friction="0.5 0.8 0.1 0.1 0.1" margin="0.002"/>
    <pair geom1="a1" geom2="b2" condim="1"/>
  </contact>
  <actuator><motor joint="j" gear="10"/></actuator>
</mujoco>)";

ModelPtr Tangle() {
  // the one actuator acts on a joint that needs a name
  std::string text = kTangle;
  text.replace(text.find("<joint axis=\"0 0 1\"/>"), 21, "<joint name=\"j\" axis=\"0 0 1\"/>");
  return physics_test::FromText(text);
}

/// With bones that touch, so that it can step on its own toes.
ModelPtr Quadruped() {
  std::string text = physics_test::kQuadruped;
  const std::string off = R"(condim="1" contype="0" conaffinity="0"/></default>)";
  text.replace(text.find(off), off.size(), R"(condim="1"/></default>)");
  return physics_test::FromText(text);
}

/// The models of the other tests with their own shapes touching. Boxes touch neither links nor
/// floor here: between links they are not supported.
std::vector<NamedModel> Models() {
  std::vector<NamedModel> models;
  models.push_back({"g1", physics_test::G1()});
  ModelPtr rubbing = physics_test::G1();
  for (int i = 6; i < rubbing->nv; ++i) rubbing->dof_frictionloss[i] = 0.3;
  models.push_back({"g1_friction_loss", std::move(rubbing)});
  models.push_back({"humanoid", physics_test::FromText(physics_test::kHumanoid)});
  models.push_back({"quadruped", Quadruped()});
  models.push_back({"cart", physics_test::FromText(physics_test::kCart)});
  models.push_back({"tangle", Tangle()});
  for (NamedModel& named : models) {
    mjModel& m = *named.model;
    for (int g = 0; g < m.ngeom; ++g) {
      if (m.geom_type[g] == mjGEOM_BOX) m.geom_contype[g] = m.geom_conaffinity[g] = 0;
    }
    m.opt.iterations = 100;
    m.opt.tolerance = 1e-14;
    m.opt.ls_tolerance = 1e-12;
    m.opt.ls_iterations = 100;
    m.opt.disableflags |= mjDSBL_AUTORESET;
  }
  return models;
}

/// As RandomState, but objects beside the robot are brought to it.
void DrawState(const mjModel& m, int kind, unsigned seed, mjData* d) {
  RandomState(m, kind, seed, d);
  Rng rng(seed, 99u);
  for (int j = 0; j < m.njnt; ++j) {
    if (m.jnt_type[j] != mjJNT_FREE) continue;
    const int q = m.jnt_qposadr[j];
    if (j == 0) continue;  // the robot itself
    mj_kinematics(&m, d);
    const int body = 1 + static_cast<int>(rng.Uniform() * 0.999 * (m.nbody - 2));
    for (int k = 0; k < 3; ++k) {
      d->qpos[q + k] = static_cast<float>(d->xpos[3 * body + k] + 0.06 * rng.Normal());
    }
  }
}

/// Contacts MuJoCo made between two moving bodies, and with the ground.
struct Touches {
  int self = 0, ground = 0;
  Touches(const mjModel& m, const mjData& d) {
    for (int i = 0; i < d.ncon; ++i) {
      if (d.contact[i].exclude != 0) continue;
      const bool one = m.body_weldid[m.geom_bodyid[d.contact[i].geom[0]]] == 0;
      const bool two = m.body_weldid[m.geom_bodyid[d.contact[i].geom[1]]] == 0;
      ++(one || two ? ground : self);
    }
  }
};

double MaxAbs(const mjtNum* v, int n) {
  double most = 0;
  for (int i = 0; i < n; ++i) most = std::max(most, std::abs(v[i]));
  return most;
}

TEST(Pairs, StepIsMujocos) {
  for (const NamedModel& named : Models()) {
    const mjModel& m = *named.model;
    const BatchModel model = CompileBatchModel(m, {.self_collision = true});
    const StepModel<double>& s = model.step;
    const DataPtr d(mj_makeData(&m));
    const auto work = std::make_unique<Work>();
    work->pair.model = &model.pairs;
    portable::RobotBuffer<double> buffer(model);
    const portable::RobotData<double>& r = buffer.data();
    const StepOptions options{.max_iterations = 100, .line_search = 20, .tolerance = 1e-28};
    int self = 0, crowded = 0, most = 0;
    double worst_acc = 0, worst_vel = 0, worst_force = 0;
    StepCounts counts;
    for (int kind = 0; kind < kStateKinds; ++kind) {
      for (unsigned seed = 0; seed < kStates; ++seed) {
        DrawState(m, kind, seed, d.get());
        std::copy_n(d->qpos, m.nq, r.qpos.data);
        std::copy_n(d->qvel, m.nv, r.qvel.data);
        std::copy_n(d->qacc_warmstart, m.nv, r.qacc.data);
        r.fault[0] = 0;
        for (int u = 0; u < s.num_actuators; ++u) {
          const bool motor = model.default_kp[u] == 0;
          r.target[u] = motor ? 0 : d->ctrl[u];
          r.feedforward[u] = motor ? m.actuator_gear[6 * u] * d->ctrl[u] : 0;
        }
        const std::string where =
            named.name + " kind " + std::to_string(kind) + " seed " + std::to_string(seed);
        const std::vector<mjtNum> before(d->qvel, d->qvel + m.nv);
        mj_step(&m, d.get());
        portable::Step<double>(s, r, options, 0, true, &counts, *work);
        const Touches expected(m, *d);
        most = std::max(most, expected.self);
        if (expected.self > kMaxSelfContacts) {
          EXPECT_EQ(r.fault[0], kFaultCrowded) << where;
          ++crowded;
          continue;
        }
        ASSERT_EQ(r.fault[0], kFaultNone) << where;
        ASSERT_EQ(work->pair.num_slots, expected.self) << where;
        ASSERT_EQ(work->num_active, expected.ground) << where;
        self += expected.self;

        const double scale = std::max({MaxAbs(d->qacc_smooth, m.nv), MaxAbs(d->qacc, m.nv), 1e-9});
        double acc = 0, vel = 0;
        for (int i = 0; i < m.nv; ++i) {
          acc = std::max(acc, std::abs(r.qacc[i] - d->qacc[i]) / scale);
          vel = std::max(vel, std::abs(r.qvel[i] - d->qvel[i]) / (scale * s.timestep));
        }
        EXPECT_LT(acc, 1e-6) << where << ", self-contacts " << expected.self;
        EXPECT_LT(vel, 1e-6) << where;
        worst_acc = std::max(worst_acc, acc);
        worst_vel = std::max(worst_vel, vel);

        // the force between two links, and its pyramid
        double ours = 0, theirs = 0;
        for (int k = 0; k < work->pair.num_slots; ++k) {
          const portable::PairSlot<double>& slot = work->pair.slot[k];
          const double normal = Dot(slot.n, slot.force);
          EXPECT_GE(normal, 0) << where;
          ours += std::sqrt(Dot(slot.force, slot.force));
          const double m1 = Dot(slot.t1, slot.t1), m2 = Dot(slot.t2, slot.t2);  // μ²
          if (m1 > 0) {
            const double slip =
                std::abs(Dot(slot.t1, slot.force)) / m1 + std::abs(Dot(slot.t2, slot.force)) / m2;
            EXPECT_LE(slip, normal * (1 + 1e-9) + 1e-9) << where;
          }
        }
        for (int i = 0; i < d->ncon; ++i) {
          const mjContact& c = d->contact[i];
          if (m.body_weldid[m.geom_bodyid[c.geom[0]]] == 0 ||
              m.body_weldid[m.geom_bodyid[c.geom[1]]] == 0) {
            continue;
          }
          mjtNum force[6];
          mj_contactForce(&m, d.get(), i, force);
          theirs += mju_norm3(force);
        }
        const double force = std::abs(ours - theirs) / std::max(theirs, 9.81);
        EXPECT_LT(force, 1e-6) << where;
        worst_force = std::max(worst_force, force);
      }
    }
    EXPECT_EQ(counts.unconverged, 0) << named.name;
    EXPECT_GT(self, kStates / 4) << named.name << ": the states must be what they are for";
    std::printf(
        "%-18s %3d pairs, %5.2f self-contacts on average, %2d at most, %d states crowded; worst "
        "relative error: acceleration %.1e, velocity change %.1e, force %.1e\n",
        named.name.c_str(),
        model.pairs.num_pairs,
        static_cast<double>(self) / (kStateKinds * kStates),
        most,
        crowded,
        worst_acc,
        worst_vel,
        worst_force);
  }
}

double Quantile(std::vector<double>* values, double p) {
  std::sort(values->begin(), values->end());
  return (*values)[static_cast<std::size_t>(p * (values->size() - 1))];
}

/// Contacts by link and point as a scalar type sees them; the order is the model's.
template <class Real>
std::vector<int> Found(const BatchModel& model,
                       const StepModel<Real>& step,
                       const PairModel<Real>& pairs,
                       const mjData& d) {
  static portable::PairedWorkspace<Real> work;
  work.pair.model = &pairs;
  portable::RobotBuffer<Real> robot(model);
  for (int i = 0; i < step.nq; ++i) robot.data().qpos[i] = static_cast<Real>(d.qpos[i]);
  portable::Kinematics<Real>(step, robot.data(), 0, work);
  portable::FindPairs<Real>(step, robot.data(), work);
  std::vector<int> found;
  for (int k = 0; k < work.num_active; ++k) found.push_back(work.contact[k].id);
  for (int k = 0; k < work.pair.num_slots; ++k) {
    found.push_back(-1 - work.pair.slot[k].user[0].pair);
  }
  return found;
}

void Load(PhysicsBatch* batch, int env, const mjModel& m, const mjData& d) {
  const std::vector<int> one = {env};
  const std::vector<float> qpos(d.qpos, d.qpos + m.nq), qvel(d.qvel, d.qvel + m.nv);
  batch->Reset(one, qpos, qvel);
  const std::vector<float> guess(d.qacc_warmstart, d.qacc_warmstart + m.nv);
  std::vector<float> target, feedforward;
  batch->Write(Field::kQacc, one, guess);
  for (int u = 0; u < m.nu; ++u) {
    const bool motor = batch->model().default_kp[u] == 0;
    target.push_back(motor ? 0 : static_cast<float>(d.ctrl[u]));
    feedforward.push_back(motor ? static_cast<float>(m.actuator_gear[6 * u] * d.ctrl[u]) : 0);
  }
  batch->Write(Field::kTarget, one, target);
  batch->Write(Field::kFeedforward, one, feedforward);
}

// single precision in lanes: the bounds of accuracy_test
TEST(Pairs, FloatAccelerationIsMujocosToFiveDigits) {
  for (const NamedModel& named : Models()) {
    const mjModel& m = *named.model;
    const BatchModel model = CompileBatchModel(m, {.self_collision = true});
    const StepModel<float> single = ToFloat(model.step);
    const PairModel<float> single_pairs = ToFloat(model.pairs);
    const DataPtr d(mj_makeData(&m));
    const int n = kStateKinds * kStates;
    for (const GroupKernel& kernel : AvailableGroupKernels()) {
      CpuBatch batch(model, n, {.threads = 1, .kernel = kernel.name});
      for (int i = 0; i < n; ++i) {
        DrawState(m, i % kStateKinds, i, d.get());
        Load(&batch, i, m, *d);
      }
      batch.Advance(1);
      std::vector<double> errors;
      int apart = 0, crowded = 0;
      for (int i = 0; i < n; ++i) {
        DrawState(m, i % kStateKinds, i, d.get());
        const bool agree = Found<float>(model, single, single_pairs, *d) ==
                           Found<double>(model, model.step, model.pairs, *d);
        apart += !agree;
        const bool fault = batch.view(Field::kFault)(i, 0) != 0;
        crowded += fault;
        if (!agree || fault) continue;
        mj_forward(&m, d.get());
        const double scale = std::max(mju_norm(d->qacc, m.nv), mju_norm(d->qacc_smooth, m.nv));
        std::vector<mjtNum> difference(m.nv);
        for (int k = 0; k < m.nv; ++k) {
          difference[k] = batch.view(Field::kQacc)(i, k) - d->qacc[k];
        }
        errors.push_back(mju_norm(difference.data(), m.nv) / scale);
      }
      const double median = Quantile(&errors, 0.5), p99 = Quantile(&errors, 0.99);
      std::printf(
          "%-18s %-9s median %.1e  p99 %.1e  max %.1e  (%zu states, %d with other contacts, "
          "%d crowded, %.2f self-contacts, %ld unconverged)\n",
          named.name.c_str(),
          kernel.name,
          median,
          p99,
          errors.back(),
          errors.size(),
          apart,
          crowded,
          static_cast<double>(batch.counts().self_contacts) / n,
          batch.counts().unconverged);
      EXPECT_LT(median, 1e-5) << named.name << " " << kernel.name;
      EXPECT_LT(p99, 2e-4) << named.name << " " << kernel.name;
      EXPECT_LT(apart, n / 50) << named.name;
    }
  }
}

// bitwise, on every instruction set: a robot with contacts of its own alone, and in crowds whose
// robots have more, fewer, other or none
TEST(Pairs, ARobotDoesNotNoticeItsNeighbours) {
  const ModelPtr m = physics_test::G1();
  const BatchModel model = CompileBatchModel(*m, {.self_collision = true});
  const DataPtr d(mj_makeData(m.get()));
  const auto rows = [&](const GroupKernel& kernel, const std::vector<int>& crowd, int wanted) {
    CpuBatch batch(
        model, static_cast<int>(crowd.size()), {.threads = 1 + wanted % 2, .kernel = kernel.name});
    for (std::size_t env = 0; env < crowd.size(); ++env) {
      DrawState(*m, crowd[env] % kStateKinds, crowd[env], d.get());
      Load(&batch, static_cast<int>(env), *m, *d);
    }
    batch.Advance(3);
    std::vector<float> out;
    for (const Field field : {Field::kQpos, Field::kQvel, Field::kQacc, Field::kFault}) {
      for (int i = 0; i < batch.width(field); ++i) out.push_back(batch.view(field)(wanted, i));
    }
    return out;
  };
  for (const GroupKernel& kernel : AvailableGroupKernels()) {
    for (int identity = 0; identity < 25; ++identity) {
      const std::vector<float> alone = rows(kernel, {identity}, 0);
      for (const int place : {2, 21}) {
        std::vector<int> crowd(24);
        std::iota(crowd.begin(), crowd.end(), 40 * (1 + place));
        crowd[place] = identity;
        EXPECT_EQ(rows(kernel, crowd, place), alone)
            << kernel.name << " robot " << identity << " place " << place;
      }
    }
  }
}

// both back ends make the contacts or neither does, and a foot's force is the ground's
TEST(Pairs, BackEndsAgree) {
  const ModelPtr m = physics_test::G1();
  const DataPtr d(mj_makeData(m.get()));
  const int n = 60;
  for (const bool on : {true, false}) {
    const BatchModel model = CompileBatchModel(
        *m, {.feet = {"left_ankle_roll_link", "right_ankle_roll_link"}, .self_collision = on});
    CpuBatch cpu(model, n);
    MujocoBatch reference(*m, model, n);
    for (int env = 0; env < n; ++env) {
      DrawState(*m, env % 2 ? 0 : 3, env, d.get());
      Load(&cpu, env, *m, *d);
      Load(&reference, env, *m, *d);
    }
    cpu.Advance(1);
    reference.Advance(1);
    EXPECT_EQ(cpu.counts().self_contacts > n / 2, on);
    for (const Field field : {Field::kQvel, Field::kFootForce}) {
      std::vector<double> errors;
      for (int env = 0; env < n; ++env) {
        double worst = 0, largest = 100;
        for (int i = 0; i < cpu.width(field); ++i) {
          const double a = cpu.view(field)(env, i), b = reference.view(field)(env, i);
          worst = std::max(worst, std::abs(a - b));
          largest = std::max(largest, std::abs(b));
        }
        if (cpu.view(Field::kFault)(env, 0) == 0) errors.push_back(worst / largest);
      }
      // MuJoCo's own tolerance for stopping is 1e-8 of a scaled gradient
      EXPECT_LT(Quantile(&errors, 0.9), 1e-4) << on << " field " << static_cast<int>(field);
    }
  }
}

TEST(Pairs, WhatCannotTouchIsRefusedByName) {
  const ModelPtr m = physics_test::FromText(R"(
    <mujoco><worldbody>
      <body name="a" pos="0 0 1"><freejoint/><geom name="crate" type="box" size="0.1 0.1 0.1"/></body>
      <body name="b" pos="0 0 2"><freejoint/><geom name="ball" type="sphere" size="0.1"/></body>
      <body name="c" pos="0 0 3"><freejoint/><geom name="screw" type="sphere" size="0.1" condim="4"/></body>
    </worldbody></mujoco>)");
  EXPECT_NO_THROW(CompileBatchModel(*m));
  try {
    CompileBatchModel(*m, {.self_collision = true});
    FAIL() << "must be refused";
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("'crate'"), std::string::npos) << text;
    EXPECT_NE(text.find("spheres and capsules"), std::string::npos) << text;
    EXPECT_NE(text.find("condim 4"), std::string::npos) << text;
  }
  // forty-nine shapes
  std::string many = "<mujoco><worldbody>";
  for (int i = 0; i < 49; ++i) {
    many += "<body pos='0 0 " + std::to_string(i) + "'><joint/><geom size='0.1'/></body>";
  }
  const ModelPtr crowd = physics_test::FromText(many + "</worldbody></mujoco>");
  EXPECT_NO_THROW(CompileBatchModel(*crowd));
  EXPECT_THROW(CompileBatchModel(*crowd, {.self_collision = true}), ConfigError);
}

}  // namespace
}  // namespace silc
