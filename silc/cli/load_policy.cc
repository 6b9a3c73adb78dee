// SPDX-License-Identifier: Apache-2.0
#include "silc/cli/load_policy.h"

#include <cstdlib>
#include <filesystem>

#include "silc/policy/onnx/reader.h"
#include "silc/policy/policy_metadata.h"

namespace silc {

std::string LayoutFolder() {
  const char* chosen = std::getenv("SILC_LAYOUTS");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  for (const char* folder : {"layouts", SILC_LAYOUTS_SOURCE_DIR}) {
    if (std::filesystem::is_regular_file(std::filesystem::path(folder) / "falcon.yaml"))
      return folder;
  }
  return SILC_LAYOUTS_INSTALL_DIR;
}

Policy LoadPolicy(const std::string& onnx_path,
                  const std::string& layout,
                  const RobotModel& robot) {
  const OnnxModel model = ReadOnnx(onnx_path);
  PolicyOptions options;
  options.place = onnx_path;
  return Policy(model.graph,
                ChooseLayout(model.metadata, layout, LayoutFolder(), onnx_path),
                {robot.spec().joints, robot.spec().StandingPose().q},
                options);
}

}  // namespace silc
