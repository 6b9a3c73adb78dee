// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/remote.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>

namespace silc {
namespace {

using Bytes = std::array<std::uint8_t, 40>;

RemoteReading Down(std::initializer_list<RemoteButton> buttons) {
  RemoteReading reading{.valid = true};
  for (const RemoteButton button : buttons) {
    reading.buttons =
        static_cast<std::uint16_t>(reading.buttons | (1U << static_cast<int>(button)));
  }
  return reading;
}

TEST(Remote, ReadsWhatWasWritten) {
  RemoteReading reading = Down({RemoteButton::kA, RemoteButton::kL2});
  reading.lx = -0.25F;
  reading.ly = 0.5F;
  reading.rx = 1;
  reading.ry = -1;
  Bytes bytes;
  EncodeRemote(reading, bytes);
  // where the vendor's description puts them
  EXPECT_EQ(bytes[2], 0x20);
  EXPECT_EQ(bytes[3], 0x01);
  float ly;
  std::memcpy(&ly, &bytes[20], 4);
  EXPECT_EQ(ly, 0.5F);
  const RemoteReading back = DecodeRemote(bytes);
  EXPECT_TRUE(back.valid);
  EXPECT_EQ(back.buttons, reading.buttons);
  EXPECT_EQ(back.lx, reading.lx);
  EXPECT_EQ(back.rx, reading.rx);
  EXPECT_EQ(back.ry, reading.ry);
}

TEST(Remote, RefusesSticksThatAreNoSticks) {
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF, 1.2F, -3e9F}) {
    for (const int at : {4, 8, 12, 20}) {
      Bytes bytes{};
      bytes[2] = 0xff;
      std::memcpy(&bytes[static_cast<std::size_t>(at)], &bad, 4);
      const RemoteReading reading = DecodeRemote(bytes);
      EXPECT_FALSE(reading.valid);
      EXPECT_EQ(reading.buttons, 0) << "buttons of such a frame are not believed either";
    }
  }
}

TEST(Remote, RandomBytesNeverGiveASpeedBeyondAFullStick) {
  std::mt19937 rng(3);
  RemoteRequests requests(0.6, 0.3, 0.7);
  for (int trial = 0; trial < 100'000; ++trial) {
    Bytes bytes;
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(rng());
    const OperatorRequest request = requests.Read(DecodeRemote(bytes));
    ASSERT_LE(std::abs(request.vx), 0.6);
    ASSERT_LE(std::abs(request.vy), 0.3);
    ASSERT_LE(std::abs(request.yaw_rate), 0.7);
  }
}

TEST(RemoteRequests, AHeldButtonAsksOnceAndAStopAsLongAsItIsHeld) {
  RemoteRequests requests(1, 1, 1);
  EXPECT_FALSE(requests.Read(Down({RemoteButton::kStart})).stand) << "was down at the start";
  requests.Read(Down({}));
  EXPECT_TRUE(requests.Read(Down({RemoteButton::kStart})).stand);
  EXPECT_FALSE(requests.Read(Down({RemoteButton::kStart})).stand);
  requests.Read(Down({}));
  EXPECT_TRUE(requests.Read(Down({RemoteButton::kA})).run);
  EXPECT_TRUE(requests.Read(Down({RemoteButton::kX})).acknowledge);
  EXPECT_TRUE(requests.Read(Down({RemoteButton::kB})).damp);
  for (int k = 0; k < 3; ++k) {
    EXPECT_TRUE(requests.Read(Down({RemoteButton::kL2, RemoteButton::kB})).emergency_stop);
    EXPECT_TRUE(requests.Read(Down({RemoteButton::kSelect})).emergency_stop);
  }
  EXPECT_FALSE(requests.Read(Down({RemoteButton::kL2})).emergency_stop);
}

TEST(RemoteRequests, SticksPointWhereTheRobotGoes) {
  RemoteRequests requests(0.6, 0.3, 0.7);
  RemoteReading reading{.valid = true};
  reading.ly = 1;   // forward
  reading.lx = 1;   // to the right
  reading.rx = -1;  // turn left
  const OperatorRequest request = requests.Read(reading);
  EXPECT_DOUBLE_EQ(request.vx, 0.6);
  EXPECT_DOUBLE_EQ(request.vy, -0.3);
  EXPECT_DOUBLE_EQ(request.yaw_rate, 0.7);
  reading.ly = 0.04F;
  EXPECT_EQ(requests.Read(reading).vx, 0) << "a released stick does not rest at zero";
}

}  // namespace
}  // namespace silc
