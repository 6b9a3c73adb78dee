// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/eval/experiment.h"
#include "silc/report/page_plan.h"
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

/// A result of a policy that other people trained and released, and whose file is not in the
/// folder: its licence is theirs, and so is its place.
struct OthersResult {
  std::string name;     // "FALCON": of its row on the page
  std::string source;   // where the file is from: project, file, commit
  std::string licence;  // that it was released under: "MIT"
  std::string command;  // that the result was recorded with
  ExperimentResult result;

  /// Its row. A name is no method, so that no policy of the folder has the same.
  RowKey row() const { return {name, ""}; }
};

/// What `FOLDER/others/index.yaml` lists, in its order; nothing where there is no such file.
///
///     - file: NAME.json
///       name: FALCON
///       source: LeCAR-Lab/FALCON, sim2real/models/falcon/g1_29dof.onnx, commit 25ad085
///       licence: MIT
///       command: silc eval punch --policy falcon.onnx --layout falcon --json NAME.json
///
/// Throws ConfigError for an index that cannot be read, a name that is a method's, and a result
/// that is there twice. A NAME.json that is missing or torn, lacks a metric that the paper has, was
/// not recorded with the command's experiment, or is of an experiment that the page does not show,
/// is left out.
/// @param[out] left_out  a sentence for each of those, beginning with its file
std::vector<OthersResult> ReadOthers(const std::string& folder,
                                     const Paper& paper,
                                     const PagePlan& plan,
                                     std::vector<std::string>* left_out);

}  // namespace silc
