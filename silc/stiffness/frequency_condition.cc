// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/frequency_condition.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <complex>

#include "silc/base/check.h"
#include "silc/base/nan.h"

namespace silc {
namespace {

using Complex = std::complex<double>;

double LargestHermitian(const Eigen::MatrixXcd& H) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXcd> solver(H, Eigen::EigenvaluesOnly);
  return solver.info() == Eigen::Success ? solver.eigenvalues()[H.rows() - 1] : kNan;
}

}  // namespace

StiffnessStatus MakeBudgetCoordinates(const BudgetSpec& spec,
                                      const Servo& servo,
                                      const ContactKinematics& contact,
                                      BudgetCoordinates* out) {
  BudgetRows rows;
  StackBudgetRows(spec, contact, &rows);
  // q̇ = P ż with Pᵀ W P = I: P = N L_W⁻ᵀ, L_W L_Wᵀ = Nᵀ W N
  JointVector weight;
  NullWeightDiagonal(spec, servo, &weight);
  JointMatrix W;
  ReduceNullWeight(weight, contact, &W);
  const Eigen::LLT<JointMatrix> W_factor(W);
  if (W_factor.info() != Eigen::Success) return StiffnessStatus::kBudgetNotPositive;
  Eigen::MatrixXd P = contact.closed ? Eigen::MatrixXd(contact.N)
                                     : Eigen::MatrixXd::Identity(servo.nv(), servo.nv());
  W_factor.matrixU().solveInPlace<Eigen::OnTheRight>(P);
  const Eigen::MatrixXd J = rows.J * P;
  const TaskMatrix K_x = (rows.K_x - rows.floor).asDiagonal();
  BudgetFactor factor;
  const StiffnessStatus status = FactorBudget(J, K_x, spec.null_stiffness, &factor);
  if (status != StiffnessStatus::kOk) return status;
  const Eigen::Index nz = P.cols();
  Eigen::MatrixXd L_inverse = Eigen::MatrixXd::Identity(nz, nz) / std::sqrt(factor.b);
  L_inverse += factor.Q * factor.Z * factor.Q.transpose();
  out->F = L_inverse * P.transpose();
  const Eigen::MatrixXd LJ = L_inverse * J.transpose();
  out->floor = LJ * rows.floor.asDiagonal() * LJ.transpose();
  return StiffnessStatus::kOk;
}

FrequencyReading ReadAtFrequency(const Eigen::MatrixXcd& K,
                                 const Servo& servo,
                                 double omega,
                                 const BudgetCoordinates& coordinates) {
  SILC_CHECK(K.rows() == servo.nv() && servo.kd.size() == servo.nv() && omega >= 0);
  FrequencyReading reading;
  if (!K.real().allFinite() || !K.imag().allFinite()) {
    reading.sigma = reading.driving = kNan;
    return reading;
  }
  const Eigen::MatrixXcd F = coordinates.F.cast<Complex>();
  const Eigen::MatrixXcd whole = F * K * F.transpose();
  // (S12) without the servo's own dashpots
  const Eigen::MatrixXd dashpots =
      coordinates.F * servo.kd.asDiagonal() * coordinates.F.transpose();
  Eigen::MatrixXcd A = 2.0 * (whole - coordinates.floor.cast<Complex>());
  A -= Complex(0, 2 * omega) * dashpots.cast<Complex>();
  A.diagonal().array() -= 1.0;
  reading.sigma = std::sqrt(std::max(0.0, LargestHermitian(A.adjoint() * A)));
  // (S13) with them
  reading.driving = LargestHermitian(Complex(0, 1) * (whole - whole.adjoint()));
  return reading;
}

}  // namespace silc
