// SPDX-License-Identifier: Apache-2.0
#pragma once

// The fault table of docs/deploy.md as things that are done to a Rig.

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "silc/deploy/test_robot_frames.h"

namespace silc::test {

struct FaultRow {
  DriveFault fault;
  DriveState from;                   // the least state in which it is watched
  std::function<void(Rig*)> inject;  // from now on; rows may be put in on top of each other
  int extra_ticks;                   // beyond the rule's, until the value is over its limit
  bool once = false;                 // it happens in one tick, and does not last
  /// The same with a value that its limit still allows, or is less than a hundredth below. Empty
  /// where the limit is zero, or the value grows from tick to tick and passes it by itself.
  std::function<void(Rig*)> inject_allowed = {};
  const char* way = "";  // of OtherWaysIn()
};

/// "tilt", "tilt_upside_down".
std::string NameOf(const FaultRow& row);

void PrintTo(const FaultRow& row, std::ostream* out);

/// Every fault, once, in the order of DriveFault.
std::vector<FaultRow> FaultRows();

/// Rows that lead to the same faults by other ways: another sensor, sign, joint or state.
std::vector<FaultRow> OtherWaysIn();

/// One of those: the robot's last state again and again, with a right CRC.
FaultRow OldStatesSentSlowly();

/// Ends whatever was put in.
void Mend(Rig* rig);

}  // namespace silc::test
