// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/config/budget_file.h"
#include "silc/report/paper.h"

namespace silc {

/// A policy file and what it says of its training (metadata_props silc_method, silc_mode, …).
struct ShelfPolicy {
  std::string path;              // as a user would type it
  std::string name;              // of the file, without its extension
  RowKey row;                    // mode is "" for methods that have no budget
  std::string task;              // "g1-loco"; "" where the file does not say
  std::string seed, iterations;  // of the training; "" where the file does not say
  UserBudget budget;             // it is held against: the one inside it, else the default
  BudgetCommand command;         // the ranges of a commanded policy; none: it is told nothing
  std::string warning;           // about its budget; "" when there is nothing to say
  std::string fault;             // why it cannot be used; "" when it can
};

/// Every *.onnx of a folder, by name. A file that cannot be read, or does not say its method, is on
/// the shelf with its fault: one bad file spoils no report. Throws ConfigError when there is no
/// such folder.
std::vector<ShelfPolicy> ReadShelf(const std::string& folder);

}  // namespace silc
