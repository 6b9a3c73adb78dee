// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/float_kernel.h"

#include <string>

namespace silc {

FloatKernel FloatKernel_baseline();
#ifdef SILC_X86_KERNELS
FloatKernel FloatKernel_avx512();
FloatKernel FloatKernel_avx2();
#endif
#ifdef SILC_BFLOAT16_KERNEL
FloatKernel FloatKernel_bfloat16();
#endif

std::vector<FloatKernel> AvailableFloatKernels() {
  std::vector<FloatKernel> kernels;
#ifdef SILC_X86_KERNELS
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    kernels.push_back(FloatKernel_avx512());
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    kernels.push_back(FloatKernel_avx2());
  }
#endif
  kernels.push_back(FloatKernel_baseline());
  return kernels;
}

const FloatKernel& BestFloatKernel() {
  static const FloatKernel kernel = AvailableFloatKernels().front();
  return kernel;
}

const FloatKernel* Bfloat16Kernel() {
#ifdef SILC_BFLOAT16_KERNEL
  static const bool runs =
      __builtin_cpu_supports("avx512bf16") && BestFloatKernel().name == std::string("avx512");
  static const FloatKernel kernel = runs ? FloatKernel_bfloat16() : FloatKernel{};
  return runs ? &kernel : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace silc
