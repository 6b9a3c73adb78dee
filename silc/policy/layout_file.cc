// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/layout_file.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "silc/base/data_folder.h"
#include "silc/base/error.h"
#include "silc/base/nearest.h"

namespace silc {
namespace {

constexpr double kHuge = 1e9;

// A number for all, or one each.
std::vector<double> OneOrMany(const YamlNode& node) {
  if (node.IsScalar()) return {node.AsDouble()};
  return node.AsDoubles();
}

// A list in the order of `joints`, one number for all, or a map joint → number that names every
// joint or says `other` for the rest. `other` defaults to 0 where the quantity allows.
std::vector<double> PerJoint(const YamlNode& node,
                             const std::vector<std::string>& joints,
                             bool other_is_zero) {
  if (node.IsScalar()) return std::vector<double>(joints.size(), node.AsDouble());
  if (node.IsList()) {
    std::vector<double> values = node.AsDoubles();
    if (values.size() != joints.size()) {
      node.Fail(std::to_string(values.size()) + " numbers for " + std::to_string(joints.size()) +
                " joints");
    }
    return values;
  }
  std::vector<double> values(joints.size(), 0.0);
  std::vector<char> given(joints.size(), 0);
  for (const std::string& key : node.KeyNames()) {
    if (key == "other") continue;
    const auto at = std::find(joints.begin(), joints.end(), key);
    if (at == joints.end())
      node[key].Fail("is not one of the layout's joints" + DidYouMean(key, joints));
    const auto i = static_cast<std::size_t>(at - joints.begin());
    values[i] = node[key].AsDouble();
    given[i] = 1;
  }
  const bool has_other = node.Has("other");
  const double other = has_other ? node["other"].AsDouble() : 0.0;
  for (std::size_t i = 0; i < joints.size(); ++i) {
    if (given[i]) continue;
    if (!has_other && !other_is_zero)
      node.Fail("'" + joints[i] + "' is missing; name it or give 'other'");
    values[i] = other;
  }
  return values;
}

ObservationTerm ParseTerm(const YamlNode& node) {
  node.Keys({"name", "source"},
            {"joints", "minus_default", "scale", "clip", "clip_input", "value", "history"});
  ObservationTerm term;
  term.name = node["name"].AsString();
  const std::string source = node["source"].AsChoice(TermSourceNames());
  const auto& names = TermSourceNames();
  term.source =
      static_cast<TermSource>(std::find(names.begin(), names.end(), source) - names.begin());
  if (node.Has("joints")) term.joints = node["joints"].AsStrings();
  if (node.Has("minus_default")) term.minus_default = node["minus_default"].AsBool();
  if (node.Has("scale")) term.scale = OneOrMany(node["scale"]);
  if (node.Has("clip")) term.clip = node["clip"].AsDoubleIn(1e-9, kHuge);
  if (node.Has("clip_input")) term.clip_input = node["clip_input"].AsDoubleIn(1e-9, kHuge);
  if (node.Has("history")) term.history = node["history"].AsIntIn(1, 1000);
  if (term.source == TermSource::kConstant) {
    if (!node.Has("value")) node.Fail("a constant term needs 'value'");
    term.constant = OneOrMany(node["value"]);
  } else if (node.Has("value")) {
    node["value"].Fail("is for constant terms");
  }
  return term;
}

}  // namespace

LayoutFile ParseLayout(const YamlNode& node) {
  LayoutFile file;
  ObservationLayout& layout = file.layout;
  node.Keys({"name", "control_dt", "terms"},
            {"from_metadata",
             "joints",
             "default_pose",
             "kp",
             "kd",
             "effort_limit",
             "history",
             "order",
             "frames",
             "reset",
             "clip",
             "action",
             "clock",
             "input",
             "output"});
  layout.name = node["name"].AsString();
  layout.file = node.file();
  layout.control_dt = node["control_dt"].AsDoubleIn(1e-4, 1.0);
  if (node.Has("from_metadata")) {
    node["from_metadata"].AsChoice({"mjlab"});
    file.from_metadata = true;
    for (const char* key :
         {"joints", "default_pose", "kp", "kd", "effort_limit", "action", "history"}) {
      if (node.Has(key)) node[key].Fail("comes from the policy's metadata; leave it out");
    }
  }
  if (node.Has("history")) layout.history = node["history"].AsIntIn(1, 1000);
  if (node.Has("order")) {
    layout.order = node["order"].AsChoice({"frame_major", "term_major"}) == "term_major"
                       ? FrameOrder::kTermMajor
                       : FrameOrder::kFrameMajor;
  }
  if (node.Has("frames")) {
    layout.newest_first =
        node["frames"].AsChoice({"oldest_first", "newest_first"}) == "newest_first";
  }
  if (node.Has("reset")) {
    layout.reset = node["reset"].AsChoice({"zeros", "first_frame"}) == "first_frame"
                       ? HistoryReset::kFirstFrame
                       : HistoryReset::kZeros;
  }
  if (node.Has("input")) layout.input = node["input"].AsString();
  if (node.Has("output")) layout.output = node["output"].AsString();

  const YamlNode terms = node["terms"];
  for (int i = 0; i < terms.size(); ++i) {
    layout.terms.push_back(ParseTerm(terms[i]));
    // the layout's clip holds for every term that has none of its own
    if (node.Has("clip") && !terms[i].Has("clip"))
      layout.terms.back().clip = node["clip"].AsDoubleIn(1e-9, kHuge);
  }
  if (node.Has("clock")) {
    const YamlNode clock = node["clock"];
    clock.Keys({"period", "offsets", "standing_phase"}, {"standing_speed"});
    layout.clock.period = clock["period"].AsDoubleIn(1e-3, 1e3);
    layout.clock.offsets = clock["offsets"].AsDoubles();
    layout.clock.standing_phase = clock["standing_phase"].AsDouble();
    if (clock.Has("standing_speed"))
      layout.clock.standing_speed = clock["standing_speed"].AsDoubleIn(0, 10);
  }
  if (file.from_metadata) return file;

  for (const char* key : {"joints", "default_pose", "action"}) {
    if (!node.Has(key)) node.Fail(std::string("key '") + key + "' is missing");
  }
  layout.joints = node["joints"].AsStrings();
  layout.default_pose = PerJoint(node["default_pose"], layout.joints, true);
  if (node.Has("kp")) layout.kp = PerJoint(node["kp"], layout.joints, false);
  if (node.Has("kd")) layout.kd = PerJoint(node["kd"], layout.joints, false);
  if (node.Has("effort_limit"))
    layout.effort_limit = PerJoint(node["effort_limit"], layout.joints, false);
  const YamlNode action = node["action"];
  action.Keys({"scale"}, {"joints", "residual_joints", "clip"});
  layout.action.joints = action.Has("joints") ? action["joints"].AsStrings() : layout.joints;
  layout.action.scale = OneOrMany(action["scale"]);
  if (action.Has("residual_joints"))
    layout.action.residual_joints = action["residual_joints"].AsStrings();
  if (action.Has("clip")) layout.action.clip = action["clip"].AsDoubleIn(1e-9, kHuge);
  layout.Validate(node.file());
  return file;
}

LayoutFile ReadLayoutFile(const std::string& path) {
  return ParseLayout(YamlNode::ParseFile(path));
}

std::string FindLayout(const std::string& name_or_path, const std::string& directory) {
  namespace fs = std::filesystem;
  const bool is_path =
      name_or_path.find('/') != std::string::npos || fs::path(name_or_path).extension() == ".yaml";
  if (is_path) return name_or_path;
  const fs::path file = fs::path(directory) / (name_or_path + ".yaml");
  std::error_code ignored;
  if (fs::is_regular_file(file, ignored)) return file.string();
  std::vector<std::string> known;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == ".yaml") known.push_back(entry.path().stem().string());
  }
  std::sort(known.begin(), known.end());
  throw ConfigError("layout '" + name_or_path + "': no such layout in " + directory +
                    DidYouMean(name_or_path, known) +
                    "\n  Give one of those, or the path of a YAML file.");
}

std::string LayoutFolder() {
  const char* chosen = std::getenv("SILC_LAYOUTS");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  const std::vector<std::string> folders = DataFolders("layouts");
  for (const std::string& folder : folders) {
    if (std::filesystem::is_regular_file(std::filesystem::path(folder) / "falcon.yaml"))
      return folder;
  }
  return folders.back();
}

}  // namespace silc
