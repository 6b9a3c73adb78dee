// SPDX-License-Identifier: Apache-2.0
// Every row of the fault table in docs/deploy.md: put in, seen within the ticks stated, answered by
// damping in the same tick, latched until the operator lets go, told with time, value and limit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/deploy/test_fault_rows.h"

namespace silc::test {
namespace {

const FaultRule& RuleOf(DriveFault fault, const CommanderConfig& config) {
  return config.rules[static_cast<std::size_t>(fault)];
}

std::vector<FaultRow> StoppingRows() {
  std::vector<FaultRow> rows = FaultRows();
  const CommanderConfig config = PlainConfig();
  std::erase_if(rows, [&](const FaultRow& row) {
    return RuleOf(row.fault, config).reaction != Reaction::kStop;
  });
  return rows;
}

std::string TestName(const ::testing::TestParamInfo<FaultRow>& row) { return NameOf(row.param); }

// Ticks within which a row stops the robot, from when it is put in or watched on.
int AllowedTicks(const FaultRow& row, const CommanderConfig& config) {
  return RuleOf(row.fault, config).ticks + row.extra_ticks;
}

// Steps until the robot is stopped, `most` times at most.
int StepsUntilStopped(Rig* rig, int most) {
  int steps = 0;
  for (; !rig->commander.latched() && steps < most; ++steps) rig->Step();
  return steps;
}

// Stopped by that fault, told in the last tick, and damped in it.
void ExpectStopped(const Rig& rig, DriveFault by) {
  ASSERT_TRUE(rig.commander.latched());
  EXPECT_EQ(KindOf(rig.commander.latched_fault().fault).name, KindOf(by).name);
  EXPECT_EQ(rig.commander.latched_fault().time_ns, rig.now_ns);
  EXPECT_EQ(rig.last.state, DriveState::kDamping);
  EXPECT_TRUE(rig.last.send);
  EXPECT_TRUE(IsDamping(rig.last.command, rig.config));
}

// What the last tick told of a fault; null: nothing.
const FaultReport* Told(const Rig& rig, DriveFault fault) {
  for (int i = 0; i < rig.last.num_reports; ++i) {
    const FaultReport& report = rig.last.reports[static_cast<std::size_t>(i)];
    if (report.fault == fault) return &report;
  }
  return nullptr;
}

// Gains go down while a fault lasts, where the table has a warning.
CommanderConfig SofteningConfig(DriveFault fault = DriveFault::kStiffness) {
  CommanderConfig config = PlainConfig();
  config.rules[static_cast<std::size_t>(fault)].reaction = Reaction::kSoften;
  return config;
}

class FaultTable : public ::testing::TestWithParam<FaultRow> {};

TEST_P(FaultTable, IsSeenAnsweredAndLatched) {
  const FaultRow& row = GetParam();
  const auto first_state = static_cast<int>(row.from);
  for (int state = first_state; state <= static_cast<int>(DriveState::kPolicy); ++state) {
    CommanderConfig config = PlainConfig();
    // which lasts for as long as the slowest fault needs
    if (state == static_cast<int>(DriveState::kStandUp)) config.stand_up_time = 3;
    Rig rig(config);
    rig.DriveTo(static_cast<DriveState>(state));
    const FaultRule& rule = RuleOf(row.fault, config);
    const int allowed = AllowedTicks(row, config);
    // left alone, the robot goes on: what is seen below comes from what is put in
    for (int k = 0; k < allowed; ++k) rig.Step();
    ASSERT_FALSE(rig.commander.latched()) << Name(static_cast<DriveState>(state));
    ASSERT_EQ(rig.commander.state(), static_cast<DriveState>(state));
    row.inject(&rig);
    const int ticks = StepsUntilStopped(&rig, allowed);
    ASSERT_TRUE(rig.commander.latched()) << Name(static_cast<DriveState>(state)) << ", " << ticks;
    // and not sooner; the policy is asked in every tenth tick, sooner or later after the fault
    const int phase = KindOf(row.fault).watch == FaultWatch::kPolicy ? 10 : 0;
    EXPECT_GE(ticks, allowed - phase) << Name(static_cast<DriveState>(state));
    // answered in the same tick, and told with time, value and limit
    ExpectStopped(rig, row.fault);
    const FaultReport fault = rig.commander.latched_fault();
    EXPECT_FALSE(fault.value <= fault.limit);
    EXPECT_EQ(fault.limit, rule.limit);
    EXPECT_GE(rig.last.num_reports, 1);

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

// While gains and targets are blended into the policy's, faults stop the robot as they do later.
TEST_P(FaultTable, IsSeenWhileThePolicyTakesOver) {
  const FaultRow& row = GetParam();
  CommanderConfig config = PlainConfig();
  config.blend_time = 3;
  Rig rig(config);
  rig.DriveTo(DriveState::kStanding);
  rig.keys.run = true;
  rig.Run(0.05);
  ASSERT_EQ(rig.last.state, DriveState::kPolicy);
  ASSERT_GT(rig.last.command.motor[4].kp, 1.01 * config.kp[4]) << "still between the two";
  row.inject(&rig);
  StepsUntilStopped(&rig, AllowedTicks(row, config));
  ExpectStopped(rig, row.fault);
}

// Trouble that is there before anybody watches for it stops the robot within the same ticks, from
// the operator's request on; or the request is refused.
TEST_P(FaultTable, IsSeenWhereItWasThereBefore) {
  const FaultRow& row = GetParam();
  if (row.once) return;  // nobody has seen it, and it is over
  const CommanderConfig config = PlainConfig();
  const int allowed = AllowedTicks(row, config);
  Rig rig(config);
  const bool when_off = row.from <= DriveState::kDamping,
             by_policy = row.from == DriveState::kPolicy;
  rig.DriveTo(when_off    ? DriveState::kOff
              : by_policy ? DriveState::kStanding
                          : DriveState::kDamping);
  row.inject(&rig);
  if (row.from == DriveState::kOff) {
    rig.Step();
    return ExpectStopped(rig, row.fault);
  }
  for (int k = 0; k < allowed; ++k) rig.Step();
  ASSERT_FALSE(rig.last.latched) << "nobody watches for it";
  if (when_off) {
    ASSERT_FALSE(rig.last.send);
    rig.keys.damp = true;
  } else if (by_policy) {
    rig.keys.run = true;
  } else {
    rig.keys.stand = true;
  }
  rig.Step();
  if (rig.last.refused != DriveFault::kNone) {
    EXPECT_EQ(KindOf(rig.last.refused).name, KindOf(row.fault).name);
    EXPECT_FALSE(by_policy);
    EXPECT_EQ(rig.last.state, when_off ? DriveState::kOff : DriveState::kDamping);
    EXPECT_EQ(rig.last.send, !when_off) << "what was not begun is not begun";
    EXPECT_TRUE(IsDamping(rig.last.command, config));
    EXPECT_FALSE(rig.last.latched);
    return;
  }
  if (when_off) {
    EXPECT_TRUE(row.fault == DriveFault::kConsoleLost || row.fault == DriveFault::kSendFailed)
        << "the operator who is there asks; what is not sent does not fail";
  }
  // standing up itself may be what brings it about
  const int more = when_off || by_policy ? 0 : 1000;
  StepsUntilStopped(&rig, allowed + more);
  ExpectStopped(rig, row.fault);
}

// The operator's word does not open the way while the cause is there, as far as a damped robot can
// tell; what came of the policy or the servo is over with it.
TEST_P(FaultTable, HoldsItsLatchForAsLongAsItLasts) {
  const FaultRow& row = GetParam();
  const CommanderConfig config = PlainConfig();
  Rig rig(config);
  rig.DriveTo(DriveState::kPolicy);
  row.inject(&rig);
  StepsUntilStopped(&rig, AllowedTicks(row, config));
  ASSERT_TRUE(rig.last.latched);
  const bool ends_in_damping = row.once || KindOf(row.fault).watch == FaultWatch::kPolicy ||
                               row.fault == DriveFault::kTracking ||
                               row.fault == DriveFault::kTorqueLimited;
  for (int k = 0; k < 20; ++k) {
    rig.keys.acknowledge = true;
    rig.Step();
    ASSERT_TRUE(IsDamping(rig.last.command, config));
    ASSERT_EQ(rig.last.latched, !ends_in_damping);
    if (ends_in_damping) return;
    ASSERT_EQ(KindOf(rig.last.refused).name, KindOf(row.fault).name);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, FaultTable, ::testing::ValuesIn(StoppingRows()), TestName);
INSTANTIATE_TEST_SUITE_P(OtherWays, FaultTable, ::testing::ValuesIn(OtherWaysIn()), TestName);

class FaultLimits : public ::testing::TestWithParam<FaultRow> {};

// Values that a limit allows, held for as long as the fault would need, are no fault: this or
// another.
TEST_P(FaultLimits, IsNotSeenWhereItsLimitAllowsIt) {
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

TEST_P(FaultLimits, IsNotSeenBeforeItsTicks) {
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

INSTANTIATE_TEST_SUITE_P(Rows, FaultLimits, ::testing::ValuesIn(StoppingRows()), TestName);

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
  rig.link.failed_sends = 6;  // the row refuses one after the other
  rig.Step();
  EXPECT_GE(rig.last.num_reports, static_cast<int>(std::size(together)));
  for (const DriveFault fault : together) {
    const FaultReport* report = Told(rig, fault);
    EXPECT_NE(report, nullptr) << KindOf(fault).name;
  }
  EXPECT_EQ(rig.commander.latched_fault().fault, DriveFault::kEmergencyStop) << "the first";
}

// Softening lowers kp while the fault lasts, no further than stated, and gives it back.
TEST(FaultTableWarnings, SofteningLowersGainsAndGivesThemBack) {
  const std::pair<DriveFault, void (*)(StiffnessNote*)> softening[] = {
      {DriveFault::kStiffness, [](StiffnessNote* n) { n->sigma = 1.5; }},
      {DriveFault::kActionLoop, [](StiffnessNote* n) { n->rho = 1.1; }},
  };
  for (const auto& [fault, spoil] : softening) {
    SCOPED_TRACE(KindOf(fault).name);
    const CommanderConfig config = SofteningConfig(fault);
    Rig rig(config);
    rig.DriveTo(DriveState::kPolicy);
    const float before = rig.last.command.motor[4].kp;
    rig.spoil_note = spoil;
    rig.Run(0.5 + 0.5);
    EXPECT_NEAR(rig.last.command.motor[4].kp / before, 0.75, 0.01);
    rig.Run(3);
    EXPECT_NEAR(rig.last.command.motor[4].kp / before, config.softest, 1e-6);
    EXPECT_FALSE(rig.last.latched);
    rig.spoil_note = {};
    rig.Run(2);
    EXPECT_FLOAT_EQ(rig.last.command.motor[4].kp, before);
  }
}

// A policy that was softened is no reason to stand up with half the gains.
TEST(FaultTableWarnings, SoftenedGainsAreThePolicysAlone) {
  Rig rig(SofteningConfig());
  rig.DriveTo(DriveState::kPolicy);
  rig.spoil_note = [](StiffnessNote* n) { n->sigma = 1.5; };
  rig.Run(3);
  rig.keys.damp = true;
  rig.Run(1);
  ASSERT_EQ(rig.last.state, DriveState::kDamping);
  rig.keys.stand = true;
  rig.Step();
  ASSERT_EQ(rig.last.state, DriveState::kStandUp);
  EXPECT_FLOAT_EQ(rig.last.command.motor[4].kp, static_cast<float>(rig.config.stand_kp[4]));
}

// "Without a pause" means through states, too: a joint that leans on something while the robot
// stands up does not begin anew when it stands, or when the policy takes over.
TEST(TorqueLimited, CountsThroughStates) {
  Rig rig;
  rig.DriveTo(DriveState::kStandUp);
  rig.Run(1.9 - 0.4);  // of 2 s
  rig.spoil_state = [](LowState* s) { s->motor[0].q = 1.2F, s->motor[0].dq = 0; };
  int ticks = 0, standing = 0, policy = 0;
  while (!rig.commander.latched() && ticks < 600) {
    if (rig.last.state == DriveState::kStanding) rig.keys.run = ++standing == 50;
    rig.Step();
    ++ticks;
    policy += rig.last.state == DriveState::kPolicy ? 1 : 0;
  }
  EXPECT_GT(standing, 40);
  EXPECT_GT(policy, 40);
  EXPECT_EQ(ticks, 502) << "a second";
  ASSERT_TRUE(rig.commander.latched());
  EXPECT_EQ(rig.commander.latched_fault().fault, DriveFault::kTorqueLimited);
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

// The last note counts until the next: an observer that falls silent after a moment over the budget
// leaves nobody who says that it is over.
TEST(UnjudgedStiffness, SilenceAfterAMomentOverTheBudgetStops) {
  Rig rig;
  rig.DriveTo(DriveState::kPolicy);
  rig.spoil_note = [](StiffnessNote* note) { note->sigma = 1.01; };
  rig.Step();
  rig.drop_notes = true;
  int ticks = 1;
  for (; ticks < 500 && !rig.last.latched; ++ticks) rig.Step();
  EXPECT_EQ(ticks, 250);
  EXPECT_EQ(rig.commander.latched_fault().fault, DriveFault::kStiffness);
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

// docs/deploy.md says how long a value needs to pass its limit, and when it is watched: as the rows
// above measure it. Limits and ticks are held to robots/g1/robot.yaml in safety_config_test.cc.
TEST(FaultTableDocs, SaysWhatTheRowsMeasure) {
  const std::string page = ReadFile(SourcePath("docs/deploy.md"));
  for (const FaultRow& row : FaultRows()) {
    const std::string begin = "\n| `" + std::string(KindOf(row.fault).name) + "` | ";
    const std::size_t at = page.find(begin);
    ASSERT_NE(at, std::string::npos) << begin;
    std::istringstream line(page.substr(at + begin.size(), page.find('\n', at + 1)));
    std::string limit, ticks, until, watched;
    for (std::string* cell : {&limit, &ticks, &until, &watched}) std::getline(line, *cell, '|');
    EXPECT_EQ(std::stoi(until), row.extra_ticks) << begin;
    const FaultWatch watch = KindOf(row.fault).watch;
    const char* word = watch == FaultWatch::kAlways   ? "always"
                       : watch == FaultWatch::kMoving ? "moving"
                                                      : "policy";
    EXPECT_EQ(watched.find(word), 1U) << begin << watched;
  }
}

}  // namespace
}  // namespace silc::test
