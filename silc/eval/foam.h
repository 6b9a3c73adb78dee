// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <array>
#include <vector>

#include "silc/robot/robot_model.h"

namespace silc {

/// A soft pad under a foot wherever it steps, as a bed of independent springs and dampers (Winkler
/// 1867) under the points a sole stands on. Each point carries a share of the sole's area:
///
///     f_z = k δ + c δ̇ ≥ 0,   k = E A / (points · thickness)          δ  compression        [m]
///     f_t = −k_t s − c_t ṡ,  |f_t| ≤ μ f_z                           s  stretch since the point
///                                                                    touched or last slipped
struct FoamOptions {
  double thickness = 0.03;       // [m]
  double modulus = 160e3;        // [Pa] docs/experiments.md has the source
  double sole_area = 0.0108;     // [m²] of one foot: 18 × 6 cm
  double loss_factor = 0.3;      // [1] at loss_frequency
  double loss_frequency = 5;     // [Hz]
  double shear_share = 1.0 / 3;  // [1] of the normal stiffness: G/E of a foam with Poisson's ratio
                                 // near 0.5; softer foams have more
  double friction = 0.6;         // [1] the soles' own
  std::array<bool, 2> under = {true, false};  // left, right: the feet that step on it
};

class Foam {
 public:
  /// The points are the geoms' lowest points; spheres alone. Throws ConfigError for others.
  Foam(const RobotModel& robot, const FoamOptions& options);

  double stiffness() const { return stiffness_; }  ///< [N/m] of one point
  double damping() const { return damping_; }      ///< [N·s/m]

  /// Adds the pad's forces to data->qfrc_applied, which it overwrites. Call before every physics
  /// step of length dt.
  void Apply(double dt, mjData* data);

  /// [N] on each foot in the last Apply().
  const std::array<double, 2>& normal() const { return normal_; }

 private:
  struct Point {
    int geom, foot;
    bool touching = false;
    Eigen::Vector2d stretch = Eigen::Vector2d::Zero();  // [m]
  };
  const RobotModel* robot_;
  FoamOptions options_;
  double stiffness_ = 0, damping_ = 0;
  std::vector<Point> points_;
  std::array<double, 2> normal_{};
};

}  // namespace silc
