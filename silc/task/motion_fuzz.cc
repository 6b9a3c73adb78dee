// SPDX-License-Identifier: Apache-2.0
// Motion files from anywhere: read or refused with a ConfigError, nothing else.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "silc/base/error.h"
#include "silc/robot/robot_model.h"
#include "silc/task/motion_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const silc::RobotModel robot = silc::RobotModel::Load("g1");
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // zip archives begin with "PK"; everything else is taken for text
  try {
    if (bytes.substr(0, 2) == "PK") {
      silc::ParseMotionNpz(bytes, "fuzz.npz", robot);
    } else {
      silc::ParseMotionCsv(bytes, "fuzz.csv", robot);
    }
  } catch (const silc::ConfigError&) {
  }
  return 0;
}
