// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace silc {

/// Prints "FILE:LINE: check failed: CONDITION" to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace silc

/// Our own invariants: sizes that must agree, states that cannot be. On in every build. What a user
/// can cause is a ConfigError, and what the world can cause is a status.
#define SILC_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::silc::CheckFailed(__FILE__, __LINE__, #condition))
