// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What makes one source serve every target.
///
/// The step is header code, compiled once per instruction set. Everything templated on the scalar
/// lives in a namespace that carries the instruction set's name: without it the linker would keep
/// one of several copies of, say, an inline float function, perhaps the one full of AVX-512, and
/// call it on a machine that has none. Kernel sources set SILC_KERNEL; all other code sees
/// `portable`.
#ifndef SILC_KERNEL
#define SILC_KERNEL portable
#endif

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
