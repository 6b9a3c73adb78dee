// SPDX-License-Identifier: Apache-2.0
// The verbs of a build without LibTorch: they say what is missing.
#include "silc/base/error.h"
#include "silc/cli/verbs.h"

namespace silc {
namespace {

void AddMissing(CLI::App* app, const char* name) {
  CLI::App* verb = app->add_subcommand(name, "(not in this build: needs LibTorch)");
  verb->allow_extras();
  verb->callback([name] {
    throw ConfigError(std::string(name) +
                      ": this build has no trainer; install libtorch-dev and libopenblas0-pthread, "
                      "or point CMAKE_PREFIX_PATH at a LibTorch, and configure again");
  });
}

}  // namespace

void AddTrain(CLI::App* app) { AddMissing(app, "train"); }
void AddRuns(CLI::App* app) { AddMissing(app, "runs"); }
void AddBenchTrain(CLI::App* bench) { AddMissing(bench, "train"); }
void AddBenchPenalty(CLI::App* bench) { AddMissing(bench, "penalty"); }

}  // namespace silc
