// SPDX-License-Identifier: Apache-2.0
#include "silc/base/thread_pool.h"
#include "silc/report/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "silc/base/error.h"
#include "silc/base/shell.h"
#include "silc/base/utf8.h"
#include "silc/cli/number.h"
#include "silc/cli/progress.h"
#include "silc/cli/verbs.h"
#include "silc/eval/experiment.h"

namespace silc {
namespace {

void Run(ReportOptions options) {
  if (options.threads <= 0) options.threads = HardwareThreads();
  options.version = SILC_VERSION;
  // one line that moves in a terminal, replaced by what came of it
  std::optional<ProgressLine> line;
  std::string shown;
  options.progress = [&](const std::string& what, double share) {
    if (what != shown || !line) line.emplace(shown = what);
    line->callback()(share);
  };
  options.say = [&](const std::string& text) {
    line.reset();
    fmt::print("{}\n", Printable(text));
    std::fflush(stdout);
  };
  const ReportOutcome outcome = WriteReport(options);
  line.reset();
  fmt::print("{} results computed, {} from the cache, {} failed\nwrote {}\n",
             outcome.computed,
             outcome.cached,
             outcome.failed,
             Printable(outcome.page));
  // a page that lacks something that was asked for is no success
  if (outcome.left_out.empty() && outcome.failed == 0) return;
  std::fflush(stdout);  // what is missing comes last
  std::string text = "the page is not whole:";
  for (const std::string& one : outcome.left_out) text += "\n  - " + one;
  if (outcome.failed > 0) text += fmt::format("\n  - {} results failed, see above", outcome.failed);
  throw RunError(text);
}

}  // namespace

void AddReport(CLI::App* app) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* verb =
      app->add_subcommand("report", "the paper's tables and figures beside ours, as one HTML page");
  verb->add_option("--policies", options->policies, "folder of ONNX files")->capture_default_str();
  verb->add_option("--out", options->out, "folder for index.html and its cache")
      ->capture_default_str();
  verb->add_flag("--quick", options->quick, "fewer robots and trials: minutes instead of an hour");
  verb->add_flag("--fresh", options->fresh, "compute again what the cache has");
  verb->add_flag("!--no-pictures", options->pictures, "no pictures of the robot");
  verb->add_option("--experiments", options->experiments, "these alone, as in silc eval")
      ->delimiter(',');
  verb->add_option("--seeds", options->seeds, "of the experiments")
      ->delimiter(',')
      ->check(SeedNumber())
      ->capture_default_str();
  verb->add_option("--threads", options->threads = 0, "0: all")->check(WholeIn(0, 1024));
  verb->callback([options] {
    std::vector<std::string> command = {
        "silc", "report", "--policies", options->policies, "--out", options->out};
    if (options->quick) command.emplace_back("--quick");
    if (!options->experiments.empty()) {
      command.emplace_back("--experiments");
      command.push_back(fmt::format("{}", fmt::join(options->experiments, ",")));
    }
    if (options->seeds != ReportOptions().seeds) {
      command.emplace_back("--seeds");
      command.push_back(fmt::format("{}", fmt::join(options->seeds, ",")));
    }
    options->command = ShellCommand(command);
    Run(*options);
  });
}

}  // namespace silc
