// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/foam.h"

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "silc/base/error.h"

namespace silc {

using Eigen::Vector2d;
using Eigen::Vector3d;

Foam::Foam(const RobotModel& robot, const FoamOptions& options)
    : robot_(&robot), options_(options) {
  const mjModel* model = robot.model();
  for (const int foot : {kLeft, kRight}) {
    for (const int geom : robot.foot_geoms()[foot]) {
      if (model->geom_type[geom] != mjGEOM_SPHERE) {
        throw ConfigError(robot.spec().file +
                          ": feet.collision: foam is computed for soles of spheres alone");
      }
      points_.push_back({geom, foot});
    }
  }
  const double per_foot = static_cast<double>(robot.foot_geoms()[kLeft].size());
  stiffness_ = options.modulus * options.sole_area / (per_foot * options.thickness);
  damping_ = options.loss_factor * stiffness_ / (2 * std::numbers::pi * options.loss_frequency);
}

void Foam::Apply(double dt, mjData* data) {
  const mjModel* model = robot_->model();
  mju_zero(data->qfrc_applied, model->nv);
  normal_ = {0, 0};
  for (Point& point : points_) {
    const double radius = model->geom_size[3 * point.geom];
    const Vector3d centre(data->geom_xpos[3 * point.geom],
                          data->geom_xpos[3 * point.geom + 1],
                          data->geom_xpos[3 * point.geom + 2]);
    const Vector3d p_W = centre - Vector3d(0, 0, radius);
    const double depth = options_.thickness - p_W.z();
    if (!options_.under[point.foot] || depth <= 0) {
      point.touching = false;
      continue;
    }
    if (!point.touching) point.stretch.setZero();
    point.touching = true;

    const int body = model->geom_bodyid[point.geom];
    mjtNum twist[6];  // rotation, then translation, at the body's frame, in W
    mj_objectVelocity(model, data, mjOBJ_BODY, body, twist, 0);
    const Vector3d w(twist[0], twist[1], twist[2]), v0(twist[3], twist[4], twist[5]);
    const Vector3d p_WB(
        data->xipos[3 * body], data->xipos[3 * body + 1], data->xipos[3 * body + 2]);
    const Vector3d v = v0 + w.cross(p_W - p_WB);

    const double f_z = std::max(0.0, stiffness_ * depth - damping_ * v.z());
    // the shear spring holds until friction gives way; then it drags its anchor along
    const double k_t = options_.shear_share * stiffness_, c_t = options_.shear_share * damping_;
    point.stretch += dt * v.head<2>();
    Vector2d f_t = -k_t * point.stretch - c_t * v.head<2>();
    const double grip = options_.friction * f_z;
    if (f_t.norm() > grip) {
      f_t *= grip / f_t.norm();
      point.stretch = -f_t / k_t;
    }
    const mjtNum force[3] = {f_t.x(), f_t.y(), f_z}, no_torque[3] = {0, 0, 0};
    const mjtNum at[3] = {p_W.x(), p_W.y(), p_W.z()};
    mj_applyFT(model, data, force, no_torque, at, body, data->qfrc_applied);
    normal_[point.foot] += f_z;
  }
}

}  // namespace silc
