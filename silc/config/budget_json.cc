// SPDX-License-Identifier: Apache-2.0
#include "silc/config/budget_json.h"

namespace silc {

nlohmann::ordered_json BudgetJson(const BudgetSpec& spec) {
  const auto axes = [](const Eigen::Vector3d& k) {
    return nlohmann::ordered_json{k[0], k[1], k[2]};
  };
  nlohmann::ordered_json json;
  const auto& range = spec.command.range;
  const auto ends = [](const BudgetRange& r) {
    return nlohmann::ordered_json{{"from", r.low}, {"to", r.high}};
  };
  if (range[kCommandCom]) {
    json["com"] = ends(*range[kCommandCom]);
    json["com"]["z"] = (*spec.com)[2];
  } else if (spec.com) {
    json["com"] = axes(*spec.com);
  }
  if (range[kCommandHands]) {
    json["hands"] = ends(*range[kCommandHands]);
  } else {
    if (spec.hand[0]) json["left_hand"] = axes(*spec.hand[0]);
    if (spec.hand[1]) json["right_hand"] = axes(*spec.hand[1]);
  }
  json["hand_floor"] = axes(spec.hand_floor);
  json["null_space"] = {{"weight", spec.weight == NullWeight::kServo ? "gains" : "identity"}};
  if (range[kCommandNull]) {
    json["null_space"].update(ends(*range[kCommandNull]));
  } else {
    json["null_space"]["stiffness"] = spec.null_stiffness;
  }
  json["channels"] = {{"torque", Name(spec.torque)}, {"gravity", Name(spec.gravity)}};
  json["condition"] = Name(spec.condition);
  return json;
}

nlohmann::ordered_json BudgetJson(const std::string& name, const BudgetSpec& spec) {
  nlohmann::ordered_json json = {{"name", name}};
  json.update(BudgetJson(spec));
  return json;
}

}  // namespace silc
