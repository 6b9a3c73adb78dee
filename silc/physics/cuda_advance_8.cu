// SPDX-License-Identifier: Apache-2.0
#define SILC_KERNEL cuda_8
#define SILC_CUDA_VOTES 8

#include "silc/physics/cuda_advance_impl.h"

namespace silc {

AdvancePointer Advance8(WorkSize size) { return FindAdvance(size); }

}  // namespace silc
