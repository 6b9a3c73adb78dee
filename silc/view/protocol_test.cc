// SPDX-License-Identifier: Apache-2.0
#include "silc/view/protocol.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "silc/base/nan.h"

namespace silc {
namespace {

StateFrame MakeFrame() {
  StateFrame frame;
  frame.sequence = 77;
  frame.paused = true;
  frame.same_push = false;
  frame.gravity = GravityChoice::kFollowed;
  frame.time = 12.34;
  frame.sent = 5678.9;
  frame.speed = 0.5;
  frame.achieved = 0.25;
  frame.scene = 4242;
  frame.command = {0.5, -0.25, 0.125, 0.75, 1};
  for (int i = 0; i < 2; ++i) {
    RobotView robot;
    robot.status = 1;
    robot.mode = 2;
    robot.push = 1;
    robot.policy = 3;
    robot.budget = 4;
    robot.f_W = {1, 2, 3};
    robot.moved_W = {0.25, 0.5, 0.75};
    robot.predicted_W.setConstant(kNan);
    robot.foot_f_W[1] = {0, 0, 150.0 + i};
    robot.reading.sigma = 0.875;
    robot.reading.status = 5;
    robot.points[2].C_felt << 1, 2, 3, 4, 5, 6, 7, 8, 9;
    robot.points[2].worst = 1.5;
    robot.told.value[1] = 250;
    robot.told.low[1] = 100;
    robot.told.high[1] = 1000.0 + i;
    for (int k = 0; k < 14; ++k) robot.bodies.push_back(static_cast<float>(k + i));
    frame.robots.push_back(robot);
  }
  return frame;
}

TEST(Protocol, AFrameComesBackAsItWas) {
  const std::string bytes = EncodeState(MakeFrame());
  EXPECT_EQ(bytes.size(), kFrameHeaderBytes + 2 * (kRobotHeaderBytes + 2 * 28));
  const std::optional<StateFrame> frame = DecodeState(bytes);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->sequence, 77u);
  EXPECT_TRUE(frame->paused);
  EXPECT_FALSE(frame->same_push);
  EXPECT_EQ(frame->gravity, GravityChoice::kFollowed);
  EXPECT_EQ(frame->time, 12.34);
  EXPECT_EQ(frame->sent, 5678.9);
  EXPECT_EQ(frame->scene, 4242u);
  EXPECT_EQ(frame->command[1], -0.25);
  ASSERT_EQ(frame->robots.size(), 2u);
  const RobotView& robot = frame->robots[1];
  EXPECT_EQ(robot.policy, 3);
  EXPECT_EQ(robot.f_W, Eigen::Vector3d(1, 2, 3));
  EXPECT_EQ(robot.moved_W.z(), 0.75);
  EXPECT_TRUE(std::isnan(robot.predicted_W.x()));
  EXPECT_EQ(robot.foot_f_W[1].z(), 151);
  EXPECT_EQ(robot.reading.status, 5);
  EXPECT_EQ(robot.points[2].C_felt(1, 0), 4) << "row by row";
  EXPECT_EQ(robot.points[2].worst, 1.5);
  EXPECT_EQ(robot.told.value[1], 250);
  EXPECT_EQ(robot.told.high[1], 1001);
  EXPECT_TRUE(std::isnan(robot.told.low[0])) << "not told";
  EXPECT_EQ(robot.bodies[13], 14);
  // every byte is written again as it was read
  EXPECT_EQ(EncodeState(*frame), bytes);
}

// The places that docs/view.md gives and the server reads without decoding.
TEST(Protocol, FieldsLieWhereTheTablesSay) {
  const std::string bytes = EncodeState(MakeFrame());
  const auto at = [&](std::size_t offset, auto value) {
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  };
  EXPECT_EQ(bytes.substr(0, 4), "SILV");
  EXPECT_EQ(at(4, std::uint16_t{}), kProtocolVersion);
  EXPECT_EQ(at(6, std::uint16_t{}), 2);
  EXPECT_EQ(at(8, std::uint32_t{}), 77u);
  EXPECT_EQ(at(16, 0.0), 12.34);
  EXPECT_EQ(at(24, 0.0), 5678.9);
  EXPECT_EQ(at(40, std::uint32_t{}), 4242u);
  EXPECT_EQ(at(48, 0.0f), 0.5f);
  EXPECT_EQ(at(kFrameHeaderBytes + 8, 0.0f), 1.0f) << "f_W of the first robot";
  EXPECT_EQ(at(kFrameHeaderBytes + 480 + 4, 0.0f), 250.0f) << "what it is told of its hands";
}

TEST(Protocol, DamagedFramesAreNone) {
  const std::string whole = EncodeState(MakeFrame());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(DecodeState(std::string_view(whole).substr(0, size)));
  }
  EXPECT_FALSE(DecodeState(whole + "x"));
  std::string other = whole;
  other[4] = kProtocolVersion + 1;
  EXPECT_FALSE(DecodeState(other)) << "another version";
  // numbers that would overflow a product of sizes
  other = whole;
  for (int k = 12; k < 16; ++k) other[k] = '\xff';
  EXPECT_FALSE(DecodeState(other));
}

const InputLimits kLimits{.robots = 2, .bodies = 31, .policies = 5, .budgets = 6, .pushes = 3};

std::optional<Input> Decode(const std::string& bytes, std::string* error) {
  return DecodeInput(bytes, kLimits, error);
}

TEST(Protocol, InputsComeBackAsTheyWere) {
  std::vector<Input> inputs = {{InputType::kAck, 0, 4000000000u, {}},
                               {InputType::kHand, 0, 1, {}},
                               {InputType::kGrab, 1, 30, {0.5, -0.25, 0.125}},
                               {InputType::kPull, 0, 0, {1, 2, 3}},
                               {InputType::kRelease, 0, 0, {}},
                               {InputType::kCommand, 0, 0, {0.5, 0.25, -0.5, 0.75, 1}},
                               {InputType::kPause, 0, 1, {}},
                               {InputType::kSpeed, 0, 0, {0.25}},
                               {InputType::kReset, 0, 0, {}},
                               {InputType::kPush, 0, 2, {}},
                               {InputType::kPolicy, 1, 4, {}},
                               {InputType::kBudget, 1, 5, {}},
                               {InputType::kGravity, 0, 2, {}},
                               {InputType::kSamePush, 0, 0, {}},
                               {InputType::kSpring, 0, 0, {200}},
                               {InputType::kTold, 0, 1, {400, 200, 100}},
                               {InputType::kShown, 0, 4000000000u, {0.0625}}};
  for (const Input& input : inputs) {
    std::string error;
    const std::optional<Input> back = Decode(EncodeInput(input), &error);
    ASSERT_TRUE(back) << error;
    EXPECT_EQ(back->type, input.type);
    EXPECT_EQ(back->robot, input.robot);
    EXPECT_EQ(back->index, input.index);
    EXPECT_EQ(back->value, input.value);
  }
}

TEST(Protocol, WhatIsOutsideIsRefusedInWords) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<Input, std::string>> cases = {
      {{InputType::kPull, 0, 0, {nan, 0, 0}}, "outside"},
      {{InputType::kPull, 0, 0, {0, inf, 0}}, "outside"},
      {{InputType::kSpring, 0, 0, {1e9}}, "outside [1, 5000]"},
      {{InputType::kSpeed, 0, 0, {0}}, "outside"},
      {{InputType::kCommand, 0, 0, {50, 0, 0, 0.75, 0}}, "outside [-3, 3]"},
      {{InputType::kGrab, 2, 5, {}}, "robot 2 of 2"},
      {{InputType::kGrab, 0, 31, {}}, "body"},
      {{InputType::kGrab, 0, 0, {}}, "body"},  // the world
      {{InputType::kPolicy, 0, 5, {}}, "policy 5 of 5"},
      {{InputType::kBudget, 0, 6, {}}, "budget 6 of 6"},
      {{InputType::kPush, 0, 3, {}}, "push 3 of 3"},
      {{InputType::kTold, 0, 2, {400, 200, 100}}, "robot 2 of 2"},
      {{InputType::kTold, 0, 0, {400, -200, 100}}, "outside"},
      {{InputType::kTold, 0, 0, {400, 200, nan}}, "outside"},
      {{InputType::kTold, 0, 0, {1e9, 200, 100}}, "outside"},
      {{InputType::kShown, 0, 7, {-1}}, "outside"},
      {{InputType::kShown, 0, 7, {nan}}, "outside"},
      {{InputType::kPause, 0, 2, {}}, "switch"}};
  for (const auto& [input, words] : cases) {
    std::string error;
    EXPECT_FALSE(Decode(EncodeInput(input), &error)) << words;
    EXPECT_NE(error.find(words), std::string::npos) << error << " has no " << words;
  }
}

// Random bytes, and good messages with a few bytes changed, cut or added: an input within its
// limits comes out, or words.
TEST(Protocol, FuzzedInputsNeverGetThroughUnchecked) {
  std::mt19937 rng(11);
  const auto byte = [&] { return static_cast<char>(rng() & 0xff); };
  int taken = 0;
  for (int trial = 0; trial < 200000; ++trial) {
    std::string bytes;
    if (trial % 2 == 0) {
      bytes.resize(rng() % 80);
      for (char& b : bytes) b = byte();
      if (bytes.size() > 3 && trial % 4 == 0) {  // past the version
        bytes[0] = kProtocolVersion;
        bytes[1] = 0;
        bytes[2] = static_cast<char>(rng() % 20);
      }
    } else {
      Input input;
      input.type = static_cast<InputType>(1 + rng() % 17);
      bytes = EncodeInput(input);
      for (unsigned k = 0; k < 1 + rng() % 3; ++k) bytes[rng() % bytes.size()] = byte();
      if (rng() % 8 == 0) bytes.resize(rng() % (bytes.size() + 9));
    }
    std::string error;
    const std::optional<Input> input = Decode(bytes, &error);
    EXPECT_EQ(error.empty(), input.has_value());
    if (!input) continue;
    ++taken;
    for (const double value : input->value) ASSERT_TRUE(std::isfinite(value));
    if (input->type == InputType::kGrab) {
      ASSERT_LT(input->robot, kLimits.robots);
      ASSERT_LT(input->index, kLimits.bodies);
    }
    if (input->type == InputType::kPolicy) {
      ASSERT_LT(input->index, kLimits.policies);
    }
  }
  EXPECT_GT(taken, 1000) << "or the fuzzer never came as far as the numbers";
}

}  // namespace
}  // namespace silc
