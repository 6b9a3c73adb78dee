// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/load_step.h"

#include <cmath>

#include "silc/base/check.h"
#include "silc/eval/metrics.h"

namespace silc {

LoadStep ReadLoadStep(std::span<const double> time,
                      std::span<const double> moved,
                      std::size_t window,
                      double force,
                      bool stepped) {
  SILC_CHECK(window > 0 && window <= moved.size() && time.size() == moved.size());
  const std::span<const double> last = moved.last(window);
  double mean = 0;
  for (const double x : last) mean += x / static_cast<double>(window);
  LoadStep step;
  step.sway = PeakToPeak(last);
  if (stepped || step.sway > std::abs(mean)) return step;
  step.stiffness = force / mean;
  for (std::size_t k = 0; k < moved.size(); ++k) {
    if (moved[k] / mean < 0.9) continue;
    step.response = time[k];
    break;
  }
  return step;
}

}  // namespace silc
