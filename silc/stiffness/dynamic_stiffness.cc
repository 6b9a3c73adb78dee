// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/dynamic_stiffness.h"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <utility>

#include "silc/base/check.h"
#include "silc/stiffness/joint_stiffness.h"
#include "silc/stiffness/reciprocal_condition.h"

namespace silc {
namespace {

using Complex = std::complex<double>;
constexpr Complex kJ(0, 1);

// Steps between the torque sample and the action that made it.
int TorqueDelay(const LoopTiming& timing) {
  return std::max(1, static_cast<int>(std::ceil(timing.latency / timing.period)));
}

bool Finite(const Eigen::MatrixXcd& m) { return m.real().allFinite() && m.imag().allFinite(); }

void CheckArguments(const Servo& servo, const LoopTiming& timing) {
  SILC_CHECK(servo.nv() > 0 && servo.kd.size() == servo.nv() && servo.alpha.size() == servo.nv());
  SILC_CHECK(timing.period > 0 && timing.latency >= 0);
}

// (1 − e^{−jx})/(jx), by its series where the difference would cancel
Complex HoldFactor(double x) {
  if (std::abs(x) < 1e-4) return Complex(1 - x * x / 6, -x / 2 + x * x * x / 24);
  return (1.0 - std::exp(-kJ * x)) / (kJ * x);
}

}  // namespace

StiffnessStatus DynamicStiffness(const Servo& servo,
                                 const PolicyJacobians& jacobians,
                                 const LoopTiming& timing,
                                 const BaseChannels& base,
                                 double omega,
                                 Eigen::MatrixXcd* K) {
  CheckArguments(servo, timing);
  const int nv = servo.nv();
  const double T = timing.period;
  const auto delay = [&](int steps) { return std::exp(-kJ * (omega * T * steps)); };

  // G: from the joints to the action; A: from the action to itself
  Eigen::MatrixXcd G = Eigen::MatrixXcd::Zero(nv, nv);
  Eigen::MatrixXcd A = Eigen::MatrixXcd::Zero(nv, nv);
  for (std::size_t i = 0; i < jacobians.J_q.size(); ++i) G += delay(i) * jacobians.J_q[i];
  for (std::size_t i = 0; i < jacobians.J_v.size(); ++i)
    G += kJ * omega * delay(i) * jacobians.J_v[i];
  for (std::size_t i = 0; i < jacobians.J_a.size(); ++i) A += delay(i + 1) * jacobians.J_a[i];
  if (base.E != nullptr) {
    for (std::size_t i = 0; i < jacobians.J_g.size(); ++i) {
      G += delay(i) * (jacobians.J_g[i] * *base.E);
    }
  }
  if (base.B_rot != nullptr) {
    for (std::size_t i = 0; i < jacobians.J_w.size(); ++i) {
      G += kJ * omega * delay(i) * (jacobians.J_w[i] * *base.B_rot);
    }
  }
  if (base.torque) {
    const Eigen::VectorXd gain = servo.kp.cwiseProduct(servo.alpha);
    const Eigen::VectorXcd servo_gain = servo.kp + kJ * omega * servo.kd;
    const int late = TorqueDelay(timing);
    for (std::size_t i = 0; i < jacobians.J_tau.size(); ++i) {
      A += delay(static_cast<int>(i) + late) * (jacobians.J_tau[i] * gain.asDiagonal());
      G -= delay(i) * (jacobians.J_tau[i].cast<Complex>() * servo_gain.asDiagonal());
    }
  }
  if (!Finite(G) || !Finite(A) || !std::isfinite(omega)) return StiffnessStatus::kNotFinite;

  const Eigen::PartialPivLU<Eigen::MatrixXcd> loop(Eigen::MatrixXcd::Identity(nv, nv) - A);
  if (!(ReciprocalCondition(loop) > kLoopRcond)) return StiffnessStatus::kSingularActionLoop;

  // (S4)
  const Complex path = std::exp(-kJ * (omega * timing.latency)) * HoldFactor(omega * T);
  const Eigen::VectorXcd gain = path * servo.kp.cwiseProduct(servo.alpha);
  *K = -(gain.asDiagonal() * loop.solve(G));
  K->diagonal() += servo.kp + kJ * omega * servo.kd;
  return Finite(*K) ? StiffnessStatus::kOk : StiffnessStatus::kNotFinite;
}

std::vector<Eigen::MatrixXcd> SweepDynamicStiffness(const Servo& servo,
                                                    const PolicyJacobians& jacobians,
                                                    const LoopTiming& timing,
                                                    const ContactKinematics& contact,
                                                    std::span<const double> hz) {
  const Jacobian3 B_rot = contact.B.bottomRows<3>();
  BaseChannels base;
  if (contact.mode != ContactMode::kFlight) {
    base.E = &contact.E;
    base.B_rot = &B_rot;
  }
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Eigen::MatrixXcd> sweep;
  for (const double f : hz) {
    Eigen::MatrixXcd K;
    const double omega = 2 * std::numbers::pi * f;
    if (DynamicStiffness(servo, jacobians, timing, base, omega, &K) != StiffnessStatus::kOk) {
      K = Eigen::MatrixXcd::Constant(servo.nv(), servo.nv(), Complex(kNan, kNan));
    }
    sweep.push_back(std::move(K));
  }
  return sweep;
}

Eigen::MatrixXd ApparentDamping(const Eigen::MatrixXcd& K, double omega) {
  return K.imag() / omega;
}

}  // namespace silc
