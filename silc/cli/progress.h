// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "silc/observe/run.h"

namespace silc {

/// A line on standard error that shows how far the work is; nothing where that is no terminal, so
/// that logs stay clean. Gone when the object is.
class ProgressLine {
 public:
  explicit ProgressLine(const std::string& what);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  Progress callback();

 private:
  std::string what_;
  bool terminal_;
  int shown_ = -1;  // [%]
};

}  // namespace silc
