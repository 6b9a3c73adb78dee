// SPDX-License-Identifier: Apache-2.0
// YAML from anywhere, taken for each of the files silc reads: a ConfigError or a value, nothing
// else. An MJCF is looked through before MuJoCo gets it, by the same rule.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/yaml.h"
#include "silc/config/budget_file.h"
#include "silc/policy/layout_file.h"
#include "silc/robot/gain_file.h"
#include "silc/robot/mjcf_check.h"
#include "silc/robot/robot_spec.h"
#include "silc/task/task_config.h"

namespace {

template <typename Read>
void Try(const Read& read) {
  try {
    read();
  } catch (const silc::ConfigError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Try([&] { silc::ParseRobotSpec(text, "fuzz.yaml"); });
  Try([&] { silc::ParseLayout(silc::YamlNode::Parse(text, "fuzz.yaml")); });
  Try([&] { silc::ParseBudget(text, "fuzz.yaml"); });
  Try([&] { silc::ParseTaskFile(text, "fuzz.yaml"); });
  static const silc::RobotSpec kG1 = silc::ReadRobotSpec(silc::FindRobotFile("g1"));
  Try([&] { silc::ParseGainFile(kG1, text, "fuzz.yaml"); });
  if (size < 200) Try([&] { silc::ReadBudget(std::string(text)); });  // as after --mode
  if (text.starts_with("<")) {
    static const std::string kFile =
        (std::filesystem::temp_directory_path() / "silc_yaml_fuzz.xml").string();
    silc::WriteFileAtomically(kFile, text);
    Try([&] { silc::CheckMjcfFile(kFile); });
  }
  return 0;
}
