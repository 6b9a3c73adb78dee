// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/fault.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string_view>

namespace silc {
namespace {

struct OneFault {
  OneFault(double limit, int ticks, Reaction reaction = Reaction::kStop) : monitor(Rules()) {
    FaultRules rules = Rules();
    rules[static_cast<std::size_t>(DriveFault::kTilt)] = {limit, ticks, reaction};
    monitor = FaultMonitor(rules);
    watched.fill(true);
  }
  static FaultRules Rules() {
    FaultRules rules;
    for (FaultRule& rule : rules) rule = {1e9, 1, Reaction::kStop};
    return rules;
  }
  DriveFault Update(double tilt) {
    FaultValues values;
    values[DriveFault::kTilt] = tilt;
    return monitor.Update(values, watched);
  }
  FaultMonitor monitor;
  std::array<bool, kNumFaults> watched{};
};

TEST(FaultMonitor, TripsAfterSoManyTicksInARowAboveTheLimit) {
  OneFault one(1.0, 3);
  for (int k = 0; k < 10; ++k) EXPECT_EQ(one.Update(1.0), DriveFault::kNone) << "at the limit";
  EXPECT_EQ(one.Update(1.1), DriveFault::kNone);
  EXPECT_EQ(one.Update(1.1), DriveFault::kNone);
  EXPECT_EQ(one.Update(0.9), DriveFault::kNone) << "begins anew";
  EXPECT_EQ(one.Update(1.1), DriveFault::kNone);
  EXPECT_EQ(one.Update(1.1), DriveFault::kNone);
  EXPECT_EQ(one.Update(1.1), DriveFault::kTilt);
  EXPECT_TRUE(one.monitor.newly_tripped(DriveFault::kTilt));
  EXPECT_EQ(one.Update(1.1), DriveFault::kTilt);
  EXPECT_FALSE(one.monitor.newly_tripped(DriveFault::kTilt)) << "told once";
}

TEST(FaultMonitor, ANumberThatIsNoneIsAboveEveryLimit) {
  OneFault one(1.0, 1);
  EXPECT_EQ(one.Update(std::nan("")), DriveFault::kTilt);
  // and no later candidate hides it
  FaultValues values;
  values.Worsen(DriveFault::kJointSpeed, std::nan(""), 3);
  values.Worsen(DriveFault::kJointSpeed, 2, 4);
  EXPECT_TRUE(std::isnan(values[DriveFault::kJointSpeed]));
}

TEST(FaultMonitor, AWarningTripsAndDoesNotStop) {
  OneFault one(1.0, 1, Reaction::kWarn);
  EXPECT_EQ(one.Update(2), DriveFault::kNone);
  EXPECT_TRUE(one.monitor.tripped(DriveFault::kTilt));
}

TEST(FaultMonitor, WhatIsNotWatchedDoesNotCount) {
  OneFault one(1.0, 2);
  one.watched.fill(false);
  for (int k = 0; k < 5; ++k) EXPECT_EQ(one.Update(2), DriveFault::kNone);
  one.watched.fill(true);
  EXPECT_EQ(one.Update(2), DriveFault::kNone) << "counts from here";
  EXPECT_EQ(one.Update(2), DriveFault::kTilt);
}

TEST(FaultKinds, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const FaultKind& kind : FaultKinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_EQ(FaultNamed(kind.name), kind.fault);
  }
  EXPECT_EQ(FaultNamed("nothing of that kind"), DriveFault::kNone);
}

}  // namespace
}  // namespace silc
