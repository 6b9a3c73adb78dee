// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The name of the instruction set that the step is compiled for.
///
/// The step is header code, compiled once per instruction set. Everything templated on the scalar
/// lives in a namespace that carries the instruction set's name: without it the linker would keep
/// one of several copies of, say, an inline float function, perhaps the one full of AVX-512, and
/// call it on a machine that has none. Kernel sources set SILC_KERNEL; all other code sees
/// `portable`.
#ifndef SILC_KERNEL
#define SILC_KERNEL portable
#endif
