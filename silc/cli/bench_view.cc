// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "silc/base/error.h"
#include "silc/cli/number.h"
#include "silc/cli/verbs.h"
#include "silc/view/view_bench.h"
#include "silc/view/viewer.h"

namespace silc {
namespace {

void RunBenchView(const ViewBenchOptions& options) {
  std::vector<std::string> shipped;
  for (const std::string& file : ShippedPolicies(kDefaultRobot)) {
    if (file.ends_with("g1_loco_silc_compliance.onnx") || file.ends_with("g1_loco_baseline.onnx")) {
      shipped.push_back(file);
    }
  }
  if (shipped.size() != 2)
    throw ConfigError("silc bench view: the shipped policies were not found");
  for (const int robots : {1, 2}) {
    ViewBenchOptions now = options;
    now.simulation.policies.assign(shipped.end() - robots, shipped.end());
    fmt::print("{}\n", BenchView(now));
    std::fflush(stdout);
  }
}

}  // namespace

void AddBenchView(CLI::App* bench) {
  auto args = std::make_shared<ViewBenchOptions>();
  CLI::App* verb = bench->add_subcommand(
      "view", "the viewer: real-time factor, latency, the server's share of a core, memory");
  verb->add_option("--seconds", args->seconds, "watched, for one robot and for two [s]")
      ->check(NumberIn(0.1, 3600))
      ->capture_default_str();
  verb->add_option("--spectators", args->spectators, "pages that acknowledge at once")
      ->check(WholeIn(0, 60))
      ->capture_default_str();
  verb->add_option("--soak", args->soak, "frames as fast as a page takes them [s]")
      ->check(NumberIn(0, 86400))
      ->capture_default_str();
  verb->add_option("--browser", args->browser, "a Chromium, as in chromium: state to pixel, too");
  verb->callback([args] { RunBenchView(*args); });
}

}  // namespace silc
