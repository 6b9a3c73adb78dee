// SPDX-License-Identifier: Apache-2.0
#include "silc/cli/deploy_terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <deque>
#include <iostream>
#include <mutex>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/cli/number.h"
#include "silc/deploy_tools/simulated_robot.h"
#ifdef SILC_HAS_DDS
#include "silc/deploy/dds/dds_link.h"
#endif

namespace silc {

std::atomic<bool> console_hung_up{false};

namespace {

std::atomic<bool> asked_to_end{false};

void OnSignal(int signal) {
  if (signal == SIGHUP) {
    console_hung_up = true;
  } else {
    asked_to_end = true;
  }
}

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

const std::atomic<bool>& EndWhenAsked() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  return asked_to_end;
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
  const auto step = [](double* value, double by, double most) {
    *value = std::clamp(*value + by, -most, most);
    if (std::abs(*value) < 1e-9) *value = 0;
  };
  switch (key) {
    case ' ':
      panel_->Stop();
      break;
    case 'd':
      panel_->Damp();
      break;
    case 's':
      panel_->Stand();
      break;
    case 'p':
      panel_->Run();
      break;
    case 'c':
      panel_->Acknowledge();
      break;
    case 'w':
      step(&vx_, 0.1, max_vx_);
      break;
    case 'x':
      step(&vx_, -0.1, max_vx_);
      break;
    case 'a':
      step(&vy_, 0.1, max_vy_);
      break;
    case 'f':
      step(&vy_, -0.1, max_vy_);
      break;
    case 'q':
      step(&yaw_rate_, 0.1, max_yaw_rate_);
      break;
    case 'e':
      step(&yaw_rate_, -0.1, max_yaw_rate_);
      break;
    case '0':
      vx_ = vy_ = yaw_rate_ = 0;
      break;
    default:
      return;
  }
  panel_->SetVelocity(vx_, vy_, yaw_rate_);
}

void AddDdsSimOptions(CLI::App* sim, DdsSimArguments* args) {
  sim->add_option("--network", args->network, "with --dds: interface")->capture_default_str();
  sim->add_option("--domain", args->domain, "with --dds: DDS domain")
      ->check(NumberIn(0, 230))
      ->capture_default_str();
  sim->add_option("--script",
                  args->script,
                  "with --dds: what happens when, as in '1 press start; 3.5 press A; 4 release; "
                  "6 push 60 0 0 0.2'; @FILE: from a file");
  sim->add_option("--end", args->seconds, "with --dds: ends after this long [s]; 0: when stopped")
      ->check(NumberIn(0.0, 1e6))
      ->capture_default_str();
  sim->add_flag("--lockstep",
                args->lockstep,
                "with --dds: waits for a command after every state, however long that takes");
}

void SimulateOnNetwork(const DdsSimArguments& args) {
#ifdef SILC_HAS_DDS
  LoadOptions load;
  load.physics_period = 0.001;
  const RobotModel robot = RobotModel::Load(args.robot, load);
  if (robot.num_joints() != kRobotMotors) {
    throw ConfigError(robot.spec().file + ": the topics are those of a robot with 29 joints");
  }
  SimulatedRobotOptions options;
  options.script =
      ParseScript(args.script.starts_with('@') ? ReadFile(args.script.substr(1)) : args.script);
  options.lockstep = args.lockstep;
  options.seconds = args.seconds;
  const std::unique_ptr<RobotPort> port =
      MakeDdsPort({.domain = args.domain, .network = args.network});
  SimulatedRobot simulated(robot);
  options.each_second = [](const SimulatedRobot& r) {
    fmt::print(
        "{:6.1f} s  base {:+.2f} {:+.2f} {:.3f} m, tilt {:.2f} rad, fastest joint {:.1f} "
        "rad/s, torque {:.0f} %{}{}\n",
        r.time(),
        r.base_position().x(),
        r.base_position().y(),
        r.base_height(),
        r.tilt(),
        r.fastest_joint(),
        100 * r.strongest_torque(),
        r.held() ? ", in the gantry" : "",
        r.refused_commands() > 0 ? fmt::format(", {} commands refused", r.refused_commands()) : "");
    std::fflush(stdout);
  };
  // what is typed happens now
  std::mutex mutex;
  std::deque<ScriptEvent> typed;
  const std::atomic<bool>& stop = EndWhenAsked();
  std::atomic<bool> over{false};
  std::thread reader([&] {
    std::string line;
    while (!over) {
      char key = 0;
      const int got = ReadKey(&key);
      if (got < 0) return;
      if (got == 0) continue;
      if (key != '\n') {
        line += key;
        continue;
      }
      try {
        const ScriptEvent event = ParseEvent(line);
        const std::lock_guard<std::mutex> lock(mutex);
        typed.push_back(event);
      } catch (const ConfigError& error) {
        fmt::print(stderr, "{}\n", error.what());
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
  fmt::print(
      "a {} on domain {}, interface {}. Type: press start, press A, release, stick ly 0.5, "
      "push 60 0 0 0.2, fault NAME, mend, end\n",
      robot.spec().name,
      args.domain,
      args.network);
  std::fflush(stdout);
  RunSimulation(&simulated, port.get(), options, stop);
  over = true;
  reader.join();
#else
  static_cast<void>(args);
  throw ConfigError(kNoDds);
#endif
}

}  // namespace silc
