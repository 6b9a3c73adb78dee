// SPDX-License-Identifier: Apache-2.0
#include "silc/task/task_robot.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <array>
#include <cmath>

#include "silc/base/error.h"
#include "silc/physics/batch_model.h"
#include "silc/robot/robot_model.h"

namespace silc {

namespace {

[[noreturn]] void Refuse(const RobotSpec& spec, const std::string& why) {
  throw ConfigError(spec.file + ": the task cannot use this robot: " + why);
}

// Joint axes in the world, the robot upright in the zero pose: (joints of the model, 3).
std::vector<Eigen::Vector3d> ZeroPoseAxes(const RobotModel& robot) {
  const mjModel& m = *robot.model();
  const MjDataPtr data(mj_makeData(&m));
  for (int i = 0; i < m.nq; ++i) data->qpos[i] = 0;
  data->qpos[robot.base_qpos_address() + 3] = 1;
  mj_kinematics(&m, data.get());
  std::vector<Eigen::Vector3d> axes;
  for (int j = 0; j < m.njnt; ++j) axes.emplace_back(data->xaxis + 3 * j);
  return axes;
}

// Who does what, as task joints.
void FillRoles(const RobotModel& robot, const std::vector<int>& order, TaskRobot* out) {
  const RobotSpec& spec = robot.spec();
  const mjModel& m = *robot.model();
  if (!spec.has_roles) {
    Refuse(spec, "it has no `roles`, which say which joint is the knee; see docs/robots.md");
  }
  std::vector<int> task(spec.joints.size());
  for (std::size_t t = 0; t < order.size(); ++t) task[order[t]] = static_cast<int>(t);
  const auto joint = [&](int of_robot) { return of_robot < 0 ? -1 : task[of_robot]; };
  const JointRoles& roles = spec.roles;
  const std::array<int, 2>* from[kNumLegRoles] = {&roles.hip_pitch,
                                                  &roles.hip_roll,
                                                  &roles.hip_yaw,
                                                  &roles.knee,
                                                  &roles.ankle_pitch,
                                                  &roles.ankle_roll};
  int* to[kNumLegRoles] = {
      out->hip_pitch, out->hip_roll, out->hip_yaw, out->knee, out->ankle_pitch, out->ankle_roll};
  const std::vector<Eigen::Vector3d> axes = ZeroPoseAxes(robot);
  for (int role = 0; role < kNumLegRoles; ++role) {
    out->mirror[role] = 1;
    for (int s = 0; s < 2; ++s) {
      to[role][s] = joint((*from[role])[s]);
      if (to[role][s] >= 0) out->is_leg[to[role][s]] = true;
    }
    if (to[role][0] < 0) continue;
    // A turn about (x, y, z) is seen in the mirror, the plane y = 0, as one about (−x, y, −z).
    const Eigen::Vector3d& left = axes[m.dof_jntid[out->dof[to[role][0]]]];
    const Eigen::Vector3d& right = axes[m.dof_jntid[out->dof[to[role][1]]]];
    const Eigen::Vector3d image(-left.x(), left.y(), -left.z());
    out->mirror[role] = image.dot(right) < 0 ? -1.0f : 1.0f;
  }
  for (int k = 0; k < 3; ++k) out->waist[k] = joint(roles.waist[k]);
  for (int s = 0; s < 2; ++s) {
    out->knee_bend[s] = 1;
    if (out->knee[s] < 0) continue;
    // a knee bends to the side where its range is
    const int q = roles.knee[s];
    if (robot.q_min()[q] + robot.q_max()[q] < 0) out->knee_bend[s] = -1;
  }
}

void FillFeetAndHands(const RobotModel& robot, const std::vector<int>& order, TaskRobot* out) {
  const RobotSpec& spec = robot.spec();
  const mjModel& m = *robot.model();
  for (int s = 0; s < 2; ++s) {
    const mjtNum* p = m.site_pos + 3 * robot.foot_site()[s];
    const mjtNum* quat = m.site_quat + 4 * robot.foot_site()[s];
    mjtNum p_S[3] = {p[0], p[1], p[2]};
    if (quat[0] != 1) {
      mjtNum back[4];
      mju_negQuat(back, quat);
      mju_rotVecQuat(p_S, p, back);
    }
    for (int k = 0; k < 3; ++k) out->p_FS[s][k] = static_cast<float>(p_S[k]);
    if (!out->has_hands) continue;
    const HandSpec& hand = spec.hands[s];
    const int site = robot.hand_site()[s], body = robot.hand_body()[s];
    if (m.site_quat[4 * site] != 1) {
      Refuse(spec, "hands." + hand.name + ".site: " + hand.site + " is turned against its body");
    }
    for (int k = 0; k < 3; ++k) {
      out->p_HC[s][k] = static_cast<float>(m.body_ipos[3 * body + k]);
      const double palm = m.site_pos[3 * site + k];
      out->force_near[s][k] = static_cast<float>(hand.load.empty() ? palm : hand.load[0][k]);
      out->force_far[s][k] = static_cast<float>(hand.load.empty() ? palm : hand.load[1][k]);
    }
    // the joints that carry this hand, in task order
    std::vector<char> carries(m.nbody, 0);
    for (int b = body; b > 0; b = m.body_parentid[b]) carries[b] = 1;
    for (int t = out->num_lower; t < out->num_joints; ++t) {
      if (!carries[m.dof_bodyid[robot.dof_address()[order[t]]]]) continue;
      out->arm[s][out->arm_joints[s]++] = t;
    }
  }
}

}  // namespace

std::vector<int> TaskOrder(const RobotSpec& spec) {
  const JointGroup& lower = spec.Actor("lower");
  std::vector<int> order = lower.joints;
  int others = 0;
  for (const JointGroup& actor : spec.actors) {
    if (actor.name == "lower") continue;
    if (actor.name != "upper") {
      Refuse(spec, "actors: '" + actor.name + "' is neither 'lower' (legs) nor 'upper' (arms)");
    }
    others = static_cast<int>(actor.joints.size());
    order.insert(order.end(), actor.joints.begin(), actor.joints.end());
  }
  if (static_cast<int>(order.size()) > kTaskJoints) {
    Refuse(spec, fmt::format("{} joints; at most {} can be trained", order.size(), kTaskJoints));
  }
  if (others > kUpperJoints) {
    Refuse(spec,
           fmt::format("actors.upper: {} joints; at most {} can follow a reference. Put those that "
                       "need none, such as a head's, into `lower`",
                       others,
                       kUpperJoints));
  }
  return order;
}

std::vector<std::string> TaskJointNames(const RobotSpec& spec) {
  std::vector<std::string> names;
  for (const int joint : TaskOrder(spec)) names.push_back(spec.joints[joint]);
  return names;
}

TaskRobot MakeTaskRobot(const RobotModel& robot, const TaskConfig& config) {
  const RobotSpec& spec = robot.spec();
  const mjModel& m = *robot.model();
  const std::vector<int> order = TaskOrder(spec);
  if (spec.imus.empty()) Refuse(spec, "it has no `imus`; name a site of its base");

  TaskRobot out = {};
  out.num_joints = static_cast<int>(order.size());
  out.num_lower = static_cast<int>(spec.Actor("lower").joints.size());
  out.has_hands = spec.hands.size() == 2;
  out.nq = m.nq;
  out.nv = m.nv;
  out.base_qpos = robot.base_qpos_address();
  out.base_dof = robot.base_dof_address();
  const GainSet& gains = spec.Gains();
  const Pose& pose = spec.StandingPose();
  constexpr float kUnlimited = 1e9f;  // [rad/s]
  for (int t = 0; t < out.num_joints; ++t) {
    const int j = order[t];
    out.qpos[t] = robot.qpos_address()[j];
    out.dof[t] = robot.dof_address()[j];
    out.actuator[t] = robot.actuator()[j];
    out.default_q[t] = static_cast<float>(pose.q[j]);
    const double low = robot.q_min()[j], high = robot.q_max()[j];
    if (!std::isfinite(low) || !std::isfinite(high)) Refuse(spec, spec.joints[j] + " has no range");
    const double centre = (low + high) / 2, half = (high - low) / 2 * config.limits.soft_range;
    out.soft_low[t] = static_cast<float>(centre - half);
    out.soft_high[t] = static_cast<float>(centre + half);
    out.effort[t] = static_cast<float>(robot.effort_limit()[j]);
    out.max_velocity[t] =
        spec.velocity_limit.size() == 0 ? kUnlimited : static_cast<float>(spec.velocity_limit[j]);
    out.kp[t] = static_cast<float>(gains.kp[j]);
    out.kd[t] = static_cast<float>(gains.kd[j]);
    out.action_scale[t] = static_cast<float>(gains.action_scale[j]);
  }
  FillRoles(robot, order, &out);
  FillFeetAndHands(robot, order, &out);
  out.feet_apart = config.limits.feet_apart;
  out.swing_height = config.gait.swing_height;
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
  // a task copied from another robot's says so here, not by robots that fall into the floor
  constexpr double kFarFromPose = 0.08, kOutOfReach = 0.05;  // [m]
  const bool far = std::abs(config.episode.start_height - pose.base_height) > kFarFromPose;
  if (far || config.commands.height > pose.base_height + kOutOfReach) {
    throw ConfigError(fmt::format(
        "task: {}: {:g} m, but {} stands with its base at {:g} m: set episode.start_height, "
        "commands.height and episode.min_height for this robot",
        far ? "episode.start_height" : "commands.height",
        far ? config.episode.start_height : config.commands.height,
        spec.name,
        pose.base_height));
  }
  return out;
}

std::string TorsoBody(const RobotModel& robot) {
  if (robot.imu_site().size() < 2) return "";
  const mjModel* m = robot.model();
  const std::string body = mj_id2name(m, mjOBJ_BODY, m->site_bodyid[robot.imu_site()[1]]);
  return body == robot.spec().base ? "" : body;
}

namespace {

// A disturbance of a part that is not there would do nothing, and the task would look harder than
// it is.
void RefuseAbsentParts(const RobotModel& robot, const TaskConfig& config) {
  const auto& r = config.randomisation;
  const auto refuse = [&](const char* key, float value, const char* why) {
    if (value == 0) return;
    throw ConfigError(
        fmt::format("task: {}: {:g}, but {} {}; set it to 0", key, value, robot.spec().name, why));
  };
  if (TorsoBody(robot).empty()) {
    const char* why = "has no torso apart from its base (the second of `imus` would be in it)";
    refuse("push.torso_share", config.push.torso_share, why);
    refuse("randomisation.torso_mass_min", r.torso_mass_min, why);
    refuse("randomisation.torso_mass_max", r.torso_mass_max, why);
    refuse("randomisation.torso_com", r.torso_com, why);
  }
  if (!robot.has_hands()) {
    refuse("randomisation.hand_mass_min", r.hand_mass_min, "has no hands");
    refuse("randomisation.hand_mass_max", r.hand_mass_max, "has no hands");
  }
}

}  // namespace

BatchModelOptions TaskBatchOptions(const RobotModel& robot, const TaskConfig& config) {
  const RobotSpec& spec = robot.spec();
  RefuseAbsentParts(robot, config);
  BatchModelOptions options;
  options.feet = {spec.left_foot.body, spec.right_foot.body};
  if (spec.imus.empty()) Refuse(spec, "it has no `imus`; name a site of its base");
  // the second sits in the torso where that moves against the base
  const std::string& torso = spec.imus[spec.imus.size() > 1 ? 1 : 0].site;
  const bool hands = spec.hands.size() == 2;
  options.frames = {spec.left_foot.site,
                    spec.right_foot.site,
                    torso,
                    hands ? spec.hands[0].site : torso,
                    hands ? spec.hands[1].site : torso};
  options.pushes = {
      spec.base, hands ? spec.hands[0].body : spec.base, hands ? spec.hands[1].body : spec.base};
  if (NumTaskPushes(config) > kPushTorso) options.pushes.push_back(TorsoBody(robot));
  options.max_speed = config.episode.max_speed;
  return options;
}

}  // namespace silc
