// SPDX-License-Identifier: Apache-2.0
#include "silc/train/loco_spec.h"

#include <fmt/format.h>

#include "silc/base/error.h"
#include "silc/policy/history.h"
#include "silc/policy/layout_file.h"
#include "silc/task/observation.h"

namespace silc {
namespace {

// 0.8f as 0.8: the number that was written down, not its rounding
double Decimal(float value) { return std::stod(fmt::format("{}", value)); }

}  // namespace

ObservationLayout LocoLayout(const RobotModel& robot, const TaskConfig& config) {
  const std::string path = FindLayout("g1_loco", LayoutFolder());
  ObservationLayout layout = ReadLayoutFile(path).layout;
  const RobotSpec& spec = robot.spec();
  const GainSet& gains = spec.Gains();
  const std::vector<int> joint = MapJoints(layout.joints, spec.joints, path);
  layout.history = config.observation.history;
  layout.control_dt = spec.control_period;
  layout.kp.clear();
  layout.kd.clear();
  layout.default_pose.clear();
  for (const int j : joint) {
    layout.kp.push_back(gains.kp[j]);
    layout.kd.push_back(gains.kd[j]);
    layout.default_pose.push_back(spec.StandingPose().q[j]);
  }
  layout.action.scale.clear();
  for (const int j : MapJoints(layout.action.joints, spec.joints, path)) {
    layout.action.scale.push_back(gains.action_scale[j]);
  }
  layout.action.clip = Decimal(config.action.clip);
  layout.clock.period = Decimal(config.gait.period);
  layout.Validate(path);
  if (ObservationWidth(layout) != ActorObs(config)) {
    throw ConfigError(fmt::format("{}: describes {} numbers, the task observes {}",
                                  path,
                                  ObservationWidth(layout),
                                  ActorObs(config)));
  }
  return layout;
}

ObservationColumns MakeObservationColumns(const ObservationLayout& layout,
                                          const std::vector<std::string>& robot_joints) {
  // per element of a frame: the list it belongs to, its column and its scale
  struct Element {
    std::vector<ColumnEntry> ObservationColumns::*list = nullptr;
    int column = 0;
    double scale = 0;
  };
  std::vector<Element> elements;
  for (const ObservationTerm& term : layout.terms) {
    Element element;
    if (term.source == TermSource::kJointPos) element.list = &ObservationColumns::q;
    if (term.source == TermSource::kPrevAction) element.list = &ObservationColumns::a;
    if (term.source == TermSource::kJointTorque) element.list = &ObservationColumns::tau;
    if (term.source == TermSource::kProjectedGravity) element.list = &ObservationColumns::g;
    std::vector<int> column;
    if (IsJointSource(term.source)) {
      const auto& all =
          term.source == TermSource::kPrevAction ? layout.action.joints : layout.joints;
      column = MapJoints(
          term.joints.empty() ? all : term.joints, robot_joints, "layout '" + layout.name + "'");
    }
    for (int i = 0; i < TermWidth(layout, term); ++i) {
      element.column = column.empty() ? i : column[i];
      element.scale = term.scale[term.scale.size() == 1 ? 0 : i];
      elements.push_back(element);
    }
  }
  ObservationColumns columns;
  const std::vector<History::Slot> slots = History(layout).slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Element& element = elements[slots[i].element];
    if (element.list == nullptr) continue;
    const ColumnEntry entry = {
        static_cast<int>(i), element.column, static_cast<float>(element.scale)};
    (columns.*element.list).push_back(entry);
    if (element.list == &ObservationColumns::q && slots[i].age == 0) columns.q0.push_back(entry);
  }
  return columns;
}

EnvSpec MakeLocoSpec(const RobotModel& robot,
                     const TaskConfig& config,
                     const BudgetSpec& budget,
                     int num_envs) {
  EnvSpec spec;
  spec.num_envs = num_envs;
  spec.obs_dim = ActorObs(config);
  spec.critic_obs_dim = kCriticObs;
  spec.agents = {{"lower", kLowerJoints}, {"upper", kUpperJoints}};
  spec.stiffness = true;
  StiffnessSpec& s = spec.stiffness_spec;
  const GainSet& gains = robot.spec().Gains();
  s.servo.kp = gains.kp;
  s.servo.kd = gains.kd;
  s.servo.alpha = gains.action_scale;
  s.budget = budget;
  ObservationColumns columns =
      MakeObservationColumns(LocoLayout(robot, config), robot.spec().joints);
  s.q0 = std::move(columns.q0);
  s.q = std::move(columns.q);
  s.a = std::move(columns.a);
  s.tau = std::move(columns.tau);
  s.g = std::move(columns.g);
  return spec;
}

}  // namespace silc
