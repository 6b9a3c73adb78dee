// SPDX-License-Identifier: Apache-2.0
// Both ends on the loopback interface, in one process.
#include "silc/deploy/dds/dds_link.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "dds/dds.h"
#include "silc/base/error.h"
#include "silc/deploy/test_clock.h"
#include "unitree_hg.h"

namespace silc {
namespace {

using namespace std::chrono_literals;

// Of this program alone: another checkout's tests may run beside it.
const int kDomain = 20 + 2 * (getpid() % 35);

template <typename Condition>
bool Within(std::chrono::seconds time, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

template <typename Frame>
Frame RandomFrame(std::mt19937* rng) {
  Frame frame;
  auto* bytes = reinterpret_cast<unsigned char*>(&frame);
  for (std::size_t i = 0; i < sizeof frame; ++i) bytes[i] = static_cast<unsigned char>((*rng)());
  return frame;
}

template <typename Frame>
std::string FrameBytes(const Frame& frame) {
  return std::string(reinterpret_cast<const char*>(&frame), sizeof frame);
}

void ClearPad(LowState* s) {
  std::memset(s->padding, 0, 2);
  std::memset(s->imu.padding, 0, 2);
  for (MotorReading& m : s->motor) std::memset(m.padding, 0, 3);
}
void ClearPad(LowCommand* c) {
  std::memset(c->padding, 0, 2);
  for (MotorCommand& m : c->motor) std::memset(m.padding, 0, 3);
}

TEST(DdsLink, CarriesFramesBitByBitAndKnowsItsPeers) {
  const DdsOptions options{.domain = kDomain, .network = "lo"};
  const auto link = MakeDdsLink(options);
  EXPECT_FALSE(link->Health().robot_present);
  EXPECT_EQ(link->Health().foreign_writers, 0);
  auto port = MakeDdsPort(options);
  link->BeginSending();
  ASSERT_TRUE(Within(10s, [&] { return link->Health().robot_present; }));
  EXPECT_EQ(link->Health().foreign_writers, 0) << "our own writer is not foreign";

  std::mt19937 rng(1);
  for (int trial = 0; trial < 20; ++trial) {
    LowState sent = RandomFrame<LowState>(&rng), state;
    ASSERT_TRUE(port->SendState(sent));
    ASSERT_TRUE(link->ReceiveState(&state, 2s));
    ClearPad(&sent);
    EXPECT_EQ(FrameBytes(sent), FrameBytes(state));
    LowCommand told = RandomFrame<LowCommand>(&rng), command;
    ASSERT_TRUE(link->SendCommand(told));
    ASSERT_TRUE(port->ReceiveCommand(&command, 2s));
    ClearPad(&told);
    EXPECT_EQ(FrameBytes(told), FrameBytes(command));
  }
  LowState none;
  EXPECT_FALSE(link->ReceiveState(&none, 1ms)) << "each is received once";

  const auto other = MakeDdsLink(options);
  other->BeginSending();
  EXPECT_TRUE(Within(10s, [&] { return link->Health().foreign_writers == 1; }));
  port.reset();
  EXPECT_TRUE(Within(10s, [&] { return !link->Health().robot_present; }));
}

// The first controller does not stop for a second one that only looks, or looks before it drives.
TEST(DdsLink, ListeningIsNotWriting) {
  const DdsOptions options{.domain = kDomain, .network = "lo"};
  const auto port = MakeDdsPort(options);
  const auto driving = MakeDdsLink(options);
  driving->BeginSending();
  const auto listening = MakeDdsLink(options);
  LowState state;
  EXPECT_TRUE(Within(10s, [&] {
    port->SendState(LowState{});
    return listening->ReceiveState(&state, 5ms);
  }));
  EXPECT_TRUE(Within(10s, [&] { return listening->Health().foreign_writers == 1; }));
  EXPECT_TRUE(listening->Health().robot_present);
  EXPECT_FALSE(listening->SendCommand(LowCommand{}));
  // all who are there have found each other
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(driving->Health().foreign_writers, 0);
  listening->BeginSending();
  EXPECT_TRUE(Within(10s, [&] { return driving->Health().foreign_writers == 1; }));
}

// A robot that takes nothing holds no command back for long: after a stop an old one must not go
// out late, in front of the damping that waits.
TEST(DdsLink, GivesACommandUpThatIsHeldBack) {
  const DdsOptions options{.domain = kDomain, .network = "lo"};
  const auto link = MakeDdsLink(options);
  const dds_entity_t robot = dds_create_participant(kDomain, nullptr, nullptr);
  const dds_entity_t topic =
      dds_create_topic(robot, &unitree_hg_msg_dds__LowCmd__desc, "rt/lowcmd", nullptr, nullptr);
  dds_qos_t* qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, 0);
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  dds_qset_resource_limits(qos, 1, 1, 1);
  const dds_entity_t reader = dds_create_reader(robot, topic, qos, nullptr);
  dds_delete_qos(qos);
  ASSERT_GT(reader, 0);
  link->BeginSending();
  std::this_thread::sleep_for(100ms);
  int refused = 0;
  auto shortest = std::chrono::steady_clock::duration::max();  // this computer may be busy
  for (int k = 0; k < 10; ++k) {
    const auto begin = std::chrono::steady_clock::now();
    if (link->SendCommand(LowCommand{})) continue;
    ++refused;
    shortest = std::min(shortest, std::chrono::steady_clock::now() - begin);
  }
  dds_delete(robot);
  EXPECT_GE(refused, 8) << "its one place is taken";
  EXPECT_LT(shortest, 45ms) << "below the 50 ms of send_blocked";
}

// A wait that began an hour ahead of the true time, when the wall clock is set back to it.
TEST(DdsLink, AWallClockThatIsSetBackHoldsNoWaitUp) {
  if (!test::kClocksCanBeMoved) GTEST_SKIP() << "a sanitizer has the clocks";
  const DdsOptions options{.domain = kDomain, .network = "lo"};
  const auto link = MakeDdsLink(options);
  const auto port = MakeDdsPort(options);
  ASSERT_TRUE(Within(10s, [&] { return link->Health().robot_present; }));
  std::atomic<bool> returned{false};
  test::MoveWallClock(3'600'000'000'000);
  std::thread waiting([&] {
    LowState none;
    link->ReceiveState(&none, 50ms);
    returned = true;
  });
  EXPECT_TRUE(Within(5s, [&] { return returned.load(); }));
  test::MoveWallClock(0);
  while (!returned) {  // wakes one that hangs
    port->SendState(LowState{});
    std::this_thread::sleep_for(5ms);
  }
  waiting.join();
}

TEST(DdsLink, RefusesWhatIsNoInterface) {
  // a name that is none is refused as such on a domain that is on another interface, too
  const auto link = MakeDdsLink({.domain = kDomain, .network = "lo"});
  EXPECT_THROW(MakeDdsLink({.domain = kDomain, .network = "lo\"/><x"}), ConfigError);
  EXPECT_THROW(MakeDdsLink({.domain = kDomain, .network = "eth0"}), RunError);
  // Cyclone says why, in a line that begins as all of silc's do
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(MakeDdsLink({.domain = kDomain + 1, .network = "nosuch0"}), RunError);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "silc: DDS: nosuch0: does not match an available interface.\n");
}

}  // namespace
}  // namespace silc
