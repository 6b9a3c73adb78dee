// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace silc {

/// Buttons of the remote, by bit.
enum class RemoteButton : std::uint8_t {
  kR1,
  kL1,
  kStart,
  kSelect,
  kR2,
  kL2,
  kF1,
  kF2,
  kA,
  kB,
  kX,
  kY,
  kPadUp,
  kPadRight,
  kPadDown,
  kPadLeft,
};

/// The remote's part of a state frame.
struct RemoteReading {
  bool valid = false;         ///< false: a stick is no number or beyond its range; all else is zero
  std::uint16_t buttons = 0;  ///< bit RemoteButton
  float lx = 0, ly = 0;       ///< [1] left stick, right and forward positive, within ±1
  float rx = 0, ry = 0;       ///< [1] right stick

  bool Pressed(RemoteButton button) const {
    return ((buttons >> static_cast<int>(button)) & 1) != 0;
  }
};

/// Reads the 40 bytes. Nothing in them can make it fail: what is not plausible is not valid.
RemoteReading DecodeRemote(std::span<const std::uint8_t, 40> bytes);

/// The other way, for a simulated robot. @pre sticks within ±1
void EncodeRemote(const RemoteReading& reading, std::span<std::uint8_t, 40> bytes);

/// What the operator asks for, from remote and keyboard alike. Requests are events: true for one
/// tick.
struct OperatorRequest {
  bool emergency_stop = false;  ///< damping, latched
  bool damp = false;            ///< to damping
  bool stand = false;           ///< damping → standing up
  bool run = false;             ///< standing → policy
  bool acknowledge = false;     ///< lets go of a latched fault that is over
  bool console_lost = false;    ///< the terminal with the keyboard is gone; a state, not an event
  double vx = 0, vy = 0;        ///< [m/s]
  double yaw_rate = 0;          ///< [rad/s]
};

/// Turns held buttons into requests: a request begins when its button goes down, so a button that
/// is held asks once. The emergency stop holds as long as it is pressed.
///
///     L2 + B, or Select   emergency stop        Start   stand up
///     B                   damping               A       policy
///     X                   acknowledge           sticks  left: vx, vy; right: yaw rate
class RemoteRequests {
 public:
  RemoteRequests(double max_vx, double max_vy, double max_yaw_rate)
      : max_vx_(max_vx), max_vy_(max_vy), max_yaw_rate_(max_yaw_rate) {}

  OperatorRequest Read(const RemoteReading& reading);

 private:
  double max_vx_, max_vy_, max_yaw_rate_;  // of a stick pushed all the way
  std::uint16_t before_ = 0xffff;          // all down: what is pressed at the start asks nothing
};

}  // namespace silc
