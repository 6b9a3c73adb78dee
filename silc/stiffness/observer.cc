// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/observer.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>

#include "silc/base/check.h"
#include "silc/stiffness/reciprocal_condition.h"

namespace silc {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using TallMatrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, kMaxDofs, kMaxTaskRows>;

void Fail(StiffnessStatus status, BudgetReading* reading) {
  reading->status = status;
  reading->sigma = reading->worst = kNan;
}

void Fail(StiffnessStatus status, PointReading* reading) {
  reading->status = status;
  reading->K_x.setConstant(kNan);
  reading->C_x.setConstant(kNan);
  reading->one_axis.setConstant(kNan);
  reading->worst = kNan;
}

// Smallest over largest singular value of J, squared, from J Jᵀ.
double RankMeasure(const TaskMatrix& gram) {
  const Eigen::SelfAdjointEigenSolver<TaskMatrix> solver(gram, Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return 0;
  return solver.eigenvalues()[0] / solver.eigenvalues()[gram.rows() - 1];
}

}  // namespace

StiffnessObserver::StiffnessObserver(const ObserverOptions& options)
    : options_(options), loop_(options.servo.nv(), options.frames) {
  SILC_CHECK(options.servo.nv() > 6 && options.servo.nv() <= kMaxDofs);
  SILC_CHECK(options.servo.alpha.size() == options.servo.nv());
  SILC_CHECK(options.budget.Validate().empty());
  SILC_CHECK(options.loop_every > 0);
  whitened_ = options.budget.condition != Condition::kOneSided ||
              options.budget.weight == NullWeight::kIdentity;
  if (whitened_) {
    NullWeightDiagonal(options.budget, options.servo, &weight_);
  } else {
    weight_.setOnes(options.servo.nv());
  }
  SILC_CHECK((weight_.array() > 0).all());
  scale_ = weight_.cwiseSqrt().cwiseInverse();
  Fail(StiffnessStatus::kNotFinite, &reading_.one_step);
}

const StiffnessReading& StiffnessObserver::Observe(const PolicyJacobians& policy,
                                                   const BodyJacobians& body,
                                                   ContactMode mode) {
  reading_.mode = mode;
  SILC_CHECK(body.com.cols() == options_.servo.nv() + 6);
  reading_.contact_status = ComputeContactKinematics(body, mode, &weight_, &contact_);
  ObserveJoints(policy);
  ObserveTasks();
  ObserveBudget();
  ++count_;
  return reading_;
}

// (S2) and (S3)
void StiffnessObserver::ObserveJoints(const PolicyJacobians& policy) {
  const Servo& servo = options_.servo;
  const int nv = servo.nv();
  if (policy.J_q.empty()) {
    reading_.K_1 = servo.kp.asDiagonal();
    reading_.one_step_status = StiffnessStatus::kOk;
  } else {
    reading_.one_step_status = OneStepStiffness(servo, policy.J_q[0], &reading_.K_1);
  }
  if (reading_.one_step_status != StiffnessStatus::kOk) reading_.K_1.setConstant(nv, nv, kNan);

  SumPolicy(policy, nv, &sums_);
  StaticChannels channels;
  channels.torque = options_.budget.torque == Channel::kFollowed;
  const bool gravity = options_.budget.gravity == Channel::kFollowed && sums_.sees_gravity;
  if (gravity && reading_.contact_status != StiffnessStatus::kOk) {
    // without the feet nobody knows how gravity turns
    reading_.static_status = reading_.contact_status;
  } else {
    if (gravity) channels.E = &contact_.E;
    reading_.static_status = SolveQuasiStatic(servo, sums_, channels, &static_);
  }
  reading_.loop_condition =
      reading_.static_status == StiffnessStatus::kOk ? static_.loop_condition : kNan;
  if (count_ % options_.loop_every == 0) {
    reading_.loop = options_.exact_action_loop ? loop_.Exact(servo, policy, channels.torque)
                                               : loop_.Fast(servo, policy, channels.torque);
  }
  if (reading_.static_status == StiffnessStatus::kOk && options_.require_stable_loop) {
    reading_.static_status = reading_.loop.status;
  }
  if (reading_.static_status == StiffnessStatus::kOk) {
    reading_.K_s = static_.K;
  } else {
    reading_.K_s.setConstant(nv, nv, kNan);
  }
}

// Pᵀ K P
void StiffnessObserver::Reduce(const JointMatrix& K, JointMatrix* K_z) const {
  if (contact_.closed) {
    const JointMatrix KN = K * contact_.N;
    K_z->noalias() = contact_.N.transpose() * KN;
  } else {
    *K_z = scale_.asDiagonal() * K * scale_.asDiagonal();
  }
}

// (S11)
void StiffnessObserver::ObserveTasks() {
  PointReading* points[3] = {&reading_.com, &reading_.hand[0], &reading_.hand[1]};
  const Jacobian3* jacobians[3] = {&contact_.com, &contact_.hand[0], &contact_.hand[1]};
  const std::optional<Eigen::Vector3d>* bounds[3] = {
      &options_.budget.com, &options_.budget.hand[0], &options_.budget.hand[1]};

  StiffnessStatus status = reading_.contact_status;
  if (status == StiffnessStatus::kOk) {
    // the budget needs their number, too, whatever becomes of K_s
    const int nz = static_cast<int>(contact_.closed ? contact_.N.cols() : weight_.size());
    J_z_.resize(9, nz);
    for (int p = 0; p < 3; ++p) {
      if (contact_.closed) {
        J_z_.middleRows<3>(3 * p).noalias() = *jacobians[p] * contact_.N;
      } else {
        J_z_.middleRows<3>(3 * p) = *jacobians[p] * scale_.asDiagonal();
      }
    }
    status = reading_.static_status;
  }
  Eigen::PartialPivLU<JointMatrix> factor;
  if (status == StiffnessStatus::kOk) {
    Reduce(reading_.K_s, &K_z_);
    factor.compute(K_z_);
    if (!(ReciprocalCondition(factor) > kStiffnessRcond))
      status = StiffnessStatus::kSingularStiffness;
  }
  if (status != StiffnessStatus::kOk) {
    for (PointReading* point : points) Fail(status, point);
    return;
  }

  TallMatrix response = J_z_.transpose();  // K_z⁻¹ J_zᵀ: how the robot gives way to a force
  response = factor.solve(response);
  for (int p = 0; p < 3; ++p) {
    PointReading& point = *points[p];
    if (p == 0 && contact_.mode == ContactMode::kFlight) {
      Fail(StiffnessStatus::kNoSupport, &point);
      continue;
    }
    const auto J = J_z_.middleRows<3>(3 * p);
    const TaskMatrix gram = J * J.transpose();
    point.C_x.noalias() = J * response.middleCols<3>(3 * p);
    bool invertible = false;
    point.C_x.computeInverseWithCheck(point.K_x, invertible, 0);
    if (!(RankMeasure(gram) > kRankTolerance * kRankTolerance) || !invertible ||
        !point.K_x.allFinite() || !(point.C_x.diagonal().cwiseAbs().minCoeff() > 0)) {
      Fail(StiffnessStatus::kRankDeficientJacobian, &point);
      continue;
    }
    point.one_axis = point.C_x.diagonal().cwiseInverse();
    point.worst = kNan;
    if (*bounds[p]) {
      const Eigen::Vector3d d = (*bounds[p])->cwiseSqrt().cwiseInverse();
      const Eigen::Matrix3d sym = 0.5 * (point.K_x + point.K_x.transpose());
      const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> solver(
          Eigen::Matrix3d(d.asDiagonal() * sym * d.asDiagonal()), Eigen::EigenvaluesOnly);
      point.worst = solver.eigenvalues()[2];
    }
    point.status = StiffnessStatus::kOk;
  }
}

// (S6) as L⁻¹ = b^{−1/2} I + Q Z Qᵀ; see the header
StiffnessStatus StiffnessObserver::PrepareBudget() {
  const double s = 1 / std::sqrt(options_.budget.null_stiffness);
  const int nz = static_cast<int>(J_z_.cols());
  TaskVector K_x(9);
  TallMatrix J_T(nz, 9);
  int m = 0;
  const auto stack = [&](const std::optional<Eigen::Vector3d>& k, const Jacobian3& J) {
    if (!k) return;
    if (contact_.closed) {
      J_T.middleCols<3>(m).noalias() = contact_.N.transpose() * J.transpose();
    } else {
      J_T.middleCols<3>(m) = scale_.asDiagonal() * J.transpose();
    }
    K_x.segment<3>(m) = *k;
    m += 3;
  };
  if (contact_.mode != ContactMode::kFlight) stack(options_.budget.com, contact_.com);
  stack(options_.budget.hand[0], contact_.hand_on_base[0]);
  stack(options_.budget.hand[1], contact_.hand_on_base[1]);
  Q_.resize(nz, std::min(m, nz));
  Z_.resize(m, m);
  if (m == 0) return StiffnessStatus::kOk;

  if (m > nz) return StiffnessStatus::kRankDeficientJacobian;
  const TallMatrix J_T_used = J_T.leftCols(m);
  const TaskMatrix gram = J_T_used.transpose() * J_T_used;
  if (!(RankMeasure(gram) > kRankTolerance * kRankTolerance)) {
    return StiffnessStatus::kRankDeficientJacobian;
  }
  const Eigen::HouseholderQR<TallMatrix> qr(J_T_used);
  Q_.setIdentity(nz, m);
  Q_.applyOnTheLeft(qr.householderQ());
  const TaskMatrix R = qr.matrixQR().topRows(m).triangularView<Eigen::Upper>();
  const TaskMatrix A = R * K_x.head(m).asDiagonal() * R.transpose();
  const Eigen::LLT<TaskMatrix> factor(A);
  if (factor.info() != Eigen::Success) return StiffnessStatus::kBudgetNotPositive;
  Z_.setIdentity(m, m);
  factor.matrixL().solveInPlace(Z_);
  Z_.diagonal().array() -= s;
  return StiffnessStatus::kOk;
}

// (S7) of K_z against the budget prepared
void StiffnessObserver::ReadBudget(const JointMatrix& K_z, BudgetReading* reading) {
  if (!whitened_) {
    reading->status = LargestSigma(options_.budget.condition, K_z, long_way_.M, &reading->sigma);
    if (reading->status == StiffnessStatus::kOk) {
      reading->status = WorstEigenvalue(K_z, long_way_.M, &reading->worst);
    }
    if (reading->status != StiffnessStatus::kOk) Fail(reading->status, reading);
    return;
  }
  const double s = 1 / std::sqrt(options_.budget.null_stiffness);
  const bool tasks = Q_.cols() > 0;
  // L⁻¹ K
  JointMatrix A = s * K_z;
  if (tasks) {
    const TaskJacobian QtK = Q_.transpose() * K_z;
    const TaskJacobian ZQtK = Z_ * QtK;
    A.noalias() += Q_ * ZQtK;
  }
  JointMatrix gram(A.rows(), A.cols());
  StiffnessStatus status = StiffnessStatus::kOk;
  double lambda = 0;
  if (options_.budget.condition == Condition::kOneSided) {
    gram.noalias() = A.transpose() * A;
    status = LargestEigenvalue(gram, &lambda);
    reading->sigma = std::sqrt(std::max(0.0, lambda));
  }
  // K̃ = L⁻¹ K L⁻ᵀ
  if (tasks) {
    const TallMatrix AQ = A * Q_;
    const TallMatrix AQZ = AQ * Z_.transpose();
    A *= s;
    A.noalias() += AQZ * Q_.transpose();
  } else {
    A *= s;
  }
  JointMatrix sym(A.rows(), A.cols());
  sym = 0.5 * (A + A.transpose());
  if (options_.budget.condition != Condition::kOneSided) {
    gram.noalias() = A.transpose() * A;
    const bool disc = options_.budget.condition == Condition::kDisc;
    if (disc) gram -= sym;
    status = LargestEigenvalue(gram, &lambda);
    reading->sigma = std::sqrt(std::max(0.0, disc ? 1 + 4 * lambda : lambda));
  }
  if (status == StiffnessStatus::kOk) status = LargestEigenvalue(sym, &reading->worst);
  reading->status = status;
  if (status != StiffnessStatus::kOk) Fail(status, reading);
}

void StiffnessObserver::ObserveBudget() {
  StiffnessStatus status = reading_.contact_status;
  if (status == StiffnessStatus::kOk) {
    status = whitened_
                 ? PrepareBudget()
                 : ComputeReducedBudget(options_.budget, options_.servo, contact_, &long_way_);
  }
  const StiffnessStatus static_status =
      status == StiffnessStatus::kOk ? reading_.static_status : status;
  if (static_status == StiffnessStatus::kOk) {
    ReadBudget(K_z_, &reading_.quasi_static);  // ObserveTasks() has reduced K_s already
  } else {
    Fail(static_status, &reading_.quasi_static);
  }
  if (!options_.one_step_sigma) return;
  const StiffnessStatus one_step_status =
      status == StiffnessStatus::kOk ? reading_.one_step_status : status;
  if (one_step_status == StiffnessStatus::kOk) {
    JointMatrix K_z;
    Reduce(reading_.K_1, &K_z);
    ReadBudget(K_z, &reading_.one_step);
  } else {
    Fail(one_step_status, &reading_.one_step);
  }
}

}  // namespace silc
