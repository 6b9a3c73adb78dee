// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "silc/base/file.h"
#include "silc/cli/verbs.h"
#include "silc/plot/figure.h"
#include "silc/robot/robot_model.h"
#include "silc/task/motion_file.h"

namespace silc {
namespace {

// Both arms side by side, a colour per joint; at most some 2000 points a curve.
plot::Figure MotionFigure(const MotionClip& clip, const RobotModel& robot) {
  plot::Figure figure{.title = clip.file,
                      .subtitle = fmt::format(
                          "{}, {} frames at {:g} per second", clip.format, clip.frames, clip.fps),
                      .columns = 2,
                      .panel_height = 320};
  constexpr int kPerArm = kUpperJoints / 2;
  const int stride = std::max(1, clip.frames / 2000);
  for (int arm = 0; arm < 2; ++arm) {
    plot::Panel panel;
    panel.title = arm == 0 ? "left arm" : "right arm";
    panel.x.label = "time [s]";
    panel.y.label = "angle [rad]";
    for (int i = 0; i < kPerArm; ++i) {
      const int joint = kLowerJoints + arm * kPerArm + i;
      std::string label = robot.spec().joints[joint];
      for (const char* part : {"left_", "right_", "_joint"}) {
        if (const auto at = label.find(part); at != std::string::npos) {
          label.erase(at, std::string_view(part).size());
        }
      }
      plot::Series series{.label = label, .color = 1 + i % (plot::kNumColors - 1)};
      for (int f = 0; f < clip.frames; f += stride) {
        series.x.push_back(f / clip.fps);
        series.y.push_back(clip.q[static_cast<std::size_t>(f) * kTaskJoints + joint]);
      }
      panel.series.push_back(std::move(series));
    }
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

}  // namespace

void AddMotion(CLI::App* app) {
  struct Arguments {
    std::string file, plot;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* motion = app->add_subcommand("motion", "recorded motions, as references for the arms");
  motion->require_subcommand(1);
  CLI::App* inspect = motion->add_subcommand("inspect", "what is in a motion file");
  inspect
      ->add_option("file", args->file, ".csv (36 columns at 30 per second) or .npz (mjlab, AMASS)")
      ->required();
  inspect->add_option("--plot", args->plot, "write the arm joints over time, an SVG page");
  inspect->callback([args] {
    const RobotModel robot = RobotModel::Load("g1");
    const MotionClip clip = ReadMotion(args->file, robot);
    fmt::print("{}", DescribeMotion(clip, robot));
    if (args->plot.empty()) return;
    WriteFileAtomically(args->plot, plot::RenderSvg(MotionFigure(clip, robot)));
    fmt::print("wrote {}\n", args->plot);
  });
}

}  // namespace silc
