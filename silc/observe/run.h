// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "silc/observe/observation.h"

namespace silc {

/// Called now and then with the share of the work that is done, in [0, 1].
using Progress = std::function<void(double)>;

/// Stands the robot still in its starting pose, lets the policy's history and its own previous
/// actions settle on that, and observes once, in double support. No physics moves: this is the
/// policy's stiffness at a pose, whether or not it would stand there.
ObservationRun ObservePose(ClosedLoop loop, const ObservationOptions& options);

/// Runs the loop for `seconds` and observes every control step from `settle` on, with the contact
/// mode of that moment. Ends early when the robot falls or a number is not finite; `end` says so.
ObservationRun ObserveRollout(ClosedLoop loop,
                              double seconds,
                              double settle,
                              const ObservationOptions& options,
                              const Progress& progress = {});

/// One row of a recording.
struct RecordedMoment {
  int index = 0, count = 0;  // of the row, of all rows
  double time = 0;           // [s] since the first
  ContactMode mode = ContactMode::kDoubleSupport;
  bool of_robot = false;  // a log: where the base was in the world is not known
};

/// Puts the loop into one recorded state after the other, as ObserveStates() says, asks the policy
/// and calls `visit`. Ends early when the policy answers with no number.
LoopStatus ReplayStates(ClosedLoop* loop,
                        const std::string& path,
                        const std::function<void(const RecordedMoment&)>& visit);

/// At most `most` of the `qpos` of recorded states, evenly spread. Throws ConfigError as
/// ObserveStates() does, and for a log, which does not know where the floor was.
std::vector<Eigen::VectorXd> RecordedPoses(const std::string& npz_path,
                                           const RobotModel& robot,
                                           int most);

/// Shows the policy recorded states one after the other: `qpos` (rows × model nq) and `qvel` (rows
/// × nv) in MuJoCo's order, one row per control period. Contact modes come from the contact forces
/// MuJoCo finds at each state under the servo's torques. A folder is the log of `silc deploy`: its
/// chunks one after the other, with what the policy saw and the contacts as they were known there.
/// Throws ConfigError on shapes or values that do not fit.
ObservationRun ObserveStates(ClosedLoop loop,
                             const std::string& npz_path,
                             const ObservationOptions& options,
                             const Progress& progress = {});

}  // namespace silc
