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
/// `pose.q`, at the height where the lowest point of its soles is `depth` [m] inside the floor; 0:
/// where it just touches. Ends with mj_forward.
void StandInPose(const RobotModel& robot, const Pose& pose, mjData* data, double depth = 0);

/// [m] How deep a rollout's soles begin. MuJoCo's contact is a spring of acceleration k r with
/// impedance d: at rest (1 − d)/d · g = k r, 0.35 mm for the default solref and solimp, whatever
/// the robot weighs. Soles that only touch begin with contacts that 1e-7 m make or unmake, and a
/// walk never forgets which.
inline constexpr double kRestingDepth = 3.5e-4;

/// [m] Gap between the soles' lowest point and the floor; negative when inside it.
double SoleClearance(const RobotModel& robot, mjData* data);

}  // namespace silc
