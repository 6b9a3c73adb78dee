// SPDX-License-Identifier: Apache-2.0
#pragma once

// What policy*.cc share; nobody else includes it. policy.cc joins network, layout and robot,
// policy_act.cc runs one control step, policy_derivatives.cc gives the Jacobians.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "silc/policy/history.h"
#include "silc/policy/index.h"
#include "silc/policy/mlp.h"
#include "silc/policy/observation_table.h"
#include "silc/policy/policy.h"

namespace silc {

// The quantities a Jacobian is taken with respect to, in the order of PolicyJacobians.
enum Quantity { kQ, kV, kA, kTau, kG, kW, kNumQuantities };

/// The quantity a term observes; nothing for a term without a Jacobian.
std::optional<Quantity> QuantityOf(TermSource source);

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
  // a commanded policy: which numbers it is told, and ln of each where the input does not say
  std::array<bool, kNumCommanded> budget_told = {};
  std::array<double, kNumCommanded> budget_otherwise = {};
  bool needs_tau = false, needs_ref = false, observes_walk = false;

  int frames[kNumQuantities] = {};  // frames in which each quantity is observed
  ColumnPlan all;                   // every frame of every quantity
  ColumnPlan resting;               // RestingJacobians()
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
       PolicyOptions options_in);
  static ObservationLayout Validated(ObservationLayout layout, const std::string& place);
  // `end` is "input" or "output", `asked` what the layout calls it.
  [[noreturn]] void FailEnd(const std::string& end,
                            const std::string& asked,
                            const std::string& what,
                            const std::vector<std::string>& names) const;
  // Which input is the observation, which output the action.
  void FindEnds();
  void CheckWidths() const;
  void MapRobot();
  void CountFrames();
  void MakeEngine();

  // ---- one step ----

  void Reset();
  bool InputFinite(const ObservationInput& in) const;
  // The gait clock: runs while walking, holds one phase while standing, and starts over from the
  // feet's offsets when the robot sets off.
  void AdvanceClock(const ObservationInput& in);
  // What the table reads, in the order of ObservationSources. The layout's constants read a zero.
  void Gather(const ObservationInput& in);
  void Encode(const ObservationInput& in);
  PolicyStatus Act(const ObservationInput& in, Eigen::VectorXd* q_target);

  // ---- Jacobians ----

  int QuantityWidth(int quantity) const { return quantity == kG || quantity == kW ? 3 : nv; }
  void PlanColumns();
  // `block_of(quantity, age)` says which block of the quantity a frame belongs to; −1 for none.
  template <typename BlockOf>
  void Plan(const BlockOf& block_of, ColumnPlan* plan) const;
  // Sizes the matrices and says where each block of columns goes.
  void AimAt(const ColumnPlan& plan, PolicyJacobians* out);
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
               int rows) const;
  template <typename Real>
  void PushPlan(GraphEvaluator<Real>* evaluator, const ColumnPlan& plan);
  PolicyStatus CheckFinite() const;
  // Any plan, by the engine at hand.
  PolicyStatus Run(const ColumnPlan& plan, PolicyJacobians* out);
  void PushReference(const ColumnPlan& plan);

  // Hands the observation to an evaluator of either precision.
  template <typename Real>
  void Fill(GraphEvaluator<Real>* evaluator) {
    const std::span<Real> in = evaluator->input(input);
    const auto& slots = history.slots();
    for (std::size_t i = 0; i < slots.size(); ++i)
      in[i] = static_cast<Real>(history.Value(slots[i]));
    evaluator->Evaluate();
  }
};

}  // namespace silc
