// SPDX-License-Identifier: Apache-2.0
// The step in double precision against MuJoCo in double precision, quantity by quantity.
#include "silc/physics/step.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Core>

#include "silc/physics/batch_model.h"
#include "silc/physics/robot_buffer.h"
#include "silc/physics/test_models.h"

namespace silc::portable {
namespace {

using physics_test::AllModels;
using physics_test::DataPtr;
using physics_test::kStateKinds;
using physics_test::NamedModel;
using physics_test::RandomState;

#ifdef __SANITIZE_ADDRESS__
constexpr int kStates = 40;  // per model and kind
#else
constexpr int kStates = 500;
#endif

using Work = Workspace<double>;

/// MuJoCo's answer with its solver converged far beyond the tolerances below, and motors driven as
/// our servos drive them.
struct Reference {
  explicit Reference(const mjModel& model) : m(mj_copyModel(nullptr, &model)), d(mj_makeData(m)) {
    m->opt.iterations = 100;
    m->opt.tolerance = 1e-14;
    m->opt.ls_tolerance = 1e-12;
    m->opt.ls_iterations = 100;
    m->opt.disableflags |= mjDSBL_AUTORESET;
  }
  ~Reference() {
    mj_deleteData(d);
    mj_deleteModel(m);
  }
  mjModel* m;
  mjData* d;
};

double MaxAbs(const mjtNum* v, int n) {
  double most = 0;
  for (int i = 0; i < n; ++i) most = std::max(most, std::abs(v[i]));
  return most;
}

/// Largest difference, relative to the largest entry of either.
double Relative(const std::vector<double>& ours, const mjtNum* theirs, double scale = 0) {
  const int n = static_cast<int>(ours.size());
  double worst = 0;
  scale = std::max({scale, MaxAbs(theirs, n), 1e-9});
  for (int i = 0; i < n; ++i) worst = std::max(worst, std::abs(ours[i] - theirs[i]));
  return worst / scale;
}

std::vector<double> ColumnValues(const Column<double>& column, int n) {
  return std::vector<double>(column.data, column.data + n);
}

class StepAgainstMujoco : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    named_ = std::move(AllModels()[GetParam()]);
    reference_ = std::make_unique<Reference>(*named_.model);
    model_ = CompileBatchModel(*named_.model);
    buffer_ = std::make_unique<RobotBuffer<double>>(model_);
    work_ = std::make_unique<Work>();
  }

  /// Puts the same random state into both.
  void Load(int kind, unsigned seed) {
    mjData* d = reference_->d;
    RandomState(*reference_->m, kind, seed, d);
    RobotData<double> r = buffer_->data();
    const StepModel<double>& s = model_.step;
    for (int i = 0; i < s.nq; ++i) r.qpos[i] = d->qpos[i];
    for (int i = 0; i < s.nv; ++i) r.qvel[i] = d->qvel[i];
    for (int i = 0; i < s.nv; ++i) r.qacc[i] = d->qacc_warmstart[i];
    r.fault[0] = 0;
    for (int u = 0; u < s.num_actuators; ++u) {
      const bool motor = model_.default_kp[u] == 0;
      // a motor is given a torque, by the servo's feed-forward; a position servo a target
      const double gear = reference_->m->actuator_gear[6 * u];
      r.target[u] = motor ? 0 : d->ctrl[u];
      r.feedforward[u] = motor ? gear * d->ctrl[u] : 0;
    }
  }

  NamedModel named_;
  std::unique_ptr<Reference> reference_;
  BatchModel model_;
  std::unique_ptr<RobotBuffer<double>> buffer_;
  std::unique_ptr<Work> work_;
  StepOptions options_{.max_iterations = 100, .line_search = 20, .tolerance = 1e-28};
};

/// Generalised force of one wrench per link (about its tree's O), in MuJoCo's coordinates.
std::vector<double> Project(const StepModel<double>& model,
                            const Work& work,
                            std::vector<Spatial<double>> wrench) {
  std::vector<double> out(model.nv);
  for (int b = model.num_links - 1; b >= 0; --b) {
    const LinkConstants<double>& link = model.link[b];
    if (link.joint == JointKind::kFree) {
      const Vec3<double> local = RotateInverse(work.frame[b].R, wrench[b].ang);
      const double values[6] = {
          wrench[b].lin.x, wrench[b].lin.y, wrench[b].lin.z, local.x, local.y, local.z};
      std::copy_n(values, 6, out.begin() + link.dof);
    } else {
      out[link.dof] = Dot(work.link[b].S, wrench[b]);
    }
    if (link.parent >= 0) wrench[link.parent] = wrench[link.parent] + wrench[b];
  }
  return out;
}

// (D2) the force that holds the robot on its bias acceleration is MuJoCo's qfrc_bias
TEST_P(StepAgainstMujoco, BiasForce) {
  for (int kind = 0; kind < kStateKinds; ++kind) {
    for (unsigned seed = 0; seed < kStates; ++seed) {
      Load(kind, seed);
      mj_forward(reference_->m, reference_->d);
      // refinement would put the balance of forces in place of f
      StepOptions plain = options_;
      plain.refine = 0;
      Forward<double>(model_.step, buffer_->data(), plain, 0, nullptr, *work_);
      std::vector<Spatial<double>> f(model_.step.num_links);
      for (int b = 0; b < model_.step.num_links; ++b) {
        f[b] = work_->link[b].f;
        const LinkConstants<double>& link = model_.step.link[b];
        if (link.joint ==
            JointKind::kFree) {  // damping of a free joint is a passive force in MuJoCo
          const double* v = reference_->d->qvel + link.dof;
          f[b] = f[b] - Spatial<double>{work_->frame[b].v.ang, {v[0], v[1], v[2]}} * link.damping;
        }
      }
      EXPECT_LT(Relative(Project(model_.step, *work_, f), reference_->d->qfrc_bias), 1e-9)
          << named_.name << " kind " << kind << " seed " << seed;
    }
  }
}

// the mass matrix, column by column: M e_i is the force that the links' inertias ask for at qacc =
// e_i
TEST_P(StepAgainstMujoco, MassMatrix) {
  const int nv = model_.step.nv;
  std::vector<mjtNum> M(nv * nv);
  for (int kind = 0; kind < kStateKinds; ++kind) {
    for (unsigned seed = 0; seed < kStates / 20; ++seed) {
      Load(kind, seed);
      mj_forward(reference_->m, reference_->d);
      mj_fullM(reference_->m, reference_->d, M.data());
      Forward<double>(model_.step, buffer_->data(), options_, 0, nullptr, *work_);
      const double largest = MaxAbs(M.data(), nv * nv);
      for (int b = 0; b < model_.step.num_links; ++b) {
        const LinkConstants<double>& moved = model_.step.link[b];
        for (int k = 0; k < (moved.joint == JointKind::kFree ? 6 : 1); ++k) {
          Spatial<double> S = work_->link[b].S;
          if (moved.joint == JointKind::kFree) {
            S = ZeroSpatial<double>();
            double* lin[3] = {&S.lin.x, &S.lin.y, &S.lin.z};
            if (k < 3) *lin[k] = 1;
            if (k >= 3) S.ang = work_->frame[b].R.col[k - 3];
          }
          std::vector<Spatial<double>> f(model_.step.num_links);
          for (int c = 0; c < model_.step.num_links; ++c) {
            bool below = false;
            for (int a = c; a >= 0; a = model_.step.link[a].parent) below |= a == b;
            f[c] = below ? work_->link[c].G * S : ZeroSpatial<double>();
          }
          std::vector<double> column = Project(model_.step, *work_, f);
          column[moved.dof + k] += moved.armature;
          EXPECT_LT(Relative(column, M.data() + nv * (moved.dof + k), largest), 1e-9)
              << named_.name << " kind " << kind << " seed " << seed << " link " << b;
        }
      }
    }
  }
}

// without constraints: qacc_smooth
TEST_P(StepAgainstMujoco, SmoothAcceleration) {
  StepModel<double> smooth = model_.step;
  smooth.num_contacts = 0;
  for (LinkConstants<double>& link : smooth.link) {
    link.num_contacts = 0;
    link.limited = 0;
    link.friction = 0;
  }
  for (int kind = 0; kind < kStateKinds; ++kind) {
    for (unsigned seed = 0; seed < kStates; ++seed) {
      Load(kind, seed);
      mj_forward(reference_->m, reference_->d);
      Step<double>(smooth, buffer_->data(), options_, 0, false, nullptr, *work_);
      const std::vector<double> qacc = ColumnValues(buffer_->data().qacc, smooth.nv);
      EXPECT_LT(Relative(qacc, reference_->d->qacc_smooth), 1e-9)
          << named_.name << " kind " << kind << " seed " << seed;
    }
  }
}

// (D1) the minimum itself, the forces there, and the state after the step
TEST_P(StepAgainstMujoco, ConstrainedStep) {
  const StepModel<double>& s = model_.step;
  int contacts = 0, limits = 0;
  double worst_acc = 0, worst_vel = 0, worst_force = 0;
  for (int kind = 0; kind < kStateKinds; ++kind) {
    for (unsigned seed = 0; seed < kStates; ++seed) {
      Load(kind, seed);
      mjData* d = reference_->d;
      const std::vector<mjtNum> before(d->qvel, d->qvel + s.nv);
      mj_step(reference_->m, d);
      StepCounts counts;
      Step<double>(s, buffer_->data(), options_, 0, true, &counts, *work_);
      const std::string where =
          named_.name + " kind " + std::to_string(kind) + " seed " + std::to_string(seed);
      EXPECT_EQ(counts.unconverged, 0) << where;

      int expected = 0;
      for (int i = 0; i < d->ncon; ++i) expected += d->contact[i].exclude == 0;
      ASSERT_EQ(work_->num_active, expected) << where;
      contacts += expected;
      limits += d->nl;

      const double scale = MaxAbs(d->qacc_smooth, s.nv);
      const std::vector<double> qacc = ColumnValues(buffer_->data().qacc, s.nv);
      const double acc = Relative(qacc, d->qacc, scale);
      // velocity change rather than velocity: what this step did
      std::vector<double> dv(s.nv), dv_ref(s.nv);
      for (int i = 0; i < s.nv; ++i) {
        dv[i] = buffer_->data().qvel[i] - before[i];
        dv_ref[i] = d->qvel[i] - before[i];
      }
      const double vel = Relative(dv, dv_ref.data(), scale * s.timestep);
      EXPECT_LT(acc, 1e-6) << where;
      EXPECT_LT(vel, 1e-6) << where;
      EXPECT_LT(Relative(ColumnValues(buffer_->data().qpos, s.nq), d->qpos, 1), 1e-8) << where;

      // total force of all contacts; each inside its friction pyramid, which it cannot leave
      Vec3<double> sum = {0, 0, 0};
      for (int k = 0; k < work_->num_active; ++k) {
        const ContactWork<double>& c = work_->contact[k];
        sum = sum + c.force;
        const double normal = Dot(c.n, c.force);
        EXPECT_GE(normal, 0) << where;
        if (c.mu1 > 0) {
          // t1, t2 carry one factor of friction, and the pyramid's edges the other
          const double slip = std::abs(Dot(c.t1, c.force)) / (c.mu1 * c.mu1) +
                              std::abs(Dot(c.t2, c.force)) / (c.mu2 * c.mu2);
          EXPECT_LE(slip, normal * (1 + 1e-9) + 1e-9) << where;
        }
      }
      mjtNum total[3] = {0, 0, 0};
      for (int i = 0; i < d->ncon; ++i) {
        mjtNum force[6], world[3];
        mj_contactForce(reference_->m, d, i, force);
        mju_mulMatTVec(world, d->contact[i].frame, force, 3, 3);
        mju_addTo3(total, world);
      }
      if (expected > 0) {
        const double weight =
            9.81 * s.nv;  // floor of the scale: forces of a light touch are rounding
        const double force = Relative({sum.x, sum.y, sum.z}, total, weight);
        EXPECT_LT(force, 1e-6) << where;
        worst_force = std::max(worst_force, force);
      }
      worst_acc = std::max(worst_acc, acc);
      worst_vel = std::max(worst_vel, vel);
    }
  }
  // the states must exercise what they are for
  EXPECT_GT(contacts, kStates);
  if (s.has_limits) {
    EXPECT_GT(limits, kStates / 4);
  }
  RecordProperty("worst_acceleration", std::to_string(worst_acc));
  std::printf("%-18s worst relative error: acceleration %.1e, velocity change %.1e, force %.1e\n",
              named_.name.c_str(),
              worst_acc,
              worst_vel,
              worst_force);
}

INSTANTIATE_TEST_SUITE_P(Models, StepAgainstMujoco, testing::Range(0, 5));

}  // namespace
}  // namespace silc::portable
