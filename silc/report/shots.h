// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "silc/config/budget_file.h"
#include "silc/report/png.h"

namespace silc {

/// A picture of an experiment while it runs with a policy: the moment worth seeing, the force as an
/// arrow. Nothing where the experiment has no such moment (the robot fell first); `why` is filled
/// where no picture can be drawn at all.
std::optional<Image> TakeShot(const std::string& experiment,
                              const std::string& policy_path,
                              const UserBudget& budget,
                              std::string* why);

/// What the picture shows, as text. "" for an experiment without one.
std::string ShotCaption(const std::string& experiment);

}  // namespace silc
