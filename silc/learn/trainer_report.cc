// SPDX-License-Identifier: Apache-2.0
// What an iteration says of itself.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "silc/learn/trainer_impl.h"
#include "silc/stiffness/condition.h"
#include "silc/stiffness/contact_mode.h"

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

// How a figure of one mode ends: the first word of the mode's name, "double".
std::string FirstWord(ContactMode mode) {
  const std::string name = Name(mode);
  return name.substr(0, name.find(' '));
}

// Of the samples that took part in the penalty: how many, and what became of their σ.
struct SigmaFigures {
  std::size_t samples = 0, judged = 0, mean = 0, p99 = 0, violating = 0;
  struct OfMode {
    std::string name;
    std::size_t judged, violating;
  };
  std::vector<OfMode> modes;  // empty where nobody knows them
  std::size_t loop = 0;
  std::size_t frequency_mean = 0, frequency_p99 = 0, frequency_driving = 0;
  bool has_loop = false, has_frequencies = false;
};

// Mean of the samples that took part.
Tensor MeanOfJudged(const Tensor& values, const Tensor& ok) {
  const Tensor zero = at::zeros({}, values.options());
  return at::where(ok, values, zero).sum() / ok.sum().clamp_min(1);
}

// Their 99th percentile.
Tensor P99OfJudged(const Tensor& values, const Tensor& ok) {
  // samples left out sort behind all others
  const Tensor infinite = at::full({}, std::numeric_limits<float>::infinity(), values.options());
  const Tensor sorted = std::get<0>(at::where(ok, values, infinite).sort());
  const Tensor place = ((ok.sum() - 1).clamp_min(0) * 99).div(100, "floor").to(at::kLong);
  return sorted.index_select(0, place.reshape({1}));
}

SigmaFigures AddSigma(const std::vector<ChunkResult>& results, Ranks* ranks, Figures* figures) {
  std::vector<Tensor> sigmas, oks, modes, loops, moving, driving;
  for (const ChunkResult& r : results) {
    if (!r.sigma.defined()) continue;
    // the budget's own σ is worked out here, once an iteration, where a step sees that of a margin
    sigmas.push_back(r.condition.defined() ? LargestSingular(r.condition).sigma.select(1, 0)
                                           : r.sigma);
    oks.push_back(r.ok);
    if (r.mode.defined()) modes.push_back(r.mode);
    if (r.loop_norm.defined()) loops.push_back(r.loop_norm);
    if (r.frequency_sigma.defined()) moving.push_back(r.frequency_sigma);
    if (r.frequency_driving.defined()) driving.push_back(r.frequency_driving);
  }
  SigmaFigures result;
  // those of all processes: a share needs no more than sums, a percentile does
  const Tensor ok = ranks->Gather(at::cat(oks).to(at::kByte)).to(at::kBool);
  const Tensor all = ranks->Gather(at::cat(sigmas));
  const auto share = [&](const Tensor& of, const Tensor& among) {
    return of.logical_and(among).sum().to(at::kDouble) / among.sum().clamp_min(1);
  };
  const Tensor judged = ok.sum();
  result.samples = figures->Add(at::scalar_tensor(double(ok.numel()), all.options()));
  result.judged = figures->Add(judged);
  result.mean = figures->Add(MeanOfJudged(all, ok));
  result.p99 = figures->Add(P99OfJudged(all, ok));
  const Tensor over = all > kKeptSigma;
  result.violating = figures->Add(share(over, ok));
  if (!modes.empty()) {
    const Tensor modes_met = ranks->Gather(at::cat(modes));
    for (const ContactMode mode : kContactModes) {
      const Tensor own = ok.logical_and(modes_met == static_cast<int>(mode));
      const std::size_t own_judged = figures->Add(own.sum());
      result.modes.push_back({FirstWord(mode), own_judged, figures->Add(share(over, own))});
    }
  }
  result.has_loop = !loops.empty();
  if (result.has_loop) result.loop = figures->Add(ranks->Gather(at::cat(loops)).mean());
  result.has_frequencies = !moving.empty();
  if (result.has_frequencies) {
    const Tensor sigma = ranks->Gather(at::cat(moving));
    result.frequency_mean = figures->Add(MeanOfJudged(sigma, ok));
    result.frequency_p99 = figures->Add(P99OfJudged(sigma, ok));
    result.frequency_driving = figures->Add(share(ranks->Gather(at::cat(driving)) > 0, ok));
  }
  return result;
}

}  // namespace

Scalars Trainer::Impl::Report(const UpdateResult& update) {
  at::NoGradGuard no_tape;
  Figures figures(options);
  // Of each block here, then added up over all blocks: reward, ended, fallen; per agent KL and
  // value loss; violation. Losses and violation are shares of the whole already.
  struct BlockFigures {
    std::size_t paid = 0, ended = 0, fallen = 0;
    std::vector<std::vector<std::size_t>> kl, value;  // per agent, one per chunk
    std::vector<std::size_t> violation;               // one per chunk
  };
  std::vector<BlockFigures> blocks(own_groups);
  bool penalised = false;
  for (int b = 0; b < own_groups; ++b) {
    BlockFigures& own = blocks[b];
    const Tensor ended = OfBlock(done, b, 1), late = OfBlock(timed_out, b, 1);
    own.paid = figures.Add(OfBlock(reward, b, 1).contiguous().sum(2).mean());
    own.ended = figures.Add(ended.sum());
    own.fallen = figures.Add((ended - late).sum());
    own.kl.resize(agents.size());
    own.value.resize(agents.size());
    for (int c = 0; c < chunks; ++c) {
      const std::size_t piece = static_cast<std::size_t>(b) * chunks + c;
      const ChunkResult& r = update.last[piece];
      for (std::size_t k = 0; k < r.kl.size(); ++k) {
        own.kl[k].push_back(figures.Add(r.kl[k]));
        own.value[k].push_back(figures.Add(r.value[k]));
      }
      if (piece >= update.penalised.size()) continue;
      const ChunkResult& p = update.penalised[piece];
      if (p.sigma.defined()) own.violation.push_back(figures.Add(p.penalty_value));
    }
    penalised = penalised || (has_penalty && !own.violation.empty());
  }
  struct AgentFigures {
    std::size_t rate = 0, std = 0, task = 0, penalty = 0;
  };
  std::vector<AgentFigures> of_agents;
  for (const Agent& agent : agents) {
    of_agents.push_back({figures.Add(agent.rate),
                         figures.Add(agent.actor.std.mean()),
                         figures.Add(agent.task_norm),
                         figures.Add(agent.penalty_norm)});
  }
  SigmaFigures sigma;
  if (penalised) sigma = AddSigma(update.penalised, ranks.get(), &figures);
  figures.Fetch();  // waits for the device
  const auto sum = [&](const std::vector<std::size_t>& places) {
    double total = 0;
    for (const std::size_t place : places) total += figures[place];
    return total;
  };
  std::vector<double> parts;
  for (const BlockFigures& own : blocks) {
    parts.insert(parts.end(), {figures[own.paid], figures[own.ended], figures[own.fallen]});
    for (std::size_t k = 0; k < agents.size(); ++k) {
      parts.insert(parts.end(), {sum(own.kl[k]), sum(own.value[k])});
    }
    parts.push_back(sum(own.violation));
  }
  const std::vector<double> all = SumOverBlocks(parts);
  const double paid = all[0] / groups, ended = all[1], fallen = all[2];

  Scalars scalars;
  scalars.emplace_back("train/reward", paid);
  scalars.emplace_back("train/fall_share", fallen / std::max(1.0, ended));
  for (std::size_t k = 0; k < agents.size(); ++k) {
    const std::string& name = agents[k].name;
    scalars.emplace_back("train/kl_" + name, all[3 + 2 * k]);
    scalars.emplace_back("train/rate_" + name, figures[of_agents[k].rate]);
    scalars.emplace_back("train/std_" + name, figures[of_agents[k].std]);
    scalars.emplace_back("train/value_loss_" + name, all[4 + 2 * k]);
    scalars.emplace_back("train/gradient_" + name, figures[of_agents[k].task]);
  }
  const auto metrics = env->TakeMetrics();
  double score = env->TaskScore();
  if (!std::isfinite(score)) score = paid;
  if (penalised) {
    const double violation = all.back();
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
      for (const SigmaFigures::OfMode& met : sigma.modes) {
        if (figures[met.judged] == 0) continue;
        scalars.emplace_back("stiffness/violating_" + met.name, figures[met.violating]);
      }
      if (sigma.has_frequencies) {
        scalars.emplace_back("stiffness/frequency_sigma_mean", figures[sigma.frequency_mean]);
        scalars.emplace_back("stiffness/frequency_sigma_p99", figures[sigma.frequency_p99]);
        scalars.emplace_back("stiffness/frequency_driving", figures[sigma.frequency_driving]);
      }
    }
    if (sigma.has_loop) scalars.emplace_back("stiffness/action_loop", figures[sigma.loop]);
    weight.Follow(violation, score);
  }
  scalars.insert(scalars.end(), metrics.begin(), metrics.end());
  return scalars;
}

}  // namespace silc
