// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mujoco/mujoco.h>

#include <Eigen/Core>
#include <memory>
#include <string>
#include <vector>

#include "silc/report/png.h"

namespace silc {

/// Where the camera stands.
struct View {
  Eigen::Vector3d look_at_W{0, 0, 0.66};  // [m]
  double distance = 2.3;                  // [m]
  double azimuth = 215, elevation = -10;  // [deg] MuJoCo's: at azimuth 180 the robot's face is seen
};

/// A force on the robot, drawn as an arrow that begins at `point_W`.
struct Arrow {
  Eigen::Vector3d point_W, force_W;   // [m], [N]
  double metres_per_newton = 0.0045;  // 40 N are as long as a forearm
};

/// Draws scenes of one model with MuJoCo's own renderer, without a screen.
class Painter {
 public:
  /// Null where no OpenGL is to be had; `why` then says so in a sentence. The model must have been
  /// loaded with visuals; it is copied.
  static std::unique_ptr<Painter> Create(const mjModel& model,
                                         int width,
                                         int height,
                                         std::string* why);
  ~Painter();
  Painter(const Painter&) = delete;
  Painter& operator=(const Painter&) = delete;

  /// `data` of that model after mj_forward() or mj_step(). Collision shapes are left out, except
  /// those of the world (a pad on the floor).
  Image Draw(const mjData& data, const View& view, const std::vector<Arrow>& arrows = {});

  const char* backend() const;  ///< "EGL" or "OSMesa"

 private:
  struct Impl;
  explicit Painter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace silc
