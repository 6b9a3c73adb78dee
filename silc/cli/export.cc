// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "silc/base/error.h"
#include "silc/base/utf8.h"
#include "silc/cli/mode_option.h"
#include "silc/cli/verbs.h"
#include "silc/policy/layout_file.h"
#include "silc/policy/mlp.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/onnx/writer.h"
#include "silc/policy/policy_metadata.h"

namespace silc {
namespace {

struct ExportArguments {
  std::string from, to;
  std::vector<std::string> notes;
  std::optional<std::string> mode;
  bool half = false;
};

// KEY=VALUE into the file's metadata; what describes the network itself is not up for change.
void AddNote(const std::string& note, Metadata* metadata) {
  const auto equals = note.find('=');
  const std::string key = note.substr(0, equals);
  if (equals == std::string::npos || !key.starts_with("silc_")) {
    throw ConfigError("--note " + note +
                      ": must be KEY=VALUE with a key that begins with silc_, as in "
                      "silc_method=baseline");
  }
  if (key == "silc_gravity" || key == "silc_budget") {
    throw ConfigError("--note " + note +
                      ": is part of the budget now; --mode writes it, as in --mode " +
                      kDefaultMode + ",gravity=held");
  }
  (*metadata)[key] = note.substr(equals + 1);
}

// Of a file without a layout it cannot be known: yes.
bool IsToldItsBudget(const OnnxModel& model, const std::string& place) {
  if (!model.metadata.contains("silc")) return true;
  const ObservationLayout layout = ChooseLayout(model.metadata, "", LayoutFolders(), place);
  return std::any_of(layout.terms.begin(), layout.terms.end(), [](const auto& term) {
    return CommandedBy(term.source).has_value();
  });
}

void Export(const ExportArguments& args) {
  OnnxModel model = ReadOnnx(args.from);
  const auto network = RecogniseMlp(*model.graph, 0, 0);
  if (!network) {
    throw ConfigError(
        args.from +
        ": is no plain MLP (a normaliser, then actors side by side), which is what can "
        "be written again");
  }
  if (args.mode) {
    const UserBudget chosen = ReadBudget(*args.mode);
    if (chosen.spec.IsCommanded() && !IsToldItsBudget(model, args.from)) {
      throw ConfigError(fmt::format(
          "--mode {}: gives ranges, for a policy that is told its budget, and {} is told nothing",
          *args.mode,
          args.from));
    }
    TrainingNotes budget;
    PutBudget(chosen, &budget);
    WriteNotes(budget, &model.metadata);
  }
  // after the mode: a label of one's own may take its name's place
  for (const std::string& note : args.notes) AddNote(note, &model.metadata);
  // a budget that cannot be read is told before there is a file that carries it
  const TrainingNotes notes = TrainingNotesOf(model.metadata);
  std::optional<UserBudget> budget;
  if (!notes.budget.empty()) budget = BudgetOfPolicy(notes, args.from).budget;
  // where it was made is nobody's business but its maker's
  if (const auto at = model.metadata.find("run_path"); at != model.metadata.end())
    at->second = std::filesystem::path(at->second).filename().string();
  try {
    WriteOnnx(args.to,
              *network,
              "obs",
              "actions",
              model.metadata,
              args.half ? OnnxWeights::kHalf : OnnxWeights::kFloat);
  } catch (const ConfigError& error) {
    throw ConfigError(args.from + (args.half ? ": --half: " : ": ") + error.what());
  }
  fmt::print("wrote {}: {} inputs, {} outputs, {:.2f} MB\n",
             Printable(args.to),
             network->inputs,
             network->outputs(),
             static_cast<double>(std::filesystem::file_size(args.to)) / 1e6);
  if (budget) {
    fmt::print("budget {}: {}; {}\n",
               Printable(budget->name),
               BudgetNumbers(budget->spec),
               BudgetTerms(budget->spec));
  } else if (!notes.mode.empty()) {
    fmt::print(stderr,
               "silc: {}: carries the name of its budget, {}, but not its numbers; --mode writes "
               "them\n",
               Printable(args.to),
               Printable(notes.mode));
  }
}

}  // namespace

void AddExport(CLI::App* app) {
  auto args = std::make_shared<ExportArguments>();
  CLI::App* verb =
      app->add_subcommand("export", "a policy written again, for a robot or a repository");
  verb->add_option("POLICY", args->from, "ONNX file")->required();
  verb->add_option("OUT", args->to, "ONNX file to write; the metadata goes with it")->required();
  verb->add_option("--note",
                   args->notes,
                   "KEY=VALUE into its metadata: silc_task, silc_method, silc_mode, silc_bound, "
                   "silc_noise, silc_seed, silc_iterations; may be repeated");
  AddModeOption(verb,
                &args->mode,
                "budget to judge it by, written into the file with its numbers",
                "the one inside it");
  verb->add_flag("--half", args->half, "weights in float16 behind a Cast: half the file");
  verb->callback([args] { Export(*args); });
}

}  // namespace silc
