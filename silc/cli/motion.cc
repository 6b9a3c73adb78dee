// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "silc/base/file.h"
#include "silc/base/utf8.h"
#include "silc/cli/output_path.h"
#include "silc/cli/verbs.h"
#include "silc/plot/figure.h"
#include "silc/robot/robot_model.h"
#include "silc/task/motion_file.h"
#include "silc/task/task_robot.h"

namespace silc {
namespace {

struct MotionArguments {
  std::string file, robot = kDefaultRobot, plot;
};

// The arms, which are all the task takes of a motion: angles, and the fastest joint of each.
std::string MotionSvg(const MotionClip& clip, const RobotModel& robot) {
  plot::Figure figure;
  figure.title = clip.file;
  figure.subtitle = fmt::format("{}, {} frames at {:g} per second: {:.2f} s",
                                clip.format,
                                clip.frames,
                                clip.fps,
                                clip.duration());
  figure.columns = 2;
  std::vector<double> time;
  for (int f = 0; f < clip.frames; ++f) time.push_back(f / clip.fps);
  const auto at = [&](int frame, int joint) {
    return static_cast<double>(clip.q[static_cast<std::size_t>(frame) * clip.joints + joint]);
  };
  // the joints in two halves: the left arm and the right where `upper` lists one after the other
  const std::vector<int>& upper = robot.spec().Actor("upper").joints;
  const std::size_t half = (upper.size() + 1) / 2;
  for (int arm = 0; arm < 2; ++arm) {
    plot::Panel angles;
    angles.title = arm == 0 ? "left arm" : "right arm";
    angles.x.label = "time [s]";
    angles.y.label = "[rad]";
    plot::Panel speed = angles;
    speed.title += ", fastest joint";
    speed.y.label = "[rad/s]";
    plot::Series fastest;
    fastest.x = time;
    fastest.y.assign(clip.frames, 0.0);
    const std::size_t first = arm == 0 ? 0 : half, end = arm == 0 ? half : upper.size();
    for (std::size_t k = first; k < end; ++k) {
      const int joint = upper[k];
      plot::Series series;
      series.label = robot.spec().joints[joint];
      series.x = time;
      series.color = static_cast<int>(k - first) + 1;
      for (int f = 0; f < clip.frames; ++f) {
        series.y.push_back(at(f, joint));
        if (f == 0) continue;
        const double v = std::abs(at(f, joint) - at(f - 1, joint)) * clip.fps;
        fastest.y[f] = std::max(fastest.y[f], v);
      }
      angles.series.push_back(std::move(series));
    }
    speed.series.push_back(std::move(fastest));
    figure.panels.push_back(std::move(angles));
    figure.panels.push_back(std::move(speed));
  }
  return plot::RenderSvg(figure);
}

void Inspect(const MotionArguments& args) {
  RequireWritable({{"--plot", args.plot}}, {args.file, args.robot});
  const RobotModel robot = RobotModel::Load(args.robot);
  const MotionClip clip = ReadMotion(args.file, robot);
  fmt::print("{}", Printable(DescribeMotion(clip, robot)));
  if (args.plot.empty()) return;
  WriteFileAtomically(args.plot, MotionSvg(clip, robot));
  fmt::print("wrote {}\n", Printable(args.plot));
}

}  // namespace

void AddMotion(CLI::App* app) {
  auto args = std::make_shared<MotionArguments>();
  CLI::App* motion = app->add_subcommand("motion", "recorded motions for the arms");
  motion->require_subcommand(1);
  CLI::App* inspect = motion->add_subcommand("inspect", "what is in a motion file");
  inspect->add_option("file", args->file, ".csv (36 columns), or .npz of mjlab or AMASS")
      ->required();
  inspect->add_option("--robot", args->robot, "robot by name, or its robot.yaml")
      ->capture_default_str();
  inspect->add_option("--plot", args->plot, "SVG file of the arms' joints");
  inspect->callback([args] { Inspect(*args); });
}

}  // namespace silc
