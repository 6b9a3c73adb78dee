// SPDX-License-Identifier: Apache-2.0
#include "silc/config/budget_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "silc/base/data_folder.h"
#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/nearest.h"
#include "silc/base/yaml.h"

namespace silc {
namespace {

// Wider than any robot needs; catches N/mm written for N/m and the like.
constexpr double kSoftest = 1e-3, kStiffest = 1e9;  // [N/m], [N·m/rad]
// A band narrower than this leaves a policy nothing to do.
constexpr double kHighestFloor = 0.99;  // [1]

Eigen::Vector3d ReadAxes(const YamlNode& node) {
  if (!node.IsList() || node.size() != 3) node.Fail("must be three numbers, N/m along x, y, z");
  Eigen::Vector3d axes;
  for (int i = 0; i < 3; ++i) axes[i] = node[i].AsDoubleIn(kSoftest, kStiffest);
  return axes;
}

}  // namespace

BudgetSpec ParseBudget(const YamlNode& root) {
  root.Keys({"null_space"},
            {"com", "hands", "left_hand", "right_hand", "hand_floor", "channels", "condition"});

  BudgetSpec spec;
  if (root.Has("com")) spec.com = ReadAxes(root["com"]);
  if (root.Has("hands")) {
    if (root.Has("left_hand") || root.Has("right_hand")) {
      root["hands"].Fail("is for both hands; drop it, or left_hand and right_hand");
    }
    spec.hand[0] = spec.hand[1] = ReadAxes(root["hands"]);
  }
  if (root.Has("left_hand")) spec.hand[0] = ReadAxes(root["left_hand"]);
  if (root.Has("right_hand")) spec.hand[1] = ReadAxes(root["right_hand"]);

  const YamlNode null_space = root["null_space"];
  null_space.Keys({"weight", "stiffness"});
  const bool by_gains = null_space["weight"].AsChoice({"identity", "gains"}) == "gains";
  spec.weight = by_gains ? NullWeight::kServo : NullWeight::kIdentity;
  spec.null_stiffness = null_space["stiffness"].AsDoubleIn(kSoftest, kStiffest);

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
    const auto read = [&](const char* key, Channel* channel) {
      if (!channels.Has(key)) return;
      const bool held = channels[key].AsChoice({"followed", "held"}) == "held";
      *channel = held ? Channel::kHeld : Channel::kFollowed;
    };
    read("torque", &spec.torque);
    read("gravity", &spec.gravity);
  }
  if (root.Has("condition")) {
    const std::string name = root["condition"].AsChoice(
        {Name(Condition::kOneSided), Name(Condition::kTwoSided), Name(Condition::kDisc)});
    for (const Condition c : {Condition::kOneSided, Condition::kTwoSided, Condition::kDisc}) {
      if (name == Name(c)) spec.condition = c;
    }
  }

  const std::string problem = spec.Validate();
  if (!problem.empty()) root.Fail(problem);
  return spec;
}

UserBudget ParseBudget(std::string_view text, const std::string& path) {
  return {std::filesystem::path(path).stem().string(), ParseBudget(YamlNode::Parse(text, path))};
}

std::string BudgetYaml(const BudgetSpec& spec) {
  std::string text;
  const auto axes = [&](const char* key, const std::optional<Eigen::Vector3d>& k) {
    if (k) text += fmt::format("{}: [{}, {}, {}]\n", key, (*k)[0], (*k)[1], (*k)[2]);
  };
  axes("com", spec.com);
  axes("left_hand", spec.hand[0]);
  axes("right_hand", spec.hand[1]);
  if (spec.HasFloor()) axes("hand_floor", spec.hand_floor);
  return text + fmt::format(
                    "null_space: {{weight: {}, stiffness: {}}}\n"
                    "channels: {{torque: {}, gravity: {}}}\ncondition: {}\n",
                    spec.weight == NullWeight::kServo ? "gains" : "identity",
                    spec.null_stiffness,
                    Name(spec.torque),
                    Name(spec.gravity),
                    Name(spec.condition));
}

UserBudget ReadBudget(const std::string& name_or_path) {
  namespace fs = std::filesystem;
  if (name_or_path.find_first_of("./") != std::string::npos) {
    return ParseBudget(ReadFile(name_or_path), name_or_path);
  }
  // high-stiff is high_stiff.yaml
  std::string stem = name_or_path;
  std::replace(stem.begin(), stem.end(), '-', '_');
  std::vector<std::string> names;
  for (const std::string& folder : DataFolders("configs/budgets")) {
    const fs::path file = fs::path(folder) / (stem + ".yaml");
    if (fs::is_regular_file(file)) {
      UserBudget budget = ParseBudget(ReadFile(file.string()), file.string());
      budget.name = name_or_path;
      return budget;
    }
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(folder, missing)) {
      std::string known = entry.path().stem().string();
      std::replace(known.begin(), known.end(), '_', '-');
      names.push_back(std::move(known));
    }
  }
  // the paper's, where no files are
  for (const NamedBudget& mode : PaperModes()) {
    if (name_or_path == mode.name) return {mode.name, mode.spec};
    names.emplace_back(mode.name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  throw ConfigError("--mode " + name_or_path + ": no such budget" +
                    DidYouMean(name_or_path, names) +
                    "\n  A file of your own is given by its path, as in --mode ./soft.yaml.");
}

}  // namespace silc
