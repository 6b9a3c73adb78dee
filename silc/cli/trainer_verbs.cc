// SPDX-License-Identifier: Apache-2.0
// silc-trainer: the verbs themselves.
#include "silc/cli/trainer.h"
#include "silc/cli/verbs.h"

namespace silc {

void AddTrainerVerbs(CLI::App* app, char** /*argv*/) {
  AddTrain(app);
  AddRuns(app);
  AddSweep(app);
  CLI::App* bench = app->get_subcommand("bench");
  AddBenchTrain(bench);
  AddBenchPenalty(bench);
}

}  // namespace silc
