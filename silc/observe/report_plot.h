// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "silc/observe/observation.h"

namespace silc {

/// One SVG page: stiffness at the points and σ over time against the budget with the contact modes
/// behind them, K(jω) of the joints, and stiffness ellipses of centre of mass and hands. A run of
/// one moment leaves the time panels out.
std::string ObservationSvg(const ObservationRun& run);

}  // namespace silc
