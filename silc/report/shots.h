// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "silc/config/budget_file.h"
#include "silc/eval/metric_table.h"
#include "silc/report/png.h"
#include "silc/robot/robot_model.h"

namespace silc {

/// When the moment worth seeing has come.
enum class ShotMoment {
  kPushed,   ///< some time after a force began to act
  kCaught,   ///< some time after a rope became taut
  kStepped,  ///< a foot is well off the ground
  kStrided,  ///< in mid-stride of a walk that the picture makes itself
};

/// How an experiment is photographed.
struct Shot {
  const MetricTable&
      experiment;  // by its table of metrics: there is no shot of what does not exist
  std::string caption;
  ShotMoment moment;
  double after = 0;      // [s] since the force, the rope
  int foot = kLeft;      // that stepped
  double azimuth = 215;  // [deg] of the camera, as View's
  double elevation = -10;
  double look_at_z = 0.66;  // [m]
};
/// All of them. An experiment that is not here has no picture.
const std::vector<Shot>& Shots();
/// Null for an experiment without one.
const Shot* FindShot(const std::string& experiment);

/// A picture of an experiment while it runs with a policy: the moment worth seeing, the force as an
/// arrow. Nothing where the experiment has no such moment (the robot fell first); `why` is filled
/// where no picture can be drawn at all.
std::optional<Image> TakeShot(const Shot& shot,
                              const std::string& policy_path,
                              const UserBudget& budget,
                              std::string* why);

}  // namespace silc
