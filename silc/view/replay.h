// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "silc/view/protocol.h"
#include "silc/view/simulation.h"

namespace silc {

/// A recording as the page plays it.
struct ReplayedStates {
  std::string scene_json;
  std::vector<StateFrame> frames;  // one a control period
  std::string end;                 // why it ended before the recording did; "": it did not
};

/// Shows recorded states, an .npz of qpos and qvel or the log folder of `silc deploy`, with the
/// stiffness that the policy made there: what `silc observe --states` judges, as frames of the
/// viewer. A log does not know where the robot was: the base stays over one place, at the height at
/// which its lower foot stands on the floor. `options.policies` has one file. `progress` gets the
/// share that is done. Throws ConfigError as ObserveStates() does.
ReplayedStates ReplayForView(const SimulationOptions& options,
                             const std::string& states,
                             const std::function<void(double)>& progress = {});

/// The same as an HTML page that plays it, 25 pictures a second. `served`: for a ViewServer;
/// otherwise one file that needs nothing beside it.
std::string StatesPage(const SimulationOptions& options,
                       const std::string& states,
                       bool served,
                       const std::function<void(double)>& progress = {});

}  // namespace silc
