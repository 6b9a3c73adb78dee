// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/group_kernel_impl.h"

namespace silc {
GroupKernel Kernel_avx2() { return avx2::MakeGroupKernel<8>("avx2"); }
}  // namespace silc
