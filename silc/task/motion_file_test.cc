// SPDX-License-Identifier: Apache-2.0
#include "silc/task/motion_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/rng.h"
#include "silc/npz/npz.h"
#include "silc/npz/zip.h"
#include "silc/robot/robot_model.h"

namespace silc {
namespace {

const RobotModel& G1() {
  static const RobotModel robot = RobotModel::Load("g1");
  return robot;
}

std::string Row(double arm = 0.1, int columns = 36) {
  std::string row = "0,0,0.79,0,0,0,1";
  for (int i = 7; i < columns; ++i) row += i >= 22 ? "," + std::to_string(arm) : ",0";
  return row + "\n";
}

std::string ErrorOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}
std::string CsvError(const std::string& text) {
  return ErrorOf([&] { ParseMotionCsv(text, "m.csv", G1()); });
}

std::string Npz(double fps, int frames, int joints, double value) {
  std::vector<NpzEntry> entries = {
      {"fps", {1}, {fps}},
      {"joint_pos",
       {frames, joints},
       std::vector<double>(static_cast<std::size_t>(frames) * static_cast<std::size_t>(joints),
                           value)}};
  return EncodeNpz(entries);
}
std::string NpzError(const std::string& bytes) {
  return ErrorOf([&] { ParseMotionNpz(bytes, "m.npz", G1()); });
}

TEST(MotionCsv, IsReadWhole) {
  const MotionClip clip = ParseMotionCsv(Row(0.1) + Row(0.2) + Row(0.3) + "\n", "m.csv", G1());
  EXPECT_EQ(clip.frames, 3);
  EXPECT_EQ(clip.fps, 30);
  EXPECT_NEAR(clip.duration(), 2 / 30.0, 1e-12);
  EXPECT_FLOAT_EQ(clip.q[kTaskJoints + 20], 0.2f);
  EXPECT_EQ(clip.q[kTaskJoints + 3], 0.0f);
  EXPECT_EQ(clip.clamped, 0);
}

TEST(MotionCsv, SlipsAreRefusedWithTheirPlace) {
  EXPECT_NE(CsvError(Row()).find("1 frames"), std::string::npos);
  EXPECT_NE(CsvError("").find("0 frames"), std::string::npos);
  EXPECT_NE(CsvError(Row() + Row(0.1, 35)).find("m.csv:2: 35 columns"), std::string::npos);
  EXPECT_NE(CsvError(Row() + Row(0.1, 40)).find("m.csv:2: 40 columns"), std::string::npos);
  EXPECT_NE(CsvError(Row() + "nan" + Row().substr(1)).find("m.csv:2: column 1"), std::string::npos);
  EXPECT_NE(CsvError("x,y\n" + Row()).find("'x' is no finite number"), std::string::npos);
  EXPECT_NE(CsvError(Row() + "\n" + Row()).find("m.csv:2: empty line"), std::string::npos);
  EXPECT_NE(CsvError(Row() + Row(8)).find("no joint angle"), std::string::npos);
  EXPECT_NE(CsvError(Row() + Row(2.9)).find("outside"), std::string::npos);
  std::string tilted = Row();
  tilted.replace(0, 16, "0,0,0.79,0,0,0,2");
  EXPECT_NE(CsvError(Row() + tilted).find("no unit quaternion"), std::string::npos);
}

TEST(MotionCsv, ValuesALittleOutsideAreMovedToTheEndAndCounted) {
  // 1.7 rad is beyond the wrists' ±1.614 by 0.086: two wrists of each arm, one frame
  const MotionClip clip = ParseMotionCsv(Row(0.1) + Row(1.5) + Row(1.7), "m.csv", G1());
  EXPECT_EQ(clip.clamped, 5);  // left and right wrist pitch and yaw, and the right shoulder roll
  EXPECT_NEAR(clip.worst, 1.7 - 1.5882, 1e-3);
  EXPECT_NE(DescribeMotion(clip, G1()).find("5 values outside"), std::string::npos);
}

TEST(MotionNpz, IsReadAndSlipsAreRefused) {
  const MotionClip clip = ParseMotionNpz(Npz(50, 5, 29, 0.05), "m.npz", G1());
  EXPECT_EQ(clip.frames, 5);
  EXPECT_EQ(clip.fps, 50);
  EXPECT_FLOAT_EQ(clip.q[40], 0.05f);
  EXPECT_NE(NpzError(Npz(0, 5, 29, 0)).find("outside [1, 1000]"), std::string::npos);
  EXPECT_NE(NpzError(Npz(50, 1, 29, 0)).find("1 frames"), std::string::npos);
  EXPECT_NE(NpzError(Npz(50, 5, 28, 0)).find("28"), std::string::npos);
  EXPECT_NE(NpzError(Npz(50, 5, 29, std::nan(""))).find("joint_pos"), std::string::npos);
  EXPECT_NE(NpzError("PK no zip").find("m.npz"), std::string::npos);
  EXPECT_NE(NpzError(EncodeNpz({{"fps", {1}, {50}}})).find("joint_pos"), std::string::npos);
  EXPECT_NE(ErrorOf([] { ReadMotion("walk.bvh", G1()); }).find(".csv"), std::string::npos);
  EXPECT_NE(ErrorOf([] { ReadMotion("missing.csv", G1()); }).find("missing.csv"),
            std::string::npos);
}

// joint_names as numpy writes fixed-width unicode; columns in another order are put right.
TEST(MotionNpz, NamesGiveTheOrderOfTheColumns) {
  constexpr int kWidth = 32;
  const auto names_npy = [&](const std::vector<std::string>& names) {
    std::string header = "{'descr': '<U32', 'fortran_order': False, 'shape': (29,), }";
    header.resize(117, ' ');
    header += '\n';
    std::string bytes = std::string("\x93NUMPY\x01\x00", 8) + '\x76' + '\0' + header;  // 118 bytes
    for (const std::string& name : names) {
      for (int i = 0; i < kWidth; ++i) {
        bytes += i < static_cast<int>(name.size()) ? name[static_cast<std::size_t>(i)] : '\0';
        bytes.append(3, '\0');
      }
    }
    return bytes;
  };
  std::vector<std::string> names = G1().spec().joints;
  std::reverse(names.begin(), names.end());
  std::vector<double> values(2 * kTaskJoints);
  for (int i = 0; i < 2 * kTaskJoints; ++i)
    values[static_cast<std::size_t>(i)] = 0.005 * (i % kTaskJoints);
  const auto file = [&] {
    return WriteZip({{"fps.npy", EncodeNpy({1}, {50})},
                     {"joint_pos.npy", EncodeNpy({2, kTaskJoints}, values)},
                     {"joint_names.npy", names_npy(names)}});
  };
  const MotionClip clip = ParseMotionNpz(file(), "m.npz", G1());
  for (int j = 0; j < kTaskJoints; ++j) EXPECT_NEAR(clip.q[j], 0.005 * (kTaskJoints - 1 - j), 1e-6);
  names[4] = "right_elbow_jiont";
  EXPECT_NE(NpzError(file()).find("no '"), std::string::npos);
}

// Bytes changed at random in good files: read or refused, never worse.
TEST(MotionFiles, DamageIsReadOrRefused) {
  const std::string csv = Row(0.1) + Row(0.2) + Row(0.3), npz = Npz(50, 4, 29, 0.1);
  Rng rng(5);
  int refused = 0;
  for (int i = 0; i < 600; ++i) {
    const bool text = i % 2 == 0;
    std::string bytes = text ? csv : npz;
    for (int n = 0; n < 3; ++n) {
      bytes[static_cast<std::size_t>(rng.Uniform() * static_cast<double>(bytes.size()))] =
          static_cast<char>(rng.Bits());
    }
    if (rng.Uniform() < 0.3)
      bytes.resize(static_cast<std::size_t>(rng.Uniform() * static_cast<double>(bytes.size())));
    try {
      const MotionClip clip =
          text ? ParseMotionCsv(bytes, "m", G1()) : ParseMotionNpz(bytes, "m", G1());
      ASSERT_EQ(clip.q.size(), static_cast<std::size_t>(clip.frames) * kTaskJoints);
      for (const float q : clip.q) ASSERT_TRUE(std::isfinite(q));
    } catch (const ConfigError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
}

TEST(MotionLibrary, ResamplesToTheControlPeriod) {
  // a ramp of the left elbow (column 7 + 18) at 30 frames per second
  std::string text;
  for (int f = 0; f <= 30; ++f) {
    text += "0,0,0.79,0,0,0,1";
    for (int j = 0; j < kTaskJoints; ++j) text += j == 18 ? "," + std::to_string(f / 30.0) : ",0";
    text += "\n";
  }
  const MotionLibrary library({ParseMotionCsv(text, "ramp", G1())}, 0.02, G1().spec());
  const MotionTable t = library.view();
  ASSERT_EQ(t.num_clips, 1);
  ASSERT_EQ(t.first[1], 51);  // 1 s at 50 per second, both ends
  for (int f = 0; f <= 50; ++f) EXPECT_NEAR(t.frames[f * kUpperJoints + 3], f * 0.02, 1e-6);
  EXPECT_EQ(MotionLibrary().num_clips(), 0);
}

// Two files of 0.1 MB, zeros, at a frame per second: each alone may be trained with.
TEST(MotionLibrary, FramesWithoutEndAreRefused) {
  MotionClip clip{.file = "slow", .format = "mjlab", .joints = G1().num_joints(), .fps = 1};
  clip.frames = 100'000;
  clip.q.resize(static_cast<std::size_t>(clip.frames) * static_cast<std::size_t>(clip.joints));
  MotionClip last = clip;
  last.file = "last";
  EXPECT_EQ(ErrorOf([&] {
              MotionLibrary({clip, last}, 0.02, G1().spec());
            }),
            "last: with it the motions have more than 8388608 frames of 0.02 s");
}

// Each file is read before the next, and the sum is looked at after each: what is kept is bounded.
TEST(ReadMotions, TheFramesOfAllFilesAreCounted) {
  const std::string path =
      (std::filesystem::path(::testing::TempDir()) / "silc_three_frames.csv").string();
  WriteFileAtomically(path, Row() + Row() + Row());
  const std::vector<std::string> paths(3, path);
  EXPECT_EQ(ReadMotions(paths, G1(), 9).size(), 3u);
  EXPECT_EQ(ErrorOf([&] { ReadMotions(paths, G1(), 8); }),
            path + ": with it the motions have more than 8 frames");
  // the file that is too much is the last one that is opened
  EXPECT_EQ(ErrorOf([&] {
              ReadMotions({path, path, "gone.csv"}, G1(), 5);
            }),
            path + ": with it the motions have more than 5 frames");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace silc
