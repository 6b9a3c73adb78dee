// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/penalty.h"

#include <gtest/gtest.h>

#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <set>

#include "silc/learn/test_penalty.h"
#include "silc/stiffness/condition_reference.h"
#include "silc/stiffness/penalty_reference.h"

namespace silc::penalty_test {
namespace {

// ---- values: the batch says what silc/stiffness says, sample by sample ----

TEST(PenaltyValue, ScalarAnisotropicAndLogProbAgreeWithStiffness) {
  World world;
  world.config.lipschitz = 0.3;
  double scalar = 0, anisotropic = 0;
  for (int i = 0; i < kBatch; ++i) {
    const MatrixXd J = world.Jacobian(world.input.channels.q0, i);
    double value;
    MatrixXd dJ;
    ScalarLcpPenalty(J, 0.3, &value, &dJ);
    scalar += value / kBatch;
    AnisotropicLcpPenalty(J, 0.3 * MatrixXd::Identity(kJoints, kJoints), &value, &dJ);
    anisotropic += value / kBatch;
  }
  EXPECT_GT(scalar, 0);
  EXPECT_NEAR(ScalarPenalty(world.Run(), world.config).value.item<double>(), scalar, 1e-12);
  EXPECT_NEAR(
      AnisotropicPenalty(world.Run(), world.config).value.item<double>(), anisotropic, 1e-12);

  // lcp: mean over actions drawn from the policy is ‖Σ^{−1/2} J‖_F²
  const Tensor eye = at::eye(kObs, at::kDouble);
  Eigen::VectorXd std(kJoints);
  std << Eigen::VectorXd::Constant(12, 0.3), Eigen::VectorXd::Constant(8, 0.5);
  double expected = 0, drawn = 0;
  for (int i = 0; i < kBatch; ++i) {
    double value;
    MatrixXd dJ;
    LogProbPenalty(world.Jacobian(eye, i), std, &value, &dJ);
    expected += value / kBatch;
  }
  constexpr int kDraws = 2000;
  at::NoGradGuard no_tape;
  for (int draw = 0; draw < kDraws; ++draw) {
    world.Run();
    for (int k = 0; k < 2; ++k) {
      const Tensor mean = world.input.activations[k].output;
      world.input.action[k] = mean + world.input.std[k] * at::randn_like(mean);
    }
    drawn += LogProbGradientPenalty(world.input).value.item<double>() / kDraws;
  }
  // 16,000 draws of a sum that one or two squares dominate: the standard error is 0.8 %
  EXPECT_NEAR(drawn / expected, 1, 0.025);
}

TEST(PenaltyValue, SilcAndThePapersAgreeWithStiffness) {
  for (const NullWeight weight : {NullWeight::kIdentity, NullWeight::kServo}) {
    World world(weight);
    world.config.action_loop_weight = 0;
    double paper = 0, largest = 0, all = 0;
    for (int i = 0; i < kBatch; ++i) {
      ReducedBudget reduced;
      ASSERT_EQ(ComputeReducedBudget(world.spec, world.servo, world.contact[i], &reduced),
                StiffnessStatus::kOk);
      const MatrixXd N = world.contact[i].N, M = reduced.M;
      const ConstMatrix N_ref(N);
      const ConstMatrix* maybe_N = world.contact[i].closed ? &N_ref : nullptr;
      JointMatrix K_1, dK;
      OneStepStiffness(world.servo, world.Jacobian(world.input.channels.q0, i), &K_1);
      const MatrixXd K_s = Reference(&world, i).K;
      double value;
      LargestSigmaPenalty(Condition::kOneSided, MatrixXd(K_1), M, maybe_N, &value, &dK);
      paper += value / kBatch;
      LargestSigmaPenalty(Condition::kDisc, K_s, M, maybe_N, &value, &dK);
      largest += value / kBatch;
      AllSigmasPenalty(Condition::kDisc, K_s, M, maybe_N, &value, &dK);
      all += value / kBatch;
    }
    PenaltyConfig config = world.config;
    // values of some hundred, through inverses of budgets with a condition of 1e4
    EXPECT_NEAR(PaperPenalty(world.Run(), config).value.item<double>() / paper, 1, 1e-9);
    EXPECT_NEAR(StaticPenalty(world.Run(), config).value.item<double>() / largest, 1, 1e-9);
    config.sigmas = "all";
    EXPECT_NEAR(StaticPenalty(world.Run(), config).value.item<double>() / all, 1, 1e-9);
    EXPECT_GT(all, largest);
  }
}

// The penalty of a batch of commands is the mean of the penalties of single budgets.
TEST(PenaltyValue, OfCommandsAgreesWithStiffness) {
  Rng rng(31);
  World world;
  world.config.action_loop_weight = 0;
  BudgetSpec spec = world.spec;
  spec.hand[0] = spec.hand[1];
  spec.command.range = {BudgetRange{200, 3000}, BudgetRange{100, 1000}, BudgetRange{20, 300}};
  const Tensor command = at::zeros({kBatch, kNumCommanded}, at::kDouble);
  double expected = 0;
  for (int i = 0; i < kBatch; ++i) {
    BudgetValues values = {};
    for (int k = 0; k < kNumCommanded; ++k) {
      const double u =
          rng.Uniform(std::log(spec.command.range[k]->low), std::log(spec.command.range[k]->high));
      command[i][k] = u;
      values[k] = std::exp(u);
    }
    ReducedBudget reduced;
    ASSERT_EQ(ComputeReducedBudget(BudgetAt(spec, values), world.servo, world.contact[i], &reduced),
              StiffnessStatus::kOk);
    const MatrixXd N = world.contact[i].N;
    const ConstMatrix N_ref(N);
    JointMatrix dK;
    double value;
    LargestSigmaPenalty(Condition::kDisc,
                        MatrixXd(Reference(&world, i).K),
                        MatrixXd(reduced.M),
                        world.contact[i].closed ? &N_ref : nullptr,
                        &value,
                        &dK);
    expected += value / kBatch;
  }
  world.input.budget =
      MakeBudgetFactors(spec, world.input.servo.kp, world.batch, at::kDouble, command);
  EXPECT_GT(expected, 0);
  EXPECT_NEAR(StaticPenalty(world.Run(), world.config).value.item<double>() / expected, 1, 1e-9);
  // other commands, other penalty: the samples' budgets are looked at
  world.input.budget = MakeBudgetFactors(
      spec, world.input.servo.kp, world.batch, at::kDouble, command.flip(0).contiguous());
  EXPECT_GT(std::abs(StaticPenalty(world.Run(), world.config).value.item<double>() / expected - 1),
            0.01);
}

// One sample as silc/stiffness has it.
struct PlainSample {
  MatrixXd K;        // K_s
  double loop_norm;  // ‖S_a + S_τ Kp α‖
};

// The penalty of one sample, written out with dense factors:
//     A = 2 L⁻¹ (K − m) L⁻ᵀ/min(b, 1) − I,  L Lᵀ = M − m;  Σ hinge(σ(A)/max(b, 1)) + the loop's
//     term
double PlainPenalty(const World& world, const PlainSample& sample, int i, double bound) {
  const ContactKinematics& c = world.contact[i];
  ReducedBudget reduced;
  SILC_CHECK(ComputeReducedBudget(world.spec, world.servo, c, &reduced) == StiffnessStatus::kOk);
  const MatrixXd N = c.closed ? MatrixXd(c.N) : MatrixXd::Identity(kJoints, kJoints);
  MatrixXd m = MatrixXd::Zero(N.cols(), N.cols());
  for (int side = 0; side < 2; ++side) {
    if (!world.spec.hand[side]) continue;
    const MatrixXd J = c.hand_on_base[side] * N;
    const Eigen::Vector3d k = world.spec.hand_floor.cwiseProduct(*world.spec.hand[side]);
    m += J.transpose() * k.asDiagonal() * J;
  }
  const MatrixXd L_inverse = test::Inverse(test::LowerCholesky(MatrixXd(reduced.M) - m));
  const MatrixXd form = L_inverse * (N.transpose() * sample.K * N - m) * L_inverse.transpose();
  const MatrixXd A = 2 / std::min(bound, 1.0) * form - MatrixXd::Identity(N.cols(), N.cols());
  const Eigen::VectorXd sigmas = test::SingularValues(A);
  double value = 0;
  for (const double sigma : sigmas) {
    const double over = std::max(1.0, sigma / std::max(bound, 1.0));
    value += std::pow(world.config.hinge == "log" ? std::log(over) : over - 1, 2);
    if (world.config.sigmas == "largest") break;
  }
  const double limit = world.config.action_loop_limit + 0.5 * std::log(std::max(bound, 1.0));
  return value +
         world.config.action_loop_weight * std::pow(std::max(0.0, sample.loop_norm - limit), 2);
}

// (S6), (S3) and the penalty made of them are batched twins of silc/stiffness: sample by sample the
// same σ as an observer reads, and the same value as the formula, over all that a training may
// choose. Points, weights, floors, bounds, hinges, the loop's term; every contact mode is in the
// batch.
TEST(PenaltyValue, IsTheTwinOfStiffnessOverEveryOptionOfATraining) {
  int compared = 0, banded = 0;
  for (const NullWeight weight : {NullWeight::kIdentity, NullWeight::kServo}) {
    World world(weight, {10, 9}, kStiffHand);
    world.config.action_loop_limit = 0.05;
    world.config.action_loop_weight = 10;
    const auto left_hand = std::make_optional(Eigen::Vector3d(1000, 900, 800));
    const auto com = world.spec.com, right_hand = world.spec.hand[1];
    std::vector<PlainSample> samples;
    std::vector<PolicyJacobians> policies;
    for (int i = 0; i < kBatch; ++i) {
      policies.push_back(SampleJacobians(&world, i));
      const Eigen::VectorXd gain = world.servo.kp.cwiseProduct(world.servo.alpha);
      samples.push_back(
          {Reference(&world, i).K,
           test::SpectralNorm(policies[i].J_a[0] + policies[i].J_tau[0] * gain.asDiagonal())});
    }
    for (int named = 0; named < 8; ++named) {  // bits: centre of mass, left hand, right hand
      for (const bool floored : {false, true}) {
        if (floored && named < 2) continue;  // no hand, no floor
        world.spec.com = named & 1 ? com : std::nullopt;
        world.spec.hand[0] = named & 2 ? left_hand : std::nullopt;
        world.spec.hand[1] = named & 4 ? right_hand : std::nullopt;
        world.SetFloor(floored ? Eigen::Vector3d(0.5, 0, 0.9) : Eigen::Vector3d::Zero());
        banded += floored;
        ASSERT_TRUE(world.input.budget.ok.all().item<bool>());

        // σ of an observer
        ObserverOptions options;
        options.servo = world.servo;
        options.budget = world.spec;
        options.frames = 1;
        options.require_stable_loop = false;
        StiffnessObserver observer(options);
        world.input.bound = Tensor();
        const Tensor sigma = StaticPenalty(world.Run(), world.config).sigma;
        for (int i = 0; i < kBatch; ++i) {
          const StiffnessReading& reading =
              observer.Observe(policies[i], world.body[i], world.contact[i].mode);
          ASSERT_EQ(reading.quasi_static.status, StiffnessStatus::kOk);
          EXPECT_NEAR(sigma[i].item<double>() / reading.quasi_static.sigma, 1, 1e-7);
        }

        for (const char* sigmas : {"all", "largest"}) {
          for (const char* hinge : {"log", "square"}) {
            for (const double bound : {0.8, 1.0, 3.0}) {
              SCOPED_TRACE(testing::Message()
                           << "weight " << int(weight) << ", points " << named << ", floor "
                           << floored << ", " << sigmas << ", " << hinge << ", bound " << bound);
              world.config.sigmas = sigmas;
              world.config.hinge = hinge;
              world.input.bound = at::full({}, bound, at::kDouble);
              double expected = 0;
              for (int i = 0; i < kBatch; ++i) {
                expected += PlainPenalty(world, samples[i], i, bound) / kBatch;
              }
              const double got = StaticPenalty(world.Run(), world.config).value.item<double>();
              EXPECT_NEAR(got / expected, 1, 1e-7);
              ++compared;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(compared, 2 * (8 + 6) * 12);
  EXPECT_EQ(banded, 2 * 6);
}

// The loop that is bounded is the whole one: actions seen, and actions felt through their torque.
TEST(PenaltyValue, TheActionLoopCountsTheTorqueItMakes) {
  World world;
  world.config.action_loop_limit = 0.05;
  const auto value = [&](double weight) {
    world.config.action_loop_weight = weight;
    return StaticPenalty(world.Run(), world.config);
  };
  double expected = 0, without_torque = 0;
  const PenaltyResult with = value(1);
  for (int i = 0; i < kBatch; ++i) {
    const MatrixXd S_a = world.Jacobian(world.input.channels.a, i);
    const Eigen::VectorXd felt = world.servo.kp.cwiseProduct(world.servo.alpha);
    const MatrixXd loop = S_a + world.Jacobian(world.input.channels.tau, i) * felt.asDiagonal();
    const double norm = test::SpectralNorm(loop);
    EXPECT_NEAR(with.loop_norm[i].item<double>(), norm, 1e-9);
    expected += std::pow(std::max(0.0, norm - 0.05), 2) / kBatch;
    without_torque += std::pow(std::max(0.0, test::SpectralNorm(S_a) - 0.05), 2) / kBatch;
  }
  EXPECT_NEAR(with.value.item<double>() - value(0).value.item<double>(), expected, 1e-9 * expected);
  EXPECT_GT(std::abs(expected - without_torque), 1e-3 * expected);
}

// (P16): the same loop for actions that go up and down, at every point of the circle that is held.
// The world's frames stand oldest first; an action is seen a step after it was made.
TEST(PenaltyValue, TheActionLoopIsHeldAtEveryPointOfTheCircle) {
  World world;
  world.config.action_loop_limit = 0.05;
  world.config.action_loop_weight = 1;
  for (const int points : {0, 1, 2, 5}) {
    std::vector<double> angles = DrawLoopAngles(points, 3, 7);
    world.SetLoopPoints(angles);
    angles.push_back(0);  // z = 1 is always held
    const PenaltyResult with = StaticPenalty(world.Run(), world.config);
    world.config.action_loop_weight = 0;
    const double without = StaticPenalty(world.Run(), world.config).value.item<double>();
    world.config.action_loop_weight = 1;
    double expected = 0;
    for (int i = 0; i < kBatch; ++i) {
      double largest = 0;
      for (const double angle : angles) {
        const std::complex<double> z = std::polar(1.0, angle);
        Eigen::MatrixXcd A = Eigen::MatrixXcd::Zero(kJoints, kJoints);
        for (int frame = 0; frame < kFrames; ++frame) {
          const Eigen::VectorXd felt = world.servo.kp.cwiseProduct(world.servo.alpha);
          const MatrixXd each =
              world.FrameJacobian(world.input.channels.a, frame, i) +
              world.FrameJacobian(world.input.channels.tau, frame, i) * felt.asDiagonal();
          A += std::pow(z, -double(kFrames - frame)) * each.cast<std::complex<double>>();
        }
        const double norm = Eigen::JacobiSVD<Eigen::MatrixXcd>(A).singularValues()[0];
        largest = std::max(largest, norm);
        expected += std::pow(std::max(0.0, norm - 0.05), 2) / kBatch;
      }
      EXPECT_NEAR(with.loop_norm[i].item<double>(), largest, 1e-6 * largest) << points;
    }
    EXPECT_NEAR(with.value.item<double>() - without, expected, 1e-5 * expected) << points;
  }
}

TEST(LoopAngles, StandInEachPartOfTheHalfCircleAndChangeWithTheIteration) {
  std::vector<double> mean(3, 0.0);
  std::set<double> seen;
  for (int iteration = 0; iteration < 1000; ++iteration) {
    const std::vector<double> angles = DrawLoopAngles(3, 5, iteration);
    ASSERT_EQ(angles.size(), 3);
    for (int i = 0; i < 3; ++i) {
      EXPECT_GE(angles[i], std::numbers::pi * i / 3);
      EXPECT_LE(angles[i], std::numbers::pi * (i + 1) / 3);
      mean[i] += angles[i] / 1000;
      seen.insert(angles[i]);
    }
    EXPECT_EQ(angles, DrawLoopAngles(3, 5, iteration));
  }
  EXPECT_GT(seen.size(), 2990);
  // uniform over a part of width π/3: the mean of 1,000 has a deviation of π/3/√12000
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(mean[i], std::numbers::pi * (i + 0.5) / 3, 0.05);
  EXPECT_NE(DrawLoopAngles(3, 5, 0), DrawLoopAngles(3, 6, 0));
}

// ---- a sample whose action loop is an integrator is counted and left out ----

TEST(StaticPenalty, LeavesOutWhatIsIllConditionedAndStillBoundsItsLoop) {
  World world;
  // I − S_a has entries near 1: with this limit some inverses are "too large" and some are not
  PenaltyConfig config = world.config;
  config.sigmas = "all";
  config.action_loop_limit = 0.05;
  const PenaltyResult before = StaticPenalty(world.Run(), config);
  EXPECT_EQ(before.ok.sum().item<int>(), kBatch);
  world.x[3].mul_(NAN);
  PenaltyResult after = StaticPenalty(world.Run(), config);
  EXPECT_EQ(after.ok.sum().item<int>(), kBatch - 1);
  EXPECT_TRUE(std::isfinite(after.value.item<double>()));
  config.loop_gain_limit = 1.0;  // an inverse always has an entry above 1 somewhere, here
  world.x[3].zero_();
  after = StaticPenalty(world.Run(), config);
  EXPECT_LT(after.ok.sum().item<int>(), kBatch);
  EXPECT_GT(after.value.item<double>(), 0);
}

}  // namespace
}  // namespace silc::penalty_test
