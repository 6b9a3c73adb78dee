// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace silc {

/// Motors in a frame, and those that a G1 with 29 joints has: the first 29, in the order of
/// robots/g1/robot.yaml.
inline constexpr int kFrameMotors = 35;
inline constexpr int kRobotMotors = 29;

/// One number per joint of the robot.
using JointArray = std::array<double, kRobotMotors>;

// The frames of Unitree's low-level interface as C structs: little endian, four-byte aligned,
// padding written out so that it is zero. CRCs are taken over these images (docs/deploy.md).

/// A motor does  τ = tau + kp (q − q_measured) + kd (dq − dq_measured).
struct MotorCommand {
  std::uint8_t mode;  // 1 enabled, 0 disabled
  std::uint8_t padding[3];
  float q;    // [rad]
  float dq;   // [rad/s]
  float tau;  // [N·m]
  float kp;   // [N·m/rad]
  float kd;   // [N·m·s/rad]
  std::uint32_t reserve;
};

struct LowCommand {
  std::uint8_t mode_pr;       // 0: ankles and waist as pitch and roll
  std::uint8_t mode_machine;  // the robot's variant, as the robot reports it
  std::uint8_t padding[2];
  MotorCommand motor[kFrameMotors];
  std::uint32_t reserve[4];
  std::uint32_t crc;
};
static_assert(sizeof(LowCommand) == 1004);

struct ImuReading {
  float quat_wxyz[4];
  float gyro[3];   // [rad/s] w_WB_B
  float accel[3];  // [m/s²]
  float rpy[3];    // [rad]
  std::int16_t temperature;
  std::uint8_t padding[2];
};

struct MotorReading {
  std::uint8_t mode;
  std::uint8_t padding[3];
  float q;                        // [rad]
  float dq;                       // [rad/s]
  float ddq;                      // [rad/s²]
  float tau_est;                  // [N·m]
  std::int16_t temperature_C[2];  // casing, winding
  float voltage;
  std::uint32_t sensor[2];
  std::uint32_t fault_word;  // 0: none
  std::uint32_t reserve[4];
};

struct LowState {
  std::uint32_t version[2];
  std::uint8_t mode_pr;
  std::uint8_t mode_machine;
  std::uint8_t padding[2];
  std::uint32_t tick;  // counts up
  ImuReading imu;
  MotorReading motor[kFrameMotors];
  std::uint8_t remote[40];
  std::uint32_t reserve[4];
  std::uint32_t crc;
};
static_assert(sizeof(LowState) == 2092);

/// CRC-32 of 32-bit words, most significant bit first: polynomial 0x04c11db7, begun with all ones,
/// nothing reflected or inverted at the end.
std::uint32_t Crc32OfWords(const void* words, int count);

/// Of the frame without its last word, which holds it.
std::uint32_t FrameCrc(const LowCommand& frame);
std::uint32_t FrameCrc(const LowState& frame);

}  // namespace silc
