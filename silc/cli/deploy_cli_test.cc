// SPDX-License-Identifier: Apache-2.0
// Two processes on the loopback interface, in lock step: a robot and its controller.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/cli/run_silc.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

// Domains of this program's tests: another checkout's tests may run beside them.
std::string Domain(int test) { return std::to_string(100 + 2 * (getpid() % 60) + test); }

std::string PolicyFile() { return SourcePath("policies/g1_loco_silc_compliance.onnx"); }

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
  const Outcome observed = Silc("observe " + PolicyFile() + " --states " + log);
  EXPECT_EQ(observed.code, 0) << observed.text;
  EXPECT_NE(observed.text.find("states from " + log), std::string::npos) << observed.text;
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
