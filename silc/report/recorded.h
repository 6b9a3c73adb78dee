// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/eval/experiment.h"
#include "silc/report/paper.h"

namespace silc {

/// A result of a policy that is not in the folder: the same row, trained with another seed.
/// Policies take two megabytes each, their results some fifty kilobytes.
struct RecordedResult {
  RowKey row;
  std::string seed;  // of the training
  ExperimentResult result;
};

/// What `FOLDER/seeds/index.yaml` lists, in its order; nothing where there is no such file.
///
///     - {file: NAME.json, method: silc, mode: compliance, seed: 2}
///
/// NAME.json is what `silc eval … --json NAME.json` writes of one policy; methods without a budget
/// have no mode. A result of another servo than `default_gains`, the robot's default set, is
/// another row. Throws ConfigError for an index that cannot be read or names a policy twice. A
/// NAME.json that is missing or torn, has a metric that the experiment does not declare, or lacks
/// one that the paper has, is left out.
/// @param[out] left_out  a sentence for each of those, beginning with its file
std::vector<RecordedResult> ReadRecorded(const std::string& folder,
                                         const Paper& paper,
                                         const std::string& default_gains,
                                         std::vector<std::string>* left_out);

}  // namespace silc
