// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/task_stiffness_reference.h"

#include <gtest/gtest.h>

#include <limits>

#include "silc/stiffness/budget.h"
#include "silc/stiffness/condition_reference.h"
#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using namespace test::eager;
using test::LoewnerLessEqual;
using test::LowerCholesky;
using test::MatrixXd;
using test::RandomMatrix;
using test::RandomSpd;
using test::Sym;
using test::VectorXd;

TaskStiffness Task(const MatrixXd& J,
                   const MatrixXd& K,
                   const MatrixXd* N = nullptr,
                   const MatrixXd* H = nullptr) {
  TaskStiffness task;
  const ConstMatrix n = N == nullptr ? ConstMatrix(J) : ConstMatrix(*N);
  const ConstMatrix h = H == nullptr ? ConstMatrix(J) : ConstMatrix(*H);
  EXPECT_EQ(
      ComputeTaskStiffness(J, K, N == nullptr ? nullptr : &n, H == nullptr ? nullptr : &h, &task),
      StiffnessStatus::kOk);
  return task;
}

MatrixXd RandomStiffness(int n, Rng* rng) {
  return RandomSpd(n, rng, 10, 300) + RandomMatrix(n, n, rng, 10);
}

// A push with the feet held, by the equations of statics themselves: K δq + J_cᵀ λ = Jᵀ f, J_c δq =
// 0.
VectorXd Push(const MatrixXd& J, const MatrixXd& K, const MatrixXd& J_c, const VectorXd& f) {
  const auto n = K.rows(), c = J_c.rows();
  MatrixXd kkt = MatrixXd::Zero(n + c, n + c);
  kkt << K, J_c.transpose(), J_c, MatrixXd::Zero(c, c);
  VectorXd rhs = VectorXd::Zero(n + c);
  rhs.head(n) = J.transpose() * f;
  return J * VectorXd(test::Solve(kkt, rhs)).head(n);
}

// (S11): C_x is what pushes measure, one axis at a time, open chain and closed; K_x is what it
// takes to move along one axis with the others held.
TEST(TaskStiffness, IsWhatAPushMeasures) {
  Rng rng(1);
  for (int trial = 0; trial < 40; ++trial) {
    const int n = 12, m = 3;
    const bool closed = trial % 2 == 1;
    const MatrixXd J = RandomMatrix(m, n, &rng, 0.3), K = RandomStiffness(n, &rng);
    const MatrixXd J_c = RandomMatrix(closed ? 4 : 0, n, &rng);
    const MatrixXd N = closed ? test::Kernel(J_c) : MatrixXd::Identity(n, n);
    const TaskStiffness task = Task(J, K, closed ? &N : nullptr);
    for (int axis = 0; axis < m; ++axis) {
      const VectorXd dx = Push(J, K, J_c, VectorXd::Unit(m, axis));
      EXPECT_LT((task.C_x.col(axis) - dx).norm(), 1e-9 * dx.norm());
      EXPECT_NEAR(task.one_axis[axis] * dx[axis], 1, 1e-9);
      // the force that moves along this axis alone
      const VectorXd moved = Push(J, K, J_c, task.K_x.col(axis));
      EXPECT_LT((moved - VectorXd::Unit(m, axis)).norm(), 1e-8);
    }
  }
}

// A one-axis push reads less than K_x on the diagonal: 1/C_ii ≤ (K_x)_ii for symmetric K.
TEST(TaskStiffness, AOneAxisPushReadsLessThanTheDiagonal) {
  Rng rng(2);
  for (int trial = 0; trial < 50; ++trial) {
    const TaskStiffness task = Task(RandomMatrix(3, 10, &rng), RandomSpd(10, &rng));
    for (int i = 0; i < 3; ++i) EXPECT_LE(task.one_axis[i], task.K_x(i, i) * (1 + 1e-9));
  }
}

// C5: symmetric K ≤ M, open chain: the task bound of M holds for K.
TEST(TaskStiffness, SymmetricBelowBudgetKeepsTheTaskBound) {
  Rng rng(3);
  for (int trial = 0; trial < 500; ++trial) {
    const int n = 4 + trial % 5, m = 1 + trial % 3;
    const MatrixXd J = RandomMatrix(m, n, &rng), K = RandomSpd(n, &rng), M = K + RandomSpd(n, &rng);
    EXPECT_TRUE(LoewnerLessEqual(Task(J, K).K_x, Task(J, M).K_x, 1e-8)) << "trial " << trial;
  }
}

// C6: two joints that push each other around. Joint 1 is pushed and only joint 2 moves, so the task
// on joint 1 seems a thousand times stiffer than its budget, while the two-sided norm is below one
// and the quadratic form a thousandth of the budget. The disc is not met, and says so.
TEST(TaskStiffness, TwoSidedDoesNotBoundTheTaskOfNonSymmetricK) {
  MatrixXd K(2, 2), J(1, 2);
  K << 0.1, -100, 100, 0.1;
  J << 1, 0;
  const MatrixXd M = 100.01 * MatrixXd::Identity(2, 2);
  double sigma = 0, worst = 0;
  ASSERT_EQ(LargestSigma(Condition::kTwoSided, K, M, &sigma), StiffnessStatus::kOk);
  EXPECT_LT(sigma, 1);
  ASSERT_EQ(WorstEigenvalue(K, M, &worst), StiffnessStatus::kOk);
  EXPECT_NEAR(worst, 0.1 / 100.01, 1e-9);
  EXPECT_NEAR(Task(J, M).K_x(0, 0), 100.01, 1e-9);
  EXPECT_NEAR(Task(J, K).K_x(0, 0), 1.0e5, 10);
  ASSERT_EQ(LargestSigma(Condition::kDisc, K, M, &sigma), StiffnessStatus::kOk);
  EXPECT_GT(sigma, 2);

  // and not by construction only: random K on the border of the two-sided condition
  Rng rng(4);
  int violated = 0;
  constexpr int kTrials = 1000;
  for (int trial = 0; trial < kTrials; ++trial) {
    const MatrixXd budget = RandomSpd(4, &rng), L = LowerCholesky(budget);
    MatrixXd A = RandomMatrix(4, 4, &rng);
    A /= test::SpectralNorm(A);
    // draws with an indefinite symmetric part have no bound to speak of; the others should have
    const MatrixXd stiffness = L * A * L.transpose();
    const MatrixXd task = RandomMatrix(2, 4, &rng);
    TaskStiffness got;
    if (ComputeTaskStiffness(task, stiffness, nullptr, nullptr, &got) != StiffnessStatus::kOk) {
      continue;
    }
    violated += !LoewnerLessEqual(got.K_x, Task(task, budget).K_x);
  }
  EXPECT_GT(violated, kTrials / 5);
}

// C7: the disc does bound it, in the open chain and in the closed one, for any K at all, and K_x
// meets the disc itself against the task budget.
TEST(TaskStiffness, DiscBoundsTheTask) {
  Rng rng(5);
  int tried = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const int n = 5 + trial % 4, m = 1 + trial % 3;
    const bool closed = trial % 2 == 1;
    const MatrixXd M = RandomSpd(n, &rng), L = LowerCholesky(M);
    MatrixXd A = RandomMatrix(n, n, &rng);
    A /= test::SpectralNorm(A);
    const MatrixXd K = 0.5 * L * (MatrixXd::Identity(n, n) + A) * L.transpose();
    const MatrixXd J = RandomMatrix(m, n, &rng);
    const MatrixXd N = closed ? test::Kernel(RandomMatrix(1, n, &rng)) : MatrixXd::Identity(n, n);
    TaskStiffness got;
    const ConstMatrix n_ref = N;
    const StiffnessStatus status = ComputeTaskStiffness(J, K, &n_ref, nullptr, &got);
    if (status != StiffnessStatus::kOk) continue;  // K on the border may be singular
    ++tried;
    const MatrixXd bound = Sym(Task(J, M, &N).K_x);
    EXPECT_TRUE(LoewnerLessEqual(got.K_x, bound, 1e-7)) << "trial " << trial;
    EXPECT_TRUE(LoewnerLessEqual(test::Inverse(bound), got.C_x, 1e-7));
    double sigma = 0;
    ASSERT_EQ(LargestSigma(Condition::kDisc, got.K_x, bound, &sigma), StiffnessStatus::kOk);
    EXPECT_LE(sigma, 1 + 1e-6);
  }
  EXPECT_GT(tried, 1400);
}

// C8: C_ds = C − C J_cᵀ (J_c C J_cᵀ)⁻¹ J_c C ≤ C: a closed chain is stiffer.
TEST(TaskStiffness, ClosingTheChainStiffens) {
  Rng rng(6);
  for (int trial = 0; trial < 100; ++trial) {
    const int n = 10, c = 4;
    const MatrixXd K = RandomSpd(n, &rng), J_c = RandomMatrix(c, n, &rng), C = test::Inverse(K);
    const MatrixXd N = test::Kernel(J_c);
    const MatrixXd C_ds = N * test::Inverse(N.transpose() * K * N) * N.transpose();
    const MatrixXd identity =
        C - C * J_c.transpose() * test::Inverse(J_c * C * J_c.transpose()) * J_c * C;
    EXPECT_TRUE(C_ds.isApprox(identity, 1e-9));
    EXPECT_TRUE(LoewnerLessEqual(C_ds, C));
    const MatrixXd J = RandomMatrix(2, n, &rng);
    EXPECT_TRUE(LoewnerLessEqual(Task(J, K).K_x, Task(J, K, &N).K_x));
  }
}

// C8, by hand: two joints of 100 tied together feel like 200 at one of them. A budget made for the
// open chain is met and the task is twice too stiff; the reduced budget says so.
TEST(TaskStiffness, SingleSupportBudgetLeaksInDoubleSupport) {
  const MatrixXd K = 100 * MatrixXd::Identity(2, 2);
  MatrixXd J(1, 2), N(2, 1);
  J << 1, 0;
  N << 1, 1;
  EXPECT_NEAR(Task(J, K).K_x(0, 0), 100, 1e-9);
  EXPECT_NEAR(Task(J, K, &N).K_x(0, 0), 200, 1e-9);
  // reduced: J N = 1, so the budget in z is K_x itself, 100 against NᵀKN = 200
  JointMatrix M;
  ASSERT_EQ(JointBudget(J * N, MatrixXd::Constant(1, 1, 100), N.transpose() * N, 50, &M),
            StiffnessStatus::kOk);
  double worst = 0;
  ASSERT_EQ(WorstEigenvalue(N.transpose() * K * N, M, &worst), StiffnessStatus::kOk);
  EXPECT_NEAR(worst, 2, 1e-12);
}

// The reduced budget recovers the spec exactly through the closed chain.
TEST(TaskStiffness, ReducedBudgetKeepsTheSpecInTheClosedChain) {
  Rng rng(7);
  for (int trial = 0; trial < 50; ++trial) {
    const int n = 12;
    const MatrixXd N = test::Kernel(RandomMatrix(5, n, &rng)), J = RandomMatrix(3, n, &rng);
    const MatrixXd K_x = RandomSpd(3, &rng, 100, 20000), W = RandomSpd(n, &rng, 4, 300);
    JointMatrix M;
    ASSERT_EQ(JointBudget(J * N, K_x, Sym(N.transpose() * W * N), 0.7, &M), StiffnessStatus::kOk);
    EXPECT_TRUE(MatrixXd(Task(J * N, M).K_x).isApprox(K_x, 1e-8));
  }
}

TEST(WorstTaskEigenvalue, IsOneOnTheBound) {
  Rng rng(8);
  const MatrixXd bound = RandomSpd(3, &rng);
  double worst = 0;
  ASSERT_EQ(WorstTaskEigenvalue(bound + test::Skew(RandomMatrix(3, 3, &rng)), bound, &worst),
            StiffnessStatus::kOk);
  EXPECT_NEAR(worst, 1, 1e-12);
  EXPECT_EQ(WorstTaskEigenvalue(bound, -bound, &worst), StiffnessStatus::kBudgetNotPositive);
}

// A further stiffness H: a pendulum of mass m on a rod l, held upright by a spring k, feels a push
// at its tip as (k − m g l)/l².
TEST(TaskStiffness, GravityTakesAwayFromASpring) {
  const double k = 500, mass = 30, g = 9.81, length = 0.7;
  const MatrixXd K = MatrixXd::Constant(1, 1, k);
  const MatrixXd H = MatrixXd::Constant(1, 1, -mass * g * length);
  const MatrixXd J = MatrixXd::Constant(1, 1, length);
  EXPECT_NEAR(
      Task(J, K, nullptr, &H).one_axis[0], (k - mass * g * length) / (length * length), 1e-9);
}

TEST(TaskStiffness, GradientsMatchDifferences) {
  Rng rng(9);
  for (int trial = 0; trial < 8; ++trial) {
    const int n = 6, m = 3;
    const bool closed = trial % 2 == 1, loaded = trial % 4 >= 2;
    const MatrixXd J = RandomMatrix(m, n, &rng, 0.5), K = RandomStiffness(n, &rng);
    const MatrixXd N = test::Kernel(RandomMatrix(2, n, &rng)), H = RandomSpd(n, &rng, 1, 5);
    const ConstMatrix n_ref = N, h_ref = H;
    const ConstMatrix* n_arg = closed ? &n_ref : nullptr;
    const ConstMatrix* h_arg = loaded ? &h_ref : nullptr;
    const auto evaluate = [&](const MatrixXd& x) {
      return Task(J, x, closed ? &N : nullptr, loaded ? &H : nullptr);
    };
    JointVector left, right;
    for (int i = 0; i < m; ++i) {
      OneAxisGradient(J, K, n_arg, h_arg, i, &left, &right);
      const MatrixXd reference =
          test::Difference([&](const MatrixXd& x) { return evaluate(x).one_axis[i]; }, K, 1e-4);
      EXPECT_LT((MatrixXd(left * right.transpose()) - reference).norm(), 1e-7 * reference.norm());
      const int j = (i + trial) % m;
      TaskStiffnessGradient(J, K, n_arg, h_arg, i, j, &left, &right);
      const MatrixXd reference_K =
          test::Difference([&](const MatrixXd& x) { return evaluate(x).K_x(i, j); }, K, 1e-4);
      EXPECT_LT((MatrixXd(left * right.transpose()) - reference_K).norm(),
                1e-7 * reference_K.norm());
    }
  }
}

// A planar leg, ankle, knee and hip; the hip joint's place is the task. Straight, it cannot come
// nearer.
TEST(TaskStiffness, StretchedKneeIsTold) {
  const auto jacobian = [](double ankle, double knee) {
    const double l = 0.3;
    MatrixXd J = MatrixXd::Zero(2, 3);
    J.col(0) << l * std::cos(ankle) + l * std::cos(ankle + knee),
        -l * std::sin(ankle) - l * std::sin(ankle + knee);
    J.col(1) << l * std::cos(ankle + knee), -l * std::sin(ankle + knee);
    return J;
  };
  const MatrixXd K = Eigen::Vector3d(20, 200, 100).asDiagonal();
  TaskStiffness task;
  EXPECT_EQ(ComputeTaskStiffness(jacobian(0, 0), K, nullptr, nullptr, &task),
            StiffnessStatus::kRankDeficientJacobian);
  EXPECT_EQ(ComputeTaskStiffness(jacobian(0.1, 0), K, nullptr, nullptr, &task),
            StiffnessStatus::kRankDeficientJacobian);
  // a hundredth of a degree of bend is a number again, and a right one: 1/C_zz by hand
  const double bend = 1.7e-4;
  const MatrixXd J = jacobian(-bend / 2, bend);
  ASSERT_EQ(ComputeTaskStiffness(J, K, nullptr, nullptr, &task), StiffnessStatus::kOk);
  const double C_zz = J(1, 0) * J(1, 0) / 20 + J(1, 1) * J(1, 1) / 200;
  EXPECT_NEAR(task.one_axis[1] * C_zz, 1, 1e-9);
}

TEST(TaskStiffness, IllPosedInputIsTold) {
  Rng rng(10);
  const MatrixXd J = RandomMatrix(2, 4, &rng), K = RandomStiffness(4, &rng);
  TaskStiffness task;
  MatrixXd limp = K;
  limp.row(2) = limp.row(1);
  EXPECT_EQ(ComputeTaskStiffness(J, limp, nullptr, nullptr, &task),
            StiffnessStatus::kSingularStiffness);
  EXPECT_EQ(ComputeTaskStiffness(J, MatrixXd::Zero(4, 4), nullptr, nullptr, &task),
            StiffnessStatus::kSingularStiffness);
  MatrixXd nan = K;
  nan(3, 3) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ComputeTaskStiffness(J, nan, nullptr, nullptr, &task), StiffnessStatus::kNotFinite);
  const ConstMatrix H = nan;
  EXPECT_EQ(ComputeTaskStiffness(J, K, nullptr, &H, &task), StiffnessStatus::kNotFinite);
  EXPECT_EQ(ComputeTaskStiffness(MatrixXd(J.replicate(2, 1)), K, nullptr, nullptr, &task),
            StiffnessStatus::kRankDeficientJacobian);
  // all circulation: the push moves the other joint, and the pushed one not at all
  MatrixXd circulation(2, 2), first(1, 2);
  circulation << 0, -1, 1, 0;
  first << 1, 0;
  EXPECT_EQ(ComputeTaskStiffness(first, circulation, nullptr, nullptr, &task),
            StiffnessStatus::kRankDeficientJacobian);
  // more task rows than free motions
  const ConstMatrix N = MatrixXd::Identity(4, 1);
  EXPECT_EQ(ComputeTaskStiffness(J, K, &N, nullptr, &task),
            StiffnessStatus::kRankDeficientJacobian);
}

}  // namespace
}  // namespace silc
