// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/penalty.h"

#include <gtest/gtest.h>

#include <Eigen/SVD>

#include <cmath>
#include <complex>
#include <functional>
#include <numbers>
#include <set>

#include "silc/base/check.h"
#include "silc/learn/frequency_penalty.h"
#include "silc/learn/ppo.h"
#include "silc/stiffness/condition_reference.h"
#include "silc/stiffness/dynamic_stiffness.h"
#include "silc/stiffness/frequency_condition.h"
#include "silc/stiffness/joint_stiffness.h"
#include "silc/stiffness/observer.h"
#include "silc/stiffness/penalty_reference.h"
#include "silc/stiffness/row_rank.h"
#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using namespace test::eager;
using Eigen::MatrixXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Tensor ToTensor(const MatrixXd& m) {
  const RowMajor rows = m;
  return at::from_blob(const_cast<double*>(rows.data()), {m.rows(), m.cols()}, at::kDouble).clone();
}
MatrixXd ToEigen(const Tensor& t) {
  const Tensor host = t.detach().to(at::kDouble).contiguous();
  return Eigen::Map<const RowMajor>(host.data_ptr<double>(), t.size(0), t.size(1));
}

constexpr int kJoints = test::StickHumanoid::kJoints;  // 20
constexpr int kBatch = 8, kFrame = 2 * kJoints + 6, kFrames = 2, kObs = kFrame * kFrames;

// A robot of 20 joints in every contact mode, two small actors that see joints, previous actions, a
// few torques and gravity in two frames, and the plain Eigen objects that belong to each sample.
struct World {
  Servo servo;
  BudgetSpec spec;
  std::vector<BodyJacobians> body;
  std::vector<ContactKinematics> contact;
  ContactBatch batch;
  std::vector<Network> networks;
  Tensor x, action;
  std::vector<ColumnEntry> seen_actions, seen_torque, seen_joints, seen_gravity;
  PenaltyInput input;
  PenaltyConfig config;

  explicit World(NullWeight weight = NullWeight::kIdentity,
                 const std::vector<int>& hidden = {10, 9},
                 const Eigen::Vector3d& hand_stiffness = {200, 250, 300}) {
    HoldToOneThread();  // matrices of 20 × 20: BLAS threads would only get into each other's way
    at::manual_seed(11);
    Rng rng(17);
    servo = test::RandomServo(kJoints, &rng);
    spec.com = Eigen::Vector3d(200, 300, 20000);
    spec.hand[1] = hand_stiffness;
    spec.weight = weight;
    spec.null_stiffness = weight == NullWeight::kIdentity ? 50 : 0.5;
    std::vector<Tensor> com, hand, closing, gravity;
    std::vector<int> modes;
    for (int i = 0; i < kBatch; ++i) {
      const auto mode = static_cast<ContactMode>(i % 4);
      ContactKinematics k;
      body.push_back(test::StickHumanoid::Jacobians(test::StickHumanoid::Stance(&rng)));
      SILC_CHECK(ComputeContactKinematics(body.back(), mode, nullptr, &k) == StiffnessStatus::kOk);
      modes.push_back(i % 4);
      com.push_back(ToTensor(k.com));
      hand.push_back(at::stack({ToTensor(k.hand_on_base[0]), ToTensor(k.hand_on_base[1])}));
      // in other modes the closing constraint is not read: rubbish there must not matter
      closing.push_back(k.closed ? ToTensor(k.J_c) : at::full({6, kJoints}, NAN, at::kDouble));
      gravity.push_back(ToTensor(k.E));
      contact.push_back(k);
    }
    batch = {at::tensor(modes).to(at::kByte),
             at::stack(com),
             at::stack(hand),
             at::stack(closing),
             at::stack(gravity)};
    const int outputs[] = {12, 8};
    for (std::uint32_t k = 0; k < 2; ++k) {
      networks.push_back(MakeNetwork({.inputs = kObs, .hidden = hidden, .outputs = outputs[k]},
                                     std::vector<double>(outputs[k], 0.3 + 0.2 * k),
                                     23,
                                     k,
                                     at::kDouble));
    }
    {
      at::NoGradGuard no_tape;
      for (Network& network : networks) {
        network.flat.mul_(2);
        network.std.div_(2);
      }
    }
    x = at::randn({kBatch, kObs}, at::kDouble);
    action = at::randn({kBatch, kJoints}, at::kDouble);

    std::vector<ColumnEntry> q0, q, a, tau, g;
    for (int frame = 0; frame < kFrames; ++frame) {
      const int at = frame * kFrame;  // newest last
      for (int j = 0; j < kJoints; ++j) {
        q.push_back({at + j, j, 1.f});
        if (frame == kFrames - 1) q0.push_back(q.back());
        a.push_back({at + kJoints + j, j, 0.5f});
      }
      for (int j = 0; j < 3; ++j) {
        tau.push_back({at + 2 * kJoints + j, kJoints - 1 - j, 0.01f});
        g.push_back({at + 2 * kJoints + 3 + j, j, 1.f});
      }
    }
    const auto dense = [](const std::vector<ColumnEntry>& e, int n) {
      return DenseColumns(e, kObs, n, at::kDouble);
    };
    input.channels = {
        dense(q0, kJoints), dense(q, kJoints), dense(a, kJoints), dense(tau, kJoints), dense(g, 3)};
    input.servo = {ToTensor(servo.kp).view(-1), ToTensor(servo.alpha).view(-1)};
    input.budget = MakeBudgetFactors(spec, input.servo.kp, batch, at::kDouble);
    input.gravity = batch.gravity;
    input.count = kBatch;
    seen_actions = a;
    seen_torque = tau;
    seen_joints = q;
    seen_gravity = g;
  }

  void SetFloor(const Eigen::Vector3d& hand_floor) {
    spec.hand_floor = hand_floor;
    input.budget = MakeBudgetFactors(spec, input.servo.kp, batch, at::kDouble);
  }
  // What the policy sees of q it also sees of the velocity, mixed in: no number more is needed.
  std::vector<ColumnEntry> SeenVelocities() const {
    std::vector<ColumnEntry> v = seen_joints;
    for (ColumnEntry& entry : v) entry.value = 0.03f;
    return v;
  }
  void SetFrequencies(const std::vector<double>& hz, const LoopTiming& timing) {
    std::vector<int> age(kObs);
    for (int i = 0; i < kObs; ++i) age[i] = kFrames - 1 - i / kFrame;
    const std::vector<ColumnEntry> v = SeenVelocities();
    const FrequencyEntries entries = {.q = seen_joints,
                                      .v = v,
                                      .a = seen_actions,
                                      .tau = seen_torque,
                                      .g = seen_gravity,
                                      .age = age};
    input.channels.frequencies =
        MakeFrequencyPoints(hz, timing.period, timing.latency, entries, kObs, kJoints, at::kDouble);
    input.servo.kd = ToTensor(servo.kd).view(-1);
  }
  // (S4) of one sample, by silc/stiffness
  Eigen::MatrixXcd Dynamic(int sample, const LoopTiming& timing, double omega) {
    PolicyJacobians J;
    const Tensor v = DenseColumns(SeenVelocities(), kObs, kJoints, at::kDouble);
    for (int frame = kFrames - 1; frame >= 0; --frame) {
      J.J_q.push_back(FrameJacobian(input.channels.q, frame, sample));
      J.J_v.push_back(FrameJacobian(v, frame, sample));
      J.J_a.push_back(FrameJacobian(input.channels.a, frame, sample));
      J.J_tau.push_back(FrameJacobian(input.channels.tau, frame, sample));
      J.J_g.push_back(FrameJacobian(input.channels.g, frame, sample));
    }
    BaseChannels base;
    base.E = &contact[sample].E;
    Eigen::MatrixXcd K;
    SILC_CHECK(DynamicStiffness(servo, J, timing, base, omega, &K) == StiffnessStatus::kOk);
    return K;
  }
  void SetLoopPoints(const std::vector<double>& angles) {
    std::vector<int> age(kObs);
    for (int i = 0; i < kObs; ++i) age[i] = kFrames - 1 - i / kFrame;
    input.channels.loop =
        MakeLoopPoints(angles, seen_actions, seen_torque, age, kObs, kJoints, at::kDouble);
  }
  // the forward pass again, with the weights as they are now
  const PenaltyInput& Run() {
    input.actors.clear();
    input.activations.clear();
    input.std.clear();
    input.action = {action.narrow(1, 0, 12), action.narrow(1, 12, 8)};
    for (const Network& network : networks) {
      input.actors.push_back(network.layers);
      input.activations.push_back(Forward(network.layers, x));
      input.std.push_back(network.std);
    }
    return input;
  }
  MatrixXd Jacobian(const Tensor& columns, int sample) {
    Run();
    return ToEigen(
        ActionJacobian(input.actors, FrozenSlopes(input.activations, 0, kBatch), columns)[sample]);
  }
  // of one frame of the observation alone
  MatrixXd FrameJacobian(const Tensor& columns, int frame, int sample) {
    Tensor one = at::zeros_like(columns);
    one.narrow(0, frame * kFrame, kFrame).copy_(columns.narrow(0, frame * kFrame, kFrame));
    return Jacobian(one, sample);
  }
  std::vector<Tensor> Leaves() const {
    std::vector<Tensor> leaves;
    for (const Network& n : networks) leaves.insert(leaves.end(), n.leaves.begin(), n.leaves.end());
    return leaves;
  }
};

// Gradient of the surrogate against central differences of the value, through every parameter.
void CheckGradient(World* world, const std::function<PenaltyResult(const PenaltyInput&)>& penalty) {
  const PenaltyResult result = penalty(world->Run());
  ASSERT_GT(result.value.item<double>(), 1e-4) << "nothing violated: the test would be empty";
  const auto gradients =
      torch::autograd::grad({result.surrogate}, world->Leaves(), {}, {}, false, true);
  at::NoGradGuard no_tape;
  std::size_t leaf = 0;
  double largest = 0, worst = 0;
  for (Network& network : world->networks) {
    std::int64_t at = 0;
    for (std::size_t l = 0; l < network.leaves.size(); ++l, ++leaf) {
      const std::int64_t count = network.leaves[l].numel();
      const Tensor g =
          gradients[leaf].defined() ? gradients[leaf].reshape(-1) : at::zeros({count}, at::kDouble);
      // every 7th parameter: all layers, weights, biases and spreads are met
      for (std::int64_t i = at % 7; i < count; i += 7) {
        const double h = 1e-6;
        Tensor entry = network.flat[at + i];
        entry.add_(h);
        const double up = penalty(world->Run()).value.item<double>();
        entry.sub_(2 * h);
        const double down = penalty(world->Run()).value.item<double>();
        entry.add_(h);
        largest = std::max(largest, std::abs(g[i].item<double>()));
        worst = std::max(worst, std::abs(g[i].item<double>() - (up - down) / (2 * h)));
      }
      at += count;
    }
  }
  // central differences at 1e-6: 1e-10 of the value, 1e-12 of the third derivative
  EXPECT_LT(worst, 2e-6 * largest) << "largest entry " << largest;
}

// "A few hundred steps on random data bring the violation to zero without a task."
// What is left of the violation, as a share of what it was. The rate falls to zero, so that the
// last steps settle and rounding does not decide what is left.
double ShareLeft(World* world,
                 const std::function<PenaltyResult(const PenaltyInput&)>& penalty,
                 int steps,
                 double rate) {
  std::vector<AdamW> adam;
  for (const Network& network : world->networks) adam.emplace_back(network.flat, 0.0);
  double value = 0, start = 0;
  for (int step = 0; step <= steps; ++step) {
    const PenaltyResult result = penalty(world->Run());
    value = result.value.item<double>();
    if (step == 0) start = value;
    if (value == 0 || step == steps) break;
    const auto gradients =
        torch::autograd::grad({result.surrogate}, world->Leaves(), {}, {}, false, true);
    std::size_t leaf = 0;
    for (std::size_t k = 0; k < world->networks.size(); ++k) {
      std::vector<Tensor> flat;
      for (const Tensor& l : world->networks[k].leaves) {
        const Tensor& g = gradients[leaf++];
        flat.push_back(g.defined() ? g.reshape(-1) : at::zeros({l.numel()}, at::kDouble));
      }
      adam[k].Step(world->networks[k].flat,
                   at::cat(flat),
                   at::full({}, rate * (1 - double(step) / steps), at::kDouble));
    }
  }
  EXPECT_GT(start, 1e-2);
  return value / start;
}

// (S6): the factors are the reduced budget of silc/stiffness, in every contact mode and
// weight, whichever points are named.
TEST(BudgetFactors, AreTheReducedBudgetPulledBackToTheJoints) {
  for (int trial = 0; trial < 16; ++trial) {
    const int named = trial / 2;  // bits: centre of mass, left hand, right hand
    World world(trial % 2 == 0 ? NullWeight::kIdentity : NullWeight::kServo);
    BudgetSpec spec = world.spec;
    spec.hand[0] = Eigen::Vector3d(1000, 900, 800);
    if (!(named & 1)) spec.com.reset();
    if (!(named & 2)) spec.hand[0].reset();
    if (!(named & 4)) spec.hand[1].reset();
    const BudgetFactors budget =
        MakeBudgetFactors(spec, world.input.servo.kp, world.batch, at::kDouble);
    for (int i = 0; i < kBatch; ++i) {
      SCOPED_TRACE(testing::Message() << "trial " << trial << ", sample " << i);
      ReducedBudget reduced;
      ASSERT_EQ(ComputeReducedBudget(spec, world.servo, world.contact[i], &reduced),
                StiffnessStatus::kOk);
      const bool closed = world.contact[i].closed;
      const MatrixXd N =
          closed ? MatrixXd(world.contact[i].N) : MatrixXd::Identity(kJoints, kJoints);
      const MatrixXd expected = N * test::Inverse(reduced.M) * N.transpose();
      const MatrixXd P = ToEigen(budget.P[i]);
      // Jacobians with a condition of some hundred, squared in both ways
      EXPECT_LT((P * P.transpose() - expected).norm(), 1e-9 * expected.norm());
      const MatrixXd Pi = N * test::Inverse(N.transpose() * N) * N.transpose();
      EXPECT_LT((ToEigen(budget.Pi[i]) - Pi).norm(), 1e-9);
      // the projector on the rows of P: on a closed chain, nothing in the forbidden directions
      const MatrixXd unit = ToEigen(budget.unit[i]);
      EXPECT_LT((P * unit - P).norm(), 1e-9 * P.norm());
      EXPECT_LT((unit * unit - unit).norm() + (unit - unit.transpose()).norm(), 1e-9);
      EXPECT_NEAR(unit.trace(), static_cast<double>(N.cols()), 1e-9);
      EXPECT_TRUE(budget.ok[i].item<bool>());
    }
  }
}

// (B2): with a command per sample the factors are those of each sample's own budget: in every
// contact mode, weight, choice of what is commanded, with and without a floor.
TEST(BudgetFactors, OfACommandAreThoseOfEachSamplesOwnBudget) {
  Rng rng(29);
  for (int trial = 0; trial < 32; ++trial) {
    const int ranges = trial / 4;  // bits: centre of mass, hands, null space
    World world(trial % 2 == 0 ? NullWeight::kIdentity : NullWeight::kServo);
    BudgetSpec spec = world.spec;
    spec.hand[0] = Eigen::Vector3d(1000, 900, 800);
    if (trial % 4 >= 2) spec.hand_floor = Eigen::Vector3d(0.1, 0, 0.75);
    const double null_low = trial % 2 == 0 ? 20 : 0.1;
    if (ranges & 1) spec.command.range[kCommandCom] = {200, 3000};
    if (ranges & 2) spec.command.range[kCommandHands] = {100, 1000};
    if (ranges & 4) spec.command.range[kCommandNull] = {null_low, 15 * null_low};
    const Tensor command = at::zeros({kBatch, kNumCommanded}, at::kDouble);
    for (int i = 0; i < kBatch; ++i) {
      for (int k = 0; k < kNumCommanded; ++k) {
        // a number without a range is not read: rubbish there must not matter
        const auto& range = spec.command.range[k];
        command[i][k] = range ? rng.Uniform(std::log(range->low), std::log(range->high)) : NAN;
      }
    }
    const BudgetFactors budget =
        MakeBudgetFactors(spec, world.input.servo.kp, world.batch, at::kDouble, command);
    for (int i = 0; i < kBatch; ++i) {
      SCOPED_TRACE(testing::Message() << "trial " << trial << ", sample " << i);
      BudgetValues values = {};
      for (int k = 0; k < kNumCommanded; ++k) values[k] = std::exp(command[i][k].item<double>());
      const BudgetSpec own = BudgetAt(spec, values);
      ReducedBudget reduced;
      ASSERT_EQ(ComputeReducedBudget(own, world.servo, world.contact[i], &reduced),
                StiffnessStatus::kOk);
      const ContactKinematics& c = world.contact[i];
      const MatrixXd N = c.closed ? MatrixXd(c.N) : MatrixXd::Identity(kJoints, kJoints);
      // the band's lower end, where there is a floor
      MatrixXd m = MatrixXd::Zero(kJoints, kJoints);
      for (int side = 0; side < 2; ++side) {
        const Eigen::Vector3d k = own.hand_floor.cwiseProduct(*own.hand[side]);
        const MatrixXd J = c.hand_on_base[side];
        m += J.transpose() * k.asDiagonal() * J;
      }
      const MatrixXd M = MatrixXd(reduced.M) - N.transpose() * m * N;
      const MatrixXd expected = N * test::Inverse(M) * N.transpose();
      const MatrixXd P = ToEigen(budget.P[i]);
      EXPECT_LT((P * P.transpose() - expected).norm(), 1e-8 * expected.norm());
      EXPECT_EQ(budget.floor.defined(), own.HasFloor());
      if (own.HasFloor()) {
        EXPECT_LT((ToEigen(budget.floor[i]) - m).norm(), 1e-9 * m.norm());
      }
      EXPECT_TRUE(budget.ok[i].item<bool>());
    }
  }
}

// In flight the centre of mass drops out and nothing of its Jacobian matters; the hands stay.
TEST(BudgetFactors, LeaveTheCentreOfMassOutInFlight) {
  World world;
  const BudgetFactors before =
      MakeBudgetFactors(world.spec, world.input.servo.kp, world.batch, at::kDouble);
  world.batch.com[3].fill_(0);
  const BudgetFactors after =
      MakeBudgetFactors(world.spec, world.input.servo.kp, world.batch, at::kDouble);
  EXPECT_TRUE(after.ok.all().item<bool>());
  EXPECT_TRUE(at::equal(before.P, after.P));
  BudgetSpec posture = world.spec;
  posture.hand[0].reset();
  posture.hand[1].reset();
  const BudgetFactors none =
      MakeBudgetFactors(posture, world.input.servo.kp, world.batch, at::kDouble);
  EXPECT_FALSE(at::allclose(none.P[3], after.P[3]));
}

TEST(BudgetFactors, MarksASampleThatLostRank) {
  World world;
  world.batch.com[1][2].copy_(world.batch.com[1][0]);  // left support: z moves as x does
  const BudgetFactors factors =
      MakeBudgetFactors(world.spec, world.input.servo.kp, world.batch, at::kDouble);
  EXPECT_FALSE(factors.ok[1].item<bool>());
  EXPECT_EQ(factors.ok.sum().item<int>(), kBatch - 1);
  EXPECT_TRUE(at::isfinite(factors.P).all().item<bool>());
}

// The rank rule is that of silc/stiffness, close to its threshold, for the stacked points and for
// the closing constraint, whose rows have different units.
TEST(BudgetFactors, MarkWhatStiffnessCallsDependent) {
  BudgetSpec spec;
  spec.com = Eigen::Vector3d(200, 200, 20000);
  for (const double part :
       {0.5 * kRankTolerance, 0.99 * kRankTolerance, 1.01 * kRankTolerance, 2 * kRankTolerance}) {
    SCOPED_TRACE(part);
    World world;
    // the third row is the first, but for this part
    MatrixXd com = MatrixXd::Identity(3, kJoints);
    com.row(2) = com.row(0) + part * com.row(2);
    world.batch.com[1].copy_(ToTensor(com));
    MatrixXd closing = MatrixXd::Identity(6, kJoints);
    closing.row(5) = 40 * (closing.row(1) + part * closing.row(5));
    world.batch.closing[0].copy_(ToTensor(closing));
    const BudgetFactors factors =
        MakeBudgetFactors(spec, world.input.servo.kp, world.batch, at::kDouble);
    closing.rowwise().normalize();
    BudgetFactor plain;
    const MatrixXd K_x = spec.com->asDiagonal();
    EXPECT_EQ(factors.ok[1].item<bool>(),
              FactorBudget(com, K_x, 50, &plain) == StiffnessStatus::kOk);
    EXPECT_EQ(factors.ok[0].item<bool>(), RowsAreIndependent(closing));
    EXPECT_EQ(factors.ok[1].item<bool>(), part > kRankTolerance);
    EXPECT_EQ(factors.ok[0].item<bool>(), part > kRankTolerance);
  }
}

// The first sample of an episode: nothing is known of its contacts, whatever the budget looks at.
TEST(BudgetFactors, LeavesSamplesOfUnknownContactOut) {
  World world;
  world.batch.mode[2] = 255;
  BudgetSpec posture;  // no task rows whose rank could tell
  for (const BudgetSpec& spec : {world.spec, posture}) {
    const BudgetFactors factors =
        MakeBudgetFactors(spec, world.input.servo.kp, world.batch, at::kDouble);
    EXPECT_FALSE(factors.ok[2].item<bool>());
    EXPECT_EQ(factors.ok.sum().item<int>(), kBatch - 1);
  }
}

TEST(Singular, BothWaysGiveTheSingularValues) {
  at::manual_seed(2);
  const Tensor A = at::randn({6, 7, 9}, at::kDouble);
  const Singular all = SingularOf(A), top = LargestSingular(A);
  for (int i = 0; i < 6; ++i) {
    const Eigen::VectorXd singular = test::SingularValues(ToEigen(A[i]));
    for (int k = 0; k < 7; ++k) {
      EXPECT_NEAR(all.sigma[i][k].item<double>(), singular[k], 1e-12);
    }
    EXPECT_NEAR(top.sigma[i][0].item<double>(), singular[0], 1e-9);
    const double uAv = (ToEigen(top.u[i]) * ToEigen(A[i]) * ToEigen(top.v[i]).transpose())(0, 0);
    EXPECT_NEAR(uAv, singular[0], 1e-9);
  }
}

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

// The sums over frames of one sample's Jacobians, as if they were of one frame.
PolicyJacobians SampleJacobians(World* world, int i) {
  const Channels& c = world->input.channels;
  PolicyJacobians jacobians;
  jacobians.J_q = {world->Jacobian(c.q, i)};
  jacobians.J_a = {world->Jacobian(c.a, i)};
  jacobians.J_tau = {world->Jacobian(c.tau, i)};
  jacobians.J_g = {world->Jacobian(c.g, i)};
  return jacobians;
}

StaticStiffness Reference(World* world, int i) {
  PolicySums sums;
  SumPolicy(SampleJacobians(world, i), kJoints, &sums);
  StaticChannels channels;
  channels.E = &world->contact[i].E;
  StaticStiffness stiffness;
  SILC_CHECK(SolveQuasiStatic(world->servo, sums, channels, &stiffness) == StiffnessStatus::kOk);
  return stiffness;
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

const Eigen::Vector3d kStiffHand(6000, 4000, 5000);  // [N/m] more than the policies below have

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

// (S12) and (S13) of a batch are those of silc/stiffness, sample by sample, in every contact mode,
// with and without a floor and a latency of more than a period.
TEST(PenaltyValue, FrequenciesAreTheTwinOfStiffness) {
  for (const double latency : {0.0, 0.005, 0.03}) {
    World world;
    if (latency > 0) world.SetFloor({0.1, 0, 0.3});
    const LoopTiming timing = {0.02, latency};
    const std::vector<double> hz = {0, 1, 3, 5};
    world.config.loop_gain_limit = 1e6;
    world.config.damping_weight = 0.7;
    const double at_rest = StaticPenalty(world.Run(), world.config).value.item<double>();
    world.SetFrequencies(hz, timing);
    const PenaltyResult result = StaticPenalty(world.Run(), world.config);
    double expected = 0;
    for (int i = 0; i < kBatch; ++i) {
      BudgetCoordinates coordinates;
      ASSERT_EQ(MakeBudgetCoordinates(world.spec, world.servo, world.contact[i], &coordinates),
                StiffnessStatus::kOk);
      double sigma = 0, driving = -1e9;
      for (const double f : {1.0, 3.0, 5.0}) {
        const double omega = 2 * std::numbers::pi * f;
        const FrequencyReading reading =
            ReadAtFrequency(world.Dynamic(i, timing, omega), world.servo, omega, coordinates);
        sigma = std::max(sigma, reading.sigma);
        driving = std::max(driving, reading.driving);
        expected += std::pow(std::max(0.0, reading.sigma - 1), 2) / 3 / kBatch;
        expected += 0.7 * std::pow(std::max(0.0, reading.driving), 2) / 3 / kBatch;
      }
      // by 1024 steps of the power method: a few digits where two values are close
      EXPECT_NEAR(result.frequency_sigma[i].item<double>(), sigma, 1e-4 * sigma)
          << latency << " " << i;
      // in a closed chain the forbidden directions count as 0
      const double shown = world.contact[i].closed ? std::max(driving, 0.0) : driving;
      EXPECT_NEAR(result.frequency_driving[i].item<double>(), shown, 1e-3 * (1 + std::abs(shown)))
          << latency << " " << i;
    }
    EXPECT_GT(expected, 1e-3);
    EXPECT_NEAR(result.value.item<double>() - at_rest, expected, 1e-3 * expected) << latency;
    // the static σ is what it was
    world.input.channels.frequencies.clear();
    EXPECT_TRUE(at::equal(result.sigma, StaticPenalty(world.Run(), world.config).sigma));
  }
}

// ---- gradients ----

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
TEST(PenaltyGradient, SilcAtFrequencies) {
  World world;
  world.config.damping_weight = 0.5;
  world.SetFrequencies({1, 5}, {0.02, 0.004});
  const double with = StaticPenalty(world.Run(), world.config).value.item<double>();
  world.config.damping_weight = 0;
  const double undamped = StaticPenalty(world.Run(), world.config).value.item<double>();
  ASSERT_GT(with - undamped, 1e-3);
  world.config.damping_weight = 0.5;
  CheckGradient(&world, [&](const PenaltyInput& in) {
    // the frequencies alone: what is left of the value without the static part and the loop
    PenaltyResult moving;
    moving.value = at::zeros({}, at::kDouble);
    moving.surrogate = at::zeros({}, at::kDouble);
    AddFrequencyPenalty(in, world.config, in.budget.ok, &moving);
    return moving;
  });
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

// ---- λ ----

TEST(PenaltyWeight, FollowsItsSchedule) {
  PenaltyConfig config;
  config.lambda = 2;
  config.start = 10;
  EXPECT_EQ(PenaltyWeight(config).Lambda(9), 0);
  EXPECT_EQ(PenaltyWeight(config).Lambda(10), 2);
  config.schedule = "ramp";
  config.ramp = 4;
  EXPECT_EQ(PenaltyWeight(config).Lambda(10), 0.5);
  EXPECT_EQ(PenaltyWeight(config).Lambda(99), 2);
}

TEST(PenaltyWeight, MultiplierRisesWhileViolatedAndFallsWhenTheTaskSuffers) {
  PenaltyConfig config;
  config.schedule = "multiplier";
  config.lambda = 0.1;
  config.score_reference = 10;
  PenaltyWeight weight(config);
  for (int i = 0; i < 50; ++i) weight.Follow(1.0, 9.5);
  const double risen = weight.Lambda(0);
  EXPECT_NEAR(risen, 0.1 * std::exp(50 * 0.02), 1e-9);  // never faster than its rate
  for (int i = 0; i < 100; ++i) weight.Follow(1.0, 2.0);
  EXPECT_LT(weight.Lambda(0), risen / 2);
  const double low = weight.Lambda(0);
  for (int i = 0; i < 200; ++i) weight.Follow(0.0, 9.5);
  EXPECT_LT(weight.Lambda(0), low);  // in budget: the weight is not needed
  weight.Follow(NAN, 1);
  EXPECT_TRUE(std::isfinite(weight.Lambda(0)));
}

TEST(PenaltyWeight, TheBoundClosesInWhileTheTaskIsFulfilledAndWaitsWhileItIsNot) {
  PenaltyConfig config;
  config.score_reference = 10;
  EXPECT_EQ(PenaltyWeight(config).Bound(), 1);
  config.bound_start = 20;
  config.bound_end = 0.9;
  config.bound_rate = 0.1;
  PenaltyWeight weight(config);
  for (int i = 0; i < 10; ++i) weight.Follow(0.01, 9.5);
  EXPECT_NEAR(weight.Bound(), 20 * std::exp(-1.0), 1e-9);
  for (int i = 0; i < 20; ++i) weight.Follow(0.01, 2.0);  // a few before the smoothed score is low
  const double open = weight.Bound();
  EXPECT_GT(open, 20 * std::exp(-1.0));
  EXPECT_LE(open, 20);
  // back in its task, and far behind its bound
  for (int i = 0; i < 100; ++i) weight.Follow(1.0, 9.5);
  EXPECT_LE(weight.Bound(), 20);
  EXPECT_GE(weight.Bound(), open) << "does not close in on a policy that does not follow";
  for (int i = 0; i < 100; ++i) weight.Follow(0.0, 9.5);
  EXPECT_NEAR(weight.Bound(), 0.9, 1e-9);
  EXPECT_EQ(weight.Lambda(0), config.lambda) << "a fixed λ does not listen";
}

}  // namespace
}  // namespace silc
