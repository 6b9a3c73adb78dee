// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/base/host_device.h"

/// Who does a robot's control step: one thread (SingleThread), or the threads of a group.
///
/// A step is cut into phases (task_step.h). Inside a phase no member reads what another writes;
/// between two phases the members meet. What a phase does for each joint, term or element is shared
/// out by number; the rest are jobs, each of one member. Sums are never shared out, so that every
/// group gets the bits that one thread gets.
///
///     kSize           members
///     first()         this member: it does items first(), first() + kSize, …
///     Does(job)       whether the job is this member's
///     Sync()          members of one observation wait for each other inside a phase
namespace silc {

struct SingleThread {
  static constexpr int kSize = 1;
  SILC_HD static int first() { return 0; }
  SILC_HD static bool Does(int) { return true; }
  SILC_HD static void Sync() {}
};

}  // namespace silc
