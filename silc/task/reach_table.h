// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "silc/robot/robot_model.h"
#include "silc/task/arm_reference.h"

namespace silc {

struct ReachOptions {
  int num_poses = 128;
  int num_next = 6;         // reaches that begin at each pose
  double clearance = 0.02;  // [m] between an arm and the rest of the body, all along a reach
  int path_points = 8;      // of a reach that are checked, the end included
  std::uint64_t seed = 1;
};

/// A ReachTable and the memory behind it.
struct OwnedReachTable {
  std::vector<float> poses;
  std::vector<int> next;
  int num_poses = 0, num_next = 0;

  ReachTable view() const { return {poses.data(), next.data(), num_poses, num_next}; }
};

/// Whether the arms, in this pose [rad, as the actor `upper` lists them], keep `clearance` [m] from
/// legs, torso, head and each other, with the rest of the robot in its standing pose. Shapes that
/// are closer than that when the robot just stands (shoulder and torso) do not count.
class ArmClearance {
 public:
  /// @pre robot was loaded with self_collision.
  ArmClearance(const RobotModel& robot, double clearance);
  bool IsClear(const float* arms);
  /// The joints of the arms, as joints of the robot.
  const std::vector<int>& joints() const { return upper_; }

 private:
  bool CloseInPose(const float* arms, std::vector<char>* pairs);

  const RobotModel& robot_;
  MjModelPtr model_;
  MjDataPtr data_;
  std::vector<int> upper_;
  std::vector<char> is_arm_;   // per body
  std::vector<char> allowed_;  // body × body
};

/// Draws poses the arms can take, inside `reach` of robot.yaml, and the reaches between them that
/// keep clear. Throws ConfigError when the robot's shapes leave no such poses.
OwnedReachTable MakeReachTable(const RobotModel& robot, const ReachOptions& options = {});

}  // namespace silc
