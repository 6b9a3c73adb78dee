// SPDX-License-Identifier: Apache-2.0
#include "silc/view/session.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "silc/base/error.h"

namespace silc {
namespace {

TEST(FrameFlow, APageThatStopsAnsweringGetsFourFramesAndNoMore) {
  FrameFlow flow;
  std::uint32_t sent = 0;
  for (std::uint32_t frame = 1; frame <= 100; ++frame) {
    if (!flow.MaySend()) continue;
    flow.Sent(frame, 0.02 * frame);
    ++sent;
  }
  EXPECT_EQ(sent, FrameFlow::kMaxUnacked);
  // the newest acknowledges all before it
  EXPECT_DOUBLE_EQ(flow.Acked(4, 1.0).value(), 1.0 - 0.08);
  for (std::uint32_t frame = 101; frame <= 104; ++frame) {
    ASSERT_TRUE(flow.MaySend());
    flow.Sent(frame, 2);
  }
  EXPECT_FALSE(flow.MaySend());
}

TEST(FrameFlow, AcknowledgementsOfNothingOpenNothing) {
  FrameFlow flow;
  for (std::uint32_t frame = 1; frame <= 4; ++frame) flow.Sent(frame, 0);
  EXPECT_FALSE(flow.Acked(99, 1));
  EXPECT_FALSE(flow.MaySend());
  EXPECT_TRUE(flow.Acked(2, 1));
  EXPECT_FALSE(flow.Acked(2, 1)) << "twice";
  EXPECT_FALSE(flow.Acked(1, 1)) << "went with the second";
}

// An acknowledgement says that a frame has come, nothing of its picture; a picture is of one frame.
TEST(FrameFlow, APictureCountsForItsOwnFrame) {
  FrameFlow flow;
  for (std::uint32_t frame = 1; frame <= 4; ++frame) flow.Sent(frame, 0.02 * frame);
  EXPECT_TRUE(flow.Acked(4, 0.1));
  EXPECT_DOUBLE_EQ(flow.Shown(3, 0.2).value(), 0.2 - 0.06)
      << "from its own state, acknowledged or not";
  EXPECT_FALSE(flow.Shown(3, 0.3)) << "twice";
  EXPECT_FALSE(flow.Shown(2, 0.3)) << "was overtaken";
  EXPECT_FALSE(flow.Shown(99, 0.3)) << "was never sent";
  EXPECT_DOUBLE_EQ(flow.Shown(4, 0.3).value(), 0.3 - 0.08);
  // a picture does not make room for frames
  for (std::uint32_t frame = 5; frame <= 8; ++frame) flow.Sent(frame, 1);
  EXPECT_TRUE(flow.Shown(8, 2));
  EXPECT_FALSE(flow.MaySend());
  // a page that never tells of pictures costs no memory
  for (std::uint32_t frame = 9; frame < 9 + 2 * FrameFlow::kRemembered; ++frame)
    flow.Sent(frame, 3);
  EXPECT_FALSE(flow.Shown(9, 4)) << "forgotten";
  EXPECT_TRUE(flow.Shown(9 + FrameFlow::kRemembered, 4));
}

TEST(HandOnRobot, OneAtATimeUntilItLetsGoOrFallsAsleep) {
  HandOnRobot hand;
  EXPECT_TRUE(hand.is_free());
  EXPECT_TRUE(hand.Ask(1, 100));
  EXPECT_FALSE(hand.Ask(2, 105));
  EXPECT_TRUE(hand.IsHeldBy(1));
  hand.GiveBack(2);  // not its to give
  EXPECT_TRUE(hand.IsHeldBy(1));
  hand.Used(109);
  EXPECT_FALSE(hand.Ask(2, 112)) << "it was used 3 s ago";
  EXPECT_TRUE(hand.Ask(2, 109 + HandOnRobot::kIdle));
  EXPECT_TRUE(hand.IsHeldBy(2));
  hand.GiveBack(2);
  EXPECT_TRUE(hand.is_free());
}

TEST(RateLimit, LetsTheAverageThroughAndStopsAFlood) {
  RateLimit limit(100, 50);
  int taken = 0;
  for (int i = 0; i < 1000; ++i) taken += limit.Take(10.0);
  EXPECT_EQ(taken, 50) << "at one moment: the burst";
  taken = 0;
  for (int i = 0; i < 1000; ++i) taken += limit.Take(10.0 + 0.002 * (i + 1));
  EXPECT_NEAR(taken, 200, 2) << "500 a second for two seconds";
  // a clock that goes back gives nothing away
  EXPECT_FALSE(limit.Take(11.0));
}

TEST(Session, OnlyItsOwnNamesReachTheLoopback) {
  EXPECT_TRUE(HostAllowed("127.0.0.1:8080", "127.0.0.1", 8080));
  EXPECT_TRUE(HostAllowed("localhost:8080", "127.0.0.1", 8080));
  EXPECT_TRUE(HostAllowed("[::1]:8080", "::1", 8080));
  EXPECT_FALSE(HostAllowed("robots.example:8080", "127.0.0.1", 8080)) << "a name pointed here";
  EXPECT_FALSE(HostAllowed("localhost.example", "127.0.0.1", 8080));
  EXPECT_FALSE(HostAllowed("", "127.0.0.1", 8080));
  EXPECT_TRUE(HostAllowed("lab-7:8080", "0.0.0.0", 8080)) << "there a token guards";
}

TEST(Session, OnlyItsOwnPageMayOpenASocket) {
  EXPECT_TRUE(OriginAllowed("http://127.0.0.1:8080", "127.0.0.1:8080"));
  EXPECT_TRUE(OriginAllowed("", "127.0.0.1:8080")) << "a program";
  EXPECT_FALSE(OriginAllowed("http://evil.example", "127.0.0.1:8080"));
  EXPECT_FALSE(OriginAllowed("http://127.0.0.1:9999", "127.0.0.1:8080")) << "another server here";
  EXPECT_FALSE(OriginAllowed("null", "127.0.0.1:8080"));
}

TEST(Session, ATokenIsLongEnoughAndPlain) {
  EXPECT_NO_THROW(CheckToken("0123456789abcdef"));
  EXPECT_NO_THROW(CheckToken("ABC_xyz-0123456789"));
  EXPECT_NO_THROW(CheckToken(RandomToken()));
  EXPECT_NO_THROW(CheckToken(std::string(128, 'a')));
  const std::vector<std::string> wrong = {"",
                                          "x",
                                          "0123456789abcde",
                                          "0123456789abcdef+b",
                                          "0123456789abcdef b",
                                          "0123456789abcdef&robot=1",
                                          "0123456789abcdef#",
                                          "0123456789abcdef\xc3\xa4",
                                          std::string(129, 'a')};
  for (const std::string& token : wrong) {
    try {
      CheckToken(token);
      ADD_FAILURE() << "taken: " << token;
    } catch (const ConfigError& error) {
      EXPECT_STREQ(error.what(),
                   "--token: must be 16 to 128 letters, digits, '-' or '_', or 'random', which "
                   "makes such a one");
    }
  }
}

TEST(Session, TokensAndQueries) {
  EXPECT_TRUE(SameToken("abc", "abc"));
  EXPECT_FALSE(SameToken("abc", "abd"));
  EXPECT_FALSE(SameToken("abc", "ab"));
  EXPECT_FALSE(SameToken("", "abc"));
  EXPECT_EQ(QueryValue("/ws?token=abc&robot=1", "token"), "abc");
  EXPECT_EQ(QueryValue("/ws?token=abc&robot=1", "robot"), "1");
  EXPECT_EQ(QueryValue("/ws?mytoken=abc", "token"), "");
  EXPECT_EQ(QueryValue("/ws?token", "token"), "");
  EXPECT_EQ(QueryValue("/ws", "token"), "");
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) tokens.insert(RandomToken());
  EXPECT_EQ(tokens.size(), 100u);
  EXPECT_EQ(tokens.begin()->size(), 32u);
}

}  // namespace
}  // namespace silc
