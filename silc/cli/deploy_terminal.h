// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

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
void AddDdsSimOptions(CLI::App* sim, DdsSimArguments* args);
void SimulateOnNetwork(const DdsSimArguments& args);

/// The controller's end over DDS. Throws ConfigError where silc was built without it.
std::unique_ptr<RobotLink> NeedDdsLink(const std::string& network, int domain);

/// True once the program was asked to end (SIGINT, SIGTERM); what is asked for by SIGHUP besides
/// is in console_lost.
const std::atomic<bool>& EndWhenAsked();
extern std::atomic<bool> console_hung_up;

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
  double vx_ = 0, vy_ = 0, yaw_rate_ = 0;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace silc
