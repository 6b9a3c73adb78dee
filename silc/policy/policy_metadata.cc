// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/policy_metadata.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "silc/base/error.h"
#include "silc/base/limits.h"
#include "silc/base/nearest.h"
#include "silc/base/utf8.h"
#include "silc/policy/layout_file.h"

namespace silc {
namespace {

using nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

[[noreturn]] void Fail(const std::string& place, const std::string& key, const std::string& what) {
  throw ConfigError(place + ": metadata '" + key + "': " + what);
}

const std::string& Value(const Metadata& metadata,
                         const std::string& key,
                         const std::string& place) {
  const auto at = metadata.find(key);
  if (at == metadata.end()) {
    throw ConfigError(
        place + ": metadata '" + key + "' is missing, so the observation is not known\n" +
        "  Describe it in a layout file (docs/policies.md) and pass it with --layout.");
  }
  return at->second;
}

std::vector<std::string> Split(std::string_view text, char delimiter) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(delimiter, begin);
    std::string part(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    // names and numbers, never with blanks around them
    const std::size_t first = part.find_first_not_of(" \t");
    const std::size_t last = part.find_last_not_of(" \t");
    parts.push_back(first == std::string::npos ? "" : part.substr(first, last - first + 1));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

double Number(const std::string& text, const std::string& place, const std::string& key) {
  if (text == "inf") return kInfinity;
  if (text == "-inf") return -kInfinity;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || std::isnan(value)) {
    Fail(place, key, "'" + text + "' is no number");
  }
  return value;
}

std::vector<double> Numbers(const Metadata& metadata,
                            const std::string& key,
                            const std::string& place) {
  std::vector<double> numbers;
  for (const std::string& part : Split(Value(metadata, key, place), ',')) {
    numbers.push_back(Number(part, place, key));
    if (!std::isfinite(numbers.back())) Fail(place, key, "'" + part + "' is not finite");
  }
  return numbers;
}

template <typename T>
std::string Join(const std::vector<T>& parts, char delimiter = ',') {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += delimiter;
    if constexpr (std::is_same_v<T, std::string>) {
      text += parts[i];
    } else {
      text += ShortestNumber(parts[i]);
    }
  }
  return text;
}

// ------------------------------------------------------------------------------------- the silc
// block

/// Of JSON that says a key twice the library keeps the last in silence, and another reader the
/// first: such text is refused, as in YAML. Throws json::exception where it is no JSON.
json ParseJson(const std::string& text, const std::string& place, const std::string& key) {
  std::vector<std::set<std::string>> open;  // the keys of every object whose end has not come yet
  return json::parse(text, [&](int, json::parse_event_t event, const json& value) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second) {
      Fail(place, key, "'" + Printable(value.get<std::string>()) + "' is given twice");
    }
    return true;
  });
}

/// A JSON object read key by key; what was not asked for is an error in the end.
class Object {
 public:
  Object(const json& value, std::string place, std::string path)
      : value_(value), place_(std::move(place)), path_(std::move(path)) {
    if (!value_.is_object()) FailHere("must be an object");
  }

  bool Has(const char* key) {
    known_.push_back(key);
    return value_.contains(key);
  }
  const json& At(const char* key) {
    if (!Has(key)) FailHere(std::string("'") + key + "' is missing");
    return value_.at(key);
  }
  double Number(const char* key) {
    const json& x = At(key);
    if (!x.is_number()) FailHere(std::string("'") + key + "' must be a number");
    return x.get<double>();
  }
  int Int(const char* key, int low, int high) {
    const json& x = At(key);
    if (!x.is_number_integer() || x.get<double>() < low || x.get<double>() > high) {
      FailHere(std::string("'") + key + "' must be an integer in [" + std::to_string(low) + ", " +
               std::to_string(high) + "]");
    }
    return x.get<int>();
  }
  bool Bool(const char* key) {
    const json& x = At(key);
    if (!x.is_boolean()) FailHere(std::string("'") + key + "' must be true or false");
    return x.get<bool>();
  }
  std::string String(const char* key) {
    const json& x = At(key);
    if (!x.is_string()) FailHere(std::string("'") + key + "' must be a string");
    return x.get<std::string>();
  }
  std::vector<double> Numbers(const char* key) {
    std::vector<double> numbers;
    for (const json& x : List(key)) {
      if (!x.is_number()) FailHere(std::string("'") + key + "' must hold numbers");
      numbers.push_back(x.get<double>());
    }
    return numbers;
  }
  std::vector<std::string> Strings(const char* key) {
    std::vector<std::string> strings;
    for (const json& x : List(key)) {
      if (!x.is_string()) FailHere(std::string("'") + key + "' must hold strings");
      strings.push_back(x.get<std::string>());
    }
    return strings;
  }
  const json& List(const char* key) {
    const json& x = At(key);
    if (!x.is_array()) FailHere(std::string("'") + key + "' must be a list");
    return x;
  }
  std::string Choice(const char* key, const std::vector<std::string>& choices) {
    std::string word = String(key);
    if (std::find(choices.begin(), choices.end(), word) == choices.end()) {
      FailHere(std::string("'") + key + "': '" + word + "' is not known" +
               DidYouMean(word, choices));
    }
    return word;
  }
  void Done() const {
    for (const auto& item : value_.items()) {
      if (std::find(known_.begin(), known_.end(), item.key()) == known_.end()) {
        FailHere("unknown key '" + item.key() + "'" + DidYouMean(item.key(), known_));
      }
    }
  }
  [[noreturn]] void FailHere(const std::string& what) const {
    Fail(place_, "silc", (path_.empty() ? "" : path_ + ": ") + what);
  }

 private:
  const json& value_;
  std::string place_, path_;
  std::vector<std::string> known_;
};

json TermJson(const ObservationTerm& term) {
  json j = {{"name", term.name}, {"source", TermSourceName(term.source)}, {"scale", term.scale}};
  if (!term.joints.empty()) j["joints"] = term.joints;
  if (term.minus_default) j["minus_default"] = true;
  if (term.offset != 0) j["offset"] = term.offset;
  if (std::isfinite(term.clip)) j["clip"] = term.clip;
  if (std::isfinite(term.clip_input)) j["clip_input"] = term.clip_input;
  if (!term.constant.empty()) j["value"] = term.constant;
  if (term.history > 0) j["history"] = term.history;
  return j;
}

ObservationTerm TermFromJson(const json& value, const std::string& place, const std::string& path) {
  Object object(value, place, path);
  ObservationTerm term;
  term.name = object.String("name");
  const auto& names = TermSourceNames();
  const std::string source = object.Choice("source", names);
  term.source =
      static_cast<TermSource>(std::find(names.begin(), names.end(), source) - names.begin());
  term.scale = object.Numbers("scale");
  if (object.Has("joints")) term.joints = object.Strings("joints");
  if (object.Has("minus_default")) term.minus_default = object.Bool("minus_default");
  if (object.Has("offset")) term.offset = object.Number("offset");
  if (object.Has("clip")) term.clip = object.Number("clip");
  if (object.Has("clip_input")) term.clip_input = object.Number("clip_input");
  if (object.Has("value")) term.constant = object.Numbers("value");
  if (object.Has("history")) term.history = object.Int("history", 1, 1000);
  object.Done();
  return term;
}

std::string SilcBlock(const ObservationLayout& layout) {
  json j;
  j["schema"] = kSilcBlockVersion;
  j["name"] = layout.name;
  j["control_dt"] = layout.control_dt;
  j["joints"] = layout.joints;
  j["default_pose"] = layout.default_pose;
  if (!layout.kp.empty()) j["kp"] = layout.kp;
  if (!layout.kd.empty()) j["kd"] = layout.kd;
  if (!layout.effort_limit.empty()) j["effort_limit"] = layout.effort_limit;
  j["history"] = layout.history;
  j["order"] = layout.order == FrameOrder::kTermMajor ? "term_major" : "frame_major";
  j["frames"] = layout.newest_first ? "newest_first" : "oldest_first";
  j["reset"] = layout.reset == HistoryReset::kFirstFrame ? "first_frame" : "zeros";
  j["terms"] = json::array();
  for (const ObservationTerm& term : layout.terms) j["terms"].push_back(TermJson(term));
  json& action = j["action"];
  action["joints"] = layout.action.joints;
  action["scale"] = layout.action.scale;
  if (!layout.action.residual_joints.empty())
    action["residual_joints"] = layout.action.residual_joints;
  if (std::isfinite(layout.action.clip)) action["clip"] = layout.action.clip;
  if (layout.clock.period != 0) {
    j["clock"] = {{"period", layout.clock.period},
                  {"offsets", layout.clock.offsets},
                  {"standing_phase", layout.clock.standing_phase},
                  {"standing_speed", layout.clock.standing_speed}};
    if (layout.clock.standing_zero) j["clock"]["standing_zero"] = true;
  }
  if (!layout.input.empty()) j["input"] = layout.input;
  if (!layout.output.empty()) j["output"] = layout.output;
  return j.dump();
}

/// Whether mjlab's keys can say all there is to say about the observation and the action.
bool MjlabCanExpress(const ObservationLayout& layout) {
  if (layout.newest_first || layout.clock.period != 0 || !layout.action.residual_joints.empty())
    return false;
  if (layout.action.joints != layout.joints || std::isfinite(layout.action.clip)) return false;
  for (const ObservationTerm& term : layout.terms) {
    if (std::isfinite(term.clip) || !term.joints.empty() || term.source == TermSource::kConstant ||
        term.offset != 0)
      return false;
    if (layout.order == FrameOrder::kFrameMajor && TermFrames(layout, term) > 1) return false;
  }
  return true;
}

}  // namespace

std::string ShortestNumber(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, error == std::errc() ? end : text);
}

bool HasSilcBlock(const Metadata& metadata) { return metadata.count("silc") > 0; }

bool HasMjlabKeys(const Metadata& metadata) {
  return metadata.count("joint_names") > 0 && metadata.count("observation_names") > 0;
}

bool HasHolosomaGains(const Metadata& metadata) {
  return metadata.count("dof_names") > 0 && metadata.count("kp") > 0 && metadata.count("kd") > 0;
}

ObservationLayout LayoutFromSilcBlock(const Metadata& metadata, const std::string& place) {
  json block;
  try {
    block = ParseJson(Value(metadata, "silc", place), place, "silc");
  } catch (const json::exception& error) {
    Fail(place, "silc", std::string("is no JSON: ") + error.what());
  }
  Object object(block, place, "");
  const int schema = object.Int("schema", 1, 1'000'000);
  if (schema > kSilcBlockVersion) {
    object.FailHere("schema " + std::to_string(schema) +
                    " is newer than this silc, which reads up to " +
                    std::to_string(kSilcBlockVersion));
  }
  ObservationLayout layout;
  layout.name = object.String("name");
  layout.control_dt = object.Number("control_dt");
  layout.joints = object.Strings("joints");
  layout.default_pose = object.Numbers("default_pose");
  if (object.Has("kp")) layout.kp = object.Numbers("kp");
  if (object.Has("kd")) layout.kd = object.Numbers("kd");
  if (object.Has("effort_limit")) layout.effort_limit = object.Numbers("effort_limit");
  layout.history = object.Int("history", 1, 1000);
  layout.order = object.Choice("order", {"frame_major", "term_major"}) == "term_major"
                     ? FrameOrder::kTermMajor
                     : FrameOrder::kFrameMajor;
  layout.newest_first = object.Choice("frames", {"oldest_first", "newest_first"}) == "newest_first";
  layout.reset = object.Choice("reset", {"zeros", "first_frame"}) == "first_frame"
                     ? HistoryReset::kFirstFrame
                     : HistoryReset::kZeros;
  for (const json& term : object.List("terms")) {
    layout.terms.push_back(
        TermFromJson(term, place, "terms[" + std::to_string(layout.terms.size()) + "]"));
  }
  Object action(object.At("action"), place, "action");
  layout.action.joints = action.Strings("joints");
  layout.action.scale = action.Numbers("scale");
  if (action.Has("residual_joints"))
    layout.action.residual_joints = action.Strings("residual_joints");
  if (action.Has("clip")) layout.action.clip = action.Number("clip");
  action.Done();
  if (object.Has("clock")) {
    Object clock(object.At("clock"), place, "clock");
    layout.clock.period = clock.Number("period");
    layout.clock.offsets = clock.Numbers("offsets");
    layout.clock.standing_phase = clock.Number("standing_phase");
    layout.clock.standing_speed = clock.Number("standing_speed");
    if (clock.Has("standing_zero")) layout.clock.standing_zero = clock.Bool("standing_zero");
    clock.Done();
  }
  if (object.Has("input")) layout.input = object.String("input");
  if (object.Has("output")) layout.output = object.String("output");
  object.Done();
  layout.Validate(place + ": metadata 'silc'");
  return layout;
}

ObservationLayout LayoutFromMjlab(const Metadata& metadata,
                                  const ObservationLayout& vocabulary,
                                  const std::string& place) {
  ObservationLayout layout = vocabulary;
  layout.file.clear();  // joints and numbers are the policy's
  layout.terms.clear();
  layout.joints = Split(Value(metadata, "joint_names", place), ',');
  layout.default_pose = Numbers(metadata, "default_joint_pos", place);
  layout.kp = Numbers(metadata, "joint_stiffness", place);
  layout.kd = Numbers(metadata, "joint_damping", place);
  layout.action.joints = layout.joints;
  layout.action.scale = Numbers(metadata, "action_scale", place);
  const auto per_joint = [&](const char* key, std::size_t count) {
    if (count != layout.joints.size()) {
      Fail(place,
           key,
           std::to_string(count) + " numbers for the " + std::to_string(layout.joints.size()) +
               " names of 'joint_names'; policies with passive joints need a layout file");
    }
  };
  per_joint("default_joint_pos", layout.default_pose.size());
  per_joint("joint_stiffness", layout.kp.size());
  per_joint("joint_damping", layout.kd.size());
  if (layout.action.scale.size() != 1) per_joint("action_scale", layout.action.scale.size());

  // which terms there are, and how each is made; what an export leaves out is the layout's word
  std::vector<std::string> known;
  for (const ObservationTerm& term : vocabulary.terms) known.push_back(term.name);
  const bool named = metadata.contains("observation_names");
  const std::vector<std::string> names =
      named ? Split(Value(metadata, "observation_names", place), ',') : known;
  if (names.size() > kMaxTerms) {
    Fail(place,
         "observation_names",
         std::to_string(names.size()) + " terms; silc reads at most " + std::to_string(kMaxTerms));
  }
  const auto strings = [&](const char* key) {
    return metadata.contains(key) ? Split(Value(metadata, key, place), ',')
                                  : std::vector<std::string>();
  };
  const auto numbers = [&](const char* key) {
    return metadata.contains(key) ? Numbers(metadata, key, place) : std::vector<double>();
  };
  const std::vector<std::string> scales = strings("observation_terms_scale");
  const std::vector<std::string> clips = strings("observation_terms_clip");
  const std::vector<double> histories = numbers("observation_terms_history_length");
  const std::vector<double> flattened = numbers("observation_terms_flatten_history_dim");
  const auto per_term = [&](const char* key, std::size_t count) {
    if (count != names.size() && metadata.contains(key)) {
      Fail(place,
           key,
           std::to_string(count) + " entries for " + std::to_string(names.size()) +
               " observation terms");
    }
  };
  per_term("observation_terms_scale", scales.size());
  per_term("observation_terms_clip", clips.size());
  per_term("observation_terms_history_length", histories.size());
  per_term("observation_terms_flatten_history_dim", flattened.size());

  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto at = std::find(known.begin(), known.end(), names[i]);
    if (at == known.end()) {
      Fail(place,
           "observation_names",
           "term '" + names[i] + "' is not known" +
               (vocabulary.file.empty() ? "" : " to " + vocabulary.file) +
               DidYouMean(names[i], known) +
               "\n  Describe the observation in a layout file and pass it with --layout.");
    }
    ObservationTerm term = vocabulary.terms[static_cast<std::size_t>(at - known.begin())];
    if (term.source == TermSource::kCommandTwist) {
      const std::string command = Value(metadata, "command_names", place);
      if (command != "twist" && command != "base_velocity") {
        Fail(place, "command_names", "'" + command + "' is not a single velocity command (twist)");
      }
    }
    if (!scales.empty()) {
      term.scale.clear();
      for (const std::string& part : Split(scales[i], ';')) {
        term.scale.push_back(Number(part, place, "observation_terms_scale"));
      }
    }
    if (!clips.empty()) {
      const std::vector<std::string> clip = Split(clips[i], ';');
      if (clip.size() != 2)
        Fail(place, "observation_terms_clip", "'" + clips[i] + "' is not 'low;high'");
      const double low = Number(clip[0], place, "observation_terms_clip");
      const double high = Number(clip[1], place, "observation_terms_clip");
      if (low != -high || !(high > 0)) {
        Fail(place,
             "observation_terms_clip",
             "'" + clips[i] + "' is not symmetric about zero, which is not supported");
      }
      // mjlab clips before it scales
      term.clip_input = high;
    }
    if (!histories.empty()) {
      if (!(histories[i] >= 0 && histories[i] <= 1000) ||
          histories[i] != std::floor(histories[i])) {
        Fail(place,
             "observation_terms_history_length",
             ShortestNumber(histories[i]) + " is no history length");
      }
      term.history = static_cast<int>(histories[i]);
    }
    // 0 and 1 both mean the present alone
    term.history = std::max(1, term.history);
    if (term.history > 1 && !flattened.empty() && flattened[i] == 0) {
      Fail(place,
           "observation_terms_flatten_history_dim",
           "term '" + names[i] + "' keeps its history as an axis, which is not supported");
    }
    layout.terms.push_back(std::move(term));
  }
  layout.history = 1;
  layout.Validate(place + ": metadata" +
                  (vocabulary.file.empty() ? "" : ", read with " + vocabulary.file));
  return layout;
}

void TakeHolosomaGains(const Metadata& metadata,
                       const std::string& place,
                       ObservationLayout* layout) {
  if (!HasHolosomaGains(metadata) || !layout->kp.empty()) return;
  const auto list = [&](const char* key) {
    json value;
    try {
      value = ParseJson(Value(metadata, key, place), place, key);
    } catch (const json::exception& error) {
      Fail(place, key, std::string("is no JSON: ") + error.what());
    }
    if (!value.is_array()) Fail(place, key, "must be a JSON list");
    return value;
  };
  std::vector<std::string> names;
  for (const json& name : list("dof_names")) {
    if (!name.is_string()) Fail(place, "dof_names", "must hold strings");
    names.push_back(name.get<std::string>());
  }
  const auto numbers = [&](const char* key) {
    std::vector<double> values;
    for (const json& x : list(key)) {
      if (!x.is_number()) Fail(place, key, "must hold numbers");
      values.push_back(x.get<double>());
    }
    if (values.size() != names.size()) {
      Fail(place,
           key,
           std::to_string(values.size()) + " numbers for " + std::to_string(names.size()) +
               " dof_names");
    }
    return values;
  };
  const std::vector<double> kp = numbers("kp"), kd = numbers("kd");
  if (names.size() != layout->joints.size()) {
    Fail(place,
         "dof_names",
         std::to_string(names.size()) + " joints, " + layout->Title() + " has " +
             std::to_string(layout->joints.size()));
  }
  std::vector<double> layout_kp, layout_kd;
  for (const std::string& joint : layout->joints) {
    const auto at = std::find(names.begin(), names.end(), joint);
    if (at == names.end()) {
      throw ConfigError(layout->Place(place) + ": joints: '" + joint + "' is not one of the " +
                        std::to_string(names.size()) + " 'dof_names' in the metadata of " + place +
                        DidYouMean(joint, names));
    }
    const auto i = static_cast<std::size_t>(at - names.begin());
    layout_kp.push_back(kp[i]);
    layout_kd.push_back(kd[i]);
  }
  layout->kp = std::move(layout_kp);
  layout->kd = std::move(layout_kd);
  layout->Validate(place + ": metadata");  // the gains are the file's; the rest has been looked at
}

ObservationLayout ChooseLayout(const Metadata& metadata,
                               const std::string& layout_name,
                               const std::string& folders,
                               const std::string& place) {
  std::string name = layout_name;
  if (name.empty()) {
    if (HasSilcBlock(metadata)) return LayoutFromSilcBlock(metadata, place);
    if (!HasMjlabKeys(metadata)) {
      throw ConfigError(
          place + ": the file does not say what it observes (no 'silc' block, no mjlab keys)\n" +
          "  Name its layout: --layout falcon, holosoma or a YAML file (docs/policies.md).");
    }
    for (const char* key : {"observation_terms_scale",
                            "observation_terms_clip",
                            "observation_terms_history_length",
                            "observation_terms_flatten_history_dim"}) {
      if (metadata.contains(key)) continue;
      throw ConfigError(place + ": has mjlab's joints, gains, pose and action scale, but no '" +
                        key +
                        "': it does not say how its terms are made\n  Give the terms in a layout "
                        "with 'from_metadata: mjlab' (docs/policies.md), or --layout mjlab if they "
                        "are plain: no scale, no clip, no history.");
    }
    name = "mjlab";
  }
  const LayoutFile file = ReadLayoutFile(FindLayout(name, folders));
  ObservationLayout layout =
      file.from_metadata ? LayoutFromMjlab(metadata, file.layout, place) : file.layout;
  TakeHolosomaGains(metadata, place, &layout);
  return layout;
}

Metadata MetadataFor(const ObservationLayout& layout, const std::string& run_path) {
  Metadata metadata;
  metadata["silc"] = SilcBlock(layout);
  metadata["run_path"] = run_path;
  metadata["joint_names"] = Join(layout.joints);
  metadata["default_joint_pos"] = Join(layout.default_pose);
  if (!layout.kp.empty()) {
    metadata["joint_stiffness"] = Join(layout.kp);
    metadata["joint_damping"] = Join(layout.kd);
  }
  if (!MjlabCanExpress(layout)) return metadata;

  metadata["action_scale"] =
      Join(layout.action.scale.size() == 1
               ? std::vector<double>(layout.joints.size(), layout.action.scale[0])
               : layout.action.scale);
  bool velocity = false;
  std::vector<std::string> names, scales, clips;
  std::vector<double> flattened, histories;
  for (const ObservationTerm& term : layout.terms) {
    names.push_back(term.name);
    scales.push_back(Join(term.scale, ';'));
    clips.push_back(ShortestNumber(-term.clip_input) + ";" + ShortestNumber(term.clip_input));
    const int frames = TermFrames(layout, term);
    histories.push_back(frames > 1 ? frames : 0);
    flattened.push_back(1);
    velocity = velocity || term.source == TermSource::kCommandTwist ||
               term.source == TermSource::kCommandLinVel ||
               term.source == TermSource::kCommandAngVel;
  }
  metadata["command_names"] = velocity ? "twist" : "";
  metadata["observation_names"] = Join(names);
  metadata["observation_terms_scale"] = Join(scales);
  metadata["observation_terms_flatten_history_dim"] = Join(flattened);
  metadata["observation_terms_history_length"] = Join(histories);
  metadata["observation_terms_clip"] = Join(clips);
  return metadata;
}

}  // namespace silc
