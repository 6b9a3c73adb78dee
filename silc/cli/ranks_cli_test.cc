// SPDX-License-Identifier: Apache-2.0
// Training over several processes of this machine, as torchrun or mpirun start them.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "silc/base/file.h"
#include "silc/cli/run_silc.h"
#include "silc/learn/ranks.h"

namespace silc {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr char kRankSettings[] =
    " learn.steps=8 learn.mini_batches=2 learn.epochs=2 learn.actor_hidden=[8]"
    " learn.critic_hidden=[8] learn.checkpoint_every=2 learn.keep_checkpoints=3 learn.cool_down=0"
    " --threads 1";

// A port of this machine that nobody has at this moment.
int FreePort() {
  const int file = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(file, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(file, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(file);
  return ntohs(address.sin_port);
}

class CliRanks : public ::testing::Test {
 protected:
  CliRanks() : folder_(fs::path(::testing::TempDir()) / "silc_cli_ranks_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~CliRanks() override {
    for (const pid_t child : children_) {
      if (child <= 0) continue;
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    fs::remove_all(folder_);
  }
  void SetUp() override {
    if (!RanksOnCpu()) GTEST_SKIP() << "this build cannot connect processes on CPUs";
  }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Log(int rank) const { return Path("log" + std::to_string(rank)); }
  // `envs` of each process
  std::string Command(const std::string& run, int envs, int iterations) const {
    return "train g1-stand --preset quick --envs " + std::to_string(envs) + " --out " + Path(run) +
           kRankSettings + " learn.iterations=" + std::to_string(iterations);
  }
  std::string Resume(const std::string& run, int iterations) const {
    return "train --resume " + Path(run) + " --iterations " + std::to_string(iterations);
  }

  /// `size` processes that meet at a store of ours, as torchrun's, or at one that rank 0 opens.
  void Start(int size, const std::string& arguments, bool own_store = true) {
    children_.clear();
    if (own_store) store_ = std::make_unique<RankStore>();
    const int port = own_store ? store_->port() : FreePort();
    for (int rank = 0; rank < size; ++rank) {
      std::map<std::string, std::string> variables = {{"RANK", std::to_string(rank)},
                                                      {"WORLD_SIZE", std::to_string(size)},
                                                      {"LOCAL_RANK", std::to_string(rank)},
                                                      {"MASTER_ADDR", "127.0.0.1"},
                                                      {"MASTER_PORT", std::to_string(port)}};
      if (own_store) variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
      children_.push_back(StartSilc(arguments, variables, Log(rank)));
    }
  }
  /// Exit code of a rank, −1: by a signal, −2: it still ran after `limit`.
  int Wait(int rank, std::chrono::seconds limit = 300s) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (::waitpid(children_[rank], &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) return -2;
      std::this_thread::sleep_for(5ms);
    }
    children_[rank] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void Train(int size, const std::string& arguments) {
    Start(size, arguments);
    for (int rank = 0; rank < size; ++rank) {
      ASSERT_EQ(Wait(rank), 0) << "rank " << rank << " of " << size << "\n" << ReadFile(Log(rank));
    }
  }
  /// Until rank 0 has written that many lines of metrics. False: it ended first.
  bool WaitForLines(const std::string& run, int lines) {
    while (true) {
      const std::string path = Path(run) + "/metrics.jsonl";
      if (fs::exists(path)) {
        const std::string text = ReadFile(path);
        if (std::count(text.begin(), text.end(), '\n') >= lines) return true;
      }
      siginfo_t info = {};
      if (::waitid(P_PID, children_[0], &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
          info.si_pid == children_[0])
        return false;
      std::this_thread::sleep_for(5ms);
    }
  }

  std::string Checkpoint(const std::string& run, int iteration) const {
    char name[64];
    std::snprintf(name, sizeof(name), "/checkpoints/checkpoint_%08d.silc", iteration);
    return fs::exists(Path(run) + name) ? ReadFile(Path(run) + name) : "";
  }
  /// What a run says of its iterations, but for the time they took.
  std::string Figures(const std::string& run) const {
    std::istringstream lines(ReadFile(Path(run) + "/metrics.jsonl"));
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json json = nlohmann::json::parse(line);
      json.erase("steps_per_s");
      json.erase("wall_s");
      text += json.dump() + "\n";
    }
    return text;
  }

  fs::path folder_;
  std::unique_ptr<RankStore> store_;
  std::vector<pid_t> children_;
};

// A block of robots has draws, mini-batches and sums of its own, and blocks are added in their
// order: how many processes they are shared out to changes no bit.
TEST_F(CliRanks, TwoAndFourProcessesTrainWhatOneDoesWithAllRobots) {
  for (const std::string& method :
       {std::string(" --method baseline learn.scale_inputs=true"),
        std::string(
            " --method silc --mode compliance learn.penalty.samples=24 learn.penalty.every=2"
            " learn.penalty.schedule=multiplier learn.penalty.probes=2 learn.penalty.start=0")}) {
    const std::string one = "one" + std::to_string(method.size()), two = "two" + one,
                      four = "four" + one;
    const Outcome alone = Silc(Command(one, 16, 4) + method + " learn.groups=4");
    ASSERT_EQ(alone.code, 0) << alone.text;
    Train(2, Command(two, 8, 4) + method + " learn.groups=4");
    Train(4, Command(four, 4, 4) + method);
    for (const int iteration : {2, 4}) {
      const std::string expected = Checkpoint(one, iteration);
      ASSERT_FALSE(expected.empty());
      EXPECT_TRUE(Checkpoint(two, iteration) == expected) << method << iteration;
      EXPECT_TRUE(Checkpoint(four, iteration) == expected) << method << iteration;
    }
    for (const std::string& run : {two, four}) {
      EXPECT_EQ(Figures(run), Figures(one)) << method;
      EXPECT_TRUE(ReadFile(Path(run) + "/policy.onnx") == ReadFile(Path(one) + "/policy.onnx"));
    }
  }
  // rank 0 alone spoke
  EXPECT_NE(ReadFile(Log(0)).find("16 robots on 4 processes"), std::string::npos);
  for (int rank = 1; rank < 4; ++rank) EXPECT_EQ(ReadFile(Log(rank)), "");
}

TEST_F(CliRanks, ARunGoesOnWithAnotherNumberOfProcesses) {
  const Outcome whole = Silc(Command("whole", 16, 4) + " learn.groups=2");
  ASSERT_EQ(whole.code, 0) << whole.text;
  const std::string expected = Checkpoint("whole", 4);

  Train(2, Command("shrinks", 8, 2));
  const Outcome alone = Silc(Resume("shrinks", 4));
  ASSERT_EQ(alone.code, 0) << alone.text;
  EXPECT_TRUE(Checkpoint("shrinks", 4) == expected);

  const Outcome half = Silc(Command("grows", 16, 2) + " learn.groups=2");
  ASSERT_EQ(half.code, 0) << half.text;
  Train(2, Resume("grows", 4));
  EXPECT_TRUE(Checkpoint("grows", 4) == expected);

  // a run of one process has one block: two of it draw otherwise from there on, with the same
  // robots
  const Outcome plain = Silc(Command("plain", 16, 2));
  ASSERT_EQ(plain.code, 0) << plain.text;
  Train(2, Resume("plain", 4));
  EXPECT_FALSE(Checkpoint("plain", 4).empty());
  EXPECT_NE(ReadFile(Path("plain/config.yaml")).find("envs: 16\n"), std::string::npos);
  EXPECT_NE(ReadFile(Path("plain/config.yaml")).find("groups: 2\n"), std::string::npos);

  // three processes cannot share 16 robots
  Start(3, Resume("plain", 6));
  for (int rank = 0; rank < 3; ++rank) EXPECT_NE(Wait(rank), 0);
  EXPECT_NE(ReadFile(Log(0)).find("16 robots cannot be shared out evenly among 3 processes"),
            std::string::npos)
      << ReadFile(Log(0));
}

TEST_F(CliRanks, ALostRankEndsTheOthersAndLeavesTheLastCheckpoint) {
  for (const int lost : {1, 0}) {
    // with rank 0 its store goes, too
    const std::string run = "run" + std::to_string(lost);
    Start(3, Command(run, 4, 1000000) + " --rank-timeout 10", /*own_store=*/lost != 0);
    ASSERT_TRUE(WaitForLines(run, 5)) << ReadFile(Log(0));
    ::kill(children_[lost], SIGKILL);
    EXPECT_EQ(Wait(lost), -1);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == lost) continue;
      // the timeout, and time for three processes on a busy machine
      EXPECT_EQ(Wait(rank, 40s), 1) << "rank " << rank;
      const std::string text = ReadFile(Log(rank));
      EXPECT_NE(text.find("rank " + std::to_string(lost)), std::string::npos) << text;
      EXPECT_NE(text.find(" lost"), std::string::npos) << text;
      EXPECT_NE(text.find("silc train --resume " + Path(run)), std::string::npos) << text;
    }
    const int done = [&] {
      int newest = 0;
      for (int i = 2; i < 100000 && newest == 0; i += 2) {
        if (!Checkpoint(run, i).empty()) newest = i;
      }
      return newest;
    }();
    ASSERT_GT(done, 0);
    const Outcome resumed = Silc(Resume(run, 100000) + " --max-seconds 0.01");
    EXPECT_EQ(resumed.code, 0) << resumed.text;
    EXPECT_NE(resumed.text.find("goes on after iteration"), std::string::npos) << resumed.text;
    EXPECT_EQ(resumed.text.find("broken"), std::string::npos) << resumed.text;
  }
}

TEST_F(CliRanks, AllStopTogetherWithACheckpoint) {
  const auto stopped_at = [&](const std::string& run) {
    const std::string text = ReadFile(Path(run) + "/metrics.jsonl");
    const auto last = std::count(text.begin(), text.end(), '\n');
    EXPECT_FALSE(Checkpoint(run, static_cast<int>(last)).empty()) << last;
    EXPECT_TRUE(fs::exists(Path(run) + "/policy.onnx"));
    EXPECT_NE(ReadFile(Log(0)).find("stopped after iteration " + std::to_string(last)),
              std::string::npos)
        << ReadFile(Log(0));
  };
  // Ctrl-C reaches all of them, from the terminal and from who started them
  Start(2, Command("all", 4, 1000000));
  ASSERT_TRUE(WaitForLines("all", 3)) << ReadFile(Log(0));
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const pid_t child : children_) ::kill(child, signal);
  }
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(Wait(rank), 0) << ReadFile(Log(rank));
  stopped_at("all");

  // one that is told is enough
  Start(2, Command("one", 4, 1000000));
  ASSERT_TRUE(WaitForLines("one", 3)) << ReadFile(Log(0));
  ::kill(children_[1], SIGTERM);
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(Wait(rank), 0) << ReadFile(Log(rank));
  stopped_at("one");
}

// What one of them cannot do the others say, too.
TEST_F(CliRanks, AnErrorOfOneRankEndsAll) {
  const Outcome first = Silc(Command("run", 4, 1));
  ASSERT_EQ(first.code, 0) << first.text;
  Start(2, Command("run", 4, 1) + " --rank-timeout 10");
  EXPECT_EQ(Wait(0, 60s), 2);
  EXPECT_EQ(Wait(1, 60s), 1);
  EXPECT_NE(ReadFile(Log(0)).find("holds a run already"), std::string::npos) << ReadFile(Log(0));
  EXPECT_NE(ReadFile(Log(1)).find("rank 0 failed: "), std::string::npos) << ReadFile(Log(1));
  EXPECT_NE(ReadFile(Log(1)).find("holds a run already"), std::string::npos) << ReadFile(Log(1));
}

}  // namespace
}  // namespace silc
