// SPDX-License-Identifier: Apache-2.0
#include "silc/train/loco_spec.h"

#include "silc/base/error.h"
#include "silc/robot/robot_fit.h"
#include "silc/task/task_robot.h"

namespace silc {

ObservationColumns MakeObservationColumns(const ObservationTable& table) {
  ObservationColumns columns;
  const auto list_of = [&](TermSource source) -> std::vector<ColumnEntry>* {
    switch (source) {
      case TermSource::kJointPos:
        return &columns.q;
      case TermSource::kJointVel:
        return &columns.v;
      case TermSource::kPrevAction:
        return &columns.a;
      case TermSource::kJointTorque:
        return &columns.tau;
      case TermSource::kProjectedGravity:
        return &columns.g;
      default:
        return nullptr;
    }
  };
  for (int i = 0; i < table.width(); ++i) {
    const ObservationSlot& slot = table.slots[i];
    const ObservationEntry<double>& element = table.entries[slot.element];
    std::vector<ColumnEntry>* list = list_of(element.source);
    if (list == nullptr) continue;
    const ColumnEntry entry = {i, table.Column(element), static_cast<float>(element.scale)};
    list->push_back(entry);
    if (element.source == TermSource::kJointPos && slot.age == 0) columns.q0.push_back(entry);
  }
  return columns;
}

EnvSpec MakeLocoSpec(const RobotModel& robot,
                     const TaskLayout& layout,
                     const BudgetSpec& budget,
                     int num_envs) {
  NeedPointsOf(budget, robot);
  EnvSpec spec;
  spec.num_envs = num_envs;
  spec.obs_dim = layout.view().width;
  spec.critic_obs_dim = layout.view().critic_width();
  const std::vector<int> order = TaskOrder(robot.spec());
  const auto lower = static_cast<int>(robot.spec().Actor("lower").joints.size());
  const int upper = static_cast<int>(order.size()) - lower;
  spec.agents = {{"lower", lower}};
  if (upper > 0) spec.agents.push_back({"upper", upper});
  spec.stiffness = true;
  StiffnessSpec& s = spec.stiffness_spec;
  const GainSet& gains = robot.spec().Gains();
  s.servo.kp = gains.kp(order);
  s.servo.kd = gains.kd(order);
  s.servo.alpha = gains.action_scale(order);
  s.budget = budget;
  ObservationColumns columns = MakeObservationColumns(layout.table);
  s.q0 = std::move(columns.q0);
  s.q = std::move(columns.q);
  s.a = std::move(columns.a);
  s.tau = std::move(columns.tau);
  s.g = std::move(columns.g);
  s.v = std::move(columns.v);
  s.period = robot.spec().control_period;
  for (const ObservationSlot& slot : layout.table.slots) s.age.push_back(slot.age);
  for (const ObservationEntry<double>& entry : layout.table.entries) {
    if (const auto told = CommandedBy(entry.source)) {
      s.command[*told] = {entry.newest, entry.offset, entry.scale};
    }
  }
  return spec;
}

}  // namespace silc
