// SPDX-License-Identifier: Apache-2.0
// Gradients of the penalties, and that each penalty can be satisfied.
#include "silc/learn/penalty.h"

#include <gtest/gtest.h>

#include <cmath>

#include "silc/learn/test_penalty.h"

namespace silc::penalty_test {
namespace {

TEST(PenaltyGradient, Lcp) {
  World world;
  CheckGradient(&world, [](const PenaltyInput& in) { return LogProbGradientPenalty(in); });
}
TEST(PenaltyGradient, ScalarLcp) {
  World world;
  world.config.lipschitz = 0.3;
  CheckGradient(&world, [&](const PenaltyInput& in) { return ScalarPenalty(in, world.config); });
}
TEST(PenaltyGradient, Alcp) {
  World world;
  world.config.lipschitz = 0.3;
  CheckGradient(&world,
                [&](const PenaltyInput& in) { return AnisotropicPenalty(in, world.config); });
}
TEST(PenaltyGradient, SilcPaper) {
  World world;
  CheckGradient(&world, [&](const PenaltyInput& in) { return PaperPenalty(in, world.config); });
}
TEST(PenaltyGradient, SilcLargestWithItsActionLoop) {
  World world;
  world.config.action_loop_limit = 0.05;
  world.config.action_loop_weight = 1000;  // the two terms are then of one size
  CheckGradient(&world, [&](const PenaltyInput& in) { return StaticPenalty(in, world.config); });
}
TEST(PenaltyGradient, SilcWithItsActionLoopAroundTheCircle) {
  World world;
  world.config.action_loop_limit = 0.05;
  world.config.action_loop_weight = 1000;
  for (const int points : {1, 4}) {
    world.SetLoopPoints(DrawLoopAngles(points, 3, 7));
    CheckGradient(&world, [&](const PenaltyInput& in) { return StaticPenalty(in, world.config); });
  }
}

TEST(PenaltyGradient, SilcAllByLogarithm) {
  World world(NullWeight::kServo);
  world.config.sigmas = "all";
  world.config.hinge = "log";
  CheckGradient(&world, [&](const PenaltyInput& in) { return StaticPenalty(in, world.config); });
}

TEST(PenaltyGradient, SilcWithABandForHands) {
  World world(NullWeight::kServo, {10, 9}, kStiffHand);
  world.config.sigmas = "all";
  world.config.hinge = "log";
  world.SetFloor({0.5, 0, 0.9});
  CheckGradient(&world, [&](const PenaltyInput& in) { return StaticPenalty(in, world.config); });
}

// Under a bound that is still wide some σ are let pass and the rest count from there.
TEST(PenaltyGradient, SilcAndThePapersUnderAWideBound) {
  for (const char* hinge : {"log", "square"}) {
    World world(NullWeight::kServo);
    world.config.sigmas = "all";
    world.config.hinge = hinge;
    world.config.action_loop_weight = 0;
    const Tensor sigma = StaticPenalty(world.Run(), world.config).sigma;
    const double free = StaticPenalty(world.Run(), world.config).value.item<double>();
    world.input.bound = sigma.median();
    ASSERT_GT(world.input.bound.item<double>(), 1.5);
    const double held = StaticPenalty(world.Run(), world.config).value.item<double>();
    EXPECT_GT(held, 0);
    EXPECT_LT(held, free);
    CheckGradient(&world, [&](const PenaltyInput& in) { return StaticPenalty(in, world.config); });
    world.input.bound = sigma.max() * 1.001;
    EXPECT_EQ(StaticPenalty(world.Run(), world.config).value.item<double>(), 0);
  }
}

// A bound b under 1 is the budget b M: the same numbers as with every stiffness of the budget
// multiplied by b. σ of the budget itself is still there to be reported.
TEST(PenaltyGradient, ABoundUnderOneIsASmallerBudget) {
  constexpr double kMargin = 0.8;
  for (const char* hinge : {"log", "square"}) {
    World world;
    world.config.sigmas = "all";
    world.config.hinge = hinge;
    world.config.bound_end = kMargin;
    const Tensor sigma = StaticPenalty(world.Run(), world.config).sigma;
    world.input.bound = at::full({}, kMargin, at::kDouble);
    const PenaltyResult held = StaticPenalty(world.Run(), world.config);
    EXPECT_LT(
        (LargestSingular(held.condition).sigma.select(1, 0) - sigma).abs().max().item<double>(),
        1e-6);
    CheckGradient(&world, [&](const PenaltyInput& in) { return StaticPenalty(in, world.config); });

    world.input.bound = Tensor();
    world.input.budget.P = world.input.budget.P / std::sqrt(kMargin);  // P Pᵀ is M⁻¹
    const PenaltyResult smaller = StaticPenalty(world.Run(), world.config);
    EXPECT_NEAR(held.value.item<double>(), smaller.value.item<double>(), 1e-9);
    EXPECT_LT((held.sigma - smaller.sigma).abs().max().item<double>(), 1e-9);
  }
}

// Without stiffness at all, K = 0, no margin is violated: a margin asks for none.
TEST(PenaltyGradient, AMarginAsksForNoStiffness) {
  World world;
  world.config.action_loop_weight = 0;
  for (const double bound : {1.0, 0.9, 0.5}) {
    world.input.bound = at::full({}, bound, at::kDouble);
    PenaltyInput in = world.Run();
    in.servo.kp = at::full_like(in.servo.kp, 1e-9);  // a servo that holds nothing
    EXPECT_LT(StaticPenalty(in, world.config).value.item<double>(), 1e-12) << bound;
  }
}

// Random combinations estimate the gradient of all singular values without bias.
TEST(PenaltyGradient, ProbesAverageToTheGradientOfAll) {
  World world;
  world.config.sigmas = "all";
  world.config.hinge = "log";
  const std::vector<Tensor> leaf = {world.networks[0].leaves[2]};
  const Tensor exact =
      torch::autograd::grad({StaticPenalty(world.Run(), world.config).surrogate}, leaf)[0];
  world.config.probes = 2;
  Tensor mean = at::zeros_like(exact);
  constexpr int kDraws = 800;
  for (int draw = 0; draw < kDraws; ++draw) {
    world.input.signs = at::randint(0, 2, {kBatch, 2, kJoints}, at::kDouble) * 2 - 1;
    mean += torch::autograd::grad({StaticPenalty(world.Run(), world.config).surrogate}, leaf)[0];
  }
  // one draw is off by about its own size: 1/√800 is 3.5 %
  EXPECT_LT(((mean / kDraws - exact).norm() / exact.norm()).item<double>(), 0.1);
}

// ---- each penalty can be satisfied ----

// The hinge's square has no slope at the edge of the budget, so it is approached from outside: zero
// means 1e-4 of the start, σ within about a hundredth of its excess.
TEST(PenaltyAlone, BringsScalarAndAnisotropicViolationsToZero) {
  for (const bool scalar : {true, false}) {
    World world;
    world.config.lipschitz = 0.2;
    const auto penalty = [&](const PenaltyInput& in) {
      return scalar ? ScalarPenalty(in, world.config) : AnisotropicPenalty(in, world.config);
    };
    EXPECT_LT(ShareLeft(&world, penalty, 400, 0.01), 1e-4) << scalar;
  }
}
// lcp has no budget: its zero is a policy that does not look
TEST(PenaltyAlone, BringsTheLogProbGradientDown) {
  World world;
  const auto penalty = [](const PenaltyInput& in) { return LogProbGradientPenalty(in); };
  EXPECT_LT(ShareLeft(&world, penalty, 300, 0.01), 1e-3);
}
// Stiffness has to come down in all twenty joints at once: the hidden layers must be wide enough
// for a Jacobian of full rank.
TEST(PenaltyAlone, BringsThePapersViolationToZero) {
  World world(NullWeight::kIdentity, {40, 32});
  world.config.sigmas = "all";
  const auto penalty = [&](const PenaltyInput& in) { return PaperPenalty(in, world.config); };
  EXPECT_LT(ShareLeft(&world, penalty, 500, 0.02), 1e-4);
}
TEST(PenaltyAlone, BringsTheDiscViolationToZero) {
  World world(NullWeight::kServo, {40, 32});
  world.config.sigmas = "all";
  world.config.hinge = "log";
  const auto penalty = [&](const PenaltyInput& in) { return StaticPenalty(in, world.config); };
  EXPECT_LT(ShareLeft(&world, penalty, 500, 0.02), 1e-4);
}

// A policy within its band: the hand, measured by (S11), gives way no less than the bound says and
// no more than the floor does.
TEST(PenaltyAlone, BringsHandsIntoTheirBand) {
  World world(NullWeight::kIdentity, {40, 32}, 0.5 * kStiffHand);
  world.config.sigmas = "all";
  world.config.hinge = "log";
  world.config.action_loop_weight = 0;
  world.SetFloor({0, 0, 0.7});
  const auto penalty = [&](const PenaltyInput& in) { return StaticPenalty(in, world.config); };
  const auto stiffness = [&](int i) {  // z of the hand on the base, over its bound
    const ContactKinematics& c = world.contact[i];
    const MatrixXd N = c.closed ? MatrixXd(c.N) : MatrixXd::Identity(kJoints, kJoints);
    const MatrixXd K = N.transpose() * Reference(&world, i).K * N, J = c.hand_on_base[1] * N;
    return 1 / (J * test::Solve(K, J.transpose()))(2, 2) / (*world.spec.hand[1])[2];
  };
  for (int i = 0; i < kBatch; ++i) EXPECT_LT(stiffness(i), 0.65);
  EXPECT_LT(ShareLeft(&world, penalty, 800, 0.02), 1e-3);
  for (int i = 0; i < kBatch; ++i) {
    EXPECT_GT(stiffness(i), 0.68);
    EXPECT_LT(stiffness(i), 1.02);
  }
}

}  // namespace
}  // namespace silc::penalty_test
