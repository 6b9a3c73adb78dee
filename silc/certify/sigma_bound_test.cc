// SPDX-License-Identifier: Apache-2.0
#include "silc/certify/sigma_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <queue>

#include "silc/certify/test_loops.h"
#include "silc/policy/test_networks.h"
#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using test::MatrixXd;
using test::RandomMatrix;
using test::VectorXd;
using namespace test::eager;

constexpr double kNoClip = std::numeric_limits<double>::infinity();
constexpr int kJoints = 5, kObserved = 14, kFrames = 2;

// A small robot: five joints, four of them driven, three allowed motions, a feedback of actions.
struct SmallProblem {
  MlpNetwork network;
  DenseNetwork dense;
  SigmaFunction function;
  VectorXd centre;

  SmallProblem(Rng* rng, double feedback) {
    network.inputs = kObserved;
    network.branches.push_back(RandomLayers(rng, kObserved, {12, 8, 3}));
    network.branches.push_back(RandomLayers(rng, kObserved, {9, 1}));
    dense = MakeDenseNetwork(network);
    function.F = RandomMatrix(3, kJoints, rng, 0.3);
    function.floor = 0.02 * MatrixXd::Identity(3, 3);
    function.servo.kp = VectorXd::Constant(kJoints, 2) + RandomMatrix(kJoints, 1, rng, 0.3);
    function.servo.alpha = VectorXd::Constant(kJoints, 0.5);
    function.E_A = RandomMatrix(kObserved, kJoints, rng, feedback);
    function.E_G = RandomMatrix(kObserved, kJoints, rng, 0.5);
    function.action_joint = {4, 0, 2, 1};
    for (int i = 0; i < kObserved; ++i) function.age.push_back(i % kFrames);
    centre = RandomMatrix(kObserved, 1, rng, 0.5);
  }

  ObservationBox Box(double radius, int symbols = kObserved) const {
    ObservationBox box;
    box.centre = centre;
    box.symbols = symbols;
    for (int i = 0; i < symbols; ++i) box.entries.push_back({i, i, radius * (1 + 0.1 * i)});
    return box;
  }

  // By tangents through the graph.
  MatrixXd Jacobian(const VectorXd& x) const {
    GraphEvaluator<double> graph(std::make_shared<const Graph>(MlpGraph(network, "x", "y")));
    for (int i = 0; i < kObserved; ++i) graph.input(0)[static_cast<std::size_t>(i)] = x[i];
    graph.Evaluate();
    const std::vector<double> entries = GraphJacobian(&graph, 0, 0);
    MatrixXd J = MatrixXd::Zero(kJoints, kObserved);
    auto entry = entries.begin();  // row after row
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < kObserved; ++c) {
        J(function.action_joint[static_cast<std::size_t>(r)], c) = *entry++;
      }
    }
    return J;
  }

  // σ as (C1) and (S3) say it.
  double Reference(const VectorXd& x) const {
    const MatrixXd J = Jacobian(x);
    const MatrixXd I = MatrixXd::Identity(kJoints, kJoints);
    const MatrixXd X = test::Solve(I - J * function.E_A, J * function.E_G);
    const MatrixXd kp = function.servo.kp.asDiagonal(), alpha = function.servo.alpha.asDiagonal();
    const MatrixXd K = kp - kp * alpha * X;
    const MatrixXd A = function.gain * (function.F * K * function.F.transpose() - function.floor) -
                       function.identity * MatrixXd::Identity(3, 3);
    return test::SpectralNorm(A);
  }
};

TEST(SigmaBound, SigmaIsTheFormula) {
  Rng rng(21);
  for (int trial = 0; trial < 10; ++trial) {
    const SmallProblem small(&rng, 0.3);
    const SigmaProblem problem(small.dense, small.function, small.centre);
    EXPECT_NEAR(problem.at_centre(), small.Reference(small.centre), 1e-9);
    const VectorXd x = small.centre + RandomMatrix(kObserved, 1, &rng);
    EXPECT_NEAR(problem.At(x), small.Reference(x), 1e-9 * (1 + problem.At(x)));
  }
}

// The claim itself: 100,000 observations of a box, and corners that were looked for.
TEST(SigmaBound, IsNeverBelowTheLargestOfManySamples) {
  Rng rng(22);
  for (int trial = 0; trial < 10; ++trial) {
    const SmallProblem small(&rng, trial % 2 == 0 ? 0.3 : 0.05);
    SigmaProblem problem(small.dense, small.function, small.centre);
    const ObservationBox box = small.Box(trial < 5 ? 0.02 : 0.1);
    const SigmaBound bound = problem.Bound(box, kNoClip);
    const SigmaFound found = problem.Seek(box, trial == 0 ? 100000 : 5000, &rng);
    EXPECT_GE(found.sampled, problem.at_centre());
    EXPECT_LE(std::max(found.sampled, found.sought), bound.upper) << trial;
  }
}

// A branch that overflows a double: not bounded, though σ at an observation is a number.
TEST(SigmaBound, ABranchThatOverflowsIsNotBounded) {
  Rng rng(25);
  SmallProblem small(&rng, 0.3);
  std::vector<MlpLayer>& branch = small.network.branches[1];
  branch = {branch[0]};  // to one unit, which the next ones make larger and larger
  branch[0].outputs = 1;
  branch[0].weight.assign(kObserved, 0.0f);
  branch[0].bias = {1.0f};
  for (int l = 0; l < 12; ++l) {
    MlpLayer layer;
    layer.inputs = layer.outputs = 1;
    layer.weight = {l < 10 ? 1e38f : l == 10 ? -1e38f : 1e-3f};
    layer.bias = {0.0f};
    layer.activation = l == 11 ? Activation::kNone : Activation::kElu;
    branch.push_back(layer);
  }
  small.dense = MakeDenseNetwork(small.network);
  for (const double radius : {0.0, 0.01, 1e300}) {
    SigmaProblem problem(small.dense, small.function, small.centre);
    const ObservationBox box = small.Box(radius);
    const SigmaBound bound = problem.Bound(box, kNoClip);
    EXPECT_EQ(bound.upper, kNoClip);
    EXPECT_FALSE(bound.clipped);
    problem.Seek(box, 10, &rng);
  }
}

// One joint, one unit a layer, all slopes growing with the input: every part of (C5), (C6) and (C8)
// is met with equality at the end of the interval, so that a bound without any of them is too
// small.
TEST(SigmaBound, IsMetByAChainOfSingleUnits) {
  for (const double feedback : {0.0, -0.4}) {
    for (const int depth : {1, 2, 3}) {
      MlpNetwork network;
      network.inputs = 1;
      network.branches.emplace_back();
      for (int l = 0; l <= depth; ++l) {
        MlpLayer layer;
        layer.inputs = layer.outputs = 1;
        layer.weight = {l == depth ? -1.5f : 1.0f};
        layer.bias = {-0.4f};
        layer.activation = l == depth ? Activation::kNone : Activation::kElu;
        network.branches[0].push_back(layer);
      }
      const DenseNetwork dense = MakeDenseNetwork(network);
      SigmaFunction function;
      function.F = function.E_G = MatrixXd::Ones(1, 1);
      function.floor = MatrixXd::Zero(1, 1);
      function.gain = 1;
      function.identity = 0;
      function.servo.kp = function.servo.alpha = VectorXd::Ones(1);
      function.E_A = MatrixXd::Constant(1, 1, feedback);
      function.action_joint = {0};
      function.age = {0};
      const VectorXd centre = VectorXd::Constant(1, -0.5);
      SigmaProblem problem(dense, function, centre);
      const double radius = 0.25;
      ObservationBox box;
      box.centre = centre;
      box.symbols = 1;
      box.entries = {{0, 0, radius}};
      const double upper = problem.Bound(box, kNoClip).upper;
      double largest = 0, largest_radius = 0;
      for (int i = 0; i <= 1000; ++i) {
        const VectorXd x = VectorXd::Constant(1, centre[0] + radius * (i / 500.0 - 1));
        largest = std::max(largest, problem.At(x));
        largest_radius = std::max(largest_radius, problem.RadiusAt(x));
      }
      EXPECT_GE(upper, largest) << depth;
      // (C9): of one action the radius is |A|, and it is as large at the same end
      const double radius_upper = problem.BoundRadius(box, kNoClip, 20);
      EXPECT_GE(radius_upper, largest_radius) << depth << " " << feedback;
      if (feedback != 0) {
        EXPECT_LE(radius_upper - problem.RadiusAt(centre),
                  (depth == 1 ? 1.01 : 1.4) * (largest_radius - problem.RadiusAt(centre)))
            << depth;
      }
      // beyond the first layer the errors of values are in the intervals, too
      EXPECT_LE(upper - problem.at_centre(),
                (depth == 1 ? 1.001 : 1.4) * (largest - problem.at_centre()))
          << depth << " " << feedback;
    }
  }
}

// In a small box σ is nearly linear, and its maximum is at a corner: all of them are looked at.
TEST(SigmaBound, SeekFindsTheWorstCornerOfASmallBox) {
  Rng rng(27);
  for (int trial = 0; trial < 5; ++trial) {
    const SmallProblem small(&rng, 0.2);
    SigmaProblem problem(small.dense, small.function, small.centre);
    constexpr int kSymbols = 8;
    const ObservationBox box = small.Box(1e-3, kSymbols);
    double largest = 0;
    for (int corner = 0; corner < 1 << kSymbols; ++corner) {
      VectorXd x = small.centre;
      for (const auto& entry : box.entries) {
        x[entry.input] += (corner >> entry.symbol & 1) != 0 ? entry.radius : -entry.radius;
      }
      largest = std::max(largest, problem.At(x));
    }
    const double upper = problem.Bound(box, kNoClip).upper;
    const double sought = problem.Seek(box, 0, &rng).sought, rise = largest - problem.at_centre();
    EXPECT_NEAR(sought, largest, 0.05 * rise) << trial;
    EXPECT_GE(upper, largest);
    EXPECT_LE(upper - problem.at_centre(), 2 * rise) << trial;
  }
}

// Nothing but σ is left when the box shrinks, and what is above σ shrinks with the box.
TEST(SigmaBound, TendsToSigmaAndGrowsWithTheBox) {
  Rng rng(23);
  for (int trial = 0; trial < 10; ++trial) {
    const SmallProblem small(&rng, 0.2);
    SigmaProblem problem(small.dense, small.function, small.centre);
    EXPECT_NEAR(problem.Bound(small.Box(1e-9), kNoClip).upper, problem.at_centre(), 1e-6);
    double before = problem.at_centre();
    for (int step = 0; step < 34; ++step) {
      const double radius = 1e-6 * std::pow(1.5, step);
      const double upper = problem.Bound(small.Box(radius), kNoClip).upper;
      EXPECT_GE(upper, before) << trial << " at " << radius;
      before = upper;
    }
  }
}

// Halves the part of a box with the largest bound until bound and samples meet: the maximum over
// the box to a percent. The bound of the whole box is above it, and not by much for a small box.
TEST(SigmaBound, AgreesWithBranchAndBound) {
  Rng rng(24);
  for (int trial = 0; trial < 4; ++trial) {
    const SmallProblem small(&rng, 0.2);
    constexpr int kSplit = 2;
    struct Part {
      double upper;
      VectorXd low, high;
      bool operator<(const Part& other) const { return upper < other.upper; }
    };
    const ObservationBox whole = small.Box(0.3, kSplit);
    double found = 0;
    const auto bound = [&](const VectorXd& low, const VectorXd& high) {
      ObservationBox box;
      box.centre = small.centre;
      box.symbols = kSplit;
      for (int i = 0; i < kSplit; ++i) {
        box.centre[i] = 0.5 * (low[i] + high[i]);
        box.entries.push_back({i, i, 0.5 * (high[i] - low[i])});
      }
      SigmaProblem problem(small.dense, small.function, box.centre);
      found = std::max({found, problem.at_centre(), small.Reference(low), small.Reference(high)});
      return Part{problem.Bound(box, kNoClip).upper, low, high};
    };
    VectorXd low = small.centre, high = small.centre;
    for (const auto& entry : whole.entries) {
      low[entry.input] -= entry.radius;
      high[entry.input] += entry.radius;
    }
    std::priority_queue<Part> parts;
    parts.push(bound(low, high));
    const double at_once = parts.top().upper;
    int splits = 0;
    while (parts.top().upper > 1.01 * found && splits++ < 3000) {
      const Part part = parts.top();
      parts.pop();
      Eigen::Index widest = 0;
      (part.high - part.low).maxCoeff(&widest);
      const double middle = 0.5 * (part.low[widest] + part.high[widest]);
      VectorXd left = part.high, right = part.low;
      left[widest] = right[widest] = middle;
      parts.push(bound(part.low, left));
      parts.push(bound(right, part.high));
    }
    EXPECT_LE(parts.top().upper, 1.01 * found) << trial;
    EXPECT_GE(at_once, found) << trial;
    EXPECT_LE(at_once, 3 * found) << trial;
  }
}

// ρ as its definition says it: a companion matrix of the Jacobian by tangents through the graph.
TEST(SigmaBound, RadiusIsThatOfTheCompanionMatrix) {
  Rng rng(31);
  for (int trial = 0; trial < 10; ++trial) {
    const SmallProblem small(&rng, 0.5);
    const SigmaProblem problem(small.dense, small.function, small.centre);
    const VectorXd x = small.centre + RandomMatrix(kObserved, 1, &rng);
    const MatrixXd J = small.Jacobian(x);
    MatrixXd loop = MatrixXd::Zero(kJoints, kFrames * kJoints);
    for (int i = 0; i < kObserved; ++i) {
      loop.middleCols((i % kFrames) * kJoints, kJoints) += J.col(i) * small.function.E_A.row(i);
    }
    EXPECT_NEAR(problem.RadiusAt(x), test::ObserversRadius(loop), 1e-9) << trial;
  }
}

// (C9) itself: no observation of the box has a larger ρ than was shown, of 100,000 and more.
TEST(SigmaBound, NoObservationHasALargerRadiusThanIsShown) {
  Rng rng(32);
  int shown = 0;
  double closest = 0;
  for (int trial = 0; trial < 12; ++trial) {
    const SmallProblem small(&rng, 0.5);
    const SigmaProblem problem(small.dense, small.function, small.centre);
    // as large as can be shown, where the bound has least room
    double radius = 1;
    while (radius > 1e-4 && !(problem.BoundRadius(small.Box(radius), kNoClip, 0) <= 1)) {
      radius *= 0.8;
    }
    const ObservationBox box = small.Box(radius);
    const double upper = problem.BoundRadius(box, kNoClip, 8);
    if (!(upper <= 1)) continue;
    ++shown;
    double largest = problem.RadiusAt(small.centre);
    VectorXd x = small.centre;
    for (int sample = 0; sample < (shown == 1 ? 100000 : 3000); ++sample) {
      for (const auto& entry : box.entries) {
        const double t = rng.Uniform(-1, 1);
        x[entry.input] = small.centre[entry.input] + entry.radius * (sample % 2 == 0 ? t
                                                                     : t < 0         ? -1
                                                                                     : 1);
      }
      largest = std::max(largest, problem.RadiusAt(x));
    }
    EXPECT_LT(largest, upper) << trial;
    closest = std::max(closest, largest / upper);
  }
  EXPECT_GE(shown, 6);
  EXPECT_GT(closest, 0.7) << "a bound that is never near says nothing";
}

// A feedback that the box may turn into a singular one has no bound.
TEST(SigmaBound, HasNoBoundWhereTheActionLoopMayBecomeSingular) {
  Rng rng(25);
  int unbounded = 0;
  for (int trial = 0; trial < 10; ++trial) {
    const SmallProblem small(&rng, 1.5);
    SigmaProblem problem(small.dense, small.function, small.centre);
    const SigmaBound bound = problem.Bound(small.Box(1), kNoClip);
    if (bound.loop_change >= 1) {
      EXPECT_TRUE(std::isinf(bound.upper));
      ++unbounded;
    }
  }
  EXPECT_GE(unbounded, 5);
}

// An action at its clip answers to nothing, which is another Jacobian.
TEST(SigmaBound, RefusesActionsThatMayBeClipped) {
  Rng rng(26);
  const SmallProblem small(&rng, 0.1);
  SigmaProblem problem(small.dense, small.function, small.centre);
  EXPECT_FALSE(problem.Bound(small.Box(0.01), 100).clipped);
  EXPECT_TRUE(problem.Bound(small.Box(0.01), 1e-3).clipped);
  EXPECT_TRUE(std::isinf(problem.Bound(small.Box(0.01), 1e-3).upper));
}

}  // namespace
}  // namespace silc
