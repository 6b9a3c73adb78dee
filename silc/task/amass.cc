// SPDX-License-Identifier: Apache-2.0
#include "silc/task/amass.h"

#include <fmt/format.h>

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/limits.h"
#include "silc/npz/npz.h"

namespace silc {
namespace {

// joints of SMPL and SMPL-H, left and right
constexpr int kCollar[2] = {13, 14}, kShoulder[2] = {16, 17}, kElbow[2] = {18, 19};
constexpr int kSmplNumbers = 66;      // 22 body joints; hands and face follow
constexpr int kSolvedJoints = 4;      // of an arm
constexpr double kMaxAxisAngle = 20;  // [rad] of an axis-angle vector: a few turns at most

Eigen::Matrix3d Rotation(const double* pose, int joint) {
  const Eigen::Vector3d v(pose[3 * joint], pose[3 * joint + 1], pose[3 * joint + 2]);
  const double angle = v.norm();
  if (angle < 1e-12) return Eigen::Matrix3d::Identity();
  return Eigen::AngleAxisd(angle, v / angle).toRotationMatrix();
}

double AngleBetween(const Eigen::Vector3d& a, const Eigen::Vector3d& b) {
  return std::atan2(a.cross(b).norm(), a.dot(b));
}

}  // namespace

std::array<ArmDirections, 2> SmplArmDirections(const double* pose) {
  // SMPL's x left, y up, z forward → x forward, y left, z up
  Eigen::Matrix3d axes;
  axes << 0, 0, 1, 1, 0, 0, 0, 1, 0;
  std::array<ArmDirections, 2> out;
  for (int s = 0; s < 2; ++s) {
    const Eigen::Vector3d along(s == 0 ? 1 : -1, 0, 0);
    const Eigen::Matrix3d upper = Rotation(pose, kCollar[s]) * Rotation(pose, kShoulder[s]);
    out[s].upper = axes * (upper * along);
    out[s].fore = axes * (upper * Rotation(pose, kElbow[s]) * along);
  }
  return out;
}

bool HasG1Arms(const RobotModel& robot) {
  const RobotSpec& spec = robot.spec();
  if (spec.num_joints() != kTaskJoints || !robot.has_hands()) return false;
  const char* side[2] = {"left_", "right_"};
  const char* joint[kSolvedJoints] = {
      "shoulder_pitch_joint", "shoulder_roll_joint", "shoulder_yaw_joint", "elbow_joint"};
  for (int s = 0; s < 2; ++s) {
    for (int j = 0; j < kSolvedJoints; ++j) {
      if (spec.joints[kLowerJoints + s * kArmJoints + j] != std::string(side[s]) + joint[j]) {
        return false;
      }
    }
  }
  return true;
}

ArmRetargeter::ArmRetargeter(const RobotModel& robot) : robot_(robot), data_(robot.MakeData()) {
  SILC_CHECK(HasG1Arms(robot));  // RetargetAmass() has looked
  const mjModel& m = *robot.model();
  for (int s = 0; s < 2; ++s) {
    const int first = kLowerJoints + s * kArmJoints;
    const auto body = [&](int joint) {
      return m.jnt_bodyid[m.dof_jntid[robot.dof_address()[first + joint]]];
    };
    shoulder_[s] = body(2);  // the yaw link's origin lies on the upper arm's axis
    elbow_[s] = body(3);
    wrist_[s] = robot.hand_body()[s];
  }
}

std::array<ArmDirections, 2> ArmRetargeter::Directions(const float* arms) {
  const mjModel& m = *robot_.model();
  for (int j = 0; j < kUpperJoints; ++j) {
    data_->qpos[robot_.qpos_address()[kLowerJoints + j]] = arms[j];
  }
  mj_kinematics(&m, data_.get());
  std::array<ArmDirections, 2> out;
  for (int s = 0; s < 2; ++s) {
    const auto at = [&](int body) { return Eigen::Vector3d(data_->xpos + 3 * body); };
    out[s].upper = (at(elbow_[s]) - at(shoulder_[s])).normalized();
    out[s].fore = (at(wrist_[s]) - at(elbow_[s])).normalized();
  }
  return out;
}

double ArmRetargeter::Solve(const std::array<ArmDirections, 2>& wanted, float* arms) {
  using Errors = Eigen::Matrix<double, 6, 1>;
  // both arms at once: their joints do not act on each other
  const auto errors = [&](const float* q, Errors out[2]) {
    const auto now = Directions(q);
    for (int s = 0; s < 2; ++s) {
      out[s].head<3>() = now[s].upper - wanted[s].upper;
      out[s].tail<3>() = now[s].fore - wanted[s].fore;
    }
  };
  for (int s = 0; s < 2; ++s) {
    for (int j = kSolvedJoints; j < kArmJoints; ++j) arms[s * kArmJoints + j] = 0;
  }
  Errors e[2], moved[2];
  errors(arms, e);
  double damping[2] = {1e-3, 1e-3};
  for (int iteration = 0; iteration < 40; ++iteration) {
    Eigen::Matrix<double, 6, kSolvedJoints> J[2];
    float trial[kUpperJoints];
    for (int j = 0; j < kSolvedJoints; ++j) {
      constexpr float kStep =
          1e-3f;  // [rad] qpos is double, so the difference is good to 1e-3 · curvature
      std::copy(arms, arms + kUpperJoints, trial);
      for (int s = 0; s < 2; ++s) trial[s * kArmJoints + j] += kStep;
      errors(trial, moved);
      for (int s = 0; s < 2; ++s) {
        const double h = double(trial[s * kArmJoints + j]) - arms[s * kArmJoints + j];
        J[s].col(j) = (moved[s] - e[s]) / h;
      }
    }
    std::copy(arms, arms + kUpperJoints, trial);
    for (int s = 0; s < 2; ++s) {
      Eigen::Matrix4d H = J[s].transpose() * J[s];
      H.diagonal().array() += damping[s];
      const Eigen::Vector4d step = -H.ldlt().solve(J[s].transpose() * e[s]);
      for (int j = 0; j < kSolvedJoints; ++j) {
        const int joint = kLowerJoints + s * kArmJoints + j;
        trial[s * kArmJoints + j] =
            static_cast<float>(std::clamp(arms[s * kArmJoints + j] + std::clamp(step[j], -0.3, 0.3),
                                          robot_.q_min()[joint],
                                          robot_.q_max()[joint]));
      }
    }
    errors(trial, moved);
    double progress = 0;
    for (int s = 0; s < 2; ++s) {
      const double gain = e[s].squaredNorm() - moved[s].squaredNorm();
      if (gain > 0) {
        std::copy_n(trial + s * kArmJoints, kArmJoints, arms + s * kArmJoints);
        e[s] = moved[s];
        damping[s] = std::max(damping[s] / 3, 1e-6);
        progress = std::max(progress, gain);
      } else {
        damping[s] = std::min(damping[s] * 10, 1e3);
        progress = std::max(progress, damping[s] < 1e2 ? 1e-9 : 0.0);
      }
    }
    if (progress < 1e-10) break;
  }
  const auto reached = Directions(arms);
  double worst = 0;
  for (int s = 0; s < 2; ++s) {
    worst = std::max({worst,
                      AngleBetween(reached[s].upper, wanted[s].upper),
                      AngleBetween(reached[s].fore, wanted[s].fore)});
  }
  return worst;
}

MotionClip RetargetAmass(const NpzFile& file, const RobotModel& robot) {
  if (!HasG1Arms(robot)) {
    throw ConfigError(file.file() + ": AMASS poses are retargeted to the G1's arms alone, not to " +
                      robot.spec().name + "'s; give this robot's own angles (joint_pos)");
  }
  MotionClip clip{.file = file.file(), .format = "amass", .joints = robot.num_joints()};
  const NpyArray& rate =
      file[file.Has("mocap_frame_rate") ? "mocap_frame_rate" : "mocap_framerate"];
  const double fps = rate.AsDouble();
  if (!(fps >= 1 && fps <= 1000)) {
    rate.Fail(fmt::format("{} frames per second is outside [1, 1000]", fps));
  }
  const NpyArray& poses = file["poses"];
  const std::vector<double> values = poses.AsDoubles({kAnySize, kAnySize});
  const std::int64_t frames = poses.shape()[0], width = poses.shape()[1];
  if (width < kSmplNumbers) {
    poses.Fail(fmt::format(
        "{} numbers per frame; SMPL-H has 156, and the body alone {}", width, kSmplNumbers));
  }
  const int every = std::max(1, static_cast<int>(std::floor(fps / 30 + 1e-9)));
  if (frames < 2 * every || frames > kMaxMotionFrames) {
    poses.Fail(fmt::format("{} frames at {:g} per second; a motion has {} to {}",
                           frames,
                           fps,
                           2 * every,
                           kMaxMotionFrames));
  }
  clip.fps = fps / every;
  ArmRetargeter retargeter(robot);
  float arms[kUpperJoints] = {};
  for (std::int64_t f = 0; f < frames; f += every) {
    const double* pose = &values[static_cast<std::size_t>(f * width)];
    for (int k = 0; k < kSmplNumbers; ++k) {
      if (std::abs(pose[k]) > kMaxAxisAngle)
        poses.Fail(fmt::format("[{}, {}] = {} is no angle", f, k, pose[k]));
    }
    clip.worst = std::max(clip.worst, retargeter.Solve(SmplArmDirections(pose), arms));
    for (int j = 0; j < kLowerJoints; ++j) {
      clip.q.push_back(static_cast<float>(robot.spec().StandingPose().q[j]));
    }
    clip.q.insert(clip.q.end(), arms, arms + kUpperJoints);
    ++clip.frames;
  }
  return clip;
}

}  // namespace silc
