// SPDX-License-Identifier: Apache-2.0
#include "silc/task/task_robot.h"

#include <fmt/format.h>

#include <cmath>

#include "silc/base/error.h"
#include "silc/physics/batch_model.h"
#include "silc/robot/robot_model.h"

namespace silc {

TaskRobot MakeTaskRobot(const RobotModel& robot, const TaskConfig& config) {
  const RobotSpec& spec = robot.spec();
  const mjModel& m = *robot.model();
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(spec.file + ": the task cannot use this robot: " + why);
  };
  if (spec.num_joints() != kTaskJoints) {
    refuse(fmt::format("{} joints, {} needed", spec.num_joints(), kTaskJoints));
  }
  if (spec.hands.size() != 2) refuse("it has no hands");
  if (spec.imus.size() < 2) refuse("imus: the second must sit in the torso");
  const JointGroup& lower = spec.Actor("lower");
  const JointGroup& upper = spec.Actor("upper");
  for (int j = 0; j < kTaskJoints; ++j) {
    const auto& actor = j < kLowerJoints ? lower.joints : upper.joints;
    const int i = j < kLowerJoints ? j : j - kLowerJoints;
    if (static_cast<int>(actor.size()) <= i || actor[i] != j) {
      refuse("actors: 'lower' must be the first 15 joints (legs, waist) and 'upper' the other 14");
    }
  }
  if (spec.velocity_limit.size() != kTaskJoints) refuse("velocity_limit is missing");

  TaskRobot out = {};
  out.nq = m.nq;
  out.nv = m.nv;
  out.base_qpos = robot.base_qpos_address();
  out.base_dof = robot.base_dof_address();
  const GainSet& gains = spec.Gains();
  const Pose& pose = spec.StandingPose();
  for (int j = 0; j < kTaskJoints; ++j) {
    out.qpos[j] = robot.qpos_address()[j];
    out.dof[j] = robot.dof_address()[j];
    out.actuator[j] = robot.actuator()[j];
    out.default_q[j] = static_cast<float>(pose.q[j]);
    const double low = robot.q_min()[j], high = robot.q_max()[j];
    if (!std::isfinite(low) || !std::isfinite(high)) refuse(spec.joints[j] + " has no range");
    const double centre = (low + high) / 2, half = (high - low) / 2 * config.limits.soft_range;
    out.soft_low[j] = static_cast<float>(centre - half);
    out.soft_high[j] = static_cast<float>(centre + half);
    out.effort[j] = static_cast<float>(robot.effort_limit()[j]);
    out.max_velocity[j] = static_cast<float>(spec.velocity_limit[j]);
    out.kp[j] = static_cast<float>(gains.kp[j]);
    out.kd[j] = static_cast<float>(gains.kd[j]);
    out.action_scale[j] = static_cast<float>(gains.action_scale[j]);
  }
  const std::string sides[2] = {"left_", "right_"};
  for (int s = 0; s < 2; ++s) {
    out.hip_pitch[s] = spec.Joint(sides[s] + "hip_pitch_joint");
    out.hip_roll[s] = spec.Joint(sides[s] + "hip_roll_joint");
    out.hip_yaw[s] = spec.Joint(sides[s] + "hip_yaw_joint");
    out.knee[s] = spec.Joint(sides[s] + "knee_joint");
    out.ankle_pitch[s] = spec.Joint(sides[s] + "ankle_pitch_joint");
    out.ankle_roll[s] = spec.Joint(sides[s] + "ankle_roll_joint");
    for (int k = 0; k < 3; ++k) {
      out.p_FS[s][k] = static_cast<float>(m.site_pos[3 * robot.foot_site()[s] + k]);
      out.p_HC[s][k] = static_cast<float>(m.body_ipos[3 * robot.hand_body()[s] + k]);
    }
    // Where the rubber hand begins and ends in the wrist-yaw frame; the tip is mirrored.
    const float mirror = s == 0 ? 1.0f : -1.0f;
    const float near[3] = {0.0415f, 0.003f * mirror, 0}, far[3] = {0.18f, -0.025f * mirror, 0};
    for (int k = 0; k < 3; ++k) {
      out.force_near[s][k] = near[k];
      out.force_far[s][k] = far[k];
    }
    // sites without a rotation of their own: their pose is the body's orientation
    for (const int site : {robot.foot_site()[s], robot.hand_site()[s]}) {
      if (m.site_quat[4 * site] != 1) refuse(fmt::format("site {} is rotated", site));
    }
  }
  const char* waist[3] = {"waist_yaw_joint", "waist_roll_joint", "waist_pitch_joint"};
  for (int k = 0; k < 3; ++k) out.waist[k] = spec.Joint(waist[k]);
  out.foot_enter = static_cast<float>(spec.foot_force.enter);
  out.foot_leave = static_cast<float>(spec.foot_force.leave);
  out.sole_friction = static_cast<float>(m.geom_friction[3 * robot.foot_geoms()[0].at(0)]);
  out.control_dt = static_cast<float>(spec.control_period);
  out.substeps = spec.physics_steps_per_control();
  if (config.action.delay_max > out.substeps) {
    throw ConfigError(
        fmt::format("task: action.delay_max: {} substeps is more than the {} of a control step",
                    config.action.delay_max,
                    out.substeps));
  }
  return out;
}

std::string TorsoBody(const RobotModel& robot) {
  const mjModel* m = robot.model();
  return mj_id2name(m, mjOBJ_BODY, m->site_bodyid[robot.imu_site().at(1)]);
}

BatchModelOptions TaskBatchOptions(const RobotModel& robot, const TaskConfig& config) {
  const RobotSpec& spec = robot.spec();
  BatchModelOptions options;
  options.feet = {spec.left_foot.body, spec.right_foot.body};
  options.frames = {spec.left_foot.site,
                    spec.right_foot.site,
                    spec.imus.at(1).site,
                    spec.hands.at(0).site,
                    spec.hands.at(1).site};
  options.pushes = {spec.base, spec.hands[0].body, spec.hands[1].body};
  if (NumTaskPushes(config) > kPushTorso) options.pushes.push_back(TorsoBody(robot));
  options.max_speed = config.episode.max_speed;
  return options;
}

}  // namespace silc
