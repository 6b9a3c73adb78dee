// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/lanes.h"
#include "silc/physics/step_model.h"

namespace silc::SILC_KERNEL {

/// (D7) d(x) of a row whose distance beyond its margin is `pos`.
template <class Real, class T>
SILC_HD Real Impedance(const SoftRow<T>& row, Real pos) {
  const Real one(1);
  const Real x = Min(Abs(pos) * Real(row.inv_width), one);
  const Real w = one - x;
  Real xp = x, wp = w;
  for (int k = 1; k < row.power; ++k) {
    xp = xp * x;
    wp = wp * w;
  }
  const Real y = Select(x <= Real(row.mid), Real(row.rise) * xp, one - Real(row.fall) * wp);
  return Real(row.dmin) + y * Real(row.dmax - row.dmin);
}

}  // namespace silc::SILC_KERNEL
