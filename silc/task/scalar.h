// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "silc/base/host_device.h"

namespace silc {

// Compiled in place; fminf and fmaxf are calls into the library, a tenth of the task's time.
SILC_HD float Min(float a, float b) { return a < b ? a : b; }
SILC_HD float Max(float a, float b) { return a > b ? a : b; }
SILC_HD float Clamp(float x, float low, float high) { return Min(Max(x, low), high); }

/// To [−π, π).
SILC_HD float WrapAngle(float a) {
  constexpr float kTwoPi = 6.283185307179586f;
  return a - kTwoPi * floorf((a + 0.5f * kTwoPi) / kTwoPi);
}

}  // namespace silc
