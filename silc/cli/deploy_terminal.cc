// SPDX-License-Identifier: Apache-2.0
#include "silc/cli/deploy_terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <deque>
#include <iostream>
#include <mutex>
#include <thread>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/utf8.h"
#include "silc/cli/number.h"
#include "silc/deploy_tools/safety_config.h"
#include "silc/deploy_tools/simulated_robot.h"
#ifdef SILC_HAS_DDS
#include "silc/deploy/dds/dds_link.h"
#endif

namespace silc {

std::atomic<bool> console_hung_up{false};

namespace {

std::atomic<bool> asked_to_end{false};

void OnEnd(int) { asked_to_end = true; }
void OnHangUp(int) { console_hung_up = true; }

[[maybe_unused]] const char* const kNoDds =
    "this silc was built without Cyclone DDS: install cyclonedds-dev and cyclonedds-tools and "
    "configure again";

// Waits a little for a byte of standard input: 1 a byte, 0 none yet, −1 the end.
int ReadKey(char* key) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (poll(&input, 1, 50) <= 0) return 0;
  return read(STDIN_FILENO, key, 1) == 1 ? 1 : -1;
}

}  // namespace

const std::atomic<bool>& EndWhenAsked(HangUp hang_up) {
  struct sigaction action {};
  action.sa_handler = OnEnd;
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT}) sigaction(signal, &action, nullptr);
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  const bool by_nohup = before.sa_handler == SIG_IGN;  // is to outlive its terminal
  if (hang_up == HangUp::kIsTold) action.sa_handler = OnHangUp;
  if (hang_up == HangUp::kIsTold || !by_nohup) sigaction(SIGHUP, &action, nullptr);
  action.sa_handler = SIG_IGN;  // a reader that is gone is noticed when something is said
  sigaction(SIGPIPE, &action, nullptr);
  return asked_to_end;
}

void GoOnWhenSuspended() {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  for (const int signal : {SIGTSTP, SIGTTIN, SIGTTOU}) sigaction(signal, &action, nullptr);
}

void SayToOperator(const std::string& line) {
  const std::string text = Printable(line) + "\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return;
  if (errno == EPIPE || errno == EIO) console_hung_up = true;  // a full disk is no lost terminal
}

std::unique_ptr<RobotLink> NeedDdsLink(const std::string& network, int domain) {
#ifdef SILC_HAS_DDS
  return MakeDdsLink({.domain = domain, .network = network});
#else
  static_cast<void>(network);
  static_cast<void>(domain);
  throw ConfigError(kNoDds);
#endif
}

const char* DeployKeys::Help() {
  return "space EMERGENCY STOP · d damping · s stand up · p policy · c acknowledge a fault\n"
         "w/x faster/slower · a/f left/right · q/e turn · 0 stand still · ctrl-C end";
}

DeployKeys::DeployKeys(OperatorPanel* panel, double max_vx, double max_vy, double max_yaw_rate)
    : panel_(panel), max_vx_(max_vx), max_vy_(max_vy), max_yaw_rate_(max_yaw_rate), thread_([this] {
        Read();
      }) {}

DeployKeys::~DeployKeys() {
  over_ = true;
  thread_.join();
}

void DeployKeys::Read() {
  // keys as they are pressed, unseen
  termios before{};
  const bool terminal = isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &before) == 0;
  if (terminal) {
    termios raw = before;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  while (!over_) {
    char key = 0;
    const int got = ReadKey(&key);
    if (got > 0) Press(key);
    if (got < 0 || console_hung_up) {
      panel_->ConsoleLost();
      break;
    }
  }
  if (terminal) tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

void DeployKeys::Press(char key) {
  OperatorVelocity velocity = panel_->velocity();
  const auto step = [](double* value, double by, double most) {
    *value = std::clamp(*value + by, -most, most);
    if (std::abs(*value) < 1e-9) *value = 0;
  };
  switch (key) {
    case ' ':
      return panel_->Stop();
    case 'd':
      return panel_->Damp();
    case 's':
      return panel_->Stand();
    case 'p':
      return panel_->Run();
    case 'c':
      return panel_->Acknowledge();
    case 'w':
      step(&velocity.vx, 0.1, max_vx_);
      break;
    case 'x':
      step(&velocity.vx, -0.1, max_vx_);
      break;
    case 'a':
      step(&velocity.vy, 0.1, max_vy_);
      break;
    case 'f':
      step(&velocity.vy, -0.1, max_vy_);
      break;
    case 'q':
      step(&velocity.yaw_rate, 0.1, max_yaw_rate_);
      break;
    case 'e':
      step(&velocity.yaw_rate, -0.1, max_yaw_rate_);
      break;
    case '0':
      velocity = {};
      break;
    default:
      return;
  }
  panel_->SetVelocity(velocity);
}

std::vector<CLI::Option*> AddDdsSimOptions(CLI::App* sim, DdsSimArguments* args) {
  CLI::Option* network =
      sim->add_option("--network", args->network, "with --dds: interface")->capture_default_str();
  CLI::Option* domain = sim->add_option("--domain", args->domain, "with --dds: DDS domain")
                            ->check(NumberIn(0, 230))
                            ->capture_default_str();
  CLI::Option* script = sim->add_option(
      "--script",
      args->script,
      "with --dds: what happens when, as in '1 press start; 3.5 press A; 4 release; "
      "6 push 60 0 0 0.2'; @FILE: from a file");
  CLI::Option* end =
      sim->add_option(
             "--end", args->seconds, "with --dds: ends after this long [s]; 0: when stopped")
          ->check(NumberIn(0.0, 1e6))
          ->capture_default_str();
  CLI::Option* lockstep =
      sim->add_flag("--lockstep",
                    args->lockstep,
                    "with --dds: waits for a command after every state, however long that takes");
  return {network, domain, script, end, lockstep};
}

void SimulateOnNetwork(const DdsSimArguments& args) {
#ifdef SILC_HAS_DDS
  const RobotModel robot = RobotModel::Load(args.robot, SimulatedRobot::NeededLoad());
  NeedMotorOrder(robot.spec());
  SimulatedRobotOptions options;
  options.script =
      ParseScript(args.script.starts_with('@') ? ReadFile(args.script.substr(1), kMaxScriptBytes)
                                               : args.script);
  options.lockstep = args.lockstep;
  options.seconds = args.seconds;
  const std::unique_ptr<RobotPort> port =
      MakeDdsPort({.domain = args.domain, .network = args.network});
  SimulatedRobot simulated(robot);
  options.each_second = [](const SimulatedRobot& r) {
    SayToOperator(fmt::format(
        "{:6.1f} s  base {:+.2f} {:+.2f} {:.3f} m, tilt {:.2f} rad, fastest joint {:.1f} "
        "rad/s, torque {:.0f} %{}{}",
        r.time(),
        r.base_position().x(),
        r.base_position().y(),
        r.base_height(),
        r.tilt(),
        r.fastest_joint(),
        100 * r.strongest_torque(),
        r.held() ? ", in the gantry" : "",
        r.refused_commands() > 0 ? fmt::format(", {} commands refused", r.refused_commands())
                                 : ""));
    if (console_hung_up) asked_to_end = true;
  };
  // what is typed happens now
  std::mutex mutex;
  std::deque<ScriptEvent> typed;
  const std::atomic<bool>& stop = EndWhenAsked(HangUp::kEnds);
  // ends with the simulation, also where that throws
  const std::jthread reader([&](const std::stop_token& ended) {
    std::string line;
    while (!ended.stop_requested()) {
      char key = 0;
      const int got = ReadKey(&key);
      if (got < 0) return;
      if (got == 0) continue;
      if (key != '\n') {
        if (line.size() <= kMaxTypedBytes) line += key;
        continue;
      }
      try {
        if (line.size() > kMaxTypedBytes) throw ConfigError("a line that long is not read");
        const ScriptEvent event = ParseEvent(line);
        const std::lock_guard<std::mutex> lock(mutex);
        typed.push_back(event);
      } catch (const ConfigError& error) {
        std::fputs((Printable(error.what()) + "\n").c_str(), stderr);
      }
      line.clear();
    }
  });
  options.typed = [&](ScriptEvent* event) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (typed.empty()) return false;
    *event = typed.front();
    typed.pop_front();
    return true;
  };
  SayToOperator(fmt::format(
      "a {} on domain {}, interface {}. Type: press start, press A, release, stick ly 0.5, "
      "push 60 0 0 0.2, fault NAME, mend, end",
      robot.spec().name,
      args.domain,
      args.network));
  RunSimulation(&simulated, port.get(), options, stop);
  if (!simulated.divergence().empty()) {
    throw RunError("the simulation diverged " + simulated.divergence() +
                   "; nothing is sent any more");
  }
#else
  static_cast<void>(args);
  throw ConfigError(kNoDds);
#endif
}

}  // namespace silc
