// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "silc/observe/observation.h"
#include "silc/observe/shake.h"
#include "silc/observe/summary.h"

namespace silc {

/// What a person reads in the terminal after `silc observe`: what was watched, joints, points,
/// budget.
std::string ObservationText(const ObservationRun& run, const RunSummary& summary);

/// Model against measurement after `silc observe --shake`.
std::string ShakeText(const ShakeResult& result);

}  // namespace silc
