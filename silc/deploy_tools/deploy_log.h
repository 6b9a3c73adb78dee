// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "silc/deploy/node.h"
#include "silc/deploy_tools/workers.h"

namespace silc {

/// A log of a run on a robot: a folder of chunk_000000.npz, chunk_000001.npz, … Each holds a little
/// less than a second, has checksums, and is written whole or not at all and flushed, then its
/// name: after a power cut everything but the last second is there. docs/deploy.md lists the
/// arrays. `silc observe --states FOLDER` reads it. One thread's.
class DeployLog {
 public:
  /// Makes the folder. Throws ConfigError when it is there already and not an empty folder,
  /// RunError when it cannot be made or written to.
  explicit DeployLog(std::string folder, double chunk_seconds = 0.8);
  ~DeployLog();  ///< takes an empty folder that it made away again
  DeployLog(const DeployLog&) = delete;
  DeployLog& operator=(const DeployLog&) = delete;

  void Add(const TickRecord& record);
  /// A control step. Its row waits for what was observed of it, but not for long: kPatience.
  void Add(const PolicyStep& step);
  /// What was observed of a control step that was added before. One that comes too late is left
  /// out: its row then says NaN.
  void Add(const DeployMoment& moment);
  /// Writes what is left. Throws RunError when a chunk could not be written.
  void Finish();
  const std::string& folder() const { return folder_; }

  static constexpr double kPatience = 0.15;  // [s] with a chunk's length below a second

 private:
  struct Columns;
  // A control step, and what was observed of it if it was seen.
  struct Row {
    PolicyStep step;
    DeployMoment moment;
    bool seen = false;
  };
  void AppendRow(const Row& row);
  void AppendRows(double before_s);
  void WriteChunk();

  std::string folder_;
  double chunk_seconds_;
  bool made_ = false;  // the folder
  int chunks_ = 0;
  std::unique_ptr<Columns> columns_;
  std::deque<Row> rows_;  // control steps that are not in the columns yet, in order
};

}  // namespace silc
