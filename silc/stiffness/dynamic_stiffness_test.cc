// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/dynamic_stiffness.h"

#include <gtest/gtest.h>

#include <complex>
#include <deque>
#include <limits>
#include <numbers>

#include "silc/stiffness/joint_stiffness.h"
#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using namespace test::eager;
using Complex = std::complex<double>;
using Eigen::MatrixXcd;
using Eigen::VectorXcd;
using test::MatrixXd;
using test::VectorXd;

constexpr double kTwoPi = 2 * std::numbers::pi;

// First-order term of (S4) at low frequency, K(jω) = K_s + jω D_static + O(ω²):
//
//     D_static = Kd − Kp α N₀ [S_v − T (S_q/2 + A₁ N₀ S_q + Q₁)] + Kp α d N₀ S_q      (S4)
//     N₀ = (I − S_a)⁻¹,  A₁ = Σ (i+1) J_a[i],  Q₁ = Σ i J_q[i]
//
// with the further channels entering as in DynamicStiffness(). [N·m·s/rad]
MatrixXd StaticDamping(const Servo& servo,
                       const PolicyJacobians& jacobians,
                       const LoopTiming& timing,
                       const BaseChannels& base) {
  const int nv = servo.nv();
  const double T = timing.period;
  const VectorXd gain = servo.kp.cwiseProduct(servo.alpha);

  // sums over the frames, plain and weighted with their age
  MatrixXd S_q = MatrixXd::Zero(nv, nv), Q_1 = S_q, S_v = S_q, S_a = S_q, A_1 = S_q;
  for (std::size_t i = 0; i < jacobians.J_q.size(); ++i) {
    S_q += jacobians.J_q[i];
    Q_1 += double(i) * jacobians.J_q[i];
  }
  for (std::size_t i = 0; i < jacobians.J_v.size(); ++i) S_v += jacobians.J_v[i];
  for (std::size_t i = 0; i < jacobians.J_a.size(); ++i) {
    S_a += jacobians.J_a[i];
    A_1 += double(i + 1) * jacobians.J_a[i];
  }
  if (base.E != nullptr) {
    for (std::size_t i = 0; i < jacobians.J_g.size(); ++i) {
      S_q += jacobians.J_g[i] * *base.E;
      Q_1 += double(i) * jacobians.J_g[i] * *base.E;
    }
  }
  if (base.B_rot != nullptr) {
    for (const MatrixXd& J_w : jacobians.J_w) S_v += J_w * *base.B_rot;
  }
  if (base.torque) {
    const int late = std::max(1, static_cast<int>(std::ceil(timing.latency / timing.period)));
    for (std::size_t i = 0; i < jacobians.J_tau.size(); ++i) {
      S_a += jacobians.J_tau[i] * gain.asDiagonal();
      A_1 += double(static_cast<int>(i) + late) * (jacobians.J_tau[i] * gain.asDiagonal());
      S_q -= jacobians.J_tau[i] * servo.kp.asDiagonal();
      Q_1 -= double(i) * (jacobians.J_tau[i] * servo.kp.asDiagonal());
      S_v -= jacobians.J_tau[i] * servo.kd.asDiagonal();
    }
  }
  const MatrixXd N_0 = test::Inverse(MatrixXd::Identity(nv, nv) - S_a), X = N_0 * S_q;
  MatrixXd D_static = servo.kd.asDiagonal();
  D_static -= gain.asDiagonal() * (N_0 * (S_v - T * (S_q / 2 + A_1 * X + Q_1)));
  D_static += timing.latency * (gain.asDiagonal() * X);
  return D_static;
}

// Storage part (K + Kᴴ)/2 and dissipation part (K − Kᴴ)/(2jω), both Hermitian. The loop is passive
// at ω when the second is positive semidefinite; the work it takes up per cycle of q = Re(x
// e^{jωt}) is π ω xᴴ D_H x.
MatrixXcd StoragePart(const MatrixXcd& K) { return (K + K.adjoint()) / 2.0; }
MatrixXcd DissipationPart(const MatrixXcd& K, double omega) {
  return (K - K.adjoint()) / (Complex(0, 2) * omega);
}

struct Shaken {
  VectorXcd torque;  // phasor of τ                      [N·m]
  double work;       // taken up per cycle, −∮ τ·dq       [J]
};

// A shaker moves the joints as q = Re(x e^{jωt}) and the loop answers: policy sampled every T with
// its history, target held and late by d, PD in continuous time. Nothing of (S4) is used. The
// phasor is the Fourier integral over whole cycles, by the midpoint rule between the instants at
// which the target jumps.
//
// ω must make a whole number of periods T fit a whole number of cycles: `cycles` cycles in `ticks`
// ticks.
Shaken Shake(const Servo& servo,
             const PolicyJacobians& policy,
             const LoopTiming& timing,
             const MatrixXd& E,
             const MatrixXd& B_rot,
             const VectorXcd& x,
             int cycles,
             int ticks) {
  const int n = servo.nv();
  const double T = timing.period, omega = kTwoPi * cycles / (ticks * T);
  const auto q_at = [&](double t) {
    return VectorXd((x * std::exp(Complex(0, omega * t))).real());
  };
  const auto qd_at = [&](double t) {
    return VectorXd((Complex(0, omega) * x * std::exp(Complex(0, omega * t))).real());
  };
  const auto torque = [&](const VectorXd& a, const VectorXd& q, const VectorXd& qd) {
    return VectorXd(servo.kp.cwiseProduct(VectorXd(servo.alpha.cwiseProduct(a)) - q) -
                    VectorXd(servo.kd.cwiseProduct(qd)));
  };
  constexpr int kDepth = 16;
  const VectorXd zero = VectorXd::Zero(n);
  std::deque<VectorXd> q(kDepth, zero), qd(kDepth, zero), a(kDepth, zero), tau(kDepth, zero);
  const auto push = [](const VectorXd& v, std::deque<VectorXd>* h) {
    h->push_front(v);
    h->pop_back();
  };

  const int whole = static_cast<int>(timing.latency / T);  // d = whole·T + part
  const double part = timing.latency - whole * T;
  const int settle = 40 * ticks;
  Shaken result{VectorXcd::Zero(n), 0};
  for (int tick = 0; tick < settle + ticks; ++tick) {
    const double t = tick * T;
    push(q_at(t), &q);
    push(qd_at(t), &qd);
    // just before this tick's action; with d > 0 the target is older still
    const int active = part > 0 ? whole : std::max(0, whole - 1);
    push(torque(a[active], q[0], qd[0]), &tau);
    VectorXd action = VectorXd::Zero(n);
    for (std::size_t i = 0; i < policy.J_q.size(); ++i) action += policy.J_q[i] * q[i];
    for (std::size_t i = 0; i < policy.J_v.size(); ++i) action += policy.J_v[i] * qd[i];
    for (std::size_t i = 0; i < policy.J_a.size(); ++i) action += policy.J_a[i] * a[i];
    for (std::size_t i = 0; i < policy.J_tau.size(); ++i) action += policy.J_tau[i] * tau[i];
    for (std::size_t i = 0; i < policy.J_g.size(); ++i) action += policy.J_g[i] * (E * q[i]);
    for (std::size_t i = 0; i < policy.J_w.size(); ++i) action += policy.J_w[i] * (B_rot * qd[i]);
    push(action, &a);
    if (tick < settle) continue;
    // [t, t + part) still has the target before, [t + part, t + T) the new one
    const auto integrate = [&](double from, double to, const VectorXd& held) {
      constexpr int kCells = 100;
      const double dt = (to - from) / kCells;
      for (int k = 0; k < kCells && dt > 0; ++k) {
        const double s = from + (k + 0.5) * dt;
        const VectorXd tq = torque(held, q_at(s), qd_at(s));
        result.torque += tq * std::exp(Complex(0, -omega * s)) * dt * 2.0 / (ticks * T);
        result.work -= tq.dot(qd_at(s)) * dt / cycles;
      }
    };
    integrate(t, t + part, a[whole + 1]);
    integrate(t + part, t + T, a[whole]);
  }
  return result;
}

// C12, (S4): K(jω) against the shaker at 0.5, 2, 5 and 10 Hz, with every channel and with latency,
// and the work per cycle against π ω xᴴ D_H x. The midpoint rule with 100 cells has an error of
// (ωT/100)²/24 at most.
TEST(DynamicStiffness, IsWhatAShakerMeasures) {
  Rng rng(1);
  const int n = 4;
  Jacobian3 E = Jacobian3::Zero(3, n), B_rot = Jacobian3::Zero(3, n);
  E += test::RandomMatrix(3, n, &rng);
  B_rot += test::RandomMatrix(3, n, &rng);
  const int sweep[][2] = {{1, 100}, {1, 25}, {1, 10}, {1, 5}};  // cycles in ticks of 20 ms
  const double latencies[] = {0, 0.007, 0.033};
  for (int trial = 0; trial < 12; ++trial) {
    const bool torque = trial % 2 == 1, base = trial % 3 != 0;
    LoopTiming timing;
    timing.latency = latencies[trial / 4];
    const Servo servo = test::RandomServo(n, &rng);
    const PolicyJacobians policy = test::RandomPolicy(n, 1 + trial % 5, &rng, torque, base);
    BaseChannels channels;
    channels.E = &E;
    channels.B_rot = &B_rot;
    const auto& [cycles, ticks] = sweep[trial % 4];
    const double omega = kTwoPi * cycles / (ticks * timing.period);
    MatrixXcd K;
    ASSERT_EQ(DynamicStiffness(servo, policy, timing, channels, omega, &K), StiffnessStatus::kOk);
    const VectorXcd x =
        test::RandomMatrix(n, 1, &rng) + Complex(0, 1) * test::RandomMatrix(n, 1, &rng);
    const Shaken shaken = Shake(servo, policy, timing, E, B_rot, x, cycles, ticks);
    EXPECT_LT((shaken.torque + K * x).norm(), 1e-5 * (K * x).norm()) << "trial " << trial;
    const double work = std::numbers::pi * omega * x.dot(DissipationPart(K, omega) * x).real();
    EXPECT_NEAR(shaken.work, work, 1e-5 * std::abs(work) + 1e-6 * (K * x).norm() * x.norm());
  }
}

// C13: at low frequency K(jω) = K_s + jω D_static.
TEST(DynamicStiffness, BeginsWithTheStaticStiffnessAndDamping) {
  Rng rng(2);
  const int n = 5;
  Jacobian3 E = Jacobian3::Zero(3, n), B_rot = Jacobian3::Zero(3, n);
  E += test::RandomMatrix(3, n, &rng);
  B_rot += test::RandomMatrix(3, n, &rng);
  for (int trial = 0; trial < 12; ++trial) {
    const bool torque = trial % 2 == 1, base = trial % 3 != 0;
    LoopTiming timing;
    timing.latency = trial % 4 == 0 ? 0 : 0.009 * (trial % 4);
    const Servo servo = test::RandomServo(n, &rng);
    const PolicyJacobians policy = test::RandomPolicy(n, 1 + trial % 5, &rng, torque, base);
    BaseChannels channels;
    StaticChannels static_channels;
    if (base) {
      channels.E = static_channels.E = &E;
      channels.B_rot = &B_rot;
    }
    StaticStiffness K_s;
    ASSERT_EQ(test::QuasiStaticStiffness(servo, policy, static_channels, &K_s),
              StiffnessStatus::kOk);
    MatrixXd D;
    D = StaticDamping(servo, policy, timing, channels);
    MatrixXcd K;
    ASSERT_EQ(DynamicStiffness(servo, policy, timing, channels, 0, &K), StiffnessStatus::kOk);
    EXPECT_TRUE(K.real().isApprox(MatrixXd(K_s.K), 1e-12));
    // next order is ω²: (ω · 0.1 s)² at ω = 0.01 is 1e-6 of what is compared
    const double omega = 0.01;
    ASSERT_EQ(DynamicStiffness(servo, policy, timing, channels, omega, &K), StiffnessStatus::kOk);
    EXPECT_LT((ApparentDamping(K, omega) - D).norm(), 1e-4 * D.norm()) << "trial " << trial;
    EXPECT_LT((StoragePart(K).real() - test::Sym(K_s.K)).norm(), 1e-4 * K_s.K.norm());
  }
}

// Two frames that take a difference, J = ±3.6: any latest-frame budget is passed, the static
// stiffness is the servo's, and 1.8 N·m·s/rad of damping is gone. Kp = 100, α = 0.25, T = 0.02 s,
// Kd = 0.
TEST(DynamicStiffness, ADifferenceOfFramesPassesTheBudgetAndCostsDamping) {
  Servo servo;
  servo.kp.setConstant(1, 100);
  servo.kd.setConstant(1, 0);
  servo.alpha.setConstant(1, 0.25);
  PolicyJacobians policy;
  policy.J_q = {MatrixXd::Constant(1, 1, 3.6), MatrixXd::Constant(1, 1, -3.6)};
  const double table[][3] = {// [Hz], Re K, Im K/ω
                             {0.5, 99.6, -1.80},
                             {1, 98.6, -1.78},
                             {2, 94.4, -1.73},
                             {5, 67.8, -1.41},
                             {10, 5.9, -0.49}};
  const MatrixXd none = MatrixXd::Zero(3, 1);
  for (const auto& [hertz, stiffness, damping] : table) {
    // the shaker, one cycle in 50 ticks of 20 ms per hertz, knows nothing of (S4)
    const Complex measured = -Shake(servo,
                                    policy,
                                    {},
                                    none,
                                    none,
                                    VectorXcd::Ones(1),
                                    1,
                                    static_cast<int>(std::lround(50 / hertz)))
                                  .torque[0];
    EXPECT_NEAR(measured.real(), stiffness, 0.05) << hertz;
    EXPECT_NEAR(measured.imag() / (kTwoPi * hertz), damping, 0.005) << hertz;
    MatrixXcd K;
    ASSERT_EQ(DynamicStiffness(servo, policy, {}, {}, kTwoPi * hertz, &K), StiffnessStatus::kOk);
    EXPECT_NEAR(K(0, 0).real(), stiffness, 0.05) << hertz;
    EXPECT_NEAR(ApparentDamping(K, kTwoPi * hertz)(0, 0), damping, 0.005) << hertz;
  }
  MatrixXd D;
  D = StaticDamping(servo, policy, {}, {});
  EXPECT_NEAR(D(0, 0), -1.8, 1e-12);
  // true softening that lags, on the other hand, adds damping
  policy.J_q = {MatrixXd::Zero(1, 1), MatrixXd::Constant(1, 1, 2)};
  D = StaticDamping(servo, policy, {}, {});
  EXPECT_GT(D(0, 0), 0);
}

// Circulation pumps: constant K + jωD with a skew part A takes up π xᴴ(ω sym D − jA)x per cycle,
// and on a circle that is negative once ‖A‖ passes ω λ_min(sym D). The work is added up along the
// path.
TEST(DynamicStiffness, SkewStiffnessPumpsEnergyOnACircle) {
  Rng rng(3);
  const double omega = 12;
  for (int trial = 0; trial < 20; ++trial) {
    const int n = 3;
    const MatrixXd K = test::RandomMatrix(n, n, &rng, 50), D = test::RandomSpd(n, &rng, 0.5, 3);
    const VectorXcd x =
        test::RandomMatrix(n, 1, &rng) + Complex(0, 1) * test::RandomMatrix(n, 1, &rng);
    double work = 0;  // −∮ τ·dq, τ = −K q − D q̇
    constexpr int kCells = 2000;
    for (int k = 0; k < kCells; ++k) {
      const Complex phase = std::exp(Complex(0, kTwoPi * (k + 0.5) / kCells));
      const VectorXd q = (x * phase).real(), qd = (Complex(0, omega) * x * phase).real();
      work += (K * q + D * qd).dot(qd) * kTwoPi / (omega * kCells);
    }
    const MatrixXcd dynamic = K + Complex(0, omega) * D;
    const double predicted =
        std::numbers::pi * omega * x.dot(DissipationPart(dynamic, omega) * x).real();
    EXPECT_NEAR(work, predicted, 1e-9 * (1 + std::abs(predicted)));
    const MatrixXcd written = omega * test::Sym(D) - Complex(0, 1) * test::Skew(K);
    EXPECT_NEAR(predicted, std::numbers::pi * x.dot(written * x).real(), 1e-9 * K.norm());
  }
  // two joints on a circle, one turning way and the other: the skew entry a gives energy on one as
  // soon as it passes ω d, and takes the same on the other
  const double d = 2.5;
  for (const double a : {0.9 * omega * d, 1.1 * omega * d}) {
    MatrixXcd dynamic(2, 2);
    dynamic << Complex(0, omega * d), -a, a, Complex(0, omega * d);
    const MatrixXcd D_H = DissipationPart(dynamic, omega);
    VectorXcd circle(2);
    circle << 1, Complex(0, 1);
    const double one = circle.dot(D_H * circle).real();
    const double other = circle.conjugate().dot(D_H * circle.conjugate()).real();
    EXPECT_EQ(std::min(one, other) < 0, a > omega * d);
    EXPECT_NEAR(one + other, 4 * d, 1e-12);
  }
}

// C14: two joints, inertia 0.3, k = 100, d = 2.5, skew entry a: unstable exactly when a passes ω d,
// ω = √(k/I).
TEST(DynamicStiffness, FlutterBeginsWhereTheSkewPartPassesTheDamping) {
  const double inertia = 0.3, k = 100, d = 2.5;
  const auto growth = [&](double a) {  // largest real part of the eigenvalues of the linear system
    Eigen::Matrix2d K;
    K << k, -a, a, k;
    Eigen::Matrix4d system = Eigen::Matrix4d::Zero();
    system.topRightCorner<2, 2>().setIdentity();
    system.bottomLeftCorner<2, 2>() = -K / inertia;
    system.bottomRightCorner<2, 2>() = -d / inertia * Eigen::Matrix2d::Identity();
    return Eigen::EigenSolver<Eigen::Matrix4d>(system).eigenvalues().real().maxCoeff();
  };
  const double threshold = std::sqrt(k / inertia) * d;
  EXPECT_NEAR(threshold, 45.64, 0.01);
  EXPECT_LT(growth(0.9999 * threshold), 0);
  EXPECT_GT(growth(1.0001 * threshold), 0);
  EXPECT_NEAR(growth(45.6), -0.0038, 5e-5);
  EXPECT_NEAR(growth(46), 0.031, 5e-4);
  // and the dissipation part at that frequency loses its sign there
  const double omega = std::sqrt(k / inertia);
  for (double factor : {0.999, 1.001}) {
    MatrixXcd K(2, 2);
    const double a = factor * threshold;
    K << Complex(k, omega * d), -a, a, Complex(k, omega * d);
    EXPECT_EQ(test::Eigenvalues(MatrixXcd(DissipationPart(K, omega))).minCoeff() > 0, factor < 1);
  }
}

TEST(DynamicStiffness, IllPosedInputIsTold) {
  Servo servo;
  servo.kp.setConstant(1, 100);
  servo.kd.setConstant(1, 1);
  servo.alpha.setConstant(1, 0.25);
  PolicyJacobians policy;
  policy.J_q = {MatrixXd::Constant(1, 1, 1)};
  policy.J_a = {MatrixXd::Constant(1, 1, 1)};
  MatrixXcd K;
  EXPECT_EQ(DynamicStiffness(servo, policy, {}, {}, 0, &K), StiffnessStatus::kSingularActionLoop);
  // an integrator has a dynamic stiffness away from zero
  EXPECT_EQ(DynamicStiffness(servo, policy, {}, {}, 10, &K), StiffnessStatus::kOk);
  policy.J_q[0](0, 0) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(DynamicStiffness(servo, policy, {}, {}, 10, &K), StiffnessStatus::kNotFinite);
}

}  // namespace
}  // namespace silc
