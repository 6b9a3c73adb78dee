// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/float_kernel_impl.h"

namespace silc {
FloatKernel FloatKernel_avx512() { return avx512::MakeFloatKernel<16, 14>("avx512"); }
}  // namespace silc
