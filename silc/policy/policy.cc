// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/policy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/nearest.h"
#include "silc/policy/history.h"
#include "silc/policy/mlp.h"
#include "silc/policy/observation_table.h"

namespace silc {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int kTangentChunk = 64;

std::size_t U(std::ptrdiff_t i) { return static_cast<std::size_t>(i); }

// The quantities a Jacobian is taken with respect to, in the order of PolicyJacobians.
enum Quantity { kQ, kV, kA, kTau, kG, kW, kNumQuantities };

std::optional<Quantity> QuantityOf(TermSource source) {
  switch (source) {
    case TermSource::kJointPos:
      return kQ;
    case TermSource::kJointVel:
      return kV;
    case TermSource::kPrevAction:
      return kA;
    case TermSource::kJointTorque:
      return kTau;
    case TermSource::kProjectedGravity:
      return kG;
    case TermSource::kBaseAngVel:
      return kW;
    default:
      return std::nullopt;
  }
}

// A matrix the columns of a product are written to: columns [first, first + cols).
struct BlockTarget {
  Eigen::MatrixXd* matrix;
  int first;
  int cols;
};

// Which derivatives are wanted: the sparse matrix E of an MlpEngine, and the blocks its columns
// form. A block is one matrix of a PolicyJacobians; frames that share one are summed.
struct ColumnPlan {
  std::vector<ColumnEntry> entries;
  int count = 0;                              // columns
  std::vector<int> first[kNumQuantities];     // column where each block of a quantity begins
  std::optional<MlpEngine::Columns> columns;  // W_1 E, for the fast path
};

// To [−π, π).
void WrapAngle(double* angle) { *angle -= 2 * kPi * std::floor((*angle + kPi) / (2 * kPi)); }

}  // namespace

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

struct Policy::Impl {
  // ------------------------------------------------------------------ fixed at construction
  std::shared_ptr<const Graph> graph;
  ObservationLayout layout;
  PolicyRobot robot;
  PolicyOptions options;
  int input = 0;
  int output = 0;
  int nv = 0;

  ObservationTable table;
  std::vector<double> scale;  // α of each action
  std::vector<char> action_residual;
  Eigen::VectorXd action_scale;  // robot's order
  Eigen::VectorXd default_pose;
  Eigen::VectorXd kp, kd, effort_limit;
  std::vector<bool> commanded, residual;
  bool needs_tau = false, needs_ref = false, observes_walk = false;

  int frames[kNumQuantities] = {};  // frames in which each quantity is observed
  ColumnPlan all;                   // every frame of every quantity
  ColumnPlan statics;               // StaticJacobians()
  ColumnPlan sums;                  // SummedJacobians

  // ------------------------------------------------------------------ moving
  std::optional<MlpEngine> mlp;
  std::optional<GraphEvaluator<float>> graph_float;
  std::optional<GraphEvaluator<double>>
      graph_double;  // also the reference, made when first asked for
  History history{ObservationTable{}};
  Eigen::VectorXd values;  // what the table reads: ObservationSources
  Eigen::VectorXd frame;
  std::vector<char> clipped;
  Eigen::VectorXf observation;
  std::vector<float> answer;        // of the network, its order
  std::vector<double> prev_action;  // clipped, network's order
  Eigen::VectorXd raw_action;       // robot's order
  Eigen::VectorXd phase;
  bool standing = false;
  bool has_acted = false;
  std::vector<char> action_clipped;
  std::vector<float> block_result;
  std::vector<BlockTarget> targets;  // of the Jacobians being computed
  PolicyJacobians sum_blocks;

  Impl(std::shared_ptr<const Graph> graph_in,
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

  static ObservationLayout Validated(ObservationLayout layout, const std::string& place) {
    layout.Validate(layout.Place(place));
    return layout;
  }

  // `end` is "input" or "output", `asked` what the layout calls it.
  [[noreturn]] void FailEnd(const std::string& end,
                            const std::string& asked,
                            const std::string& what,
                            const std::vector<std::string>& names) const {
    if (asked.empty()) {
      throw ConfigError(options.place + ": the network has " + std::to_string(names.size()) + " " +
                        end + "s; name the " + what + "'s as '" + end + "' in the layout" +
                        DidYouMean(asked, names));
    }
    throw ConfigError(layout.Place(options.place) + ": " + end + ": the network of " +
                      options.place + " has no " + end + " '" + asked + "'" +
                      DidYouMean(asked, names));
  }

  // Which input is the observation, which output the action.
  void FindEnds() {
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

  void CheckWidths() const {
    const int width = ObservationWidth(layout);
    if (graph->input_width(input) != width) {
      throw ConfigError(options.place + ": the network's input '" +
                        graph->value(graph->inputs()[U(input)]).name + "' takes " +
                        std::to_string(graph->input_width(input)) + " numbers, " + layout.Title() +
                        " gives " + std::to_string(width) + ":\n" + DescribeTerms(layout) +
                        "\n  Choose the layout the policy was trained with (--layout).");
    }
    if (graph->output_width(output) != static_cast<int>(layout.action.joints.size())) {
      throw ConfigError(
          options.place + ": the network's output '" + graph->output_names()[U(output)] + "' has " +
          std::to_string(graph->output_width(output)) + " actions, " + layout.Title() + " maps " +
          std::to_string(layout.action.joints.size()) + " joints");
    }
  }

  void MapRobot() {
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

  void CountFrames() {
    for (const ObservationTerm& term : layout.terms) {
      needs_tau = needs_tau || term.source == TermSource::kJointTorque;
      needs_ref = needs_ref || term.source == TermSource::kRefJointPos;
      observes_walk = observes_walk || term.source == TermSource::kCommandWalk;
      if (const auto quantity = QuantityOf(term.source)) {
        frames[*quantity] = std::max(frames[*quantity], TermFrames(layout, term));
      }
    }
  }

  int QuantityWidth(int quantity) const { return quantity == kG || quantity == kW ? 3 : nv; }

  // `block_of(quantity, age)` says which block of the quantity a frame belongs to; −1 for none.
  template <typename BlockOf>
  void Plan(const BlockOf& block_of, ColumnPlan* plan) const {
    for (int quantity = 0; quantity < kNumQuantities; ++quantity) {
      for (int age = 0; age < frames[quantity]; ++age) {
        if (block_of(quantity, age) != static_cast<int>(plan->first[quantity].size())) continue;
        plan->first[quantity].push_back(plan->count);
        plan->count += QuantityWidth(quantity);
      }
    }
    const auto& slots = history.slots();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const ObservationEntry<double>& element = table.entries[U(slots[i].element)];
      const auto quantity = QuantityOf(element.source);
      if (!quantity) continue;
      const int block = block_of(*quantity, slots[i].age);
      if (block < 0) continue;
      plan->entries.push_back({static_cast<int>(i),
                               plan->first[*quantity][U(block)] + table.Column(element),
                               static_cast<float>(element.scale)});
    }
  }

  void PlanColumns() {
    const auto newest_and_rest = [](int age) { return std::min(age, 1); };
    Plan([](int, int age) { return age; }, &all);
    Plan(
        [&](int quantity, int age) {
          if (quantity == kV || quantity == kW) return -1;
          return quantity == kQ ? newest_and_rest(age) : quantity == kG ? 0 : age;
        },
        &statics);
    Plan(
        [&](int quantity, int age) {
          if (quantity == kV || quantity == kW) return -1;
          return quantity == kQ ? newest_and_rest(age) : 0;
        },
        &sums);
    std::size_t blocks = 0;
    for (const auto& first : all.first) blocks += first.size();
    targets.reserve(blocks);
  }

  void MakeEngine() {
    switch (options.engine) {
      case PolicyOptions::Engine::kAuto:
        if (const auto network = RecogniseMlp(*graph, input, output)) {
          mlp.emplace(*network);
          std::size_t size = 0;
          for (ColumnPlan* plan : {&all, &statics, &sums}) {
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

  void Reset() {
    history.Reset();
    std::fill(prev_action.begin(), prev_action.end(), 0.0);
    raw_action.setZero();
    for (Eigen::Index i = 0; i < phase.size(); ++i) phase[i] = layout.clock.offsets[U(i)];
    standing = false;
    has_acted = false;
  }

  // ------------------------------------------------------------------------------------------ one
  // step

  bool InputFinite(const ObservationInput& in) const {
    return in.q.allFinite() && in.qd.allFinite() && in.w_WB_B.allFinite() &&
           in.v_WB_B.allFinite() && in.g_B.allFinite() && (!needs_tau || in.tau.allFinite()) &&
           (!needs_ref || in.q_ref.allFinite()) && in.command.lin_vel.allFinite() &&
           std::isfinite(in.command.yaw_rate) && std::isfinite(in.command.height) &&
           std::isfinite(in.command.walk) && in.command.waist.allFinite() && in.phase.allFinite();
  }

  // The gait clock: runs while walking, holds one phase while standing, and starts over from the
  // feet's offsets when the robot sets off.
  void AdvanceClock(const ObservationInput& in) {
    if (layout.clock.period == 0) return;
    if (in.phase.size() == phase.size()) {
      phase = in.phase;
      return;
    }
    const double still = layout.clock.standing_speed;
    const bool stands =
        observes_walk ? in.command.walk < 0.5
                      : in.command.lin_vel.norm() < still && std::abs(in.command.yaw_rate) < still;
    if (stands) {
      phase.setConstant(layout.clock.standing_phase);
      standing = true;
    } else if (standing) {
      for (Eigen::Index i = 0; i < phase.size(); ++i) phase[i] = layout.clock.offsets[U(i)];
      standing = false;
    } else if (has_acted) {
      for (double& angle : phase) {
        angle += 2 * kPi * layout.control_dt / layout.clock.period;
        WrapAngle(&angle);
      }
    }
  }

  // What the table reads, in the order of ObservationSources. The layout's constants read a zero.
  void Gather(const ObservationInput& in) {
    const auto put = [&](TermSource source, const auto& from) {
      values.segment(table.sources.At(source), from.size()) = from;
    };
    const auto put_one = [&](TermSource source, double value) {
      values[table.sources.At(source)] = value;
    };
    put(TermSource::kJointPos, in.q);
    put(TermSource::kJointVel, in.qd);
    if (in.tau.size() == nv) put(TermSource::kJointTorque, in.tau);
    put(TermSource::kRefJointPos, in.q_ref.size() == nv ? in.q_ref : default_pose);
    put(TermSource::kPrevAction,
        Eigen::Map<const Eigen::VectorXd>(prev_action.data(), std::ssize(prev_action)));
    put(TermSource::kBaseAngVel, in.w_WB_B);
    put(TermSource::kBaseLinVel, in.v_WB_B);
    put(TermSource::kProjectedGravity, in.g_B);
    put(TermSource::kCommandLinVel, in.command.lin_vel);
    put_one(TermSource::kCommandAngVel, in.command.yaw_rate);
    put_one(TermSource::kCommandHeight, in.command.height);
    put_one(TermSource::kCommandWalk, in.command.walk);
    put(TermSource::kCommandWaist, in.command.waist);
    for (Eigen::Index i = 0; i < phase.size(); ++i) {
      const bool hidden = standing && layout.clock.standing_zero;
      values[table.sources.At(TermSource::kPhaseSin) + i] = hidden ? 0 : std::sin(phase[i]);
      values[table.sources.At(TermSource::kPhaseCos) + i] = hidden ? 0 : std::cos(phase[i]);
    }
  }

  void Encode(const ObservationInput& in) {
    Gather(in);
    for (std::size_t e = 0; e < table.entries.size(); ++e) {
      const ObservationEntry<double>& entry = table.entries[e];
      const double x = values[entry.value];
      frame[static_cast<Eigen::Index>(e)] = EncodeTerm(entry, x);
      clipped[e] = IsClipped(entry, x);
    }
  }

  // Hands the observation to an evaluator of either precision.
  template <typename Real>
  void Fill(GraphEvaluator<Real>* evaluator) {
    const std::span<Real> in = evaluator->input(input);
    const auto& slots = history.slots();
    for (std::size_t i = 0; i < slots.size(); ++i)
      in[i] = static_cast<Real>(history.Value(slots[i]));
    evaluator->Evaluate();
  }

  PolicyStatus Act(const ObservationInput& in, Eigen::VectorXd* q_target) {
    SILC_CHECK(in.q.size() == nv && in.qd.size() == nv);
    SILC_CHECK(!needs_tau || in.tau.size() == nv);
    SILC_CHECK(in.q_ref.size() == nv || in.q_ref.size() == 0);
    if (!InputFinite(in)) return PolicyStatus::kInputNotFinite;
    AdvanceClock(in);
    Encode(in);
    history.Push(frame, clipped);
    const auto& slots = history.slots();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      observation[static_cast<Eigen::Index>(i)] = static_cast<float>(history.Value(slots[i]));
    }

    // (S1): q* = q_default + α a, or the reference instead of the default
    bool finite = true;
    const auto take = [&](std::size_t i, double a) {
      finite = finite && std::isfinite(a);
      action_clipped[i] = std::abs(a) > layout.action.clip;
      prev_action[i] = std::clamp(a, -layout.action.clip, layout.action.clip);
    };
    if (mlp) {
      mlp->Forward({observation.data(), U(observation.size())}, answer);
      for (std::size_t i = 0; i < answer.size(); ++i) take(i, answer[i]);
    } else if (graph_float) {
      Fill(&*graph_float);
      for (std::size_t i = 0; i < answer.size(); ++i) take(i, graph_float->output(output)[i]);
    } else {
      Fill(&*graph_double);
      for (std::size_t i = 0; i < answer.size(); ++i) take(i, graph_double->output(output)[i]);
    }
    has_acted = finite;
    if (!finite) {
      std::fill(prev_action.begin(), prev_action.end(), 0.0);
      return PolicyStatus::kOutputNotFinite;
    }

    if (q_target->size() != nv) q_target->resize(nv);
    *q_target = default_pose;
    for (std::size_t i = 0; i < table.action_joint.size(); ++i) {
      const int joint = table.action_joint[i];
      raw_action[joint] = prev_action[i];
      if (action_residual[i] && in.q_ref.size() == nv) (*q_target)[joint] = in.q_ref[joint];
      (*q_target)[joint] += scale[i] * prev_action[i];
    }
    return PolicyStatus::kOk;
  }

  // ----------------------------------------------------------------------------------------
  // Jacobians

  // Sizes the matrices and says where each block of columns goes.
  void AimAt(const ColumnPlan& plan, PolicyJacobians* out) {
    std::vector<Eigen::MatrixXd>* lists[kNumQuantities] = {
        &out->J_q, &out->J_v, &out->J_a, &out->J_tau, &out->J_g, &out->J_w};
    targets.clear();
    for (int quantity = 0; quantity < kNumQuantities; ++quantity) {
      const std::vector<int>& first = plan.first[quantity];
      lists[quantity]->resize(first.size());
      for (std::size_t i = 0; i < first.size(); ++i) {
        Eigen::MatrixXd& matrix = (*lists[quantity])[i];
        matrix.setZero(nv, QuantityWidth(quantity));
        targets.push_back({&matrix, first[i], QuantityWidth(quantity)});
      }
    }
  }

  // Writes result[c * stride + r] = ∂a_{first_output + r}/∂(column c) for columns [from, from +
  // count).
  template <typename Real>
  void Scatter(const BlockTarget& target,
               int from,
               int count,
               const Real* data,
               std::ptrdiff_t column_stride,
               std::ptrdiff_t row_stride,
               int first_output,
               int rows) const {
    const int begin = std::max(from, target.first),
              end = std::min(from + count, target.first + target.cols);
    for (int c = begin; c < end; ++c) {
      for (int r = 0; r < rows; ++r) {
        const int action = first_output + r;
        // a clipped action answers to nothing
        const double value =
            action_clipped[U(action)] ? 0.0 : data[(c - from) * column_stride + r * row_stride];
        (*target.matrix)(table.action_joint[U(action)], c - target.first) = value;
      }
    }
  }

  template <typename Real>
  void PushPlan(GraphEvaluator<Real>* evaluator, const ColumnPlan& plan) {
    const int rows = static_cast<int>(table.action_joint.size());
    const int chunk = std::min(kTangentChunk, plan.count);
    if (chunk == 0) return;
    evaluator->SetTangentCount(chunk);
    const auto& slots = history.slots();
    for (int from = 0; from < plan.count; from += chunk) {
      const int count = std::min(chunk, plan.count - from);
      const std::span<Real> seed = evaluator->input_tangents(input);
      std::fill(seed.begin(), seed.end(), Real(0));
      for (const ColumnEntry& entry : plan.entries) {
        if (entry.column < from || entry.column >= from + count ||
            history.Clipped(slots[U(entry.input)]))
          continue;
        // the layout's own scale: an entry holds it rounded to float32
        seed[U(entry.input) * U(chunk) + U(entry.column - from)] =
            static_cast<Real>(table.entries[U(slots[U(entry.input)].element)].scale);
      }
      evaluator->PushTangents();
      const Real* d = evaluator->output_tangents(output).data();
      for (const BlockTarget& target : targets) Scatter(target, from, count, d, 1, chunk, 0, rows);
    }
  }

  PolicyStatus CheckFinite() const {
    for (const BlockTarget& target : targets) {
      if (!target.matrix->allFinite()) return PolicyStatus::kOutputNotFinite;
    }
    return PolicyStatus::kOk;
  }

  // Any plan, by the engine at hand.
  PolicyStatus Run(const ColumnPlan& plan, PolicyJacobians* out) {
    SILC_CHECK(has_acted);
    AimAt(plan, out);
    if (plan.count == 0) return PolicyStatus::kOk;
    if (mlp && !mlp->clipped() && !history.any_clipped()) {
      mlp->PullBack();
      for (int b = 0; b < mlp->num_blocks(); ++b) {
        const MlpEngine::Block block = mlp->Times(*plan.columns, b, block_result);
        for (const BlockTarget& target : targets) {
          Scatter(target,
                  0,
                  plan.count,
                  block_result.data(),
                  kRowLanes,
                  1,
                  block.first_output,
                  block.rows);
        }
      }
    } else if (graph_float) {
      PushPlan(&*graph_float, plan);
    } else {
      // an MLP with something at a clip comes here too: its columns were made without
      PushReference(plan);
    }
    return CheckFinite();
  }

  void PushReference(const ColumnPlan& plan) {
    if (!graph_double) graph_double.emplace(graph);
    Fill(&*graph_double);
    PushPlan(&*graph_double, plan);
  }
};

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

void Policy::Reset() { impl_->Reset(); }

PolicyStatus Policy::Act(const ObservationInput& input, Eigen::VectorXd* q_target) {
  return impl_->Act(input, q_target);
}

PolicyStatus Policy::Jacobians(PolicyJacobians* jacobians) {
  return impl_->Run(impl_->all, jacobians);
}

PolicyStatus Policy::StaticJacobians(PolicyJacobians* jacobians) {
  return impl_->Run(impl_->statics, jacobians);
}

PolicyStatus Policy::Jacobians(SummedJacobians* jacobians) {
  PolicyJacobians& blocks = impl_->sum_blocks;
  const PolicyStatus status = impl_->Run(impl_->sums, &blocks);
  const auto take = [](const std::vector<Eigen::MatrixXd>& list, Eigen::MatrixXd* sum) {
    if (list.empty()) {
      sum->resize(0, 0);
    } else {
      *sum = list[0];
    }
  };
  take(blocks.J_q, &jacobians->J_q0);
  take(blocks.J_q, &jacobians->S_q);
  if (blocks.J_q.size() == 2) jacobians->S_q += blocks.J_q[1];
  take(blocks.J_a, &jacobians->S_a);
  take(blocks.J_tau, &jacobians->S_tau);
  take(blocks.J_g, &jacobians->S_g);
  return status;
}

PolicyStatus Policy::JacobiansByTangents(PolicyJacobians* jacobians) {
  SILC_CHECK(impl_->has_acted);
  impl_->AimAt(impl_->all, jacobians);
  if (impl_->all.count > 0) impl_->PushReference(impl_->all);
  return impl_->CheckFinite();
}

int Policy::num_joints() const { return impl_->nv; }
const ObservationLayout& Policy::layout() const { return impl_->layout; }
const PolicyRobot& Policy::robot() const { return impl_->robot; }
bool Policy::is_mlp() const { return impl_->mlp.has_value(); }
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
