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
  double soak = 3;      // [s] of frames as fast as they are simulated, and at least those below
  std::string browser;  // program of a Chromium that draws, then alone; none: not measured
};

/// Frames of a soak: until everything has its size, the 30 s of the recorder among it, and after
/// that at least.
inline constexpr std::uint64_t kSoakWarmUp = 2000, kSoakLeast = 2000;

/// What `grown` bytes over `frames` are in 24 h at 50 frames a second [MB].
double GrowthIn24Hours(double grown, std::uint64_t frames);

/// One JSON object: real-time factor, observations a second, time from a state to the page's
/// acknowledgement, the server's share of a core, and what memory grows by per frame; with a
/// browser also the time from a state to the picture that shows it, of the pictures that were
/// really drawn (docs/view.md). Throws RunError when the browser does not come.
std::string BenchView(const ViewBenchOptions& options);

}  // namespace silc
