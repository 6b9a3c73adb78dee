// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/task_stiffness.h"

#include <Eigen/LU>
#include <cmath>

#include "silc/base/check.h"
#include "silc/stiffness/reciprocal_condition.h"
#include "silc/stiffness/row_rank.h"

namespace silc {
namespace {

// the compliance itself may lose rank, with J whole, when K is nearly skew: a push moves the robot,
// and the pushed point not at all
constexpr double kComplianceRcond = 1e-13;

void CheckSizes(const ConstMatrix& J,
                const ConstMatrix& K,
                const ConstMatrix* N,
                const ConstMatrix* H) {
  SILC_CHECK(K.rows() == K.cols() && K.rows() > 0 && K.rows() <= kMaxDofs);
  SILC_CHECK(J.cols() == K.rows() && J.rows() > 0 && J.rows() <= kMaxTaskRows);
  SILC_CHECK(N == nullptr || N->rows() == K.rows());
  SILC_CHECK(H == nullptr || (H->rows() == K.rows() && H->cols() == K.cols()));
}

// Nᵀ (K + H) N and J N
void Reduce(const ConstMatrix& J,
            const ConstMatrix& K,
            const ConstMatrix* N,
            const ConstMatrix* H,
            JointMatrix* K_z,
            TaskJacobian* J_z) {
  *K_z = K;
  if (H != nullptr) *K_z += *H;
  *J_z = J;
  if (N == nullptr) return;
  const JointMatrix KN = *K_z * *N;
  K_z->noalias() = N->transpose() * KN;
  J_z->noalias() = J * *N;
}

}  // namespace

StiffnessStatus ComputeTaskStiffness(const ConstMatrix& J,
                                     const ConstMatrix& K,
                                     const ConstMatrix* N,
                                     const ConstMatrix* H,
                                     TaskStiffness* out) {
  CheckSizes(J, K, N, H);
  if (!J.allFinite() || !K.allFinite() || (N != nullptr && !N->allFinite()) ||
      (H != nullptr && !H->allFinite())) {
    return StiffnessStatus::kNotFinite;
  }
  JointMatrix K_z;
  TaskJacobian J_z;
  Reduce(J, K, N, H, &K_z, &J_z);

  const Eigen::PartialPivLU<JointMatrix> K_factor(K_z);
  if (!(ReciprocalCondition(K_factor) > kStiffnessRcond))
    return StiffnessStatus::kSingularStiffness;
  if (!RowsAreIndependent(J_z)) return StiffnessStatus::kRankDeficientJacobian;

  // (S11)
  const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, kMaxDofs, kMaxTaskRows> J_z_T =
      J_z.transpose();
  out->C_x.noalias() = J_z * K_factor.solve(J_z_T);
  const Eigen::PartialPivLU<TaskMatrix> C_factor(out->C_x);
  const double scale = out->C_x.cwiseAbs().maxCoeff();
  if (!(ReciprocalCondition(C_factor) > kComplianceRcond) ||
      !(out->C_x.diagonal().cwiseAbs().minCoeff() > kComplianceRcond * scale)) {
    return StiffnessStatus::kRankDeficientJacobian;
  }
  out->K_x = C_factor.inverse();
  out->one_axis = out->C_x.diagonal().cwiseInverse();
  return StiffnessStatus::kOk;
}

}  // namespace silc
