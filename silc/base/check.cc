// SPDX-License-Identifier: Apache-2.0
#include "silc/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace silc {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace silc
