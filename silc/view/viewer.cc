// SPDX-License-Identifier: Apache-2.0
#include "silc/view/viewer.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "silc/base/data_folder.h"
#include "silc/base/error.h"

namespace silc {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kLookAgain{250};

// When a file was last written; nothing for "" and for what is not there.
std::optional<fs::file_time_type> TimeOf(const std::string& file) {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(file, error);
  return error ? std::nullopt : std::optional(time);
}

// Whether a stop was asked for; waits so long for it.
bool WaitsUntilStop(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any never;
  never.wait_for(lock, stop, time, [] { return false; });
  return stop.stop_requested();
}

}  // namespace

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

std::vector<std::string> ComparedPolicies() {
  const std::vector<std::string> shipped = ShippedPolicies(kDefaultRobot);
  std::vector<std::string> compared;
  for (const char* name : {"g1_loco_silc_compliance.onnx", "g1_loco_baseline.onnx"}) {
    const auto file = std::ranges::find_if(
        shipped, [&](const std::string& path) { return fs::path(path).filename() == name; });
    if (file == shipped.end()) {
      throw ConfigError(std::string("the shipped policy ") + name + " was not found");
    }
    compared.push_back(*file);
  }
  return compared;
}

std::string FindPolicyFile(const std::string& file_or_run) {
  if (!fs::is_directory(file_or_run)) return file_or_run;
  const fs::path folder = file_or_run, policy = folder / "policy.onnx";
  // `silc train` writes config.yaml first
  if (!fs::exists(policy) && !fs::exists(folder / "config.yaml")) {
    throw ConfigError(file_or_run +
                      ": is no run of silc train: it holds no policy.onnx and no config.yaml");
  }
  return policy.string();
}

bool WaitForFile(const std::string& file, const std::stop_token& stop) {
  while (!fs::exists(file)) {
    if (WaitsUntilStop(stop, kLookAgain)) return false;
  }
  return true;
}

void RunViewer(const ViewerOptions& options,
               const std::stop_token& stop,
               const std::function<void(const std::string& address)>& on_ready,
               const std::function<void(const std::string& text)>& on_notice) {
  LiveSimulation simulation(options.simulation);
  for (const std::string& text : simulation.TakeNotices()) on_notice(text);
  ServerSource source;
  source.scene_json = simulation.scene_json();
  source.limits = simulation.limits();
  source.apply = [&](const Input& input) { simulation.Apply(input); };
  source.recording = [&](int robot) { return simulation.Recording(robot); };
  ViewServer server(options.server, std::move(source));
  on_ready(server.address());

  // a run that is being trained writes its policy anew at every checkpoint
  const std::jthread watcher([&](const std::stop_token& ended) {
    std::vector<std::optional<fs::file_time_type>> seen;
    for (const std::string& file : options.watched) seen.push_back(TimeOf(file));
    while (!ended.stop_requested() && !stop.stop_requested()) {
      std::this_thread::sleep_for(kLookAgain);
      for (std::size_t i = 0; i < options.watched.size(); ++i) {
        const std::optional<fs::file_time_type> time = TimeOf(options.watched[i]);
        if (!time || time == seen[i]) continue;
        seen[i] = time;
        simulation.ReloadPolicy(static_cast<int>(i));
        server.Notice("a newer policy: " + options.watched[i]);
      }
    }
  });
  simulation.Run(
      stop,
      [&](std::shared_ptr<const std::string> frame) { server.Publish(std::move(frame)); },
      [&](const std::string& text) { server.Notice(text); });
}

void CheckServerOptions(const ServerOptions& options) {
  ServerSource source;
  source.recording_page = "not yet\n";  // no page gets a socket from it
  const ViewServer server(options, std::move(source));
}

void ServeRecording(const ServerOptions& options,
                    std::string page,
                    const std::stop_token& stop,
                    const std::function<void(const std::string& address)>& on_ready) {
  ServerSource source;
  source.recording_page = std::move(page);
  const ViewServer server(options, std::move(source));
  on_ready(server.address());
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any never;
  never.wait(lock, stop, [] { return false; });
}

}  // namespace silc
