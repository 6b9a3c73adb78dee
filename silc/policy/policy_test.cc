// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "silc/base/error.h"
#include "silc/policy/test_networks.h"

namespace silc {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Four joints; the policy knows three of them, in another order.
PolicyRobot Robot() { return {{"a", "fixed", "b", "c"}, Eigen::Vector4d(0.0, 0.7, 0.0, 0.0)}; }

std::shared_ptr<const Graph> Network(std::uint64_t seed, int inputs = 63, int outputs = 3) {
  Rng rng(seed);
  MlpNetwork network;
  network.inputs = inputs;
  network.branches.push_back(RandomLayers(&rng, inputs, {32, 16, outputs - 1}));
  network.branches.push_back(RandomLayers(&rng, inputs, {20, 16, 1}));
  return std::make_shared<const Graph>(MlpGraph(network, "obs", "actions"));
}

ObservationInput RandomInput(Rng* rng) {
  ObservationInput in;
  const auto fill = [&](Eigen::VectorXd* v, double size) {
    v->resize(4);
    for (double& x : *v) x = size * rng->Normal();
  };
  fill(&in.q, 0.3);
  fill(&in.qd, 1.0);
  fill(&in.tau, 5.0);
  fill(&in.q_ref, 0.3);
  for (double& x : in.w_WB_B) x = 0.3 * rng->Normal();
  for (double& x : in.g_B) x = rng->Normal();
  in.g_B.normalize();
  in.command.lin_vel << 0.3, -0.1;
  in.command.yaw_rate = 0.2;
  return in;
}

// Runs the policy over a few random steps and returns the last one's input.
ObservationInput Steps(Policy* policy, std::uint64_t seed, int steps) {
  Rng rng(seed);
  Eigen::VectorXd target;
  ObservationInput in;
  for (int i = 0; i < steps; ++i) {
    in = RandomInput(&rng);
    EXPECT_EQ(policy->Act(in, &target), PolicyStatus::kOk);
  }
  return in;
}

TEST(Policy, TheObservationIsBuiltAsTheLayoutSays) {
  Policy policy(Network(1), ThreeJointLayout(), Robot());
  Rng rng(2);
  Eigen::VectorXd target;
  const ObservationInput first = RandomInput(&rng);
  ASSERT_EQ(policy.Act(first, &target), PolicyStatus::kOk);
  const Eigen::VectorXd action = policy.raw_action();
  const ObservationInput in = RandomInput(&rng);
  ASSERT_EQ(policy.Act(in, &target), PolicyStatus::kOk);

  // by hand, robot order a, fixed, b, c; the policy's joints b, a, c, its action c, b, a
  const std::vector<double> frame = {action[3],
                                     action[2],
                                     action[0],
                                     0.25 * in.w_WB_B[0],
                                     0.25 * in.w_WB_B[1],
                                     0.25 * in.w_WB_B[2],
                                     2 * 0.3,
                                     2 * -0.1,
                                     2 * 0.2,
                                     1 * (in.q[2] - 0.2),
                                     2 * (in.q[0] - 0.1),
                                     3 * (in.q[3] - 0.3),
                                     0.05 * in.qd[2],
                                     0.05 * in.qd[0],
                                     0.05 * in.qd[3],
                                     0.1 * in.tau[0],
                                     0.1 * in.tau[3],
                                     in.g_B[0],
                                     in.g_B[1],
                                     in.g_B[2],
                                     in.q_ref[3]};
  ASSERT_EQ(policy.observation().size(), 63);
  for (int i = 0; i < 21; ++i) {
    EXPECT_FLOAT_EQ(policy.observation()[42 + i],
                    static_cast<float>(frame[static_cast<std::size_t>(i)]))
        << i;
    EXPECT_EQ(policy.observation()[i], 0.0f);
  }
  EXPECT_FLOAT_EQ(policy.observation()[21 + 17], static_cast<float>(first.g_B[0]));
}

// (S1): q* = q_default + α a, residual joints q* = q_ref + α a, others held
TEST(Policy, TargetsAreDefaultOrReferencePlusScaledAction) {
  Policy policy(Network(3), ThreeJointLayout(), Robot());
  Rng rng(4);
  Eigen::VectorXd target;
  const ObservationInput in = RandomInput(&rng);
  ASSERT_EQ(policy.Act(in, &target), PolicyStatus::kOk);
  const Eigen::VectorXd& a = policy.raw_action();
  EXPECT_NEAR(target[0], 0.1 + 0.1 * a[0], 1e-15);
  EXPECT_EQ(target[1], 0.7);
  EXPECT_NEAR(target[2], 0.2 + 0.2 * a[2], 1e-15);
  EXPECT_NEAR(target[3], in.q_ref[3] + 0.3 * a[3], 1e-15);
  EXPECT_EQ(policy.action_scale(), Eigen::Vector4d(0.1, 0, 0.2, 0.3));
  EXPECT_EQ(policy.default_pose(), Eigen::Vector4d(0.1, 0.7, 0.2, 0.3));
  EXPECT_EQ(policy.commanded(), (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(policy.residual(), (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(policy.kp()[2], 20);
  EXPECT_TRUE(std::isnan(policy.kp()[1]));
}

struct Blocks {
  std::vector<std::pair<std::string, const std::vector<Eigen::MatrixXd>*>> lists;
  explicit Blocks(const PolicyJacobians& j)
      : lists{{"q", &j.J_q},
              {"v", &j.J_v},
              {"a", &j.J_a},
              {"tau", &j.J_tau},
              {"g", &j.J_g},
              {"w", &j.J_w}} {}
};

void ExpectNear(const PolicyJacobians& a, const PolicyJacobians& b, double tolerance) {
  const Blocks x(a), y(b);
  for (std::size_t i = 0; i < x.lists.size(); ++i) {
    ASSERT_EQ(x.lists[i].second->size(), y.lists[i].second->size()) << x.lists[i].first;
    for (std::size_t f = 0; f < x.lists[i].second->size(); ++f) {
      const Eigen::MatrixXd& p = (*x.lists[i].second)[f];
      const Eigen::MatrixXd& q = (*y.lists[i].second)[f];
      EXPECT_LT((p - q).cwiseAbs().maxCoeff(), tolerance)
          << "J_" << x.lists[i].first << "[" << f << "]";
    }
  }
}

TEST(Policy, FastJacobiansEqualPushedTangents) {
  Policy policy(Network(5), ThreeJointLayout(), Robot());
  ASSERT_TRUE(policy.is_mlp());
  Steps(&policy, 6, 5);
  PolicyJacobians fast, reference;
  ASSERT_EQ(policy.Jacobians(&fast), PolicyStatus::kOk);
  ASSERT_EQ(policy.JacobiansByTangents(&reference), PolicyStatus::kOk);
  EXPECT_EQ(fast.J_q.size(), 3u);
  // float32 against double, entries up to 1
  ExpectNear(fast, reference, 1e-6);
}

TEST(Policy, TheGraphEngineGivesTheSameAsTheFastPath) {
  Policy fast(Network(5), ThreeJointLayout(), Robot());
  PolicyOptions options;
  options.engine = PolicyOptions::Engine::kGraphFloat;
  Policy graph(Network(5), ThreeJointLayout(), Robot(), options);
  ASSERT_FALSE(graph.is_mlp());
  Steps(&fast, 6, 5);
  Steps(&graph, 6, 5);
  EXPECT_LT((fast.raw_action() - graph.raw_action()).cwiseAbs().maxCoeff(), 1e-5);
  PolicyJacobians a, b;
  ASSERT_EQ(fast.Jacobians(&a), PolicyStatus::kOk);
  ASSERT_EQ(graph.Jacobians(&b), PolicyStatus::kOk);
  ExpectNear(a, b, 1e-5);
}

// δa_t = Σ_i J[i] δ(quantity of i steps ago): history is perturbed i steps before the end and the
// policy run on, with the actions it feeds itself overridden by what they were (their channel is
// J_a's).
TEST(Policy, JacobiansAreCentralDifferencesThroughTheHistory) {
  PolicyOptions options;
  options.engine = PolicyOptions::Engine::kGraphDouble;
  ObservationLayout layout = ThreeJointLayout();
  // without the feedback of actions the perturbation reaches the end through the history alone
  layout.terms.erase(layout.terms.begin());
  const auto graph = Network(7, 54);
  const auto last_action = [&](const std::function<void(int, ObservationInput*)>& perturb) {
    Policy policy(graph, layout, Robot(), options);
    Rng rng(8);
    Eigen::VectorXd target;
    for (int step = 0; step < 4; ++step) {
      ObservationInput in = RandomInput(&rng);
      perturb(step, &in);
      EXPECT_EQ(policy.Act(in, &target), PolicyStatus::kOk);
    }
    return policy.raw_action();
  };
  Policy policy(graph, layout, Robot(), options);
  Steps(&policy, 8, 4);
  PolicyJacobians exact;
  ASSERT_EQ(policy.Jacobians(&exact), PolicyStatus::kOk);
  EXPECT_TRUE(exact.J_a.empty());

  using Pick = std::function<double&(ObservationInput*, int)>;
  struct Observed {
    const char* name;
    const std::vector<Eigen::MatrixXd>* blocks;
    Pick pick;
  };
  const std::vector<Observed> quantities = {
      {"q", &exact.J_q, [](ObservationInput* in, int i) -> double& { return in->q[i]; }},
      {"v", &exact.J_v, [](ObservationInput* in, int i) -> double& { return in->qd[i]; }},
      {"tau", &exact.J_tau, [](ObservationInput* in, int i) -> double& { return in->tau[i]; }},
      {"g", &exact.J_g, [](ObservationInput* in, int i) -> double& { return in->g_B[i]; }},
      {"w", &exact.J_w, [](ObservationInput* in, int i) -> double& { return in->w_WB_B[i]; }}};
  const double h = 1e-5;
  for (const Observed& observed : quantities) {
    const char* name = observed.name;
    const std::vector<Eigen::MatrixXd>* blocks = observed.blocks;
    ASSERT_EQ(blocks->size(), 3u) << name;
    for (int age = 0; age < 3; ++age) {
      for (int c = 0; c < (*blocks)[0].cols(); ++c) {
        const auto shift = [&](double by) {
          return last_action([&](int step, ObservationInput* in) {
            if (step == 3 - age) observed.pick(in, c) += by;
          });
        };
        const Eigen::VectorXd difference = (shift(h) - shift(-h)) / (2 * h);
        // Elu's kink in the second derivative: h where it is crossed
        EXPECT_LT(
            (difference - (*blocks)[static_cast<std::size_t>(age)].col(c)).cwiseAbs().maxCoeff(),
            1e-6)
            << name << " age " << age << " column " << c;
      }
    }
  }
}

TEST(Policy, JacobianOfThePreviousActionIsThatOfItsColumnsInTheNetwork) {
  PolicyOptions options;
  options.engine = PolicyOptions::Engine::kGraphDouble;
  const auto graph = Network(9);
  Policy policy(graph, ThreeJointLayout(), Robot(), options);
  Steps(&policy, 10, 4);
  PolicyJacobians exact;
  ASSERT_EQ(policy.Jacobians(&exact), PolicyStatus::kOk);
  GraphEvaluator<double> evaluator(graph);
  for (int i = 0; i < 63; ++i)
    evaluator.input(0)[static_cast<std::size_t>(i)] = policy.observation()[i];
  evaluator.Evaluate();
  const std::vector<double> J = DifferenceJacobian(&evaluator, 0, 0, 1e-5);
  const int joint[3] = {3, 2, 0};  // of action 0, 1, 2
  for (int age = 0; age < 3; ++age) {
    for (int r = 0; r < 3; ++r) {
      for (int c = 0; c < 3; ++c) {
        const int column = (2 - age) * 21 + c;
        // the observation itself is only known to float32 here
        EXPECT_NEAR(exact.J_a[static_cast<std::size_t>(age)](joint[r], joint[c]),
                    J[static_cast<std::size_t>(r * 63 + column)],
                    1e-6);
      }
    }
    EXPECT_EQ(exact.J_a[static_cast<std::size_t>(age)].row(1).norm(),
              0);  // the joint it does not know
    EXPECT_EQ(exact.J_q[static_cast<std::size_t>(age)].col(1).norm(), 0);
  }
}

TEST(Policy, SumsAreTheSumsOfTheFrames) {
  for (const auto engine : {PolicyOptions::Engine::kAuto, PolicyOptions::Engine::kGraphFloat}) {
    PolicyOptions options;
    options.engine = engine;
    Policy policy(Network(11), ThreeJointLayout(), Robot(), options);
    Steps(&policy, 12, 6);
    PolicyJacobians all;
    SummedJacobians sums;
    ASSERT_EQ(policy.Jacobians(&all), PolicyStatus::kOk);
    ASSERT_EQ(policy.Jacobians(&sums), PolicyStatus::kOk);
    const auto expect = [](const Eigen::MatrixXd& sum,
                           const std::vector<Eigen::MatrixXd>& blocks,
                           const char* name) {
      Eigen::MatrixXd total = Eigen::MatrixXd::Zero(sum.rows(), sum.cols());
      for (const Eigen::MatrixXd& block : blocks) total += block;
      EXPECT_LT((sum - total).cwiseAbs().maxCoeff(), 1e-6) << name;
      EXPECT_GT(total.norm(), 1e-3) << name;
    };
    EXPECT_LT((sums.J_q0 - all.J_q[0]).cwiseAbs().maxCoeff(), 1e-6);
    expect(sums.S_q, all.J_q, "S_q");
    expect(sums.S_a, all.J_a, "S_a");
    expect(sums.S_tau, all.J_tau, "S_tau");
    expect(sums.S_g, all.J_g, "S_g");
  }
}

// K₁, K_s and the action loop come out of these as out of all frames.
TEST(Policy, StaticJacobiansAreAllFramesWithTheOlderOnesSummed) {
  for (const auto engine : {PolicyOptions::Engine::kAuto, PolicyOptions::Engine::kGraphFloat}) {
    PolicyOptions options;
    options.engine = engine;
    Policy policy(Network(11), ThreeJointLayout(), Robot(), options);
    Steps(&policy, 12, 6);
    PolicyJacobians all, statics;
    ASSERT_EQ(policy.Jacobians(&all), PolicyStatus::kOk);
    ASSERT_EQ(policy.StaticJacobians(&statics), PolicyStatus::kOk);
    ASSERT_EQ(statics.J_q.size(), 2u);
    EXPECT_LT((statics.J_q[0] - all.J_q[0]).cwiseAbs().maxCoeff(), 1e-6);
    EXPECT_LT((statics.J_q[1] - all.J_q[1] - all.J_q[2]).cwiseAbs().maxCoeff(), 1e-6);
    ASSERT_EQ(statics.J_a.size(), 3u);
    ASSERT_EQ(statics.J_tau.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_LT((statics.J_a[i] - all.J_a[i]).cwiseAbs().maxCoeff(), 1e-6);
      EXPECT_LT((statics.J_tau[i] - all.J_tau[i]).cwiseAbs().maxCoeff(), 1e-6);
    }
    ASSERT_EQ(statics.J_g.size(), 1u);
    EXPECT_LT((statics.J_g[0] - all.J_g[0] - all.J_g[1] - all.J_g[2]).cwiseAbs().maxCoeff(), 1e-6);
    EXPECT_TRUE(statics.J_v.empty());
    EXPECT_TRUE(statics.J_w.empty());
  }
}

TEST(Policy, RestingJacobiansAreAllFramesWithoutSpeedsBitForBit) {
  for (const auto engine : {PolicyOptions::Engine::kAuto, PolicyOptions::Engine::kGraphFloat}) {
    PolicyOptions options;
    options.engine = engine;
    Policy policy(Network(11), ThreeJointLayout(), Robot(), options);
    Steps(&policy, 12, 6);
    PolicyJacobians all, resting;
    ASSERT_EQ(policy.Jacobians(&all), PolicyStatus::kOk);
    ASSERT_EQ(policy.RestingJacobians(&resting), PolicyStatus::kOk);
    ASSERT_FALSE(all.J_v.empty());
    EXPECT_EQ(resting.J_q, all.J_q);
    EXPECT_EQ(resting.J_a, all.J_a);
    EXPECT_EQ(resting.J_tau, all.J_tau);
    EXPECT_EQ(resting.J_g, all.J_g);
    EXPECT_TRUE(resting.J_v.empty());
    EXPECT_TRUE(resting.J_w.empty());
  }
}

TEST(Policy, OneFrameAndFewTermsLeaveTheOthersEmpty) {
  ObservationLayout layout = ThreeJointLayout();
  layout.history = 1;
  layout.terms = {layout.terms[3]};  // pos
  Policy policy(Network(13, 3), layout, Robot());
  Steps(&policy, 14, 2);
  SummedJacobians sums;
  ASSERT_EQ(policy.Jacobians(&sums), PolicyStatus::kOk);
  EXPECT_EQ(sums.J_q0, sums.S_q);
  EXPECT_GT(sums.S_q.norm(), 1e-3);
  EXPECT_EQ(sums.S_a.size(), 0);
  EXPECT_EQ(sums.S_g.size(), 0);
}

// A clip has slope zero: what it holds does not move the action. The fast path was planned without
// and must step aside.
TEST(Policy, ClippedObservationsAndActionsHaveNoDerivative) {
  ObservationLayout layout = ThreeJointLayout();
  layout.terms[4].clip = 0.02;  // vel, after its scale of 0.05
  Policy policy(Network(15), layout, Robot());
  Rng rng(16);
  Eigen::VectorXd target;
  ObservationInput in = RandomInput(&rng);
  in.qd << 0.1, 0.1, 3.0, -0.1;  // b is clipped
  for (int i = 0; i < 3; ++i) ASSERT_EQ(policy.Act(in, &target), PolicyStatus::kOk);
  PolicyJacobians jacobians;
  ASSERT_EQ(policy.Jacobians(&jacobians), PolicyStatus::kOk);
  for (const Eigen::MatrixXd& J_v : jacobians.J_v) {
    EXPECT_EQ(J_v.col(2).norm(), 0);
    EXPECT_GT(J_v.col(0).norm(), 1e-4);
  }
  EXPECT_FLOAT_EQ(policy.observation()[42 + 12], 0.02f);

  layout = ThreeJointLayout();
  layout.action.clip = 1e-6;
  Policy held(Network(15), layout, Robot());
  Steps(&held, 16, 3);
  ASSERT_EQ(held.Jacobians(&jacobians), PolicyStatus::kOk);
  EXPECT_EQ(jacobians.J_q[0].norm(), 0);
  EXPECT_NEAR(held.raw_action().cwiseAbs().maxCoeff(), 1e-6, 1e-12);
}

TEST(Policy, CopiesGoTheirOwnWay) {
  Policy policy(Network(17), ThreeJointLayout(), Robot());
  Steps(&policy, 18, 3);
  Policy copy = policy;
  Steps(&policy, 19, 3);
  Steps(&copy, 19, 3);
  EXPECT_EQ(policy.raw_action(), copy.raw_action());
  Steps(&policy, 20, 1);
  EXPECT_NE(policy.raw_action(), copy.raw_action());
  SummedJacobians sums;
  EXPECT_EQ(copy.Jacobians(&sums), PolicyStatus::kOk);
}

TEST(Policy, ResetIsTheSameAsNew) {
  Policy policy(Network(17), ThreeJointLayout(), Robot()),
      fresh(Network(17), ThreeJointLayout(), Robot());
  Steps(&policy, 18, 7);
  policy.Reset();
  Steps(&policy, 19, 4);
  Steps(&fresh, 19, 4);
  EXPECT_EQ(policy.raw_action(), fresh.raw_action());
}

TEST(Policy, ANanInIsToldAndDoesNotEnterTheHistory) {
  Policy policy(Network(21), ThreeJointLayout(), Robot()),
      twin(Network(21), ThreeJointLayout(), Robot());
  Steps(&policy, 22, 2);
  Steps(&twin, 22, 2);
  Rng rng(23);
  ObservationInput in = RandomInput(&rng);
  Eigen::VectorXd target = Eigen::Vector4d(1, 2, 3, 4);
  const ObservationInput good = in;
  in.qd[2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(policy.Act(in, &target), PolicyStatus::kInputNotFinite);
  EXPECT_EQ(target, Eigen::Vector4d(1, 2, 3, 4));
  Eigen::VectorXd target_twin;
  ASSERT_EQ(policy.Act(good, &target), PolicyStatus::kOk);
  ASSERT_EQ(twin.Act(good, &target_twin), PolicyStatus::kOk);
  EXPECT_EQ(target, target_twin);
}

TEST(Policy, ANanOutIsTold) {
  // log of a negative sum
  GraphBuilder b;
  const ValueId x = b.AddInput("obs", {1, 3});
  b.AddOutput("actions", b.AddUnary(Op::kLog, "log", x));
  ObservationLayout layout = ThreeJointLayout();
  layout.history = 1;
  layout.terms = {layout.terms[4]};  // vel
  Policy policy(std::make_shared<const Graph>(b.Finish()), layout, Robot());
  EXPECT_FALSE(policy.is_mlp());
  ObservationInput in;
  in.q = Eigen::Vector4d::Zero();
  in.qd = Eigen::Vector4d(1, 1, -1, 1);
  Eigen::VectorXd target = Eigen::Vector4d(1, 2, 3, 4);
  EXPECT_EQ(policy.Act(in, &target), PolicyStatus::kOutputNotFinite);
  EXPECT_EQ(target, Eigen::Vector4d(1, 2, 3, 4));
  in.qd[2] = 1;
  EXPECT_EQ(policy.Act(in, &target), PolicyStatus::kOk);
  EXPECT_STREQ(Describe(PolicyStatus::kOutputNotFinite),
               "the policy answered with a NaN or an infinity");
}

TEST(Policy, TheGaitClockRunsWhileWalkingAndStopsWhileStanding) {
  ObservationLayout layout = ThreeJointLayout();
  layout.history = 1;
  layout.clock.period = 0.5;
  layout.clock.offsets = {0, kPi};
  layout.clock.standing_phase = kPi;
  ObservationTerm sine, cosine;
  sine.name = "sin";
  sine.source = TermSource::kPhaseSin;
  cosine.name = "cos";
  cosine.source = TermSource::kPhaseCos;
  layout.terms = {sine, cosine, layout.terms[3]};
  Policy policy(Network(25, 7), layout, Robot());
  ObservationInput in;
  in.q = in.qd = Eigen::Vector4d::Zero();
  Eigen::VectorXd target;
  const auto expect = [&](double left, double right) {
    ASSERT_EQ(policy.Act(in, &target), PolicyStatus::kOk);
    EXPECT_NEAR(policy.observation()[0], std::sin(left), 1e-6);
    EXPECT_NEAR(policy.observation()[1], std::sin(right), 1e-6);
    EXPECT_NEAR(policy.observation()[2], std::cos(left), 1e-6);
    EXPECT_NEAR(policy.observation()[3], std::cos(right), 1e-6);
  };
  const double step = 2 * kPi * 0.02 / 0.5;
  in.command.lin_vel[0] = 0.5;
  for (int i = 0; i < 60; ++i) expect(i * step, kPi + i * step);
  in.command.lin_vel[0] = 0;
  expect(kPi, kPi);
  expect(kPi, kPi);
  in.command.yaw_rate = 0.3;  // sets off again from the offsets
  expect(0, kPi);
  expect(step, kPi + step);
  in.phase = Eigen::Vector2d(0.3, 0.4);  // told from outside
  expect(0.3, 0.4);
}

// As some trainers do it: a standing robot is shown neither sine nor cosine.
TEST(Policy, AStandingClockMayShowZeros) {
  ObservationLayout layout = ThreeJointLayout();
  layout.history = 1;
  layout.clock.period = 0.5;
  layout.clock.offsets = {0.3};
  layout.clock.standing_zero = true;
  ObservationTerm sine, cosine;
  sine.name = "sin";
  sine.source = TermSource::kPhaseSin;
  cosine.name = "cos";
  cosine.source = TermSource::kPhaseCos;
  layout.terms = {sine, cosine, layout.terms[3]};
  Policy policy(Network(25, 5), layout, Robot());
  ObservationInput in;
  in.q = in.qd = Eigen::Vector4d::Zero();
  Eigen::VectorXd target;
  ASSERT_EQ(policy.Act(in, &target), PolicyStatus::kOk);
  EXPECT_EQ(policy.observation()[0], 0);
  EXPECT_EQ(policy.observation()[1], 0);
  in.command.lin_vel[0] = 0.5;
  ASSERT_EQ(policy.Act(in, &target), PolicyStatus::kOk);
  EXPECT_NEAR(policy.observation()[0], std::sin(0.3), 1e-6);
  EXPECT_NEAR(policy.observation()[1], std::cos(0.3), 1e-6);
}

// Below a speed of 0 is nothing: such a clock never stops.
TEST(Policy, AStandingSpeedOfZeroIsAClockThatNeverStops) {
  ObservationLayout layout = ThreeJointLayout();
  layout.history = 1;
  layout.clock.period = 0.5;
  layout.clock.offsets = {0};
  layout.clock.standing_speed = 0;
  ObservationTerm sine;
  sine.name = "sin";
  sine.source = TermSource::kPhaseSin;
  layout.terms = {sine, layout.terms[3]};
  Policy policy(Network(25, 4), layout, Robot());
  ObservationInput in;
  in.q = in.qd = Eigen::Vector4d::Zero();
  Eigen::VectorXd target;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(policy.Act(in, &target), PolicyStatus::kOk);
    EXPECT_NEAR(policy.observation()[0], std::sin(i * 2 * kPi * 0.02 / 0.5), 1e-6);
  }
}

TEST(Policy, AJointTheObservationRepeatsAddsUp) {
  ObservationLayout layout = ThreeJointLayout();
  layout.history = 1;
  ObservationTerm again = layout.terms[3];
  again.name = "again";
  layout.terms = {layout.terms[3], again};
  Policy policy(Network(26, 6), layout, Robot());
  Steps(&policy, 27, 1);
  SummedJacobians sums;
  PolicyJacobians reference;
  ASSERT_EQ(policy.Jacobians(&sums), PolicyStatus::kOk);
  ASSERT_EQ(policy.JacobiansByTangents(&reference), PolicyStatus::kOk);
  EXPECT_LT((sums.S_q - reference.J_q[0]).cwiseAbs().maxCoeff(), 1e-6);
}

#ifdef EIGEN_RUNTIME_NO_MALLOC
// The loop of a robot: act, and sum the Jacobians, without touching Eigen's heap.
TEST(Policy, TheLoopDoesNotAllocate) {
  Policy policy(Network(28), ThreeJointLayout(), Robot());
  const ObservationInput in = Steps(&policy, 29, 3);
  Eigen::VectorXd target(4);
  SummedJacobians sums;
  PolicyJacobians all;
  ASSERT_EQ(policy.Jacobians(&sums), PolicyStatus::kOk);
  ASSERT_EQ(policy.Jacobians(&all), PolicyStatus::kOk);
  Eigen::internal::set_is_malloc_allowed(false);
  const PolicyStatus acted = policy.Act(in, &target);
  const PolicyStatus summed = policy.Jacobians(&sums);
  const PolicyStatus framed = policy.Jacobians(&all);
  Eigen::internal::set_is_malloc_allowed(true);
  EXPECT_EQ(framed, PolicyStatus::kOk);
  EXPECT_EQ(acted, PolicyStatus::kOk);
  EXPECT_EQ(summed, PolicyStatus::kOk);
}
#endif

std::string ErrorOf(std::shared_ptr<const Graph> graph,
                    const ObservationLayout& layout,
                    const PolicyRobot& robot) {
  try {
    PolicyOptions options;
    options.place = "x.onnx";
    Policy policy(std::move(graph), layout, robot, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Policy, AWrongWidthListsTheTerms) {
  EXPECT_EQ(ErrorOf(Network(30, 60), ThreeJointLayout(), Robot()),
            "x.onnx: the network's input 'obs' takes 60 numbers, layout 'three' gives 63:\n"
            "  actions: 3, from 0 of the frame\n"
            "  omega: 3, from 3 of the frame\n"
            "  twist: 3, from 6 of the frame\n"
            "  pos: 3, from 9 of the frame\n"
            "  vel: 3, from 12 of the frame\n"
            "  torque: 2, from 15 of the frame\n"
            "  gravity: 3, from 17 of the frame\n"
            "  ref: 1, from 20 of the frame\n"
            "  frame: 21 × 3 frames\n"
            "  together: 63\n"
            "  Choose the layout the policy was trained with (--layout).");
  EXPECT_EQ(ErrorOf(Network(30, 63, 5), ThreeJointLayout(), Robot()),
            "x.onnx: the network's output 'actions' has 5 actions, layout 'three' maps 3 joints");
}

TEST(Policy, AMissingJointIsNamed) {
  PolicyRobot robot = Robot();
  robot.joints[3] = "d";
  EXPECT_EQ(ErrorOf(Network(31), ThreeJointLayout(), robot)
                .rfind("x.onnx: layout 'three': joint 'c' is not one of the robot's 4 joints", 0),
            0u);
}

// What stands in a file of its own is mended there, not in the policy.
TEST(Policy, AMissingJointOfALayoutFileNamesThatFile) {
  ObservationLayout layout = ThreeJointLayout();
  layout.file = "my.yaml";
  PolicyRobot robot = Robot();
  robot.joints[3] = "cc";
  EXPECT_EQ(ErrorOf(Network(31), layout, robot),
            "my.yaml: joint 'c' is not one of the robot's 4 joints; did you mean a, b or cc?");
  EXPECT_EQ(
      ErrorOf(Network(30, 60), layout, Robot())
          .rfind("x.onnx: the network's input 'obs' takes 60 numbers, layout 'three' (my.yaml) "
                 "gives 63:",
                 0),
      0u);
}

TEST(Policy, OtherInputsMustNotMatter) {
  Rng rng(32);
  const auto build = [&](bool used) {
    GraphBuilder b;
    const ValueId x = b.AddInput("obs", {1, 63}), t = b.AddInput("time_step", {1, 3});
    ValueId y = b.AddGemm("g", x, b.AddConstant("w", {63, 3}, RandomFloats(&rng, 189)), -1);
    if (used) y = b.AddBinary(Op::kAdd, "add", y, t);
    b.AddOutput("actions", y);
    b.AddOutput("reference", t);
    return std::make_shared<const Graph>(b.Finish());
  };
  ObservationLayout layout = ThreeJointLayout();
  EXPECT_EQ(ErrorOf(build(false), layout, Robot())
                .rfind("x.onnx: the network has 2 inputs; name the observation's", 0),
            0u);
  layout.input = "obs";
  layout.output = "actions";
  EXPECT_EQ(ErrorOf(build(false), layout, Robot()), "no error");
  EXPECT_EQ(ErrorOf(build(true), layout, Robot()),
            "x.onnx: the action depends on a second input 'time_step'; only policies with one "
            "observation input can be run");
  layout.input = "ob";
  EXPECT_EQ(
      ErrorOf(build(false), layout, Robot()),
      "x.onnx: layout 'three': input: the network of x.onnx has no input 'ob'; did you mean obs?");
  layout.file = "my.yaml";
  EXPECT_EQ(ErrorOf(build(false), layout, Robot()),
            "my.yaml: input: the network of x.onnx has no input 'ob'; did you mean obs?");
  layout.input = "obs";
  layout.output = "action";
  EXPECT_EQ(ErrorOf(build(false), layout, Robot()),
            "my.yaml: output: the network of x.onnx has no output 'action'; did you mean actions?");
}

BudgetCommand TestRanges() {
  BudgetCommand command;
  command.range = {BudgetRange{200, 3000}, BudgetRange{100, 1000}, BudgetRange{20, 300}};
  return command;
}

// (B3): a commanded policy sees ln of its budget, the ranges scaled to ±1. Nobody who does not know
// of commands gives it anything but the middle.
TEST(Policy, SeesItsBudget) {
  ObservationLayout layout = ThreeJointLayout();
  AddBudgetTerms(TestRanges(), &layout);
  ASSERT_EQ(ObservationWidth(layout), 72);
  AddBudgetTerms(TestRanges(), &layout);
  ASSERT_EQ(ObservationWidth(layout), 72) << "terms that are there already stay alone";
  Policy policy(Network(1, 72), layout, Robot());
  Rng rng(2);
  Eigen::VectorXd target;
  ObservationInput in = RandomInput(&rng);
  const auto expect = [&](double com, double hands, double null) {
    ASSERT_EQ(policy.Act(in, &target), PolicyStatus::kOk);
    EXPECT_NEAR(policy.observation()[69], com, 1e-6);
    EXPECT_NEAR(policy.observation()[70], hands, 1e-6);
    EXPECT_NEAR(policy.observation()[71], null, 1e-6);
  };
  expect(0, 0, 0);
  in.command.budget = BudgetValues{200, 1000, 300};
  expect(-1, 1, 1);
  in.command.budget = BudgetValues{std::sqrt(200.0 * 3000), std::sqrt(100.0 * 1000), 20};
  expect(0, 0, -1);
  // what holds where the input does not say
  in.command.budget.reset();
  policy.SetBudget({3000, 100, 20});
  expect(1, -1, -1);
  EXPECT_TRUE(policy.sees_budget());
  EXPECT_FALSE(Policy(Network(1), ThreeJointLayout(), Robot()).sees_budget());
  for (const double wrong : {0.0, -5.0, std::numeric_limits<double>::quiet_NaN()}) {
    in.command.budget = BudgetValues{200, wrong, 300};
    EXPECT_EQ(policy.Act(in, &target), PolicyStatus::kInputNotFinite) << wrong;
  }
  // one that is told nothing does not look
  Policy plain(Network(1), ThreeJointLayout(), Robot());
  EXPECT_EQ(plain.Act(in, &target), PolicyStatus::kOk);
}

}  // namespace
}  // namespace silc
