// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <array>

#include "silc/robot/robot_model.h"
#include "silc/task/motion_file.h"

namespace silc {

class NpzFile;

/// Directions of one arm's segments, unit vectors in the torso's frame: x forward, y left, z up.
struct ArmDirections {
  Eigen::Vector3d upper;  // shoulder → elbow
  Eigen::Vector3d fore;   // elbow → wrist
};

/// Both arms of one SMPL-H pose, left then right, in the frame of the chest (the third spine
/// joint).
/// @param pose  axis-angle of the first 22 joints, 66 numbers [rad]. SMPL's own axes are x left, y
/// up, z
///              forward, and its arms point sideways when all angles are zero.
std::array<ArmDirections, 2> SmplArmDirections(const double* pose);

/// Whether the robot's arms are the G1's: what the retargeting below is written for.
bool HasG1Arms(const RobotModel& robot);

/// Finds arm joints that give the robot's arms the directions asked for.
class ArmRetargeter {
 public:
  /// @pre HasG1Arms(robot)
  explicit ArmRetargeter(const RobotModel& robot);

  /// Damped Gauss-Newton over shoulder pitch, roll, yaw and elbow from `arms` [rad, 14], inside the
  /// joint ranges; wrists are zero. Returns the largest angle left between asked and reached [rad].
  double Solve(const std::array<ArmDirections, 2>& wanted, float* arms);
  /// The robot's own directions, waist at zero.
  std::array<ArmDirections, 2> Directions(const float* arms);

 private:
  const RobotModel& robot_;
  MjDataPtr data_;
  int shoulder_[2], elbow_[2], wrist_[2];  // bodies
};

/// A clip from an AMASS file, thinned to 30 frames per second or a little more. Throws ConfigError
/// for what ReadMotion() refuses, and for a robot without the G1's arms.
MotionClip RetargetAmass(const NpzFile& file, const RobotModel& robot);

}  // namespace silc
