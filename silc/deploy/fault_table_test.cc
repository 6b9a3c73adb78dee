// SPDX-License-Identifier: Apache-2.0
// Every row of the fault table in docs/deploy.md: put in, seen within the ticks stated, answered by
// damping in the same tick, latched until the operator lets go, told with time, value and limit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "silc/deploy/test_fault_rows.h"

namespace silc::test {
namespace {

std::vector<FaultRow> StoppingRows() {
  std::vector<FaultRow> rows = FaultRows();
  const CommanderConfig config = PlainConfig();
  std::erase_if(rows, [&](const FaultRow& row) {
    return config.rules[static_cast<std::size_t>(row.fault)].reaction != Reaction::kStop;
  });
  return rows;
}

// What the last tick told of a fault; null: nothing.
const FaultReport* Told(const Rig& rig, DriveFault fault) {
  for (int i = 0; i < rig.last.num_reports; ++i) {
    const FaultReport& report = rig.last.reports[static_cast<std::size_t>(i)];
    if (report.fault == fault) return &report;
  }
  return nullptr;
}

// Gains go down while the budget is exceeded, where the table has a warning.
CommanderConfig SofteningConfig() {
  CommanderConfig config = PlainConfig();
  config.rules[static_cast<std::size_t>(DriveFault::kStiffness)].reaction = Reaction::kSoften;
  return config;
}

class FaultTable : public ::testing::TestWithParam<FaultRow> {};

TEST_P(FaultTable, IsSeenAnsweredAndLatched) {
  const FaultRow& row = GetParam();
  const auto first_state = static_cast<int>(row.from);
  for (int state = first_state; state <= static_cast<int>(DriveState::kPolicy); ++state) {
    Rig rig;
    rig.DriveTo(static_cast<DriveState>(state));
    const FaultRule& rule = rig.config.rules[static_cast<std::size_t>(row.fault)];
    int ticks = 0;
    const int allowed = rule.ticks + row.extra_ticks;
    // left alone, the robot goes on: what is seen below comes from what is put in
    for (int k = 0; k < allowed; ++k) rig.Step();
    ASSERT_FALSE(rig.commander.latched()) << Name(static_cast<DriveState>(state));
    row.inject(&rig);
    while (!rig.commander.latched() && ticks < allowed) {
      rig.Step();
      ++ticks;
    }
    ASSERT_TRUE(rig.commander.latched()) << Name(static_cast<DriveState>(state)) << ", " << ticks;
    // and not sooner; the policy is asked in every tenth tick, sooner or later after the fault
    const int phase = KindOf(row.fault).watch == FaultWatch::kPolicy ? 10 : 0;
    EXPECT_GE(ticks, allowed - phase) << Name(static_cast<DriveState>(state));
    const FaultReport fault = rig.commander.latched_fault();
    EXPECT_EQ(KindOf(fault.fault).name, KindOf(row.fault).name);
    // told with time, value and limit
    EXPECT_EQ(fault.time_ns, rig.now_ns);
    EXPECT_FALSE(fault.value <= fault.limit);
    EXPECT_EQ(fault.limit, rule.limit);
    EXPECT_GE(rig.last.num_reports, 1);
    // answered in the same tick
    EXPECT_EQ(rig.last.state, DriveState::kDamping);
    EXPECT_TRUE(rig.last.send);
    EXPECT_TRUE(IsDamping(rig.last.command, rig.config));

    // latched: nothing but the operator's word opens the way, and that only when the cause is over
    Mend(&rig);
    for (int k = 0; k < 50; ++k) {
      rig.keys.stand = rig.keys.run = true;
      rig.Step();
      ASSERT_TRUE(IsDamping(rig.last.command, rig.config));
      ASSERT_TRUE(rig.last.latched);
    }
    // joints come to rest under it
    rig.Run(1);
    for (const double speed : rig.robot.qd) EXPECT_LT(std::abs(speed), 0.5);
    rig.keys.acknowledge = true;
    rig.Step();
    EXPECT_FALSE(rig.last.latched);
    EXPECT_EQ(rig.last.state, DriveState::kDamping) << "and waits there";
    rig.keys.stand = true;
    rig.Run(0.1);
    EXPECT_EQ(rig.last.state, DriveState::kStandUp);
  }
}

// Values that a limit allows, held for as long as the fault would need, are no fault: this or
// another.
TEST_P(FaultTable, IsNotSeenWhereItsLimitAllowsIt) {
  const FaultRow& row = GetParam();
  const CommanderConfig config = PlainConfig();
  const FaultRule& rule = config.rules[static_cast<std::size_t>(row.fault)];
  if (!row.inject_allowed) {
    EXPECT_TRUE(rule.limit == 0 || row.extra_ticks > 0) << "every other value can be put in";
    return;
  }
  Rig rig(config);
  rig.DriveTo(row.from);
  row.inject_allowed(&rig);
  for (int k = 0; k < rule.ticks + row.extra_ticks; ++k) {
    rig.Step();
    ASSERT_FALSE(rig.last.latched) << KindOf(rig.commander.latched_fault().fault).name << ", " << k;
  }
}

TEST_P(FaultTable, IsNotSeenBeforeItsTicks) {
  const FaultRow& row = GetParam();
  CommanderConfig config = PlainConfig();
  FaultRule& rule = config.rules[static_cast<std::size_t>(row.fault)];
  rule.ticks = 10'000;
  // others may follow from the same cause; only this one is looked at
  Rig rig(config);
  rig.DriveTo(DriveState::kPolicy);
  row.inject(&rig);
  for (int k = 0; k < 600; ++k) {
    rig.Step();
    ASSERT_NE(rig.commander.latched_fault().fault, row.fault);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows,
                         FaultTable,
                         ::testing::ValuesIn(StoppingRows()),
                         [](const auto& row) { return std::string(KindOf(row.param.fault).name); });

// Those that warn: told, counted, and the robot goes on.
TEST(FaultTableWarnings, AreToldAndTheRobotGoesOn) {
  int warnings = 0;
  for (const FaultRow& row : FaultRows()) {
    Rig rig;
    const FaultRule& rule = rig.config.rules[static_cast<std::size_t>(row.fault)];
    if (rule.reaction != Reaction::kWarn) continue;
    ++warnings;
    rig.DriveTo(DriveState::kPolicy);
    row.inject(&rig);
    bool told = false;
    for (int k = 0; k < rule.ticks + row.extra_ticks; ++k) {
      rig.Step();
      const FaultReport* report = Told(rig, row.fault);
      told |= report != nullptr && report->reaction == Reaction::kWarn;
    }
    EXPECT_TRUE(told) << KindOf(row.fault).name;
    EXPECT_FALSE(rig.last.latched);
    EXPECT_EQ(rig.last.state, DriveState::kPolicy);
  }
  EXPECT_EQ(warnings, 2);
}

// Without an observer none is waited for.
TEST(FaultTableWarnings, NobodyIsMissedWhereNobodyObserves) {
  CommanderConfig config = PlainConfig();
  config.observed = false;
  Rig rig(config);
  rig.drop_notes = true;
  rig.DriveTo(DriveState::kPolicy);
  for (int k = 0; k < 1000; ++k) {
    rig.Step();
    ASSERT_EQ(rig.last.num_reports, 0);
  }
}

// However many faults begin in one tick, each is told, once.
TEST(FaultTableWarnings, EveryFaultOfATickIsTold) {
  CommanderConfig config = PlainConfig();
  for (FaultRule& rule : config.rules) rule.ticks = 1;
  Rig rig(config);
  rig.DriveTo(DriveState::kPolicy);
  const DriveFault together[] = {DriveFault::kEmergencyStop,
                                 DriveFault::kConsoleLost,
                                 DriveFault::kTickBackward,
                                 DriveFault::kMachineMode,
                                 DriveFault::kModePr,
                                 DriveFault::kRobotLost,
                                 DriveFault::kForeignWriter,
                                 DriveFault::kSendFailed,
                                 DriveFault::kImuQuaternion,
                                 DriveFault::kGyro,
                                 DriveFault::kJointSpeed,
                                 DriveFault::kJointRange,
                                 DriveFault::kCasingTemperature,
                                 DriveFault::kWindingTemperature,
                                 DriveFault::kMotorFault,
                                 DriveFault::kCommandGap,
                                 DriveFault::kLogDropped,
                                 DriveFault::kStiffness,
                                 DriveFault::kActionLoop};
  for (const FaultRow& row : FaultRows()) {
    if (std::count(std::begin(together), std::end(together), row.fault) > 0) row.inject(&rig);
  }
  rig.Step();
  EXPECT_GE(rig.last.num_reports, static_cast<int>(std::size(together)));
  for (const DriveFault fault : together) {
    const FaultReport* report = Told(rig, fault);
    EXPECT_NE(report, nullptr) << KindOf(fault).name;
  }
  EXPECT_EQ(rig.commander.latched_fault().fault, DriveFault::kEmergencyStop) << "the first";
}

// Softening lowers kp while the budget is exceeded, no further than stated, and gives it back.
TEST(FaultTableWarnings, SofteningLowersGainsAndGivesThemBack) {
  const CommanderConfig config = SofteningConfig();
  Rig rig(config);
  rig.DriveTo(DriveState::kPolicy);
  const float before = rig.last.command.motor[4].kp;
  rig.spoil_note = [](StiffnessNote* n) { n->sigma = 1.5; };
  rig.Run(0.5 + 0.5);
  EXPECT_NEAR(rig.last.command.motor[4].kp / before, 0.75, 0.01);
  rig.Run(3);
  EXPECT_NEAR(rig.last.command.motor[4].kp / before, config.softest, 1e-6);
  EXPECT_FALSE(rig.last.latched);
  rig.spoil_note = {};
  rig.Run(2);
  EXPECT_FLOAT_EQ(rig.last.command.motor[4].kp, before);
}

// A moment without a static stiffness is neither good nor bad. It does not erase what was counted:
// a policy that is over its budget whenever it can be judged is stopped, however often it cannot.
TEST(UnjudgedStiffness, NeitherCountsNorErasesTheCount) {
  const auto stops_after = [](const std::function<void(int, StiffnessNote*)>& say) {
    Rig rig;
    rig.DriveTo(DriveState::kPolicy);
    int tick = 0;
    rig.spoil_note = [&](StiffnessNote* note) { say(tick, note); };
    for (; tick < 2000 && !rig.last.latched; ++tick) rig.Step();
    if (rig.last.latched) {
      EXPECT_EQ(rig.commander.latched_fault().fault, DriveFault::kStiffness);
    }
    return tick;
  };
  const auto over = [](StiffnessNote* note) { note->sigma = 1.01; };
  const auto unjudged = [](StiffnessNote* note) {
    note->judged = false;
    note->sigma = std::nan("");
  };
  EXPECT_EQ(stops_after([&](int, StiffnessNote* n) { over(n); }), 250);
  // ten ticks each, by turns: 250 ticks over the budget are complete after 25 of the former
  EXPECT_EQ(
      stops_after([&](int tick, StiffnessNote* n) { tick / 10 % 2 == 0 ? over(n) : unjudged(n); }),
      490);
  // the same with an unstable action loop in the moments between
  EXPECT_EQ(stops_after([&](int tick, StiffnessNote* n) {
              if (tick / 10 % 2 == 0) return over(n);
              unjudged(n);
              n->rho = 1.2;
            }),
            490);
  // a moment within the budget begins the count anew, and what is never judged is never over
  EXPECT_EQ(stops_after([&](int tick, StiffnessNote* n) {
              if (tick % 200 < 190) over(n);
            }),
            2000);
  EXPECT_EQ(stops_after([&](int, StiffnessNote* n) { unjudged(n); }), 2000);
}

// A budget that nobody can judge is not one that holds: after a second without a judged moment that
// is told, though moments come in.
TEST(UnjudgedStiffness, IsToldWhenItLasts) {
  Rig rig;
  rig.DriveTo(DriveState::kPolicy);
  rig.spoil_note = [](StiffnessNote* note) { note->judged = false; };
  int told_at = 0;
  for (int k = 1; k <= 600 && told_at == 0; ++k) {
    rig.Step();
    if (Told(rig, DriveFault::kObserverAge) != nullptr) told_at = k;
  }
  EXPECT_EQ(told_at, 501);
  EXPECT_FALSE(rig.last.latched);
}

// Softened gains are given back by a moment within the budget, not by one that says nothing.
TEST(UnjudgedStiffness, KeepsGainsSoft) {
  const CommanderConfig config = SofteningConfig();
  Rig rig(config);
  rig.DriveTo(DriveState::kPolicy);
  const float before = rig.last.command.motor[4].kp;
  rig.spoil_note = [](StiffnessNote* n) { n->sigma = 1.5; };
  rig.Run(3);
  rig.spoil_note = [](StiffnessNote* n) { n->judged = false; };
  rig.Run(3);
  EXPECT_NEAR(rig.last.command.motor[4].kp / before, config.softest, 1e-6);
  rig.spoil_note = {};
  rig.Run(2);
  EXPECT_FLOAT_EQ(rig.last.command.motor[4].kp, before);
}

// The table has a test row for every fault.
TEST(FaultTableWarnings, EveryFaultHasARow) {
  const std::vector<FaultRow> rows = FaultRows();
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(kNumFaults - 1));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(KindOf(rows[i].fault).name, FaultKinds()[i + 1].name);
  }
}

}  // namespace
}  // namespace silc::test
