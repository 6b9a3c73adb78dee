// SPDX-License-Identifier: Apache-2.0
#include "silc/report/picture.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "silc/robot/pose.h"
#include "silc/robot/robot_model.h"

// Drivers keep what they once allocated and are unloaded before the leak checker could tell their
// memory from ours: it is off in this test.
extern "C" int __lsan_is_turned_off() { return 1; }

namespace silc {
namespace {

// Share of pixels that differ from the same picture without the thing asked about.
double Changed(const Image& a, const Image& b) {
  int changed = 0;
  for (std::size_t i = 0; i < a.rgb.size(); i += 3) {
    int most = 0;
    for (std::size_t c = 0; c < 3; ++c)
      most = std::max(most, std::abs(int(a.rgb[i + c]) - int(b.rgb[i + c])));
    changed += most > 24;
  }
  return 3.0 * changed / double(a.rgb.size());
}

constexpr int kWidth = 160, kHeight = 200;  // [px]

TEST(Painter, DrawsTheRobotTheRightWayUpAndTheForceOnIt) {
  const RobotModel robot = RobotModel::Load("g1", {.visuals = true});
  std::string why;
  const auto painter = Painter::Create(*robot.model(), kWidth, kHeight, &why);
  if (!painter) GTEST_SKIP() << "no pictures here: " << why;

  const MjDataPtr data = robot.MakeData();
  StandInPose(robot, robot.spec().StandingPose(), data.get());
  mj_forward(robot.model(), data.get());
  const View view;
  const Image standing = painter->Draw(*data, view);
  ASSERT_EQ(int(standing.rgb.size()), 3 * kWidth * kHeight);

  // sky above, floor below: blue over red differs between the first and the last row
  const auto corner = [&](int y, int c) {
    return int(standing.rgb[std::size_t(y) * kWidth * 3 + c]);
  };
  EXPECT_GT(corner(0, 2) - corner(0, 0), corner(kHeight - 1, 2) - corner(kHeight - 1, 0));

  // the robot's own pixels: without it the picture is another one
  data->qpos[robot.base_qpos_address()] += 50;
  mj_forward(robot.model(), data.get());
  const double body = Changed(standing, painter->Draw(*data, view));
  EXPECT_GT(body, 0.05);  // a G1 seen whole covers a tenth to a third of the frame
  EXPECT_LT(body, 0.6);
  data->qpos[robot.base_qpos_address()] -= 50;
  mj_forward(robot.model(), data.get());

  // 100 N forward at the chest: an arrow, and nothing else
  const Image pushed = painter->Draw(*data, view, {{{0.1, 0, 0.9}, {100, 0, 0}}});
  const double arrow = Changed(standing, pushed);
  EXPECT_GT(arrow, 0.002);
  EXPECT_LT(arrow, 0.1);

  // the same scene gives the same picture
  EXPECT_EQ(Changed(painter->Draw(*data, view), standing), 0);
}

}  // namespace
}  // namespace silc
