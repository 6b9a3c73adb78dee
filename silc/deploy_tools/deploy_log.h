// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "silc/deploy/node.h"
#include "silc/deploy_tools/workers.h"

namespace silc {

/// A log of a run on a robot: a folder of chunk_000000.npz, chunk_000001.npz, … Each holds about a
/// second, has checksums, and is written whole or not at all and flushed to the disk: after a power
/// cut everything but the last second is there. docs/deploy.md lists the arrays. `silc observe
/// --states FOLDER` reads it.
class DeployLog {
 public:
  /// Makes the folder. Throws ConfigError when it is there already and not empty, RunError when it
  /// cannot be made.
  DeployLog(std::string folder, double chunk_seconds = 1);
  ~DeployLog();
  DeployLog(const DeployLog&) = delete;
  DeployLog& operator=(const DeployLog&) = delete;

  void Add(const TickRecord& record);    ///< the logger thread's
  void Add(const DeployMoment& moment);  ///< the observer thread's
  /// Writes what is left. Throws RunError when a chunk could not be written.
  void Finish();
  const std::string& folder() const { return folder_; }

 private:
  struct Columns;
  void WriteChunk(const Columns& columns);

  std::string folder_;
  double chunk_seconds_;
  int chunks_ = 0;
  std::mutex mutex_;
  std::unique_ptr<Columns> columns_;
};

}  // namespace silc
