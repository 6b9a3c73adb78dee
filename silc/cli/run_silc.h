// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests of the command line: silc as a user runs it.
#include <sys/types.h>

#include <map>
#include <string>

namespace silc {

struct Outcome {
  int code;
  std::string text;  // standard output and error
};

/// Where the program lies.
std::string SilcBinary();

/// Runs silc with these arguments, as a shell reads them, and waits for it. `before` is for the
/// same shell.
Outcome Silc(const std::string& arguments, const std::string& before = "");

/// A silc of its own that can be sent signals; its words go nowhere.
pid_t StartSilc(const std::string& arguments);
/// The same with these environment variables besides; its words go to a file.
pid_t StartSilc(const std::string& arguments,
                const std::map<std::string, std::string>& variables,
                const std::string& log);

/// Writes the policy of examples/stand_policy.cc to `path`; whether that program succeeded.
bool WriteStandPolicy(const std::string& path);

}  // namespace silc
