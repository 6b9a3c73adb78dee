// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace silc {

struct ReportOptions {
  std::string policies = "policies";  // folder of ONNX files
  std::string out = "out/report";     // index.html and cache/ go here
  bool quick = false;                 // fewer robots and trials: minutes on two cores
  bool fresh = false;                 // compute again what the cache has
  bool pictures = true;
  std::vector<std::string> experiments;  // empty: those of the page
  std::vector<std::uint64_t> seeds = {1};
  int threads = 1;
  std::string version;  // of silc; a part of every name in the cache
  std::string command;  // as typed, for the page

  /// A line for the reader; may be empty.
  std::function<void(const std::string& line)> say;
  /// How far the present step is, in [0, 1]; may be empty.
  std::function<void(const std::string& what, double share)> progress;
};

struct ReportOutcome {
  std::string page;  // path of index.html
  int computed = 0, cached = 0, failed = 0;
  std::vector<std::string> left_out;  // policies and recorded results, each with its reason
};

/// Runs what the cache does not have, policy by policy, each result written as soon as it is there,
/// then writes the page. A file or an experiment that fails is named in the page and spoils nothing
/// else. Throws ConfigError for a wrong folder or experiment, RunError when nothing can be written.
ReportOutcome WriteReport(const ReportOptions& options);

}  // namespace silc
