// SPDX-License-Identifier: Apache-2.0
#define SILC_KERNEL cuda_32
#define SILC_CUDA_VOTES 32

#include "silc/physics/cuda_advance_impl.h"

namespace silc {

AdvancePointer Advance32(WorkSize size) { return FindAdvance(size); }

}  // namespace silc
