// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/group_kernel_impl.h"

namespace silc {
GroupKernel Kernel_avx512() { return avx512::MakeGroupKernel<16>("avx512"); }
}  // namespace silc
