// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/contact_jacobian.h"

#include <Eigen/Cholesky>
#include <Eigen/Geometry>
#include <Eigen/LU>
#include <Eigen/QR>

#include "silc/base/check.h"
#include "silc/stiffness/reciprocal_condition.h"
#include "silc/stiffness/row_rank.h"

namespace silc {
namespace {

constexpr double kBaseRcond = 1e-10;  // a foot's base block is a change of frame: rcond ~ 0.1

using Matrix6 = Eigen::Matrix<double, 6, 6>;
using ClosureTransposed = Eigen::Matrix<double, Eigen::Dynamic, 6, Eigen::ColMajor, kMaxDofs, 6>;

// B = −J_fb⁻¹ J_fj
StiffnessStatus BaseOnFoot(const FloatingJacobian6& foot, int nv, Jacobian6* B) {
  const Eigen::PartialPivLU<Matrix6> base_block(Matrix6(foot.leftCols<6>()));
  if (!(ReciprocalCondition(base_block) > kBaseRcond)) return StiffnessStatus::kSingularBaseBlock;
  const Jacobian6 joints = foot.rightCols(nv);
  *B = base_block.solve(joints);
  *B = -*B;
  return StiffnessStatus::kOk;
}

// N with J_c N = 0 and Nᵀ W N = I: an orthonormal basis of ker(J_c W^{−1/2}), scaled back
StiffnessStatus Closure(const Jacobian6& J_c, const JointVector& scale, JointMatrix* N) {
  const int nv = static_cast<int>(J_c.cols());
  ClosureTransposed A = J_c.transpose();
  A = scale.asDiagonal() * A;
  // rows of J_c are metres and radians: without this the rank would depend on the unit of length
  for (int k = 0; k < 6; ++k) {
    const double norm = A.col(k).norm();
    if (norm == 0) return StiffnessStatus::kRankDeficientJacobian;
    A.col(k) /= norm;
  }
  if (!RowsAreIndependent(Jacobian6(A.transpose()))) {
    return StiffnessStatus::kRankDeficientJacobian;
  }
  const Eigen::ColPivHouseholderQR<ClosureTransposed> qr(A);
  // the columns of Q beyond the sixth
  N->setZero(nv, nv - 6);
  N->bottomRows(nv - 6).setIdentity();
  N->applyOnTheLeft(qr.householderQ());
  *N = scale.asDiagonal() * *N;
  return StiffnessStatus::kOk;
}

}  // namespace

void ThroughBase(const ContactKinematics& contact, const FloatingJacobian3& J_x, Jacobian3* J) {
  *J = J_x.rightCols(J_x.cols() - 6);
  J->noalias() += J_x.leftCols<3>() * contact.B.topRows<3>();
  J->noalias() += J_x.middleCols<3>(3) * contact.B.bottomRows<3>();
}

StiffnessStatus ComputeContactKinematics(const BodyJacobians& body,
                                         ContactMode mode,
                                         const JointVector* weight,
                                         ContactKinematics* out) {
  const int nv = static_cast<int>(body.com.cols()) - 6;
  SILC_CHECK(nv > 0 && nv <= kMaxDofs);
  for (int side = 0; side < 2; ++side) {
    SILC_CHECK(body.foot[side].cols() == nv + 6 && body.hand[side].cols() == nv + 6);
  }
  SILC_CHECK(weight == nullptr || weight->size() == nv);
  if (!body.com.allFinite() || !body.g_B.allFinite() || !body.foot[0].allFinite() ||
      !body.foot[1].allFinite() || !body.hand[0].allFinite() || !body.hand[1].allFinite()) {
    return StiffnessStatus::kNotFinite;
  }
  out->mode = mode;
  out->closed = mode == ContactMode::kDoubleSupport;
  out->N.resize(nv, 0);
  if (weight != nullptr) {
    out->N_scale = weight->cwiseSqrt().cwiseInverse();
  } else {
    out->N_scale.setOnes(nv);
  }
  out->J_c.setZero(6, nv);

  // the base, as the feet see it
  StiffnessStatus status = StiffnessStatus::kOk;
  if (mode == ContactMode::kFlight) {
    out->B.setZero(6, nv);
  } else {
    status = BaseOnFoot(body.foot[mode == ContactMode::kRightSupport ? 1 : 0], nv, &out->B);
  }
  if (status != StiffnessStatus::kOk) return status;

  // the other foot closes the chain
  if (out->closed) {
    SILC_CHECK(nv > 6);
    out->J_c = body.foot[1].rightCols(nv);
    out->J_c.noalias() += body.foot[1].leftCols<6>() * out->B;
    status = Closure(out->J_c, out->N_scale, &out->N);
    if (status != StiffnessStatus::kOk) return status;
    // B (I − J_c⁺ J_c)
    const Matrix6 gram = out->J_c * out->J_c.transpose();
    const Matrix6 cross = out->B * out->J_c.transpose();
    const Matrix6 back = gram.llt().solve(cross.transpose()).transpose();
    out->B.noalias() -= back * out->J_c;
  }

  // (S5)
  ThroughBase(*out, body.com, &out->com);
  ThroughBase(*out, body.hand[0], &out->hand_in_world[0]);
  ThroughBase(*out, body.hand[1], &out->hand_in_world[1]);
  for (int side = 0; side < 2; ++side) out->hand_on_base[side] = body.hand[side].rightCols(nv);
  // g_B = R_WBᵀ g_W turns against the base: δg_B = g_B × ω_B
  Eigen::Matrix3d cross_g;
  // clang-format off
  cross_g <<             0, -body.g_B.z(),  body.g_B.y(),
              body.g_B.z(),             0, -body.g_B.x(),
             -body.g_B.y(),  body.g_B.x(),             0;
  // clang-format on
  out->E.noalias() = cross_g * out->B.bottomRows<3>();
  return StiffnessStatus::kOk;
}

}  // namespace silc
