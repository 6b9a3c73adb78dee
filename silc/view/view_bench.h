// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "silc/view/simulation.h"

namespace silc {

struct ViewBenchOptions {
  SimulationOptions simulation;
  double seconds = 5;   // [s] watched
  int spectators = 20;  // pages that acknowledge at once
  double soak = 3;      // [s] of frames as fast as one page takes them
};

/// One JSON object: real-time factor, observations a second, time from a state to the page's
/// acknowledgement, the server's share of a core, and what memory grows by per frame.
std::string BenchView(const ViewBenchOptions& options);

}  // namespace silc
