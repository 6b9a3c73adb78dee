// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "silc/learn/event_file.h"

namespace silc {

/// One iteration in numbers; NaN where there is none.
struct IterationReport {
  int iteration = 0;   // counted from 1, finished ones
  int iterations = 0;  // asked for
  double steps_per_s = 0;
  Scalars scalars;  // by name, "train/kl"; written to every log
};

/// One line of JSON. Numbers that are not finite become null, which JSON has.
std::string MetricsLine(const IterationReport& report, double wall_s);

/// What people watch, out of all that is logged: a panel of a few lines for a terminal of
/// `columns`, at most 100 wide; or one line without a terminal, at most 160.
std::string PanelText(const IterationReport& report, double eta_s, int columns = 100);
std::string PlainLine(const IterationReport& report, double eta_s);

/// metrics.jsonl and TensorBoard's file in a folder, and what the user watches.
class TrainLog {
 public:
  /// @param folder  of the run; empty: nothing is written
  /// @param out     terminal or file, or null; a terminal gets a panel drawn over itself
  /// @param line_every_s  [s] between lines without a terminal, at least; the last always comes
  /// @param stop    once it is set, somebody has said so on the terminal: the last panel goes below
  TrainLog(const std::string& folder,
           std::FILE* out,
           double line_every_s = 0,
           const std::atomic<bool>* stop = nullptr);
  ~TrainLog();
  void Write(const IterationReport& report);
  /// A line of its own, not drawn over.
  void Say(const std::string& text);

 private:
  // A terminal that is gone, a pipe nobody reads: no reason to end a training. Nothing more is
  // said.
  void Print(const std::string& text);

  std::string folder_;
  std::FILE* out_;
  double line_every_s_;
  double last_line_s_ = -1e9;  // [s] since start_
  const std::atomic<bool>* stop_;
  bool terminal_;
  int drawn_lines_ = 0;
  std::unique_ptr<EventFile> events_;
  std::chrono::steady_clock::time_point start_;
  int first_iteration_ = -1;
};

}  // namespace silc
