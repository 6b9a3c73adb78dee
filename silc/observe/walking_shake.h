// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "silc/observe/closed_loop.h"

namespace silc {

// What a person feels who pushes a walking robot steadily at its centre of mass. A walking robot is
// never at rest, so that no single moment says what it gives way by. Its twin walks beside it from
// the same moment and is not pushed; the difference of the two, averaged over whole cycles of the
// gait, has neither sway nor phase in it.
//
// The walking frame has the unpushed twin's heading: x forward, y to the left, z up. The push keeps
// its direction in this frame.

struct WalkingShakeOptions {
  std::vector<double> forces = {5, 10, 20};  // [N]
  double ramp = 1.5;                         // [s] from zero to full force
  double settle = 3;                         // [s] at full force before the first cycle that counts
  int cycles = 4;                            // of the gait, that count; at least 2
  int predict_every = 5;                     // control steps from one K_s of the twin to the next
};

/// Along one axis of the walking frame, pushed with + and −: means over the gait cycles that count,
/// one after the other. [m] Empty where a robot fell.
using CycleMeans = std::array<std::vector<double>, 2>;

struct WalkingLevel {
  double force = 0;                                // [N]
  std::array<std::array<LoopStatus, 2>, 3> end{};  // [axis][+, −]
  /// [axis] p_WC of the pushed robot less its twin's: the displacement.
  std::array<CycleMeans, 3> moved;
  /// [axis] The same of the centre of mass against the middle of its own two soles: how far a robot
  /// leans that may have walked elsewhere.
  std::array<CycleMeans, 3> leaned;
  /// [axis] [m] Half the difference of `moved` under + and −, at every control step of the push.
  std::array<std::vector<double>, 3> course;
};

struct WalkingShakeResult {
  LoopStatus twin = LoopStatus::kRunning;
  double cycle = 0;          // [s] of the gait: the policy's clock, 1 s where it has none
  std::vector<double> time;  // [s] since the push began, of WalkingLevel::course
  std::vector<WalkingLevel> levels;
  /// [m/N] C_ii of K_s with weight along the walking frame, mean over moments of the twin in the
  /// cycles that count. NaN where no moment has one.
  Eigen::Vector3d model_compliance = Eigen::Vector3d::Zero();
  int moments = 0, modelled = 0;  // looked at; with such a K_s
};

/// @pre start has settled into its gait
WalkingShakeResult ShakeWalking(const ClosedLoop& start, const WalkingShakeOptions& options = {});

/// What the cycles' means of one pair of pushes come to. NaN where one of the two fell.
struct WalkingResponse {
  double mean;    // [m] half the difference of both signs, over all cycles
  double growth;  // [m] of the sign that changes more: its largest cycle less its smallest
  double speed;   // [m/s] at which half the difference grows, by least squares over the cycles
};
WalkingResponse ResponseOf(const CycleMeans& means, double cycle);

/// [1] The most that a displacement may change over the cycles, as a share of its mean. One that
/// grows steadily from the beginning of the push changes by 0.45 (cycles of 0.8 s) or 0.52 (of 1
/// s).
inline constexpr double kMostGrowth = 0.25;

/// [N/m] force/mean, or NaN where the robot has none: it fell, or the displacement grows by more
/// than kMostGrowth of it. A robot that follows a velocity has no place to come back to, and walks
/// away from its twin as long as it is pushed.
double WalkingStiffness(const CycleMeans& means, double force);

}  // namespace silc
