// SPDX-License-Identifier: Apache-2.0
// test_commanded_policy OUT.onnx: the policy of test_policies.h, for the test in a browser.
#include <cstdio>
#include <exception>

#include "silc/view/test_policies.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    silc::WriteCommandedPolicy(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "test_commanded_policy: %s\n", error.what());
    return 1;
  }
}
