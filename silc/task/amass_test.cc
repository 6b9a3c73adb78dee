// SPDX-License-Identifier: Apache-2.0
#include "silc/task/amass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/rng.h"
#include "silc/npz/npz.h"

namespace silc {
namespace {

const RobotModel& G1() {
  static const RobotModel robot = RobotModel::Load("g1");
  return robot;
}
constexpr double kHalfPi = 1.5707963267948966;

void ExpectNear(const Eigen::Vector3d& a, const Eigen::Vector3d& b) {
  EXPECT_LT((a - b).norm(), 1e-9) << a.transpose() << " against " << b.transpose();
}

TEST(Smpl, DirectionsOfPosesOneCanShow) {
  std::vector<double> pose(66, 0.0);
  auto arms = SmplArmDirections(pose.data());  // T pose: arms sideways
  ExpectNear(arms[0].upper, {0, 1, 0});
  ExpectNear(arms[0].fore, {0, 1, 0});
  ExpectNear(arms[1].upper, {0, -1, 0});
  pose[16 * 3 + 2] = -kHalfPi;  // left arm down: SMPL's z points forward
  pose[17 * 3 + 2] = kHalfPi;
  pose[18 * 3 + 1] = -kHalfPi;  // left elbow bent about SMPL's y, before the shoulder turned it
  arms = SmplArmDirections(pose.data());
  ExpectNear(arms[0].upper, {0, 0, -1});
  ExpectNear(arms[1].upper, {0, 0, -1});
  ExpectNear(arms[1].fore, {0, 0, -1});
  ExpectNear(arms[0].fore, {1, 0, 0});  // forearm forward
}

// Poses the robot has are found again: the robot's own directions are the reference.
TEST(Retarget, ReachesDirectionsTheRobotCanTake) {
  ArmRetargeter retargeter(G1());
  Rng rng(2);
  double worst = 0;
  for (int trial = 0; trial < 40; ++trial) {
    float pose[kUpperJoints] = {}, found[kUpperJoints] = {};
    for (int s = 0; s < 2; ++s) {
      const float mirror = s == 0 ? 1.0f : -1.0f;
      pose[7 * s] = static_cast<float>(rng.Uniform(-1.2, 0.8));
      pose[7 * s + 1] = mirror * static_cast<float>(rng.Uniform(0.1, 1.2));
      pose[7 * s + 2] = static_cast<float>(rng.Uniform(-0.8, 0.8));
      pose[7 * s + 3] = static_cast<float>(rng.Uniform(-0.6, 1.2));
    }
    const auto wanted = retargeter.Directions(pose);
    worst = std::max(worst, retargeter.Solve(wanted, found));
    const auto reached = retargeter.Directions(found);
    for (int s = 0; s < 2; ++s) {
      EXPECT_LT((reached[s].upper - wanted[s].upper).norm(), 2e-3);
      EXPECT_LT((reached[s].fore - wanted[s].fore).norm(), 2e-3);
    }
  }
  EXPECT_LT(worst, 2e-3);  // [rad] the search stops at gains of 1e-10 in squared error
}

std::string File(double fps, int frames, int width, double value) {
  return EncodeNpz(
      {{"mocap_framerate", {}, {fps}},
       {"poses",
        {frames, width},
        std::vector<double>(static_cast<std::size_t>(frames) * static_cast<std::size_t>(width),
                            value)}});
}
std::string ErrorOf(const std::string& bytes) {
  try {
    ParseMotionNpz(bytes, "a.npz", G1());
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Amass, AClipIsThinnedRetargetedAndInsideTheJoints) {
  // 120 frames per second, left arm lowered from the T pose over one second
  std::vector<double> poses(121 * 156, 0.0);
  for (int f = 0; f <= 120; ++f)
    poses[static_cast<std::size_t>(f) * 156 + 16 * 3 + 2] = -kHalfPi * f / 120.0;
  const MotionClip clip = ParseMotionNpz(
      EncodeNpz({{"mocap_framerate", {}, {120}}, {"poses", {121, 156}, poses}}), "a.npz", G1());
  EXPECT_EQ(clip.format, "amass");
  EXPECT_EQ(clip.frames, 31);
  EXPECT_EQ(clip.fps, 30);
  ArmRetargeter retargeter(G1());
  const auto end = retargeter.Directions(&clip.q[30 * kTaskJoints + kLowerJoints]);
  // the G1's forearm cannot be quite straight: the elbow stops a little before
  EXPECT_GT(-end[0].upper.z(), 0.95);
  const auto start = retargeter.Directions(&clip.q[kLowerJoints]);
  EXPECT_GT(start[0].upper.y(), 0.9);
  EXPECT_LT(start[1].upper.y(), -0.9);
  for (int f = 0; f < clip.frames; ++f) {
    for (int j = 0; j < kTaskJoints; ++j) {
      const float q = clip.q[static_cast<std::size_t>(f) * kTaskJoints + j];
      ASSERT_GE(q, G1().q_min()[j] - 1e-6);
      ASSERT_LE(q, G1().q_max()[j] + 1e-6);
    }
  }
}

TEST(Amass, SlipsAreRefused) {
  EXPECT_NE(ErrorOf(File(0, 10, 156, 0)).find("outside [1, 1000]"), std::string::npos);
  EXPECT_NE(ErrorOf(File(30, 1, 156, 0)).find("1 frames"), std::string::npos);
  EXPECT_NE(ErrorOf(File(30, 10, 60, 0)).find("60 numbers"), std::string::npos);
  EXPECT_NE(ErrorOf(File(30, 10, 156, std::nan(""))).find("poses"), std::string::npos);
  EXPECT_NE(ErrorOf(File(30, 10, 156, 1e3)).find("no angle"), std::string::npos);
  EXPECT_NE(ErrorOf(EncodeNpz({{"poses", {2, 156}, std::vector<double>(312, 0.0)}}))
                .find("mocap_framerate"),
            std::string::npos);
}

}  // namespace
}  // namespace silc
