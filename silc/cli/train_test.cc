// SPDX-License-Identifier: Apache-2.0
// Training as a user meets it: killed, interrupted, resumed, with broken files.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

#include "silc/base/file.h"
#include "silc/base/rng.h"
#include "silc/base/test_paths.h"
#include "silc/cli/run_silc.h"

namespace silc {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr char kSettings[] =
    " learn.steps=8 learn.actor_hidden=[8] learn.critic_hidden=[8] learn.checkpoint_every=2"
    " learn.keep_checkpoints=3 --threads 1";

class CliTrain : public ::testing::Test {
 protected:
  CliTrain() : folder_(fs::path(::testing::TempDir()) / "silc_cli_train_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~CliTrain() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string Command(const std::string& run, int iterations) {
    return "train g1-stand --preset quick --envs 16 --out " + run + kSettings +
           " learn.iterations=" + std::to_string(iterations);
  }
  // the whole file, or "" while there is none
  static std::string Checkpoint(const std::string& run, int iteration) {
    char name[64];
    std::snprintf(name, sizeof(name), "/checkpoints/checkpoint_%08d.silc", iteration);
    return fs::exists(run + name) ? ReadFile(run + name) : "";
  }
  // Until the run has that many lines of metrics. False: it ended first.
  static bool WaitForLines(const std::string& run, pid_t child, int lines) {
    while (true) {
      const std::string path = run + "/metrics.jsonl";
      if (fs::exists(path)) {
        const std::string text = ReadFile(path);
        if (std::count(text.begin(), text.end(), '\n') >= lines) return true;
      }
      siginfo_t info = {};
      if (::waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child)
        return false;
      std::this_thread::sleep_for(2ms);
    }
  }

  fs::path folder_;
};

// The robots that come with silc besides the G1: what is trained on one is observed, simulated and
// pushed on it.
TEST_F(CliTrain, OtherRobotsAreTrainedObservedAndPushed) {
  for (const std::string robot : {"t1", "berkeley"}) {
    const std::string run = Path(robot), policy = run + "/policy.onnx";
    const Outcome trained = Silc("train " + robot + "-stand --preset quick --envs 16 --out " + run +
                                 kSettings + " learn.iterations=2");
    ASSERT_EQ(trained.code, 0) << trained.text;
    const std::string on_it = " --robot " + robot;
    const Outcome observed = Silc("observe " + policy + on_it);
    EXPECT_EQ(observed.code, 0) << observed.text;
    EXPECT_NE(observed.text.find("policy.onnx on " + robot), std::string::npos) << observed.text;
    const Outcome pushed =
        Silc("eval com-impulse --episodes 1 --threads 1 --policy " + policy + on_it);
    EXPECT_EQ(pushed.code, 0) << pushed.text;
    EXPECT_NE(pushed.text.find("survive"), std::string::npos) << pushed.text;
    const Outcome simulated = Silc("sim --seconds 0.1" + on_it);
    EXPECT_EQ(simulated.code, 0) << simulated.text;
  }
}

// What is bounded is how actions follow the joints: a policy that does not see them has no such
// bound, at rest or over frequencies.
TEST_F(CliTrain, ALayoutWithoutJointAnglesIsBoundByNoMethod) {
  const auto without = [](const std::string& file, const std::vector<std::string>& words) {
    std::istringstream lines(ReadFile(SourcePath(file)));
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      const bool dropped = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
        return line.find(word) != std::string::npos;
      });
      if (!dropped) text += line + "\n";
    }
    return text;
  };
  const std::string task = without("configs/tasks/g1_stand.yaml", {"layout:"}) + "layout: ";
  const std::string train = "train " + Path("task.yaml") + " --envs 16 --out " + Path("blind") +
                            kSettings + " learn.iterations=1 --method ";
  WriteFileAtomically(Path("task.yaml"), task + Path("layout.yaml") + "\n");
  const std::vector<std::string> angles = {"source: joint_pos"},
                                 angles_and_speeds = {"source: joint_pos", "source: joint_vel"};
  for (const std::vector<std::string>& words : {angles, angles_and_speeds}) {
    WriteFileAtomically(Path("layout.yaml"), without("layouts/g1_loco.yaml", words));
    for (const std::string method :
         {"silc", "silc 'learn.penalty.frequencies=[1]'", "silc-paper", "alcp", "scalar-lcp"}) {
      const Outcome outcome = Silc(train + method);
      EXPECT_EQ(outcome.code, 2) << method << "\n" << outcome.text;
      EXPECT_NE(outcome.text.find("add a term with source: joint_pos"), std::string::npos)
          << outcome.text;
    }
    EXPECT_FALSE(fs::exists(Path("blind") + "/policy.onnx"));
  }
  const Outcome outcome = Silc(train + "baseline");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
}

// Under a limit on memory: a sentence and 1, not an abort.
TEST_F(CliTrain, MemoryThatRunsOutIsTold) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow is beyond any
  const Outcome outcome =
      Silc("train g1-stand --preset quick --envs 1048576 --threads 1 --iterations 1 --out " +
               Path("large"),
           "ulimit -v 6000000; ");
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("silc: the memory is not enough"), std::string::npos) << outcome.text;
#endif
}

// A budget of one's own goes with the policy: its file may change or be gone.
TEST_F(CliTrain, AnOwnBudgetGoesFromTrainingThroughExportToObservation) {
  const std::string file = Path("mine.yaml"), policy = Path("out.onnx");
  const std::string wide =
      "com: [1e7, 1e7, 1e7]\nnull_space: {weight: identity, stiffness: 1e6}\n"
      "channels: {torque: held, gravity: held}\n";
  WriteFileAtomically(file, wide);
  const Outcome trained = Silc(Command(Path("own"), 1) + " --method silc --mode " + file);
  ASSERT_EQ(trained.code, 0) << trained.text;
  EXPECT_NE(trained.text.find("budget mine: CoM 1e+07/1e+07/1e+07 N/m, null space 1e+06 N·m/rad; "
                              "gravity held, torque held, disc; hands' floor none"),
            std::string::npos)
      << trained.text;
  // tighter than any robot, and then gone: what was trained is judged by what it was trained for
  WriteFileAtomically(file, "null_space: {weight: identity, stiffness: 1}\n");
  ASSERT_EQ(Silc("export " + Path("own") + "/policy.onnx " + policy).code, 0);
  const Outcome own = Silc("observe --check " + policy);
  EXPECT_EQ(own.code, 0) << own.text;
  EXPECT_NE(own.text.find("gravity held, torque held, disc"), std::string::npos) << own.text;
  EXPECT_EQ(Silc("observe --check " + policy + " --mode " + file).code, 1);
  fs::remove(file);
  EXPECT_EQ(Silc("observe --check " + policy).code, 0);
}

// One policy for many budgets: what it is told is what it is judged by, from training to verdict.
TEST_F(CliTrain, ACommandedPolicyIsToldItsBudget) {
  const std::string run = Path("commanded"), policy = run + "/policy.onnx";
  const Outcome trained = Silc(Command(run, 1) + " --method silc --mode command");
  ASSERT_EQ(trained.code, 0) << trained.text;
  EXPECT_NE(trained.text.find("budget command: CoM 200..3000/200..3000/20000 N/m, hands 100..1000 "
                              "N/m, null space 20..300 N·m/rad"),
            std::string::npos)
      << trained.text;
  const auto says = [&](const std::string& arguments, int code, const std::string& words) {
    const Outcome outcome = Silc(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.text;
    EXPECT_NE(outcome.text.find(words), std::string::npos) << outcome.text;
  };
  says("observe " + policy,
       0,
       "is told com 775 N/m, hands 316 N/m, null space 77.5 N·m/rad: the middle of its ranges, "
       "since no --budget was given");
  says("observe " + policy + " --budget com=400,hands=200,null_space=100",
       0,
       "Budget command,com=400/400/20000,hands=200,null_space=100: CoM 400/400/20000 N/m");
  // judged by another than it is told
  says("observe " + policy + " --budget hands=200 --mode compliance",
       0,
       "Budget compliance: CoM 200/200/20000 N/m");
  says("observe " + policy + " --budget com=4000", 2, "com: 4000 is outside [200, 3000]");
  says("observe " + policy + " --mode command", 2, "--mode command: gives ranges");
  says("eval com-impulse --episodes 1 --budget com=300 --policy " + policy,
       0,
       "budget command,com=300/300/20000,hands=316,null_space=77.5:");
  says("eval knob --episodes 1 --values 2 --policy " + policy,
       0,
       "left hand against the base, moments with σ ≤ 1");
  // one that is told nothing
  const std::string plain = Path("plain");
  ASSERT_EQ(Silc(Command(plain, 1)).code, 0);
  says("observe " + plain + "/policy.onnx --budget com=400", 2, "is not told its budget");
  says("eval com-impulse --episodes 1 --budget com=400 --policy " + plain + "/policy.onnx",
       2,
       "is not told its budget");
  says("eval knob --episodes 1 --policy " + plain + "/policy.onnx",
       2,
       "knob: needs a policy that is told its budget");
  // beside a commanded one, it is measured with what that is told
  says("eval com-impulse --episodes 1 --budget com=300 --policy " + policy + " " + plain +
           "/policy.onnx",
       0,
       "budget command,com=300/300/20000,hands=316,null_space=77.5:");
}

// The trainer is a program of its own beside silc; a user sees one.
TEST_F(CliTrain, SilcStartsTheTrainerThatLiesBesideIt) {
  for (const std::string verb : {"train", "bench train", "bench penalty"}) {
    const Outcome help = Silc(verb + " --help");
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.text.find("overrides"), std::string::npos) << help.text;
  }
  const Outcome all = Silc("--help");
  for (const std::string verb : {"train", "runs", "sweep"}) {
    EXPECT_NE(all.text.find("\n  " + verb + " "), std::string::npos) << all.text;
  }
  fs::copy_file(SilcBinary(), folder_ / "silc");
  const std::string alone = Path("silc") + " ";
  const Outcome none = Silc("", alone + "train g1-stand 2>&1; echo returned $?; true ");
  EXPECT_NE(none.text.find(Path("silc-trainer") + ": No such file"), std::string::npos)
      << none.text;
  EXPECT_NE(none.text.find("./dev build release --target silc-trainer"), std::string::npos)
      << none.text;
  EXPECT_NE(none.text.find("returned 1"), std::string::npos) << none.text;
  EXPECT_EQ(Silc("", alone + "--version; true ").text, "silc " SILC_VERSION "\n");
}

// Killed without warning at moments of chance, resumed each time: the last checkpoint is the one
// that an undisturbed run writes, byte by byte.
TEST_F(CliTrain, KilledAndResumedEndsWithTheSameBytes) {
  constexpr int kIterations = 60;
  const Outcome whole = Silc(Command(Path("whole"), kIterations));
  ASSERT_EQ(whole.code, 0) << whole.text;
  const std::string expected = Checkpoint(Path("whole"), kIterations);
  ASSERT_FALSE(expected.empty());

  const std::string run = Path("killed");
  Rng rng(7);
  int kills = 0;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const bool first = !fs::exists(run + "/config.yaml");
    const pid_t child = StartSilc(first ? Command(run, kIterations) : "train --resume " + run);
    ASSERT_GT(child, 0);
    // Twice in the middle, by what it has done and not by the clock: a fast machine ends before any
    // pause is over. Then somewhere in the start, an iteration, a checkpoint; later attempts live
    // longer, so that a slow machine ends, too.
    if (attempt < 2) {
      ASSERT_TRUE(WaitForLines(run, child, 1 + 9 * attempt));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(
        attempt < 2 ? rng.Uniform(0, 30) : 100 + rng.Uniform(0, 500.0 + 100.0 * attempt))));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      break;
    }
    ++kills;
  }
  EXPECT_GT(kills, 1) << "nothing was killed";
  EXPECT_TRUE(Checkpoint(run, kIterations) == expected) << kills << " kills";
  EXPECT_TRUE(fs::exists(run + "/policy.onnx"));
  // nothing half-written is left
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    EXPECT_FALSE(entry.path().extension().string().starts_with(".tmp")) << entry.path();
  }
}

TEST_F(CliTrain, InterruptedOnceItEndsWellWithACheckpoint) {
  const std::string run = Path("interrupted");
  const pid_t child = StartSilc(Command(run, 100000) + " learn.checkpoint_every=100000");
  ASSERT_GT(child, 0);
  ASSERT_TRUE(WaitForLines(run, child, 2));
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_FALSE(fs::is_empty(run + "/checkpoints"));
  EXPECT_TRUE(fs::exists(run + "/policy.onnx"));
  const Outcome list = Silc("runs " + folder_.string());
  EXPECT_NE(list.text.find("stopped"), std::string::npos) << list.text;
  // and the policy can be looked at without saying anything about it
  const Outcome observed = Silc("observe " + run + "/policy.onnx");
  EXPECT_EQ(observed.code, 0) << observed.text;
}

TEST_F(CliTrain, InterruptedTwiceItEndsAtOnce) {
  const std::string run = Path("twice");
  // one iteration takes minutes: a mini-batch per sample, a thousand times
  const pid_t child = StartSilc(Command(run, 2) + " learn.epochs=1000 learn.mini_batches=128");
  ASSERT_GT(child, 0);
  while (!fs::exists(run + "/config.yaml")) std::this_thread::sleep_for(2ms);
  // the first is heard where the second would have ended it
  ::kill(child, SIGINT);
  std::this_thread::sleep_for(200ms);
  siginfo_t info = {};
  ASSERT_EQ(::waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT), 0);
  EXPECT_EQ(info.si_pid, 0) << "ended at the first";
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

TEST_F(CliTrain, StopsWhenItsTimeIsOverAndKeepsItsSettings) {
  const std::string run = Path("timed");
  const Outcome timed = Silc(Command(run, 100000) + " --max-seconds 0.01");
  EXPECT_EQ(timed.code, 0) << timed.text;
  EXPECT_NE(timed.text.find("stopped after iteration"), std::string::npos) << timed.text;
  for (const char* change : {"learn.epochs=2", "task.push.force=3", "--seed 3", "--method lcp"}) {
    const Outcome refused = Silc("train --resume " + run + " " + change);
    EXPECT_EQ(refused.code, 2) << refused.text;
    EXPECT_NE(refused.text.find("--resume"), std::string::npos) << refused.text;
  }
  const Outcome done = Silc("train --resume " + run + " --iterations 3 --threads 2");
  EXPECT_EQ(done.code, 0) << done.text;
  EXPECT_NE(done.text.find("done after iteration"), std::string::npos) << done.text;
}

TEST_F(CliTrain, BenchPrintsJsonLines) {
  const Outcome bench = Silc(
      "bench train g1-stand --preset quick --envs 16 --iterations 1 --method silc learn.steps=4 "
      "learn.actor_hidden=[8] learn.critic_hidden=[8]");
  ASSERT_EQ(bench.code, 0) << bench.text;
  for (const char* name : {"env_steps_per_s",
                           "rollout_steps_per_s",
                           "iteration_steps_per_s",
                           "update_ms",
                           "share_policy",
                           "peak_memory_mib"}) {
    EXPECT_NE(bench.text.find("{\"name\":\"train." + std::string(name)), std::string::npos)
        << bench.text;
  }
}

TEST_F(CliTrain, ATornCheckpointIsNamedAndTheOneBeforeUsed) {
  const std::string run = Path("torn");
  ASSERT_EQ(Silc(Command(run, 4)).code, 0);
  const std::string expected = Checkpoint(run, 4);
  const std::string last = run + "/checkpoints/checkpoint_00000004.silc";
  fs::resize_file(last, fs::file_size(last) / 2);
  const Outcome resumed = Silc("train --resume " + run);
  EXPECT_EQ(resumed.code, 0) << resumed.text;
  EXPECT_NE(resumed.text.find("the one before it is used"), std::string::npos) << resumed.text;
  EXPECT_NE(resumed.text.find("goes on after iteration 2"), std::string::npos) << resumed.text;
  EXPECT_TRUE(Checkpoint(run, 4) == expected);
}

// What is left of a run is somebody's hours: a resume that cannot go on leaves every byte of it.
TEST_F(CliTrain, AResumeThatCannotReadTheNewestCheckpointDeletesNothing) {
  const std::string run = Path("kept"), checkpoints = run + "/checkpoints";
  ASSERT_EQ(Silc(Command(run, 4)).code, 0);
  const auto files = [&] {
    std::map<std::string, std::string> bytes;
    for (const auto& entry : fs::recursive_directory_iterator(run)) {
      if (entry.is_regular_file()) bytes[entry.path().string()] = ReadFile(entry.path().string());
    }
    return bytes;
  };
  const auto refused = [&](const std::string& part, const std::string& options = "") {
    const auto before = files();
    const Outcome outcome = Silc("train --resume " + run + " --iterations 6" + options);
    EXPECT_EQ(outcome.code, 1) << outcome.text;
    EXPECT_NE(outcome.text.find(part), std::string::npos) << outcome.text;
    EXPECT_TRUE(files() == before) << part;
  };
  // one that cannot be read at all, here a folder, is no reason to take the one before it
  fs::create_directory(checkpoints + "/checkpoint_00000009.silc");
  refused("not a regular file");
  fs::remove(checkpoints + "/checkpoint_00000009.silc");

  // the newest torn: the run goes on from the one before, and what is replaced is kept
  const std::string last = checkpoints + "/checkpoint_00000004.silc";
  fs::resize_file(last, fs::file_size(last) / 2);
  const std::string torn = ReadFile(last), metrics = ReadFile(run + "/metrics.jsonl");
  EXPECT_EQ(Silc("train --resume " + run).code, 0);
  EXPECT_TRUE(ReadFile(last + ".broken") == torn);
  const std::string replaced = ReadFile(run + "/metrics_replaced.jsonl");
  ASSERT_FALSE(replaced.empty());
  EXPECT_TRUE(metrics.ends_with("\n" + replaced));

  for (const char* name : {"/checkpoint_00000002.silc", "/checkpoint_00000004.silc"}) {
    fs::resize_file(checkpoints + name, 100);
  }
  refused("no checkpoint of it is whole; nothing was changed");
  fs::remove_all(checkpoints);
  refused("goes to iteration 4, yet there is no checkpoint");
  // what this resume would like for the checkpoints to come says nothing of those there were
  refused("goes to iteration 4, yet there is no checkpoint", " learn.checkpoint_every=1000");
  fs::remove(run + "/metrics.jsonl");
  refused("policy.onnx is there, yet there is no checkpoint");
}

// One line that somebody or a disk has damaged: what stands behind it is whole.
TEST_F(CliTrain, AResumeKeepsWholeLinesBehindADamagedOne) {
  const std::string run = Path("damaged"), path = run + "/metrics.jsonl";
  ASSERT_EQ(Silc(Command(run, 4)).code, 0);
  std::vector<std::string> lines;
  std::istringstream text(ReadFile(path));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 4u);
  lines[1][0] = '?';
  // the last one torn by a crash
  WriteFileAtomically(
      path, fmt::format("{}\n{}\n{}\n{}\n{}", lines[0], lines[1], lines[2], lines[3], "{\"iter"));
  ASSERT_EQ(Silc("train --resume " + run + " --iterations 5").code, 0);
  const std::string after = ReadFile(path);
  EXPECT_TRUE(
      after.starts_with(fmt::format("{}\n{}\n{}\n{}\n{{", lines[0], lines[1], lines[2], lines[3])));
  EXPECT_EQ(std::count(after.begin(), after.end(), '\n'), 5);
  EXPECT_FALSE(fs::exists(run + "/metrics_replaced.jsonl"));

  // an iteration that is none: the cut begins there, and what is cut is kept
  lines[1] = R"({"iteration":99999})";
  const std::string forged = fmt::format("{}\n{}\n{}\n", lines[0], lines[1], lines[2]);
  WriteFileAtomically(path, forged);
  ASSERT_EQ(Silc("train --resume " + run + " --iterations 6").code, 0);
  EXPECT_EQ(ReadFile(run + "/metrics_replaced.jsonl"), fmt::format("{}\n{}\n", lines[1], lines[2]));
}

TEST_F(CliTrain, AnEditedConfigIsNotGoneOnWith) {
  const std::string run = Path("edited"), config = run + "/config.yaml";
  ASSERT_EQ(Silc(Command(run, 2)).code, 0);
  const std::string text = ReadFile(config);
  std::string edited = text;
  edited.replace(edited.find("epochs: "), 9, "epochs: 9");
  WriteFileAtomically(config, edited);
  const Outcome refused = Silc("train --resume " + run + " --iterations 3");
  EXPECT_EQ(refused.code, 2) << refused.text;
  EXPECT_NE(refused.text.find("was edited since silc wrote it"), std::string::npos) << refused.text;
  EXPECT_EQ(ReadFile(config), edited);
  WriteFileAtomically(config, text);
  EXPECT_EQ(Silc("train --resume " + run + " --iterations 3").code, 0);
  EXPECT_EQ(Silc("train --resume " + run + " --iterations 4").code, 0);
}

TEST_F(CliTrain, ThePolicyDoesNotDependOnTheFoldersName) {
  ASSERT_EQ(Silc(Command(Path("one"), 2)).code, 0);
  ASSERT_EQ(Silc(Command(Path("two"), 2)).code, 0);
  EXPECT_TRUE(ReadFile(Path("one/policy.onnx")) == ReadFile(Path("two/policy.onnx")));
}

TEST_F(CliTrain, AListThatCannotBeWrittenIsOne) {
  ASSERT_EQ(Silc(Command(Path("one"), 1)).code, 0);
  EXPECT_EQ(Silc("runs " + folder_.string() + " > /dev/full").code, 1);
}

// A terminal that is closed, a connection that is cut.
TEST_F(CliTrain, HungUpItEndsWellWithACheckpoint) {
  const std::string run = Path("hung_up");
  const pid_t child = StartSilc(Command(run, 100000) + " learn.checkpoint_every=100000");
  ASSERT_GT(child, 0);
  ASSERT_TRUE(WaitForLines(run, child, 2));
  ::kill(child, SIGHUP);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_FALSE(fs::is_empty(run + "/checkpoints"));
}

TEST_F(CliTrain, AskedWronglyIsTwoAndLeavesNothing) {
  const auto expect = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome = Silc("train " + arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_NE(outcome.text.find(part), std::string::npos) << outcome.text;
  };
  const std::string out = " --out " + Path("nothing");
  expect("g1-stand learn.epoch=3" + out, "did you mean learn.epochs?");
  expect("g1-stnad" + out, "did you mean g1-stand");
  expect("g1-stand --backend bacth" + out, "did you mean batch?");
  expect("--resume " + Path("nowhere"), "no run");
  EXPECT_FALSE(fs::exists(Path("nothing")));
}

}  // namespace
}  // namespace silc
