// SPDX-License-Identifier: Apache-2.0
#include "silc/config/budget_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "silc/base/data_folder.h"
#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/nearest.h"
#include "silc/base/yaml.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

// Wider than any robot needs; catches N/mm written for N/m and the like.
constexpr double kSoftest = 1e-3, kStiffest = 1e9;  // [N/m], [N·m/rad]
// A band narrower than this leaves a policy nothing to do.
constexpr double kHighestFloor = 0.99;  // [1]

constexpr Channel kChannels[] = {Channel::kFollowed, Channel::kHeld};
constexpr Condition kConditions[] = {Condition::kDisc, Condition::kTwoSided, Condition::kOneSided};

template <typename Choices>
std::vector<std::string> NamesOf(const Choices& choices) {
  std::vector<std::string> names;
  for (const auto choice : choices) names.emplace_back(Name(choice));
  return names;
}

// The one of `choices` that a node names.
template <typename Choice, std::size_t kCount>
Choice ReadChoice(const YamlNode& node, const Choice (&choices)[kCount]) {
  const std::string name = node.AsChoice(NamesOf(choices));
  return *std::find_if(
      choices, choices + kCount, [&](Choice choice) { return name == Name(choice); });
}

Eigen::Vector3d ReadAxes(const YamlNode& node) {
  if (!node.IsList() || node.size() != 3) node.Fail("must be three numbers, N/m along x, y, z");
  Eigen::Vector3d axes;
  for (int i = 0; i < 3; ++i) axes[i] = node[i].AsDoubleIn(kSoftest, kStiffest);
  return axes;
}

BudgetRange ReadRange(const YamlNode& node) {
  const BudgetRange range = {node["from"].AsDoubleIn(kSoftest, kStiffest),
                             node["to"].AsDoubleIn(kSoftest, kStiffest)};
  if (range.low > range.high) {
    node.Fail(fmt::format("from: {:g} is above to: {:g}; swap them", range.low, range.high));
  }
  return range;
}

// The numbers of what is commanded, at the middle of the ranges.
void PutMiddle(BudgetSpec* spec) {
  const BudgetCommand command = spec->command;
  *spec = BudgetAt(*spec, MiddleOf(command));
  spec->command = command;
}

// "200/200/20000", "0/0/0.75"
std::string Slashed(const Eigen::Vector3d& axes) {
  return fmt::format("{:g}/{:g}/{:g}", axes[0], axes[1], axes[2]);
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == separator) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// a budget without changes; `mode` is what the user wrote, for messages
UserBudget FindBudget(const std::string& name, const std::string& mode) {
  if (name.find_first_of("./") != std::string::npos) {
    return ParseBudget(ReadFile(name, kMaxYamlBytes), name);
  }
  // high-stiff is high_stiff.yaml
  std::string stem = name;
  std::replace(stem.begin(), stem.end(), '-', '_');
  for (const std::string& folder : DataFolders("configs/budgets")) {
    const fs::path file = fs::path(folder) / (stem + ".yaml");
    std::error_code ignored;  // a name may be longer than any file's
    if (!fs::is_regular_file(file, ignored)) continue;
    UserBudget budget = ParseBudget(ReadFile(file.string(), kMaxYamlBytes), file.string());
    budget.name = name;
    return budget;
  }
  throw ConfigError("--mode " + mode + ": no such budget" + DidYouMean(name, BudgetNames()) +
                    "\n  A file of your own is given by its path, as in --mode ./soft.yaml.");
}

// One key=value after the name of a budget.
void Change(const std::string& word, const std::string& mode, BudgetSpec* spec) {
  const std::vector<std::string> kKeys = {"com",
                                          "hands",
                                          "left_hand",
                                          "right_hand",
                                          "hand_floor",
                                          "null_space",
                                          "torque",
                                          "gravity",
                                          "condition"};
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const auto fail = [&](const std::string& why) {
    throw ConfigError("--mode " + mode + ": " + why);
  };
  if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
    fail("'" + key + "' is nothing of a budget" + DidYouMean(key, kKeys));
  }
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (value.empty()) fail(key + ": has no value; a change is written " + key + "=VALUE");

  const auto number = [&](const std::string& text, double low, double high) {
    double parsed = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, parsed);
    if (error != std::errc() || stop != end) fail(key + ": '" + text + "' is no number");
    if (!(low <= parsed && parsed <= high)) {
      fail(fmt::format("{}: {:g} is outside [{:g}, {:g}]", key, parsed, low, high));
    }
    return parsed;
  };
  // one number for all axes, or one each
  const auto axes = [&](double low, double high) {
    const std::vector<std::string> parts = Split(value, '/');
    if (parts.size() != 1 && parts.size() != 3) {
      fail(key + ": takes one number for all axes, or three along x/y/z");
    }
    Eigen::Vector3d all;
    for (int i = 0; i < 3; ++i) all[i] = number(parts[parts.size() == 1 ? 0 : i], low, high);
    return all;
  };
  const auto choice = [&](const std::vector<std::string>& known) {
    const auto at = std::find(known.begin(), known.end(), value);
    if (at == known.end()) {
      fail(key + ": '" + value + "' is not a choice here" + DidYouMean(value, known));
    }
    return at - known.begin();
  };
  auto& range = spec->command.range;
  const std::size_t dots = value.find("..");
  if (dots != std::string::npos) {
    if (key != "com" && key != "hands" && key != "null_space") {
      fail(key + ": takes no range; com, hands and null_space do");
    }
    if (key == "com" && !spec->com) fail("com: the budget has no number along z; give a file");
    const BudgetRange given = {number(value.substr(0, dots), kSoftest, kStiffest),
                               number(value.substr(dots + 2), kSoftest, kStiffest)};
    if (given.low > given.high) fail(key + ": '" + value + "' is upside down");
    range[key == "com" ? kCommandCom : key == "hands" ? kCommandHands : kCommandNull] = given;
    if (key == "hands") spec->hand[0] = spec->hand[1] = Eigen::Vector3d::Ones();
    PutMiddle(spec);
    return;
  }
  // a number takes the place of a range
  if (key == "com") range[kCommandCom].reset();
  if (key.find("hand") != std::string::npos && key != "hand_floor") range[kCommandHands].reset();
  if (key == "null_space") range[kCommandNull].reset();
  if (key == "com") {
    spec->com = axes(kSoftest, kStiffest);
  } else if (key == "hands") {
    spec->hand[0] = spec->hand[1] = axes(kSoftest, kStiffest);
  } else if (key == "left_hand" || key == "right_hand") {
    spec->hand[key == "left_hand" ? 0 : 1] = axes(kSoftest, kStiffest);
  } else if (key == "hand_floor") {
    spec->hand_floor = axes(0, kHighestFloor);
  } else if (key == "null_space") {
    spec->null_stiffness = number(value, kSoftest, kStiffest);
  } else if (key == "condition") {
    spec->condition = kConditions[choice(NamesOf(kConditions))];
  } else {
    Channel* const channel = key == "torque" ? &spec->torque : &spec->gravity;
    *channel = kChannels[choice(NamesOf(kChannels))];
  }
}

}  // namespace

BudgetSpec ParseBudget(const YamlNode& root) {
  root.Keys({"null_space"},
            {"com", "hands", "left_hand", "right_hand", "hand_floor", "channels", "condition"});

  BudgetSpec spec;
  auto& range = spec.command.range;
  if (root.Has("com") && root["com"].IsMap()) {
    root["com"].Keys({"from", "to", "z"});
    range[kCommandCom] = ReadRange(root["com"]);
    spec.com = Eigen::Vector3d::Constant(root["com"]["z"].AsDoubleIn(kSoftest, kStiffest));
  } else if (root.Has("com")) {
    spec.com = ReadAxes(root["com"]);
  }
  if (root.Has("hands")) {
    if (root.Has("left_hand") || root.Has("right_hand")) {
      root["hands"].Fail("is for both hands; drop it, or left_hand and right_hand");
    }
    if (root["hands"].IsMap()) {
      root["hands"].Keys({"from", "to"});
      range[kCommandHands] = ReadRange(root["hands"]);
      spec.hand[0] = spec.hand[1] = Eigen::Vector3d::Ones();
    } else {
      spec.hand[0] = spec.hand[1] = ReadAxes(root["hands"]);
    }
  }
  if (root.Has("left_hand")) spec.hand[0] = ReadAxes(root["left_hand"]);
  if (root.Has("right_hand")) spec.hand[1] = ReadAxes(root["right_hand"]);

  const YamlNode null_space = root["null_space"];
  const bool null_range = null_space.IsMap() && null_space.Has("from");
  if (null_range) {
    null_space.Keys({"weight", "from", "to"});
    range[kCommandNull] = ReadRange(null_space);
  } else {
    null_space.Keys({"weight", "stiffness"});
  }
  const bool by_gains = null_space["weight"].AsChoice({"identity", "gains"}) == "gains";
  spec.weight = by_gains ? NullWeight::kServo : NullWeight::kIdentity;
  if (!null_range) {
    spec.null_stiffness = null_space["stiffness"].AsDoubleIn(kSoftest, kStiffest);
  }
  PutMiddle(&spec);

  if (root.Has("hand_floor")) {
    const YamlNode floor = root["hand_floor"];
    if (!floor.IsList() || floor.size() != 3) {
      floor.Fail("must be three shares of the hands' stiffness, along x, y, z");
    }
    for (int i = 0; i < 3; ++i) spec.hand_floor[i] = floor[i].AsDoubleIn(0, kHighestFloor);
  }
  if (root.Has("channels")) {
    const YamlNode channels = root["channels"];
    channels.Keys({}, {"torque", "gravity"});
    if (channels.Has("torque")) spec.torque = ReadChoice(channels["torque"], kChannels);
    if (channels.Has("gravity")) spec.gravity = ReadChoice(channels["gravity"], kChannels);
  }
  if (root.Has("condition")) spec.condition = ReadChoice(root["condition"], kConditions);

  const std::string problem = spec.Validate();
  if (!problem.empty()) root.Fail(problem);
  return spec;
}

UserBudget ParseBudget(std::string_view text, const std::string& path) {
  return {fs::path(path).stem().string(), ParseBudget(YamlNode::Parse(text, path))};
}

std::string BudgetYaml(const BudgetSpec& spec) {
  std::string text;
  const auto axes = [&](const char* key, const std::optional<Eigen::Vector3d>& k) {
    if (k) text += fmt::format("{}: [{}, {}, {}]\n", key, (*k)[0], (*k)[1], (*k)[2]);
  };
  const auto& range = spec.command.range;
  const auto ends = [](const BudgetRange& r) {
    return fmt::format("from: {}, to: {}", r.low, r.high);
  };
  if (range[kCommandCom]) {
    text += fmt::format("com: {{{}, z: {}}}\n", ends(*range[kCommandCom]), (*spec.com)[2]);
  } else {
    axes("com", spec.com);
  }
  if (range[kCommandHands]) {
    text += fmt::format("hands: {{{}}}\n", ends(*range[kCommandHands]));
  } else {
    axes("left_hand", spec.hand[0]);
    axes("right_hand", spec.hand[1]);
  }
  if (spec.HasFloor()) axes("hand_floor", spec.hand_floor);
  return text + fmt::format(
                    "null_space: {{weight: {}, {}}}\n"
                    "channels: {{torque: {}, gravity: {}}}\ncondition: {}\n",
                    spec.weight == NullWeight::kServo ? "gains" : "identity",
                    range[kCommandNull] ? ends(*range[kCommandNull])
                                        : fmt::format("stiffness: {}", spec.null_stiffness),
                    Name(spec.torque),
                    Name(spec.gravity),
                    Name(spec.condition));
}

std::string BudgetNumbers(const BudgetSpec& spec) {
  std::string text;
  const auto& range = spec.command.range;
  const auto ends = [](const BudgetRange& r) { return fmt::format("{:g}..{:g}", r.low, r.high); };
  const auto add = [&](const char* name, const std::optional<Eigen::Vector3d>& k) {
    if (k) text += fmt::format("{} {} N/m, ", name, Slashed(*k));
  };
  if (range[kCommandCom]) {
    const std::string along = ends(*range[kCommandCom]);
    text += fmt::format("CoM {}/{}/{:g} N/m, ", along, along, (*spec.com)[2]);
  } else {
    add("CoM", spec.com);
  }
  const bool alike = spec.hand[0] && spec.hand[1] && *spec.hand[0] == *spec.hand[1];
  if (range[kCommandHands]) {
    text += fmt::format("hands {} N/m, ", ends(*range[kCommandHands]));
  } else {
    add(alike ? "hands" : "left hand", spec.hand[0]);
    if (!alike) add("right hand", spec.hand[1]);
  }
  return text + fmt::format("null space {}{}",
                            range[kCommandNull] ? ends(*range[kCommandNull])
                                                : fmt::format("{:g}", spec.null_stiffness),
                            spec.weight == NullWeight::kServo ? " × Kp" : " N·m/rad");
}

std::string BudgetTerms(const BudgetSpec& spec) {
  return fmt::format("gravity {}, torque {}, {}; hands' floor {}",
                     Name(spec.gravity),
                     Name(spec.torque),
                     Name(spec.condition),
                     spec.HasFloor() ? Slashed(spec.hand_floor) : "none");
}

std::vector<std::string> BudgetNames() {
  std::vector<std::string> names;
  for (const std::string& folder : DataFolders("configs/budgets")) {
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(folder, missing)) {
      if (entry.path().extension() != ".yaml") continue;
      std::string name = entry.path().stem().string();
      std::replace(name.begin(), name.end(), '_', '-');
      names.push_back(std::move(name));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> PlainBudgetNames() {
  std::vector<std::string> names = BudgetNames();
  std::erase_if(names, [](const std::string& name) {
    try {
      return ReadBudget(name).spec.IsCommanded();
    } catch (const ConfigError&) {
      return false;  // whoever asks for it is told what is wrong
    }
  });
  return names;
}

UserBudget ReadBudget(const std::string& mode) {
  if (mode.empty()) {
    throw ConfigError("--mode '': name a budget, as in --mode " + std::string(kDefaultMode) +
                      ", or give a file, as in --mode ./soft.yaml");
  }
  // NAME|FILE, then changes; a file whose name has commas in it is a file
  std::error_code ignored;
  const bool whole =
      mode.find_first_of("./") != std::string::npos && fs::is_regular_file(mode, ignored);
  std::vector<std::string> words = whole ? std::vector{mode} : Split(mode, ',');
  UserBudget budget = FindBudget(words.front(), mode);
  if (words.size() == 1) return budget;
  std::map<std::string, bool> ranges;  // keys so far, and whether each gave a range
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string key = words[i].substr(0, words[i].find('='));
    const bool range = words[i].find("..") != std::string::npos;
    // a number takes the place of a range; of two numbers one is a slip
    const auto [known, fresh] = ranges.try_emplace(key, range);
    if (!fresh && (range || !known->second)) {
      throw ConfigError("--mode " + mode + ": " + key + ": is there twice");
    }
    known->second = range;
    Change(words[i], mode, &budget.spec);
    budget.name += "," + words[i];
  }
  const std::string problem = budget.spec.Validate();
  if (!problem.empty()) throw ConfigError("--mode " + mode + ": " + problem);
  return budget;
}

UserBudget ReadPlainBudget(const std::string& mode) {
  UserBudget budget = ReadBudget(mode);
  if (!budget.spec.IsCommanded()) return budget;
  std::string numbers;
  constexpr const char* kKeys[] = {"com", "hands", "null_space"};
  const BudgetValues middle = MiddleOf(budget.spec.command);
  for (int i = 0; i < kNumCommanded; ++i) {
    if (!budget.spec.command.range[i]) continue;
    const std::string value = fmt::format("{:.0f}", middle[i]);
    numbers += fmt::format(",{}={}", kKeys[i], value);
    if (i == kCommandCom) numbers += fmt::format("/{}/{:g}", value, (*budget.spec.com)[2]);
  }
  throw ConfigError("--mode " + mode +
                    ": gives ranges, for a policy that is told its budget, and here one number "
                    "each is needed\n  Say which, as in --mode " +
                    mode + numbers + ".");
}

}  // namespace silc
