// SPDX-License-Identifier: Apache-2.0
// What an iteration says of itself.
#include <algorithm>
#include <cmath>

#include "silc/learn/trainer_impl.h"

namespace silc {

Scalars Trainer::Impl::Report(const UpdateResult& update) {
  at::NoGradGuard no_tape;
  Scalars scalars;
  const auto number = [](const Tensor& t) { return t.item<double>(); };
  scalars.emplace_back("train/reward", number(reward.sum(2).mean()));
  const double ended = std::max(1.0, number(done.sum()));
  scalars.emplace_back("train/fall_share", number((done - timed_out).sum()) / ended);
  for (std::size_t k = 0; k < agents.size(); ++k) {
    double kl = 0, value_loss = 0;
    for (const ChunkResult& r : update.last) {
      if (r.kl.empty()) continue;
      kl += number(r.kl[k]);
      value_loss += number(r.value[k]);
    }
    const std::string& name = agents[k].name;
    scalars.emplace_back("train/kl_" + name, kl);
    scalars.emplace_back("train/rate_" + name, number(agents[k].rate));
    scalars.emplace_back("train/std_" + name, number(agents[k].actor.std.detach().mean()));
    scalars.emplace_back("train/value_loss_" + name, value_loss);
    scalars.emplace_back("train/gradient_" + name, number(agents[k].task_norm));
  }
  const auto metrics = env->TakeMetrics();
  double score = env->TaskScore();
  if (!std::isfinite(score)) score = scalars[0].second;
  if (has_penalty) ReportPenalty(update.penalised, score, &scalars);
  scalars.insert(scalars.end(), metrics.begin(), metrics.end());
  return scalars;
}

void Trainer::Impl::ReportPenalty(const std::vector<ChunkResult>& results,
                                  double score,
                                  Scalars* scalars) {
  std::vector<Tensor> sigmas, oks, modes, loops;
  double violation = 0;
  for (const ChunkResult& r : results) {
    if (!r.sigma.defined()) continue;
    violation += r.penalty_value.item<double>();
    // the budget's own σ is worked out here, once an iteration, where a step sees that of a margin
    sigmas.push_back(r.condition.defined() ? LargestSingular(r.condition).sigma.select(1, 0)
                                           : r.sigma);
    oks.push_back(r.ok);
    if (r.mode.defined()) modes.push_back(r.mode);
    if (r.loop_norm.defined()) loops.push_back(r.loop_norm);
  }
  if (sigmas.empty()) return;
  const Tensor ok = at::cat(oks), sigma = at::cat(sigmas).masked_select(ok);
  scalars->emplace_back("penalty/lambda", weight.Lambda(iteration));
  scalars->emplace_back("penalty/bound", weight.Bound());
  scalars->emplace_back("penalty/value", violation);
  for (const Agent& agent : agents) {
    scalars->emplace_back("penalty/gradient_" + agent.name, agent.penalty_norm.item<double>());
  }
  scalars->emplace_back("penalty/left_out", 1 - ok.to(at::kFloat).mean().item<double>());
  if (sigma.numel() > 0) {
    scalars->emplace_back("stiffness/sigma_mean", sigma.mean().item<double>());
    const Tensor sorted = std::get<0>(sigma.sort());
    const std::int64_t p99 = (sorted.numel() - 1) * 99 / 100;
    scalars->emplace_back("stiffness/sigma_p99", sorted[p99].item<double>());
    const Tensor over = (sigma > 1.05).to(at::kFloat);
    scalars->emplace_back("stiffness/violating", over.mean().item<double>());
    if (!modes.empty()) {
      static constexpr const char* kNames[] = {"double", "left", "right", "flight"};
      const Tensor which = at::cat(modes).masked_select(ok);
      for (int m = 0; m < 4; ++m) {
        const Tensor own = over.masked_select(which == m);
        if (own.numel() == 0) continue;
        scalars->emplace_back(std::string("stiffness/violating_") + kNames[m],
                              own.mean().item<double>());
      }
    }
  }
  if (!loops.empty()) {
    scalars->emplace_back("stiffness/action_loop", at::cat(loops).mean().item<double>());
  }
  weight.Follow(violation, score);
}

}  // namespace silc
