// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/base/host_device.h"

namespace silc {

/// Where a field of a batch lies: value i of robot `env` is
///
///     data[(env / lanes) · group_stride + i · lanes + env % lanes]
///
/// One formula for robots one after the other (lanes = 1), side by side in SIMD groups (lanes is a
/// power of two), and interleaved on a GPU (lanes = all of them). Valid as long as the batch.
struct FieldView {
  float* data;
  int lanes;
  long group_stride;
  int width;       // numbers per robot
  bool on_device;  // GPU memory: not to be touched by the CPU

  SILC_HD float& operator()(int env, int i) const {
#ifdef __CUDA_ARCH__
    return data[static_cast<long>(i) * lanes + env];  // one group: no division
#else
    // a division for each of the hundreds of numbers that a control step looks at would be felt
    const int shift = __builtin_ctz(static_cast<unsigned>(lanes));
    return data[(env >> shift) * group_stride + (static_cast<long>(i) << shift) +
                (env & (lanes - 1))];
#endif
  }
};

}  // namespace silc
