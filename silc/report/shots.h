// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "silc/policy/policy.h"
#include "silc/report/png.h"
#include "silc/robot/robot_model.h"

namespace silc {

using PolicyLoader = std::function<Policy(const std::string& path, const RobotModel& robot)>;

/// A picture of an experiment while it runs with a policy: the moment worth seeing, the force as an
/// arrow. Nothing where the experiment has no such moment (the robot fell first); `why` is filled
/// where no picture can be drawn at all.
std::optional<Image> TakeShot(const std::string& experiment,
                              const std::string& policy_path,
                              const std::string& budget,
                              const PolicyLoader& load,
                              std::string* why);

/// What the picture shows, as text. "" for an experiment without one.
std::string ShotCaption(const std::string& experiment);

}  // namespace silc
