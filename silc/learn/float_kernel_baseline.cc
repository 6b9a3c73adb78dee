// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/float_kernel_impl.h"

namespace silc {
FloatKernel FloatKernel_baseline() { return baseline::MakeFloatKernel<4, 4>("baseline"); }
}  // namespace silc
