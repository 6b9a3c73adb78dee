// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "silc/observe/observation.h"
#include "silc/observe/shake.h"
#include "silc/observe/summary.h"

namespace silc {

/// Everything that was observed as one JSON document, format "silc-observation" version 1: what was
/// watched, a table of units, the summary, every moment with all its matrices (row by row), K(jω)
/// along the sweep, and the shake where there was one. NaN is null, and a status beside it says
/// why.
std::string ObservationJson(const ObservationRun& run,
                            const RunSummary& summary,
                            const std::optional<ShakeResult>& shake);

}  // namespace silc
