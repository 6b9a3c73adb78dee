// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace silc {

/// The user's file or flag is wrong: thrown once, at the edge, before any work begins. The message
/// names the place, the key, the value, the rule and the way out. The command line prints it and
/// exits with 2.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The work was asked for rightly and failed: a robot that fell, a disk that is full. The command
/// line prints it and exits with 1.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace silc
