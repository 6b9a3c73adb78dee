// SPDX-License-Identifier: Apache-2.0
#include "silc/view/view_bench.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "silc/base/error.h"
#include "silc/view/client.h"
#include "silc/view/server.h"

namespace silc {
namespace {

using BenchClock = std::chrono::steady_clock;

double SecondsSince(BenchClock::time_point begin) {
  return std::chrono::duration<double>(BenchClock::now() - begin).count();
}

// A page that answers every frame at once, until it is told to stop.
void Spectate(int port, const std::stop_token& stop, std::atomic<std::uint64_t>* frames) {
  PageClient page(port);
  while (!stop.stop_requested()) {
    const auto message = page.Read(2);
    if (!message) return;
    if (!message->binary) continue;
    const std::optional<StateFrame> frame = DecodeState(message->bytes);
    if (!frame) return;
    page.Send(EncodeInput({InputType::kAck, 0, frame->sequence, {}}));
    ++*frames;
  }
}

ServerSource SourceOf(LiveSimulation* simulation) {
  ServerSource source;
  source.scene_json = simulation->scene_json();
  source.limits = simulation->limits();
  source.apply = [simulation](const Input& input) { simulation->Apply(input); };
  source.recording = [simulation](int robot) { return simulation->Recording(robot); };
  return source;
}

ServerOptions AnyPort() {
  ServerOptions options;
  options.port = 0;
  return options;
}

// [byte] the heap in use, by all threads
double HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

// The simulation, its recorder and its observer, as fast as they go, and a page that takes every
// frame: how many, and by how much the heap grew after the first ones.
nlohmann::json Soak(LiveSimulation* simulation, double seconds) {
  ServerOptions options = AnyPort();
  options.input_rate = 1e9;
  ViewServer server(options, SourceOf(simulation));
  PageClient page(server.port());
  std::uint64_t frames = 0;
  const auto step = [&] {
    const StateFrame frame = simulation->Step();
    simulation->TakeNotices();
    server.Publish(std::make_shared<const std::string>(EncodeState(frame)));
    std::optional<PageClient::Message> message;
    do message = page.Read(2);
    while (message && !message->binary);
    if (!message) throw RunError("silc bench view: the page was closed");
    ++frames;
    page.Send(EncodeInput({InputType::kAck, 0, frame.sequence, {}}));
  };
  // an observation under way has 16 MB of its own: the least of many frames is between two of them
  const auto quiet_heap = [&] {
    double least = HeapBytes();
    for (int i = 0; i < 200; ++i) {
      step();
      least = std::min(least, HeapBytes());
    }
    return least;
  };
  const BenchClock::time_point begin = BenchClock::now();
  while (frames < kSoakWarmUp) step();
  const double before = quiet_heap();
  const std::uint64_t first = frames;
  while (SecondsSince(begin) < seconds || frames < first + kSoakLeast) step();
  const double growth = quiet_heap() - before;
  const std::uint64_t measured = frames - first;
  return {{"frames", frames},
          {"frames_measured", measured},
          {"observations", simulation->observations()},
          {"heap_growth_bytes", growth},
          {"heap_growth_24_h_mb", GrowthIn24Hours(growth, measured)}};
}

// A headless browser on the viewer's page, in a folder of its own; it ends with this object.
class Browser {
 public:
  Browser(const std::string& program, int port)
      : folder_(std::filesystem::temp_directory_path() /
                ("silc_bench_" + std::to_string(getpid()))) {
    std::vector<std::string> words = {program,
                                      "--headless",
                                      "--no-sandbox",
                                      "--no-first-run",
                                      "--window-size=1280,800",
                                      "--user-data-dir=" + folder_.string(),
                                      "http://127.0.0.1:" + std::to_string(port) + "/#measure"};
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
      posix_spawn_file_actions_addopen(&quiet, stream, "/dev/null", O_WRONLY, 0);
    }
    posix_spawnattr_t group;  // of its own, so that its children end with it
    posix_spawnattr_init(&group);
    posix_spawnattr_setflags(&group, POSIX_SPAWN_SETPGROUP);
    const int error =
        posix_spawnp(&process_, program.c_str(), &quiet, &group, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&quiet);
    posix_spawnattr_destroy(&group);
    if (error != 0) {
      throw RunError(fmt::format("silc bench view: {}: {}", program, std::strerror(error)));
    }
  }
  ~Browser() {
    kill(-process_, SIGTERM);
    waitpid(process_, nullptr, 0);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

 private:
  std::filesystem::path folder_;
  pid_t process_ = -1;
};

// What a browser makes of it: from a state to the picture that shows it, by the browser's own time
// stamp of that picture, and pictures a second.
nlohmann::json WatchInBrowser(const ViewBenchOptions& options, ViewServer* server) {
  const Browser browser(options.browser, server->port());
  const BenchClock::time_point asked = BenchClock::now();
  while (server->Stats().pages == 0) {
    if (SecondsSince(asked) > 60) {
      throw RunError("silc bench view: " + options.browser + " opened no page within 60 s");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  std::this_thread::sleep_for(std::chrono::seconds(5));  // the first pictures compile shaders
  server->Stats();
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  const LatencyStats shown = server->Stats().shown;
  if (shown.count == 0) {
    throw RunError("silc bench view: " + options.browser +
                   " told of no picture; it has to know Element Timing, as Chromium does");
  }
  return {{"state_to_pixel_mean_ms", 1e3 * shown.mean},
          {"state_to_pixel_max_ms", 1e3 * shown.max},
          {"pictures_per_s", static_cast<double>(shown.count) / options.seconds}};
}

}  // namespace

double GrowthIn24Hours(double grown, std::uint64_t frames) {
  return grown / static_cast<double>(frames) * 50 * 86400 / 1e6;
}

std::string BenchView(const ViewBenchOptions& options) {
  LiveSimulation simulation(options.simulation);
  nlohmann::json result = {{"bench", "view"}, {"robots", simulation.num_robots()}};
  if (options.soak > 0) result["soak"] = Soak(&simulation, options.soak);

  ViewServer server(AnyPort(), SourceOf(&simulation));
  std::atomic<std::uint64_t> frames = 0;
  std::atomic<std::uint64_t> steps = 0;
  std::jthread runner([&](const std::stop_token& stop) {
    simulation.Run(
        stop,
        [&](std::shared_ptr<const std::string> frame) {
          ++steps;
          server.Publish(std::move(frame));
        },
        [](const std::string&) {});
  });
  std::vector<std::jthread> pages;
  for (int i = 0; i < options.spectators; ++i) {
    pages.emplace_back(
        [&](const std::stop_token& stop) { Spectate(server.port(), stop, &frames); });
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));  // everybody has come
  const ServerStats start = server.Stats();
  const std::uint64_t observed = simulation.observations(), seen = frames, stepped = steps;
  const BenchClock::time_point begin = BenchClock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  const double elapsed = SecondsSince(begin);
  const double simulated = static_cast<double>(steps - stepped) * simulation.period();
  const ServerStats end = server.Stats();
  result["pages"] = end.pages;
  result["simulated_s"] = simulated;
  result["elapsed_s"] = elapsed;
  result["real_time_factor"] = simulated / elapsed;
  result["observations_per_s"] =
      static_cast<double>(simulation.observations() - observed) / elapsed;
  result["frames_per_s_and_page"] =
      static_cast<double>(frames - seen) / elapsed / std::max(1, options.spectators);
  result["latency_mean_ms"] = 1e3 * end.acknowledged.mean;
  result["latency_max_ms"] = 1e3 * end.acknowledged.max;
  result["server_core_share"] = (end.cpu_time - start.cpu_time) / elapsed;
  for (std::jthread& page : pages) page.request_stop();
  pages.clear();
  if (!options.browser.empty()) result["browser"] = WatchInBrowser(options, &server);
  runner.request_stop();
  runner.join();
  return result.dump();
}

}  // namespace silc
