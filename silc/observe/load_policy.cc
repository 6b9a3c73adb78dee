// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/load_policy.h"

#include "silc/base/error.h"
#include "silc/policy/layout_file.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/policy_metadata.h"

namespace silc {

Policy LoadPolicy(const std::string& onnx_path,
                  const std::string& layout,
                  const RobotModel& robot,
                  TrainingNotes* notes) {
  const OnnxModel model = ReadOnnx(onnx_path);
  if (notes != nullptr) *notes = TrainingNotesOf(model.metadata);
  PolicyOptions options;
  options.place = onnx_path;
  return Policy(model.graph,
                ChooseLayout(model.metadata, layout, LayoutFolder(), onnx_path),
                {robot.spec().joints, robot.spec().StandingPose().q},
                options);
}

UserBudget TrainedBudget(const TrainingNotes& notes, const std::string& onnx_path) {
  try {
    return ReadBudget(notes.mode);
  } catch (const ConfigError&) {
    throw ConfigError(
        onnx_path + ": was trained under a budget '" + notes.mode +
        "' that does not come with silc: give its file, or another budget, by --mode");
  }
}

}  // namespace silc
