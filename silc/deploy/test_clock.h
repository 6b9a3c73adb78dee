// SPDX-License-Identifier: Apache-2.0
#pragma once

// What happens to a computer's clocks while a test runs: this program's own functions come before
// glibc's. Waits for the clocks follow.

#include <cstdint>

namespace silc::test {

/// False under the sanitizers, which have those functions themselves.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
inline constexpr bool kClocksCanBeMoved = false;
#else
inline constexpr bool kClocksCanBeMoved = true;
#endif

/// Sets the wall clock (CLOCK_REALTIME) forward; back where it is negative. [ns] from its own time
void MoveWallClock(std::int64_t ns);
/// The computer was suspended for so long: the clock since boot goes on, CLOCK_MONOTONIC does not.
void SuspendFor(std::int64_t ns);

}  // namespace silc::test
