// SPDX-License-Identifier: Apache-2.0
// A sweep as a user meets it: several trainings at once, stopped, killed, gone on with.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "silc/base/file.h"
#include "silc/cli/run_silc.h"

namespace silc {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class CliSweep : public ::testing::Test {
 protected:
  CliSweep() : folder_(fs::path(::testing::TempDir()) / "silc_cli_sweep_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~CliSweep() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  /// A sweep of tiny trainings; its words for the command line.
  std::string Write(const std::string& rows) const {
    WriteFileAtomically(
        Path("sweep.yaml"),
        "defaults: {task: g1-stand, preset: quick, envs: 8, iterations: 4, overrides: "
        "[learn.steps=4, 'learn.actor_hidden=[8]', 'learn.critic_hidden=[8]', "
        "learn.checkpoint_every=2]}\nrows:\n" +
            rows);
    return "sweep " + Path("sweep.yaml") + " --threads 1 --out " + Path("runs");
  }
  std::string Checkpoint(const std::string& run, std::string iteration) const {
    iteration.insert(0, 8 - iteration.size(), '0');
    const std::string path = Path("runs/" + run + "/checkpoints/checkpoint_" + iteration) + ".silc";
    return fs::exists(path) ? ReadFile(path) : "";
  }
  bool HasMetrics(const std::string& run) const {
    std::error_code missing;
    return fs::file_size(Path("runs/" + run + "/metrics.jsonl"), missing) > 0 && !missing;
  }

  fs::path folder_;
};

constexpr char kPair[] =
    "  - {name: hard}\n"
    "  - {name: soft, method: silc, mode: compliance, from: hard}\n";

TEST_F(CliSweep, TrainsInOrderSkipsWhatIsDoneAndGoesOnWithWhatWasCut) {
  const std::string command = Write(kPair) + " --jobs 2 --collect " + Path("policies");
  const Outcome first = Silc(command);
  ASSERT_EQ(first.code, 0) << first.text;
  EXPECT_LT(first.text.find("hard-seed1: done"), first.text.find("soft-seed1: starts"))
      << first.text;
  EXPECT_NE(ReadFile(Path("runs/soft-seed1.log")).find("starts with the networks of"),
            std::string::npos);
  for (const char* file : {"hard.onnx", "hard.md", "soft.onnx", "soft.md"}) {
    EXPECT_TRUE(fs::exists(Path("policies/") + file)) << file;
  }
  const std::string expected = Checkpoint("soft-seed1", "4");
  ASSERT_FALSE(expected.empty());

  const Outcome second = Silc(command);
  EXPECT_EQ(second.code, 0) << second.text;
  EXPECT_EQ(second.text.find("starts"), std::string::npos) << second.text;

  fs::remove(Path("runs/soft-seed1/checkpoints/checkpoint_00000004.silc"));
  const Outcome listed = Silc(command + " --list");
  EXPECT_NE(listed.text.find("stopped"), std::string::npos) << listed.text;
  const Outcome third = Silc(command);
  EXPECT_EQ(third.code, 0) << third.text;
  EXPECT_NE(third.text.find("soft-seed1: goes on after iteration 2"), std::string::npos)
      << third.text;
  EXPECT_EQ(third.text.find("hard-seed1: starts"), std::string::npos) << third.text;
  EXPECT_TRUE(Checkpoint("soft-seed1", "4") == expected);
}

TEST_F(CliSweep, ATrainingThatFailsDoesNotStopTheOthers) {
  const Outcome outcome =
      Silc(Write("  - {name: bad, overrides: [learn.mini_batches=7]}\n"
                 "  - {name: child, from: bad}\n  - {name: good}\n"));
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  for (const char* part : {"bad-seed1: failed: learn.mini_batches: 7: does not divide",
                           "good-seed1: done",
                           "waits for bad-seed1"}) {
    EXPECT_NE(outcome.text.find(part), std::string::npos) << part << "\n" << outcome.text;
  }
}

// It goes on from its checkpoint; what fails again has failed.
TEST_F(CliSweep, ATrainingThatIsKilledIsStartedOnceMore) {
  const std::string command = Write("  - {name: a, iterations: 600}\n") +
                              " --retries 1 learn.checkpoint_every=10 learn.keep_checkpoints=60";
  const pid_t child = StartSilc(command);
  ASSERT_GT(child, 0);
  while (Checkpoint("a-seed1", "10").empty()) {
    ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "ended by itself";
    std::this_thread::sleep_for(5ms);
  }
  // its only child
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", child));
  pid_t training = 0;
  ASSERT_TRUE(children >> training);
  ::kill(training, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_NE(ReadFile(Path("runs/a-seed1.log")).find("goes on after iteration"), std::string::npos);
  EXPECT_FALSE(Checkpoint("a-seed1", "600").empty());

  const Outcome twice =
      Silc(Write("  - {name: bad, overrides: [learn.mini_batches=7]}\n") + " --retries 1");
  EXPECT_EQ(twice.code, 1) << twice.text;
  for (const char* part : {"bad-seed1: is started once more, for it ended so: learn.mini_batches",
                           "bad-seed1: failed: learn.mini_batches: 7: does not divide"}) {
    EXPECT_NE(twice.text.find(part), std::string::npos) << part << "\n" << twice.text;
  }
}

// Ctrl-C, the end of its time, and death: each time every training ends with a checkpoint.
TEST_F(CliSweep, StoppedInAnyWayItsTrainingsEndWithACheckpoint) {
  const std::string command =
      Write("  - {name: a, iterations: 1000}\n  - {name: b, iterations: 1000}\n") +
      " --jobs 2 learn.checkpoint_every=1000000";
  for (const int signal : {SIGINT, SIGKILL}) {
    const pid_t child = StartSilc(command);
    ASSERT_GT(child, 0);
    while (!HasMetrics("a-seed1") || !HasMetrics("b-seed1")) {
      ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "ended by itself";
      std::this_thread::sleep_for(5ms);
    }
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (signal == SIGINT) {
      ASSERT_TRUE(WIFEXITED(status));
      EXPECT_EQ(WEXITSTATUS(status), 0);
    }
    for (const char* run : {"a-seed1", "b-seed1"}) {
      // after a kill they end a moment later, by themselves
      const int lock = ::open((Path("runs/") + run + "/lock").c_str(), O_RDONLY);
      ::flock(lock, LOCK_SH);
      ::close(lock);
      EXPECT_FALSE(fs::is_empty(Path("runs/") + run + "/checkpoints")) << run;
      EXPECT_TRUE(Checkpoint(run, "1000").empty()) << run << " went on to its end";
      EXPECT_TRUE(fs::exists(Path("runs/") + run + "/policy.onnx")) << run;
    }
    fs::remove_all(Path("runs"));
  }
  const Outcome timed = Silc(command + " --max-seconds 0.5");
  EXPECT_EQ(timed.code, 0) << timed.text;
  EXPECT_NE(timed.text.find("0.5 s are over"), std::string::npos) << timed.text;
}

}  // namespace
}  // namespace silc
