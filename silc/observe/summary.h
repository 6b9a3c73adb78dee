// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "silc/observe/observation.h"

namespace silc {

/// The p-quantile of the finite values, 0 ≤ p ≤ 1, by linear interpolation; NaN when there is none.
double Quantile(std::vector<double> values, double p);
double Median(std::vector<double> values);

/// A budget held against a stiffness in one contact mode, over all moments spent there.
struct ModeSummary {
  ContactMode mode = ContactMode::kDoubleSupport;
  int moments = 0;
  double share = 0;         // [1] of all moments
  int judged = 0;           // moments whose σ exists
  int over = 0;             // of those, moments with σ > 1
  double sigma_median = 0;  // [1]
  double sigma_p99 = 0;     // [1]
  double violations = 0;    // [1] share of the moments with σ > 1, or without σ: as in silc/eval
  double worst_median = 0;  // [1] λ_max(L⁻¹ sym(K_s) L⁻ᵀ)
  double worst_p99 = 0;
  double random_direction_violations =
      0;                       // [1] share of random directions over the budget: the paper's test
  double one_step_median = 0;  // [1] σ of K₁
};

/// Median over the run of what a point feels like, per axis.
struct PointSummary {
  std::string name;
  Eigen::Vector3d one_axis;  // [N/m] 1/C_ii
  Eigen::Vector3d held;      // [N/m] (K_x)_ii, other axes held
  Eigen::Vector3d budget;    // [N/m] NaN where the budget is silent
  double worst_median = 0;   // [1] λ_max(L_x⁻¹ sym(K_x) L_x⁻ᵀ)
  double worst_p99 = 0;
};

struct JointSummary {
  std::string name;
  double kp = 0, kd = 0;                            // [N·m/rad], [N·m·s/rad]
  double one_step = 0, quasi_static = 0;            // [N·m/rad] median diagonal of K₁, K_s
  std::array<double, kDampingHz.size()> damping{};  // [N·m·s/rad] median
};

struct RunSummary {
  std::vector<JointSummary> joints;
  /// The centre of mass and the hands in the world; then, on the base, the hands that the budget
  /// bounds.
  std::vector<PointSummary> points;
  std::vector<ModeSummary> modes;  // those met, then all together when there are several
  /// Some of the radii are proven upper bounds, not the radius itself (ActionLoopMethod::kBound).
  bool loop_radius_is_bound = false;
  double loop_radius_median = 0, loop_radius_max = 0;  // [1]
  /// Mean velocity of the base over the run, in its heading frame, and mean yaw rate: what became
  /// of the command. [m/s, m/s, rad/s]; zero for a single moment.
  Eigen::Vector3d velocity = Eigen::Vector3d::Zero();
  double saturation = 0;  // [1] mean share of joints at their effort limit
  /// Why K_s was missing, and in how many moments; empty when it never was.
  std::vector<std::pair<StiffnessStatus, int>> missing;
};

RunSummary Summarize(const ObservationRun& run);

/// Whether the budget is shown to hold: every moment was judged and none is over it. A moment that
/// cannot be judged counts as not held, here as in the experiments (silc/eval).
bool BudgetHolds(const RunSummary& summary);

}  // namespace silc
