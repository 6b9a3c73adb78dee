// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/penalty_reference.h"

#include <gtest/gtest.h>

#include <limits>

#include "silc/stiffness/task_stiffness_reference.h"
#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using namespace test::eager;
using test::MatrixXd;
using test::RandomMatrix;
using test::RandomSpd;
using test::VectorXd;

constexpr Condition kAllConditions[] = {
    Condition::kOneSided, Condition::kTwoSided, Condition::kDisc};

// central differences of smooth functions of size one with h = 1e-6: rounding 1e-10, truncation
// 1e-12
constexpr double kGradientTolerance = 2e-7;

TEST(Penalty, HingeByHand) {
  EXPECT_EQ(Hinge(0.3), 0);
  EXPECT_EQ(Hinge(1), 0);
  EXPECT_EQ(Hinge(3), 4);
  EXPECT_EQ(HingeSlope(0.3), 0);
  EXPECT_EQ(HingeSlope(3), 4);
}

// What a penalty is a function of, for differences: the sums of the policy's Jacobians.
struct Sums {
  MatrixXd S_q, S_a, S_tau, S_g;
};

MatrixXd StaticK(const Servo& servo, const Sums& s, const MatrixXd& E) {
  // (S3) once more, with inverses
  const MatrixXd Kp = servo.kp.asDiagonal(), alpha = servo.alpha.asDiagonal();
  const MatrixXd I = MatrixXd::Identity(servo.nv(), servo.nv());
  return Kp * (I - alpha * test::Inverse(I - s.S_a - s.S_tau * Kp * alpha) *
                       (s.S_q + s.S_g * E - s.S_tau * Kp));
}

struct Fixture {
  explicit Fixture(int seed) : rng(seed) {
    servo = test::RandomServo(n, &rng);
    E = RandomMatrix(3, n, &rng);
    sums.S_q = RandomMatrix(n, n, &rng, 0.8);
    sums.S_a = RandomMatrix(n, n, &rng, 0.15);
    sums.S_tau = RandomMatrix(n, n, &rng, 0.001);
    sums.S_g = RandomMatrix(n, 3, &rng, 0.3);
    M = RandomSpd(n, &rng, 5, 60);
    PolicySums library;
    library.S_q = sums.S_q;
    library.S_a = sums.S_a;
    library.S_tau = sums.S_tau;
    library.S_g = sums.S_g;
    library.sees_action = library.sees_torque = library.sees_gravity = true;
    channels.E = &E;
    EXPECT_EQ(SolveQuasiStatic(servo, library, channels, &stiffness), StiffnessStatus::kOk);
  }

  // differences of f(K_s) with respect to each of the sums, against a gradient
  void ExpectGradient(const std::function<double(const MatrixXd&)>& f,
                      const PolicyGradient& gradient) {
    const auto check = [&](MatrixXd Sums::*member, const MatrixXd& got, double h) {
      const MatrixXd reference = test::Difference(
          [&](const MatrixXd& x) {
            Sums moved = sums;
            moved.*member = x;
            return f(StaticK(servo, moved, E));
          },
          sums.*member,
          h);
      EXPECT_LT((got - reference).norm(), 10 * kGradientTolerance * reference.norm());
      EXPECT_GT(reference.norm(), 0);
    };
    check(&Sums::S_q, gradient.dS_q, 1e-6);
    check(&Sums::S_a, gradient.dS_a, 1e-6);
    check(&Sums::S_tau, gradient.dS_tau, 1e-8);  // [1/(N·m)]: a hundredfold smaller
    check(&Sums::S_g, gradient.dS_g, 1e-6);
  }

  static constexpr int n = 5;
  Rng rng;
  Servo servo;
  Jacobian3 E;
  Sums sums;
  MatrixXd M;
  StaticChannels channels;
  StaticStiffness stiffness;
};

double WrittenSigma(Condition condition, const MatrixXd& K, const MatrixXd& M, int index) {
  const MatrixXd Li = test::Inverse(test::LowerCholesky(M));
  MatrixXd A = Li * K;
  if (condition != Condition::kOneSided) A = A * Li.transpose();
  if (condition == Condition::kDisc) A = 2 * A - MatrixXd::Identity(K.rows(), K.cols());
  return test::SingularValues(A)[index];
}

// (S8), (S9): the hinge on the largest σ of K_s, with respect to S_q, S_a, S_tau and S_g.
TEST(Penalty, GradientThroughTheStaticStiffness) {
  for (int trial = 0; trial < 5; ++trial) {
    Fixture f(100 + trial);
    for (Condition condition : kAllConditions) {
      double value = 0;
      JointMatrix dK;
      ASSERT_EQ(LargestSigmaPenalty(condition, f.stiffness.K, f.M, nullptr, &value, &dK),
                StiffnessStatus::kOk);
      ASSERT_GT(value, 0);
      const auto loss = [&](const MatrixXd& K) {
        return Hinge(WrittenSigma(condition, K, f.M, 0));
      };
      EXPECT_NEAR(value / loss(f.stiffness.K), 1, 1e-9);
      PolicyGradient gradient;
      StaticGradient(f.servo, f.stiffness, f.channels, dK, &gradient);
      f.ExpectGradient(loss, gradient);
    }
  }
}

// All σ above one: a sum, with the gradient of each.
TEST(Penalty, GradientOfAllViolatingSigmas) {
  for (int trial = 0; trial < 5; ++trial) {
    Fixture f(200 + trial);
    for (Condition condition : kAllConditions) {
      double value = 0;
      JointMatrix dK;
      ASSERT_EQ(AllSigmasPenalty(condition, f.stiffness.K, f.M, nullptr, &value, &dK),
                StiffnessStatus::kOk);
      const auto loss = [&](const MatrixXd& K) {
        double sum = 0;
        for (int i = 0; i < f.n; ++i) sum += Hinge(WrittenSigma(condition, K, f.M, i));
        return sum;
      };
      EXPECT_NEAR(value / loss(f.stiffness.K), 1, 1e-9);
      ASSERT_GT(WrittenSigma(condition, f.stiffness.K, f.M, 1), 1) << "one violation shows nothing";
      PolicyGradient gradient;
      StaticGradient(f.servo, f.stiffness, f.channels, dK, &gradient);
      f.ExpectGradient(loss, gradient);
    }
  }
}

// (S9) as one tangent: pᵀ(dS_q r_q + …) is the whole gradient contracted with a direction.
TEST(Penalty, DirectionIsTheRankOneGradient) {
  Fixture f(300);
  SigmaTriple top;
  ASSERT_EQ(LargestSigma(Condition::kDisc, f.stiffness.K, f.M, &top), StiffnessStatus::kOk);
  PolicyGradient gradient;
  StaticGradient(f.servo, f.stiffness, f.channels, top.left * top.right.transpose(), &gradient);
  PolicyDirection direction;
  StaticDirection(f.servo, f.stiffness, f.channels, top.left, top.right, &direction);
  EXPECT_TRUE(MatrixXd(gradient.dS_q).isApprox(direction.p * direction.r_q.transpose(), 1e-12));
  EXPECT_TRUE(MatrixXd(gradient.dS_a).isApprox(direction.p * direction.r_a.transpose(), 1e-12));
  EXPECT_TRUE(MatrixXd(gradient.dS_tau).isApprox(direction.p * direction.r_tau.transpose(), 1e-12));
  EXPECT_TRUE(MatrixXd(gradient.dS_g).isApprox(direction.p * direction.r_g.transpose(), 1e-12));
}

// Through K₁ only the newest frame counts.
TEST(Penalty, GradientThroughTheLatestFrame) {
  Fixture f(400);
  const MatrixXd J_q = f.sums.S_q;
  JointMatrix K_1, dK;
  ASSERT_EQ(OneStepStiffness(f.servo, J_q, &K_1), StiffnessStatus::kOk);
  for (Condition condition : kAllConditions) {
    double value = 0;
    ASSERT_EQ(LargestSigmaPenalty(condition, K_1, f.M, nullptr, &value, &dK), StiffnessStatus::kOk);
    PolicyGradient gradient;
    OneStepGradient(f.servo, dK, &gradient);
    const MatrixXd Kp = f.servo.kp.asDiagonal(), alpha = f.servo.alpha.asDiagonal();
    const MatrixXd reference = test::Difference(
        [&](const MatrixXd& x) {
          return Hinge(
              WrittenSigma(condition, Kp * (MatrixXd::Identity(f.n, f.n) - alpha * x), f.M, 0));
        },
        J_q,
        1e-6);
    EXPECT_LT((MatrixXd(gradient.dS_q) - reference).norm(),
              10 * kGradientTolerance * reference.norm());
    EXPECT_EQ(gradient.dS_a.norm(), 0);
    SigmaTriple top;
    ASSERT_EQ(LargestSigma(condition, K_1, f.M, &top), StiffnessStatus::kOk);
    PolicyDirection direction;
    OneStepDirection(f.servo, top.left, top.right, &direction);
    EXPECT_LT(
        (HingeSlope(top.sigma) * direction.p * direction.r_q.transpose() - gradient.dS_q).norm(),
        1e-10 * gradient.dS_q.norm());
  }
}

// Double support: the same in reduced coordinates.
TEST(Penalty, GradientInReducedCoordinates) {
  Fixture f(500);
  const MatrixXd N = test::Kernel(RandomMatrix(2, f.n, &f.rng));
  const MatrixXd M_z = N.transpose() * f.M * N;
  const ConstMatrix n_ref = N;
  double value = 0;
  JointMatrix dK;
  PolicyGradient gradient;
  ASSERT_EQ(LargestSigmaPenalty(Condition::kDisc, f.stiffness.K, M_z, &n_ref, &value, &dK),
            StiffnessStatus::kOk);
  StaticGradient(f.servo, f.stiffness, f.channels, dK, &gradient);
  f.ExpectGradient(
      [&](const MatrixXd& K) {
        return Hinge(WrittenSigma(Condition::kDisc, N.transpose() * K * N, M_z, 0));
      },
      gradient);
  ASSERT_EQ(AllSigmasPenalty(Condition::kDisc, f.stiffness.K, M_z, &n_ref, &value, &dK),
            StiffnessStatus::kOk);
  StaticGradient(f.servo, f.stiffness, f.channels, dK, &gradient);
  f.ExpectGradient(
      [&](const MatrixXd& K) {
        double sum = 0;
        for (int i = 0; i < 3; ++i) {
          sum += Hinge(WrittenSigma(Condition::kDisc, N.transpose() * K * N, M_z, i));
        }
        return sum;
      },
      gradient);
}

// Task stiffness and one-axis stiffness (S11) chained to the policy by the same two vectors.
TEST(Penalty, TaskStiffnessGradientsReachThePolicy) {
  Fixture f(600);
  const MatrixXd J = RandomMatrix(2, f.n, &f.rng, 0.4);
  const auto compliance = [&](const MatrixXd& K) {
    return MatrixXd(J * test::Inverse(K) * J.transpose());
  };
  JointVector left, right;
  PolicyGradient gradient;
  OneAxisGradient(J, f.stiffness.K, nullptr, nullptr, 1, &left, &right);
  StaticGradient(f.servo, f.stiffness, f.channels, left * right.transpose(), &gradient);
  f.ExpectGradient([&](const MatrixXd& K) { return 1 / compliance(K)(1, 1); }, gradient);
  TaskStiffnessGradient(J, f.stiffness.K, nullptr, nullptr, 0, 1, &left, &right);
  StaticGradient(f.servo, f.stiffness, f.channels, left * right.transpose(), &gradient);
  f.ExpectGradient([&](const MatrixXd& K) { return MatrixXd(test::Inverse(compliance(K)))(0, 1); },
                   gradient);
}

// Inside the budget there is nothing to pay and nothing to push.
TEST(Penalty, IsZeroInsideTheBudget) {
  Fixture f(700);
  const MatrixXd M = RandomSpd(f.n, &f.rng), K = 0.4 * M;
  for (Condition condition : {Condition::kTwoSided, Condition::kDisc}) {
    double value = 1;
    JointMatrix dK;
    ASSERT_EQ(LargestSigmaPenalty(condition, K, M, nullptr, &value, &dK), StiffnessStatus::kOk);
    EXPECT_EQ(value, 0);
    EXPECT_EQ(dK.norm(), 0);
    ASSERT_EQ(AllSigmasPenalty(condition, K, M, nullptr, &value, &dK), StiffnessStatus::kOk);
    EXPECT_EQ(value, 0);
    EXPECT_EQ(dK.norm(), 0);
  }
}

// (S10) and its scalar sister.
TEST(Penalty, LipschitzGradientsMatchDifferences) {
  Rng rng(8);
  for (int trial = 0; trial < 10; ++trial) {
    const MatrixXd J = RandomMatrix(4, 7, &rng), K_lcp = RandomMatrix(4, 4, &rng, 0.3);
    double value = 0;
    MatrixXd dJ;
    ASSERT_EQ(AnisotropicLcpPenalty(J, K_lcp, &value, &dJ), StiffnessStatus::kOk);
    const auto matrix = [&](const MatrixXd& x) {
      const double v = test::MaxEigenvalue(x * x.transpose() - K_lcp * K_lcp.transpose());
      return v > 0 ? v * v : 0;
    };
    ASSERT_GT(value, 0);
    EXPECT_NEAR(value / matrix(J), 1, 1e-12);
    const MatrixXd reference = test::Difference(matrix, J, 1e-6);
    EXPECT_LT((dJ - reference).norm(), kGradientTolerance * reference.norm());

    ASSERT_EQ(ScalarLcpPenalty(J, 1.5, &value, &dJ), StiffnessStatus::kOk);
    const auto scalar = [&](const MatrixXd& x) {
      const double over = std::max(0.0, test::SpectralNorm(x) - 1.5);
      return over * over;
    };
    EXPECT_NEAR(value / scalar(J), 1, 1e-12);
    const MatrixXd reference_scalar = test::Difference(scalar, J, 1e-6);
    EXPECT_LT((dJ - reference_scalar).norm(), kGradientTolerance * reference_scalar.norm());
    ASSERT_EQ(ScalarLcpPenalty(J, 100, &value, &dJ), StiffnessStatus::kOk);
    EXPECT_EQ(value, 0);
    EXPECT_EQ(dJ.norm(), 0);
  }
}

// With K_LCP = c I, (S10) violates exactly where ‖J‖ > c.
TEST(Penalty, AnisotropicWithAMultipleOfIdentityIsTheScalarBound) {
  Rng rng(9);
  for (int trial = 0; trial < 50; ++trial) {
    const MatrixXd J = RandomMatrix(3, 6, &rng);
    const double c = rng.Uniform(1.5, 4.5);
    double matrix = 0, scalar = 0;
    MatrixXd dJ;
    ASSERT_EQ(AnisotropicLcpPenalty(J, c * MatrixXd::Identity(3, 3), &matrix, &dJ),
              StiffnessStatus::kOk);
    ASSERT_EQ(ScalarLcpPenalty(J, c, &scalar, &dJ), StiffnessStatus::kOk);
    EXPECT_EQ(matrix > 0, scalar > 0);
  }
}

// A scalar bound on J confines K₁ to Kp (I + E), ‖E‖ ≤ α k: tightening it leads to Kp, never below.
TEST(Penalty, ScalarLipschitzBoundLeadsToTheServo) {
  Rng rng(10);
  Servo servo = test::RandomServo(6, &rng);
  servo.alpha.setConstant(0.25);
  MatrixXd J = RandomMatrix(6, 6, &rng);
  J *= 2 / test::SpectralNorm(J);
  JointMatrix K_1;
  ASSERT_EQ(OneStepStiffness(servo, J, &K_1), StiffnessStatus::kOk);
  const MatrixXd E = servo.kp.cwiseInverse().asDiagonal() * K_1 - MatrixXd::Identity(6, 6);
  EXPECT_NEAR(test::SpectralNorm(E), 0.5, 1e-12);
}

// C18: E_a‖∇_o log π(a|o)‖² = ‖Σ^{−1/2} J‖_F² for a Gaussian with fixed spread, by drawing actions.
TEST(Penalty, LogProbPenaltyIsTheExpectedSquaredGradient) {
  Rng rng(11);
  const MatrixXd J = RandomMatrix(4, 9, &rng);
  const VectorXd sigma = Eigen::Vector4d(0.1, 0.2, 0.3, 0.4);
  double value = 0;
  MatrixXd dJ;
  ASSERT_EQ(LogProbPenalty(J, sigma, &value, &dJ), StiffnessStatus::kOk);
  double mean = 0, square = 0;
  constexpr int kDraws = 200000;
  for (int k = 0; k < kDraws; ++k) {
    // ∇_o log π = Jᵀ Σ⁻¹ (a − μ)
    VectorXd noise(4);
    for (int i = 0; i < 4; ++i) noise[i] = rng.Normal() / sigma[i];
    const double norm = (J.transpose() * noise).squaredNorm();
    mean += norm / kDraws;
    square += norm * norm / kDraws;
  }
  EXPECT_NEAR(mean, value, 5 * std::sqrt((square - mean * mean) / kDraws));
  const MatrixXd reference = test::Difference(
      [&](const MatrixXd& x) { return (sigma.cwiseInverse().asDiagonal() * x).squaredNorm(); },
      J,
      1e-5);
  EXPECT_LT((dJ - reference).norm(), kGradientTolerance * reference.norm());
}

TEST(Penalty, IllPosedInputIsTold) {
  const MatrixXd good = MatrixXd::Identity(3, 3);
  MatrixXd nan = good;
  nan(0, 1) = std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  JointMatrix dK;
  MatrixXd dJ;
  EXPECT_EQ(LargestSigmaPenalty(Condition::kDisc, nan, good, nullptr, &value, &dK),
            StiffnessStatus::kNotFinite);
  EXPECT_EQ(AllSigmasPenalty(Condition::kDisc, good, -good, nullptr, &value, &dK),
            StiffnessStatus::kBudgetNotPositive);
  EXPECT_EQ(AnisotropicLcpPenalty(nan, good, &value, &dJ), StiffnessStatus::kNotFinite);
  EXPECT_EQ(ScalarLcpPenalty(nan, 1, &value, &dJ), StiffnessStatus::kNotFinite);
  EXPECT_EQ(LogProbPenalty(nan, Eigen::Vector3d::Ones(), &value, &dJ), StiffnessStatus::kNotFinite);
}

}  // namespace
}  // namespace silc
