// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/commander.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

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

TEST(Commander, EchoesTheMachineModeAndEnablesTheRobotsMotorsAlone) {
  Rig rig;
  rig.spoil_state = [](LowState* s) { s->mode_machine = 11; };
  rig.DriveTo(DriveState::kPolicy);
  EXPECT_EQ(rig.last.command.mode_machine, 11);
  EXPECT_EQ(rig.last.command.mode_pr, 0);
  EXPECT_EQ(WhyUnsafe(rig.last.command, rig.config, rig.shown, 11), "");
  for (int j = 0; j < kFrameMotors; ++j) EXPECT_EQ(rig.last.command.motor[j].mode, j < 29 ? 1 : 0);
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

TEST(Commander, AllocatesNothing) {
  Rig rig;
  rig.DriveTo(DriveState::kPolicy);
  LowState frame = rig.robot.Frame();
  TickInput input;
  input.frame = &frame;
  const AllocationCount count;
  for (std::int64_t k = 1; k < 2000; ++k) {
    input.now_ns = rig.now_ns + k * 2'000'000;
    frame.tick += 2;
    frame.crc = FrameCrc(frame);
    if (k == 1000) input.keys.emergency_stop = true;
    rig.commander.Tick(input);
  }
  EXPECT_EQ(count.here(), 0);
  // the guard itself; a new expression could be left out by the compiler
  ::operator delete(::operator new(sizeof(int)));
  EXPECT_EQ(count.here(), 1);
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
