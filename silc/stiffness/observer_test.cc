// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/observer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

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

using test::MatrixXd;
using test::StickHumanoid;
using test::VectorXd;

constexpr int kJoints = StickHumanoid::kJoints;
constexpr ContactMode kModes[] = {ContactMode::kDoubleSupport,
                                  ContactMode::kLeftSupport,
                                  ContactMode::kRightSupport,
                                  ContactMode::kFlight};

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
    options.budget = PaperModes()[mode].spec;
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
    options.budget.condition = static_cast<Condition>(trial % 3);
    if (trial % 4 >= 2) {
      options.budget.weight = NullWeight::kServo;
      options.budget.null_stiffness = 0.4;
    }
    StiffnessObserver observer(options);
    for (ContactMode mode : kModes) {
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
      ASSERT_EQ(QuasiStaticStiffness(moment.servo, moment.policy, channels, &K_s),
                StiffnessStatus::kOk);
      EXPECT_TRUE(MatrixXd(reading.K_s).isApprox(MatrixXd(K_s.K), 1e-12));
      JointMatrix K_1;
      ASSERT_EQ(OneStepStiffness(moment.servo, moment.policy.J_q[0], &K_1), StiffnessStatus::kOk);
      EXPECT_EQ(reading.K_1, K_1);

      // tasks
      const ConstMatrix N = contact.N;
      const ConstMatrix* N_arg = contact.closed ? &N : nullptr;
      const PointReading* points[] = {&reading.com, &reading.hand[0], &reading.hand[1]};
      const Jacobian3* jacobians[] = {&contact.com, &contact.hand[0], &contact.hand[1]};
      const std::optional<Eigen::Vector3d> bounds[] = {
          options.budget.com, options.budget.hand[0], options.budget.hand[1]};
      for (int p = 0; p < 3; ++p) {
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
          double worst = 0;
          ASSERT_EQ(WorstTaskEigenvalue(task.K_x, MatrixXd(bounds[p]->asDiagonal()), &worst),
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
      check(reading.quasi_static, K_s.K);
      check(reading.one_step, K_1);
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
      EXPECT_EQ(reading.hand[1].status, StiffnessStatus::kOk);
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
  for (ContactMode mode : kModes) {
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
      for (ContactMode mode : kModes) {
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
    EXPECT_EQ(r.hand[1].status, status);
    EXPECT_TRUE(std::isnan(r.K_s(0, 0)) && std::isnan(r.quasi_static.sigma) &&
                std::isnan(r.com.one_axis[0]) && std::isnan(r.hand[1].K_x(1, 1)));
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
    EXPECT_EQ(r.hand[0].status, StiffnessStatus::kRankDeficientJacobian);
    EXPECT_TRUE(std::isnan(r.hand[0].one_axis[0]));
    EXPECT_EQ(r.hand[1].status, StiffnessStatus::kOk);
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
