// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/observe/observation.h"

namespace silc {

/// One row per moment, one header line with units in the names: time, contact, σ, points per axis,
/// the diagonals of K₁ and K_s per joint. For spreadsheets and pandas; the JSON has the matrices.
std::string ObservationCsv(const ObservationRun& run);

/// The same, row by row, for runs that are longer than the memory.
std::string CsvHeader(const std::vector<std::string>& joints);
std::string CsvRow(const Moment& moment);

}  // namespace silc
