// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/policy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/nearest.h"
#include "silc/policy/policy_impl.h"

namespace silc {

const char* Describe(PolicyStatus status) {
  switch (status) {
    case PolicyStatus::kOk:
      return "ok";
    case PolicyStatus::kInputNotFinite:
      return "the observation holds a NaN or an infinity";
    case PolicyStatus::kOutputNotFinite:
      return "the policy answered with a NaN or an infinity";
  }
  return "unknown";
}

Policy::Impl::Impl(std::shared_ptr<const Graph> graph_in,
                   ObservationLayout layout_in,
                   PolicyRobot robot_in,
                   PolicyOptions options_in)
    : graph(std::move(graph_in)),
      layout(Validated(std::move(layout_in), options_in.place)),
      robot(std::move(robot_in)),
      options(std::move(options_in)) {
  nv = static_cast<int>(robot.joints.size());
  SILC_CHECK(robot.default_pose.size() == nv);
  FindEnds();
  CheckWidths();
  table = CompileObservation(layout, robot.joints, layout.Place(options.place));
  history = History(table);
  MapRobot();
  CountFrames();
  PlanColumns();
  MakeEngine();

  values = Eigen::VectorXd::Zero(table.sources.size());
  frame = Eigen::VectorXd::Zero(history.frame_width());
  clipped.assign(U(history.frame_width()), 0);
  observation = Eigen::VectorXf::Zero(static_cast<Eigen::Index>(history.slots().size()));
  answer.assign(table.action_joint.size(), 0.0f);
  prev_action.assign(table.action_joint.size(), 0.0);
  action_clipped.assign(table.action_joint.size(), 0);
  raw_action = Eigen::VectorXd::Zero(nv);
  phase = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(layout.clock.offsets.size()));
  Reset();
}

ObservationLayout Policy::Impl::Validated(ObservationLayout layout, const std::string& place) {
  layout.Validate(layout.Place(place));
  return layout;
}

void Policy::Impl::FailEnd(const std::string& end,
                           const std::string& asked,
                           const std::string& what,
                           const std::vector<std::string>& names) const {
  if (asked.empty()) {
    throw ConfigError(options.place + ": the network has " + std::to_string(names.size()) + " " +
                      end + "s; name the " + what + "'s as '" + end + "' in the layout" +
                      DidYouMean(asked, names));
  }
  throw ConfigError(layout.Place(options.place) + ": " + end + ": the network of " + options.place +
                    " has no " + end + " '" + asked + "'" + DidYouMean(asked, names));
}

void Policy::Impl::FindEnds() {
  std::vector<std::string> names;
  for (const ValueId id : graph->inputs()) names.push_back(graph->value(id).name);
  if (!layout.input.empty()) {
    input = graph->FindInput(layout.input);
  } else {
    input = names.size() == 1 ? 0 : -1;
  }
  if (input < 0) {
    FailEnd("input", layout.input, "observation", names);
  }
  if (!layout.output.empty()) {
    output = graph->FindOutput(layout.output);
  } else {
    output = graph->outputs().size() == 1 ? 0 : -1;
  }
  if (output < 0) {
    FailEnd("output", layout.output, "action", graph->output_names());
  }

  // other inputs are never filled, so the action must not depend on them
  std::vector<char> needed(graph->values().size(), 0);
  needed[U(graph->outputs()[U(output)])] = 1;
  for (std::size_t i = graph->nodes().size(); i-- > 0;) {
    const GraphNode& node = graph->nodes()[i];
    if (!needed[U(node.output)]) continue;
    for (const ValueId id : node.inputs) needed[U(id)] = 1;
  }
  for (std::size_t i = 0; i < graph->inputs().size(); ++i) {
    if (static_cast<int>(i) == input || !needed[U(graph->inputs()[i])]) continue;
    throw ConfigError(options.place + ": the action depends on a second input '" + names[i] +
                      "'; only policies with one observation input can be run");
  }
}

void Policy::Impl::CheckWidths() const {
  const int width = ObservationWidth(layout);
  if (graph->input_width(input) != width) {
    throw ConfigError(options.place + ": the network's input '" +
                      graph->value(graph->inputs()[U(input)]).name + "' takes " +
                      std::to_string(graph->input_width(input)) + " numbers, " + layout.Title() +
                      " gives " + std::to_string(width) + ":\n" + DescribeTerms(layout) +
                      "\n  Choose the layout the policy was trained with (--layout).");
  }
  if (graph->output_width(output) != static_cast<int>(layout.action.joints.size())) {
    throw ConfigError(options.place + ": the network's output '" +
                      graph->output_names()[U(output)] + "' has " +
                      std::to_string(graph->output_width(output)) + " actions, " + layout.Title() +
                      " maps " + std::to_string(layout.action.joints.size()) + " joints");
  }
}

void Policy::Impl::MapRobot() {
  const std::string place = layout.Place(options.place);
  const std::vector<int> joint = MapJoints(layout.joints, robot.joints, place);
  default_pose = robot.default_pose;
  if (!layout.kp.empty())
    kp = kd = Eigen::VectorXd::Constant(nv, std::numeric_limits<double>::quiet_NaN());
  effort_limit = Eigen::VectorXd::Constant(nv, std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < joint.size(); ++i) {
    default_pose[joint[i]] = layout.default_pose[i];
    if (!layout.effort_limit.empty()) effort_limit[joint[i]] = layout.effort_limit[i];
    if (layout.kp.empty()) continue;
    kp[joint[i]] = layout.kp[i];
    kd[joint[i]] = layout.kd[i];
  }

  const std::vector<int>& action_joint = table.action_joint;
  action_scale = Eigen::VectorXd::Zero(nv);
  commanded.assign(U(nv), false);
  residual.assign(U(nv), false);
  for (std::size_t i = 0; i < action_joint.size(); ++i) {
    scale.push_back(layout.action.scale[layout.action.scale.size() == 1 ? 0 : i]);
    const auto& names = layout.action.residual_joints;
    action_residual.push_back(std::find(names.begin(), names.end(), layout.action.joints[i]) !=
                              names.end());
    action_scale[action_joint[i]] = scale[i];
    commanded[U(action_joint[i])] = true;
    residual[U(action_joint[i])] = action_residual[i] != 0;
  }
  needs_ref = !layout.action.residual_joints.empty();
}

void Policy::Impl::CountFrames() {
  for (const ObservationTerm& term : layout.terms) {
    needs_tau = needs_tau || term.source == TermSource::kJointTorque;
    needs_ref = needs_ref || term.source == TermSource::kRefJointPos;
    observes_walk = observes_walk || term.source == TermSource::kCommandWalk;
    if (const auto told = CommandedBy(term.source)) {
      budget_told[U(*told)] = true;
      budget_otherwise[U(*told)] = term.offset;
    }
    if (const auto quantity = QuantityOf(term.source)) {
      frames[*quantity] = std::max(frames[*quantity], TermFrames(layout, term));
    }
  }
}

void Policy::Impl::MakeEngine() {
  switch (options.engine) {
    case PolicyOptions::Engine::kAuto:
      if (const auto network = RecogniseMlp(*graph, input, output)) {
        mlp.emplace(*network);
        std::size_t size = 0;
        for (ColumnPlan* plan : {&all, &resting, &statics, &sums}) {
          if (plan->count == 0) continue;
          plan->columns = mlp->MakeColumns(plan->count, plan->entries);
          size = std::max(size, mlp->ResultSize(*plan->columns));
        }
        block_result.assign(size, 0.0f);
        return;
      }
      graph_float.emplace(graph);
      return;
    case PolicyOptions::Engine::kGraphFloat:
      graph_float.emplace(graph);
      return;
    case PolicyOptions::Engine::kGraphDouble:
      graph_double.emplace(graph);
      return;
  }
}

Policy::Policy(std::shared_ptr<const Graph> graph,
               ObservationLayout layout,
               PolicyRobot robot,
               PolicyOptions options)
    : impl_(std::make_unique<Impl>(
          std::move(graph), std::move(layout), std::move(robot), std::move(options))) {}
Policy::Policy(const Policy& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
Policy& Policy::operator=(const Policy& other) {
  if (this != &other) impl_ = std::make_unique<Impl>(*other.impl_);
  return *this;
}
Policy::Policy(Policy&&) noexcept = default;
Policy& Policy::operator=(Policy&&) noexcept = default;
Policy::~Policy() = default;

void Policy::SetBudget(const BudgetValues& budget) {
  for (int i = 0; i < kNumCommanded; ++i) {
    if (!impl_->budget_told[U(i)]) continue;
    SILC_CHECK(std::isfinite(budget[U(i)]) && budget[U(i)] > 0);
    impl_->budget_otherwise[U(i)] = std::log(budget[U(i)]);
  }
}
bool Policy::sees_budget() const {
  return std::find(impl_->budget_told.begin(), impl_->budget_told.end(), true) !=
         impl_->budget_told.end();
}

int Policy::num_joints() const { return impl_->nv; }
const ObservationLayout& Policy::layout() const { return impl_->layout; }
const PolicyRobot& Policy::robot() const { return impl_->robot; }
bool Policy::is_mlp() const { return impl_->mlp.has_value(); }
const MlpNetwork* Policy::mlp() const { return is_mlp() ? &impl_->mlp->network() : nullptr; }
const Graph& Policy::graph() const { return *impl_->graph; }
const Eigen::VectorXd& Policy::raw_action() const { return impl_->raw_action; }
const Eigen::VectorXd& Policy::action_scale() const { return impl_->action_scale; }
const Eigen::VectorXd& Policy::default_pose() const { return impl_->default_pose; }
const std::vector<bool>& Policy::commanded() const { return impl_->commanded; }
const std::vector<bool>& Policy::residual() const { return impl_->residual; }
const Eigen::VectorXd& Policy::kp() const { return impl_->kp; }
const Eigen::VectorXd& Policy::kd() const { return impl_->kd; }
const Eigen::VectorXd& Policy::effort_limit() const { return impl_->effort_limit; }
const Eigen::VectorXf& Policy::observation() const { return impl_->observation; }
const Eigen::VectorXd& Policy::phase() const { return impl_->phase; }

}  // namespace silc
