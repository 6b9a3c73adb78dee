// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/budget.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <cmath>
#include <vector>

#include "silc/base/check.h"

namespace silc {
namespace {

// a matrix that is not symmetric to this, relative to its largest entry, is a slip and not rounding
constexpr double kSymmetryTolerance = 1e-9;

// n × m: a transposed task Jacobian
using TallMatrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, kMaxDofs, kMaxTaskRows>;

bool IsSymmetric(const ConstMatrix& A) {
  if (A.rows() != A.cols()) return false;
  const double size = A.size() == 0 ? 0 : A.cwiseAbs().maxCoeff();
  for (int j = 0; j < A.cols(); ++j) {
    for (int i = 0; i < j; ++i) {
      if (!(std::abs(A(i, j) - A(j, i)) <= kSymmetryTolerance * size)) return false;
    }
  }
  return true;
}

std::string ValidateAxes(const char* name, const Eigen::Vector3d& k) {
  if (k.allFinite() && (k.array() > 0).all()) return "";
  return std::string(name) + ": stiffness must be finite and above 0 N/m on every axis";
}

NamedBudget Mode(const char* name, double k_xy, double k_z, double null, double hand = 0) {
  NamedBudget mode{name, {}};
  mode.spec.com = Eigen::Vector3d(k_xy, k_xy, k_z);
  mode.spec.null_stiffness = null;
  if (hand > 0) mode.spec.hand[0] = mode.spec.hand[1] = Eigen::Vector3d::Constant(hand);
  return mode;
}

}  // namespace

std::string BudgetSpec::Validate() const {
  std::string error;
  if (com) error = ValidateAxes("com", *com);
  if (error.empty() && hand[0]) error = ValidateAxes("left hand", *hand[0]);
  if (error.empty() && hand[1]) error = ValidateAxes("right hand", *hand[1]);
  if (error.empty() && !(std::isfinite(null_stiffness) && null_stiffness > 0)) {
    error = "null-space stiffness must be finite and positive";
  }
  if (!error.empty()) return error;
  if (!((hand_floor.array() >= 0).all() && (hand_floor.array() < 1).all())) {
    return "hand_floor: a share of the hands' stiffness is at least 0 and below 1 on every axis";
  }
  if (HasFloor() && !hand[0] && !hand[1]) return "hand_floor: this budget names no hand";
  if (HasFloor() && condition != Condition::kDisc) {
    return "hand_floor: only the disc condition (S7c) has a band with a floor";
  }
  return "";
}

const char* Name(Channel channel) { return channel == Channel::kHeld ? "held" : "followed"; }

std::span<const NamedBudget> PaperModes() {
  // Table I and section V-B2 of the paper
  static const std::vector<NamedBudget> modes = {
      Mode("high-stiff", 1000, 20000, 100),
      Mode("compliance", 200, 20000, 50),
      Mode("hard-nullspace", 200, 20000, 500),
      Mode("soft-hand", 200, 20000, 50, 200),
      Mode("hard-hand", 200, 20000, 50, 1000),
  };
  return modes;
}

StiffnessStatus JointBudget(
    const ConstMatrix& J, const ConstMatrix& K_x, const ConstMatrix& W, double b, JointMatrix* M) {
  const int m = static_cast<int>(J.rows()), n = static_cast<int>(W.rows());
  SILC_CHECK(W.cols() == n && K_x.rows() == m && K_x.cols() == m && (m == 0 || J.cols() == n));
  SILC_CHECK(n <= kMaxDofs && m <= kMaxTaskRows);
  if (!J.allFinite() || !K_x.allFinite() || !W.allFinite() || !std::isfinite(b)) {
    return StiffnessStatus::kNotFinite;
  }
  if (!(b > 0) || !IsSymmetric(W) || !IsSymmetric(K_x)) return StiffnessStatus::kBudgetNotPositive;
  const Eigen::LLT<JointMatrix> W_factor(W);
  if (W_factor.info() != Eigen::Success) return StiffnessStatus::kBudgetNotPositive;
  *M = b * W;
  if (m == 0) return StiffnessStatus::kOk;

  const Eigen::LLT<TaskMatrix> K_x_factor(K_x);
  if (K_x_factor.info() != Eigen::Success) return StiffnessStatus::kBudgetNotPositive;
  if (m > n) return StiffnessStatus::kRankDeficientJacobian;
  // rank, from the squares of J's singular values
  const TaskMatrix gram = J * J.transpose();
  const Eigen::SelfAdjointEigenSolver<TaskMatrix> singular(gram, Eigen::EigenvaluesOnly);
  if (singular.info() != Eigen::Success) return StiffnessStatus::kNoConvergence;
  const double largest = singular.eigenvalues()[m - 1], smallest = singular.eigenvalues()[0];
  if (!(smallest > kRankTolerance * kRankTolerance * largest)) {
    return StiffnessStatus::kRankDeficientJacobian;
  }

  // Λ = (J W⁻¹ Jᵀ)⁻¹: the task stiffness of W itself
  TallMatrix Y = J.transpose();
  W_factor.matrixL().solveInPlace(Y);
  const TaskMatrix inverse_lambda = Y.transpose() * Y;
  const TaskMatrix identity = TaskMatrix::Identity(m, m);
  const TaskMatrix lambda = inverse_lambda.llt().solve(identity);
  // (S6)
  TaskMatrix middle = K_x - b * lambda;
  middle = (0.5 * (middle + middle.transpose())).eval();
  const TaskJacobian F = middle * J;
  M->noalias() += J.transpose() * F;
  return StiffnessStatus::kOk;
}

StiffnessStatus ShapeAndScaleBudget(const ConstMatrix& J,
                                    const ConstMatrix& K_x,
                                    const ConstMatrix& B_0,
                                    double* eta,
                                    JointMatrix* M) {
  const int m = static_cast<int>(J.rows()), n = static_cast<int>(B_0.rows());
  SILC_CHECK(m > 0 && J.cols() == n && B_0.cols() == n && K_x.rows() == m && K_x.cols() == m);
  SILC_CHECK(n <= kMaxDofs && m <= kMaxTaskRows);
  if (!J.allFinite() || !K_x.allFinite() || !B_0.allFinite()) return StiffnessStatus::kNotFinite;
  if (!IsSymmetric(B_0) || !IsSymmetric(K_x)) return StiffnessStatus::kBudgetNotPositive;
  const Eigen::LLT<JointMatrix> B_factor(B_0);
  const Eigen::LLT<TaskMatrix> K_x_factor(K_x);
  if (B_factor.info() != Eigen::Success || K_x_factor.info() != Eigen::Success) {
    return StiffnessStatus::kBudgetNotPositive;
  }
  // L_xᵀ J C₀ Jᵀ L_x = Yᵀ Y with Y = L₀⁻¹ Jᵀ L_x
  TallMatrix Y = J.transpose() * TaskMatrix(K_x_factor.matrixL());
  B_factor.matrixL().solveInPlace(Y);
  const TaskMatrix gram = Y.transpose() * Y;
  const Eigen::SelfAdjointEigenSolver<TaskMatrix> solver(gram, Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return StiffnessStatus::kNoConvergence;
  // below this the smallest eigenvalue is rounding of the largest
  const double floor = 1e-14 * solver.eigenvalues()[m - 1];
  if (!(solver.eigenvalues()[0] > floor)) return StiffnessStatus::kRankDeficientJacobian;
  *eta = solver.eigenvalues()[0];
  // (S6), shape and scale
  *M = *eta * B_0;
  return StiffnessStatus::kOk;
}

void NullWeightDiagonal(const BudgetSpec& spec, const Servo& servo, JointVector* weight) {
  if (spec.weight == NullWeight::kServo) {
    *weight = servo.kp;
  } else {
    weight->setOnes(servo.nv());
  }
}

StiffnessStatus ComputeReducedBudget(const BudgetSpec& spec,
                                     const Servo& servo,
                                     const ContactKinematics& contact,
                                     ReducedBudget* out) {
  const int nv = servo.nv();
  SILC_CHECK(contact.com.cols() == nv);
  const int nz = contact.closed ? static_cast<int>(contact.N.cols()) : nv;
  int m = 0;
  out->J.resize(kMaxTaskRows, nz);
  out->K_x.resize(kMaxTaskRows);
  const auto stack = [&](const std::optional<Eigen::Vector3d>& k, const Jacobian3& J) {
    if (!k) return;
    if (contact.closed) {
      out->J.middleRows<3>(m).noalias() = J * contact.N;
    } else {
      out->J.middleRows<3>(m) = J;
    }
    out->K_x.segment<3>(m) = *k;
    m += 3;
  };
  if (contact.mode != ContactMode::kFlight) stack(spec.com, contact.com);
  stack(spec.hand[0], contact.hand_on_base[0]);
  stack(spec.hand[1], contact.hand_on_base[1]);
  out->J.conservativeResize(m, nz);
  out->K_x.conservativeResize(m);

  JointVector weight;
  NullWeightDiagonal(spec, servo, &weight);
  JointMatrix W;
  if (contact.closed) {
    const JointMatrix WN = weight.asDiagonal() * contact.N;
    W = contact.N.transpose() * WN;
    W = (0.5 * (W + W.transpose())).eval();
  } else {
    W = weight.asDiagonal();
  }
  const TaskMatrix K_x = out->K_x.asDiagonal();
  return JointBudget(out->J, K_x, W, spec.null_stiffness, &out->M);
}

}  // namespace silc
