// SPDX-License-Identifier: Apache-2.0
// Which columns of the network's Jacobian are wanted, and how they are computed.
#include <algorithm>

#include "silc/base/check.h"
#include "silc/policy/policy_impl.h"

namespace silc {
namespace {

constexpr int kTangentChunk = 64;

}  // namespace

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

template <typename BlockOf>
void Policy::Impl::Plan(const BlockOf& block_of, ColumnPlan* plan) const {
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

void Policy::Impl::PlanColumns() {
  const auto newest_and_rest = [](int age) { return std::min(age, 1); };
  Plan([](int, int age) { return age; }, &all);
  Plan([](int quantity, int age) { return quantity == kV || quantity == kW ? -1 : age; }, &resting);
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

void Policy::Impl::AimAt(const ColumnPlan& plan, PolicyJacobians* out) {
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

template <typename Real>
void Policy::Impl::Scatter(const BlockTarget& target,
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
void Policy::Impl::PushPlan(GraphEvaluator<Real>* evaluator, const ColumnPlan& plan) {
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

PolicyStatus Policy::Impl::CheckFinite() const {
  for (const BlockTarget& target : targets) {
    if (!target.matrix->allFinite()) return PolicyStatus::kOutputNotFinite;
  }
  return PolicyStatus::kOk;
}

PolicyStatus Policy::Impl::Run(const ColumnPlan& plan, PolicyJacobians* out) {
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

void Policy::Impl::PushReference(const ColumnPlan& plan) {
  if (!graph_double) graph_double.emplace(graph);
  Fill(&*graph_double);
  PushPlan(&*graph_double, plan);
}

PolicyStatus Policy::Jacobians(PolicyJacobians* jacobians) {
  return impl_->Run(impl_->all, jacobians);
}

PolicyStatus Policy::RestingJacobians(PolicyJacobians* jacobians) {
  return impl_->Run(impl_->resting, jacobians);
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

}  // namespace silc
