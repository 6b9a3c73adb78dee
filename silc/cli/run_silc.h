// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests of the command line, which are built with SILC_BINARY.
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace silc {

struct Outcome {
  int code;
  std::string text;  // standard output and error
};

/// Runs silc with these arguments, as a shell reads them, and waits for it.
inline Outcome Silc(const std::string& arguments) {
  const std::string command = std::string(SILC_BINARY) + " " + arguments + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    text.append(buffer, n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

}  // namespace silc
