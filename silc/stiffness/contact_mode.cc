// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/contact_mode.h"

#include <cmath>

#include "silc/base/check.h"

namespace silc {

const char* Name(ContactMode mode) {
  switch (mode) {
    case ContactMode::kDoubleSupport:
      return "double support";
    case ContactMode::kLeftSupport:
      return "left support";
    case ContactMode::kRightSupport:
      return "right support";
    case ContactMode::kFlight:
      return "flight";
  }
  return "unknown mode";
}

std::string ContactModeOptions::Validate() const {
  if (!std::isfinite(enter_force) || !std::isfinite(leave_force) || !std::isfinite(min_dwell)) {
    return "contact thresholds must be finite";
  }
  if (!(leave_force > 0)) return "leave_force must be above 0 N";
  if (leave_force > enter_force) return "leave_force must not be above enter_force";
  if (min_dwell < 0) return "min_dwell must not be negative";
  return "";
}

ContactModeTracker::ContactModeTracker(const ContactModeOptions& options, ContactMode start)
    : options_(options) {
  SILC_CHECK(options.Validate().empty());
  left_.stands = start == ContactMode::kDoubleSupport || start == ContactMode::kLeftSupport;
  right_.stands = start == ContactMode::kDoubleSupport || start == ContactMode::kRightSupport;
  left_.since = right_.since = options.min_dwell;
}

void ContactModeTracker::Step(double force, double dt, Foot* foot) const {
  foot->since += dt;
  const bool wants = foot->stands ? force >= options_.leave_force : force > options_.enter_force;
  // times are sums of dt: a dwell of k steps must not become k + 1 by rounding
  if (wants != foot->stands && foot->since >= options_.min_dwell - 1e-9) {
    foot->stands = wants;
    foot->since = 0;
  }
}

StiffnessStatus ContactModeTracker::Update(double left_force, double right_force, double dt) {
  if (!std::isfinite(left_force) || !std::isfinite(right_force) || !std::isfinite(dt)) {
    return StiffnessStatus::kNotFinite;
  }
  Step(left_force, dt, &left_);
  Step(right_force, dt, &right_);
  return StiffnessStatus::kOk;
}

ContactMode ContactModeTracker::mode() const {
  if (left_.stands) return right_.stands ? ContactMode::kDoubleSupport : ContactMode::kLeftSupport;
  return right_.stands ? ContactMode::kRightSupport : ContactMode::kFlight;
}

}  // namespace silc
