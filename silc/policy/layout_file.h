// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/base/yaml.h"
#include "silc/policy/observation_layout.h"

namespace silc {

/// A layout as a YAML file says it (docs/policies.md has the format). A file with `from_metadata:
/// mjlab` is a vocabulary: joints, pose, gains and the terms actually used come from the ONNX file
/// (policy_metadata.h).
struct LayoutFile {
  ObservationLayout layout;
  bool from_metadata = false;
};

/// Throws ConfigError with file, line and key.
LayoutFile ReadLayoutFile(const std::string& path);
LayoutFile ParseLayout(const YamlNode& node);

/// The layout as such a file, every number with all its digits; what a run folder keeps.
std::string LayoutYaml(const ObservationLayout& layout);

/// The path of a layout given by name ("falcon": falcon.yaml in the first of the folders that has
/// one) or by path (anything with a slash or ending in .yaml). Throws ConfigError that lists the
/// known names.
/// @param folders  in the order to look, ':' between them
std::string FindLayout(const std::string& name_or_path, const std::string& folders);

/// The names that FindLayout() knows in these folders, sorted.
std::vector<std::string> LayoutNames(const std::string& folders);

/// The folders of the layouts that go by name: those of $SILC_LAYOUTS, ./layouts, the source
/// tree's, the installed one.
std::string LayoutFolders();

}  // namespace silc
