// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/utf8.h"
#include "silc/cli/layout_option.h"
#include "silc/cli/mode_option.h"
#include "silc/cli/number.h"
#include "silc/cli/output_path.h"
#include "silc/cli/progress.h"
#include "silc/cli/verbs.h"
#include "silc/view/export_html.h"
#include "silc/view/replay.h"
#include "silc/view/session.h"
#include "silc/view/viewer.h"

namespace silc {
namespace {

struct ViewArguments {
  std::vector<std::string> policies;
  std::string robot = kDefaultRobot, layout, host = "127.0.0.1";
  std::optional<std::string> mode, budget, token;
  int port = 8080;
  std::string export_to, states;
  double seconds = 10;  // [s]
};

int end_pipe[2] = {-1, -1};

extern "C" void OnEndSignal(int /*signal*/) {
  [[maybe_unused]] const auto written = ::write(end_pipe[1], "", 1);
}

// Ctrl-C or a polite kill as a stop token. A handler and not a blocked signal: LibTorch's libraries
// start threads before main() that would take a blocked one.
class EndSignals {
 public:
  EndSignals() {
    if (::pipe2(end_pipe, O_CLOEXEC) != 0) throw RunError("silc view: no pipe could be opened");
    thread_ = std::thread([this] {
      char byte = 0;
      while (::read(end_pipe[0], &byte, 1) < 0 && errno == EINTR) {
      }
      stop_.request_stop();
    });
    struct sigaction action = {};
    action.sa_handler = OnEndSignal;
    action.sa_flags = SA_RESTART;
    for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
  }
  ~EndSignals() {
    OnEndSignal(0);  // where something else ended the work
    thread_.join();
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
    for (const int end : end_pipe) ::close(end);
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::thread thread_;
};

void TellAddress(const std::string& address) {
  fmt::print("open {}\n  Ctrl-C ends it\n", address);
  std::fflush(stdout);
}

// The policies of runs that have had no checkpoint yet. `watched` as in ViewerOptions.
std::vector<std::string> NotWrittenYet(const std::vector<std::string>& watched) {
  std::vector<std::string> files;
  for (const std::string& file : watched) {
    if (!file.empty() && !std::filesystem::exists(file)) files.push_back(file);
  }
  return files;
}

// A recording needs its policies now.
void RequirePolicies(const std::vector<std::string>& watched) {
  const std::vector<std::string> files = NotWrittenYet(watched);
  if (files.empty()) return;
  throw ConfigError(files.front() + ": is not there; a run writes it at its checkpoints");
}

// Waits for the first checkpoints of runs that have had none. False: asked to stop before.
bool WaitForPolicies(const ViewerOptions& options, const std::stop_token& stop) {
  const std::vector<std::string> files = NotWrittenYet(options.watched);
  if (!files.empty()) CheckServerOptions(options.server);
  for (const std::string& file : files) {
    fmt::print("waiting for a first checkpoint: {}; Ctrl-C ends it\n", Printable(file));
    std::fflush(stdout);
    if (!WaitForFile(file, stop)) return false;
  }
  return true;
}

void RunView(const ViewArguments& args) {
  if (args.mode) ReadPlainBudget(*args.mode);  // a wrong one is told before any work begins
  ViewerOptions options;
  std::vector<std::string> policies = args.policies;
  if (policies.empty()) {
    if (args.robot != kDefaultRobot) {
      throw ConfigError("silc view --robot " + args.robot + ": name a POLICY for it");
    }
    policies = ComparedPolicies();
  }
  for (const std::string& policy : policies) {
    options.simulation.policies.push_back(FindPolicyFile(policy));
    options.watched.push_back(
        options.simulation.policies.back() == policy ? "" : options.simulation.policies.back());
  }
  options.simulation.robot = args.robot;
  options.simulation.layout = args.layout;
  options.simulation.mode = args.mode;
  options.simulation.budget = args.budget;
  options.simulation.choices = ShippedPolicies(args.robot);
  options.server.host = args.host;
  options.server.port = args.port;
  if (args.token) {
    options.server.token = *args.token == "random" ? RandomToken() : *args.token;
    CheckToken(options.server.token);
  }

  std::vector<std::string> inputs = options.simulation.policies;
  inputs.insert(inputs.end(), {args.states, args.robot, args.layout});
  RequireWritable({{"--export", args.export_to}}, inputs);
  if (!args.states.empty()) {
    if (policies.size() != 1 || args.policies.empty()) {
      throw ConfigError("silc view --states: name the one POLICY that made these states");
    }
    RequirePolicies(options.watched);
    const bool served = args.export_to.empty();
    if (served) CheckServerOptions(options.server);
    std::string page;
    {
      ProgressLine progress("observing");
      page = StatesPage(options.simulation, args.states, served, progress.callback());
    }
    if (served) {
      const EndSignals signals;
      ServeRecording(options.server, std::move(page), signals.token(), TellAddress);
      fmt::print("ended\n");
    } else {
      WriteFileAtomically(args.export_to, page);
      fmt::print("wrote {}\n", Printable(args.export_to));
    }
    return;
  }
  if (!args.export_to.empty()) {
    RequirePolicies(options.watched);
    ExportOptions recording{options.simulation, args.seconds};
    ProgressLine progress("recording");
    WriteFileAtomically(args.export_to, ExportHtml(recording, progress.callback()));
    fmt::print("wrote {}\n", Printable(args.export_to));
    return;
  }
  const EndSignals signals;
  if (WaitForPolicies(options, signals.token())) {
    RunViewer(options, signals.token(), TellAddress, [](const std::string& text) {
      fmt::print(stderr, "silc: {}\n", Printable(text));
    });
  }
  fmt::print("ended\n");
}

}  // namespace

void AddView(CLI::App* app) {
  auto args = std::make_shared<ViewArguments>();
  CLI::App* verb = app->add_subcommand(
      "view", "policies live in a browser: push the robot and see what it answers");
  verb->add_option("policy",
                   args->policies,
                   "ONNX files or folders of training runs, a robot each "
                   "[the shipped silc_compliance and baseline]")
      ->expected(0, 4);
  verb->add_option("--robot", args->robot, "robot by name, or its robot.yaml")
      ->capture_default_str();
  verb->add_option("--layout", args->layout, LayoutHelp("what the policies see", "what each says"));
  AddModeOption(verb, &args->mode, "budget to hold them to", "the one inside each policy");
  AddBudgetOption(verb, &args->budget);
  verb->add_option("--port", args->port, "of the page; 0: any that is free")
      ->check(WholeIn(0, 65535))
      ->capture_default_str();
  verb->add_option("--host", args->host, "address to listen on; beyond the loopback with --token")
      ->capture_default_str();
  verb->add_option(
      "--token",
      args->token,
      "pages have to name it: 16 letters or more, or 'random'; in the printed address");
  CLI::Option* to = verb->add_option("--export",
                                     args->export_to,
                                     "record, with pushes, and write one HTML file that plays "
                                     "without a server");
  verb->add_option("--seconds", args->seconds, "of --export [s]")
      ->check(NumberIn(0.1, 30))
      ->needs(to)
      ->capture_default_str();
  verb->add_option("--states",
                   args->states,
                   "play these states of a robot, a log of silc deploy or an .npz of qpos and "
                   "qvel, with the stiffness that POLICY makes there");
  verb->callback([args] { RunView(*args); });
}

}  // namespace silc
