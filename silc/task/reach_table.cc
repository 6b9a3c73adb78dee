// SPDX-License-Identifier: Apache-2.0
#include "silc/task/reach_table.h"

#include <algorithm>
#include <cmath>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/robot/pose.h"

namespace silc {
namespace {

constexpr double kAboutPose = 0.5;   // [rad] to either side, for joints whose reach is not given
constexpr double kSoftRange = 0.95;  // of a joint's range, about its centre

}  // namespace

ArmClearance::ArmClearance(const RobotModel& robot, double clearance)
    : robot_(robot),
      model_(mj_copyModel(nullptr, robot.model())),
      data_(mj_makeData(model_.get())) {
  const std::vector<int> order = TaskOrder(robot.spec());
  const std::size_t lower = robot.spec().Actor("lower").joints.size();
  upper_.assign(order.begin() + static_cast<std::ptrdiff_t>(lower), order.end());
  const mjModel& m = *model_;
  // contacts are listed from this distance on; half from each shape
  for (int g = 0; g < m.ngeom; ++g) model_->geom_margin[g] = clearance / 2;
  is_arm_.assign(m.nbody, 0);
  for (const int j : upper_) {
    const int joint = m.dof_jntid[robot.dof_address()[j]];
    is_arm_[m.jnt_bodyid[joint]] = 1;
  }
  allowed_.assign(static_cast<std::size_t>(m.nbody) * m.nbody, 0);
  StandInPose(robot, robot.spec().StandingPose(), data_.get());
  float standing[kUpperJoints] = {};
  for (std::size_t j = 0; j < upper_.size(); ++j) {
    standing[j] = static_cast<float>(robot.spec().StandingPose().q[upper_[j]]);
  }
  std::vector<char> pairs(allowed_.size(), 0);
  CloseInPose(standing, &pairs);
  allowed_ = pairs;
}

bool ArmClearance::CloseInPose(const float* arms, std::vector<char>* pairs) {
  const mjModel& m = *model_;
  for (std::size_t j = 0; j < upper_.size(); ++j) {
    data_->qpos[robot_.qpos_address()[upper_[j]]] = arms[j];
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
  const std::vector<int>& upper = clearance.joints();
  const int n = static_cast<int>(upper.size());
  if (n == 0) {
    // nobody looks at the reference of arms that are not there
    table.poses.assign(kUpperJoints, 0.0f);
    table.next.assign(options.num_next, 0);
    table.num_poses = 1;
    return table;
  }
  float pose[kUpperJoints] = {}, low[kUpperJoints] = {}, high[kUpperJoints] = {};
  for (int j = 0; j < n; ++j) {
    const int joint = upper[j];
    const double q_low = robot.q_min()[joint], q_high = robot.q_max()[joint];
    const double centre = (q_low + q_high) / 2, half = (q_high - q_low) / 2 * kSoftRange;
    const ReachRange& reach = robot.spec().reach[joint];
    const double standing = robot.spec().StandingPose().q[joint];
    const double from = reach.given ? reach.low : standing - kAboutPose;
    const double to = reach.given ? reach.high : standing + kAboutPose;
    low[j] = std::max(static_cast<float>(from), static_cast<float>(centre - half));
    high[j] = std::min(static_cast<float>(to), static_cast<float>(centre + half));
    if (low[j] > high[j]) {
      throw ConfigError(robot.spec().file + ": reach." + robot.spec().joints[joint] +
                        ": is outside the joint's range");
    }
  }
  const auto give_up = [&] {
    throw ConfigError(robot.spec().file +
                      ": no arm poses keep clear of the body; check `reach` and the collision "
                      "shapes, or give motion files");
  };
  for (int tries = 0; table.num_poses < options.num_poses; ++tries) {
    if (tries > 100 * options.num_poses) give_up();
    for (int j = 0; j < n; ++j) pose[j] = draw.Uniform(low[j], high[j]);
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
        for (int j = 0; j < n; ++j) pose[j] = a[j] + x * (b[j] - a[j]);
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
