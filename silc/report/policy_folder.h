// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/config/budget_file.h"
#include "silc/report/paper.h"
#include "silc/robot/robot_model.h"

namespace silc {

/// A policy file and what it says of its training (metadata_props silc_method, silc_mode, …).
struct FolderPolicy {
  std::string path;              // as a user would type it
  std::string name;              // of the file, without its extension
  RowKey row;                    // mode is "" for methods that have no budget
  std::string gains;             // of its servo: a set of the robot's, or "own"
  std::string task;              // "g1-loco"; "" where the file does not say
  std::string seed, iterations;  // of the training; "" where the file does not say
  UserBudget budget;             // it is held against: the one inside it, else the default
  BudgetCommand command;         // the ranges of a commanded policy; none: it is told nothing
  std::string warning;           // about its budget; "" when there is nothing to say
  std::string fault;             // why it is left out; "" when it is not
};

/// Every *.onnx of a folder, by name. A file that cannot be used is listed with its fault, so that
/// one bad file spoils no report: a file that cannot be read, does not say its method, or carries
/// another budget than the first file of its row. A row's number is the mean over its files, and a
/// mean over different budgets would say nothing. Throws ConfigError when there is no such folder.
std::vector<FolderPolicy> ReadPolicyFolder(const std::string& folder, const RobotModel& robot);

}  // namespace silc
