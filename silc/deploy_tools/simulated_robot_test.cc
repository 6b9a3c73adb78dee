// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy_tools/simulated_robot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "silc/base/error.h"

namespace silc {
namespace {

TEST(Script, IsReadInTheOrderOfItsTimes) {
  const std::vector<ScriptEvent> events =
      ParseScript("2 press A; 0.5 stick ly -0.5\n1 push 1 2 3 0.1;; 3 end");
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].what, "stick");
  EXPECT_EQ(events[0].numbers, std::vector<double>{-0.5});
  EXPECT_EQ(events[1].numbers.size(), 4U);
  EXPECT_EQ(events[2].name, "A");
  EXPECT_EQ(events[3].time, 3);
}

TEST(Script, SaysWhatItDoesNotUnderstand) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      ParseScript(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("1 pres A").find("did you mean press?"), std::string::npos);
  EXPECT_NE(message("1 press Q").find("buttons are"), std::string::npos);
  EXPECT_NE(message("1 stick ly 1.5").find("no number within ±1"), std::string::npos);
  EXPECT_NE(message("1 push 1 2 3").find("takes 4 numbers"), std::string::npos);
  EXPECT_NE(message("1 push 1 2 3 x").find("'x' is no number within 0 and 1000"),
            std::string::npos);
  EXPECT_NE(message("1 fault windin").find("did you mean winding?"), std::string::npos);
  for (const char* time : {"", "-1 ", "nan ", "inf ", "1e999 ", "1e7 ", "0x1 ", "1s ", "1e "}) {
    EXPECT_NE(message(std::string(time) + "press A").find("must begin with a time from 0 to 1e+06"),
              std::string::npos)
        << time;
  }
  for (const char* force : {"nan", "-inf", "1e999", "1e6", "-1e300"}) {
    EXPECT_NE(
        message(std::string("1 push 0 ") + force + " 0 1").find("is no number within ±100000"),
        std::string::npos)
        << force;
  }
  for (const char* duration : {"nan", "-1", "1e5"}) {
    EXPECT_NE(message(std::string("1 push 0 0 0 ") + duration).find("is no number within 0 and"),
              std::string::npos)
        << duration;
  }
  for (const char* stick : {"nan", "1e999", "-2"}) {
    EXPECT_NE(message(std::string("1 stick ly ") + stick).find("is no number within ±1"),
              std::string::npos)
        << stick;
  }
  EXPECT_NE(message("1 stick ly 0.5 0.5").find("takes 1 numbers"), std::string::npos);
  EXPECT_NE(message("1 release now").find("takes 0 numbers"), std::string::npos);
  EXPECT_NE(message("1 motors 0.005").find("takes 2 numbers"), std::string::npos);
  for (const char* time : {"nan", "-0.001", "0.021"}) {
    for (const std::string& both : {std::string(time) + " 0.001", "0.001 " + std::string(time)}) {
      EXPECT_NE(message("1 motors " + both).find("is no number within 0 and 0.02"),
                std::string::npos)
          << both;
    }
  }
}

struct HungRobot {
  HungRobot() : model(RobotModel::Load("g1", SimulatedRobot::NeededLoad())), robot(model) {}
  RobotModel model;
  SimulatedRobot robot;
};

TEST(SimulatedRobot, FollowsOnlyCommandsThatAreWholeAndMeantForIt) {
  HungRobot hung;
  LowCommand command{};
  command.mode_machine = SimulatedRobot::kMachineMode;
  command.crc = FrameCrc(command);
  EXPECT_TRUE(hung.robot.Follow(command));
  command.crc ^= 1;
  EXPECT_FALSE(hung.robot.Follow(command));
  command.mode_machine = 4;
  command.crc = FrameCrc(command);
  EXPECT_FALSE(hung.robot.Follow(command));
  command.mode_machine = SimulatedRobot::kMachineMode;
  command.mode_pr = 1;
  command.crc = FrameCrc(command);
  EXPECT_FALSE(hung.robot.Follow(command));
  EXPECT_EQ(hung.robot.refused_commands(), 3);
}

TEST(SimulatedRobot, HangsInItsGantryAndFallsWithout) {
  HungRobot hung;
  for (int k = 0; k < 500; ++k) hung.robot.Step();
  EXPECT_GT(hung.robot.base_height(), 0.7);
  hung.robot.Happen(ParseEvent("release"));
  for (int k = 0; k < 2500; ++k) hung.robot.Step();
  EXPECT_FALSE(hung.robot.held());
  EXPECT_LT(hung.robot.base_height(), 0.4) << "nobody drives it";
}

// A motor holds its joint where it is told to, by the law of the frame.
TEST(SimulatedRobot, MotorsAreSprings) {
  HungRobot hung;
  LowCommand command{};
  command.mode_machine = SimulatedRobot::kMachineMode;
  for (int j = 0; j < kRobotMotors; ++j) command.motor[j] = {.mode = 1, .kp = 60, .kd = 3};
  command.motor[18].q = 1;  // the left elbow
  command.crc = FrameCrc(command);
  ASSERT_TRUE(hung.robot.Follow(command));
  for (int k = 0; k < 1500; ++k) hung.robot.Step();
  LowState frame;
  ASSERT_TRUE(hung.robot.Frame(&frame));
  EXPECT_EQ(frame.crc, FrameCrc(frame));
  EXPECT_EQ(frame.tick, 1500U);
  EXPECT_NEAR(frame.motor[18].q, 1, 0.05);
  EXPECT_NEAR(frame.motor[18].tau_est, 60 * (1 - frame.motor[18].q) - 3 * frame.motor[18].dq, 0.1);
}

// The law of the frame, with the period and the delay that the script gives the motors. Encoders
// and torques are those of the frames, which are floats: seven digits of 200 N·m/rad times an
// angle.
TEST(SimulatedRobot, MotorsComputeTheirTorquesWhenTheScriptSays) {
  HungRobot hung;
  LowCommand command{};
  command.mode_machine = SimulatedRobot::kMachineMode;
  for (int j = 0; j < kRobotMotors; ++j)
    command.motor[j] = {.mode = 1, .q = 0.1F, .kp = 4, .kd = 1};
  command.crc = FrameCrc(command);
  ASSERT_TRUE(hung.robot.Follow(command));
  std::vector<LowState> frames(1);  // by step: before it
  ASSERT_TRUE(hung.robot.Frame(&frames[0]));
  constexpr int kBegin = 7, kPeriod = 5, kDelay = 3, kSteps = 60;  // [step]
  int compared = 0;
  for (int k = 0; k < kSteps; ++k) {
    if (k == kBegin) hung.robot.Happen(ParseEvent("motors 0.005 0.003"));
    hung.robot.Step();
    frames.emplace_back();
    ASSERT_TRUE(hung.robot.Frame(&frames.back()));
    const int computed = k < kBegin ? k : k - (k - kBegin) % kPeriod;
    const LowState& seen = frames[static_cast<std::size_t>(k < kBegin ? k : computed - kDelay)];
    for (int j = 0; j < kRobotMotors; ++j) {
      const double tau = 4 * (0.1F - seen.motor[j].q) - seen.motor[j].dq;
      if (std::abs(tau) > 4.9) continue;  // a wrist has 5 N·m
      EXPECT_NEAR(frames.back().motor[j].tau_est, tau, 1e-5) << "step " << k << ", motor " << j;
      ++compared;
    }
  }
  EXPECT_GT(compared, kSteps * kRobotMotors / 2);
}

// Why a G1 falls on a bridge that computes torques every 5 ms from speeds of the step before
// (docs/deploy.md). A damper on an inertia J whose torque is held for T makes v⁺ = v − a v with
// a = kd T / J, stable below a = 2; from the speed one T ago it makes v⁺ = v − a v⁻, stable below
// a = 1. A joint has the inertia of its rotor or more, so no joint has more than the a of its
// rotor; ankle roll and wrists have little less.
TEST(SimulatedRobot, ADamperSlowsWhenItsTorqueIsHeldAndShakesWhenThatIsLate) {
  constexpr double kHeld = 0.005;  // [s]
  const auto fastest_at_end = [](double a, const std::string& motors) {
    HungRobot hung;
    LowCommand command{};
    command.mode_machine = SimulatedRobot::kMachineMode;
    for (int j = 0; j < kRobotMotors; ++j) {
      const int dof = hung.model.dof_address()[static_cast<std::size_t>(j)];
      const double rotor = hung.model.model()->dof_armature[dof];  // [kg·m²]
      command.motor[j] = {.mode = 1, .kd = static_cast<float>(a * rotor / kHeld)};
    }
    command.crc = FrameCrc(command);
    EXPECT_TRUE(hung.robot.Follow(command));
    hung.robot.Happen(ParseEvent("motors " + motors));
    hung.robot.Happen(ParseEvent("push 0 200 0 0.1"));
    double fastest = 0;
    for (int k = 0; k < 3000; ++k) {
      hung.robot.Step();
      if (k >= 2500) fastest = std::max(fastest, hung.robot.fastest_joint());
    }
    return fastest;
  };
  // a limb that sinks under its weight is slow; one that shakes is at the limits of its motors
  EXPECT_LT(fastest_at_end(1.5, "0.005 0"), 1);
  EXPECT_GT(fastest_at_end(1.5, "0.005 0.005"), 10);
  EXPECT_LT(fastest_at_end(0.7, "0.005 0.005"), 1);
}

// MuJoCo begins anew where a state is absurd, with its time at zero: the simulation is over, says
// when and where, and a controller hears nothing more of it.
TEST(SimulatedRobot, EndsWhereItDiverges) {
  HungRobot hung;
  struct : RobotPort {
    bool ReceiveCommand(LowCommand*, std::chrono::nanoseconds) override { return false; }
    bool SendState(const LowState& state) override {
      last_tick = state.tick;
      return true;
    }
    std::uint32_t last_tick = 0;
  } port;
  SimulatedRobotOptions options;
  options.script = {{.time = 0.05, .what = "push", .name = "", .numbers = {1e300, 0, 0, 1}}};
  options.seconds = 3;
  int steps = 0;
  options.each_step = [&](const SimulatedRobot&) { ++steps; };
  RunSimulation(&hung.robot, &port, options, std::atomic<bool>{false});
  EXPECT_EQ(hung.robot.divergence(),
            "at 0.050 s: the acceleration of the base is no number or beyond 1e+10");
  EXPECT_EQ(steps, 51);
  EXPECT_EQ(port.last_tick, 50U) << "no state of the robot that MuJoCo made instead";
  LowState frame;
  EXPECT_FALSE(hung.robot.Frame(&frame));
}

TEST(SimulatedRobot, ShowsEveryFaultInItsFrames) {
  for (const std::string& name : InjectedFaults()) {
    HungRobot hung;
    LowState sound, frame;
    hung.robot.Frame(&sound);
    hung.robot.Happen(ParseEvent("fault " + name));
    const bool sent = hung.robot.Frame(&frame);
    EXPECT_EQ(sent, name != "silence");
    const bool physical = name == "dead_motor" || name == "arm_held" || name == "arm_dragged";
    if (physical || name == "freeze" || name == "restart" || !sent) continue;
    const auto bytes = [](const LowState& f) {
      return std::string(reinterpret_cast<const char*>(&f), sizeof f);
    };
    EXPECT_NE(bytes(sound), bytes(frame)) << name;
    EXPECT_EQ(frame.crc == FrameCrc(frame), name != "crc") << name;
  }
}

}  // namespace
}  // namespace silc
