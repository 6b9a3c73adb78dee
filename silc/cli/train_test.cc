// SPDX-License-Identifier: Apache-2.0
// `silc train` as a process: stopped, killed at any moment, its checkpoint damaged; and resumed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

#include "silc/base/file.h"
#include "silc/base/rng.h"

namespace silc {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class Train : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / "silc_train_test";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  // A small training, with a checkpoint at every iteration.
  static std::string Small(int iterations) {
    return "g1-stand --envs 32 --threads 2 --iterations " + std::to_string(iterations) +
           " learn.steps=6 learn.epochs=1 learn.mini_batches=2 learn.actor_hidden=[16,8] "
           "learn.critic_hidden=[16,8] learn.checkpoint_every=1 task.episode.length=0.2 ";
  }

  pid_t Start(const std::string& arguments) const {
    std::istringstream words("silc " + arguments);
    std::vector<std::string> list{std::istream_iterator<std::string>(words), {}};
    std::vector<char*> argv;
    for (std::string& word : list) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string log = Path("log");
    fs::remove(log);  // nobody shall wait for a line and find the last one's
    const pid_t child = ::fork();
    if (child == 0) {
      const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      ::dup2(out, 1);
      ::dup2(out, 2);
      ::execv(SILC_BINARY, argv.data());
      ::_exit(127);
    }
    return child;
  }
  // the exit code, or −signal
  static int Wait(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int Run(const std::string& arguments) const { return Wait(Start(arguments)); }
  std::string Log() const { return ReadFile(Path("log")); }
  void AwaitLog(const std::string& text) const {
    for (int i = 0; i < 12000; ++i) {
      if (fs::exists(Path("log")) && Log().find(text) != std::string::npos) return;
      std::this_thread::sleep_for(milliseconds(10));
    }
    FAIL() << "never said: " << text << "\n" << Log();
  }
  bool Has(const std::string& run, const std::string& prefix) const {
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(Path(run), missing)) {
      if (entry.path().filename().string().starts_with(prefix)) return true;
    }
    return false;
  }
  // iteration of the newest checkpoint, 0 without one
  int Newest(const std::string& run) const {
    int newest = 0;
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(Path(run) + "/checkpoints", missing)) {
      const std::string name = entry.path().filename();
      if (name.ends_with(".silc")) newest = std::max(newest, std::atoi(name.c_str() + 11));
    }
    return newest;
  }
  std::string Checkpoint(const std::string& run, int iteration) const {
    char name[40];
    std::snprintf(name, sizeof(name), "checkpoint_%08d.silc", iteration);
    return Path(run) + "/checkpoints/" + name;
  }

  fs::path folder_;
};

TEST_F(Train, KilledAtAnyMomentAndResumedItEndsAsIfNeverStopped) {
  constexpr int kIterations = 12;
  ASSERT_EQ(Run("train " + Small(kIterations) + "--out " + Path("a/run")), 0) << Log();
  // before the first checkpoint, then some time after each further one
  Rng rng(4);
  pid_t child = Start("train " + Small(kIterations) + "--out " + Path("b/run"));
  AwaitLog("Ctrl-C");
  for (int kills = 0; kills < 5; ++kills) {
    const int before = Newest("b/run");
    for (int i = 0; kills > 0 && i < 12000 && Newest("b/run") == before && before < kIterations;
         ++i) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    std::this_thread::sleep_for(milliseconds(static_cast<int>(rng.Uniform(0, 50))));
    ::kill(child, SIGKILL);
    const int code = Wait(child);
    ASSERT_TRUE(code == -SIGKILL || code == 0) << code << Log();
    EXPECT_TRUE(kills > 0 || Newest("b/run") < kIterations);  // there was something left to do
    child = Start("train --threads 3 --resume " + Path("b/run"));
  }
  ASSERT_EQ(Wait(child), 0) << Log();
  EXPECT_TRUE(ReadFile(Checkpoint("b/run", kIterations)) ==
              ReadFile(Checkpoint("a/run", kIterations)));
  EXPECT_TRUE(ReadFile(Path("b/run/policy.onnx")) == ReadFile(Path("a/run/policy.onnx")));
  // every iteration once
  const std::string metrics = ReadFile(Path("b/run") + "/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), kIterations) << metrics;
}

TEST_F(Train, StopsOnRequestWithACheckpoint) {
  const pid_t child = Start("train " + Small(100000) + "--out " + Path("run"));
  AwaitLog("1/100000");
  ::kill(child, SIGINT);
  EXPECT_EQ(Wait(child), 0) << Log();
  EXPECT_NE(Log().find("go on with: silc train --resume"), std::string::npos) << Log();
  EXPECT_TRUE(fs::exists(Path("run") + "/policy.onnx"));
  // and goes on from there, as long as asked
  ASSERT_EQ(Run("train --max-seconds 0.01 --resume " + Path("run")), 0) << Log();
  EXPECT_NE(Log().find("going on after iteration"), std::string::npos) << Log();
  EXPECT_NE(Log().find("stopped after"), std::string::npos) << Log();
}

TEST_F(Train, ASecondRequestIsObeyedAtOnce) {
  // one iteration takes minutes
  const pid_t child =
      Start("train " + Small(1) + "learn.epochs=1000 learn.mini_batches=192 --out " + Path("run"));
  // the handlers are in place before the log's first file is
  for (int i = 0; i < 12000 && !Has("run", "events."); ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  ::kill(child, SIGINT);
  AwaitLog("again: at once");
  ::kill(child, SIGINT);
  EXPECT_EQ(Wait(child), 130) << Log();
}

TEST_F(Train, ADamagedCheckpointIsNamedAndTheOneBeforeTaken) {
  ASSERT_EQ(Run("train " + Small(4) + "--out " + Path("run")), 0) << Log();
  const std::string newest = Checkpoint("run", 4), bytes = ReadFile(newest);
  WriteFileAtomically(newest, bytes.substr(0, bytes.size() / 2));
  ASSERT_EQ(Run("train --resume " + Path("run")), 0) << Log();
  EXPECT_NE(Log().find("checkpoint_00000004.silc: its checksum does not agree"), std::string::npos)
      << Log();
  EXPECT_NE(Log().find("going on after iteration 3"), std::string::npos) << Log();
  EXPECT_TRUE(ReadFile(newest) == bytes);
}

TEST_F(Train, BenchPrintsJsonLines) {
  ASSERT_EQ(Run("bench train --envs 8 --iterations 1 --methods silc --set learn.steps=3 "
                "learn.epochs=1 learn.actor_hidden=[8] learn.critic_hidden=[8]"),
            0)
      << Log();
  for (const char* name : {"env_steps_per_s",
                           "rollout_steps_per_s",
                           "iteration_steps_per_s",
                           "update_ms",
                           "policy_share",
                           "peak_host_mib"}) {
    EXPECT_NE(Log().find("{\"name\":\"train." + std::string(name)), std::string::npos) << Log();
  }
  ASSERT_EQ(Run("bench penalty --samples 4 --hidden 8 --repeats 1 --python no-such-python"), 0)
      << Log();
  EXPECT_NE(Log().find("\"way\":\"all, one probe\""), std::string::npos) << Log();
  EXPECT_NE(Log().find("PyTorch's own ways are left out"), std::string::npos) << Log();
}

TEST_F(Train, WhatCannotBeginLeavesNothingBehind) {
  for (const char* wrong :
       {"g1-stnd", "g1-stand --backend cuda2", "g1-stand learn.mini_batches=7"}) {
    EXPECT_EQ(Run(std::string("train ") + wrong + " --envs 8 --out " + Path("run")), 2) << Log();
    EXPECT_FALSE(fs::exists(Path("run"))) << wrong;
  }
  EXPECT_EQ(Run("train"), 2);
  EXPECT_NE(Log().find("which task?"), std::string::npos);
}

}  // namespace
}  // namespace silc
