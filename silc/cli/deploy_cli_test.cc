// SPDX-License-Identifier: Apache-2.0
// Two processes on the loopback interface, in lock step: a robot and its controller.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
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
#include "silc/deploy/commander.h"
#include "silc/deploy_tools/test_log.h"
#include "silc/deploy_tools/test_walker.h"
#ifdef SILC_HAS_VIEW
#include "silc/view/client.h"
#endif

namespace silc {
namespace {

namespace fs = std::filesystem;
using test::FromLog;
using test::WalkerFile;

// An empty folder of a test's own.
fs::path TestFolder(const std::string& name) {
  fs::path folder = fs::path(::testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

// Ctrl-C for a silc that runs on its own, and its end.
void Interrupt(pid_t silc) {
  kill(silc, SIGINT);
  int status = 0;
  waitpid(silc, &status, 0);
}

// Domains of this program's tests: another checkout's tests may run beside them.
std::string Domain(int test) { return std::to_string(100 + 2 * (getpid() % 60) + test); }

#ifdef SILC_HAS_VIEW
// `silc view --states LOG` as a user starts it: the printed address has the recording, on the
// loopback, until Ctrl-C.
void ExpectServed(const std::string& log, const std::string& words) {
  const pid_t viewer =
      StartSilc("view " + WalkerFile() + " --states " + log + " --port 0", {}, words);
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

// What the controller's process observed while it ran, against what another process makes of its
// log, at every moment: σ and the diagonal of K_s as numbers, the action loop as stable or not. Its
// radius is estimated on-line and exact afterwards.
void ExpectObservedAsLogged(const std::string& json_file, const std::string& log) {
  constexpr int kJoints = 29;
  const std::vector<double> sigma = FromLog(log, "sigma"), rho = FromLog(log, "rho"),
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
    // a moment that one of the two cannot judge is none that the other can
    const std::string status = moment["quasi_static"]["status"];
    ASSERT_EQ(status == "ok", !std::isnan(sigma[i])) << at << ": " << status << ", " << sigma[i];
    if (std::isnan(sigma[i])) continue;
    ++judged;
    expect_near(moment["quasi_static"]["sigma"], sigma[i], at + ", sigma");
    for (std::size_t j = 0; j < kJoints; ++j) {
      expect_near(moment["K_s"][j][j],
                  diagonal[i * kJoints + j],
                  at + ", K_s of joint " + std::to_string(j));
    }
  }
  EXPECT_GE(judged, 50) << "how often a policy has a static stiffness is its own affair";
}

TEST(DeployCli, TwoProcessesStandUpWalkArePushedAndStop) {
  const fs::path folder = TestFolder("silc_deploy_" + Domain(0));
  WriteFileAtomically((folder / "script").string(),
                      "0.1 press B\n0.3 press start\n3 press A\n3.3 release\n4.5 stick ly 0.7\n"
                      "6 push 40 0 0 0.1\n7.3 stick ly 0\n8.5 press B\n");
  const std::string log = (folder / "log").string();
  const pid_t robot = StartSilc(
      "sim --dds --lockstep --domain " + Domain(0) + " --script @" + (folder / "script").string(),
      {},
      (folder / "robot.txt").string());
  const Outcome outcome = Silc("deploy " + WalkerFile() + " --network lo --lockstep --no-keys " +
                               "--preflight 0.5 --wait 60 --seconds 9 --domain " + Domain(0) +
                               " --log " + log + " < /dev/null");
  Interrupt(robot);
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
  const Outcome observed = Silc("observe " + WalkerFile() + " --states " + log + " --json " + json);
  EXPECT_EQ(observed.code, 0) << observed.text;
  EXPECT_NE(observed.text.find("states from " + log), std::string::npos) << observed.text;
  ExpectObservedAsLogged(json, log);
#ifdef SILC_HAS_VIEW
  // a second of it is enough to look at
  const std::string second = (folder / "second").string();
  fs::create_directories(second);
  fs::copy_file(fs::path(log) / "chunk_000005.npz", fs::path(second) / "chunk_000000.npz");
  const std::string page = (folder / "page.html").string();
  const Outcome viewed = Silc("view " + WalkerFile() + " --states " + second + " --export " + page);
  EXPECT_EQ(viewed.code, 0) << viewed.text;
  EXPECT_NE(ReadFile(page).find("window.silcRecording"), std::string::npos);
  ExpectServed(second, (folder / "view.txt").string());
#endif
}

// A silc with a terminal or a pipe to type into. It ends with the test program, also with one that
// a sanitizer ends: ctest waits for whoever holds its pipe.
class TypedSilc {
 public:
  /// On a terminal of its own: keys come as they are typed, its words come back here.
  static TypedSilc OnTerminal(const std::string& arguments) {
    TypedSilc silc;
    std::vector<std::string> words = Words(arguments);
    const std::vector<char*> argv = Pointers(&words);
    silc.pid_ = forkpty(&silc.in_, nullptr, nullptr, nullptr);
    if (silc.pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
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
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      setpgid(0, 0);  // a job of its own, as a shell starts it: one that can be suspended
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
  /// Its exit status; −1 when it was killed or suspended.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, WUNTRACED);
    if (WIFSTOPPED(status)) kill(pid_, SIGKILL);
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
  const fs::path folder = TestFolder("silc_keys_" + Domain(0));
  const std::string seconds = (folder / "robot.txt").string();
  TypedSilc robot = TypedSilc::OnPipe("sim --dds --lockstep --domain " + Domain(0), seconds);
  TypedSilc deploy =
      TypedSilc::OnTerminal("deploy " + WalkerFile() +
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

// The speed that was set by key is gone after a stop: the robot, in its gantry, is stopped while it
// walks and put under the policy again. Keys then count from zero.
TEST(DeployCli, ASpeedSetByKeyDoesNotOutliveAStop) {
  const fs::path folder = TestFolder("silc_stopped_" + Domain(0));
  const std::string log = (folder / "log").string();
  TypedSilc robot = TypedSilc::OnPipe("sim --dds --lockstep --domain " + Domain(0),
                                      (folder / "robot.txt").string());
  TypedSilc deploy =
      TypedSilc::OnTerminal("deploy " + WalkerFile() +
                            " --network lo --lockstep --preflight 0 --no-observe --wait 60 "
                            "--domain " +
                            Domain(0) + " --log " + log);
  EXPECT_TRUE(deploy.Says("space EMERGENCY STOP")) << deploy.said();
  // [m/s] forward in every control step of a session that is in the log already
  const auto forward = [&](int of_session) {
    const std::vector<double> command = FromLog(log, "command", 5),
                              session = FromLog(log, "session");
    std::vector<double> vx;
    // a chunk that was closed between the two readings is in the second alone
    for (std::size_t i = 0; i < std::min(session.size(), command.size() / 5); ++i) {
      if (session[i] == of_session) vx.push_back(command[5 * i]);
    }
    return vx;
  };
  const auto reaches = [&](int session, double vx) {
    return Becomes([&] {
      const std::vector<double> asked = forward(session);
      return !asked.empty() && std::abs(asked.back() - vx) < 1e-6;
    });
  };
  const auto enter_policy = [&] {
    deploy.Type("s");
    EXPECT_TRUE(deploy.Says("now: standing\r\n")) << deploy.said();
    deploy.Type("p");
    EXPECT_TRUE(deploy.Says("now: policy")) << deploy.said();
  };
  deploy.Type("d");
  EXPECT_TRUE(deploy.Says("now: damping")) << deploy.said();
  enter_policy();
  deploy.Type("wwww");
  EXPECT_TRUE(reaches(1, 0.4));
  deploy.Type(" ");
  EXPECT_TRUE(deploy.Says("now: damping")) << deploy.said();
  deploy.Type("c");
  EXPECT_TRUE(deploy.Says("acknowledged: emergency_stop")) << deploy.said();
  enter_policy();
  EXPECT_TRUE(reaches(2, 0));
  const std::vector<double> anew = forward(2);
  EXPECT_EQ(anew, std::vector<double>(anew.size(), 0)) << "it walks off";
  deploy.Type("w");
  EXPECT_TRUE(reaches(2, 0.1)) << ::testing::PrintToString(forward(2));
  deploy.Type("\x03");
  EXPECT_EQ(deploy.Wait(), 0) << deploy.said();
  kill(robot.pid(), SIGINT);
  robot.Wait();
}

// The first controller does not stop for a second one that only looks, or that pre-flight refuses.
TEST(DeployCli, ASecondOneThatDoesNotDriveStopsNobody) {
  const fs::path folder = TestFolder("silc_second_" + Domain(1));
  TypedSilc robot = TypedSilc::OnPipe("sim --dds --lockstep --domain " + Domain(1),
                                      (folder / "robot.txt").string());
  const std::string arguments = "deploy " + WalkerFile() +
                                " --network lo --lockstep --preflight 0 --no-observe --wait 60 "
                                "--domain " +
                                Domain(1);
  TypedSilc first = TypedSilc::OnTerminal(arguments);
  EXPECT_TRUE(first.Says("space EMERGENCY STOP")) << first.said();
  first.Type("d");
  EXPECT_TRUE(first.Says("now: damping")) << first.said();
  for (const char* how : {" --dry-run", ""}) {
    const Outcome second = Silc(arguments + " --no-keys --seconds 0.5" + how);
    EXPECT_EQ(second.code, 1) << how;
    EXPECT_NE(second.text.find("other program(s) write rt/lowcmd"), std::string::npos)
        << second.text;
  }
  first.Type("s");
  EXPECT_TRUE(first.Says("now: standing up")) << first.said();
  first.Type("\x03");
  EXPECT_EQ(first.Wait(), 0) << first.said();
  EXPECT_EQ(first.said().find("STOP at"), std::string::npos) << first.said();
  kill(robot.pid(), SIGINT);
  robot.Wait();
}

// Nobody reads what is said any more, as when `| tee` has died: a terminal that is gone, not the
// end of the program, which would leave the robot alone with its last command.
TEST(DeployCli, StopsWhenNobodyReadsWhatItSays) {
  const fs::path folder = TestFolder("silc_unread_" + Domain(1));
  const std::string script = (folder / "script").string(), fifo = (folder / "words").string(),
                    log = (folder / "log").string();
  // far enough away that its first words are read before
  WriteFileAtomically(script, "9.8 press B\n10 press start\n");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int words = open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(words, 0);
  const pid_t robot =
      StartSilc("sim --dds --lockstep --domain " + Domain(1) + " --script @" + script);
  TypedSilc deploy = TypedSilc::OnPipe("deploy " + WalkerFile() +
                                           " --network lo --lockstep --preflight 0 --no-observe "
                                           "--wait 60 --seconds 12 --domain " +
                                           Domain(1) + " --log " + log,
                                       fifo);
  // its first words, then no more; Ctrl-Z would leave the robot alone likewise
  EXPECT_TRUE(Becomes([&] {
    char some[4096];
    return read(words, some, sizeof some) > 0;
  }));
  close(words);
  kill(deploy.pid(), SIGTSTP);
  EXPECT_EQ(deploy.Wait(), 1);
  Interrupt(robot);
  const std::vector<double> time = FromLog(log, "tick_time"), state = FromLog(log, "tick_state"),
                            sent = FromLog(log, "tick_sent"),
                            latched = FromLog(log, "tick_latched");
  ASSERT_GT(time.size(), 1500U);
  EXPECT_GE(time.back() - time.front(), 12.9) << "to its end, and a second of damping";
  EXPECT_EQ(state.back(), static_cast<double>(DriveState::kDamping));
  EXPECT_EQ(latched.back(), static_cast<double>(DriveFault::kConsoleLost));
  EXPECT_EQ(sent.back(), 1);
}

// Keys from nowhere are a terminal that is gone.
TEST(DeployCli, StopsWhenTheTerminalIsGone) {
  const std::string script = (fs::path(::testing::TempDir()) / ("silc_gone_" + Domain(1))).string();
  WriteFileAtomically(script, "0.1 press B\n");
  const pid_t robot =
      StartSilc("sim --dds --lockstep --domain " + Domain(1) + " --script @" + script);
  const Outcome outcome = Silc("deploy " + WalkerFile() +
                               " --network lo --lockstep --preflight 0 --no-observe --wait 60 "
                               "--seconds 1 --domain " +
                               Domain(1) + " < /dev/null");
  Interrupt(robot);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.text.find("STOP"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("console_lost"), std::string::npos) << outcome.text;
}

TEST(DeployCli, SaysWhyItDoesNotDrive) {
  const Outcome alone =
      Silc("deploy " + WalkerFile() + " --network lo --wait 0.3 --preflight 0 --no-keys --domain " +
           Domain(1));
  EXPECT_EQ(alone.code, 1);
  EXPECT_NE(alone.text.find("no robot answered within 0.3 s"), std::string::npos) << alone.text;
  const Outcome other = Silc("deploy " + WalkerFile() + " --robot t1 --domain " + Domain(1));
  EXPECT_EQ(other.code, 2);
  const Outcome script = Silc("sim --dds --script '1 pres A' --domain " + Domain(1));
  EXPECT_EQ(script.code, 2);
  EXPECT_NE(script.text.find("did you mean press?"), std::string::npos) << script.text;
  const Outcome t1 = Silc("sim --dds --robot t1 --end 0.1 --domain " + Domain(1));
  EXPECT_EQ(t1.code, 2);
  EXPECT_NE(t1.text.find("a Unitree G1 with 29 joints alone speaks this protocol"),
            std::string::npos)
      << t1.text;
}

// In lock step a robot that is off is told to disable its motors, so that a simulation goes on: no
// network but the loopback interface may hear that.
TEST(DeployCli, LockStepStaysOnThisComputer) {
  for (const char* network : {"", "--network eth0", "--network 127.0.0.1"}) {
    const Outcome outcome =
        Silc("deploy " + WalkerFile() + " --lockstep --wait 0.1 --preflight 0 --no-keys " +
             network + " --domain " + Domain(1));
    EXPECT_EQ(outcome.code, 2) << network << outcome.text;
    EXPECT_NE(outcome.text.find("--lockstep: is for a simulation on this computer"),
              std::string::npos)
        << outcome.text;
  }
}

// An option that would do nothing is refused, on either side.
TEST(DeployCli, SimTakesNoOptionThatItWouldIgnore) {
  for (const char* ignored : {"--backend batch",
                              "--gains falcon",
                              "--pose home",
                              "--stiffness 2",
                              "--push 1,0,0@0.1",
                              "--push-duration 1",
                              "--seconds 1",
                              "--csv sim.csv",
                              "--plot sim.svg"}) {
    const Outcome outcome =
        Silc("sim --dds --end 0.1 " + std::string(ignored) + " --domain " + Domain(1));
    const std::string option(ignored, std::string(ignored).find(' '));
    EXPECT_EQ(outcome.code, 2) << ignored;
    EXPECT_NE(outcome.text.find("sim --dds: takes no " + option + ";"), std::string::npos)
        << outcome.text;
  }
  for (const char* ignored :
       {"--network lo", "--domain 3", "--script '1 end'", "--end 1", "--lockstep"}) {
    const Outcome outcome = Silc("sim --seconds 0.02 --backend mujoco " + std::string(ignored));
    EXPECT_EQ(outcome.code, 2) << ignored;
    EXPECT_NE(outcome.text.find(" is for sim --dds"), std::string::npos) << outcome.text;
  }
}

// One whose terminal is closed does not go on for ever, not even while it waits for a controller.
TEST(DeployCli, ASimulationEndsWithItsTerminal) {
  const std::string words = (TestFolder("silc_closed_" + Domain(1)) / "words").string();
  ASSERT_NE(signal(SIGHUP, SIG_DFL), SIG_ERR);  // this test may run under nohup
  const pid_t robot = StartSilc("sim --dds --lockstep --domain " + Domain(1), {}, words);
  EXPECT_TRUE(Becomes(
      [&] { return fs::exists(words) && ReadFile(words).find("on domain") != std::string::npos; }));
  kill(robot, SIGHUP);
  int status = -1;
  EXPECT_TRUE(Becomes([&] { return waitpid(robot, &status, WNOHANG) == robot; }));
  if (status == -1) return Interrupt(robot);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// A robot that MuJoCo cannot simulate: its process says so and ends, and does not begin anew.
TEST(DeployCli, ASimulationThatDivergesEnds) {
  const fs::path folder = TestFolder("silc_diverges_" + Domain(1));
  std::string model = ReadFile(SourcePath("robots/g1/g1.xml"));
  const std::string knee = "<joint name=\"left_knee_joint\"";
  ASSERT_NE(model.find(knee), std::string::npos);
  model.insert(model.find(knee) + knee.size(), " stiffness=\"1e9\" springref=\"1\"");
  WriteFileAtomically((folder / "g1.xml").string(), model);
  WriteFileAtomically((folder / "robot.yaml").string(),
                      ReadFile(SourcePath("robots/g1/robot.yaml")));
  const Outcome outcome = Silc("sim --dds --end 20 --robot " + folder.string() + " --domain " +
                               Domain(1) + " < /dev/null");
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("silc: the simulation diverged at "), std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("is no number or beyond 1e+10"), std::string::npos) << outcome.text;
}

// One in which MuJoCo gives up, here for want of memory, ends with an error and not by abort().
TEST(DeployCli, ASimulationThatThrowsEndsWithAnError) {
  const fs::path folder = TestFolder("silc_throws_" + Domain(1));
  std::string model = ReadFile(SourcePath("robots/g1/g1.xml"));
  const std::string first = "<compiler";
  ASSERT_NE(model.find(first), std::string::npos);
  model.insert(model.find(first), "<size memory=\"60K\"/>\n  ");
  WriteFileAtomically((folder / "g1.xml").string(), model);
  WriteFileAtomically((folder / "robot.yaml").string(),
                      ReadFile(SourcePath("robots/g1/robot.yaml")));
  const Outcome outcome = Silc("sim --dds --end 20 --robot " + folder.string() + " --domain " +
                               Domain(1) + " --script '0.1 release' < /dev/null");
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("mj_stackAlloc"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace silc
