// SPDX-License-Identifier: Apache-2.0
// write_test_policy commanded|unstable|handless OUT.onnx: a policy of test_policies.h, for the test
// in a browser.
#include <cstdio>
#include <exception>
#include <string_view>

#include "silc/view/test_policies.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string_view kind = argv[1];
  try {
    if (kind == "commanded") {
      silc::WriteCommandedPolicy(argv[2]);
    } else if (kind == "unstable") {
      silc::WriteUnstablePolicy(argv[2]);
    } else if (kind == "handless") {
      silc::WriteHandlessPolicy(argv[2]);
    } else {
      return 2;
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_test_policy: %s\n", error.what());
    return 1;
  }
}
