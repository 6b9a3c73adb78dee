// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/task/loco_setup.h"

namespace silc {

/// Robots the physics lost, as lines of JSON appended to a file: seed, state and action replay
/// them.
class DivergedLog {
 public:
  /// @param path  empty: nothing is written
  explicit DivergedLog(std::string path) : path_(std::move(path)) {}
  /// Writes those of the list that came since the last call. Throws RunError when it cannot.
  void Write(const std::vector<DivergedRobot>& lost);

 private:
  std::string path_;
  std::size_t written_ = 0;
};

}  // namespace silc
