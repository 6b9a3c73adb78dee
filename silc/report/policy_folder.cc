// SPDX-License-Identifier: Apache-2.0
#include "silc/report/policy_folder.h"

#include <algorithm>
#include <filesystem>

#include "silc/base/error.h"
#include "silc/config/policy_budget.h"
#include "silc/observe/closed_loop.h"
#include "silc/observe/load_policy.h"
#include "silc/policy/onnx/reader.h"

namespace silc {
namespace {

std::string NumbersAndTerms(const FolderPolicy& policy) {
  return BudgetNumbers(policy.budget.spec) + "; " + BudgetTerms(policy.budget.spec);
}

// Budgets are labelled by their names, and two files may carry different numbers under one name.
// The first file of a row says what the row is judged by; a later one that differs has a fault.
void FaultOtherBudgets(std::vector<FolderPolicy>* policies) {
  for (auto policy = policies->begin(); policy != policies->end(); ++policy) {
    if (!policy->fault.empty()) continue;
    const auto first = std::find_if(policies->begin(), policy, [&](const FolderPolicy& other) {
      return other.fault.empty() && other.row == policy->row;
    });
    if (first == policy ||
        (first->budget.spec == policy->budget.spec && first->command == policy->command)) {
      continue;
    }
    policy->fault = "its budget is not that of " + first->name +
                    ", with which it would share the row " + Name(policy->row) +
                    "\n  here: " + NumbersAndTerms(*policy) +
                    "\n  there: " + NumbersAndTerms(*first) +
                    "\n  Give the budget a name of its own: silc export IN.onnx OUT.onnx --mode "
                    "FILE.yaml names it after its file.";
  }
}

// The servo a policy runs with. One that does not fit the robot says why where it is run.
std::string GainsOfFile(const std::string& path, const RobotModel& robot) {
  try {
    return GainsOf(robot, LoadPolicy(path, "", robot)).name;
  } catch (const ConfigError&) {
    return robot.spec().Gains().name;
  }
}

}  // namespace

std::vector<FolderPolicy> ReadPolicyFolder(const std::string& folder, const RobotModel& robot) {
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

  std::vector<FolderPolicy> policies;
  for (const std::string& path : paths) {
    FolderPolicy policy;
    policy.path = path;
    policy.name = fs::path(path).stem().string();
    try {
      const TrainingNotes notes = TrainingNotesOf(ReadOnnx(path).metadata);
      policy.gains = GainsOfFile(path, robot);
      policy.row = {notes.method,
                    HasBudget(notes.method) ? notes.mode : "",
                    policy.gains == robot.spec().Gains().name ? "" : policy.gains};
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
    policies.push_back(std::move(policy));
  }
  FaultOtherBudgets(&policies);
  return policies;
}

}  // namespace silc
