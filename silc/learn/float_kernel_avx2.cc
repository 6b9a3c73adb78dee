// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/float_kernel_impl.h"

namespace silc {
FloatKernel FloatKernel_avx2() { return avx2::MakeFloatKernel<8, 6>("avx2"); }
}  // namespace silc
