// SPDX-License-Identifier: Apache-2.0
// Two processes on the loopback interface, in lock step: a robot and its controller.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/cli/run_silc.h"
#include "silc/npz/npz.h"
#ifdef SILC_HAS_VIEW
#include "silc/view/client.h"
#endif

namespace silc {
namespace {

namespace fs = std::filesystem;

// Domains of this program's tests: another checkout's tests may run beside them.
std::string Domain(int test) { return std::to_string(100 + 2 * (getpid() % 60) + test); }

std::string PolicyFile() { return SourcePath("policies/g1_loco_silc_compliance.onnx"); }

#ifdef SILC_HAS_VIEW
// `silc view --states LOG` as a user starts it: the printed address has the recording, on the
// loopback, until Ctrl-C.
void ExpectServed(const std::string& log, const std::string& words) {
  const pid_t viewer =
      StartSilc("view " + PolicyFile() + " --states " + log + " --port 0", {}, words);
  const std::string begin = "open http://127.0.0.1:";
  std::string said;
  int status = 0;
  bool ended = false;
  // it observes the whole log first
  for (int i = 0; i < 6000 && !ended && said.find("Ctrl-C") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (fs::exists(words)) said = ReadFile(words);
    ended = waitpid(viewer, &status, WNOHANG) == viewer;
  }
  if (!ended) {
    EXPECT_TRUE(said.starts_with(begin)) << said;
    if (said.starts_with(begin)) {
      const HttpAnswer page = HttpGet(std::stoi(said.substr(begin.size())), "/");
      EXPECT_EQ(page.status, 200);
      EXPECT_NE(page.body.find("window.silcRecording"), std::string::npos);
    }
    kill(viewer, SIGINT);
    waitpid(viewer, &status, 0);
  }
  EXPECT_FALSE(ended) << said;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << ReadFile(words);
}
#endif

// An array of all chunks of a log, one after the other.
std::vector<double> FromLog(const std::string& log, const std::string& name, int width) {
  std::vector<double> values;
  for (int chunk = 0;; ++chunk) {
    char file[32];
    std::snprintf(file, sizeof file, "chunk_%06d.npz", chunk);
    const fs::path path = fs::path(log) / file;
    if (!fs::exists(path)) return values;
    const NpzFile npz = ReadNpz(path.string());
    if (!npz.Has(name)) continue;  // a second without the policy
    const std::vector<std::int64_t> shape = width > 1 ? std::vector<std::int64_t>{kAnySize, width}
                                                      : std::vector<std::int64_t>{kAnySize};
    const std::vector<double> some = npz[name].AsDoubles(shape, NpyArray::Finite::kNotRequired);
    values.insert(values.end(), some.begin(), some.end());
  }
}

// What the controller's process observed while it ran, against what another process makes of its
// log, at every moment: σ and the diagonal of K_s as numbers, the action loop as stable or not. Its
// radius is estimated on-line and exact afterwards.
void ExpectObservedAsLogged(const std::string& json_file, const std::string& log) {
  constexpr int kJoints = 29;
  const std::vector<double> sigma = FromLog(log, "sigma", 1), rho = FromLog(log, "rho", 1),
                            diagonal = FromLog(log, "K_s_diag", kJoints);
  const auto json = nlohmann::json::parse(ReadFile(json_file));
  const auto& moments = json["moments"];
  ASSERT_EQ(moments.size(), sigma.size());
  ASSERT_EQ(moments.size(), rho.size());
  ASSERT_EQ(moments.size() * kJoints, diagonal.size());
  ASSERT_GT(moments.size(), 200U);
  // null stands for what is no number. The file has seven digits: half a unit of the last is below
  // 5e-7 of the number.
  const auto expect_near = [](const nlohmann::json& again, double live, const std::string& what) {
    ASSERT_EQ(again.is_null(), !std::isfinite(live)) << what << ": " << again << ", " << live;
    if (again.is_null()) return;
    EXPECT_NEAR(again.get<double>(), live, 1e-6 * std::max(1.0, std::abs(live))) << what;
  };
  int judged = 0;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const auto& moment = moments[i];
    const std::string at = "moment " + std::to_string(i);
    ASSERT_TRUE(moment["loop_radius"].is_number()) << at;
    EXPECT_EQ(moment["loop_radius"].get<double>() < 1, rho[i] < 1) << at << ", rho " << rho[i];
    if (moment["budget_static"]["status"] != "ok" || std::isnan(sigma[i])) continue;
    ++judged;
    expect_near(moment["budget_static"]["sigma"], sigma[i], at + ", sigma");
    for (std::size_t j = 0; j < kJoints; ++j) {
      expect_near(moment["K_s"][j][j],
                  diagonal[i * kJoints + j],
                  at + ", K_s of joint " + std::to_string(j));
    }
  }
  EXPECT_GT(judged, static_cast<int>(moments.size()) / 2);
}

TEST(DeployCli, TwoProcessesStandUpWalkArePushedAndStop) {
  const fs::path folder = fs::path(::testing::TempDir()) / ("silc_deploy_" + Domain(0));
  fs::remove_all(folder);
  fs::create_directories(folder);
  WriteFileAtomically((folder / "script").string(),
                      "0.1 press B\n0.3 press start\n3 press A\n3.3 release\n4.5 stick ly 0.7\n"
                      "6 push 40 0 0 0.1\n7.3 stick ly 0\n8.5 press B\n");
  const std::string log = (folder / "log").string();
  const pid_t robot = StartSilc(
      "sim --dds --lockstep --domain " + Domain(0) + " --script @" + (folder / "script").string(),
      {},
      (folder / "robot.txt").string());
  const Outcome outcome = Silc("deploy " + PolicyFile() + " --network lo --lockstep --no-keys " +
                               "--preflight 0.5 --wait 60 --seconds 9 --domain " + Domain(0) +
                               " --log " + log + " < /dev/null");
  kill(robot, SIGINT);
  int status = 0;
  waitpid(robot, &status, 0);
  EXPECT_EQ(outcome.code, 0) << outcome.text << ReadFile((folder / "robot.txt").string());
  std::size_t at = 0;
  for (const char* state :
       {"now: damping", "now: standing up", "now: standing\n", "now: policy", "now: damping"}) {
    at = outcome.text.find(state, at);
    ASSERT_NE(at, std::string::npos) << state << "\n" << outcome.text;
  }
  EXPECT_EQ(outcome.text.find("STOP"), std::string::npos) << outcome.text;
  // walked, and on its feet, before it was let go
  const std::string seconds = ReadFile((folder / "robot.txt").string());
  const std::size_t last = seconds.find("   8.0 s  base +");
  ASSERT_NE(last, std::string::npos) << seconds;
  double x = 0, y = 0, z = 0;
  ASSERT_EQ(std::sscanf(seconds.c_str() + last, "   8.0 s  base %lf %lf %lf", &x, &y, &z), 3);
  EXPECT_GT(x, 0.2);
  EXPECT_GT(z, 0.6);
  EXPECT_EQ(seconds.find("refused"), std::string::npos);
  // what was logged can be looked at
  const std::string json = (folder / "observed.json").string();
  const Outcome observed = Silc("observe " + PolicyFile() + " --states " + log + " --json " + json);
  EXPECT_EQ(observed.code, 0) << observed.text;
  EXPECT_NE(observed.text.find("states from " + log), std::string::npos) << observed.text;
  ExpectObservedAsLogged(json, log);
#ifdef SILC_HAS_VIEW
  // a second of it is enough to look at
  const std::string second = (folder / "second").string();
  fs::create_directories(second);
  fs::copy_file(fs::path(log) / "chunk_000005.npz", fs::path(second) / "chunk_000000.npz");
  const std::string page = (folder / "page.html").string();
  const Outcome viewed = Silc("view " + PolicyFile() + " --states " + second + " --export " + page);
  EXPECT_EQ(viewed.code, 0) << viewed.text;
  EXPECT_NE(ReadFile(page).find("window.silcRecording"), std::string::npos);
  ExpectServed(second, (folder / "view.txt").string());
#endif
}

// A silc with a terminal or a pipe to type into.
class TypedSilc {
 public:
  /// On a terminal of its own: keys come as they are typed, its words come back here.
  static TypedSilc OnTerminal(const std::string& arguments) {
    TypedSilc silc;
    std::vector<std::string> words = Words(arguments);
    const std::vector<char*> argv = Pointers(&words);
    silc.pid_ = forkpty(&silc.in_, nullptr, nullptr, nullptr);
    if (silc.pid_ == 0) {
      execv(argv[0], argv.data());
      _exit(127);
    }
    return silc;
  }
  /// Lines from a pipe, its words into a file.
  static TypedSilc OnPipe(const std::string& arguments, const std::string& log) {
    TypedSilc silc;
    std::vector<std::string> words = Words(arguments);
    const std::vector<char*> argv = Pointers(&words);
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) return silc;
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    silc.pid_ = fork();
    if (silc.pid_ == 0) {
      dup2(ends[0], STDIN_FILENO);
      dup2(file, STDOUT_FILENO);
      close(ends[1]);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[0]);
    close(file);
    silc.in_ = ends[1];
    return silc;
  }

  void Type(const std::string& keys) const {
    ASSERT_EQ(write(in_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  /// Waits until its words, from where the last call ended, contain `text`; a minute at most.
  bool Says(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (true) {
      const std::size_t found = said_.find(text, heard_);
      if (found != std::string::npos) {
        heard_ = found + text.size();
        return true;
      }
      pollfd words{in_, POLLIN, 0};
      char some[4096];
      if (std::chrono::steady_clock::now() > end) return false;
      if (poll(&words, 1, 100) <= 0) continue;
      const ssize_t count = read(in_, some, sizeof some);
      if (count <= 0) return false;
      said_.append(some, static_cast<std::size_t>(count));
    }
  }
  /// Its exit status.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    close(in_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  const std::string& said() const { return said_; }
  pid_t pid() const { return pid_; }

 private:
  static std::vector<std::string> Words(const std::string& arguments) {
    std::vector<std::string> words = {SilcBinary()};
    std::istringstream stream(arguments);
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
  }
  static std::vector<char*> Pointers(std::vector<std::string>* words) {
    std::vector<char*> argv;
    for (std::string& word : *words) argv.push_back(word.data());
    argv.push_back(nullptr);
    return argv;
  }
  pid_t pid_ = -1;
  int in_ = -1;
  std::string said_;
  std::size_t heard_ = 0;
};

// Where the base was in the last whole line that a simulated robot wrote; false: none yet.
bool LastBase(const std::string& file, double* x, double* z, bool* held) {
  const std::string text = ReadFile(file);
  const std::size_t end = text.rfind('\n');
  if (end == std::string::npos || end == 0) return false;
  const std::size_t begin = text.rfind('\n', end - 1);
  const std::string line = text.substr(begin == std::string::npos ? 0 : begin + 1);
  double y = 0;
  if (std::sscanf(line.c_str(), "%*f s base %lf %lf %lf", x, &y, z) != 3) return false;
  *held = line.find("gantry") != std::string::npos;
  return true;
}

template <typename Condition>
bool Becomes(Condition condition) {
  for (int k = 0; k < 1200; ++k) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

TEST(DeployCli, WalksByKey) {
  const fs::path folder = fs::path(::testing::TempDir()) / ("silc_keys_" + Domain(0));
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string seconds = (folder / "robot.txt").string();
  TypedSilc robot = TypedSilc::OnPipe("sim --dds --lockstep --domain " + Domain(0), seconds);
  TypedSilc deploy =
      TypedSilc::OnTerminal("deploy " + PolicyFile() +
                            " --network lo --lockstep --preflight 0 --no-observe --wait 60 "
                            "--domain " +
                            Domain(0));
  EXPECT_TRUE(deploy.Says("space EMERGENCY STOP")) << deploy.said();
  deploy.Type("d");
  EXPECT_TRUE(deploy.Says("now: damping")) << deploy.said();
  deploy.Type("s");
  EXPECT_TRUE(deploy.Says("now: standing up")) << deploy.said();
  EXPECT_TRUE(deploy.Says("now: standing\r\n")) << deploy.said();
  deploy.Type("p");
  EXPECT_TRUE(deploy.Says("now: policy")) << deploy.said();
  double x = 0, z = 0, from = 0;
  bool held = true;
  robot.Type("release\n");
  EXPECT_TRUE(Becomes([&] { return LastBase(seconds, &x, &z, &held) && !held; }));
  from = x;
  deploy.Type("wwwww");  // 0.5 m/s
  EXPECT_TRUE(Becomes([&] { return LastBase(seconds, &x, &z, &held) && x > from + 0.4; }))
      << ReadFile(seconds);
  EXPECT_GT(z, 0.6) << "on its feet";
  deploy.Type(" ");
  EXPECT_TRUE(deploy.Says("emergency_stop: 1")) << deploy.said();
  EXPECT_TRUE(deploy.Says("now: damping")) << deploy.said();
  deploy.Type("s");
  EXPECT_TRUE(deploy.Says("refused, because of emergency_stop")) << deploy.said();
  deploy.Type("\x03");  // the end
  EXPECT_TRUE(deploy.Says("ended in a stop: emergency_stop")) << deploy.said();
  EXPECT_EQ(deploy.Wait(), 1);
  kill(robot.pid(), SIGINT);
  robot.Wait();
}

// Keys from nowhere are a terminal that is gone.
TEST(DeployCli, StopsWhenTheTerminalIsGone) {
  const std::string script = (fs::path(::testing::TempDir()) / ("silc_gone_" + Domain(1))).string();
  WriteFileAtomically(script, "0.1 press B\n");
  const pid_t robot =
      StartSilc("sim --dds --lockstep --domain " + Domain(1) + " --script @" + script);
  const Outcome outcome = Silc("deploy " + PolicyFile() +
                               " --network lo --lockstep --preflight 0 --no-observe --wait 60 "
                               "--seconds 1 --domain " +
                               Domain(1) + " < /dev/null");
  kill(robot, SIGINT);
  int status = 0;
  waitpid(robot, &status, 0);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.text.find("STOP"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("console_lost"), std::string::npos) << outcome.text;
}

TEST(DeployCli, SaysWhyItDoesNotDrive) {
  const Outcome alone =
      Silc("deploy " + PolicyFile() + " --network lo --wait 0.3 --preflight 0 --no-keys --domain " +
           Domain(1));
  EXPECT_EQ(alone.code, 1);
  EXPECT_NE(alone.text.find("no robot answered within 0.3 s"), std::string::npos) << alone.text;
  const Outcome other = Silc("deploy " + PolicyFile() + " --robot t1 --domain " + Domain(1));
  EXPECT_EQ(other.code, 2);
  const Outcome script = Silc("sim --dds --script '1 pres A' --domain " + Domain(1));
  EXPECT_EQ(script.code, 2);
  EXPECT_NE(script.text.find("did you mean press?"), std::string::npos) << script.text;
}

}  // namespace
}  // namespace silc
