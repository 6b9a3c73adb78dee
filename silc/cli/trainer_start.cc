// SPDX-License-Identifier: Apache-2.0
// silc: the trainer's verbs become silc-trainer.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "silc/base/error.h"
#include "silc/cli/trainer.h"

namespace silc {
namespace {

[[noreturn]] void StartTrainer(char** argv) {
  std::error_code code;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) throw RunError("/proc/self/exe: " + code.message() + "; run silc-trainer instead");
  const std::string trainer = (here.parent_path() / "silc-trainer").string();
  ::execv(trainer.c_str(), argv);
  const bool missing = errno == ENOENT;
  throw RunError(trainer + ": " + std::strerror(errno) +
                 "; training is a program of its own that lies beside silc" +
                 (missing ? "\n  ./dev build builds both; the trainer alone: ./dev build release "
                            "--target silc-trainer"
                          : ""));
}

void AddStart(CLI::App* app, const char* verb, const char* help, char** argv) {
  CLI::App* start = app->add_subcommand(verb, help);
  start->set_help_flag();  // --help is the trainer's to answer
  start->prefix_command();
  start->callback([argv] { StartTrainer(argv); });
}

}  // namespace

void AddTrainerVerbs(CLI::App* app, char** argv) {
  AddStart(app, "train", kTrainHelp, argv);
  AddStart(app, "runs", kRunsHelp, argv);
  AddStart(app, "sweep", kSweepHelp, argv);
  CLI::App* bench = app->get_subcommand("bench");
  AddStart(bench, "train", kBenchTrainHelp, argv);
  AddStart(bench, "penalty", kBenchPenaltyHelp, argv);
}

}  // namespace silc
