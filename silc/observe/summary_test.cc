// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/summary.h"

#include <gtest/gtest.h>

#include <cmath>

namespace silc {
namespace {

TEST(Quantile, InterpolatesAndLeavesOutWhatIsNoNumber) {
  EXPECT_DOUBLE_EQ(Quantile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(Quantile({0, 10}, 0.25), 2.5);
  EXPECT_DOUBLE_EQ(Quantile({NAN, 4, INFINITY}, 0.99), 4);
  EXPECT_TRUE(std::isnan(Quantile({}, 0.5)));
}

Moment MakeMoment(ContactMode mode, double sigma) {
  Moment moment;
  moment.mode = mode;
  moment.reading.K_1_diag = moment.reading.K_s_diag = Eigen::VectorXd::Constant(1, sigma * 10);
  moment.reading.static_status = StiffnessStatus::kOk;
  moment.reading.quasi_static = {StiffnessStatus::kOk, sigma, sigma / 2};
  for (auto& damping : moment.damping) damping = Eigen::VectorXd::Constant(1, 3);
  moment.random_directions.samples = 10;
  moment.random_directions.violations = sigma > 1 ? 5 : 0;
  return moment;
}

// Worked by hand: two moments on the left foot (σ 0.5 and 2), two on both feet (σ 3 and none).
TEST(Summarize, CountsByContactMode) {
  ObservationRun run;
  run.joints = {"knee"};
  run.servo.kp = run.servo.kd = run.servo.alpha = JointVector::Constant(1, 1);
  run.moments = {MakeMoment(ContactMode::kLeftSupport, 0.5),
                 MakeMoment(ContactMode::kLeftSupport, 2),
                 MakeMoment(ContactMode::kDoubleSupport, 3),
                 MakeMoment(ContactMode::kDoubleSupport, NAN)};
  run.moments[3].reading.static_status = StiffnessStatus::kUnstableActionLoop;
  run.moments[3].reading.quasi_static.status = StiffnessStatus::kUnstableActionLoop;
  run.moments[3].random_directions = {};
  run.moments[0].reading.loop = {StiffnessStatus::kOk, 0.9, ActionLoopMethod::kBound};

  const RunSummary summary = Summarize(run);
  ASSERT_EQ(summary.modes.size(), 3u);  // double, left, all
  EXPECT_EQ(summary.modes[0].mode, ContactMode::kDoubleSupport);
  EXPECT_EQ(summary.modes[0].judged, 1);
  EXPECT_DOUBLE_EQ(summary.modes[0].violations, 1);
  EXPECT_DOUBLE_EQ(summary.modes[1].violations, 0.5);
  EXPECT_DOUBLE_EQ(summary.modes[1].sigma_median, 1.25);
  EXPECT_DOUBLE_EQ(summary.modes[1].random_direction_violations, 0.25);
  EXPECT_EQ(summary.modes[2].moments, 4);
  // a moment that cannot be judged counts as over the budget
  EXPECT_DOUBLE_EQ(summary.modes[2].violations, 0.75);
  EXPECT_TRUE(summary.loop_radius_is_bound);
  ASSERT_EQ(summary.missing.size(), 1u);
  EXPECT_EQ(summary.missing[0].first, StiffnessStatus::kUnstableActionLoop);
  EXPECT_EQ(summary.missing[0].second, 1);
  EXPECT_DOUBLE_EQ(summary.joints[0].quasi_static, 20);
  EXPECT_DOUBLE_EQ(summary.joints[0].damping[1], 3);
}

// A circle of radius 2 m walked at 0.5 m/s is forward motion with a yaw rate of 0.25 rad/s.
TEST(Summarize, VelocityIsInTheHeadingFrame) {
  ObservationRun run;
  run.timing.period = 0.02;
  for (int i = 0; i < 2000; ++i) {
    const double angle = 0.25 * i * run.timing.period;
    Moment moment = MakeMoment(ContactMode::kDoubleSupport, 1);
    moment.p_WB = {2 * std::sin(angle), 2 * (1 - std::cos(angle)), 0.75};
    moment.yaw = std::remainder(angle, 2 * M_PI);
    run.moments.push_back(moment);
  }
  const Eigen::Vector3d velocity = Summarize(run).velocity;
  EXPECT_NEAR(velocity[0], 0.5, 1e-4);
  EXPECT_NEAR(velocity[1], 0, 2e-3);  // a chord leaves its first heading by half a step's turn
  EXPECT_NEAR(velocity[2], 0.25, 1e-9);
}

}  // namespace
}  // namespace silc
