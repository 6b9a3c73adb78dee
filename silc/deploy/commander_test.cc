// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/commander.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <random>
#include <shared_mutex>
#include <string>
#include <thread>

#include "silc/deploy/test_robot_frames.h"

namespace silc::test {
namespace {

TEST(Commander, SaysNothingBeforeTheRobotSpokeAndNothingWhileOff) {
  Rig rig;
  rig.drop_states = true;
  rig.keys.damp = true;
  for (int k = 0; k < 100; ++k) EXPECT_FALSE(rig.Step().send);
  rig.drop_states = false;
  for (int k = 0; k < 100; ++k) EXPECT_FALSE(rig.Step().send) << "an old request was kept";
  EXPECT_EQ(rig.commander.state(), DriveState::kOff);
  rig.keys.damp = true;
  EXPECT_TRUE(rig.Step().send);
}

// An emergency stop is not lost on a robot that has not spoken yet: nothing can be sent to it, but
// the first that it is sent is damping, latched.
TEST(Commander, KeepsAStopFromBeforeTheRobotSpoke) {
  Rig rig;
  rig.drop_states = true;
  rig.Run(0.1);
  rig.link.robot_present = false;  // nobody is there yet, which is no fault either
  rig.keys.emergency_stop = true;
  rig.Step();
  EXPECT_TRUE(rig.last.latched);
  ASSERT_EQ(rig.last.num_reports, 1);
  EXPECT_EQ(rig.last.reports[0].fault, DriveFault::kEmergencyStop);
  EXPECT_FALSE(rig.last.send);
  for (int k = 0; k < 50; ++k) {
    rig.keys.acknowledge = rig.keys.stand = true;
    rig.Step();
    EXPECT_FALSE(rig.last.send);
    EXPECT_EQ(rig.last.num_reports, 0);
    EXPECT_TRUE(rig.last.latched) << "nobody was there to be stopped";
  }
  rig.drop_states = false;
  rig.link = LinkHealth{};
  rig.Step();
  EXPECT_TRUE(rig.last.send);
  EXPECT_TRUE(rig.last.latched);
  EXPECT_TRUE(IsDamping(rig.last.command, rig.config));
  EXPECT_EQ(rig.last.command.mode_machine, 5);
  rig.keys.stand = true;
  rig.Step();
  EXPECT_EQ(rig.last.refused, DriveFault::kEmergencyStop);
  rig.keys.acknowledge = true;
  rig.Step();
  EXPECT_FALSE(rig.last.latched);
}

TEST(Commander, EchoesTheMachineModeAndEnablesTheRobotsMotorsAlone) {
  Rig rig;
  rig.spoil_state = [](LowState* s) { s->mode_machine = 11; };
  rig.DriveTo(DriveState::kPolicy);
  EXPECT_EQ(rig.last.command.mode_machine, 11);
  EXPECT_EQ(rig.last.command.mode_pr, 0);
  EXPECT_EQ(WhyUnsafe(rig.last.command, rig.config, rig.shown, 11), "");
  for (int j = 0; j < kFrameMotors; ++j) EXPECT_EQ(rig.last.command.motor[j].mode, j < 29 ? 1 : 0);
}

// From off the operator begins to send, and not beside somebody who does: what the two send would
// be followed by turns. That is no fault, and latches nothing.
TEST(Commander, DoesNotBeginBesideAnotherWriter) {
  Rig rig;
  rig.DriveTo(DriveState::kOff);
  rig.link.foreign_writers = 1;
  for (int k = 0; k < 20; ++k) {
    rig.keys.damp = true;
    rig.Step();
    ASSERT_FALSE(rig.last.send);
    ASSERT_EQ(rig.last.state, DriveState::kOff);
    EXPECT_EQ(rig.last.refused, DriveFault::kForeignWriter);
    EXPECT_EQ(rig.last.num_reports, 0);
  }
  rig.Step();
  EXPECT_EQ(rig.last.refused, DriveFault::kNone) << "told when asked";
  rig.link.foreign_writers = 0;
  rig.keys.damp = true;
  rig.Step();
  EXPECT_TRUE(rig.last.send);
  EXPECT_EQ(rig.last.state, DriveState::kDamping);
  EXPECT_FALSE(rig.last.latched);
}

// An emergency stop is answered by damping whoever else sends, and damping itself is never refused
// to a robot that is driven.
TEST(Commander, AStopIsFollowedBesideAnotherWriter) {
  Rig rig;
  rig.DriveTo(DriveState::kOff);
  rig.link.foreign_writers = 1;
  rig.keys.emergency_stop = true;
  rig.Step();
  EXPECT_TRUE(rig.last.send);
  EXPECT_TRUE(rig.last.latched);
  EXPECT_TRUE(IsDamping(rig.last.command, rig.config));
  for (const DriveState state :
       {DriveState::kStandUp, DriveState::kStanding, DriveState::kPolicy}) {
    Rig driven;
    driven.DriveTo(state);
    driven.log_dropped = 1;
    driven.keys.damp = true;
    driven.Step();
    EXPECT_EQ(driven.last.state, DriveState::kDamping);
    EXPECT_EQ(driven.last.refused, DriveFault::kNone);
  }
}

// Pre-flight looked at a robot of one variant. Another one that speaks in its place is not driven.
TEST(Commander, DrivesTheVariantThatWasLookedAt) {
  CommanderConfig config = PlainConfig();
  config.machine_mode = 5;
  Rig rig(config);
  rig.spoil_state = [](LowState* s) { s->mode_machine = 6; };
  rig.Run(0.01);
  rig.keys.damp = true;
  rig.Step();
  EXPECT_EQ(rig.last.refused, DriveFault::kMachineMode);
  EXPECT_FALSE(rig.last.send);
  rig.spoil_state = {};
  rig.keys.damp = true;
  rig.Step();
  EXPECT_TRUE(rig.last.send);
  rig.spoil_state = [](LowState* s) { s->mode_machine = 6; };
  rig.Step();
  ASSERT_TRUE(rig.last.latched);
  EXPECT_EQ(rig.commander.latched_fault().fault, DriveFault::kMachineMode);
  EXPECT_EQ(rig.last.command.mode_machine, 5);
}

// The robot's counter has 32 bits. One that runs over has not gone back.
TEST(Commander, ACounterThatRunsOverGoesOn) {
  Rig rig;
  rig.robot.tick = 0xffff'ffffU - 1500;  // 1.5 s before, in steps of 2 ms
  rig.DriveTo(DriveState::kPolicy);
  EXPECT_LT(rig.shown.tick, 10'000U);
}

// Only these ways lead from state to state, whatever is pressed.
TEST(Commander, GoesNoOtherWaysThanStated) {
  std::mt19937 rng(5);
  Rig rig;
  rig.Run(0.01);
  DriveState before = rig.commander.state();
  for (int k = 0; k < 20'000; ++k) {
    // requests come rarely enough for standing up to end
    if (rng() % 400 == 0) {
      switch (rng() % 4) {
        case 0:
          rig.keys.damp = rng() % 4 == 0;
          break;
        case 1:
          rig.keys.stand = true;
          break;
        case 2:
          rig.keys.run = true;
          break;
        default:
          rig.keys.acknowledge = true;
          break;
      }
    }
    const DriveState now = rig.Step().state;
    if (now != before) {
      const bool stated = now == DriveState::kDamping ||
                          (before == DriveState::kDamping && now == DriveState::kStandUp) ||
                          (before == DriveState::kStandUp && now == DriveState::kStanding) ||
                          (before == DriveState::kStanding && now == DriveState::kPolicy);
      ASSERT_TRUE(stated) << Name(before) << " → " << Name(now);
    }
    ASSERT_EQ(rig.last.send, now != DriveState::kOff);
    if (now == DriveState::kDamping) {
      ASSERT_TRUE(IsDamping(rig.last.command, rig.config));
    }
    before = now;
  }
}

TEST(Commander, StopsFromEveryStateAtOnceByRemoteAndKey) {
  for (int state = 0; state <= static_cast<int>(DriveState::kPolicy); ++state) {
    for (const bool by_remote : {false, true}) {
      Rig rig;
      rig.DriveTo(static_cast<DriveState>(state));
      if (by_remote) {
        rig.spoil_state = [](LowState* s) {
          EncodeRemote({.valid = true, .buttons = 1U << 3}, std::span<std::uint8_t, 40>(s->remote));
        };
      } else {
        rig.keys.emergency_stop = true;
      }
      rig.Step();
      EXPECT_TRUE(rig.last.latched);
      EXPECT_TRUE(rig.last.send);
      EXPECT_TRUE(IsDamping(rig.last.command, rig.config));
    }
  }
}

TEST(Commander, StandsUpFromWhereTheRobotIsWithoutAJump) {
  Rig rig;
  rig.DriveTo(DriveState::kDamping);
  const JointArray start = rig.robot.q;
  rig.keys.stand = true;
  rig.Step();
  for (int j = 0; j < kRobotMotors; ++j) {
    EXPECT_NEAR(rig.last.command.motor[j].q, start[static_cast<std::size_t>(j)], 1e-5);
  }
  // never faster than the blend: 1.5 of the mean speed
  for (int k = 0; k < 999; ++k) {
    const LowCommand before = rig.last.command;
    rig.Step();
    for (int j = 0; j < kRobotMotors; ++j) {
      const auto i = static_cast<std::size_t>(j);
      const double mean = std::abs(rig.config.stand_pose[i] - start[i]) / 2 * 0.002;
      ASSERT_LE(std::abs(rig.last.command.motor[j].q - before.motor[j].q), 1.51 * mean + 1e-6);
    }
  }
  rig.Run(0.5);
  EXPECT_EQ(rig.last.state, DriveState::kStanding);
  for (int j = 0; j < kRobotMotors; ++j) {
    EXPECT_NEAR(
        rig.robot.q[static_cast<std::size_t>(j)], rig.config.stand_pose[std::size_t(j)], 0.02);
  }
}

TEST(Commander, BlendsGainsAndTargetsIntoThePolicysOwn) {
  Rig rig;
  rig.spoil_answer = [](PolicyAnswer* a) { a->target.fill(0.45); };
  rig.DriveTo(DriveState::kStanding);
  rig.keys.run = true;
  float kp = static_cast<float>(rig.config.stand_kp[0]), q = rig.last.command.motor[0].q;
  int blending = 0;
  for (int k = 0; k < 150; ++k) {
    rig.Step();
    const MotorCommand& motor = rig.last.command.motor[0];
    EXPECT_LE(motor.kp, kp) << "from 100 to 60, and never back";
    EXPECT_LE(kp - motor.kp, 40 * 1.6 * 0.002 / 0.2);
    EXPECT_LE(std::abs(motor.q - q), 0.15 * 1.6 * 0.002 / 0.2);
    blending += motor.kp < kp ? 1 : 0;
    kp = motor.kp;
    q = motor.q;
  }
  EXPECT_NEAR(blending, 100, 2) << "0.2 s";
  EXPECT_FLOAT_EQ(kp, static_cast<float>(rig.config.kp[0]));
  EXPECT_FLOAT_EQ(q, 0.45F);
}

TEST(Commander, AsksThePolicyEveryTenthTickWithTheStateOfThatTick) {
  Rig rig;
  rig.DriveTo(DriveState::kStanding);
  rig.keys.run = true;
  std::uint64_t asked = 0;
  for (int k = 0; k < 500; ++k) {
    rig.Step();
    EXPECT_EQ(rig.last.ask_policy, k % 10 == 0);
    if (!rig.last.ask_policy) continue;
    ++asked;
    EXPECT_EQ(rig.last.request.time_ns, rig.now_ns);
    EXPECT_EQ(Bytes(rig.last.request.state), Bytes(rig.shown));
  }
  EXPECT_EQ(rig.last.request.sequence, asked);
}

TEST(Commander, IgnoresAnswersOfAnEarlierSession) {
  Rig rig;
  rig.DriveTo(DriveState::kPolicy);
  const std::uint32_t session = rig.last.request.session;
  rig.keys.damp = true;
  rig.Step();
  rig.keys.stand = true;
  rig.Run(2.1);
  rig.keys.run = true;
  rig.spoil_answer = [&](PolicyAnswer* a) {
    a->session = session;
    a->target.fill(1.2);
  };
  for (int k = 0; k < 25; ++k) {
    rig.Step();
    EXPECT_FLOAT_EQ(rig.last.command.motor[3].q, static_cast<float>(rig.config.stand_pose[3]));
  }
}

// A slow observer goes on telling of the session before: of another policy's history.
TEST(Commander, IgnoresNotesOfAnEarlierSession) {
  Rig rig;
  rig.DriveTo(DriveState::kPolicy);
  const std::uint32_t session = rig.last.request.session;
  rig.keys.damp = true;
  rig.Step();
  rig.keys.stand = true;
  rig.Run(2.1);
  rig.keys.run = true;
  rig.spoil_note = [&](StiffnessNote* note) {
    note->session = session;
    note->sigma = note->rho = 5;
  };
  bool missed = false;
  for (int k = 0; k < 520; ++k) {
    rig.Step();
    for (int i = 0; i < rig.last.num_reports; ++i) {
      missed |= rig.last.reports[static_cast<std::size_t>(i)].fault == DriveFault::kObserverAge;
    }
  }
  EXPECT_EQ(rig.last.state, DriveState::kPolicy);
  EXPECT_FALSE(rig.last.latched) << KindOf(rig.commander.latched_fault().fault).name;
  EXPECT_TRUE(missed) << "nothing is known of this session";
}

// [m/s] forward, as the policy was last asked to go
double AskedForward(Rig* rig) {
  for (int k = 0; k < 10; ++k) {
    rig->Step();
    if (rig->last.ask_policy) return rig->last.request.vx;
  }
  ADD_FAILURE() << "the policy was not asked";
  return 0;
}

void EnterPolicyAnew(Rig* rig) {
  rig->keys.acknowledge = true;
  rig->Step();
  rig->keys.stand = true;
  rig->Run(2.1);
  rig->keys.run = true;
  ASSERT_EQ(AskedForward(rig), 0);
  ASSERT_EQ(rig->last.state, DriveState::kPolicy);
}

// A robot that was stopped while it walked does not walk off when the policy is entered again,
// though the source of the velocity still asks for it: it has to ask for none first.
TEST(Commander, AVelocityDoesNotOutliveThePolicyState) {
  for (const bool by_remote : {false, true}) {
    Rig rig;
    const auto ask = [&](double vx) {
      rig.keys.vx = by_remote ? 0 : vx;
      rig.remote = {.valid = by_remote, .ly = static_cast<float>(by_remote ? vx : 0)};
    };
    rig.DriveTo(DriveState::kPolicy);
    EXPECT_EQ(AskedForward(&rig), 0);
    ask(0.4);
    EXPECT_GT(AskedForward(&rig), 0.1);
    EXPECT_TRUE(by_remote || rig.last.follows_keys);
    rig.keys.emergency_stop = true;
    rig.Step();
    ASSERT_TRUE(rig.last.latched);
    EXPECT_FALSE(rig.last.follows_keys);
    EnterPolicyAnew(&rig);
    for (int k = 0; k < 20; ++k) EXPECT_EQ(AskedForward(&rig), 0) << k;
    ask(0);
    EXPECT_EQ(AskedForward(&rig), 0);
    ask(0.3);
    EXPECT_GT(AskedForward(&rig), 0.1);
    // without a fault the same
    rig.keys.damp = true;
    rig.Step();
    EnterPolicyAnew(&rig);
    EXPECT_EQ(AskedForward(&rig), 0);
  }
}

// A stick that cannot be read is no stick at rest.
TEST(Commander, ACorruptRemoteDoesNotFreeItsStick) {
  Rig rig;
  rig.remote = {.valid = true, .ly = 0.5F};
  rig.DriveTo(DriveState::kPolicy);
  rig.spoil_state = [](LowState* s) {
    const float bad = std::nanf("");
    std::memcpy(s->remote + 4, &bad, sizeof bad);
  };
  for (int k = 0; k < 3; ++k) rig.Step();
  rig.spoil_state = {};
  EXPECT_EQ(AskedForward(&rig), 0);
  EXPECT_EQ(AskedForward(&rig), 0);
}

TEST(Commander, LimitsTargetsAndCounts) {
  CommanderConfig config = PlainConfig();
  config.stand_pose[0] = 1.4;  // 0.1 rad from its limit
  Rig rig(config);
  rig.DriveTo(DriveState::kPolicy);
  const LimitCounts before = rig.commander.limit_counts();
  rig.spoil_answer = [&](PolicyAnswer* a) {
    a->target[0] = 1.6;
    a->target[1] = 1.9;
  };
  for (int k = 0; k < 32; ++k) {
    rig.Step();
    EXPECT_EQ(WhyUnsafe(rig.last.command, rig.config, rig.shown, 5), "");
  }
  EXPECT_FALSE(rig.last.latched) << "limited targets are no fault";
  EXPECT_GT(rig.commander.limit_counts().speed, before.speed);
  EXPECT_GT(rig.commander.limit_counts().torque, before.torque);
  EXPECT_GT(rig.commander.limit_counts().range, before.range);
}

TEST(Commander, AFaultThatLastsCannotBeAcknowledged) {
  Rig rig;
  rig.DriveTo(DriveState::kPolicy);
  rig.spoil_state = [](LowState* s) { s->mode_machine = 6; };
  rig.Step();
  ASSERT_TRUE(rig.last.latched);
  rig.keys.acknowledge = true;
  rig.Step();
  EXPECT_TRUE(rig.last.latched);
  EXPECT_EQ(rig.last.refused, DriveFault::kMachineMode);
}

// Faults that are watched when moving alone: damping hides none of those that a state tells.
TEST(Commander, AFaultOfAMovingRobotThatLastsCannotBeAcknowledged) {
  using Spoil = void (*)(LowState*);
  const std::pair<DriveFault, Spoil> lasting[] = {
      {DriveFault::kTilt, [](LowState* s) { s->imu.quat_wxyz[0] = s->imu.quat_wxyz[1] = 0.7071F; }},
      {DriveFault::kGyro, [](LowState* s) { s->imu.gyro[2] = 7; }},
      {DriveFault::kJointRange, [](LowState* s) { s->motor[4].q = -0.65F; }},
      {DriveFault::kJointTorque, [](LowState* s) { s->motor[5].tau_est = 90; }},
      {DriveFault::kCasingTemperature, [](LowState* s) { s->motor[9].temperature_C[0] = 86; }},
      {DriveFault::kWindingTemperature, [](LowState* s) { s->motor[9].temperature_C[1] = 121; }},
      {DriveFault::kMotorFault, [](LowState* s) { s->motor[28].fault_word = 4; }},
  };
  for (const auto& [fault, spoil] : lasting) {
    Rig rig;
    rig.DriveTo(DriveState::kPolicy);
    rig.spoil_state = spoil;
    rig.Run(0.1);
    ASSERT_EQ(rig.commander.latched_fault().fault, fault);
    rig.keys.acknowledge = true;
    rig.Step();
    EXPECT_TRUE(rig.last.latched) << KindOf(fault).name;
    EXPECT_EQ(rig.last.refused, fault);
    EXPECT_EQ(rig.last.acknowledged, DriveFault::kNone);
    rig.spoil_state = {};
    rig.keys.acknowledge = true;
    rig.Step();
    EXPECT_FALSE(rig.last.latched) << KindOf(fault).name;
    EXPECT_EQ(rig.last.refused, DriveFault::kNone);
    EXPECT_EQ(rig.last.acknowledged, fault);
    rig.Step();
    EXPECT_EQ(rig.last.acknowledged, DriveFault::kNone) << "told once";
  }
}

// Two that stop in one tick: the first is the one latched, and the second holds it.
TEST(Commander, AFaultBesideTheLatchedOneHoldsTheLatch) {
  CommanderConfig config = PlainConfig();
  config.rules[static_cast<std::size_t>(DriveFault::kTilt)].ticks = 2;
  config.rules[static_cast<std::size_t>(DriveFault::kMotorFault)].ticks = 2;
  Rig rig(config);
  rig.DriveTo(DriveState::kPolicy);
  bool tilted = true;
  rig.spoil_state = [&](LowState* s) {
    if (tilted) s->imu.quat_wxyz[0] = s->imu.quat_wxyz[1] = 0.7071F;
    s->motor[28].fault_word = 4;
  };
  rig.Run(0.1);
  ASSERT_EQ(rig.commander.latched_fault().fault, DriveFault::kTilt);
  tilted = false;
  rig.keys.acknowledge = true;
  rig.Step();
  EXPECT_TRUE(rig.last.latched);
  EXPECT_EQ(rig.last.refused, DriveFault::kMotorFault);
}

// A fault that is watched when moving is no longer watched once the robot is damped.
TEST(Commander, AFaultIsNotAcknowledgedInTheTickInWhichItTrips) {
  Rig rig;
  rig.DriveTo(DriveState::kPolicy);
  rig.spoil_state = [](LowState* s) { s->motor[3].dq = -10.5F; };
  for (int k = 0; k < 3; ++k) {
    rig.keys.acknowledge = true;
    rig.Step();
  }
  EXPECT_TRUE(rig.last.latched);
  EXPECT_EQ(rig.commander.latched_fault().fault, DriveFault::kJointSpeed);
  EXPECT_TRUE(IsDamping(rig.last.command, rig.config));
  rig.spoil_state = {};
  rig.keys.acknowledge = true;
  rig.Step();
  EXPECT_FALSE(rig.last.latched);
}

TEST(Commander, RefusesToStandUpATiltedRobotAndSaysWhy) {
  Rig rig;
  rig.DriveTo(DriveState::kDamping);
  rig.spoil_state = [](LowState* s) {
    s->imu.quat_wxyz[0] = s->imu.quat_wxyz[1] = std::sqrt(0.5F);
  };
  rig.keys.stand = true;
  rig.Step();
  EXPECT_EQ(rig.last.state, DriveState::kDamping);
  EXPECT_EQ(rig.last.refused, DriveFault::kTilt);
  EXPECT_FALSE(rig.last.latched) << "a robot that lies and is damped is no fault";
}

TEST(Commander, NeitherAllocatesNorLocks) {
  Rig rig;
  rig.DriveTo(DriveState::kPolicy);
  LowState frame = rig.robot.Frame();
  TickInput input;
  input.frame = &frame;
  const HeapAndLockCount count;
  for (std::int64_t k = 1; k < 2000; ++k) {
    input.now_ns = rig.now_ns + k * 2'000'000;
    frame.tick += 2;
    frame.crc = FrameCrc(frame);
    if (k == 1000) input.keys.emergency_stop = true;
    rig.commander.Tick(input);
  }
  EXPECT_EQ(count.here(), HeapAndLockCount::Calls{});
}

// The guard itself. A new expression could be left out by the compiler; so could malloc, but for
// the pointer that is looked at.
TEST(HeapAndLockCount, SeesEveryWayToTheHeapAndToALock) {
  const auto calls = [](const auto& action) {
    const HeapAndLockCount count;
    action();
    return count.here();
  };
  using Calls = HeapAndLockCount::Calls;
  volatile std::size_t size = 64;
  EXPECT_GE(calls([&] { ::operator delete(::operator new(size)); }).heap, 1);
  if (!HeapAndLockCount::kCountsAll) GTEST_SKIP() << "a sanitizer has the heap and the locks";
  EXPECT_EQ(calls([&] { ::operator delete(::operator new(size)); }), (Calls{2, 0}));
  constexpr std::align_val_t kAlignment{64};
  EXPECT_EQ(calls([&] { ::operator delete(::operator new(size, kAlignment), kAlignment); }),
            (Calls{2, 0}));
  void* volatile memory = nullptr;
  EXPECT_EQ(calls([&] { memory = std::malloc(size); }), (Calls{1, 0}));
  EXPECT_EQ(calls([&] { memory = std::realloc(memory, 2 * size); }), (Calls{1, 0}));
  EXPECT_EQ(calls([&] { std::free(memory); }), (Calls{1, 0}));
  EXPECT_EQ(calls([&] { memory = std::calloc(size, 1); }), (Calls{1, 0}));
  std::free(memory);
  EXPECT_EQ(calls([&] { memory = std::aligned_alloc(64, size); }), (Calls{1, 0}));
  std::free(memory);
  // in libraries, too
  std::string text(size, 'x');
  EXPECT_EQ(calls([&] { text.append(1000, 'y'); }), (Calls{2, 0}));
  std::mutex mutex;
  EXPECT_EQ(calls([&] { const std::lock_guard<std::mutex> lock(mutex); }), (Calls{0, 1}));
  std::shared_mutex shared;
  EXPECT_EQ(calls([&] { const std::shared_lock<std::shared_mutex> lock(shared); }), (Calls{0, 1}));
  // and of other threads
  const HeapAndLockCount count;
  std::thread([&] {
    const std::lock_guard<std::mutex> lock(mutex);
    text.append(10'000, 'z');
  }).join();
  EXPECT_GE(count.unmarked_threads().heap, 1);
  EXPECT_GE(count.unmarked_threads().locks, 1);
}

// Frames with random bytes in them, with a right CRC and without: no crash, no unsafe command.
TEST(Commander, OutlivesAHundredThousandMutatedFrames) {
  std::mt19937 rng(11);
  Rig driven;
  driven.DriveTo(DriveState::kPolicy);
  Rig rig = driven;
  int stops = 0;
  for (int trial = 0; trial < 100'000; ++trial) {
    const int bytes = 1 + static_cast<int>(rng() % 8);
    const bool in_remote = rng() % 4 == 0;
    const auto mutate = [&](LowState* s) {
      auto* raw = reinterpret_cast<unsigned char*>(s);
      for (int k = 0; k < bytes; ++k) {
        const std::size_t at =
            in_remote ? offsetof(LowState, remote) + rng() % 40 : rng() % (sizeof(LowState) - 4);
        raw[at] = static_cast<unsigned char>(rng());
      }
    };
    rig.spoil_state = {};
    rig.spoil_bytes = {};
    if (rng() % 2 == 0) {
      rig.spoil_state = mutate;
    } else {
      rig.spoil_bytes = mutate;
    }
    rig.Step();
    if (rig.last.send) {
      ASSERT_EQ(WhyUnsafe(rig.last.command, rig.config, rig.shown, 5), "") << trial;
    }
    if (rig.last.latched) {
      ASSERT_TRUE(IsDamping(rig.last.command, rig.config));
      ++stops;
      rig = driven;
    }
  }
  EXPECT_GT(stops, 100);
}

}  // namespace
}  // namespace silc::test
