// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "silc/stiffness/penalty_reference.h"
#include "silc/stiffness/test_support.h"

// (S9) all the way into a network's weights, on a small one written here: three ELU layers that see
// two frames of [q, previous action]. The gradient of the penalty is one tangent pushed forward
// along the direction (S9) names, and one reverse pass; the reference is differences of the penalty
// itself.
namespace silc {
namespace {

using namespace test::eager;
using test::MatrixXd;
using test::VectorXd;

struct Layer {
  MatrixXd W;
  VectorXd b;
};
using Net = std::vector<Layer>;

double Elu(double z) { return z > 0 ? z : std::expm1(z); }
double EluSlope(double z) { return z > 0 ? 1 : std::exp(z); }
double EluCurvature(double z) { return z > 0 ? 0 : std::exp(z); }

VectorXd Forward(const Net& net, const VectorXd& o, std::vector<VectorXd>* z = nullptr) {
  VectorXd h = o;
  for (std::size_t l = 0; l < net.size(); ++l) {
    const VectorXd pre = net[l].W * h + net[l].b;
    if (z != nullptr) z->push_back(pre);
    h = l + 1 < net.size() ? VectorXd(pre.unaryExpr(&Elu)) : pre;
  }
  return h;
}

// ∂a/∂o · seed: columns of `seed` pushed through the layers
MatrixXd Tangents(const Net& net, const VectorXd& o, const MatrixXd& seed) {
  std::vector<VectorXd> z;
  Forward(net, o, &z);
  MatrixXd t = net[0].W * seed;
  for (std::size_t l = 1; l < net.size(); ++l) {
    t = net[l].W * (z[l - 1].unaryExpr(&EluSlope).asDiagonal() * t);
  }
  return t;
}

// Gradient of p · (∂a/∂o s) with respect to every weight and bias, p and s frozen.
Net ReverseOfTangent(const Net& net, const VectorXd& o, const VectorXd& s, const VectorXd& p) {
  std::vector<VectorXd> z;
  Forward(net, o, &z);
  const std::size_t layers = net.size();
  std::vector<VectorXd> h = {o}, d = {s},
                        t;  // activations, their tangents, tangents before activation
  for (std::size_t l = 0; l < layers; ++l) {
    t.push_back(net[l].W * d[l]);
    h.push_back(z[l].unaryExpr(&Elu));
    d.push_back(z[l].unaryExpr(&EluSlope).cwiseProduct(t[l]));
  }
  Net gradient(layers);
  VectorXd gt = p, gz = VectorXd::Zero(p.size());
  for (std::size_t l = layers; l-- > 0;) {
    gradient[l].W = gt * d[l].transpose() + gz * h[l].transpose();
    gradient[l].b = gz;
    if (l == 0) break;
    const VectorXd gd = net[l].W.transpose() * gt, gh = net[l].W.transpose() * gz;
    const VectorXd& pre = z[l - 1];
    gt = pre.unaryExpr(&EluSlope).cwiseProduct(gd);
    gz = pre.unaryExpr(&EluCurvature).cwiseProduct(t[l - 1]).cwiseProduct(gd) +
         pre.unaryExpr(&EluSlope).cwiseProduct(gh);
  }
  return gradient;
}

constexpr int kArmJoints = 3, kFrames = 2,
              kFrame = 2 * kArmJoints;  // a frame is [q, previous action]

struct Problem {
  explicit Problem(int seed) {
    Rng rng(seed);
    servo = test::RandomServo(kArmJoints, &rng);
    const int widths[] = {kFrames * kFrame, 8, 7, kArmJoints};
    for (int l = 0; l < 3; ++l) {
      net.push_back({test::RandomMatrix(widths[l + 1], widths[l], &rng, 0.5),
                     test::RandomMatrix(widths[l + 1], 1, &rng, 0.3)});
    }
    o = test::RandomMatrix(kFrames * kFrame, 1, &rng);
    M = test::RandomSpd(kArmJoints, &rng, 5, 40);
  }
  // every q slot, or every previous-action slot, seeded with one tangent each
  static MatrixXd Seed(bool action, int frames = kFrames) {
    MatrixXd seed = MatrixXd::Zero(kFrames * kFrame, kArmJoints);
    for (int i = 0; i < frames; ++i) {
      seed.middleRows(i * kFrame + (action ? kArmJoints : 0), kArmJoints).setIdentity();
    }
    return seed;
  }
  PolicySums Sums(const Net& n) const {
    PolicySums sums;
    sums.S_q = Tangents(n, o, Seed(false));
    sums.S_a = 0.3 * Tangents(n, o, Seed(true));  // the observation scales its actions by 0.3
    sums.S_tau.setZero(kArmJoints, kArmJoints);
    sums.S_g.setZero(kArmJoints, 3);
    sums.sees_action = true;
    return sums;
  }
  double StaticLoss(const Net& n) const {
    const PolicySums s = Sums(n);
    const MatrixXd I = MatrixXd::Identity(kArmJoints, kArmJoints);
    const MatrixXd X = test::Inverse(I - MatrixXd(s.S_a)) * s.S_q;
    return Loss(X);
  }
  double OneStepLoss(const Net& n) const { return Loss(Tangents(n, o, Seed(false, 1))); }
  double Loss(const MatrixXd& X) const {
    const MatrixXd I = MatrixXd::Identity(kArmJoints, kArmJoints);
    const MatrixXd K = servo.kp.asDiagonal() * (I - servo.alpha.asDiagonal() * X);
    const MatrixXd Li = test::Inverse(test::LowerCholesky(M));
    return Hinge(test::SpectralNorm(2 * Li * K * Li.transpose() - I));
  }

  Servo servo;
  Net net;
  VectorXd o;
  MatrixXd M;
};

// differences of `loss` over every weight and bias against `gradient`
void ExpectNetGradient(const Problem& problem,
                       double (Problem::*loss)(const Net&) const,
                       const Net& gradient) {
  double error = 0, size = 0;
  for (std::size_t l = 0; l < problem.net.size(); ++l) {
    const auto difference = [&](auto member) {
      return test::Difference(
          [&](const MatrixXd& x) {
            Net moved = problem.net;
            moved[l].*member = x;
            return (problem.*loss)(moved);
          },
          problem.net[l].*member,
          1e-6);
    };
    const MatrixXd dW = difference(&Layer::W), db = difference(&Layer::b);
    error += (gradient[l].W - dW).squaredNorm() + (gradient[l].b - db).squaredNorm();
    size += dW.squaredNorm() + db.squaredNorm();
  }
  EXPECT_GT(size, 0);
  // rounding of the loss (1e-15 of some 10) over h = 1e-6
  EXPECT_LT(std::sqrt(error / size), 1e-6);
}

// C15: pushed tangents are the Jacobian, and a sum of Jacobians over frames is one seed with all
// frames in it.
TEST(PolicyGradient, TangentsAreTheJacobianAndSeedsStack) {
  const Problem problem(1);
  const MatrixXd J =
      Tangents(problem.net, problem.o, MatrixXd::Identity(problem.o.size(), problem.o.size()));
  for (int k = 0; k < problem.o.size(); ++k) {
    const VectorXd e = 1e-6 * VectorXd::Unit(problem.o.size(), k);
    const VectorXd column =
        (Forward(problem.net, problem.o + e) - Forward(problem.net, problem.o - e)) / 2e-6;
    EXPECT_LT((J.col(k) - column).norm(), 1e-8);
  }
  const MatrixXd sum = J.middleCols(0, kArmJoints) + J.middleCols(kFrame, kArmJoints);
  EXPECT_LT((Tangents(problem.net, problem.o, Problem::Seed(false)) - sum).norm(), 1e-14);
}

// C16, one step: p · J_q⁰ r, p and r frozen.
TEST(PolicyGradient, OneStepHinge) {
  for (int seed = 2; seed < 6; ++seed) {
    const Problem problem(seed);
    JointMatrix K_1;
    ASSERT_EQ(OneStepStiffness(
                  problem.servo, Tangents(problem.net, problem.o, Problem::Seed(false, 1)), &K_1),
              StiffnessStatus::kOk);
    SigmaTriple top;
    ASSERT_EQ(LargestSigma(Condition::kDisc, K_1, problem.M, &top), StiffnessStatus::kOk);
    ASSERT_GT(top.sigma, 1.01);
    PolicyDirection direction;
    OneStepDirection(problem.servo, top.left, top.right, &direction);
    const VectorXd s = Problem::Seed(false, 1) * direction.r_q;
    ExpectNetGradient(
        problem,
        &Problem::OneStepLoss,
        ReverseOfTangent(problem.net, problem.o, s, HingeSlope(top.sigma) * direction.p));
  }
}

// C16, static: r in every q slot and X r in every previous-action slot; the same cost.
TEST(PolicyGradient, StaticHinge) {
  for (int seed = 6; seed < 10; ++seed) {
    const Problem problem(seed);
    StaticStiffness stiffness;
    ASSERT_EQ(SolveQuasiStatic(problem.servo, problem.Sums(problem.net), {}, &stiffness),
              StiffnessStatus::kOk);
    SigmaTriple top;
    ASSERT_EQ(LargestSigma(Condition::kDisc, stiffness.K, problem.M, &top), StiffnessStatus::kOk);
    ASSERT_GT(top.sigma, 1.01);
    PolicyDirection direction;
    StaticDirection(problem.servo, stiffness, {}, top.left, top.right, &direction);
    const VectorXd s =
        Problem::Seed(false) * direction.r_q + 0.3 * (Problem::Seed(true) * direction.r_a);
    ExpectNetGradient(
        problem,
        &Problem::StaticLoss,
        ReverseOfTangent(problem.net, problem.o, s, HingeSlope(top.sigma) * direction.p));
  }
}

}  // namespace
}  // namespace silc
