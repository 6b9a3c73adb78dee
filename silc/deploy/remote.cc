// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/remote.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace silc {
namespace {

// Offsets of the remote's bytes.
constexpr int kButtonsAt = 2, kLxAt = 4, kRxAt = 8, kRyAt = 12, kLyAt = 20;
constexpr float kStickRange = 1.05F;     // [1] a stick reads a little beyond ±1
constexpr double kStickDeadZone = 0.05;  // [1] a released stick does not rest at zero

float FloatAt(std::span<const std::uint8_t, 40> bytes, int at) {
  float value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

double WithDeadZone(float stick) {
  const double size = std::abs(static_cast<double>(stick));
  if (size <= kStickDeadZone) return 0;
  return std::copysign((size - kStickDeadZone) / (1 - kStickDeadZone), stick);
}

}  // namespace

RemoteReading DecodeRemote(std::span<const std::uint8_t, 40> bytes) {
  RemoteReading reading;
  const float sticks[4] = {
      FloatAt(bytes, kLxAt), FloatAt(bytes, kLyAt), FloatAt(bytes, kRxAt), FloatAt(bytes, kRyAt)};
  for (const float stick : sticks) {
    if (!(std::abs(stick) <= kStickRange)) return reading;  // a NaN ends here, too
  }
  reading.valid = true;
  std::memcpy(&reading.buttons, bytes.data() + kButtonsAt, sizeof reading.buttons);
  reading.lx = std::clamp(sticks[0], -1.0F, 1.0F);
  reading.ly = std::clamp(sticks[1], -1.0F, 1.0F);
  reading.rx = std::clamp(sticks[2], -1.0F, 1.0F);
  reading.ry = std::clamp(sticks[3], -1.0F, 1.0F);
  return reading;
}

void EncodeRemote(const RemoteReading& reading, std::span<std::uint8_t, 40> bytes) {
  std::fill(bytes.begin(), bytes.end(), std::uint8_t{0});
  std::memcpy(bytes.data() + kButtonsAt, &reading.buttons, sizeof reading.buttons);
  std::memcpy(bytes.data() + kLxAt, &reading.lx, sizeof reading.lx);
  std::memcpy(bytes.data() + kLyAt, &reading.ly, sizeof reading.ly);
  std::memcpy(bytes.data() + kRxAt, &reading.rx, sizeof reading.rx);
  std::memcpy(bytes.data() + kRyAt, &reading.ry, sizeof reading.ry);
}

OperatorRequest RemoteRequests::Read(const RemoteReading& reading) {
  OperatorRequest request;
  if (!reading.valid) return request;
  const auto pressed_now = [&](RemoteButton button) {
    return reading.Pressed(button) && ((before_ >> static_cast<int>(button)) & 1) == 0;
  };
  request.emergency_stop =
      reading.Pressed(RemoteButton::kSelect) ||
      (reading.Pressed(RemoteButton::kL2) && reading.Pressed(RemoteButton::kB));
  request.damp = pressed_now(RemoteButton::kB);
  request.stand = pressed_now(RemoteButton::kStart);
  request.run = pressed_now(RemoteButton::kA);
  request.acknowledge = pressed_now(RemoteButton::kX);
  before_ = reading.buttons;
  // y is to the left and yaw turns to the left; sticks read to the right
  request.vx = max_vx_ * WithDeadZone(reading.ly);
  request.vy = -max_vy_ * WithDeadZone(reading.lx);
  request.yaw_rate = -max_yaw_rate_ * WithDeadZone(reading.rx);
  return request;
}

}  // namespace silc
