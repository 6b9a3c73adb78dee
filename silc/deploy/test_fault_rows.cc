// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/test_fault_rows.h"

#include <cmath>
#include <cstring>
#include <ostream>

namespace silc::test {
namespace {

const float kBad = std::nanf("");

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

}  // namespace

void PrintTo(const FaultRow& row, std::ostream* out) { *out << KindOf(row.fault).name; }

void Mend(Rig* rig) {
  rig->spoil_state = {};
  rig->spoil_bytes = {};
  rig->spoil_answer = {};
  rig->spoil_note = {};
  rig->drop_states = rig->drop_answers = rig->drop_notes = rig->freeze_tick = false;
  rig->extra_ns = 0;
  rig->link = LinkHealth{};
  rig->keys = OperatorRequest{};
  rig->remote = RemoteReading{};
  rig->log_dropped = 0;
  rig->policy_delay_s = 0.001;
}

std::vector<FaultRow> FaultRows() {
  constexpr DriveState kDamping = DriveState::kDamping, kStandUp = DriveState::kStandUp,
                       kPolicy = DriveState::kPolicy;
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
      {DriveFault::kStateAge, kDamping, [](Rig* r) { r->drop_states = true; }, 25},
      {DriveFault::kStateCorrupt, kDamping, OnTheWay([](LowState* s) { s->motor[7].q += 1; }), 2},
      {DriveFault::kTickFrozen, kDamping, [](Rig* r) { r->freeze_tick = true; }, 10},
      {DriveFault::kTickBackward, kDamping, [](Rig* r) { r->robot.tick = 0; }, 0, true},
      {DriveFault::kMachineMode, kDamping, State([](LowState* s) { s->mode_machine = 6; }), 0},
      {DriveFault::kModePr, kDamping, State([](LowState* s) { s->mode_pr = 1; }), 0},
      {DriveFault::kRobotLost, kDamping, [](Rig* r) { r->link.robot_present = false; }, 0},
      {DriveFault::kForeignWriter, kDamping, [](Rig* r) { r->link.foreign_writers = 1; }, 0},
      {DriveFault::kSendFailed,
       kDamping,
       [](Rig* r) { r->link.failed_sends = 6; },
       0,
       false,
       [](Rig* r) { r->link.failed_sends = 5; }},
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
       kPolicy,
       State([](LowState* s) { s->motor[12].q = 1.6F; }),
       0,
       false,
       [](Rig* r) {
         Answer([](PolicyAnswer* a) { a->target[12] = 0.4; })(r);
         State([](LowState* s) { s->motor[12].q = 1.395F; })(r);
       }},
      // the wrist of a robot that leans on it
      {DriveFault::kTorqueLimited,
       kPolicy,
       State([](LowState* s) { s->motor[0].q = 1.24F, s->motor[0].dq = 0; }),
       501},
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
      {DriveFault::kCommandGap,
       kStandUp,
       [](Rig* r) { r->extra_ns = 19'000'000; },
       0,
       false,
       [](Rig* r) { r->extra_ns = 18'000'000; }},
      {DriveFault::kCommandOverruns, kStandUp, [](Rig* r) { r->extra_ns = 3'000'000; }, 50},
      {DriveFault::kLogDropped, kStandUp, [](Rig* r) { r->log_dropped = 3; }, 0},
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

}  // namespace silc::test
