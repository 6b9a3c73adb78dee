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

}  // namespace silc
