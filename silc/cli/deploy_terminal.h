// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "silc/deploy/link.h"
#include "silc/deploy/node.h"

namespace silc {

/// `silc sim --dds`.
struct DdsSimArguments {
  std::string robot, network = "lo", script;
  int domain = 1;
  bool lockstep = false;
  double seconds = 0;  // [s] 0: until stopped
};
/// Gives the options that mean something with --dds alone.
std::vector<CLI::Option*> AddDdsSimOptions(CLI::App* sim, DdsSimArguments* args);
/// Until its time or script is over or the program is asked to end. Throws ConfigError for another
/// robot than a G1 and a script that cannot be read, RunError when the simulation diverges.
void SimulateOnNetwork(const DdsSimArguments& args);

/// The controller's end over DDS. Throws ConfigError where silc was built without it.
std::unique_ptr<RobotLink> NeedDdsLink(const std::string& network, int domain);

/// What a terminal that is closed means: a controller decides by itself, a simulation ends.
enum class HangUp { kIsTold, kEnds };
/// True once the program was asked to end (SIGINT, SIGTERM, SIGQUIT). After this call no signal of
/// a terminal or a pipe ends the program at once.
const std::atomic<bool>& EndWhenAsked(HangUp hang_up);
/// True once the terminal is gone: SIGHUP, or nobody reads what is said.
extern std::atomic<bool> console_hung_up;
/// Ctrl-Z and a place in the background no longer stop the program: a robot is driven.
void GoOnWhenSuspended();
/// A line on standard output, at once and without escapes. Does not throw.
void SayToOperator(const std::string& line);

/// Keys of the terminal, or of a pipe, as requests. Ends with its life.
class DeployKeys {
 public:
  DeployKeys(OperatorPanel* panel, double max_vx, double max_vy, double max_yaw_rate);
  ~DeployKeys();
  DeployKeys(const DeployKeys&) = delete;
  DeployKeys& operator=(const DeployKeys&) = delete;
  static const char* Help();

 private:
  void Read();
  void Press(char key);

  OperatorPanel* panel_;
  double max_vx_, max_vy_, max_yaw_rate_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace silc
