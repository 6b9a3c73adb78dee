// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/load_policy.h"

#include <filesystem>
#include <string>

#include "silc/base/file.h"
#include "silc/base/sha256.h"
#include "silc/config/policy_budget.h"
#include "silc/policy/layout_file.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/policy_metadata.h"
#include "silc/robot/robot_fit.h"

namespace silc {

Policy LoadPolicy(const std::string& onnx_path,
                  const std::string& layout,
                  const RobotModel& robot,
                  TrainingNotes* notes) {
  NeedStiffness(robot);
  const OnnxModel model = ReadOnnx(onnx_path);
  const TrainingNotes own = TrainingNotesOf(model.metadata);
  if (notes != nullptr) *notes = own;
  PolicyOptions options;
  options.place = onnx_path;
  Policy policy(model.graph,
                ChooseLayout(model.metadata, layout, LayoutFolders(), onnx_path),
                {robot.spec().joints, robot.spec().StandingPose().q},
                options);
  if (policy.sees_budget()) {
    if (const auto told = BudgetOfPolicy(own, onnx_path).told) policy.SetBudget(*told);
  }
  return policy;
}

std::string PolicyHash(const std::string& path) {
  const std::string bytes = ReadFile(path, kMaxOnnxBytes);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const OnnxModel model = ParseOnnx(bytes, path, {}, folder.empty() ? "." : folder);
  return Sha256(model.external_hash.empty() ? bytes : bytes + model.external_hash);
}

}  // namespace silc
