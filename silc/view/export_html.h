// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "silc/view/simulation.h"

namespace silc {

struct ExportOptions {
  SimulationOptions simulation;
  double seconds = 10;  // [s] recorded
};

/// A recording as one HTML file that plays without a server: the robots stand, have 40 N on the
/// left hand from second 1 to 3 and are pushed with 150 N for 0.05 s at second 6. Page, three.js
/// and frames are inside. `progress` gets the share that is done.
std::string ExportHtml(ExportOptions options, const std::function<void(double)>& progress = {});

/// The page around frames that were recorded elsewhere, as one file.
std::string RecordingPage(const std::string& scene_json, const std::vector<std::string>& frames);
/// The same for a ViewServer, which has script and style beside it: its rules let no page bring
/// modules of its own.
std::string ServedRecordingPage(const std::string& scene_json,
                                const std::vector<std::string>& frames);

}  // namespace silc
