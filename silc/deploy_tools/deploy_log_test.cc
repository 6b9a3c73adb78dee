// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy_tools/deploy_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "silc/base/error.h"
#include "silc/deploy_tools/test_g1.h"
#include "silc/deploy_tools/test_log.h"

namespace {

// Folders that were flushed, and how many names each had then, while a test looks.
using Flushes = std::vector<std::pair<std::string, int>>;
Flushes* flushes = nullptr;

}  // namespace

// The program's own comes before glibc's.
extern "C" int fsync(int descriptor) {
  struct stat about {};
  if (flushes != nullptr && fstat(descriptor, &about) == 0 && S_ISDIR(about.st_mode)) {
    const auto folder =
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor));
    const std::filesystem::directory_iterator names(folder), end;
    flushes->emplace_back(folder.string(), static_cast<int>(std::distance(names, end)));
  }
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

namespace silc {
namespace {

namespace fs = std::filesystem;
using test::FromLog;
using test::TestFolder;

// A power cut: nothing is finished, and all but the last second can be read.
TEST(DeployLog, LosesTheLastSecondAtMostWhenItIsCutShort) {
  const std::string folder = TestFolder("silc_deploy_log_cut");
  constexpr int kTicks = 2345;  // of 2 ms
  {
    DeployLog log(folder);
    for (int k = 0; k < kTicks; ++k) {
      TickRecord record;
      record.time_ns = 2'000'000LL * k;
      record.robot.tick = static_cast<std::uint32_t>(k);
      log.Add(record);
    }
  }  // without Finish()
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_EQ(entry.path().extension(), ".npz") << "nothing half written: " << entry.path();
  }
  int read = 0;
  for (const double tick : FromLog(folder, "tick_robot_tick")) EXPECT_EQ(tick, read++);
  EXPECT_LE(kTicks - read, 501) << "more than a second is lost";
  EXPECT_LT(read, kTicks) << "the rest was to be lost";
}

// A name that is not flushed is not found after a power cut, though its bytes are on the disk.
TEST(DeployLog, FlushesNamesAsWellAsBytes) {
  const fs::path above = fs::canonical(::testing::TempDir()) / "silc_deploy_log_flushed";
  fs::remove_all(above);
  const std::string folder = (above / "new" / "log").string();
  Flushes seen;
  flushes = &seen;
  {
    DeployLog log(folder);
    EXPECT_EQ(seen,
              (Flushes{{above / "new", 1},
                       {above, 1},
                       {above.parent_path(), seen.empty() ? 0 : seen.back().second}}))
        << "every folder that was made";
    seen.clear();
    for (int k = 0; k < 1500; ++k) {
      TickRecord record;
      record.time_ns = 2'000'000LL * k;
      log.Add(record);
    }
    log.Finish();
  }
  flushes = nullptr;
  EXPECT_EQ(seen, (Flushes{{folder, 1}, {folder, 2}, {folder, 3}, {folder, 4}}));
}

// What faults are judged by can be read back: temperatures, fault words to the last bit, the
// remote's bytes, modes.
TEST(DeployLog, KeepsWhatFaultsAreJudgedBy) {
  const std::string folder = TestFolder("silc_deploy_log_faults");
  TickRecord record;
  record.robot.mode_pr = 1;
  record.robot.mode_machine = 255;
  for (int j = 0; j < kRobotMotors; ++j) {
    MotorReading& motor = record.robot.motor[j];
    motor.mode = static_cast<std::uint8_t>(j % 2);
    motor.temperature_C[0] = static_cast<std::int16_t>(30 + j);
    motor.temperature_C[1] = static_cast<std::int16_t>(-j);
    motor.fault_word = 0xfedcba00U + static_cast<std::uint32_t>(j);
  }
  for (int k = 0; k < 40; ++k) record.robot.remote[k] = static_cast<std::uint8_t>(255 - k);
  DeployLog log(folder);
  log.Add(record);
  record.robot.motor[7].fault_word = 0;
  log.Add(record);
  log.Finish();

  const auto at = [&](const char* name, int width, int row, int column) {
    const std::vector<double> values = FromLog(folder, name, width);
    EXPECT_EQ(values.size(), 2U * static_cast<std::size_t>(width)) << name;
    const std::size_t i = static_cast<std::size_t>(row) * static_cast<std::size_t>(width) +
                          static_cast<std::size_t>(column);
    return i < values.size() ? values[i] : std::nan("");
  };
  EXPECT_EQ(at("tick_mode", 2, 0, 0), 1);
  EXPECT_EQ(at("tick_mode", 2, 0, 1), 255);
  for (const int j : {0, 7, 28}) {
    EXPECT_EQ(at("tick_motor_mode", 29, 0, j), j % 2);
    EXPECT_EQ(at("tick_casing_C", 29, 0, j), 30 + j);
    EXPECT_EQ(at("tick_winding_C", 29, 0, j), -j);
    EXPECT_EQ(at("tick_fault_word", 29, 0, j), 0xfedcba00U + static_cast<unsigned>(j));
  }
  EXPECT_EQ(at("tick_fault_word", 29, 1, 7), 0);
  for (const int k : {0, 13, 39}) EXPECT_EQ(at("tick_remote", 40, 1, k), 255 - k);
}

// Rows are control steps in their order. What was observed stands beside the step that it is of;
// what was passed over, or is waited for too long, is NaN.
TEST(DeployLog, JoinsWhatWasObservedToItsStep) {
  const std::string folder = TestFolder("silc_deploy_log_joined");
  DeployLog log(folder, 0.1);
  const auto step = [&](int sequence) {
    PolicyStep s;
    s.sequence = static_cast<std::uint64_t>(sequence);
    s.time_ns = 20'000'000LL * sequence;
    s.qpos.setConstant(36, sequence);
    s.qvel.setZero(35);
    s.input.tau.setZero(29);
    s.observation.setZero(4);
    s.action.setZero(29);
    s.target.setZero(29);
    log.Add(s);
  };
  const auto observe = [&](int sequence) {
    DeployMoment m;
    m.sequence = static_cast<std::uint64_t>(sequence);
    m.sigma = 0.1 * sequence;
    m.K_s_diag.setConstant(29, sequence);
    log.Add(m);
  };
  std::vector<int> rows_on_disk;
  for (int k = 0; k <= 100; ++k) {  // ticks of 10 ms
    if (k % 2 == 0) step(k / 2);
    if (k == 8) observe(3);   // 0 to 2 were passed over
    if (k == 40) observe(4);  // far too late
    if (k == 60) observe(29);
    TickRecord record;
    record.time_ns = 10'000'000LL * k;
    log.Add(record);
    rows_on_disk.push_back(static_cast<int>(FromLog(folder, "sequence").size()));
  }
  // no step waits longer than a chunk and the patience, 0.25 s
  for (int k = 0; k <= 100; ++k) EXPECT_GE(rows_on_disk[static_cast<std::size_t>(k)], k / 2 - 13);
  log.Finish();
  const std::vector<double> sequence = FromLog(folder, "sequence"),
                            sigma = FromLog(folder, "sigma"),
                            diagonal = FromLog(folder, "K_s_diag", 29),
                            qpos = FromLog(folder, "qpos", 36);
  ASSERT_EQ(sequence.size(), 51U);
  ASSERT_EQ(sigma.size(), 51U);
  ASSERT_EQ(diagonal.size(), 51U * 29);
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    EXPECT_EQ(sequence[i], static_cast<double>(i));
    EXPECT_EQ(qpos[36 * i], static_cast<double>(i));
    const bool seen = i == 3 || i == 29;
    EXPECT_EQ(std::isnan(sigma[i]), !seen) << i;
    EXPECT_EQ(std::isnan(diagonal[29 * i + 5]), !seen) << i;
    if (seen) {
      EXPECT_EQ(sigma[i], 0.1 * static_cast<double>(i));
    }
  }
}

TEST(DeployLog, RefusesAFolderThatHoldsSomething) {
  const std::string folder = TestFolder("silc_deploy_log_full");
  { DeployLog log(folder); }
  EXPECT_NO_THROW(DeployLog{folder}) << "empty";
  DeployLog log(folder);
  log.Add(TickRecord{});
  log.Finish();
  EXPECT_THROW(DeployLog{folder}, ConfigError);
}

}  // namespace
}  // namespace silc
