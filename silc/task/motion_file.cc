// SPDX-License-Identifier: Apache-2.0
#include "silc/task/motion_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/limits.h"
#include "silc/base/nearest.h"
#include "silc/npz/npz.h"
#include "silc/robot/robot_model.h"
#include "silc/task/amass.h"

namespace silc {
namespace {

constexpr int kCsvRootColumns = 7;  // position, quaternion
constexpr double kCsvFps = 30;
constexpr double kOutsideAllowed = 0.3;  // [rad] retargeted motions touch the ends of the ranges
constexpr double kTwoPi = 6.283185307179586;

// A value of joint j into the clip: checked, and moved to the joint's range when it is a little
// out.
void AddAngle(
    double value, int joint, const std::string& where, const RobotModel& robot, MotionClip* clip) {
  const std::string& name = robot.spec().joints[joint];
  if (!std::isfinite(value) || std::abs(value) > kTwoPi) {
    throw ConfigError(fmt::format("{}: {} = {} rad is no joint angle", where, name, value));
  }
  const double inside = std::clamp(value, robot.q_min()[joint], robot.q_max()[joint]);
  const double out = std::abs(value - inside);
  if (out > kOutsideAllowed) {
    throw ConfigError(fmt::format(
        "{}: {} = {:.3f} rad is outside [{:.3f}, {:.3f}]; was the motion made for this robot?",
        where,
        name,
        value,
        robot.q_min()[joint],
        robot.q_max()[joint]));
  }
  if (out > 0) {
    ++clip->clamped;
    clip->worst = std::max(clip->worst, out);
  }
  clip->q.push_back(static_cast<float>(inside));
}

int NumLower(const RobotSpec& spec) { return static_cast<int>(spec.Actor("lower").joints.size()); }

void CheckRobot(const RobotModel& robot) {
  const RobotSpec& spec = robot.spec();
  if (static_cast<int>(TaskOrder(spec).size()) > NumLower(spec)) return;
  throw ConfigError(spec.file +
                    ": motions are for arms, and this robot has none: no actor 'upper'");
}

void CheckFrames(std::int64_t frames, const std::string& file) {
  if (frames >= 2 && frames <= kMaxMotionFrames) return;
  throw ConfigError(
      fmt::format("{}: {} frames; a motion has 2 to {}", file, frames, kMaxMotionFrames));
}

}  // namespace

MotionClip ParseMotionCsv(std::string_view text, const std::string& file, const RobotModel& robot) {
  CheckRobot(robot);
  const int expected = kCsvRootColumns + robot.num_joints();
  MotionClip clip{.file = file, .format = "csv", .joints = robot.num_joints(), .fps = kCsvFps};
  std::vector<double> values(expected);
  for (int line = 1; !text.empty(); ++line) {
    const auto end = text.find('\n');
    std::string_view row = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
    const std::string where = fmt::format("{}:{}", file, line);
    if (row.find_first_not_of(" \t") == std::string_view::npos) {
      if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) break;
      throw ConfigError(where + ": empty line between frames");
    }
    int columns = 0;
    while (true) {
      const auto comma = row.find(',');
      std::string_view cell = row.substr(0, comma);
      const auto first = cell.find_first_not_of(" \t");
      cell = first == std::string_view::npos ? std::string_view() : cell.substr(first);
      while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\t')) cell.remove_suffix(1);
      double value = 0;
      const auto [stop, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
      if (error != std::errc() || stop != cell.data() + cell.size() || !std::isfinite(value)) {
        throw ConfigError(fmt::format(
            "{}: column {}: '{}' is no finite number", where, columns + 1, cell.substr(0, 40)));
      }
      if (columns < expected) values[columns] = value;
      ++columns;
      if (comma == std::string_view::npos) break;
      row.remove_prefix(comma + 1);
    }
    if (columns != expected) {
      throw ConfigError(
          fmt::format("{}: {} columns, {} expected: root position 3, quaternion xyzw 4, joints {}",
                      where,
                      columns,
                      expected,
                      clip.joints));
    }
    double norm2 = 0;
    for (int k = 3; k < 7; ++k) norm2 += values[k] * values[k];
    if (!(std::abs(norm2 - 1) < 0.05)) {
      throw ConfigError(fmt::format(
          "{}: columns 4 to 7 are no unit quaternion (squared length {:.3f})", where, norm2));
    }
    for (int j = 0; j < clip.joints; ++j) {
      AddAngle(values[kCsvRootColumns + j], j, where, robot, &clip);
    }
    ++clip.frames;
    if (clip.frames > kMaxMotionFrames) CheckFrames(clip.frames, file);
  }
  CheckFrames(clip.frames, file);
  return clip;
}

MotionClip ParseMotionNpz(std::string_view bytes,
                          const std::string& file,
                          const RobotModel& robot) {
  CheckRobot(robot);
  const NpzFile npz = ParseNpz(bytes, file);
  if (npz.Has("poses") && !npz.Has("joint_pos")) return RetargetAmass(npz, robot);
  MotionClip clip{.file = file, .format = "mjlab", .joints = robot.num_joints()};
  clip.fps = npz["fps"].AsDouble();
  if (!(clip.fps >= 1 && clip.fps <= 1000)) {
    npz["fps"].Fail(fmt::format("{} frames per second is outside [1, 1000]", clip.fps));
  }
  const NpyArray& joint_pos = npz["joint_pos"];
  const std::vector<double> values = joint_pos.AsDoubles({kAnySize, clip.joints});
  CheckFrames(joint_pos.shape()[0], file);
  clip.frames = static_cast<int>(joint_pos.shape()[0]);
  std::vector<int> column(clip.joints);
  for (int j = 0; j < clip.joints; ++j) column[j] = j;
  if (npz.Has("joint_names")) {
    const std::vector<std::string> names = npz["joint_names"].AsStrings({clip.joints});
    for (int j = 0; j < clip.joints; ++j) {
      const std::string& joint = robot.spec().joints[j];
      const auto at = std::find(names.begin(), names.end(), joint);
      if (at == names.end())
        npz["joint_names"].Fail("no '" + joint + "'" + DidYouMean(joint, names));
      column[j] = static_cast<int>(at - names.begin());
    }
  }
  clip.q.reserve(values.size());
  for (int f = 0; f < clip.frames; ++f) {
    const std::string where = fmt::format("{}: joint_pos[{}]", file, f);
    for (int j = 0; j < clip.joints; ++j) {
      AddAngle(
          values[static_cast<std::size_t>(f) * clip.joints + column[j]], j, where, robot, &clip);
    }
  }
  return clip;
}

MotionClip ReadMotion(const std::string& path, const RobotModel& robot) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".csv") return ParseMotionCsv(ReadFile(path, kMaxMotionBytes), path, robot);
  if (ending == ".npz") return ParseMotionNpz(ReadFile(path, kMaxMotionBytes), path, robot);
  throw ConfigError(path + ": a motion is a .csv or a .npz (mjlab or AMASS)");
}

std::vector<MotionClip> ReadMotions(const std::vector<std::string>& paths,
                                    const RobotModel& robot,
                                    std::int64_t most) {
  std::vector<MotionClip> clips;
  std::int64_t frames = 0;
  for (const std::string& path : paths) {
    clips.push_back(ReadMotion(path, robot));
    if ((frames += clips.back().frames) > most) {
      throw ConfigError(
          fmt::format("{}: with it the motions have more than {} frames", path, most));
    }
  }
  return clips;
}

std::string DescribeMotion(const MotionClip& clip, const RobotModel& robot) {
  std::string text = fmt::format("{}: {}, {} frames at {:g} per second, {:.2f} s\n",
                                 clip.file,
                                 clip.format,
                                 clip.frames,
                                 clip.fps,
                                 clip.duration());
  if (clip.clamped > 0) {
    text +=
        fmt::format("{} values outside a joint's range, by up to {:.3f} rad: moved to its end\n",
                    clip.clamped,
                    clip.worst);
  }
  text += fmt::format("{:28} {:>8} {:>8} {:>10}\n", "joint", "min", "max", "speed");
  text += fmt::format("{:28} {:>8} {:>8} {:>10}\n", "", "rad", "rad", "rad/s");
  const std::vector<int> order = TaskOrder(robot.spec());
  for (std::size_t t = NumLower(robot.spec()); t < order.size(); ++t) {
    const int j = order[t];
    float low = clip.q[j], high = clip.q[j];
    double speed = 0;
    for (int f = 0; f < clip.frames; ++f) {
      const float q = clip.q[static_cast<std::size_t>(f) * clip.joints + j];
      low = std::min(low, q);
      high = std::max(high, q);
      if (f == 0) continue;
      speed = std::max(speed,
                       std::abs(static_cast<double>(q) -
                                clip.q[static_cast<std::size_t>(f - 1) * clip.joints + j]) *
                           clip.fps);
    }
    const auto& limit = robot.spec().velocity_limit;
    const bool fast = limit.size() > 0 && speed > limit[j];
    text += fmt::format("{:28} {:8.3f} {:8.3f} {:10.2f}{}\n",
                        robot.spec().joints[j],
                        low,
                        high,
                        speed,
                        fast ? fmt::format("  beyond the motor's {:g}", limit[j]) : "");
  }
  return text;
}

MotionLibrary::MotionLibrary(const std::vector<MotionClip>& clips,
                             double control_dt,
                             const RobotSpec& robot) {
  if (clips.empty()) return;
  const std::vector<int> order = TaskOrder(robot);
  const int lower = NumLower(robot), upper = static_cast<int>(order.size()) - lower;
  const auto count_of = [&](const MotionClip& clip) {
    return std::floor(clip.duration() / control_dt + 1e-9) + 1;
  };
  // a frame per second becomes fifty
  double all = 0;
  for (const MotionClip& clip : clips) {
    all += count_of(clip);
    if (all <= kMaxMotionTable) continue;
    throw ConfigError(fmt::format("{}: with it the motions have more than {} frames of {:g} s",
                                  clip.file,
                                  kMaxMotionTable,
                                  control_dt));
  }
  frames_.reserve(static_cast<std::size_t>(all) * kUpperJoints);
  first_.push_back(0);
  for (const MotionClip& clip : clips) {
    const int count = static_cast<int>(count_of(clip));
    for (int i = 0; i < count; ++i) {
      const double at = std::min(i * control_dt * clip.fps, clip.frames - 1.0);
      const int f = std::min(static_cast<int>(at), clip.frames - 2);
      const auto x = static_cast<float>(at - f);
      for (int j = 0; j < kUpperJoints; ++j) {
        if (j >= upper) {
          frames_.push_back(0);
          continue;
        }
        const int joint = order[lower + j];
        const float a = clip.q[static_cast<std::size_t>(f) * clip.joints + joint];
        const float b = clip.q[static_cast<std::size_t>(f + 1) * clip.joints + joint];
        frames_.push_back(a + x * (b - a));
      }
    }
    first_.push_back(static_cast<int>(frames_.size() / kUpperJoints));
  }
}

}  // namespace silc
