// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "silc/deploy_tools/test_walker.h"
#include "silc/observe/closed_loop.h"
#include "silc/observe/load_policy.h"

/// What the tests of a policy on a robot share.
namespace silc::test {

struct G1WithPolicy {
  RobotModel robot = RobotModel::Load("g1");
  TrainingNotes notes;
  Policy policy = LoadPolicy(WalkerFile(), "", robot, &notes);
  Servo servo = ServoFor(robot, policy, "");
};

/// A folder of that name that is not there yet.
inline std::string TestFolder(const char* name) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  return folder.string();
}

}  // namespace silc::test
