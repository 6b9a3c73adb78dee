// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "silc/cli/number.h"
#include "silc/cli/verbs.h"
#include "silc/view/view_bench.h"
#include "silc/view/viewer.h"

namespace silc {
namespace {

void RunBenchView(const ViewBenchOptions& options) {
  const std::vector<std::string> compared = ComparedPolicies();
  for (const int robots : {1, 2}) {
    ViewBenchOptions now = options;
    now.simulation.policies.assign(compared.begin(), compared.begin() + robots);
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
  verb->add_option("--soak",
                   args->soak,
                   "as many frames as there are in this time, 4000 at least; 0: none [s]")
      ->check(NumberIn(0, 86400))
      ->capture_default_str();
  verb->add_option("--browser", args->browser, "a Chromium, as in chromium: state to pixel, too");
  verb->callback([args] { RunBenchView(*args); });
}

}  // namespace silc
