// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "silc/base/limits.h"
#include "silc/task/arm_reference.h"

namespace silc {

class RobotModel;
struct RobotSpec;

/// A recorded motion of the robot's joints.
struct MotionClip {
  std::string file;
  std::string format;  // "csv", "mjlab"
  int joints = 0;      // of the robot
  double fps = 0;      // [1/s]
  int frames = 0;
  std::vector<float> q;  // (frames, joints) [rad], robot order, inside the joint ranges
  int clamped = 0;       // values that were outside a joint's range and were moved to its end
  double worst = 0;      // [rad] how far the worst was outside; amass: largest error of a direction

  double duration() const { return (frames - 1) / fps; }  // [s]
};

/// Reads a motion file; the name's end says what it is.
///   .csv  a column per number at 30 frames per second: root position 3 [m], root quaternion xyzw
///   4,
///         the joints in robot order [rad], 36 for the G1; no header
///   .npz  mjlab: fps and joint_pos (frames, joints) [rad]; joint_names, when present, gives their
///         order. AMASS, for the G1 alone (amass.h)
/// The robot must have an actor `upper`: its joints are what a motion is for.
/// Throws ConfigError, naming line or array, for other files: fewer than 2 frames, more than
/// kMaxMotionFrames, wrong width, NaN, infinities, angles beyond ±2π or more than 0.3 rad outside a
/// joint's range, a quaternion that is none, a frame rate outside [1, 1000].
MotionClip ReadMotion(const std::string& path, const RobotModel& robot);
MotionClip ParseMotionCsv(std::string_view text, const std::string& file, const RobotModel& robot);
MotionClip ParseMotionNpz(std::string_view bytes, const std::string& file, const RobotModel& robot);

/// All of a training's motions, in the order of their files. Throws ConfigError as ReadMotion()
/// does, and, naming the file, once they have more than `most` frames together: no more than that
/// and one file are ever kept.
std::vector<MotionClip> ReadMotions(const std::vector<std::string>& paths,
                                    const RobotModel& robot,
                                    std::int64_t most = kMaxMotionTable);

/// What `silc motion inspect` prints: format, frames, rate, duration, and per arm joint range and
/// largest speed, with those beyond the joint's limit marked.
std::string DescribeMotion(const MotionClip& clip, const RobotModel& robot);

/// Arm references from clips, resampled to the control period, and the memory behind the table.
class MotionLibrary {
 public:
  MotionLibrary() = default;
  /// Throws ConfigError where the clips have more than kMaxMotionTable frames together.
  /// @param robot  the clips'; its actor `upper` says whose angles are kept, and in which order
  MotionLibrary(const std::vector<MotionClip>& clips, double control_dt, const RobotSpec& robot);

  int num_clips() const { return static_cast<int>(first_.empty() ? 0 : first_.size() - 1); }
  MotionTable view() const { return {frames_.data(), first_.data(), num_clips()}; }

 private:
  std::vector<float> frames_;  // (all, kUpperJoints), zero beyond the robot's own
  std::vector<int> first_;
};

}  // namespace silc
