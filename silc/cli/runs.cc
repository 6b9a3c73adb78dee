// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "silc/base/table.h"
#include "silc/base/utf8.h"
#include "silc/cli/trainer.h"
#include "silc/cli/verbs.h"
#include "silc/train/train_run.h"

namespace silc {
namespace {

void Runs(const std::string& folder) {
  Table table({{"run", "", Align::kToLeft},
               {"task", "", Align::kToLeft},
               {"method", "", Align::kToLeft},
               {"budget", "", Align::kToLeft},
               {"iterations"},
               {"of"},
               {"reward"},
               {"state", "", Align::kToLeft}});
  const std::vector<RunInfo> runs = ListRuns(folder);
  for (const RunInfo& run : runs) {
    table.Row({run.folder,
               run.task,
               run.method,
               run.mode.empty() ? "–" : run.mode,
               std::to_string(run.iteration),
               std::to_string(run.iterations),
               FormatNumber(run.reward),
               run.state});
  }
  if (runs.empty()) {
    fmt::print("no runs in {}\n", Printable(folder));
  } else {
    fmt::print("{}", Printable(table.Render()));
  }
}

}  // namespace

void AddRuns(CLI::App* app) {
  auto folder = std::make_shared<std::string>("runs");
  CLI::App* verb = app->add_subcommand("runs", kRunsHelp);
  verb->add_option("folder", *folder, "a run, or a folder of runs")->capture_default_str();
  verb->callback([folder] { Runs(*folder); });
}

}  // namespace silc
