// SPDX-License-Identifier: Apache-2.0
#include "silc/base/file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "silc/base/error.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

class File : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  int NumFiles() const {
    return static_cast<int>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(File, ReadsWhatWasWritten) {
  const std::string bytes("a\0b\n\xff", 5);
  WriteFileAtomically(folder_ / "x", bytes);
  EXPECT_EQ(ReadFile(folder_ / "x"), bytes);
  EXPECT_EQ(NumFiles(), 1);  // no temporary left
}

TEST_F(File, ReplacesTheOldBytesWhole) {
  WriteFileAtomically(folder_ / "x", std::string(1000, 'a'));
  WriteFileAtomically(folder_ / "x", "b");
  EXPECT_EQ(ReadFile(folder_ / "x"), "b");
}

TEST_F(File, AFailedWriteLeavesNothingBehind) {
  fs::create_directory(folder_ / "taken");  // a folder cannot be replaced by a file
  WriteFileAtomically(folder_ / "taken.keep", "kept");
  EXPECT_THROW(WriteFileAtomically(folder_ / "taken", "x"), RunError);
  EXPECT_THROW(WriteFileAtomically(folder_ / "missing" / "x", "x"), RunError);
  EXPECT_EQ(NumFiles(), 2);
}

// /dev/null as somebody's output, by root: it must still be there afterwards.
TEST_F(File, WhatIsNoRegularFileIsNotReplaced) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(WriteFileAtomically(pipe, "x"), RunError);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

// Somebody who may write in the folder, as in /tmp, must not choose what is overwritten.
TEST_F(File, ALinkPlantedUnderTheTemporaryNameIsNotFollowed) {
  WriteFileAtomically(folder_ / "victim", "mine");
  const std::string planted = (folder_ / "x").string() + ".tmp" + std::to_string(::getpid());
  fs::create_symlink(folder_ / "victim", planted);
  WriteFileAtomically(folder_ / "x", "written");
  EXPECT_EQ(ReadFile(folder_ / "victim"), "mine");
  EXPECT_EQ(ReadFile(folder_ / "x"), "written");
  EXPECT_FALSE(fs::is_symlink(folder_ / "x"));
  EXPECT_EQ(NumFiles(), 3);  // victim, x and what was planted
}

TEST_F(File, AKilledWriterLeavesNothing) {
  for (int trial = 0; trial < 5; ++trial) {
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string bytes(std::size_t{1} << 26, 'a');  // tens of milliseconds to the disk
      while (true) WriteFileAtomically(folder_ / "x", bytes);
    }
    ASSERT_GT(child, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(40 + 17 * trial));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    for (const auto& entry : fs::directory_iterator(folder_)) {
      EXPECT_EQ(entry.path().filename(), "x");
    }
  }
}

TEST_F(File, ReadingNamesTheFileAndTheReason) {
  WriteFileAtomically(folder_ / "big", std::string(100, 'a'));
  const auto message = [](const std::string& path, std::size_t limit) {
    try {
      ReadFile(path, limit);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(folder_ / "none", 10), (folder_ / "none").string() + ": no such file");
  EXPECT_EQ(message(folder_, 10), folder_.string() + ": not a regular file");
  EXPECT_EQ(message(folder_ / "big", 10),
            (folder_ / "big").string() + ": 100 bytes, more than the limit of 10");
}

}  // namespace
}  // namespace silc
