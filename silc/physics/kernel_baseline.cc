// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/group_kernel_impl.h"

namespace silc {
GroupKernel Kernel_baseline() { return baseline::MakeGroupKernel<4>("baseline"); }
}  // namespace silc
