// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include "silc/robot/robot_model.h"

namespace silc {

/// Joint positions, velocities and torques between mjData and robot order. Sizes are num_joints();
/// nothing allocates.
void GetJointPositions(const RobotModel& robot, const mjData& data, Eigen::Ref<Eigen::VectorXd> q);
void GetJointVelocities(const RobotModel& robot,
                        const mjData& data,
                        Eigen::Ref<Eigen::VectorXd> qd);
void SetJointPositions(const RobotModel& robot,
                       const Eigen::Ref<const Eigen::VectorXd>& q,
                       mjData* data);
/// Clamped to the effort limits.
void SetJointTorques(const RobotModel& robot,
                     const Eigen::Ref<const Eigen::VectorXd>& tau,
                     mjData* data);

/// Resets `data` and puts the robot upright over the origin, facing +x, at rest, joints at
/// `pose.q`, at the height where the lowest point of its soles just touches the floor. Ends with
/// mj_forward.
void StandInPose(const RobotModel& robot, const Pose& pose, mjData* data);

/// [m] Gap between the soles' lowest point and the floor; negative when inside it.
double SoleClearance(const RobotModel& robot, mjData* data);

}  // namespace silc
