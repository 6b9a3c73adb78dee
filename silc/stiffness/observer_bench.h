// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/stiffness/contact_mode.h"

namespace silc {

/// Times of the observer's dense mathematics, the network's Jacobians not included.
struct ObserverTimes {
  double median_us = 0;  // [µs] per observation
  double best_us = 0;    // [µs]
  int observations = 0;
};

/// Runs the observer on made-up Jacobians of the G1's size (29 joints, `frames` frames, CoM and two
/// hands, one budget) for about `seconds` on the calling thread.
ObserverTimes BenchObserver(ContactMode mode, int frames, double seconds);

}  // namespace silc
