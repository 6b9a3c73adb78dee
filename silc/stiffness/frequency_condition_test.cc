// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/frequency_condition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "silc/stiffness/condition_reference.h"
#include "silc/stiffness/dynamic_stiffness.h"
#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using Complex = std::complex<double>;
using Eigen::MatrixXcd;
using test::MatrixXd;
using test::RandomMatrix;
using test::VectorXd;
using namespace test::eager;

constexpr int kNv = 7;
constexpr Complex kUnitImaginary(0, 1);

MatrixXcd RandomComplex(int rows, int columns, Rng* rng, double scale = 1) {
  return RandomMatrix(rows, columns, rng, scale).cast<Complex>() +
         kUnitImaginary * RandomMatrix(rows, columns, rng, scale).cast<Complex>();
}
MatrixXcd Hermitian(const MatrixXcd& A) { return 0.5 * (A + A.adjoint()); }
double LeastEigenvalue(const MatrixXcd& H) { return test::Eigenvalues(Hermitian(H))[0]; }
MatrixXcd ComplexInverse(const MatrixXcd& A) {
  const Eigen::Index n = A.rows();
  MatrixXd real(2 * n, 2 * n);
  real << A.real(), -A.imag(), A.imag(), A.real();
  const MatrixXd inverse = test::Inverse(real);
  return inverse.topLeftCorner(n, n).cast<Complex>() +
         kUnitImaginary * inverse.bottomLeftCorner(n, n).cast<Complex>();
}
double ComplexNorm(const MatrixXcd& A) {
  const Eigen::Index n = A.rows(), m = A.cols();
  MatrixXd real(2 * n, 2 * m);
  real << A.real(), -A.imag(), A.imag(), A.real();
  return test::SpectralNorm(real);
}

// A budget on all motions of an open chain, as coordinates, with a floor of rank three or without.
struct RandomBudget {
  Servo servo;
  MatrixXd M, m, L;  // L Lᵀ = M − m
  BudgetCoordinates coordinates;
  explicit RandomBudget(Rng* rng, bool has_floor = false) {
    servo = test::RandomServo(kNv, rng);
    M = test::RandomSpd(kNv, rng, 1, 50);
    m = MatrixXd::Zero(kNv, kNv);
    if (has_floor) {
      const MatrixXd in_M =
          test::LowerCholesky(M) * test::OrthonormalColumns(RandomMatrix(kNv, 3, rng));
      m = rng->Uniform(0.1, 0.9) * in_M * in_M.transpose();
    }
    L = test::LowerCholesky(M - m);
    coordinates.F = test::Inverse(L);
    coordinates.floor = coordinates.F * m * coordinates.F.transpose();
  }
  // inside the disc for size ≤ 1, on its edge for 1
  MatrixXcd InDisc(double omega, double size, Rng* rng) const {
    MatrixXcd turn = RandomComplex(kNv, kNv, rng);
    turn *= size / ComplexNorm(turn);
    turn += MatrixXcd::Identity(kNv, kNv);
    const MatrixXcd Lc = L.cast<Complex>();
    MatrixXcd K = 0.5 * (Lc * turn * Lc.transpose()) + m.cast<Complex>();
    K.diagonal() += kUnitImaginary * omega * servo.kd.cast<Complex>();
    return K;
  }
};

// (S12) is (a): Kₑᴴ M⁻¹ Kₑ ≤ Herm Kₑ, on both sides of the edge.
TEST(FrequencyCondition, IsTheQuadraticInequality) {
  Rng rng(31);
  for (int trial = 0; trial < 40; ++trial) {
    const RandomBudget budget(&rng);
    const double omega = rng.Uniform(0, 40), size = trial % 2 == 0 ? 0.98 : 1.02;
    const MatrixXcd K = budget.InDisc(omega, size, &rng);
    EXPECT_NEAR(ReadAtFrequency(K, budget.servo, omega, budget.coordinates).sigma, size, 1e-9);
    MatrixXcd K_e = K;
    K_e.diagonal() -= kUnitImaginary * omega * budget.servo.kd.cast<Complex>();
    const MatrixXcd M_inverse = test::Inverse(budget.M).cast<Complex>();
    const double least = LeastEigenvalue(Hermitian(K_e) - K_e.adjoint() * M_inverse * K_e);
    EXPECT_EQ(least >= 0, size < 1) << trial;
  }
}

// What the table in docs/math/stiffness.md says of every K in the disc.
TEST(FrequencyCondition, BoundsTheElasticPartThePointsAndTheDamping) {
  Rng rng(32);
  for (int trial = 0; trial < 40; ++trial) {
    const RandomBudget budget(&rng, trial % 2 == 1);
    const double omega = rng.Uniform(1, 40), slack = 1e-9;
    const MatrixXcd K = budget.InDisc(omega, 1, &rng), M = budget.M.cast<Complex>(),
                    m = budget.m.cast<Complex>();
    EXPECT_NEAR(ReadAtFrequency(K, budget.servo, omega, budget.coordinates).sigma, 1, 1e-9);
    MatrixXcd K_e = K;
    K_e.diagonal() -= kUnitImaginary * omega * budget.servo.kd.cast<Complex>();
    EXPECT_GE(LeastEigenvalue(Hermitian(K) - m), -slack);
    EXPECT_GE(LeastEigenvalue(M - Hermitian(K)), -slack);
    const MatrixXcd of_torque = K_e.adjoint() * test::Inverse(budget.M).cast<Complex>() * K_e;
    EXPECT_GE(LeastEigenvalue(Hermitian(K_e) - of_torque), -slack);
    EXPECT_GE(LeastEigenvalue(M - of_torque), -slack);
    EXPECT_GE(LeastEigenvalue(ComplexInverse(K_e) - test::Inverse(budget.M).cast<Complex>()),
              -slack);
    const MatrixXcd J = RandomMatrix(3, kNv, &rng).cast<Complex>();
    const MatrixXcd K_x = ComplexInverse(J * ComplexInverse(K_e) * J.transpose());
    const MatrixXcd allowed =
        ComplexInverse(J * test::Inverse(budget.M).cast<Complex>() * J.transpose());
    EXPECT_GE(LeastEigenvalue(allowed - Hermitian(K_x)), -slack * allowed.norm());
    const MatrixXcd D_H = (K - K.adjoint()) / (2.0 * kUnitImaginary * omega);
    const MatrixXcd K_d = MatrixXd(budget.servo.kd.asDiagonal()).cast<Complex>();
    EXPECT_GE(LeastEigenvalue(D_H - K_d + (M - m) / (2 * omega)), -slack);
    EXPECT_GE(LeastEigenvalue(K_d + (M - m) / (2 * omega) - D_H), -slack);
    // and of the driving that is left
    const MatrixXd damped =
        budget.coordinates.F * budget.servo.kd.asDiagonal() * budget.coordinates.F.transpose();
    EXPECT_LE(ReadAtFrequency(K, budget.servo, omega, budget.coordinates).driving,
              1 - 2 * omega * test::MinEigenvalue(damped) + slack);
  }
}

// (S13): the sign is that of the work which a motion does on the loop, integrated over a cycle, and
// no motion gets out more than ν says.
TEST(FrequencyCondition, DrivingIsTheEnergyOfTheWorstCycle) {
  Rng rng(33);
  for (int trial = 0; trial < 20; ++trial) {
    const RandomBudget budget(&rng);
    const double omega = rng.Uniform(1, 30);
    MatrixXcd K = budget.InDisc(omega, 1, &rng);
    // a dashpot that is strong enough, or not even the servo's own
    const VectorXd dashpot =
        trial % 2 == 0 ? VectorXd::Constant(kNv, 100) : VectorXd(-omega * budget.servo.kd);
    K.diagonal() += kUnitImaginary * dashpot.cast<Complex>();
    const double driving = ReadAtFrequency(K, budget.servo, omega, budget.coordinates).driving;
    double worst = std::numeric_limits<double>::infinity();  // of W/(½ π xᴴ M x)
    for (int sample = 0; sample < 200; ++sample) {
      const Eigen::VectorXcd x = RandomComplex(kNv, 1, &rng), torque = -(K * x);
      constexpr int kSteps = 64;  // exact for products of two harmonics
      double work = 0;            // [J] done on the loop: −∫ τ · q̇ dt
      for (int k = 0; k < kSteps; ++k) {
        const Complex turn = std::exp(kUnitImaginary * (2 * std::numbers::pi * k / kSteps));
        const VectorXd tau = (turn * torque).real();
        const VectorXd qd = (turn * kUnitImaginary * omega * x).real();
        work -= tau.dot(qd) * 2 * std::numbers::pi / omega / kSteps;
      }
      const double size = (x.adjoint() * budget.M.cast<Complex>() * x)(0, 0).real();
      worst = std::min(worst, work / (0.5 * std::numbers::pi * size));
    }
    EXPECT_GE(worst, -driving - 1e-9) << trial;
    EXPECT_TRUE(driving > 0 || worst >= -1e-9) << trial;
    EXPECT_EQ(driving <= 0, trial % 2 == 0);
  }
}

// A loop that is passive at ω takes up energy at every point, with any masses.
TEST(FrequencyCondition, PassiveJointsArePassivePointsWhateverTheInertia) {
  Rng rng(34);
  for (int trial = 0; trial < 20; ++trial) {
    const RandomBudget budget(&rng);
    const double omega = rng.Uniform(1, 30);
    MatrixXcd K = budget.InDisc(omega, 1, &rng);
    K.diagonal() += kUnitImaginary * 100.0 * VectorXd::Ones(kNv).cast<Complex>();
    const MatrixXcd Z = K - omega * omega * test::RandomSpd(kNv, &rng, 0.01, 3).cast<Complex>();
    const MatrixXcd J = RandomMatrix(3, kNv, &rng).cast<Complex>();
    const MatrixXcd C = J * ComplexInverse(Z) * J.transpose();
    EXPECT_LE(test::Eigenvalues(MatrixXcd((C - C.adjoint()) / (2.0 * kUnitImaginary)))[2], 1e-12);
  }
}

// The coordinates are the budget's: on a closed chain and an open one, with and without a floor, σ
// at rest is (S7c) of the reduced matrices.
TEST(FrequencyCondition, IsTheDiscAtRest) {
  Rng rng(35);
  for (int trial = 0; trial < 12; ++trial) {
    BudgetSpec spec;
    spec.com = Eigen::Vector3d(200, 300, 20000);
    spec.hand[1] = Eigen::Vector3d(200, 250, 300);
    spec.weight = trial % 2 == 0 ? NullWeight::kIdentity : NullWeight::kServo;
    spec.null_stiffness = trial % 2 == 0 ? 50 : 0.5;
    if (trial >= 8) spec.hand_floor = Eigen::Vector3d(0.2, 0, 0.5);
    const int n = test::StickHumanoid::kJoints;
    const Servo servo = test::RandomServo(n, &rng);
    JointVector weight;
    NullWeightDiagonal(spec, servo, &weight);
    ContactKinematics contact;
    ASSERT_EQ(
        ComputeContactKinematics(test::StickHumanoid::Jacobians(test::StickHumanoid::Stance(&rng)),
                                 static_cast<ContactMode>(trial % 4),
                                 &weight,
                                 &contact),
        StiffnessStatus::kOk);
    BudgetCoordinates coordinates;
    ASSERT_EQ(MakeBudgetCoordinates(spec, servo, contact, &coordinates), StiffnessStatus::kOk);
    ReducedBudget reduced;
    ASSERT_EQ(ComputeReducedBudget(spec, servo, contact, &reduced), StiffnessStatus::kOk);
    const MatrixXd K = RandomMatrix(n, n, &rng, 30);
    const MatrixXd N = contact.closed ? MatrixXd(contact.N) : MatrixXd::Identity(n, n);
    BudgetRows rows;
    StackBudgetRows(spec, contact, &rows);
    const MatrixXd floor_J = MatrixXd(rows.floor.asDiagonal()) * MatrixXd(rows.J);
    const MatrixXd m = N.transpose() * MatrixXd(rows.J).transpose() * floor_J * N;
    const MatrixXd L_inverse = test::Inverse(test::LowerCholesky(reduced.M - m));
    const MatrixXd held = L_inverse * (N.transpose() * K * N - m) * L_inverse.transpose();
    const MatrixXd unit = MatrixXd::Identity(held.rows(), held.cols());
    const double expected = test::SpectralNorm(2 * held - unit);
    EXPECT_NEAR(
        ReadAtFrequency(K.cast<Complex>(), servo, 0, coordinates).sigma, expected, 1e-7 * expected)
        << trial;
  }
}

// Neither σ nor ν knows which basis the closed chain's motions came in.
TEST(FrequencyCondition, IsTheSameWhateverTheMotionsAreOrthonormalIn) {
  Rng rng(36);
  for (int trial = 0; trial < 12; ++trial) {
    BudgetSpec spec;
    spec.com = Eigen::Vector3d(200, 300, 20000);
    spec.hand[0] = Eigen::Vector3d(200, 250, 300);
    spec.weight = trial % 2 == 0 ? NullWeight::kIdentity : NullWeight::kServo;
    spec.null_stiffness = trial % 2 == 0 ? 50 : 0.5;
    if (trial >= 6) spec.hand_floor = Eigen::Vector3d(0.2, 0, 0.5);
    const int n = test::StickHumanoid::kJoints;
    const Servo servo = test::RandomServo(n, &rng);
    const BodyJacobians body = test::StickHumanoid::Jacobians(test::StickHumanoid::Stance(&rng));
    const MatrixXcd K = RandomMatrix(n, n, &rng, 30).cast<Complex>() +
                        kUnitImaginary * RandomMatrix(n, n, &rng, 10).cast<Complex>();
    JointVector any(n);
    for (int i = 0; i < n; ++i) any[i] = rng.Uniform(0.1, 300);
    std::vector<FrequencyReading> readings;
    for (const JointVector* weight : {static_cast<const JointVector*>(nullptr),
                                      static_cast<const JointVector*>(&servo.kp),
                                      static_cast<const JointVector*>(&any)}) {
      ContactKinematics contact;
      ASSERT_EQ(ComputeContactKinematics(body, ContactMode::kDoubleSupport, weight, &contact),
                StiffnessStatus::kOk);
      BudgetCoordinates coordinates;
      ASSERT_EQ(MakeBudgetCoordinates(spec, servo, contact, &coordinates), StiffnessStatus::kOk);
      readings.push_back(ReadAtFrequency(K, servo, 3, coordinates));
    }
    for (const FrequencyReading& reading : readings) {
      EXPECT_NEAR(reading.sigma, readings[0].sigma, 1e-7 * readings[0].sigma) << trial;
      EXPECT_NEAR(reading.driving, readings[0].driving, 1e-7 * std::abs(readings[0].driving));
    }
  }
}

}  // namespace
}  // namespace silc
