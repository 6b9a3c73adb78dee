// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "silc/policy/policy.h"
#include "silc/policy/training_notes.h"
#include "silc/robot/robot_model.h"

namespace silc {

/// An ONNX policy made ready for a robot: network, layout (by name, by file, or "" for what the
/// file says of itself) and joint order. Throws ConfigError when the three do not fit together.
/// `notes`, where asked for: what the file says of its training. A commanded policy is told what
/// BudgetOfPolicy() judges it by.
Policy LoadPolicy(const std::string& onnx_path,
                  const std::string& layout,
                  const RobotModel& robot,
                  TrainingNotes* notes = nullptr);

/// SHA-256 of a policy, hexadecimal: of its file's bytes, and of its weights in another file where
/// it has them there. Throws ConfigError when it cannot be read.
std::string PolicyHash(const std::string& path);

}  // namespace silc
