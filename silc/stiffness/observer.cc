// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/observer.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "silc/base/check.h"
#include "silc/base/nan.h"
#include "silc/stiffness/reciprocal_condition.h"
#include "silc/stiffness/row_rank.h"

namespace silc {
namespace {

using TallMatrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, kMaxDofs, kMaxTaskRows>;
constexpr int kPoints = PointRows::MaxRowsAtCompileTime / 3;
using PointColumns =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, kMaxDofs, 3 * kPoints>;

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

}  // namespace

StiffnessObserver::StiffnessObserver(const ObserverOptions& options)
    : options_(options), loop_(options.servo.nv(), options.frames) {
  SILC_CHECK(options.servo.nv() > 6 && options.servo.nv() <= kMaxDofs);
  SILC_CHECK(options.servo.alpha.size() == options.servo.nv());
  SILC_CHECK(options.budget.Validate().empty());
  SILC_CHECK(options.loop_every > 0);
  NullWeightDiagonal(options.budget, options.servo, &weight_);
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
  const bool torque = sums_.sees_torque, gravity = sums_.sees_gravity;
  const bool holds_torque = torque && options_.budget.torque == Channel::kHeld;
  const bool holds_gravity = gravity && options_.budget.gravity == Channel::kHeld;
  if (count_ % options_.loop_every == 0) {
    reading_.loop = CheckLoop(policy, true);
    reading_.judged_loop = holds_torque ? CheckLoop(policy, false) : reading_.loop;
  }
  reading_.static_status = SolveStatic(torque, gravity, reading_.loop, &reading_.K_s);
  reading_.loop_condition = static_.loop_condition;
  judges_what_is_felt_ = !holds_torque && !holds_gravity;
  if (judges_what_is_felt_) {
    reading_.judged_status = reading_.static_status;
    reading_.K_judged = reading_.K_s;
  } else {
    reading_.judged_status = SolveStatic(torque && !holds_torque,
                                         gravity && !holds_gravity,
                                         reading_.judged_loop,
                                         &reading_.K_judged);
  }
}

ActionLoopRadius StiffnessObserver::CheckLoop(const PolicyJacobians& policy, bool torque) {
  return options_.exact_action_loop ? loop_.Exact(options_.servo, policy, torque)
                                    : loop_.Fast(options_.servo, policy, torque);
}

// (S3) with these channels following the joints; NaN unless kOk
StiffnessStatus StiffnessObserver::SolveStatic(bool torque,
                                               bool gravity,
                                               const ActionLoopRadius& loop,
                                               JointMatrix* K) {
  StaticChannels channels;
  channels.torque = torque;
  if (gravity) channels.E = &contact_.E;
  // without the feet nobody knows how gravity turns
  StiffnessStatus status = gravity ? reading_.contact_status : StiffnessStatus::kOk;
  if (status == StiffnessStatus::kOk) {
    status = SolveQuasiStatic(options_.servo, sums_, channels, &static_);
  }
  if (status != StiffnessStatus::kOk) static_.loop_condition = kNan;
  if (status == StiffnessStatus::kOk && options_.require_stable_loop) status = loop.status;
  if (status == StiffnessStatus::kOk) {
    *K = static_.K;
  } else {
    K->setConstant(options_.servo.nv(), options_.servo.nv(), kNan);
  }
  return status;
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

// Pᵀ K P and its factor
StiffnessStatus StiffnessObserver::Factor(const JointMatrix& K,
                                          JointMatrix* K_z,
                                          Eigen::PartialPivLU<JointMatrix>* factor) const {
  Reduce(K, K_z);
  factor->compute(*K_z);
  return ReciprocalCondition(*factor) > kStiffnessRcond ? StiffnessStatus::kOk
                                                        : StiffnessStatus::kSingularStiffness;
}

// (S11)
void StiffnessObserver::ObserveTasks() {
  const BudgetSpec& budget = options_.budget;
  struct {
    PointReading* reading;
    const Jacobian3* J;
    const Eigen::Vector3d* bound;  // [N/m] null: none
  } const points[kPoints] = {
      {&reading_.com, &contact_.com, budget.com ? &*budget.com : nullptr},
      {&reading_.hand_in_world[0], &contact_.hand_in_world[0], nullptr},
      {&reading_.hand_in_world[1], &contact_.hand_in_world[1], nullptr},
      {&reading_.hand_on_base[0],
       &contact_.hand_on_base[0],
       budget.hand[0] ? &*budget.hand[0] : nullptr},
      {&reading_.hand_on_base[1],
       &contact_.hand_on_base[1],
       budget.hand[1] ? &*budget.hand[1] : nullptr},
  };

  StiffnessStatus felt = reading_.static_status, judged = reading_.judged_status;
  if (reading_.contact_status != StiffnessStatus::kOk) felt = judged = reading_.contact_status;
  Eigen::PartialPivLU<JointMatrix> factor;
  // K_z⁻¹ J_zᵀ: how the robot gives way to a force, as it is felt and as it is judged
  PointColumns response, judged_response;
  if (reading_.contact_status == StiffnessStatus::kOk) {
    const int nz = static_cast<int>(contact_.closed ? contact_.N.cols() : weight_.size());
    J_z_.resize(3 * kPoints, nz);
    for (int p = 0; p < kPoints; ++p) {
      if (contact_.closed) {
        J_z_.middleRows<3>(3 * p).noalias() = *points[p].J * contact_.N;
      } else {
        J_z_.middleRows<3>(3 * p) = *points[p].J * scale_.asDiagonal();
      }
    }
  }
  if (felt == StiffnessStatus::kOk) felt = Factor(reading_.K_s, &K_z_, &factor);
  if (felt == StiffnessStatus::kOk) {
    response = J_z_.transpose();
    response = factor.solve(response);
  }
  if (judges_what_is_felt_) {
    judged = felt;
  } else if (judged == StiffnessStatus::kOk) {
    judged = Factor(reading_.K_judged, &K_z_judged_, &factor);
    if (judged == StiffnessStatus::kOk) {
      judged_response = J_z_.transpose();
      judged_response = factor.solve(judged_response);
    }
  }

  for (int p = 0; p < kPoints; ++p) {
    PointReading& point = *points[p].reading;
    const Eigen::Vector3d* bound = points[p].bound;
    const bool in_flight = p == 0 && contact_.mode == ContactMode::kFlight;
    const auto read = [&](StiffnessStatus status,
                          const PointColumns& along,
                          Eigen::Matrix3d* C_x,
                          Eigen::Matrix3d* K_x) {
      if (status != StiffnessStatus::kOk) return status;
      if (in_flight) return StiffnessStatus::kNoSupport;
      const auto J = J_z_.middleRows<3>(3 * p);
      C_x->noalias() = J * along.middleCols<3>(3 * p);
      bool invertible = false;
      C_x->computeInverseWithCheck(*K_x, invertible, 0);
      return RowsAreIndependent(J) && invertible && K_x->allFinite() &&
                     C_x->diagonal().cwiseAbs().minCoeff() > 0
                 ? StiffnessStatus::kOk
                 : StiffnessStatus::kRankDeficientJacobian;
    };
    Eigen::Matrix3d C_judged = Eigen::Matrix3d::Zero(), K_judged = C_judged;
    StiffnessStatus judged_point = StiffnessStatus::kOk;
    if (bound != nullptr && !judges_what_is_felt_) {
      judged_point = read(judged, judged_response, &C_judged, &K_judged);
    }
    const StiffnessStatus status = read(felt, response, &point.C_x, &point.K_x);
    if (status != StiffnessStatus::kOk) {
      Fail(status, &point);
    } else {
      point.one_axis = point.C_x.diagonal().cwiseInverse();
      point.status = status;
    }
    if (judges_what_is_felt_) {
      K_judged = point.K_x;
      judged_point = status;
    }
    point.worst = kNan;
    if (bound != nullptr && judged_point == StiffnessStatus::kOk) {
      const Eigen::Vector3d d = bound->cwiseSqrt().cwiseInverse();
      const Eigen::Matrix3d sym = 0.5 * (K_judged + K_judged.transpose());
      const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> solver(
          Eigen::Matrix3d(d.asDiagonal() * sym * d.asDiagonal()), Eigen::EigenvaluesOnly);
      point.worst = solver.eigenvalues()[2];
    }
  }
}

// (S6) of this moment, in coordinates z
StiffnessStatus StiffnessObserver::PrepareBudget() {
  TaskJacobian J;
  const StiffnessStatus status =
      FactorBudgetAt(options_.budget, scale_, contact_, &rows_, &J, &factor_);
  if (options_.budget.HasFloor()) {
    const TaskJacobian floor_J = rows_.floor.asDiagonal() * J;
    floor_.noalias() = J.transpose() * floor_J;
  }
  return status;
}

void StiffnessObserver::ReadBudget(const JointMatrix& K_z, BudgetReading* reading) {
  const Condition condition = options_.budget.condition;
  const double s = 1 / std::sqrt(factor_.b);
  const bool tasks = factor_.Q.cols() > 0;
  const auto times_L_inverse = [&](const JointMatrix& K) {
    JointMatrix A = s * K;
    if (tasks) {
      const TaskJacobian QtK = factor_.Q.transpose() * K;
      const TaskJacobian ZQtK = factor_.Z * QtK;
      A.noalias() += factor_.Q * ZQtK;
    }
    return A;
  };
  JointMatrix A = times_L_inverse(options_.budget.HasFloor() ? JointMatrix(K_z - floor_) : K_z);
  JointMatrix gram(A.rows(), A.cols());
  StiffnessStatus status = StiffnessStatus::kOk;
  double lambda = 0;
  if (condition == Condition::kOneSided) {
    // (S7a) ‖L⁻¹ K‖ depends on the coordinates on the right: orthonormal ones
    if (options_.budget.weight == NullWeight::kIdentity) {
      gram.noalias() = A.transpose() * A;
    } else {
      const JointMatrix printed = times_L_inverse(OrthonormalOnTheRight(K_z));
      gram.noalias() = printed.transpose() * printed;
    }
    status = LargestEigenvalue(gram, &lambda);
    reading->sigma = std::sqrt(std::max(0.0, lambda));
  }
  // K̃ = L⁻¹ K L⁻ᵀ
  if (tasks) {
    const TallMatrix AQ = A * factor_.Q;
    const TallMatrix AQZ = AQ * factor_.Z.transpose();
    A *= s;
    A.noalias() += AQZ * factor_.Q.transpose();
  } else {
    A *= s;
  }
  JointMatrix sym(A.rows(), A.cols());
  sym = 0.5 * (A + A.transpose());
  if (condition != Condition::kOneSided) {
    // (S7b) ‖K̃‖, (S7c) ‖2 K̃ − I‖: σ² = 1 + 4 λ_max(K̃ᵀK̃ − sym K̃)
    gram.noalias() = A.transpose() * A;
    const bool disc = condition == Condition::kDisc;
    if (disc) gram -= sym;
    status = LargestEigenvalue(gram, &lambda);
    reading->sigma = std::sqrt(std::max(0.0, disc ? 1 + 4 * lambda : lambda));
  }
  if (status == StiffnessStatus::kOk) status = LargestEigenvalue(sym, &reading->worst);
  reading->status = status;
  if (status != StiffnessStatus::kOk) Fail(status, reading);
}

// Pᵀ K P T with P T orthonormal, as far as a norm can tell
JointMatrix StiffnessObserver::OrthonormalOnTheRight(const JointMatrix& K_z) const {
  if (!contact_.closed) return K_z * scale_.cwiseInverse().asDiagonal();
  const JointMatrix gram = contact_.N.transpose() * contact_.N;
  const Eigen::LLT<JointMatrix> factor(gram);
  JointMatrix right = K_z;
  factor.matrixU().solveInPlace<Eigen::OnTheRight>(right);
  return right;
}

void StiffnessObserver::ObserveBudget() {
  const StiffnessStatus prepared =
      reading_.contact_status == StiffnessStatus::kOk ? PrepareBudget() : reading_.contact_status;
  // K_z null: not yet reduced
  const auto read = [&](StiffnessStatus status,
                        const JointMatrix& K,
                        const JointMatrix* K_z,
                        BudgetReading* reading) {
    if (prepared != StiffnessStatus::kOk) status = prepared;
    if (status != StiffnessStatus::kOk) return Fail(status, reading);
    if (K_z != nullptr) return ReadBudget(*K_z, reading);
    JointMatrix reduced;
    Reduce(K, &reduced);
    ReadBudget(reduced, reading);
  };
  // ObserveTasks() has reduced it already
  read(reading_.judged_status,
       reading_.K_judged,
       judges_what_is_felt_ ? &K_z_ : &K_z_judged_,
       &reading_.quasi_static);
  if (options_.one_step_sigma) {
    read(reading_.one_step_status, reading_.K_1, nullptr, &reading_.one_step);
  }
}

}  // namespace silc
