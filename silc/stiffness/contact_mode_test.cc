// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/contact_mode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "silc/base/rng.h"

namespace silc {
namespace {

constexpr double kDt = 0.02;  // [s]

TEST(ContactMode, AWalkGoesThroughItsModesInOrder) {
  ContactModeTracker tracker;
  std::vector<ContactMode> seen = {tracker.mode()};
  // left foot unloads, swings, lands; then the right one; then a jump; 10 steps each
  const double forces[][2] = {{170, 170}, {0, 340}, {170, 170}, {340, 0}, {170, 170}, {0, 0}};
  for (const auto& force : forces) {
    for (int k = 0; k < 10; ++k) {
      ASSERT_EQ(tracker.Update(force[0], force[1], kDt), StiffnessStatus::kOk);
      if (tracker.mode() != seen.back()) seen.push_back(tracker.mode());
    }
  }
  using M = ContactMode;
  EXPECT_EQ(seen,
            (std::vector<M>{M::kDoubleSupport,
                            M::kRightSupport,
                            M::kDoubleSupport,
                            M::kLeftSupport,
                            M::kDoubleSupport,
                            M::kFlight}));
}

// Hysteresis: noise that stays between the thresholds changes nothing, from either side.
TEST(ContactMode, NoiseBetweenTheThresholdsChangesNothing) {
  Rng rng(1);
  ContactModeTracker down, up({}, ContactMode::kRightSupport);
  for (int k = 0; k < 1000; ++k) {
    const double force = rng.Uniform(15.01, 29.99);
    down.Update(force, 300, kDt);
    up.Update(force, 300, kDt);
    ASSERT_EQ(down.mode(), ContactMode::kDoubleSupport);
    ASSERT_EQ(up.mode(), ContactMode::kRightSupport);
  }
}

// Dwell: a foot that bounces every step cannot change faster than min_dwell.
TEST(ContactMode, ABouncingFootChangesNoFasterThanTheDwell) {
  ContactModeOptions options;
  options.min_dwell = 5 * kDt;
  ContactModeTracker tracker(options);
  int changes = 0, since = 1000;
  ContactMode last = tracker.mode();
  for (int k = 0; k < 1000; ++k) {
    tracker.Update(k % 2 == 0 ? 0 : 200, 200, kDt);
    ++since;
    if (tracker.mode() == last) continue;
    EXPECT_GE(since, 5);
    since = 0;
    last = tracker.mode();
    ++changes;
  }
  EXPECT_GT(changes, 100);
}

TEST(ContactMode, NanLeavesTheModeAndIsTold) {
  ContactModeTracker tracker({}, ContactMode::kLeftSupport);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(tracker.Update(nan, 500, kDt), StiffnessStatus::kNotFinite);
  EXPECT_EQ(tracker.Update(0, nan, kDt), StiffnessStatus::kNotFinite);
  EXPECT_EQ(tracker.mode(), ContactMode::kLeftSupport);
}

TEST(ContactModeOptions, NonsenseIsToldInWords) {
  EXPECT_EQ(ContactModeOptions{}.Validate(), "");
  EXPECT_EQ((ContactModeOptions{10, 20, 0}).Validate(),
            "leave_force must not be above enter_force");
  EXPECT_EQ((ContactModeOptions{10, 0, 0}).Validate(), "leave_force must be above 0 N");
  EXPECT_EQ((ContactModeOptions{10, 5, -1}).Validate(), "min_dwell must not be negative");
  EXPECT_EQ((ContactModeOptions{NAN, 5, 0}).Validate(), "contact thresholds must be finite");
}

}  // namespace
}  // namespace silc
