// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/test_fault_rows.h"

#include <cmath>
#include <cstring>
#include <ostream>

namespace silc::test {
namespace {

const float kBad = std::nanf("");
constexpr DriveState kDamping = DriveState::kDamping, kStandUp = DriveState::kStandUp,
                     kStanding = DriveState::kStanding, kPolicy = DriveState::kPolicy;

// Spoils a frame, an answer or a note after what spoils it already.
template <typename T>
std::function<void(Rig*)> Also(std::function<void(T*)> Rig::*where,
                               const std::function<void(T*)>& spoil) {
  return [where, spoil](Rig* rig) {
    rig->*where = [before = rig->*where, spoil](T* what) {
      if (before) before(what);
      spoil(what);
    };
  };
}
std::function<void(Rig*)> State(const std::function<void(LowState*)>& spoil) {
  return Also(&Rig::spoil_state, spoil);
}
std::function<void(Rig*)> OnTheWay(const std::function<void(LowState*)>& spoil) {
  return Also(&Rig::spoil_bytes, spoil);
}
std::function<void(Rig*)> Answer(const std::function<void(PolicyAnswer*)>& spoil) {
  return Also(&Rig::spoil_answer, spoil);
}
std::function<void(Rig*)> Note(const std::function<void(StiffnessNote*)>& spoil) {
  return Also(&Rig::spoil_note, spoil);
}

// The operator and what the operator holds.
std::vector<FaultRow> OperatorRows() {
  return {
      {DriveFault::kEmergencyStop,
       DriveState::kOff,
       [](Rig* r) { r->keys.emergency_stop = true; },
       0,
       true},
      {DriveFault::kConsoleLost, kDamping, [](Rig* r) { r->keys.console_lost = true; }, 0},
      {DriveFault::kRemoteCorrupt,
       kDamping,
       State([](LowState* s) { std::memcpy(s->remote + 4, &kBad, 4); }),
       10},
  };
}

// States and commands on their way.
std::vector<FaultRow> LinkRows() {
  return {
      {DriveFault::kStateAge, kDamping, [](Rig* r) { r->drop_states = true; }, 25},
      {DriveFault::kStateCorrupt, kDamping, OnTheWay([](LowState* s) { s->motor[7].q += 1; }), 2},
      {DriveFault::kTickFrozen, kDamping, [](Rig* r) { r->freeze_tick = true; }, 10},
      {DriveFault::kTickBackward, kDamping, [](Rig* r) { r->robot.tick = 0; }, 0, true},
      {DriveFault::kMachineMode, kDamping, State([](LowState* s) { s->mode_machine = 6; }), 0},
      {DriveFault::kModePr, kDamping, State([](LowState* s) { s->mode_pr = 1; }), 0},
      {DriveFault::kRobotLost, kDamping, [](Rig* r) { r->link.robot_present = false; }, 0},
      {DriveFault::kForeignWriter, kDamping, [](Rig* r) { r->link.foreign_writers = 1; }, 0},
      {DriveFault::kSendFailed, kDamping, [](Rig* r) { r->refuse_sends = true; }, 6},
      {DriveFault::kSendBlocked, kDamping, [](Rig* r) { r->blocked_since_ns = r->now_ns; }, 25},
  };
}

// What the robot says of its base, and numbers that are none.
std::vector<FaultRow> BaseRows() {
  return {
      {DriveFault::kStateNotFinite,
       kDamping,
       State([](LowState* s) { s->motor[11].dq = kBad; }),
       0},
      {DriveFault::kImuQuaternion,
       kDamping,
       State([](LowState* s) { s->imu.quat_wxyz[0] = 0.9F; }),
       0,
       false,
       State([](LowState* s) { s->imu.quat_wxyz[0] = 0.9505F; })},
      {DriveFault::kTilt,
       kStandUp,
       State([](LowState* s) {
         s->imu.quat_wxyz[0] = std::cos(0.55F);
         s->imu.quat_wxyz[2] = std::sin(0.55F);
       }),
       0,
       false,
       State([](LowState* s) {
         s->imu.quat_wxyz[0] = std::cos(0.499F);
         s->imu.quat_wxyz[2] = std::sin(0.499F);
       })},
      {DriveFault::kGyro,
       kStandUp,
       State([](LowState* s) { s->imu.gyro[1] = -6.5F; }),
       0,
       false,
       State([](LowState* s) { s->imu.gyro[1] = -6; })},
  };
}

// What the robot says of its joints and motors.
std::vector<FaultRow> JointRows() {
  return {
      {DriveFault::kJointSpeed,
       kStandUp,
       State([](LowState* s) { s->motor[3].dq = -10.5F; }),
       0,
       false,
       State([](LowState* s) { s->motor[3].dq = -9.89F; })},
      {DriveFault::kFastJoints,
       kStandUp,
       State([](LowState* s) {
         for (int j = 0; j < 6; ++j) s->motor[j].dq = 6;
       }),
       0,
       false,
       State([](LowState* s) {
         for (int j = 0; j < 5; ++j) s->motor[j].dq = 6;
       })},
      {DriveFault::kJointRange,
       kStandUp,
       State([](LowState* s) { s->motor[4].q = -0.65F; }),
       0,
       false,
       State([](LowState* s) { s->motor[4].q = -0.599F; })},
      {DriveFault::kJointTorque,
       kStandUp,
       State([](LowState* s) { s->motor[5].tau_est = 90; }),
       0,
       false,
       State([](LowState* s) { s->motor[5].tau_est = 65.9F; })},
      {DriveFault::kCasingTemperature,
       kStandUp,
       State([](LowState* s) { s->motor[9].temperature_C[0] = 86; }),
       0,
       false,
       State([](LowState* s) { s->motor[9].temperature_C[0] = 85; })},
      {DriveFault::kWindingTemperature,
       kStandUp,
       State([](LowState* s) { s->motor[9].temperature_C[1] = 121; }),
       0,
       false,
       State([](LowState* s) { s->motor[9].temperature_C[1] = 120; })},
      {DriveFault::kMotorFault,
       kStandUp,
       State([](LowState* s) { s->motor[28].fault_word = 4; }),
       0},
      // a motor that does not answer: its joint stays behind
      {DriveFault::kTracking,
       kStanding,
       State([](LowState* s) { s->motor[12].q = 1.6F, s->motor[12].dq = 0; }),
       0,
       false,
       State([](LowState* s) { s->motor[12].q = 1.415F, s->motor[12].dq = 0; })},
      // a leg that leans on something
      {DriveFault::kTorqueLimited,
       kStanding,
       State([](LowState* s) { s->motor[0].q = 1.2F, s->motor[0].dq = 0; }),
       501},
  };
}

// What the policy answers, and when.
std::vector<FaultRow> PolicyRows() {
  return {
      {DriveFault::kPolicyNotFinite,
       kPolicy,
       Answer([](PolicyAnswer* a) { a->target[2] = kBad; }),
       10},
      {DriveFault::kPolicyWidth, kPolicy, Answer([](PolicyAnswer* a) { a->width = 23; }), 10},
      {DriveFault::kPolicyAge, kPolicy, [](Rig* r) { r->drop_answers = true; }, 31},
      {DriveFault::kPolicyOverruns, kPolicy, [](Rig* r) { r->policy_delay_s = 0.021; }, 60},
      {DriveFault::kTargetWild,
       kPolicy,
       Answer([](PolicyAnswer* a) { a->target[0] = 3.2; }),
       10,
       false,
       Answer([](PolicyAnswer* a) { a->target[0] = 2.99; })},
  };
}

// The computer that runs all this.
std::vector<FaultRow> ComputerRows() {
  return {
      {DriveFault::kCommandGap,
       kStandUp,
       [](Rig* r) { r->extra_ns = 19'000'000; },
       0,
       false,
       [](Rig* r) { r->extra_ns = 18'000'000; }},
      {DriveFault::kCommandOverruns, kStandUp, [](Rig* r) { r->extra_ns = 3'000'000; }, 50},
      {DriveFault::kLogDropped, kStandUp, [](Rig* r) { r->log_dropped = 3; }, 0},
  };
}

// What the observer says.
std::vector<FaultRow> StiffnessRows() {
  return {
      {DriveFault::kStiffness,
       kPolicy,
       Note([](StiffnessNote* n) { n->sigma = 1.01; }),
       0,
       false,
       Note([](StiffnessNote* n) { n->sigma = 1; })},
      {DriveFault::kActionLoop,
       kPolicy,
       Note([](StiffnessNote* n) { n->rho = 1.02; }),
       0,
       false,
       Note([](StiffnessNote* n) { n->rho = 0.9999; })},
      {DriveFault::kObserverAge, kPolicy, [](Rig* r) { r->drop_notes = true; }, 501},
  };
}

FaultRow Way(const char* way,
             DriveFault fault,
             DriveState from,
             std::function<void(Rig*)> inject,
             int extra_ticks = 0,
             bool once = false) {
  FaultRow row{fault, from, std::move(inject), extra_ticks, once};
  row.way = way;
  return row;
}

std::function<void(Rig*)> Held(std::uint16_t buttons) {
  return [buttons](Rig* r) { r->remote = {.valid = true, .buttons = buttons}; };
}

// Sticks of the remote lie at these bytes.
std::function<void(Rig*)> Stick(int at, float value) {
  return State([=](LowState* s) { std::memcpy(s->remote + at, &value, 4); });
}

}  // namespace

FaultRow OldStatesSentSlowly() {
  // 44 ms apart: each would be young enough, and ten in a row take half a second
  const auto inject = [](Rig* r) {
    r->freeze_tick = true;
    r->ticks_per_state = 22;
  };
  return Way("frozen_and_slow", DriveFault::kStateAge, kDamping, inject, 25);
}

namespace {

std::vector<FaultRow> OtherWaysOfOperatorAndLink() {
  using F = DriveFault;
  constexpr DriveState kOff = DriveState::kOff;
  constexpr std::uint16_t kSelect = 1U << static_cast<int>(RemoteButton::kSelect),
                          kL2AndB = (1U << static_cast<int>(RemoteButton::kL2)) |
                                    (1U << static_cast<int>(RemoteButton::kB));
  return {
      Way("select_held", F::kEmergencyStop, kOff, Held(kSelect)),
      Way("L2_and_B", F::kEmergencyStop, kOff, Held(kL2AndB)),
      Way("stick_beyond", F::kRemoteCorrupt, kDamping, Stick(20, -1.06F), 10),
      Way("stick_infinite", F::kRemoteCorrupt, kDamping, Stick(12, HUGE_VALF), 10),
      Way("crc_itself", F::kStateCorrupt, kDamping, OnTheWay([](LowState* s) { s->crc ^= 1; }), 2),
      Way("of_the_remote",
          F::kStateCorrupt,
          kDamping,
          OnTheWay([](LowState* s) { s->remote[2] ^= 8; }),
          2),
      Way(
          "one_step", F::kTickBackward, kDamping, [](Rig* r) { r->robot.tick -= 3; }, 0, true),
      Way("none", F::kMachineMode, kDamping, State([](LowState* s) { s->mode_machine = 0; })),
      Way("unknown", F::kModePr, kDamping, State([](LowState* s) { s->mode_pr = 255; })),
      Way("three", F::kForeignWriter, kDamping, [](Rig* r) { r->link.foreign_writers = 3; }),
      OldStatesSentSlowly(),
  };
}

std::vector<FaultRow> OtherWaysOfTheRobot() {
  using F = DriveFault;
  const auto turned = [](float w, float x, float y) {
    return State([=](LowState* s) {
      s->imu.quat_wxyz[0] = w, s->imu.quat_wxyz[1] = x, s->imu.quat_wxyz[2] = y;
    });
  };
  const auto motor = [](int j, const std::function<void(MotorReading*)>& spoil) {
    return State([=](LowState* s) { spoil(&s->motor[j]); });
  };
  return {
      Way("position", F::kStateNotFinite, kDamping, motor(0, [](auto* m) { m->q = HUGE_VALF; })),
      Way("torque", F::kStateNotFinite, kDamping, motor(28, [](auto* m) { m->tau_est = kBad; })),
      Way("gyro", F::kStateNotFinite, kDamping, State([](LowState* s) { s->imu.gyro[2] = kBad; })),
      Way("quaternion", F::kStateNotFinite, kDamping, turned(1, -HUGE_VALF, 0)),
      Way("too_long", F::kImuQuaternion, kDamping, turned(1.06F, 0, 0)),
      Way("zero", F::kImuQuaternion, kDamping, turned(0, 0, 0)),
      Way("to_the_side", F::kTilt, kStandUp, turned(std::cos(0.55F), -std::sin(0.55F), 0)),
      Way("upside_down", F::kTilt, kStandUp, turned(0, 1, 0)),
      Way("about_two_axes", F::kGyro, kStandUp, State([](LowState* s) {
            s->imu.gyro[0] = s->imu.gyro[2] = 4.5F;
          })),
      Way("last_joint", F::kJointSpeed, kStandUp, motor(28, [](auto* m) { m->dq = 10.5F; })),
      Way("above", F::kJointRange, kStandUp, motor(28, [](auto* m) { m->q = 2.2F; })),
      Way("backward", F::kJointTorque, kStandUp, motor(27, [](auto* m) { m->tau_est = -99; })),
      Way("last_motor_casing",
          F::kCasingTemperature,
          kStandUp,
          motor(28, [](auto* m) { m->temperature_C[0] = 32767; })),
      Way("last_motor_winding",
          F::kWindingTemperature,
          kStandUp,
          motor(28, [](auto* m) { m->temperature_C[1] = 121; })),
      Way("highest_bit",
          F::kMotorFault,
          kStandUp,
          motor(0, [](auto* m) { m->fault_word = 0x80000000U; })),
      // put in before the joint has begun to stand up, the target would begin where the joint is
      Way("standing_up",
          F::kTracking,
          kStandUp,
          motor(12, [](auto* m) { m->q = 1.6F, m->dq = 0; })),
      Way("standing_up",
          F::kTorqueLimited,
          kStandUp,
          motor(0, [](auto* m) { m->q = 1.2F, m->dq = 0; }),
          501),
  };
}

std::vector<FaultRow> OtherWaysOfPolicyAndObserver() {
  using F = DriveFault;
  const auto answer = [](const std::function<void(PolicyAnswer*)>& spoil) { return Answer(spoil); };
  const auto note = [](const std::function<void(StiffnessNote*)>& spoil) { return Note(spoil); };
  return {
      Way("said_so", F::kPolicyNotFinite, kPolicy, answer([](auto* a) { a->finite = false; }), 10),
      Way("infinite",
          F::kPolicyNotFinite,
          kPolicy,
          answer([](auto* a) { a->target[28] = -HUGE_VAL; }),
          10),
      Way("too_wide", F::kPolicyWidth, kPolicy, answer([](auto* a) { a->width = 30; }), 10),
      Way("empty", F::kPolicyWidth, kPolicy, answer([](auto* a) { a->width = 0; }), 10),
      Way("below", F::kTargetWild, kPolicy, answer([](auto* a) { a->target[28] = -2.1; }), 10),
      Way("no_number", F::kStiffness, kPolicy, note([](auto* n) { n->sigma = std::nan(""); })),
      Way("infinite", F::kStiffness, kPolicy, note([](auto* n) { n->sigma = HUGE_VAL; })),
      Way("no_number", F::kActionLoop, kPolicy, note([](auto* n) { n->rho = std::nan(""); })),
      Way("unjudged", F::kActionLoop, kPolicy, note([](auto* n) {
            n->judged = false;
            n->rho = 1.2;
          })),
  };
}

std::vector<FaultRow> Joined(const std::vector<std::vector<FaultRow>>& parts) {
  std::vector<FaultRow> rows;
  for (const std::vector<FaultRow>& part : parts) rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace

std::string NameOf(const FaultRow& row) {
  const std::string way = row.way;
  return std::string(KindOf(row.fault).name) + (way.empty() ? "" : "_" + way);
}

void PrintTo(const FaultRow& row, std::ostream* out) { *out << NameOf(row); }

void Mend(Rig* rig) {
  rig->spoil_state = {};
  rig->spoil_bytes = {};
  rig->spoil_answer = {};
  rig->spoil_note = {};
  rig->drop_states = rig->drop_answers = rig->drop_notes = rig->freeze_tick = false;
  rig->ticks_per_state = 1;
  rig->extra_ns = 0;
  rig->refuse_sends = false;
  rig->blocked_since_ns = 0;
  rig->link = LinkHealth{};
  rig->keys = OperatorRequest{};
  rig->remote = RemoteReading{};
  rig->log_dropped = 0;
  rig->policy_delay_s = 0.001;
}

std::vector<FaultRow> FaultRows() {
  return Joined({OperatorRows(),
                 LinkRows(),
                 BaseRows(),
                 JointRows(),
                 PolicyRows(),
                 ComputerRows(),
                 StiffnessRows()});
}

std::vector<FaultRow> OtherWaysIn() {
  return Joined(
      {OtherWaysOfOperatorAndLink(), OtherWaysOfTheRobot(), OtherWaysOfPolicyAndObserver()});
}

}  // namespace silc::test
