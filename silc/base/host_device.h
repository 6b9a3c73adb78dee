// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Code that runs on the CPU and in CUDA kernels from one header.
///
///     SILC_HD           a function of both, compiled in place
///     SILC_HD_NOINLINE  the same, behind a call on the CPU
///     SILC_UNROLL       before a short loop of constant length
#ifdef __CUDACC__
#define SILC_HD __host__ __device__ __forceinline__
// inlined there too: behind a call the model's constants could no longer be read as constant memory
#define SILC_HD_NOINLINE __host__ __device__ __forceinline__
#define SILC_UNROLL _Pragma("unroll")
#else
#define SILC_HD inline __attribute__((always_inline))
#define SILC_HD_NOINLINE __attribute__((noinline))
#define SILC_UNROLL _Pragma("GCC unroll 8")
#endif
