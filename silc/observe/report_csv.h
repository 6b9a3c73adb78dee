// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "silc/observe/observation.h"

namespace silc {

/// One row per moment, one header line with units in the names: time, contact, σ, points per axis,
/// the diagonals of K₁ and K_s per joint. For spreadsheets and pandas; the JSON has the matrices.
std::string ObservationCsv(const ObservationRun& run);

}  // namespace silc
