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
  std::string browser;  // program of a Chromium that draws, then alone; none: not measured
};

/// One JSON object: real-time factor, observations a second, time from a state to the page's
/// acknowledgement, the server's share of a core, and what memory grows by per frame; with a
/// browser also the time from a state to the screen: a page acknowledges when the next picture
/// begins. Throws RunError when the browser does not come.
std::string BenchView(const ViewBenchOptions& options);

}  // namespace silc
