// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/mujoco_handles.h"

#include <spdlog/spdlog.h>

#include <string>

#include "silc/base/error.h"
#include "silc/base/utf8.h"

namespace silc {
namespace {

void ThrowError(const char* message) { throw RunError(std::string("MuJoCo: ") + message); }
void LogWarning(const char* message) { spdlog::warn("MuJoCo: {}", Printable(message)); }

}  // namespace

void InstallMujocoHandlers() {
  [[maybe_unused]] static const bool kInstalled = [] {
    mju_user_error = ThrowError;
    mju_user_warning = LogWarning;
    return true;
  }();
}

}  // namespace silc
