// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "silc/deploy/commander.h"
#include "silc/deploy/messages.h"

namespace silc {

/// The controller's end of a connection with a robot. At first it only listens: other controllers
/// of the robot do not see it as one. Its own threads call it, never the command thread: it may
/// wait, lock and allocate.
class RobotLink {
 public:
  virtual ~RobotLink() = default;

  /// Waits for a state that was not received yet and gives the newest. False: none came in time.
  virtual bool ReceiveState(LowState* state, std::chrono::nanoseconds wait) = 0;
  /// Before the first command, once, while no other thread calls. Others then see that somebody may
  /// send, and stop. Throws RunError.
  virtual void BeginSending() = 0;
  /// False: it could not be handed over.
  virtual bool SendCommand(const LowCommand& command) = 0;
  virtual LinkHealth Health() = 0;  ///< failed_sends is the caller's to count
};

/// The robot's end, for simulated ones.
class RobotPort {
 public:
  virtual ~RobotPort() = default;

  virtual bool ReceiveCommand(LowCommand* command, std::chrono::nanoseconds wait) = 0;
  virtual bool SendState(const LowState& state) = 0;
};

}  // namespace silc
