// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "silc/stiffness/status.h"

namespace silc {

/// Which feet hold the robot. A byte, as samples of a training keep it.
enum class ContactMode : std::uint8_t { kDoubleSupport, kLeftSupport, kRightSupport, kFlight };
/// All of them, in their order: mode k has the value k.
inline constexpr std::array kContactModes = {ContactMode::kDoubleSupport,
                                             ContactMode::kLeftSupport,
                                             ContactMode::kRightSupport,
                                             ContactMode::kFlight};

/// In the place of a mode where nobody knows it, such as at a training episode's first moment.
inline constexpr ContactMode kModeUnknown{255};

/// "double support", "left support", "right support", "flight".
const char* Name(ContactMode mode);

/// When a foot counts as standing. Two thresholds, so that a force that hovers does not flicker,
/// and a shortest stay, so that a bounce does not either.
struct ContactModeOptions {
  double enter_force = 30;  // [N] normal force above which a foot begins to stand
  double leave_force = 15;  // [N] below which it stops
  double min_dwell = 0.02;  // [s] a foot keeps its state at least this long

  /// Empty when sound, else a sentence: 0 < leave_force ≤ enter_force, min_dwell ≥ 0, all finite.
  std::string Validate() const;
};

/// Contact mode from the feet's normal forces: each foot is a two-state machine with hysteresis and
/// dwell; the mode is the pair.
class ContactModeTracker {
 public:
  /// @pre options.Validate() is empty.
  explicit ContactModeTracker(const ContactModeOptions& options = {},
                              ContactMode start = ContactMode::kDoubleSupport);

  /// One control step of length dt [s] with normal forces [N], pushing positive. With a NaN the
  /// mode stays and kNotFinite is returned.
  StiffnessStatus Update(double left_force, double right_force, double dt);

  ContactMode mode() const;

 private:
  struct Foot {
    bool stands = true;
    double since = 0;  // [s] in this state; starts beyond any dwell, the first change is free
  };
  void Step(double force, double dt, Foot* foot) const;

  ContactModeOptions options_;
  Foot left_, right_;
};

}  // namespace silc
