// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/pose.h"

#include <algorithm>

#include "silc/base/check.h"

namespace silc {

void GetJointPositions(const RobotModel& robot, const mjData& data, Eigen::Ref<Eigen::VectorXd> q) {
  SILC_CHECK(q.size() == robot.num_joints());
  for (int i = 0; i < robot.num_joints(); ++i) q[i] = data.qpos[robot.qpos_address()[i]];
}

void GetJointVelocities(const RobotModel& robot,
                        const mjData& data,
                        Eigen::Ref<Eigen::VectorXd> qd) {
  SILC_CHECK(qd.size() == robot.num_joints());
  for (int i = 0; i < robot.num_joints(); ++i) qd[i] = data.qvel[robot.dof_address()[i]];
}

void SetJointPositions(const RobotModel& robot,
                       const Eigen::Ref<const Eigen::VectorXd>& q,
                       mjData* data) {
  SILC_CHECK(q.size() == robot.num_joints());
  for (int i = 0; i < robot.num_joints(); ++i) data->qpos[robot.qpos_address()[i]] = q[i];
}

void SetJointTorques(const RobotModel& robot,
                     const Eigen::Ref<const Eigen::VectorXd>& tau,
                     mjData* data) {
  SILC_CHECK(tau.size() == robot.num_joints());
  const Eigen::VectorXd& limit = robot.effort_limit();
  for (int i = 0; i < robot.num_joints(); ++i) {
    data->ctrl[robot.actuator()[i]] = std::clamp(tau[i], -limit[i], limit[i]);
  }
}

double SoleClearance(const RobotModel& robot, mjData* data) {
  constexpr double kFar = 100;  // [m] mj_geomDistance gives up, and returns this, beyond
  double clearance = kFar;
  for (const std::vector<int>& geoms : robot.foot_geoms()) {
    for (int geom : geoms) {
      const double distance =
          mj_geomDistance(robot.model(), data, robot.floor_geom(), geom, kFar, nullptr);
      clearance = std::min(clearance, distance);
    }
  }
  return clearance;
}

void StandInPose(const RobotModel& robot, const Pose& pose, mjData* data, double depth) {
  mj_resetData(robot.model(), data);
  mjtNum* base = data->qpos + robot.base_qpos_address();
  // well above the floor first: a gap is measured more surely than a penetration
  const mjtNum above[7] = {0, 0, 1 + pose.base_height, 1, 0, 0, 0};
  std::copy(above, above + 7, base);
  SetJointPositions(robot, pose.q, data);
  mj_kinematics(robot.model(), data);
  base[2] -= SoleClearance(robot, data) + depth;
  mj_forward(robot.model(), data);
}

}  // namespace silc
