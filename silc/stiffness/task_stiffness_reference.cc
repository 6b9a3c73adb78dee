// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/task_stiffness_reference.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>

#include "silc/base/check.h"
#include "silc/stiffness/test_algebra.h"

namespace silc {
namespace {

using namespace test::eager;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Nᵀ (K + H) N
MatrixXd Reduced(const ConstMatrix& K, const ConstMatrix* N, const ConstMatrix* H) {
  const MatrixXd sum = H == nullptr ? MatrixXd(K) : MatrixXd(K + *H);
  return N == nullptr ? sum : MatrixXd(N->transpose() * sum * *N);
}

// left = N K_z⁻ᵀ J_zᵀ a, right = N K_z⁻¹ J_zᵀ c: both gradients have this form
void PullBack(const MatrixXd& K_z,
              const MatrixXd& J,
              const ConstMatrix* N,
              const VectorXd& a,
              const VectorXd& c,
              JointVector* left,
              JointVector* right) {
  const MatrixXd N_or_I =
      N == nullptr ? MatrixXd(MatrixXd::Identity(J.cols(), J.cols())) : MatrixXd(*N);
  const MatrixXd J_z = J * N_or_I;
  *left = N_or_I * K_z.transpose().partialPivLu().solve(J_z.transpose() * a);
  *right = N_or_I * K_z.partialPivLu().solve(J_z.transpose() * c);
}

}  // namespace

StiffnessStatus WorstTaskEigenvalue(const ConstMatrix& K_x,
                                    const ConstMatrix& K_x_max,
                                    double* lambda) {
  SILC_CHECK(K_x.rows() == K_x.cols() && K_x_max.rows() == K_x.rows() &&
             K_x_max.cols() == K_x.cols() && K_x.rows() <= kMaxTaskRows);
  if (!K_x.allFinite() || !K_x_max.allFinite()) return StiffnessStatus::kNotFinite;
  const Eigen::LLT<MatrixXd> factor(K_x_max);
  if (factor.info() != Eigen::Success) return StiffnessStatus::kBudgetNotPositive;
  MatrixXd A = 0.5 * (K_x + K_x.transpose());
  factor.matrixL().solveInPlace(A);
  factor.matrixU().solveInPlace<Eigen::OnTheRight>(A);
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(A, Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return StiffnessStatus::kNoConvergence;
  *lambda = solver.eigenvalues()[A.rows() - 1];
  return StiffnessStatus::kOk;
}

void OneAxisGradient(const ConstMatrix& J,
                     const ConstMatrix& K,
                     const ConstMatrix* N,
                     const ConstMatrix* H,
                     int axis,
                     JointVector* left,
                     JointVector* right) {
  SILC_CHECK(axis >= 0 && axis < J.rows());
  const VectorXd e = VectorXd::Unit(J.rows(), axis);
  PullBack(Reduced(K, N, H), J, N, e, e, left, right);
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
  SILC_CHECK(row >= 0 && row < J.rows() && col >= 0 && col < J.rows());
  TaskStiffness task;
  ComputeTaskStiffness(J, K, N, H, &task);
  const VectorXd a = task.K_x.row(row).transpose(), c = task.K_x.col(col);
  PullBack(Reduced(K, N, H), J, N, a, c, left, right);
}

}  // namespace silc
