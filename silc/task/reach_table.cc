// SPDX-License-Identifier: Apache-2.0
#include "silc/task/reach_table.h"

#include <algorithm>
#include <cmath>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/robot/pose.h"

namespace silc {
namespace {

// Where reaches go, left arm [rad]: in front of and beside the body, elbow from straight to bent.
// Shoulder pitch, roll, yaw, elbow, wrist roll, pitch, yaw; the right arm is the mirror image.
constexpr float kLow[kArmJoints] = {-1.3f, 0.0f, -0.8f, -0.8f, -0.7f, -0.7f, -0.7f};
constexpr float kHigh[kArmJoints] = {0.8f, 0.85f, 0.8f, 1.5f, 0.7f, 0.7f, 0.7f};
constexpr float kMirror[kArmJoints] = {1, -1, -1, 1, -1, 1, -1};
constexpr double kSoftRange = 0.95;  // of a joint's range, about its centre

}  // namespace

ArmClearance::ArmClearance(const RobotModel& robot, double clearance)
    : robot_(robot),
      model_(mj_copyModel(nullptr, robot.model())),
      data_(mj_makeData(model_.get())) {
  SILC_CHECK(robot.num_joints() == kTaskJoints);
  const mjModel& m = *model_;
  // contacts are listed from this distance on; half from each shape
  for (int g = 0; g < m.ngeom; ++g) model_->geom_margin[g] = clearance / 2;
  is_arm_.assign(m.nbody, 0);
  for (int j = kLowerJoints; j < kTaskJoints; ++j) {
    const int joint = m.dof_jntid[robot.dof_address()[j]];
    is_arm_[m.jnt_bodyid[joint]] = 1;
  }
  allowed_.assign(static_cast<std::size_t>(m.nbody) * m.nbody, 0);
  StandInPose(robot, robot.spec().StandingPose(), data_.get());
  float standing[kUpperJoints];
  for (int j = 0; j < kUpperJoints; ++j) {
    standing[j] = static_cast<float>(robot.spec().StandingPose().q[kLowerJoints + j]);
  }
  std::vector<char> pairs(allowed_.size(), 0);
  CloseInPose(standing, &pairs);
  allowed_ = pairs;
}

bool ArmClearance::CloseInPose(const float* arms, std::vector<char>* pairs) {
  const mjModel& m = *model_;
  for (int j = 0; j < kUpperJoints; ++j) {
    data_->qpos[robot_.qpos_address()[kLowerJoints + j]] = arms[j];
  }
  mj_kinematics(&m, data_.get());
  mj_comPos(&m, data_.get());
  mj_collision(&m, data_.get());
  bool close = false;
  for (int i = 0; i < data_->ncon; ++i) {
    const int a = m.geom_bodyid[data_->contact[i].geom[0]];
    const int b = m.geom_bodyid[data_->contact[i].geom[1]];
    if (!is_arm_[a] && !is_arm_[b]) continue;
    const std::size_t pair = static_cast<std::size_t>(a) * m.nbody + b;
    if (allowed_[pair]) continue;
    close = true;
    if (pairs != nullptr) (*pairs)[pair] = 1;
  }
  return close;
}

bool ArmClearance::IsClear(const float* arms) { return !CloseInPose(arms, nullptr); }

OwnedReachTable MakeReachTable(const RobotModel& robot, const ReachOptions& options) {
  SILC_CHECK(options.num_poses >= 2 && options.num_next >= 1 && options.path_points >= 1);
  ArmClearance clearance(robot, options.clearance);
  Draw draw(options.seed, 0, 0, DrawPurpose::kArm);

  OwnedReachTable table;
  table.num_next = options.num_next;
  float pose[kUpperJoints], low[kUpperJoints], high[kUpperJoints];
  for (int j = 0; j < kUpperJoints; ++j) {
    const int a = j % kArmJoints;
    const bool flip = j >= kArmJoints && kMirror[a] < 0;
    const double q_low = robot.q_min()[kLowerJoints + j], q_high = robot.q_max()[kLowerJoints + j];
    const double centre = (q_low + q_high) / 2, half = (q_high - q_low) / 2 * kSoftRange;
    low[j] = std::max(flip ? -kHigh[a] : kLow[a], static_cast<float>(centre - half));
    high[j] = std::min(flip ? -kLow[a] : kHigh[a], static_cast<float>(centre + half));
  }
  const auto give_up = [&] {
    throw ConfigError(robot.spec().file +
                      ": no arm poses keep clear of the body; check the collision shapes or give "
                      "motion files");
  };
  for (int tries = 0; table.num_poses < options.num_poses; ++tries) {
    if (tries > 100 * options.num_poses) give_up();
    for (int j = 0; j < kUpperJoints; ++j) pose[j] = draw.Uniform(low[j], high[j]);
    if (!clearance.IsClear(pose)) continue;
    table.poses.insert(table.poses.end(), pose, pose + kUpperJoints);
    ++table.num_poses;
  }
  for (int from = 0; from < table.num_poses; ++from) {
    const float* a = &table.poses[static_cast<std::size_t>(from) * kUpperJoints];
    int found = 0;
    for (int tries = 0; found < options.num_next; ++tries) {
      if (tries > 100 * options.num_next) give_up();
      const int to = draw.Index(table.num_poses);
      if (to == from) continue;
      const float* b = &table.poses[static_cast<std::size_t>(to) * kUpperJoints];
      bool clear = true;
      for (int i = 1; clear && i < options.path_points; ++i) {
        const float x = static_cast<float>(i) / static_cast<float>(options.path_points);
        for (int j = 0; j < kUpperJoints; ++j) pose[j] = a[j] + x * (b[j] - a[j]);
        clear = clearance.IsClear(pose);
      }
      if (!clear) continue;
      table.next.push_back(to);
      ++found;
    }
  }
  return table;
}

}  // namespace silc
