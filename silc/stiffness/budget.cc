// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/budget.h"

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <cmath>

#include "silc/base/check.h"
#include "silc/stiffness/row_rank.h"

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

std::string ValidateRanges(const BudgetSpec& spec) {
  const auto& range = spec.command.range;
  for (int i = 0; i < kNumCommanded; ++i) {
    if (!range[i]) continue;
    const std::string name = Name(static_cast<CommandedNumber>(i));
    if (!(std::isfinite(range[i]->high) && range[i]->low > 0)) {
      return name + ": a range must be finite and above 0";
    }
    if (!(range[i]->low <= range[i]->high)) return name + ": the range is upside down";
  }
  if (range[kCommandCom] && !spec.com) return "com: has a range but no number along z";
  if (range[kCommandHands] && !(spec.hand[0] && spec.hand[1])) {
    return "hands: a range is for both hands";
  }
  return "";
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
  return ValidateRanges(*this);
}

BudgetValues MiddleOf(const BudgetCommand& command) {
  BudgetValues values;
  for (int i = 0; i < kNumCommanded; ++i) {
    values[i] = command.range[i] ? command.range[i]->Middle() : 1;
  }
  return values;
}

BudgetSpec BudgetAt(const BudgetSpec& spec, const BudgetValues& values) {
  BudgetSpec at = spec;
  at.command = {};
  const auto& range = spec.command.range;
  if (range[kCommandCom]) at.com->head<2>().setConstant(values[kCommandCom]);
  if (range[kCommandHands]) {
    for (auto& hand : at.hand) hand->setConstant(values[kCommandHands]);
  }
  if (range[kCommandNull]) at.null_stiffness = values[kCommandNull];
  return at;
}

const char* Name(Channel channel) { return channel == Channel::kHeld ? "held" : "followed"; }

StiffnessStatus FactorBudget(const ConstMatrix& J,
                             const ConstMatrix& K_x,
                             double b,
                             BudgetFactor* out) {
  const int m = static_cast<int>(J.rows()), n = static_cast<int>(J.cols());
  SILC_CHECK(K_x.rows() == m && K_x.cols() == m);
  SILC_CHECK(n <= kMaxDofs && m <= kMaxTaskRows);
  out->b = b;
  out->Q.resize(n, 0);
  out->A.resize(0, 0);
  out->Z.resize(0, 0);
  if (!J.allFinite() || !K_x.allFinite() || !std::isfinite(b)) return StiffnessStatus::kNotFinite;
  if (!(b > 0) || !IsSymmetric(K_x)) return StiffnessStatus::kBudgetNotPositive;
  if (m == 0) return StiffnessStatus::kOk;
  if (!RowsAreIndependent(J)) return StiffnessStatus::kRankDeficientJacobian;

  // Jᵀ = Q R
  const TallMatrix J_T = J.transpose();
  const Eigen::HouseholderQR<TallMatrix> qr(J_T);
  out->Q.setIdentity(n, m);
  out->Q.applyOnTheLeft(qr.householderQ());
  const TaskMatrix R = qr.matrixQR().topRows(m).triangularView<Eigen::Upper>();
  // (S6)
  const TaskMatrix K = K_x;
  const TaskMatrix RK = R * K;
  out->A.noalias() = RK * R.transpose();
  const Eigen::LLT<TaskMatrix> factor(out->A);
  if (factor.info() != Eigen::Success) return StiffnessStatus::kBudgetNotPositive;
  out->Z.setIdentity(m, m);
  factor.matrixL().solveInPlace(out->Z);
  out->Z.diagonal().array() -= 1 / std::sqrt(b);
  return StiffnessStatus::kOk;
}

StiffnessStatus JointBudget(
    const ConstMatrix& J, const ConstMatrix& K_x, const ConstMatrix& W, double b, JointMatrix* M) {
  const int m = static_cast<int>(J.rows()), n = static_cast<int>(W.rows());
  SILC_CHECK(W.cols() == n && n <= kMaxDofs && m <= kMaxTaskRows && (m == 0 || J.cols() == n));
  if (!J.allFinite() || !W.allFinite()) return StiffnessStatus::kNotFinite;
  if (!IsSymmetric(W)) return StiffnessStatus::kBudgetNotPositive;
  const Eigen::LLT<JointMatrix> W_factor(W);  // W = L_W L_Wᵀ
  if (W_factor.info() != Eigen::Success) return StiffnessStatus::kBudgetNotPositive;
  // coordinates in which W is the identity: J L_W⁻ᵀ
  TallMatrix J_T(n, m);
  if (m > 0) {
    J_T = J.transpose();
    W_factor.matrixL().solveInPlace(J_T);
  }
  const TaskJacobian whitened = J_T.transpose();
  BudgetFactor factor;
  const StiffnessStatus status = FactorBudget(whitened, K_x, b, &factor);
  if (status != StiffnessStatus::kOk) return status;

  // M = L_W (b I + Q (A − b I) Qᵀ) L_Wᵀ
  *M = b * W;
  if (m == 0) return StiffnessStatus::kOk;
  const TallMatrix Q = W_factor.matrixL() * factor.Q;
  TaskMatrix middle = 0.5 * (factor.A + factor.A.transpose());
  middle.diagonal().array() -= b;
  const TallMatrix Q_middle = Q * middle;
  M->noalias() += Q_middle * Q.transpose();
  return StiffnessStatus::kOk;
}

void NullWeightDiagonal(const BudgetSpec& spec, const Servo& servo, JointVector* weight) {
  if (spec.weight == NullWeight::kServo) {
    *weight = servo.kp;
  } else {
    weight->setOnes(servo.nv());
  }
}

void ReduceNullWeight(const JointVector& weight, const ContactKinematics& contact, JointMatrix* W) {
  if (contact.closed) {
    const JointMatrix WN = weight.asDiagonal() * contact.N;
    *W = contact.N.transpose() * WN;
    *W = (0.5 * (*W + W->transpose())).eval();
  } else {
    *W = weight.asDiagonal();
  }
}

void StackBudgetRows(const BudgetSpec& spec, const ContactKinematics& contact, BudgetRows* rows) {
  SILC_CHECK(!spec.IsCommanded());
  int m = 0;
  rows->J.resize(kMaxTaskRows, contact.com.cols());
  rows->K_x.resize(kMaxTaskRows);
  rows->floor.resize(kMaxTaskRows);
  const auto stack = [&](const std::optional<Eigen::Vector3d>& k,
                         const Jacobian3& J,
                         const Eigen::Vector3d& least_share) {
    if (!k) return;
    rows->J.middleRows<3>(m) = J;
    rows->K_x.segment<3>(m) = *k;
    rows->floor.segment<3>(m) = least_share.cwiseProduct(*k);
    m += 3;
  };
  if (contact.mode != ContactMode::kFlight) {
    stack(spec.com, contact.com, Eigen::Vector3d::Zero());
  }
  for (int side = 0; side < 2; ++side) {
    stack(spec.hand[side], contact.hand_on_base[side], spec.hand_floor);
  }
  rows->J.conservativeResize(m, Eigen::NoChange);
  rows->K_x.conservativeResize(m);
  rows->floor.conservativeResize(m);
}

StiffnessStatus FactorBudgetAt(const BudgetSpec& spec,
                               const JointVector& scale,
                               const ContactKinematics& contact,
                               BudgetRows* rows,
                               TaskJacobian* J_z,
                               BudgetFactor* out) {
  StackBudgetRows(spec, contact, rows);
  if (contact.closed) {
    SILC_CHECK(contact.N_scale.isApprox(scale));
    J_z->noalias() = rows->J * contact.N;
  } else {
    *J_z = rows->J * scale.asDiagonal();
  }
  const TaskMatrix K_x = (rows->K_x - rows->floor).asDiagonal();
  return FactorBudget(*J_z, K_x, spec.null_stiffness, out);
}

StiffnessStatus ComputeReducedBudget(const BudgetSpec& spec,
                                     const Servo& servo,
                                     const ContactKinematics& contact,
                                     ReducedBudget* out) {
  SILC_CHECK(contact.com.cols() == servo.nv());
  BudgetRows rows;
  StackBudgetRows(spec, contact, &rows);
  JointVector weight;
  NullWeightDiagonal(spec, servo, &weight);
  JointMatrix W;
  ReduceNullWeight(weight, contact, &W);
  if (contact.closed) {
    out->J.noalias() = rows.J * contact.N;
  } else {
    out->J = rows.J;
  }
  out->K_x = rows.K_x;
  const TaskMatrix K_x = rows.K_x.asDiagonal();
  return JointBudget(out->J, K_x, W, spec.null_stiffness, &out->M);
}

}  // namespace silc
