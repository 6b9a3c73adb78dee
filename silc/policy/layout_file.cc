// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/layout_file.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "silc/base/data_folder.h"
#include "silc/base/error.h"
#include "silc/base/limits.h"
#include "silc/base/nearest.h"
#include "silc/policy/policy_metadata.h"

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
  node.Keys(
      {"name", "source"},
      {"joints", "minus_default", "offset", "scale", "clip", "clip_input", "value", "history"});
  ObservationTerm term;
  term.name = node["name"].AsString();
  const std::string source = node["source"].AsChoice(TermSourceNames());
  const auto& names = TermSourceNames();
  term.source =
      static_cast<TermSource>(std::find(names.begin(), names.end(), source) - names.begin());
  if (node.Has("joints")) term.joints = node["joints"].AsStrings();
  if (node.Has("minus_default")) term.minus_default = node["minus_default"].AsBool();
  if (node.Has("offset")) term.offset = node["offset"].AsDouble();
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

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string Word(const std::string& text) { return Quoted(text); }
std::string Word(double value) { return ShortestNumber(value); }

template <typename T>
std::string List(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + Word(value);
  return "[" + text + "]";
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
    layout.clock.period = clock["period"].AsDoubleIn(kMinClockPeriod, kMaxClockPeriod);
    layout.clock.offsets = clock["offsets"].AsDoubles();
    if (clock["standing_phase"].AsString() == "zero") {
      layout.clock.standing_zero = true;
    } else {
      layout.clock.standing_phase = clock["standing_phase"].AsDouble();
    }
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

std::string LayoutYaml(const ObservationLayout& layout) {
  std::string text;
  const auto line = [&](const std::string& key, const std::string& value) {
    text += key + ": " + value + "\n";
  };
  line("name", Quoted(layout.name));
  line("control_dt", ShortestNumber(layout.control_dt));
  line("joints", List(layout.joints));
  line("default_pose", List(layout.default_pose));
  if (!layout.kp.empty()) line("kp", List(layout.kp));
  if (!layout.kd.empty()) line("kd", List(layout.kd));
  if (!layout.effort_limit.empty()) line("effort_limit", List(layout.effort_limit));
  line("history", std::to_string(layout.history));
  line("order", layout.order == FrameOrder::kTermMajor ? "term_major" : "frame_major");
  line("frames", layout.newest_first ? "newest_first" : "oldest_first");
  line("reset", layout.reset == HistoryReset::kFirstFrame ? "first_frame" : "zeros");
  if (layout.clock.period != 0) {
    line("clock",
         "{period: " + ShortestNumber(layout.clock.period) +
             ", offsets: " + List(layout.clock.offsets) +
             ", standing_phase: " + ShortestNumber(layout.clock.standing_phase) +
             ", standing_speed: " + ShortestNumber(layout.clock.standing_speed) + "}");
  }
  text += "terms:\n";
  for (const ObservationTerm& term : layout.terms) {
    text += "  - {name: " + Quoted(term.name) + ", source: " + TermSourceName(term.source);
    if (!term.joints.empty()) text += ", joints: " + List(term.joints);
    if (term.minus_default) text += ", minus_default: true";
    if (term.offset != 0) text += ", offset: " + ShortestNumber(term.offset);
    text +=
        ", scale: " + (term.scale.size() == 1 ? ShortestNumber(term.scale[0]) : List(term.scale));
    if (std::isfinite(term.clip_input)) text += ", clip_input: " + ShortestNumber(term.clip_input);
    if (std::isfinite(term.clip)) text += ", clip: " + ShortestNumber(term.clip);
    if (!term.constant.empty()) text += ", value: " + List(term.constant);
    if (term.history > 0) text += ", history: " + std::to_string(term.history);
    text += "}\n";
  }
  text += "action:\n";
  line("  joints", List(layout.action.joints));
  line("  scale", List(layout.action.scale));
  if (!layout.action.residual_joints.empty()) {
    line("  residual_joints", List(layout.action.residual_joints));
  }
  if (std::isfinite(layout.action.clip)) line("  clip", ShortestNumber(layout.action.clip));
  if (!layout.input.empty()) line("input", Quoted(layout.input));
  if (!layout.output.empty()) line("output", Quoted(layout.output));
  return text;
}

LayoutFile ReadLayoutFile(const std::string& path) {
  return ParseLayout(YamlNode::ParseFile(path));
}

std::string FindLayout(const std::string& name_or_path, const std::string& folders) {
  namespace fs = std::filesystem;
  const bool is_path =
      name_or_path.find('/') != std::string::npos || fs::path(name_or_path).extension() == ".yaml";
  if (is_path) return name_or_path;
  std::error_code ignored;
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    const fs::path file = fs::path(folder) / (name_or_path + ".yaml");
    if (fs::is_regular_file(file, ignored)) return file.string();
  }
  throw ConfigError("layout '" + name_or_path + "': no such layout in " + folders +
                    DidYouMean(name_or_path, LayoutNames(folders)) +
                    "\n  Give one of those, or the path of a YAML file.");
}

std::vector<std::string> LayoutNames(const std::string& folders) {
  namespace fs = std::filesystem;
  std::set<std::string> known;
  std::error_code ignored;
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    for (fs::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored)) {
      if (it->path().extension() == ".yaml") known.insert(it->path().stem().string());
    }
  }
  return {known.begin(), known.end()};
}

std::string LayoutFolders() {
  std::string folders;
  if (const char* chosen = std::getenv("SILC_LAYOUTS")) folders = chosen;
  for (const std::string& folder : DataFolders("layouts")) {
    folders += (folders.empty() ? "" : ":") + folder;
  }
  return folders;
}

}  // namespace silc
