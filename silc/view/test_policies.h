// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "silc/config/policy_budget.h"
#include "silc/lqr/stand_policy.h"
#include "silc/policy/onnx/writer.h"
#include "silc/policy/policy_metadata.h"

namespace silc {

/// Writes a G1 that stands and is told its budget, with the ranges of --mode command: the regulator
/// of silc/lqr, which turns at the waist by what it is told of its hands, so that one sees whether
/// it was told.
inline void WriteCommandedPolicy(const std::string& path) {
  const RobotModel robot = RobotModel::Load(kDefaultRobot);
  StandPolicy stand = DesignStandPolicy(robot);
  const UserBudget budget = ReadBudget("command");
  AddBudgetTerms(budget.spec.command, &stand.layout);
  constexpr float kYaw = 0.2f;  // [1] of the action per half a range
  MlpLayer& layer = stand.network.branches.front().front();
  const auto& joints = stand.layout.action.joints;
  const auto waist = std::ranges::find(joints, std::string("waist_yaw_joint")) - joints.begin();
  const int before = stand.network.inputs;
  std::vector<float> wider;
  for (int row = 0; row < layer.outputs; ++row) {
    const auto begin = layer.weight.begin() + row * before;
    wider.insert(wider.end(), begin, begin + before);
    for (int k = 0; k < kNumCommanded; ++k) {
      wider.push_back(row == waist && k == kCommandHands ? kYaw : 0.0f);
    }
  }
  layer.weight = std::move(wider);
  layer.inputs = stand.network.inputs = before + kNumCommanded;
  Metadata metadata = MetadataFor(stand.layout, "test_policies");
  TrainingNotes notes;
  notes.method = "silc";
  PutBudget(budget, &notes);
  WriteNotes(notes, &metadata);
  WriteOnnx(path, stand.network, "obs", "actions", metadata);
}

/// Writes a G1 that stands although its action loop is unstable: the regulator of silc/lqr but for
/// one wrist, whose action is
///
///     a_t = 1.1 a_{t−1} − 0.4 (q − q_pose) / α
///
/// With q at rest that grows by 1.1 a step, which is its spectral radius. In the robot q follows
/// α a, the two together shrink, and the wrist stays where it is.
inline void WriteUnstablePolicy(const std::string& path) {
  constexpr float kAgain = 1.1f, kBack = 0.4f;
  const RobotModel robot = RobotModel::Load(kDefaultRobot);
  StandPolicy stand = DesignStandPolicy(robot);
  MlpLayer& layer = stand.network.branches.front().front();
  const auto& joints = stand.layout.action.joints;
  const int joint = static_cast<int>(
      std::ranges::find(joints, std::string("left_wrist_yaw_joint")) - joints.begin());
  const int n = layer.outputs;  // the inputs are q, q̇ and the previous action, n each
  float* row = layer.weight.data() + joint * layer.inputs;
  std::fill_n(row, layer.inputs, 0.0f);
  row[joint] = -kBack / static_cast<float>(stand.layout.action.scale[joint]);
  row[2 * n + joint] = kAgain;
  layer.bias[joint] = 0;
  TrainingNotes notes;
  notes.method = "baseline";
  PutBudget(ReadBudget("compliance"), &notes);
  Metadata metadata = MetadataFor(stand.layout, "test_policies");
  WriteNotes(notes, &metadata);
  WriteOnnx(path, stand.network, "obs", "actions", metadata);
}

/// Writes a robot without hands that stands: the regulator of silc/lqr for the Berkeley Humanoid.
inline void WriteHandlessPolicy(const std::string& path) {
  const StandPolicy stand = DesignStandPolicy(RobotModel::Load("berkeley"));
  WriteOnnx(path, stand.network, "obs", "actions", MetadataFor(stand.layout, "test_policies"));
}

}  // namespace silc
