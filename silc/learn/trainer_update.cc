// SPDX-License-Identifier: Apache-2.0
// Mini-batches, gradients of the task and of the penalty, optimiser steps; on a GPU recorded and
// replayed.
#include <algorithm>
#include <limits>

#include "silc/learn/trainer_impl.h"

namespace silc {
namespace {

Tensor Flat(const std::vector<Tensor>& gradients, const std::vector<Tensor>& leaves) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    parts.push_back(gradients[i].defined() ? gradients[i].reshape(-1)
                                           : at::zeros({leaves[i].numel()}, leaves[i].options()));
  }
  return at::cat(parts);
}

// The budget that each observation tells its policy: (B, 3) u of (B1), in double.
Tensor CommandsIn(const StiffnessSpec& s, const Tensor& obs) {
  std::vector<Tensor> u;
  for (const CommandInput& told : s.command) {
    u.push_back(told.input < 0
                    ? at::zeros({obs.size(0)}, obs.options().dtype(at::kDouble))
                    : obs.select(1, told.input).to(at::kDouble) / told.scale + told.offset);
  }
  return at::stack(u, 1);
}

}  // namespace

bool Trainer::Impl::Penalises(int step) const {
  return has_penalty && iteration >= config.penalty.start && step % config.penalty.every == 0;
}

bool Trainer::Impl::PenalisesBatch(int m) const {
  for (int epoch = 0; epoch < config.epochs; ++epoch) {
    if (Penalises(epoch * config.mini_batches + m)) return true;
  }
  return false;
}

int Trainer::Impl::PenaltySamples() const {
  return config.penalty.samples == 0 ? 0 : std::max(1, config.penalty.samples / groups);
}

std::int64_t Trainer::Impl::PenaltyRows(std::int64_t rows, int chunk) const {
  if (config.penalty.samples == 0) return rows;
  return std::min(rows, Rows(PenaltySamples(), chunk, chunks).second);
}

Trainer::Impl::MiniBatch Trainer::Impl::Gather(const Tensor& index,
                                               const Advantages& advantages,
                                               bool penalised) {
  const std::int64_t T = config.steps, B = index.size(0);
  const auto take = [&](const Tensor& buffer) {
    return buffer.narrow(0, 0, T).flatten(0, 1).index_select(0, index);
  };
  MiniBatch batch;
  batch.obs = take(obs);
  batch.critic_obs = take(critic_obs);
  batch.action = take(action);
  batch.mean = take(mean);
  batch.value = take(value);
  batch.logp = take(logp);
  batch.advantage = take(advantages.advantage);
  batch.target = take(advantages.target);
  batch.budget.resize(pieces());
  batch.gravity.resize(pieces());
  batch.mode.resize(pieces());
  if (!needs_stiffness || !penalised) return batch;
  pool->ParallelFor(pieces(), [&](int, int piece) {
    const auto [first, count] = PieceRows(B, piece);
    const std::int64_t some = PenaltyRows(count, piece % chunks);
    if (some > 0) GatherBudget(index.narrow(0, first, some), piece, &batch);
  });
  return batch;
}

void Trainer::Impl::GatherBudget(const Tensor& rows, int chunk, MiniBatch* batch) {
  const auto pick = [&](const Tensor& buffer) {
    return buffer.narrow(0, 0, config.steps).flatten(0, 1).index_select(0, rows);
  };
  BudgetSpec budget = spec.stiffness_spec.budget;
  if (method != Method::kSilc) budget.hand_floor.setZero();  // (S7a) has no band
  batch->mode[chunk] = pick(mode);
  batch->gravity[chunk] = pick(gravity);
  batch->budget[chunk] = MakeBudgetFactors(
      budget,
      servo.kp,
      {batch->mode[chunk], pick(com), pick(hand_on_base), pick(closing), {}},
      at::kFloat,
      budget.IsCommanded() ? CommandsIn(spec.stiffness_spec, pick(obs)) : Tensor());
}

ChunkResult Trainer::Impl::Gradients(const MiniBatch& batch,
                                     int chunk,
                                     const Tensor& signs,
                                     const Pressure& pressure,
                                     bool penalised) {
  const std::int64_t B = batch.obs.size(0);
  const auto [first, count] = PieceRows(B, chunk);
  const std::int64_t of_all_groups = B / own_groups * groups;
  const double share = double(count) / double(of_all_groups);
  ChunkResult result;
  if (count == 0) return result;
  const auto rows = [first = first, count = count](const Tensor& t) {
    return t.narrow(0, first, count);
  };
  const std::int64_t some = penalised ? PenaltyRows(count, chunk % chunks) : 0;
  PenaltyInput input;
  Tensor loss, value_loss;
  for (std::size_t k = 0; k < agents.size(); ++k) {
    const Agent& agent = agents[k];
    const auto block = [&](const Tensor& t) { return rows(t).narrow(1, agent.first, agent.count); };
    input.actors.push_back(LayersOf(agent));
    // the penalised rows on a tape of their own: its reverse pass then costs those rows alone
    const Tensor o = rows(batch.obs);
    input.activations.push_back(Forward(input.actors.back(), some > 0 ? o.narrow(0, 0, some) : o));
    Tensor mu = input.activations.back().output;
    if (some > 0 && some < count) {
      mu = at::cat({mu, Forward(input.actors.back(), o.narrow(0, some, count - some)).output});
    }
    const Tensor lp = LogProb(mu, agent.actor.std, block(batch.action));
    // (P4), (P6), (P5)
    const Tensor surrogate = ClippedSurrogate(
        lp, rows(batch.logp).select(1, k), rows(batch.advantage).select(1, k), config.clip);
    const Tensor actor_loss = surrogate - config.entropy_weight * Entropy(agent.actor.std);
    const Tensor v = Forward(CriticOf(agent), rows(batch.critic_obs)).output.squeeze(1);
    const Tensor critic_loss = ClippedValueLoss(
        v,
        rows(batch.value).select(1, k),
        rows(batch.target).select(1, k),
        config.value_clip > 0 ? config.value_clip : std::numeric_limits<float>::max());
    loss = loss.defined() ? loss + actor_loss : actor_loss;
    value_loss = value_loss.defined() ? value_loss + critic_loss : critic_loss;
    at::NoGradGuard no_tape;
    result.kl.push_back(
        share * MeanKl(mu.detach(), agent.actor.std.detach(), block(batch.mean), std_old[k]));
    result.surrogate.push_back(share * surrogate.detach());
    result.value.push_back(share * critic_loss.detach());
  }
  const bool penalise = some > 0 && pressure.lambda.defined();
  result.actor = GradientsOf(share * loss, true, penalise);
  result.critic = GradientsOf(share * config.value_weight * value_loss, false, false);
  if (some == 0) return result;
  // its rows come first in the chunk, and the forward pass above serves both
  input.count = some;
  Tensor own_signs;
  if (signs.defined()) {
    own_signs = signs.narrow(0, PieceRows(signs.size(0), chunk).first, some);
  }
  Penalise(batch,
           chunk,
           rows(batch.action).narrow(0, 0, some),
           own_signs,
           pressure,
           double(some) / double(TotalPenalised(B)),
           &input,
           &result);
  return result;
}

std::vector<Tensor> Trainer::Impl::GradientsOf(const Tensor& scalar,
                                               bool actor,
                                               bool keep_tape) const {
  std::vector<Tensor> leaves, flat;
  for (const Agent& a : agents) {
    const auto& own = actor ? a.actor.leaves : a.critic.leaves;
    leaves.insert(leaves.end(), own.begin(), own.end());
  }
  const auto all = torch::autograd::grad({scalar}, leaves, {}, keep_tape, false, true);
  std::size_t at = 0;
  for (const Agent& a : agents) {
    const auto& own = actor ? a.actor.leaves : a.critic.leaves;
    flat.push_back(Flat({all.begin() + at, all.begin() + at + own.size()}, own));
    at += own.size();
  }
  return flat;
}

void Trainer::Impl::Penalise(const MiniBatch& batch,
                             int chunk,
                             const Tensor& taken,
                             const Tensor& signs,
                             const Pressure& pressure,
                             double weight_of_chunk,
                             PenaltyInput* input,
                             ChunkResult* result) {
  input->channels = channels;
  input->servo = servo;
  input->budget = batch.budget[chunk];
  input->gravity = batch.gravity[chunk];
  for (const Agent& agent : agents) {
    input->std.push_back(agent.actor.std);
    input->action.push_back(taken.narrow(1, agent.first, agent.count));
  }
  input->signs = signs;
  input->bound = pressure.bound;
  const PenaltyResult penalty = Penalty(method, *input, config.penalty);
  if (pressure.lambda.defined()) {
    result->penalty =
        GradientsOf(pressure.lambda * (weight_of_chunk * penalty.surrogate), true, false);
  }
  result->penalty_value = weight_of_chunk * penalty.value;
  result->sigma = penalty.sigma;
  result->condition = penalty.condition;
  result->ok = penalty.ok;
  result->loop_norm = penalty.loop_norm;
  result->frequency_sigma = penalty.frequency_sigma;
  result->frequency_driving = penalty.frequency_driving;
  result->mode = batch.mode[chunk];
}

std::int64_t Trainer::Impl::TotalPenalised(std::int64_t B) const {
  std::int64_t sum = 0;
  for (int chunk = 0; chunk < chunks; ++chunk)
    sum += PenaltyRows(Rows(B / own_groups, chunk, chunks).second, chunk);
  return sum * groups;
}

Trainer::Impl::StepSums Trainer::Impl::SumOfStep(const std::vector<ChunkResult>& results) const {
  // of each block, its pieces added in their order
  std::vector<StepSums> blocks(own_groups);
  for (int b = 0; b < own_groups; ++b) {
    const auto add = [&](auto from, auto to) {
      std::vector<Tensor>& total = blocks[b].*to;
      for (int c = 0; c < chunks; ++c) {
        const std::vector<Tensor>& list = results[b * chunks + c].*from;
        if (list.empty()) continue;
        if (total.empty()) {
          total = list;
          continue;
        }
        for (std::size_t k = 0; k < list.size(); ++k) total[k] = total[k] + list[k];
      }
    };
    add(&ChunkResult::actor, &StepSums::actor);
    add(&ChunkResult::critic, &StepSums::critic);
    add(&ChunkResult::penalty, &StepSums::penalty);
    add(&ChunkResult::kl, &StepSums::kl);
  }
  if (groups == 1) return blocks[0];
  // one message a step: all that is added up, end to end
  constexpr std::vector<Tensor> StepSums::*kMembers[] = {
      &StepSums::actor, &StepSums::critic, &StepSums::penalty, &StepSums::kl};
  std::vector<Tensor> rows;
  for (const StepSums& block : blocks) {
    std::vector<Tensor> flat;
    for (const auto member : kMembers) {
      for (const Tensor& t : block.*member) flat.push_back(t.reshape(-1));
    }
    rows.push_back(at::cat(flat));
  }
  const Tensor total = ranks->Sum(at::stack(rows));
  StepSums sums = blocks[0];
  std::int64_t at = 0;
  for (const auto member : kMembers) {
    for (Tensor& t : sums.*member) {
      t = total.narrow(0, at, t.numel()).view(t.sizes());
      at += t.numel();
    }
  }
  return sums;
}

void Trainer::Impl::Step(const std::vector<ChunkResult>& results) {
  at::NoGradGuard no_tape;
  const StepSums sums = SumOfStep(results);
  for (std::size_t k = 0; k < agents.size(); ++k) {
    Agent& agent = agents[k];
    agent.rate.copy_(AdaptedRate(
        agent.rate, sums.kl[k].to(at::kDouble), kl_target, config.min_rate, config.max_rate));
    Tensor actor = sums.actor[k];
    agent.task_norm.copy_(actor.norm());
    actor = actor * ClipFactor(agent.task_norm, config.gradient_clip);
    if (!sums.penalty.empty()) HoldPenalty(sums.penalty[k], &agent);
    if (has_penalty) actor = actor + agent.penalty_gradient;
    Tensor critic = sums.critic[k];
    critic = critic * ClipFactor(critic.norm(), config.gradient_clip);
    agent.actor_adam.Step(agent.actor.flat, actor, agent.rate);
    agent.critic_adam.Step(
        agent.critic.flat, critic, config.critic_rate > 0 ? agent.critic_rate : agent.rate);
    agent.actor.std.detach().clamp_min_(config.min_std);
    if (method == Method::kSnLcp) agent.normaliser.Step(agent.actor);
  }
}

void Trainer::Impl::HoldPenalty(const Tensor& gradient, Agent* agent) const {
  agent->penalty_norm.copy_(gradient.norm());
  agent->penalty_gradient.copy_(gradient *
                                ClipFactor(agent->penalty_norm, config.penalty.gradient_clip));
}

Tensor Trainer::Impl::DrawSigns(std::int64_t rows) {
  std::vector<Tensor> blocks;
  for (const at::Generator& generator : generators) {
    blocks.push_back(
        at::randint(0, 2, {rows, config.penalty.probes, spec.num_actions()}, generator, options) *
            2 -
        1);
  }
  return own_groups == 1 ? blocks[0] : at::cat(blocks);
}

Tensor Trainer::Impl::NormaliseAll(const Tensor& advantage) const {
  if (groups == 1) return Normalised(advantage);
  std::vector<Tensor> moments;
  for (int b = 0; b < own_groups; ++b) {
    moments.push_back(BlockMoments(OfBlock(advantage, b, 1).contiguous()));
  }
  return Normalised(advantage,
                    ranks->Gather(at::stack(moments)),
                    advantage.size(0) * advantage.size(1) / own_groups);
}

std::vector<Tensor> Trainer::Impl::DrawOrder() {
  const std::int64_t T = config.steps, N = spec.num_envs, n = N / own_groups;
  const auto whole = options.dtype(at::kLong);
  std::vector<Tensor> orders;
  for (int b = 0; b < own_groups; ++b) {
    Tensor order = at::randperm(T * n, generators[b], whole);
    // sample t n + i of the block is sample t N + b n + i of the rollout
    if (own_groups > 1) {
      const Tensor t = order.div(n, "floor");
      order = t * N + (order - t * n) + b * n;
    }
    orders.push_back(order);
  }
  return orders;
}

Trainer::Impl::Pressure Trainer::Impl::PressureNow() const {
  if (!has_penalty) return {};
  const double lambda = weight.Lambda(iteration);
  return {.lambda = lambda > 0 ? at::full({}, lambda, options) : Tensor(),
          .bound = at::full({}, weight.Bound(), options)};
}

Trainer::Impl::UpdateResult Trainer::Impl::Update() {
  const std::int64_t T = config.steps, N = spec.num_envs, samples = T * N;
  Advantages advantages = EstimateAdvantages(
      reward, value.narrow(0, 0, T), value[T], done, timed_out, config.gamma, config.lambda);
  advantages.advantage = NormaliseAll(advantages.advantage);
  // one permutation for all epochs, as FALCON has it: mini-batches and budgets are gathered once
  const std::vector<Tensor> orders = DrawOrder();
  const std::int64_t B = samples / config.mini_batches, of_block = B / own_groups;
  std::vector<MiniBatch> batches;
  for (int m = 0; m < config.mini_batches; ++m) {
    std::vector<Tensor> rows;
    for (const Tensor& order : orders) rows.push_back(order.narrow(0, m * of_block, of_block));
    batches.push_back(
        Gather(own_groups == 1 ? rows[0] : at::cat(rows), advantages, PenalisesBatch(m)));
  }
  const Pressure pressure = PressureNow();
  UpdateResult result;
  for (int step = 0; step < config.epochs * config.mini_batches; ++step) {
    const MiniBatch& batch = batches[step % config.mini_batches];
    const bool penalised = Penalises(step);
    Tensor signs;
    if (penalised && needs_stiffness && config.penalty.probes > 0) {
      signs = DrawSigns(config.penalty.samples == 0 ? of_block : PenaltySamples());
    }
    if (Records()) {
      result.last = Replay(batch, signs, pressure, penalised);
    } else {
      result.last.assign(pieces(), {});
      pool->ParallelFor(pieces(), [&](int, int piece) {
        result.last[piece] = Gradients(batch, piece, signs, pressure, penalised);
      });
      Step(result.last);
    }
    if (penalised) result.penalised = result.last;
  }
  return result;
}

const std::vector<ChunkResult>& Trainer::Impl::Replay(const MiniBatch& batch,
                                                      const Tensor& signs,
                                                      const Pressure& pressure,
                                                      bool penalised) {
  const auto copy_if_there = [](const Tensor& from, Tensor* to) {
    if (from.defined()) CopyInto(from, to);
  };
  MiniBatch& b = recorded_batch;
  copy_if_there(batch.obs, &b.obs);
  copy_if_there(batch.critic_obs, &b.critic_obs);
  copy_if_there(batch.action, &b.action);
  copy_if_there(batch.mean, &b.mean);
  copy_if_there(batch.value, &b.value);
  copy_if_there(batch.logp, &b.logp);
  copy_if_there(batch.advantage, &b.advantage);
  copy_if_there(batch.target, &b.target);
  Recording& r = penalised ? penalised_step : plain_step;
  bool fits = r.graph.recorded();
  if (penalised) {
    b.budget.resize(1);
    b.gravity.resize(1);
    b.mode.resize(1);
    CopyFields(batch.budget[0], &b.budget[0], copy_if_there);
    copy_if_there(batch.gravity[0], &b.gravity[0]);
    copy_if_there(batch.mode[0], &b.mode[0]);
    copy_if_there(signs, &recorded_signs);
    // a penalty in force is more work than one that is only reported
    fits = fits && recorded_pressure.lambda.defined() == pressure.lambda.defined();
    if (!pressure.lambda.defined()) recorded_pressure.lambda = Tensor();
    copy_if_there(pressure.lambda, &recorded_pressure.lambda);
    copy_if_there(pressure.bound, &recorded_pressure.bound);
  }
  if (!fits) {
    const DeviceGraph& other = penalised ? plain_step.graph : penalised_step.graph;
    r.results.clear();
    r.graph.Record(
        [&] {
          r.results.assign(1, Gradients(b, 0, recorded_signs, recorded_pressure, penalised));
          Step(r.results);
        },
        other.recorded() ? &other : &rollout_graph);
  }
  r.graph.Replay();
  return r.results;
}

}  // namespace silc
