// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/observer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

#include "silc/stiffness/condition_reference.h"
#include "silc/stiffness/task_stiffness_reference.h"
#include "silc/stiffness/test_support.h"

// Every operator new of this program is counted: Eigen's guard sees Eigen's allocations only.
namespace {
std::atomic<long long> allocations{0};
}  // namespace

// not inlined: the compiler would see malloc and free meet delete and new, and warn
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace silc {
namespace {

using namespace test::eager;
using test::MatrixXd;
using test::StickHumanoid;
using test::VectorXd;

constexpr int kJoints = StickHumanoid::kJoints;
struct Moment {
  explicit Moment(int seed, bool torque = true) {
    Rng rng(seed);
    servo = test::RandomServo(kJoints, &rng);
    policy = test::RandomPolicy(kJoints, 3, &rng, torque, true);
    body = StickHumanoid::Jacobians(StickHumanoid::Stance(&rng));
  }
  ObserverOptions Options(int mode = 4) const {
    ObserverOptions options;
    options.servo = servo;
    options.budget = test::PaperModes()[mode].spec;
    options.frames = 3;
    options.one_step_sigma = true;
    return options;
  }
  Servo servo;
  PolicyJacobians policy;
  BodyJacobians body;
};

// The observer's shortcuts against the plain functions, one by one, in every mode, for every
// condition, weight and choice of tasks.
TEST(StiffnessObserver, AgreesWithThePlainFunctions) {
  for (int trial = 0; trial < 24; ++trial) {
    const Moment moment(trial);
    ObserverOptions options = moment.Options(trial % 2 == 0 ? 4 : 1);
    if (trial % 8 >= 4) options.budget.hand[0].reset();  // two points
    if (trial % 8 == 7) options.budget.com.reset();      // none
    // channels change more slowly than the condition, so that each meets each
    if (trial / 3 % 2 == 1) options.budget.gravity = Channel::kHeld;
    if (trial / 6 % 2 == 1) options.budget.torque = Channel::kHeld;
    options.budget.condition = static_cast<Condition>(trial % 3);
    if (trial % 4 >= 2) {
      options.budget.weight = NullWeight::kServo;
      options.budget.null_stiffness = 0.4;
    }
    StiffnessObserver observer(options);
    for (ContactMode mode : kContactModes) {
      SCOPED_TRACE(testing::Message() << "trial " << trial << ", " << Name(mode) << ", "
                                      << Name(options.budget.condition));
      const StiffnessReading& reading = observer.Observe(moment.policy, moment.body, mode);
      ASSERT_EQ(reading.contact_status, StiffnessStatus::kOk);
      ASSERT_EQ(reading.static_status, StiffnessStatus::kOk);
      EXPECT_EQ(reading.loop.status, StiffnessStatus::kOk);

      ContactKinematics contact;
      ASSERT_EQ(ComputeContactKinematics(moment.body, mode, nullptr, &contact),
                StiffnessStatus::kOk);
      StaticChannels channels;
      channels.E = &contact.E;
      StaticStiffness K_s;
      ASSERT_EQ(test::QuasiStaticStiffness(moment.servo, moment.policy, channels, &K_s),
                StiffnessStatus::kOk);
      EXPECT_TRUE(MatrixXd(reading.K_s).isApprox(MatrixXd(K_s.K), 1e-12));
      JointMatrix K_1;
      ASSERT_EQ(OneStepStiffness(moment.servo, moment.policy.J_q[0], &K_1), StiffnessStatus::kOk);
      EXPECT_EQ(reading.K_1, K_1);

      // what is judged: the channels that the budget holds stand still
      StaticChannels judged;
      judged.torque = options.budget.torque == Channel::kFollowed;
      if (options.budget.gravity == Channel::kFollowed) judged.E = &contact.E;
      StaticStiffness K_judged;
      ActionLoopRadius loop;
      ASSERT_EQ(test::QuasiStaticStiffness(moment.servo, moment.policy, judged, &K_judged, &loop),
                StiffnessStatus::kOk);
      EXPECT_EQ(reading.judged_status, StiffnessStatus::kOk);
      EXPECT_TRUE(MatrixXd(reading.K_judged).isApprox(MatrixXd(K_judged.K), 1e-12));
      EXPECT_LT(loop.rho, 1);
      EXPECT_EQ(reading.judged_loop.status, StiffnessStatus::kOk);

      // tasks
      const ConstMatrix N = contact.N;
      const ConstMatrix* N_arg = contact.closed ? &N : nullptr;
      const PointReading* points[] = {&reading.com,
                                      &reading.hand_in_world[0],
                                      &reading.hand_in_world[1],
                                      &reading.hand_on_base[0],
                                      &reading.hand_on_base[1]};
      const Jacobian3* jacobians[] = {&contact.com,
                                      &contact.hand_in_world[0],
                                      &contact.hand_in_world[1],
                                      &contact.hand_on_base[0],
                                      &contact.hand_on_base[1]};
      // a budget's hands are on the base: it says nothing of a hand in the world
      const std::optional<Eigen::Vector3d> bounds[] = {
          options.budget.com, {}, {}, options.budget.hand[0], options.budget.hand[1]};
      for (int p = 0; p < 5; ++p) {
        if (p == 0 && mode == ContactMode::kFlight) {
          EXPECT_EQ(reading.com.status, StiffnessStatus::kNoSupport);
          EXPECT_TRUE(std::isnan(reading.com.K_x(0, 0)));
          continue;
        }
        ASSERT_EQ(points[p]->status, StiffnessStatus::kOk);
        TaskStiffness task;
        ASSERT_EQ(ComputeTaskStiffness(*jacobians[p], K_s.K, N_arg, nullptr, &task),
                  StiffnessStatus::kOk);
        EXPECT_LT((points[p]->K_x - task.K_x).norm(), 1e-8 * task.K_x.norm());
        EXPECT_LT((points[p]->C_x - task.C_x).norm(), 1e-8 * task.C_x.norm());
        EXPECT_LT((points[p]->one_axis - task.one_axis).norm(), 1e-8 * task.one_axis.norm());
        EXPECT_EQ(std::isnan(points[p]->worst), !bounds[p].has_value());
        if (bounds[p]) {
          TaskStiffness judged_task;
          ASSERT_EQ(ComputeTaskStiffness(*jacobians[p], K_judged.K, N_arg, nullptr, &judged_task),
                    StiffnessStatus::kOk);
          double worst = 0;
          ASSERT_EQ(WorstTaskEigenvalue(judged_task.K_x, MatrixXd(bounds[p]->asDiagonal()), &worst),
                    StiffnessStatus::kOk);
          EXPECT_NEAR(points[p]->worst, worst, 1e-8 * std::abs(worst));
        }
      }

      // budget: Cholesky of the whole M, in coordinates of which N is Euclidean
      ReducedBudget budget;
      ASSERT_EQ(ComputeReducedBudget(options.budget, moment.servo, contact, &budget),
                StiffnessStatus::kOk);
      const auto reduced = [&](const MatrixXd& K) {
        return contact.closed ? MatrixXd(contact.N.transpose() * K * contact.N) : K;
      };
      const auto check = [&](const BudgetReading& got, const MatrixXd& K) {
        double sigma = 0, worst = 0;
        ASSERT_EQ(LargestSigma(options.budget.condition, reduced(K), budget.M, &sigma),
                  StiffnessStatus::kOk);
        ASSERT_EQ(WorstEigenvalue(reduced(K), budget.M, &worst), StiffnessStatus::kOk);
        ASSERT_EQ(got.status, StiffnessStatus::kOk);
        EXPECT_NEAR(got.sigma / sigma, 1, 1e-8);
        EXPECT_NEAR(got.worst / worst, 1, 1e-8);
      };
      check(reading.quasi_static, K_judged.K);
      check(reading.one_step, K_1);
    }
  }
}

// A budget that holds what the policy senses judges another stiffness than a person feels; the
// person's is read all the same.
TEST(StiffnessObserver, WhatIsFeltDoesNotDependOnTheBudget) {
  const Moment moment(30);
  StiffnessObserver everything(moment.Options());
  const StiffnessReading all =
      everything.Observe(moment.policy, moment.body, ContactMode::kLeftSupport);
  EXPECT_EQ(all.K_judged, all.K_s);
  for (const bool gravity : {true, false}) {
    ObserverOptions options = moment.Options();
    (gravity ? options.budget.gravity : options.budget.torque) = Channel::kHeld;
    StiffnessObserver observer(options);
    const StiffnessReading& reading =
        observer.Observe(moment.policy, moment.body, ContactMode::kLeftSupport);
    EXPECT_EQ(reading.K_s, all.K_s);
    EXPECT_EQ(reading.com.K_x, all.com.K_x);
    EXPECT_EQ(reading.hand_in_world[0].K_x, all.hand_in_world[0].K_x);
    EXPECT_EQ(reading.loop.rho, all.loop.rho);
    EXPECT_GT((reading.K_judged - reading.K_s).norm(), 1e-3 * reading.K_s.norm());
    EXPECT_GT(std::abs(reading.quasi_static.sigma - all.quasi_static.sigma), 1e-6);
  }
}

// The band as it is written, (S7c) with a floor: ‖L_h⁻¹ (K − (M + m)/2) L_h⁻ᵀ‖, L_h L_hᵀ = (M −
// m)/2, m of the hands alone.
TEST(StiffnessObserver, JudgesTheBandOfTheHands) {
  for (int trial = 0; trial < 12; ++trial) {
    const Moment moment(100 + trial);
    ObserverOptions options = moment.Options();
    options.budget.hand_floor = Eigen::Vector3d(0.5, 0, 0.9);
    if (trial % 3 == 0) options.budget.com.reset();
    if (trial % 3 == 1) options.budget.hand[0].reset();
    if (trial % 2 == 1) {
      options.budget.weight = NullWeight::kServo;
      options.budget.null_stiffness = 0.4;
    }
    StiffnessObserver observer(options);
    for (ContactMode mode : kContactModes) {
      SCOPED_TRACE(testing::Message() << "trial " << trial << ", " << Name(mode));
      const StiffnessReading& reading = observer.Observe(moment.policy, moment.body, mode);
      ContactKinematics contact;
      ASSERT_EQ(ComputeContactKinematics(moment.body, mode, nullptr, &contact),
                StiffnessStatus::kOk);
      ReducedBudget budget;
      ASSERT_EQ(ComputeReducedBudget(options.budget, moment.servo, contact, &budget),
                StiffnessStatus::kOk);
      const MatrixXd N =
          contact.closed ? MatrixXd(contact.N) : MatrixXd::Identity(kJoints, kJoints);
      MatrixXd m = MatrixXd::Zero(N.cols(), N.cols());
      for (int side = 0; side < 2; ++side) {
        if (!options.budget.hand[side]) continue;
        const MatrixXd J = moment.body.hand[side].rightCols(kJoints) * N;
        const VectorXd k = options.budget.hand_floor.cwiseProduct(*options.budget.hand[side]);
        m += J.transpose() * k.asDiagonal() * J;
      }
      const auto check = [&](const BudgetReading& got, const MatrixXd& K) {
        const MatrixXd K_z = N.transpose() * K * N;
        SigmaTriple band;
        ASSERT_EQ(LargestBandSigma(K_z, budget.M, m, &band), StiffnessStatus::kOk);
        double disc = 0, worst = 0;
        ASSERT_EQ(LargestSigma(Condition::kDisc, K_z, budget.M, &disc), StiffnessStatus::kOk);
        ASSERT_EQ(WorstEigenvalue(K_z - m, budget.M - m, &worst), StiffnessStatus::kOk);
        EXPECT_NEAR(got.sigma / band.sigma, 1, 1e-7);
        EXPECT_NEAR(got.worst / worst, 1, 1e-7);
        EXPECT_GT(std::abs(band.sigma - disc), 1e-6 * disc);
      };
      check(reading.quasi_static, reading.K_s);
      check(reading.one_step, reading.K_1);
    }
  }
}

// Two hands that are one: each has its stiffness, together they are no budget.
TEST(StiffnessObserver, TellsPointsThatCoincide) {
  Moment moment(40);
  moment.body.hand[1] = moment.body.hand[0];
  for (const Condition condition : {Condition::kDisc, Condition::kTwoSided, Condition::kOneSided}) {
    ObserverOptions options = moment.Options();
    options.budget.condition = condition;
    StiffnessObserver observer(options);
    for (ContactMode mode : {ContactMode::kDoubleSupport, ContactMode::kFlight}) {
      const StiffnessReading& reading = observer.Observe(moment.policy, moment.body, mode);
      EXPECT_EQ(reading.hand_in_world[1].status, StiffnessStatus::kOk);
      EXPECT_EQ(reading.quasi_static.status, StiffnessStatus::kRankDeficientJacobian);
    }
  }
}

// A robot on its servo alone, with a budget made of the servo's own stiffness: nothing is over,
// nothing under.
TEST(StiffnessObserver, AServoAgainstItsOwnStiffnessReadsOne) {
  Moment moment(50);
  moment.policy = {};
  ObserverOptions options = moment.Options();
  options.budget = {};
  options.budget.weight = NullWeight::kServo;
  options.budget.null_stiffness = 1;
  StiffnessObserver observer(options);
  for (ContactMode mode : kContactModes) {
    const StiffnessReading& reading = observer.Observe(moment.policy, moment.body, mode);
    EXPECT_NEAR(reading.quasi_static.sigma, 1, 1e-9);
    EXPECT_NEAR(reading.quasi_static.worst, 1, 1e-9);
    EXPECT_NEAR(reading.one_step.sigma, 1, 1e-9);
    EXPECT_TRUE(MatrixXd(reading.K_s).isApprox(MatrixXd(moment.servo.kp.asDiagonal())));
  }
}

#ifdef EIGEN_RUNTIME_NO_MALLOC
struct NoEigenMalloc {
  NoEigenMalloc() { Eigen::internal::set_is_malloc_allowed(false); }
  ~NoEigenMalloc() { Eigen::internal::set_is_malloc_allowed(true); }
};
#else
struct NoEigenMalloc {};
#endif

// Observe() after construction: no operator new, and in debug builds no allocation by Eigen either.
TEST(StiffnessObserver, DoesNotAllocate) {
  for (int trial = 0; trial < 8; ++trial) {
    const Moment moment(60 + trial);
    ObserverOptions options = moment.Options(trial % 2 == 0 ? 4 : 1);
    options.budget.condition = static_cast<Condition>(trial % 3);
    options.exact_action_loop = trial == 7;
    if (trial % 4 >= 2) options.budget.weight = NullWeight::kServo;
    if (trial >= 4) options.budget.gravity = options.budget.torque = Channel::kHeld;
    if (options.budget.condition == Condition::kDisc && options.budget.hand[0]) {
      options.budget.hand_floor.setConstant(0.5);
    }
    PolicyJacobians hard = moment.policy;  // no bound proves this one stable
    hard.J_a[0].diagonal().setLinSpaced(0.97, -0.9);
    PolicyJacobians unstable = moment.policy;
    unstable.J_a[0].diagonal().setConstant(1.5);
    PolicyJacobians nan = moment.policy;
    nan.J_q[0](0, 0) = std::numeric_limits<double>::quiet_NaN();
    const PolicyJacobians* policies[] = {&moment.policy, &hard, &unstable, &nan};
    StiffnessObserver observer(options);

    const long long before = allocations;
    {
      [[maybe_unused]] const NoEigenMalloc guard;
      for (ContactMode mode : kContactModes) {
        for (const PolicyJacobians* policy : policies) {
          observer.Observe(*policy, moment.body, mode);
        }
      }
    }
    EXPECT_EQ(allocations, before) << "trial " << trial;
  }
}

// The two guards are worth something only if they catch what they are there for.
TEST(StiffnessObserver, TheGuardsCatchAnAllocation) {
  const long long before = allocations;
  std::vector<double>* volatile kept =
      new std::vector<double>(100);  // volatile: or it is optimised away
  delete kept;
  EXPECT_GE(allocations, before + 2);
#ifdef EIGEN_RUNTIME_NO_MALLOC
  EXPECT_DEATH(
      {
        const NoEigenMalloc guard;
        MatrixXd heap(50, 50);
      },
      "is_malloc_allowed");
#else
  GTEST_SKIP() << "Eigen's own guard is built in with the debug and asan presets only";
#endif
}

// Ill-posed input: the status says which, and there is no number to mistake for an answer.
TEST(StiffnessObserver, NothingDoubtfulIsANumber) {
  const Moment moment(70);
  StiffnessObserver observer(moment.Options());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto expect = [&](const StiffnessReading& r, StiffnessStatus status) {
    EXPECT_EQ(r.static_status, status);
    EXPECT_EQ(r.quasi_static.status, status);
    EXPECT_EQ(r.com.status, status);
    EXPECT_EQ(r.hand_in_world[1].status, status);
    EXPECT_TRUE(std::isnan(r.K_s(0, 0)) && std::isnan(r.quasi_static.sigma) &&
                std::isnan(r.com.one_axis[0]) && std::isnan(r.hand_in_world[1].K_x(1, 1)));
  };
  // a NaN in the network's answer
  PolicyJacobians policy = moment.policy;
  policy.J_q[0](2, 3) = nan;
  {
    const StiffnessReading& r = observer.Observe(policy, moment.body, ContactMode::kLeftSupport);
    expect(r, StiffnessStatus::kNotFinite);
    EXPECT_EQ(r.one_step_status, StiffnessStatus::kNotFinite);
    EXPECT_EQ(r.one_step.status, StiffnessStatus::kNotFinite);
    EXPECT_TRUE(std::isnan(r.K_1(0, 0)));
  }
  // an action loop that runs away; the latest frame does not mind
  policy = moment.policy;
  policy.J_a[1].diagonal().setConstant(-1.4);
  {
    const StiffnessReading& r = observer.Observe(policy, moment.body, ContactMode::kLeftSupport);
    expect(r, StiffnessStatus::kUnstableActionLoop);
    EXPECT_EQ(r.one_step_status, StiffnessStatus::kOk);
    EXPECT_EQ(r.one_step.status, StiffnessStatus::kOk);
  }
  // an integrator
  policy = moment.policy;
  policy.J_tau.clear();
  for (MatrixXd& J_a : policy.J_a) J_a.setZero();
  policy.J_a[0].setIdentity();
  expect(observer.Observe(policy, moment.body, ContactMode::kDoubleSupport),
         StiffnessStatus::kSingularActionLoop);
  // feet that are not
  BodyJacobians body = moment.body;
  body.foot[0].row(0).setZero();
  {
    const StiffnessReading& r = observer.Observe(moment.policy, body, ContactMode::kDoubleSupport);
    EXPECT_EQ(r.contact_status, StiffnessStatus::kSingularBaseBlock);
    expect(r, StiffnessStatus::kSingularBaseBlock);
  }
  body = moment.body;
  body.com(1, 8) = nan;
  EXPECT_EQ(observer.Observe(moment.policy, body, ContactMode::kLeftSupport).contact_status,
            StiffnessStatus::kNotFinite);
  // a hand that cannot move up: it has no stiffness there, and a budget that names it none at all
  body = moment.body;
  body.hand[0].row(2).setZero();
  {
    const StiffnessReading& r = observer.Observe(moment.policy, body, ContactMode::kLeftSupport);
    EXPECT_EQ(r.hand_in_world[0].status, StiffnessStatus::kRankDeficientJacobian);
    EXPECT_TRUE(std::isnan(r.hand_in_world[0].one_axis[0]));
    EXPECT_EQ(r.hand_in_world[1].status, StiffnessStatus::kOk);
    EXPECT_EQ(r.quasi_static.status, StiffnessStatus::kRankDeficientJacobian);
    EXPECT_TRUE(std::isnan(r.quasi_static.sigma));
  }
  // a joint whose target follows it: no stiffness, no compliance
  policy = {};
  policy.J_q = {MatrixXd::Zero(kJoints, kJoints)};
  policy.J_q[0](5, 5) = 1 / moment.servo.alpha[5];
  {
    const StiffnessReading& r = observer.Observe(policy, moment.body, ContactMode::kLeftSupport);
    EXPECT_EQ(r.static_status, StiffnessStatus::kOk);
    EXPECT_EQ(r.com.status, StiffnessStatus::kSingularStiffness);
    EXPECT_EQ(r.quasi_static.status, StiffnessStatus::kOk);
  }
  // and after all that the good one is good again
  EXPECT_EQ(observer.Observe(moment.policy, moment.body, ContactMode::kDoubleSupport).com.status,
            StiffnessStatus::kOk);
}

// Where the loop need not be stable by itself (the robot may stabilise it), K_s is given and the
// loop told.
TEST(StiffnessObserver, AnUnstableLoopMayBeAllowed) {
  const Moment moment(80);
  PolicyJacobians policy = moment.policy;
  policy.J_a[1].diagonal().setConstant(-1.4);
  ObserverOptions options = moment.Options();
  options.require_stable_loop = false;
  StiffnessObserver observer(options);
  const StiffnessReading& r = observer.Observe(policy, moment.body, ContactMode::kLeftSupport);
  EXPECT_EQ(r.static_status, StiffnessStatus::kOk);
  EXPECT_EQ(r.loop.status, StiffnessStatus::kUnstableActionLoop);
  EXPECT_GT(r.loop.rho, 1);
}

}  // namespace
}  // namespace silc
