// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "silc/base/nan.h"

namespace silc {

/// What the displacement under a load that came at once says, all from the last samples. A point
/// that moves about by more than it gave way has no static stiffness, and no time to it either.
struct LoadStep {
  double stiffness = kNan;  // [N/m]
  double response = kNan;   // [s] to 90 % of the final displacement
  double sway = kNan;       // [m] P95−P5: how far it is from resting
};

/// @param time, moved  [s], [m] since the load came; as many of each
/// @param window       samples at the end that count as final
/// @param force        [N] the load, with its sign
/// @param stepped      a contact changed meanwhile: nothing rests, either
/// @pre 0 < window ≤ moved.size()
LoadStep ReadLoadStep(std::span<const double> time,
                      std::span<const double> moved,
                      std::size_t window,
                      double force,
                      bool stepped);

}  // namespace silc
