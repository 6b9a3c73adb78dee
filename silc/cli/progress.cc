// SPDX-License-Identifier: Apache-2.0
#include "silc/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "silc/base/utf8.h"

namespace silc {

ProgressLine::ProgressLine(const std::string& what)
    : what_(Printable(what)), terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (terminal_ && shown_ >= 0) fmt::print(stderr, "\r\033[K");
}

Progress ProgressLine::callback() {
  return [this](double share) {
    const int percent = static_cast<int>(100 * share);
    if (!terminal_ || percent == shown_) return;
    shown_ = percent;
    fmt::print(stderr, "\r{} {:3d} %", what_, percent);
    std::fflush(stderr);
  };
}

}  // namespace silc
