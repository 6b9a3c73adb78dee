// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/task_stiffness.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <cmath>

#include "silc/base/check.h"
#include "silc/stiffness/budget.h"
#include "silc/stiffness/reciprocal_condition.h"

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
  const Eigen::Index m = J_z.rows();
  if (m > J_z.cols()) return StiffnessStatus::kRankDeficientJacobian;

  const Eigen::PartialPivLU<JointMatrix> K_factor(K_z);
  if (!(ReciprocalCondition(K_factor) > kStiffnessRcond))
    return StiffnessStatus::kSingularStiffness;
  const TaskMatrix gram = J_z * J_z.transpose();
  const Eigen::SelfAdjointEigenSolver<TaskMatrix> singular(gram, Eigen::EigenvaluesOnly);
  if (singular.info() != Eigen::Success) return StiffnessStatus::kNoConvergence;
  if (!(singular.eigenvalues()[0] >
        kRankTolerance * kRankTolerance * singular.eigenvalues()[m - 1])) {
    return StiffnessStatus::kRankDeficientJacobian;
  }

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

StiffnessStatus WorstTaskEigenvalue(const ConstMatrix& K_x,
                                    const ConstMatrix& K_x_max,
                                    double* lambda) {
  SILC_CHECK(K_x.rows() == K_x.cols() && K_x_max.rows() == K_x.rows() &&
             K_x_max.cols() == K_x.cols() && K_x.rows() <= kMaxTaskRows);
  if (!K_x.allFinite() || !K_x_max.allFinite()) return StiffnessStatus::kNotFinite;
  const Eigen::LLT<TaskMatrix> factor(K_x_max);
  if (factor.info() != Eigen::Success) return StiffnessStatus::kBudgetNotPositive;
  TaskMatrix A = 0.5 * (K_x + K_x.transpose());
  factor.matrixL().solveInPlace(A);
  factor.matrixU().solveInPlace<Eigen::OnTheRight>(A);
  const Eigen::SelfAdjointEigenSolver<TaskMatrix> solver(A, Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return StiffnessStatus::kNoConvergence;
  *lambda = solver.eigenvalues()[A.rows() - 1];
  return StiffnessStatus::kOk;
}

namespace {

// left = N K_z⁻ᵀ J_zᵀ a, right = N K_z⁻¹ J_zᵀ c: both gradients have this form
void PullBack(const JointMatrix& K_z,
              const TaskJacobian& J_z,
              const ConstMatrix* N,
              const TaskVector& a,
              const TaskVector& c,
              JointVector* left,
              JointVector* right) {
  const Eigen::PartialPivLU<JointMatrix> factor(K_z);
  const JointVector left_z = factor.transpose().solve(JointVector(J_z.transpose() * a));
  const JointVector right_z = factor.solve(JointVector(J_z.transpose() * c));
  if (N == nullptr) {
    *left = left_z;
    *right = right_z;
  } else {
    left->noalias() = *N * left_z;
    right->noalias() = *N * right_z;
  }
}

}  // namespace

void OneAxisGradient(const ConstMatrix& J,
                     const ConstMatrix& K,
                     const ConstMatrix* N,
                     const ConstMatrix* H,
                     int axis,
                     JointVector* left,
                     JointVector* right) {
  CheckSizes(J, K, N, H);
  SILC_CHECK(axis >= 0 && axis < J.rows());
  JointMatrix K_z;
  TaskJacobian J_z;
  Reduce(J, K, N, H, &K_z, &J_z);
  const TaskVector e = TaskVector::Unit(J.rows(), axis);
  PullBack(K_z, J_z, N, e, e, left, right);
  const double C_ii = J.row(axis).dot(right->transpose());
  *left /= C_ii;
  *right /= C_ii;
}

void TaskStiffnessGradient(const ConstMatrix& J,
                           const ConstMatrix& K,
                           const ConstMatrix* N,
                           const ConstMatrix* H,
                           int row,
                           int col,
                           JointVector* left,
                           JointVector* right) {
  CheckSizes(J, K, N, H);
  SILC_CHECK(row >= 0 && row < J.rows() && col >= 0 && col < J.rows());
  JointMatrix K_z;
  TaskJacobian J_z;
  Reduce(J, K, N, H, &K_z, &J_z);
  TaskStiffness task;
  ComputeTaskStiffness(J, K, N, H, &task);
  const TaskVector a = task.K_x.row(row).transpose(), c = task.K_x.col(col);
  PullBack(K_z, J_z, N, a, c, left, right);
}

}  // namespace silc
