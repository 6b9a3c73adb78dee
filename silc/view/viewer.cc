// SPDX-License-Identifier: Apache-2.0
#include "silc/view/viewer.h"

#include <algorithm>
#include <filesystem>

#include "silc/base/data_folder.h"
#include "silc/base/error.h"

namespace silc {
namespace fs = std::filesystem;

std::vector<std::string> ShippedPolicies(const std::string& robot) {
  std::vector<std::string> files;
  for (const std::string& folder : DataFolders("policies")) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(robot + "_") && name.ends_with(".onnx")) {
        files.push_back(entry.path().string());
      }
    }
    if (!files.empty()) break;
  }
  std::ranges::sort(files);
  return files;
}

std::string FindPolicyFile(const std::string& file_or_run) {
  if (!fs::is_directory(file_or_run)) return file_or_run;
  const fs::path policy = fs::path(file_or_run) / "policy.onnx";
  if (!fs::exists(policy)) {
    throw ConfigError(file_or_run + ": holds no policy.onnx; a run writes it at its checkpoints");
  }
  return policy.string();
}

void RunViewer(const ViewerOptions& options,
               const std::stop_token& stop,
               const std::function<void(const std::string& address)>& on_ready) {
  LiveSimulation simulation(options.simulation);
  ServerSource source;
  source.scene_json = simulation.scene_json();
  source.limits = simulation.limits();
  source.apply = [&](const Input& input) { simulation.Apply(input); };
  source.recording = [&](int robot) { return simulation.Recording(robot); };
  ViewServer server(options.server, std::move(source));
  on_ready(server.address());
  simulation.Run(
      stop,
      [&](std::shared_ptr<const std::string> frame) { server.Publish(std::move(frame)); },
      [&](const std::string& text) { server.Notice(text); });
}

}  // namespace silc
