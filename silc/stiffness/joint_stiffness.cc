// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/joint_stiffness.h"

#include "silc/base/check.h"
#include "silc/stiffness/reciprocal_condition.h"

namespace silc {
namespace {

void CheckServo(const Servo& servo) {
  SILC_CHECK(servo.nv() > 0 && servo.nv() <= kMaxDofs && servo.alpha.size() == servo.nv());
}

// K = Kp (I − α X), row by row: Kp and α are diagonal
void StiffnessFromResponse(const Servo& servo, const ConstMatrix& X, JointMatrix* K) {
  const JointVector gain = servo.kp.cwiseProduct(servo.alpha);
  K->noalias() = -(gain.asDiagonal() * X);
  K->diagonal() += servo.kp;
}

}  // namespace

StiffnessStatus OneStepStiffness(const Servo& servo, const ConstMatrix& J_q0, JointMatrix* K_1) {
  CheckServo(servo);
  SILC_CHECK(J_q0.rows() == servo.nv() && J_q0.cols() == servo.nv());
  // (S2)
  StiffnessFromResponse(servo, J_q0, K_1);
  return K_1->allFinite() ? StiffnessStatus::kOk : StiffnessStatus::kNotFinite;
}

void SumPolicy(const PolicyJacobians& jacobians, int nv, PolicySums* sums) {
  sums->S_q.resize(nv, nv);
  sums->S_a.resize(nv, nv);
  sums->S_tau.resize(nv, nv);
  sums->S_g.resize(nv, 3);
  SumFrames(jacobians.J_q, sums->S_q);
  SumFrames(jacobians.J_a, sums->S_a);
  SumFrames(jacobians.J_tau, sums->S_tau);
  SumFrames(jacobians.J_g, sums->S_g);
  sums->sees_action = !jacobians.J_a.empty();
  sums->sees_torque = !jacobians.J_tau.empty();
  sums->sees_gravity = !jacobians.J_g.empty();
}

StiffnessStatus SolveQuasiStatic(const Servo& servo,
                                 const PolicySums& sums,
                                 const StaticChannels& channels,
                                 StaticStiffness* out) {
  CheckServo(servo);
  const int nv = servo.nv();
  const bool torque = channels.torque && sums.sees_torque;
  const bool gravity = channels.E != nullptr && sums.sees_gravity;

  // X starts as the drive: what the action is told when the joints move
  out->X = sums.S_q;
  if (gravity) {
    SILC_CHECK(channels.E->cols() == nv);
    out->X.noalias() += sums.S_g * *channels.E;
  }
  if (torque) {
    for (int k = 0; k < nv; ++k) out->X.col(k) -= servo.kp[k] * sums.S_tau.col(k);
  }
  if (!out->X.allFinite()) return StiffnessStatus::kNotFinite;

  // the loop: how the action answers to itself
  out->open = !sums.sees_action && !torque;
  out->loop_condition = 1;
  if (!out->open) {
    JointMatrix loop = -sums.S_a;
    loop.diagonal().array() += 1;
    if (torque) {
      for (int k = 0; k < nv; ++k) {
        loop.col(k) -= servo.kp[k] * servo.alpha[k] * sums.S_tau.col(k);
      }
    }
    if (!loop.allFinite()) return StiffnessStatus::kNotFinite;
    out->loop.compute(loop);
    const double rcond = ReciprocalCondition(out->loop);
    if (!(rcond > kLoopRcond)) return StiffnessStatus::kSingularActionLoop;
    out->loop_condition = 1 / rcond;
    out->X = out->loop.solve(out->X);
  }
  // (S3)
  StiffnessFromResponse(servo, out->X, &out->K);
  return out->K.allFinite() ? StiffnessStatus::kOk : StiffnessStatus::kNotFinite;
}

}  // namespace silc
