// SPDX-License-Identifier: Apache-2.0
#define SILC_KERNEL cuda_16
#define SILC_CUDA_VOTES 16

#include "silc/physics/cuda_advance_impl.h"

namespace silc {

AdvancePointer Advance16(WorkSize size) { return FindAdvance(size); }

}  // namespace silc
