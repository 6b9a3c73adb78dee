// SPDX-License-Identifier: Apache-2.0
// Every row of the fault table in docs/deploy.md: put in, seen within the ticks stated, answered by
// damping in the same tick, latched until the operator lets go, told with time, value and limit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "silc/deploy/test_robot_frames.h"

namespace silc::test {
namespace {

struct FaultRow {
  DriveFault fault;
  DriveState from;                     // the least state in which it is watched
  std::function<void(Rig*)> inject;    // from now on
  int extra_ticks;                     // beyond the rule's, until the value is over its limit
  std::function<void(Rig*)> end = {};  // the cause is over
};

void PrintTo(const FaultRow& row, std::ostream* out) { *out << KindOf(row.fault).name; }

std::function<void(Rig*)> State(const std::function<void(LowState*)>& spoil) {
  return [spoil](Rig* rig) { rig->spoil_state = spoil; };
}

void Mend(Rig* rig) {
  rig->spoil_state = {};
  rig->spoil_bytes = {};
  rig->spoil_answer = {};
  rig->spoil_note = {};
  rig->drop_states = rig->drop_answers = rig->drop_notes = rig->freeze_tick = false;
  rig->extra_ns = 0;
  rig->link = LinkHealth{};
  rig->keys = OperatorRequest{};
  rig->log_dropped = 0;
  rig->policy_delay_s = 0.001;
}

const float kBad = std::nanf("");

std::vector<FaultRow> Rows() {
  constexpr DriveState kDamping = DriveState::kDamping, kStandUp = DriveState::kStandUp,
                       kPolicy = DriveState::kPolicy;
  return {
      {DriveFault::kEmergencyStop,
       DriveState::kOff,
       [](Rig* r) { r->keys.emergency_stop = true; },
       0},
      {DriveFault::kConsoleLost, kDamping, [](Rig* r) { r->keys.console_lost = true; }, 0},
      {DriveFault::kRemoteCorrupt,
       kDamping,
       State([](LowState* s) { std::memcpy(s->remote + 4, &kBad, 4); }),
       10},
      {DriveFault::kStateAge, kDamping, [](Rig* r) { r->drop_states = true; }, 25},
      {DriveFault::kStateCorrupt,
       kDamping,
       [](Rig* r) { r->spoil_bytes = [](LowState* s) { s->motor[7].q += 1; }; },
       2},
      {DriveFault::kTickFrozen, kDamping, [](Rig* r) { r->freeze_tick = true; }, 11},
      {DriveFault::kTickBackward, kDamping, [](Rig* r) { r->robot.tick = 0; }, 0},
      {DriveFault::kMachineMode, kDamping, State([](LowState* s) { s->mode_machine = 6; }), 0},
      {DriveFault::kModePr, kDamping, State([](LowState* s) { s->mode_pr = 1; }), 0},
      {DriveFault::kRobotLost, kDamping, [](Rig* r) { r->link.robot_present = false; }, 0},
      {DriveFault::kForeignWriter, kDamping, [](Rig* r) { r->link.foreign_writers = 1; }, 0},
      {DriveFault::kSendFailed, kDamping, [](Rig* r) { r->link.failed_sends = 6; }, 0},
      {DriveFault::kStateNotFinite,
       kDamping,
       State([](LowState* s) { s->motor[11].dq = kBad; }),
       0},
      {DriveFault::kImuQuaternion,
       kDamping,
       State([](LowState* s) { s->imu.quat_wxyz[0] = 0.9F; }),
       0},
      {DriveFault::kTilt,
       kStandUp,
       State([](LowState* s) {
         s->imu.quat_wxyz[0] = std::cos(0.55F);
         s->imu.quat_wxyz[2] = std::sin(0.55F);
       }),
       0},
      {DriveFault::kGyro, kStandUp, State([](LowState* s) { s->imu.gyro[1] = -6.5F; }), 0},
      {DriveFault::kJointSpeed, kStandUp, State([](LowState* s) { s->motor[3].dq = -10.5F; }), 0},
      {DriveFault::kFastJoints,
       kStandUp,
       State([](LowState* s) {
         for (int j = 0; j < 6; ++j) s->motor[j].dq = 6;
       }),
       0},
      {DriveFault::kJointRange, kStandUp, State([](LowState* s) { s->motor[4].q = -0.65F; }), 0},
      {DriveFault::kJointTorque, kStandUp, State([](LowState* s) { s->motor[5].tau_est = 90; }), 0},
      {DriveFault::kCasingTemperature,
       kStandUp,
       State([](LowState* s) { s->motor[9].temperature_C[0] = 86; }),
       0},
      {DriveFault::kWindingTemperature,
       kStandUp,
       State([](LowState* s) { s->motor[9].temperature_C[1] = 121; }),
       0},
      {DriveFault::kMotorFault,
       kStandUp,
       State([](LowState* s) { s->motor[28].fault_word = 4; }),
       0},
      // a motor that does not answer: its joint stays behind
      {DriveFault::kTracking, kPolicy, State([](LowState* s) { s->motor[12].q = 1.6F; }), 0},
      // the wrist of a robot that leans on it
      {DriveFault::kTorqueLimited,
       kPolicy,
       State([](LowState* s) { s->motor[0].q = 1.24F, s->motor[0].dq = 0; }),
       501},
      {DriveFault::kPolicyNotFinite,
       kPolicy,
       [](Rig* r) { r->spoil_answer = [](PolicyAnswer* a) { a->target[2] = kBad; }; },
       10},
      {DriveFault::kPolicyWidth,
       kPolicy,
       [](Rig* r) { r->spoil_answer = [](PolicyAnswer* a) { a->width = 23; }; },
       10},
      {DriveFault::kPolicyAge, kPolicy, [](Rig* r) { r->drop_answers = true; }, 31},
      {DriveFault::kPolicyOverruns, kPolicy, [](Rig* r) { r->policy_delay_s = 0.021; }, 60},
      {DriveFault::kTargetWild,
       kPolicy,
       [](Rig* r) { r->spoil_answer = [](PolicyAnswer* a) { a->target[0] = 3.2; }; },
       10},
      {DriveFault::kCommandGap, kStandUp, [](Rig* r) { r->extra_ns = 19'000'000; }, 0},
      {DriveFault::kCommandOverruns, kStandUp, [](Rig* r) { r->extra_ns = 3'000'000; }, 51},
      {DriveFault::kStiffness,
       kPolicy,
       [](Rig* r) { r->spoil_note = [](StiffnessNote* n) { n->sigma = 1.01; }; },
       0},
      {DriveFault::kActionLoop,
       kPolicy,
       [](Rig* r) { r->spoil_note = [](StiffnessNote* n) { n->rho = 1.02; }; },
       0},
  };
}

class FaultTable : public ::testing::TestWithParam<FaultRow> {};

TEST_P(FaultTable, IsSeenAnsweredAndLatched) {
  const FaultRow& row = GetParam();
  const auto first_state = static_cast<int>(row.from);
  for (int state = first_state; state <= static_cast<int>(DriveState::kPolicy); ++state) {
    Rig rig;
    rig.DriveTo(static_cast<DriveState>(state));
    // a joint that leans on its limit must not be seen as one that stays behind, and so on
    for (int other = 1; other < kNumFaults; ++other) {
      const bool tested = static_cast<DriveFault>(other) == row.fault;
      EXPECT_FALSE(tested && !(rig.commander.values()[row.fault] <=
                               rig.config.rules[std::size_t(other)].limit));
    }
    row.inject(&rig);
    const FaultRule& rule = rig.config.rules[static_cast<std::size_t>(row.fault)];
    int ticks = 0;
    const int allowed = rule.ticks + row.extra_ticks;
    while (!rig.commander.latched() && ticks < allowed) {
      rig.Step();
      ++ticks;
    }
    ASSERT_TRUE(rig.commander.latched()) << Name(static_cast<DriveState>(state)) << ", " << ticks;
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

TEST_P(FaultTable, IsNotSeenBelowItsLimitOrBeforeItsTicks) {
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

INSTANTIATE_TEST_SUITE_P(Rows, FaultTable, ::testing::ValuesIn(Rows()), [](const auto& row) {
  return std::string(KindOf(row.param.fault).name);
});

// Those that warn: told, counted, and the robot goes on.
TEST(FaultTableWarnings, AreToldAndTheRobotGoesOn) {
  const auto goes_on = [](DriveFault fault, const std::function<void(Rig*)>& inject, int ticks) {
    Rig rig;
    rig.DriveTo(DriveState::kPolicy);
    inject(&rig);
    bool told = false;
    for (int k = 0; k < ticks; ++k) {
      rig.Step();
      for (int i = 0; i < rig.last.num_reports; ++i) {
        const FaultReport& report = rig.last.reports[static_cast<std::size_t>(i)];
        told |= report.fault == fault && report.reaction == Reaction::kWarn;
      }
    }
    EXPECT_TRUE(told) << KindOf(fault).name;
    EXPECT_FALSE(rig.last.latched);
    EXPECT_EQ(rig.last.state, DriveState::kPolicy);
  };
  goes_on(
      DriveFault::kLogDropped, [](Rig* r) { r->log_dropped = 3; }, 2);
  goes_on(
      DriveFault::kObserverAge, [](Rig* r) { r->drop_notes = true; }, 502);
}

// Softening lowers kp while the budget is exceeded, no further than stated, and gives it back.
TEST(FaultTableWarnings, SofteningLowersGainsAndGivesThemBack) {
  CommanderConfig config = PlainConfig();
  config.rules[static_cast<std::size_t>(DriveFault::kStiffness)].reaction = Reaction::kSoften;
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

// The table has a test row for every fault that stops.
TEST(FaultTableWarnings, EveryFaultHasARow) {
  const std::vector<FaultRow> rows = Rows();
  const CommanderConfig config = PlainConfig();
  for (int i = 1; i < kNumFaults; ++i) {
    if (config.rules[static_cast<std::size_t>(i)].reaction != Reaction::kStop) continue;
    int found = 0;
    for (const FaultRow& row : rows) found += static_cast<int>(row.fault) == i ? 1 : 0;
    EXPECT_EQ(found, 1) << KindOf(static_cast<DriveFault>(i)).name;
  }
}

}  // namespace
}  // namespace silc::test
