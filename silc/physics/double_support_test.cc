// SPDX-License-Identifier: Apache-2.0
// (S5) on both feet: the stepper's closing constraint and Jacobians against mj_jac, the stiffness
// library, and motions that keep both feet where they are.
#include "silc/physics/double_support.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Core>
#include <Eigen/SVD>

#include "silc/base/rng.h"
#include "silc/physics/batch.h"
#include "silc/physics/outputs.h"
#include "silc/physics/robot_buffer.h"
#include "silc/physics/test_models.h"
#include "silc/stiffness/contact_jacobian.h"

namespace silc {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using physics_test::DataPtr;
using physics_test::ModelPtr;
using physics_test::RandomState;
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int kStates = 200;
constexpr int kPoints = 3;  // centre of mass, two hands

BatchModelOptions Options() {
  return {.feet = {"left_ankle_roll_link", "right_ankle_roll_link"},
          .frames = {"left_palm", "right_palm"}};
}

/// What mj_jac says of a state.
struct Truth {
  Truth(const mjModel& m, mjData* d) {
    mj_kinematics(&m, d);
    mj_comPos(&m, d);
    const int nv = static_cast<int>(m.nv);
    for (int side = 0; side < 2; ++side) {
      const int body = mj_name2id(&m, mjOBJ_BODY, Options().feet[side].c_str());
      const int site = mj_name2id(&m, mjOBJ_SITE, Options().frames[side].c_str());
      jacobians.foot[side].resize(6, nv);
      jacobians.hand[side].resize(3, nv);
      mj_jacBody(&m, d, jacobians.foot[side].data(), jacobians.foot[side].data() + 3 * nv, body);
      mj_jacSite(&m, d, jacobians.hand[side].data(), nullptr, site);
    }
    jacobians.com.resize(3, nv);
    mj_jacSubtreeCom(&m, d, jacobians.com.data(), 1);
  }
  const FloatingJacobian3& point(int i) const {
    return i == 0 ? jacobians.com : jacobians.hand[i - 1];
  }
  BodyJacobians jacobians;
};

struct Errors {
  double closing = 0;    // J_c against the stiffness library's
  double moving = 0;     // points on motions that keep both feet still, against mj_jac
  double forbidden = 0;  // J J_cᵀ, rows of length one: motions the feet forbid move nothing
};

Errors Compare(const mjModel& m,
               const Truth& truth,
               const RowMatrix& closing,
               const RowMatrix& stance) {
  const int nv = static_cast<int>(m.nv), joints = nv - 6;
  Errors out;
  ContactKinematics expected;
  const StiffnessStatus status =
      ComputeContactKinematics(truth.jacobians, ContactMode::kDoubleSupport, nullptr, &expected);
  EXPECT_EQ(status, StiffnessStatus::kOk);
  out.closing = (closing.rightCols(joints) - expected.J_c).cwiseAbs().maxCoeff();
  EXPECT_LT(closing.leftCols(6).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_LT(stance.leftCols(6).cwiseAbs().maxCoeff(), 1e-12);

  // all motions v of the whole robot with both feet at rest, by their definition
  MatrixXd feet(12, nv);
  feet << truth.jacobians.foot[0], truth.jacobians.foot[1];
  const Eigen::JacobiSVD<MatrixXd> svd(feet, Eigen::ComputeFullV);
  const MatrixXd still = svd.matrixV().rightCols(nv - 12);
  for (int i = 0; i < kPoints; ++i) {
    const MatrixXd J = stance.middleRows(3 * i, 3);
    out.moving = std::max(out.moving, ((J - truth.point(i)) * still).cwiseAbs().maxCoeff());
    const MatrixXd rows = expected.J_c.rowwise().normalized();
    out.forbidden =
        std::max(out.forbidden, (J.rightCols(joints) * rows.transpose()).cwiseAbs().maxCoeff());
  }
  return out;
}

template <class Values>
RowMatrix Rows(const Values& at, int rows, int nv) {
  RowMatrix J(rows, nv);
  for (int i = 0; i < rows * nv; ++i) J.data()[i] = at(i);
  return J;
}

TEST(DoubleSupport, IsTheContactsKinematics) {
  const ModelPtr m = physics_test::G1();
  const int nv = static_cast<int>(m->nv);
  const BatchModel model = CompileBatchModel(*m, Options());
  const DataPtr d(mj_makeData(m.get()));
  CpuBatch batch(model, kStates);
  MujocoBatch reference(*m, model, kStates);
  std::vector<Truth> truths;
  Errors exact;
  const auto work = std::make_unique<portable::OutputWorkspace<double>>();
  for (int i = 0; i < kStates; ++i) {
    RandomState(*m, i % 2 ? 1 : 3, i, d.get());  // about the standing pose, and anything in range
    const std::vector<float> qpos(d->qpos, d->qpos + m->nq), qvel(d->qvel, d->qvel + nv);
    batch.Reset(std::vector<int>{i}, qpos, qvel);
    reference.Reset(std::vector<int>{i}, qpos, qvel);
    truths.emplace_back(*m, d.get());
    portable::RobotBuffer<double> robot(model);
    std::copy_n(d->qpos, m->nq, robot.data().qpos.data);
    portable::ComputeOutputs<double>(
        model.step, robot.layout(), robot.memory(), 1, KinematicsLevel::kAll, *work);
    const auto field = [&](Field f) { return [p = robot.field(f)](int k) { return p[k]; }; };
    const Errors e = Compare(*m,
                             truths.back(),
                             Rows(field(Field::kClosingJacobian), 6, nv),
                             Rows(field(Field::kDoubleStanceJacobian), 3 * kPoints, nv));
    exact.closing = std::max(exact.closing, e.closing);
    exact.moving = std::max(exact.moving, e.moving);
    exact.forbidden = std::max(exact.forbidden, e.forbidden);
  }
  // no more than rounding; the projection multiplies it by the condition of J_c, some hundreds
  EXPECT_LT(exact.closing, 1e-12);
  EXPECT_LT(exact.moving, 1e-10);
  EXPECT_LT(exact.forbidden, 1e-12);

  batch.UpdateKinematics();
  reference.UpdateKinematics();
  for (PhysicsBatch* b :
       {static_cast<PhysicsBatch*>(&batch), static_cast<PhysicsBatch*>(&reference)}) {
    Errors worst;
    std::vector<double> moving;
    for (int i = 0; i < kStates; ++i) {
      const auto field = [&](Field f) {
        return [v = b->view(f), i](int k) { return static_cast<double>(v(i, k)); };
      };
      const Errors e = Compare(*m,
                               truths[i],
                               Rows(field(Field::kClosingJacobian), 6, nv),
                               Rows(field(Field::kDoubleStanceJacobian), 3 * kPoints, nv));
      worst.closing = std::max(worst.closing, e.closing);
      worst.forbidden = std::max(worst.forbidden, e.forbidden);
      moving.push_back(e.moving);
    }
    std::sort(moving.begin(), moving.end());
    std::printf(
        "%s: J_c within %.1e, forbidden motions %.1e, allowed motions median %.1e, worst %.1e\n",
        b->name().c_str(),
        worst.closing,
        worst.forbidden,
        moving[kStates / 2],
        moving.back());
    // single precision, times the condition of J_c (below ten) for the last
    EXPECT_LT(worst.closing, 2e-6);
    EXPECT_LT(worst.forbidden, 2e-6);
    EXPECT_LT(moving[kStates / 2], 1e-6);
    EXPECT_LT(moving.back(), 1e-5);
  }
}

// A biped whose joints all turn about one axis cannot move its feet sideways, roll or yaw them: of
// six rows three are independent, and not the first three. The dependent ones are dropped in either
// precision; what is left is the projection onto motions that the others allow.
const char kFlatBiped[] = R"(
<mujoco>
  <default><geom type="capsule" size="0.04" mass="1"/><joint axis="0.6 0 0.8"/></default>
  <worldbody>
    <body name="trunk" pos="0 0 1"><freejoint/><geom fromto="0 0 0 0 0 0.3"/>
      <body pos="0 0.1 0"><joint/><geom fromto="0 0 0 0.1 0 -0.3"/>
        <body pos="0.1 0 -0.3"><joint/><geom fromto="0 0 0 -0.1 0 -0.3"/>
          <body name="left" pos="-0.1 0 -0.3"><joint/><geom fromto="0 0 0 0.1 0 0"/></body></body></body>
      <body pos="0 -0.1 0"><joint/><geom fromto="0 0 0 0.1 0 -0.3"/>
        <body pos="0.1 0 -0.3"><joint/><geom fromto="0 0 0 -0.1 0 -0.3"/>
          <body name="right" pos="-0.1 0 -0.3"><joint/><geom fromto="0 0 0 0.1 0 0"/></body></body></body>
    </body>
  </worldbody>
</mujoco>)";

TEST(DoubleSupport, DependentRowsAreDropped) {
  const ModelPtr m = physics_test::FromText(kFlatBiped);
  const int nv = static_cast<int>(m->nv);
  const BatchModel model = CompileBatchModel(*m, {.feet = {"left", "right"}});
  const DataPtr d(mj_makeData(m.get()));
  constexpr int kRobots = 20;
  CpuBatch batch(model, kRobots);
  MujocoBatch reference(*m, model, kRobots);
  for (int i = 0; i < kRobots; ++i) {
    RandomState(*m, 3, i, d.get());
    const std::vector<float> qpos(d->qpos, d->qpos + m->nq), qvel(nv, 0.0f);
    batch.Reset(std::vector<int>{i}, qpos, qvel);
    reference.Reset(std::vector<int>{i}, qpos, qvel);
  }
  batch.UpdateKinematics();
  reference.UpdateKinematics();
  const auto rows = [&](PhysicsBatch* b, Field field, int i, int count) {
    return Rows([v = b->view(field), i](int k) { return static_cast<double>(v(i, k)); }, count, nv);
  };
  for (int i = 0; i < kRobots; ++i) {
    const RowMatrix closing = rows(&reference, Field::kClosingJacobian, i, 6);
    const Eigen::JacobiSVD<MatrixXd> svd(closing);
    ASSERT_LT(svd.singularValues()(3), 1e-6) << "the robot must be what it is for";
    ASSERT_GT(svd.singularValues()(2), 1e-3);
    const RowMatrix ours = rows(&batch, Field::kDoubleStanceJacobian, i, 3),
                    theirs = rows(&reference, Field::kDoubleStanceJacobian, i, 3);
    ASSERT_GT(theirs.cwiseAbs().maxCoeff(), 1e-3);
    // float, divided by the smallest singular value that counts
    EXPECT_LT((ours - theirs).cwiseAbs().maxCoeff(), 1e-6 / svd.singularValues()(2)) << i;
  }
}

}  // namespace
}  // namespace silc
