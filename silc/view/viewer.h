// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "silc/view/server.h"
#include "silc/view/simulation.h"

namespace silc {

struct ViewerOptions {
  SimulationOptions simulation;
  ServerOptions server;
  /// Files to look at again when they change, by robot; "" for none. A run that is being trained.
  std::vector<std::string> watched;
};

/// Simulates and serves until asked to stop. `on_notice` gets what there is to say of the policies,
/// sentences for the user; then `on_ready` gets the address, once pages can come.
void RunViewer(const ViewerOptions& options,
               const std::stop_token& stop,
               const std::function<void(const std::string& address)>& on_ready,
               const std::function<void(const std::string& text)>& on_notice);

/// Whether a server could be had with these options: throws ConfigError as ViewServer does. For
/// before work that takes minutes.
void CheckServerOptions(const ServerOptions& options);

/// Serves a page that holds its recording (StatesPage()) until asked to stop.
void ServeRecording(const ServerOptions& options,
                    std::string page,
                    const std::stop_token& stop,
                    const std::function<void(const std::string& address)>& on_ready);

/// The shipped policies of a robot that can be switched to, sorted: policies/<robot>_*.onnx.
std::vector<std::string> ShippedPolicies(const std::string& robot);

/// The two shipped policies that the README compares: silc_compliance, then baseline. `silc view`
/// shows them where no policy is named. Throws ConfigError when they are not found.
std::vector<std::string> ComparedPolicies();

/// A POLICY of the command line: an ONNX file, or the newest policy of a training run's folder. A
/// run that has had no checkpoint yet is without it: WaitForFile(). Throws ConfigError when a
/// folder is no run and holds no policy either.
std::string FindPolicyFile(const std::string& file_or_run);

/// Waits until the file is there. False: asked to stop before.
bool WaitForFile(const std::string& file, const std::stop_token& stop);

}  // namespace silc
