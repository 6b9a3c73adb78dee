// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/condition_reference.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "silc/base/check.h"
#include "silc/stiffness/test_algebra.h"

namespace silc {
namespace {

using namespace test::eager;
using Eigen::MatrixXd;
using Factor = Eigen::LLT<MatrixXd>;

// Cholesky factor of M; a matrix that is finite and has none is not a budget.
StiffnessStatus FactorDenseBudget(const ConstMatrix& K, const ConstMatrix& M, Factor* factor) {
  SILC_CHECK(K.rows() == K.cols() && M.rows() == K.rows() && M.cols() == K.cols());
  SILC_CHECK(K.rows() > 0 && K.rows() <= kMaxDofs);
  if (!K.allFinite() || !M.allFinite()) return StiffnessStatus::kNotFinite;
  factor->compute(M);
  return factor->info() == Eigen::Success ? StiffnessStatus::kOk
                                          : StiffnessStatus::kBudgetNotPositive;
}

// A of the condition: L⁻¹ K, L⁻¹ K L⁻ᵀ or 2 L⁻¹ K L⁻ᵀ − I, with L Lᵀ = M in `factor`
StiffnessStatus Whiten(
    Condition condition, const ConstMatrix& K, const ConstMatrix& M, Factor* factor, MatrixXd* A) {
  const StiffnessStatus status = FactorDenseBudget(K, M, factor);
  if (status != StiffnessStatus::kOk) return status;
  *A = K;
  factor->matrixL().solveInPlace(*A);
  if (condition == Condition::kOneSided) return status;
  factor->matrixU().solveInPlace<Eigen::OnTheRight>(*A);
  if (condition == Condition::kDisc) {
    *A *= 2;
    A->diagonal().array() -= 1;
  }
  return status;
}

// v → L⁻ᵀ v, column by column
template <typename Derived>
void BackSolve(const Factor& factor, Eigen::MatrixBase<Derived>* v) {
  factor.matrixU().solveInPlace(v->derived());
}

// u = A v / σ; where σ is nothing but rounding u is left zero
constexpr double kSmallestSigma = 1e-8;

// σ, u, v from the eigenvectors of AᵀA, and the derivative with respect to the matrix inside A
StiffnessStatus Triple(Condition condition,
                       const Factor& factor,
                       const MatrixXd& A,
                       SigmaTriple* triple) {
  const MatrixXd gram = A.transpose() * A;
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(gram);
  if (solver.info() != Eigen::Success) return StiffnessStatus::kNoConvergence;
  const Eigen::Index top = gram.rows() - 1;
  triple->sigma = std::sqrt(std::max(0.0, solver.eigenvalues()[top]));
  triple->v = solver.eigenvectors().col(top);
  triple->u.setZero(gram.rows());
  if (triple->sigma > 0) triple->u = A * triple->v / triple->sigma;
  triple->left = triple->u;
  triple->right = triple->v;
  BackSolve(factor, &triple->left);
  if (condition != Condition::kOneSided) BackSolve(factor, &triple->right);
  if (condition == Condition::kDisc) triple->left *= 2;
  return StiffnessStatus::kOk;
}

}  // namespace

StiffnessStatus LargestSigma(Condition condition,
                             const ConstMatrix& K,
                             const ConstMatrix& M,
                             double* sigma) {
  Factor factor;
  MatrixXd A;
  const StiffnessStatus status = Whiten(condition, K, M, &factor, &A);
  if (status != StiffnessStatus::kOk) return status;
  const MatrixXd gram = A.transpose() * A;
  double lambda = 0;
  const StiffnessStatus solved = LargestEigenvalue(gram, &lambda);
  *sigma = std::sqrt(std::max(0.0, lambda));
  return solved;
}

StiffnessStatus LargestSigma(Condition condition,
                             const ConstMatrix& K,
                             const ConstMatrix& M,
                             SigmaTriple* triple) {
  Factor factor;
  MatrixXd A;
  const StiffnessStatus status = Whiten(condition, K, M, &factor, &A);
  if (status != StiffnessStatus::kOk) return status;
  return Triple(condition, factor, A, triple);
}

StiffnessStatus AllSigmas(Condition condition,
                          const ConstMatrix& K,
                          const ConstMatrix& M,
                          SigmaSpectrum* spectrum) {
  Factor factor;
  MatrixXd A;
  const StiffnessStatus status = Whiten(condition, K, M, &factor, &A);
  if (status != StiffnessStatus::kOk) return status;
  const MatrixXd gram = A.transpose() * A;
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(gram);
  if (solver.info() != Eigen::Success) return StiffnessStatus::kNoConvergence;

  const Eigen::Index n = gram.rows();
  spectrum->sigma = solver.eigenvalues().reverse().cwiseMax(0.0).cwiseSqrt();
  spectrum->V = solver.eigenvectors().rowwise().reverse();
  spectrum->U = A * spectrum->V;
  for (Eigen::Index i = 0; i < n; ++i) {
    if (spectrum->sigma[i] > kSmallestSigma * spectrum->sigma[0]) {
      spectrum->U.col(i) /= spectrum->sigma[i];
    } else {
      spectrum->U.col(i).setZero();
    }
  }
  spectrum->left = spectrum->U;
  spectrum->right = spectrum->V;
  BackSolve(factor, &spectrum->left);
  if (condition != Condition::kOneSided) BackSolve(factor, &spectrum->right);
  if (condition == Condition::kDisc) spectrum->left *= 2;
  return StiffnessStatus::kOk;
}

StiffnessStatus LargestBandSigma(const ConstMatrix& K,
                                 const ConstMatrix& M,
                                 const ConstMatrix& m,
                                 SigmaTriple* triple) {
  SILC_CHECK(m.rows() == M.rows() && m.cols() == M.cols());
  if (!m.allFinite() || !M.allFinite()) return StiffnessStatus::kNotFinite;
  // a floor below zero would allow negative stiffness while promising sym(K⁻¹) ≥ M⁻¹
  const MatrixXd floor = m;
  const Eigen::SelfAdjointEigenSolver<MatrixXd> lowest(floor, Eigen::EigenvaluesOnly);
  if (lowest.info() != Eigen::Success) return StiffnessStatus::kNoConvergence;
  if (lowest.eigenvalues()[0] < -1e-12 * M.cwiseAbs().maxCoeff()) {
    return StiffnessStatus::kBudgetNotPositive;
  }
  const MatrixXd half = 0.5 * (M - m), from_centre = K - 0.5 * (M + m);
  Factor factor;
  MatrixXd A;
  const StiffnessStatus status = Whiten(Condition::kTwoSided, from_centre, half, &factor, &A);
  if (status != StiffnessStatus::kOk) return status;
  return Triple(Condition::kTwoSided, factor, A, triple);
}

StiffnessStatus WorstEigenvalue(const ConstMatrix& K, const ConstMatrix& M, double* lambda) {
  const MatrixXd sym = 0.5 * (K + K.transpose());
  Factor factor;
  MatrixXd A;
  const StiffnessStatus status = Whiten(Condition::kTwoSided, sym, M, &factor, &A);
  if (status != StiffnessStatus::kOk) return status;
  return LargestEigenvalue(A, lambda);
}

}  // namespace silc
