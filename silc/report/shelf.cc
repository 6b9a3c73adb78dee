// SPDX-License-Identifier: Apache-2.0
#include "silc/report/shelf.h"

#include <algorithm>
#include <filesystem>

#include "silc/base/error.h"
#include "silc/config/policy_budget.h"
#include "silc/policy/onnx/reader.h"

namespace silc {

std::vector<ShelfPolicy> ReadShelf(const std::string& folder) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(folder)) {
    throw ConfigError("--policies " + folder +
                      ": no such folder\n  It holds ONNX files that silc train or silc export "
                      "wrote; policies/ ships with silc.");
  }
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".onnx") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());

  std::vector<ShelfPolicy> shelf;
  for (const std::string& path : paths) {
    ShelfPolicy policy;
    policy.path = path;
    policy.name = fs::path(path).stem().string();
    try {
      const TrainingNotes notes = TrainingNotesOf(ReadOnnx(path).metadata);
      policy.row = {notes.method, HasBudget(notes.method) ? notes.mode : ""};
      policy.task = notes.task;
      policy.seed = notes.seed;
      policy.iterations = notes.iterations;
      if (policy.row.method.empty()) {
        policy.fault =
            "the file does not say its method; silc export --note silc_method=METHOD adds it";
      }
      const PolicyBudget budget = BudgetOfPolicy(notes, path);
      policy.budget = budget.budget;
      policy.command = budget.command;
      policy.warning = budget.warning;
    } catch (const ConfigError& error) {
      policy.fault = error.what();
    }
    shelf.push_back(std::move(policy));
  }
  return shelf;
}

}  // namespace silc
