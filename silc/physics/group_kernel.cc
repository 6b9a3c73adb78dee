// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/group_kernel.h"

namespace silc {

GroupKernel Kernel_baseline();
#ifdef SILC_X86_KERNELS
GroupKernel Kernel_avx512();
GroupKernel Kernel_avx2();
#endif

std::vector<GroupKernel> AvailableGroupKernels() {
  std::vector<GroupKernel> kernels;
#ifdef SILC_X86_KERNELS
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    kernels.push_back(Kernel_avx512());
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    kernels.push_back(Kernel_avx2());
  }
#endif
  kernels.push_back(Kernel_baseline());
  return kernels;
}

}  // namespace silc
