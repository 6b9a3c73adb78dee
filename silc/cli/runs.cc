// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "silc/base/table.h"
#include "silc/cli/verbs.h"
#include "silc/train/run_folder.h"

namespace silc {

void AddRuns(CLI::App* app) {
  auto folder = std::make_shared<std::string>("runs");
  CLI::App* verb = app->add_subcommand("runs", "list trainings");
  verb->add_option("folder", *folder, "where they are")->capture_default_str();
  verb->callback([folder] {
    const std::vector<RunInfo> runs = ListRuns(*folder);
    if (runs.empty()) {
      fmt::print("no runs in {}\n", *folder);
      return;
    }
    Table table({{"run", "", Align::kToLeft},
                 {"task", "", Align::kToLeft},
                 {"method", "", Align::kToLeft},
                 {"budget", "", Align::kToLeft},
                 {"iterations", ""},
                 {"reward", ""},
                 {"state", "", Align::kToLeft}});
    for (const RunInfo& run : runs) {
      table.Row({run.name,
                 run.task,
                 run.method,
                 run.mode,
                 fmt::format("{}/{}", run.done, run.iterations),
                 run.reward ? FormatNumber(*run.reward) : "–",
                 run.state});
    }
    fmt::print("{}", table.Render());
  });
}

}  // namespace silc
