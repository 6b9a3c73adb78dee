// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "silc/observe/observation.h"
#include "silc/observe/shake.h"
#include "silc/observe/summary.h"

namespace silc {

/// Everything that was observed as one JSON document, format "silc-observation" version 3: every
/// moment with all its matrices (row by row), the state of the robot and what the policy saw and
/// said, then what was watched, a table of units, the summary, K(jω) along the sweep, and the shake
/// where there was one. NaN is null, and a status beside it says why.
///
/// Moments are written as they come: an hour of them is 5 GB, which no memory has to hold.
class ObservationJsonWriter {
 public:
  /// `write` gets the document piece by piece.
  explicit ObservationJsonWriter(std::function<void(std::string_view)> write);
  void Add(const Moment& moment);  ///< @pre with its matrices
  void Finish(const ObservationRun& run,
              const RunSummary& summary,
              const std::optional<ShakeResult>& shake);

 private:
  std::function<void(std::string_view)> write_;
  bool first_ = true;
};

/// The whole document of a run that kept all its matrices.
std::string ObservationJson(const ObservationRun& run,
                            const RunSummary& summary,
                            const std::optional<ShakeResult>& shake);

}  // namespace silc
