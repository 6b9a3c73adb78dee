// SPDX-License-Identifier: Apache-2.0
// What an iteration says of itself.
#include <algorithm>
#include <cmath>
#include <limits>

#include "silc/learn/trainer_impl.h"

namespace silc {
namespace {

// Figures that lie on the device, fetched together: a copy for each would wait for each.
class Figures {
 public:
  explicit Figures(const at::TensorOptions& options) : options_(options.dtype(at::kDouble)) {}
  /// @param figure scalar   @return its place
  std::size_t Add(const Tensor& figure) {
    list_.push_back(figure.detach().to(options_).reshape({}));
    return list_.size() - 1;
  }
  void Fetch() {
    const Tensor all = at::stack(list_).cpu();
    values_.assign(all.data_ptr<double>(), all.data_ptr<double>() + all.numel());
  }
  double operator[](std::size_t place) const { return values_[place]; }

 private:
  at::TensorOptions options_;
  std::vector<Tensor> list_;
  std::vector<double> values_;
};

constexpr int kModes = 4;
constexpr const char* kModeNames[kModes] = {"double", "left", "right", "flight"};

// Of the samples that took part in the penalty: how many, and what became of their σ.
struct SigmaFigures {
  std::size_t samples = 0, judged = 0, mean = 0, p99 = 0, violating = 0;
  std::size_t mode_judged[kModes] = {}, mode_violating[kModes] = {};
  std::size_t loop = 0;
  bool has_mode = false, has_loop = false;
};
SigmaFigures AddSigma(const std::vector<ChunkResult>& results, Figures* figures) {
  std::vector<Tensor> sigmas, oks, modes, loops;
  for (const ChunkResult& r : results) {
    if (!r.sigma.defined()) continue;
    // the budget's own σ is worked out here, once an iteration, where a step sees that of a margin
    sigmas.push_back(r.condition.defined() ? LargestSingular(r.condition).sigma.select(1, 0)
                                           : r.sigma);
    oks.push_back(r.ok);
    if (r.mode.defined()) modes.push_back(r.mode);
    if (r.loop_norm.defined()) loops.push_back(r.loop_norm);
  }
  SigmaFigures result;
  const Tensor ok = at::cat(oks), all = at::cat(sigmas);
  const auto share = [&](const Tensor& of, const Tensor& among) {
    return of.logical_and(among).sum().to(at::kDouble) / among.sum().clamp_min(1);
  };
  const Tensor judged = ok.sum();
  result.samples = figures->Add(at::scalar_tensor(double(ok.numel()), all.options()));
  result.judged = figures->Add(judged);
  const Tensor zero = at::zeros({}, all.options());
  result.mean = figures->Add(at::where(ok, all, zero).sum() / judged.clamp_min(1));
  // samples left out sort behind all others
  const Tensor infinite = at::full({}, std::numeric_limits<float>::infinity(), all.options());
  const Tensor sorted = std::get<0>(at::where(ok, all, infinite).sort());
  const Tensor place = ((judged - 1).clamp_min(0) * 99).div(100, "floor").to(at::kLong);
  result.p99 = figures->Add(sorted.index_select(0, place.reshape({1})));
  const Tensor over = all > 1.05;
  result.violating = figures->Add(share(over, ok));
  result.has_mode = !modes.empty();
  for (int m = 0; m < kModes && result.has_mode; ++m) {
    const Tensor own = ok.logical_and(at::cat(modes) == m);
    result.mode_judged[m] = figures->Add(own.sum());
    result.mode_violating[m] = figures->Add(share(over, own));
  }
  result.has_loop = !loops.empty();
  if (result.has_loop) result.loop = figures->Add(at::cat(loops).mean());
  return result;
}

}  // namespace

Scalars Trainer::Impl::Report(const UpdateResult& update) {
  at::NoGradGuard no_tape;
  Figures figures(options);
  const std::size_t paid = figures.Add(reward.sum(2).mean()), ended = figures.Add(done.sum());
  const std::size_t fallen = figures.Add((done - timed_out).sum());
  struct AgentFigures {
    std::vector<std::size_t> kl, value;  // one per chunk
    std::size_t rate = 0, std = 0, task = 0, penalty = 0;
  };
  std::vector<AgentFigures> of_agents;
  for (std::size_t k = 0; k < agents.size(); ++k) {
    AgentFigures own;
    for (const ChunkResult& r : update.last) {
      if (r.kl.empty()) continue;
      own.kl.push_back(figures.Add(r.kl[k]));
      own.value.push_back(figures.Add(r.value[k]));
    }
    own.rate = figures.Add(agents[k].rate);
    own.std = figures.Add(agents[k].actor.std.mean());
    own.task = figures.Add(agents[k].task_norm);
    own.penalty = figures.Add(agents[k].penalty_norm);
    of_agents.push_back(std::move(own));
  }
  std::vector<std::size_t> violations;  // one per chunk
  for (const ChunkResult& r : update.penalised) {
    if (r.sigma.defined()) violations.push_back(figures.Add(r.penalty_value));
  }
  const bool penalised = has_penalty && !violations.empty();
  SigmaFigures sigma;
  if (penalised) sigma = AddSigma(update.penalised, &figures);
  figures.Fetch();  // waits for the device
  const auto sum = [&](const std::vector<std::size_t>& places) {
    double total = 0;
    for (const std::size_t place : places) total += figures[place];
    return total;
  };

  Scalars scalars;
  scalars.emplace_back("train/reward", figures[paid]);
  scalars.emplace_back("train/fall_share", figures[fallen] / std::max(1.0, figures[ended]));
  for (std::size_t k = 0; k < agents.size(); ++k) {
    const std::string& name = agents[k].name;
    scalars.emplace_back("train/kl_" + name, sum(of_agents[k].kl));
    scalars.emplace_back("train/rate_" + name, figures[of_agents[k].rate]);
    scalars.emplace_back("train/std_" + name, figures[of_agents[k].std]);
    scalars.emplace_back("train/value_loss_" + name, sum(of_agents[k].value));
    scalars.emplace_back("train/gradient_" + name, figures[of_agents[k].task]);
  }
  const auto metrics = env->TakeMetrics();
  double score = env->TaskScore();
  if (!std::isfinite(score)) score = figures[paid];
  if (penalised) {
    const double violation = sum(violations);
    scalars.emplace_back("penalty/lambda", weight.Lambda(iteration));
    scalars.emplace_back("penalty/bound", weight.Bound());
    scalars.emplace_back("penalty/value", violation);
    for (std::size_t k = 0; k < agents.size(); ++k) {
      scalars.emplace_back("penalty/gradient_" + agents[k].name, figures[of_agents[k].penalty]);
    }
    const double judged = figures[sigma.judged];
    scalars.emplace_back("penalty/left_out", 1 - judged / figures[sigma.samples]);
    if (judged > 0) {
      scalars.emplace_back("stiffness/sigma_mean", figures[sigma.mean]);
      scalars.emplace_back("stiffness/sigma_p99", figures[sigma.p99]);
      scalars.emplace_back("stiffness/violating", figures[sigma.violating]);
      for (int m = 0; m < kModes && sigma.has_mode; ++m) {
        if (figures[sigma.mode_judged[m]] == 0) continue;
        scalars.emplace_back(std::string("stiffness/violating_") + kModeNames[m],
                             figures[sigma.mode_violating[m]]);
      }
    }
    if (sigma.has_loop) scalars.emplace_back("stiffness/action_loop", figures[sigma.loop]);
    weight.Follow(violation, score);
  }
  scalars.insert(scalars.end(), metrics.begin(), metrics.end());
  return scalars;
}

}  // namespace silc
