// SPDX-License-Identifier: Apache-2.0
// Rollout and update on a GPU without the tape: gradients of the losses are written out, products
// are in half precision, and a whole update is one recording. The penalty stays on the tape, on its
// own rows. docs/learning.md, "An update without the tape".
#include "silc/base/error.h"
#include "silc/learn/trainer_impl.h"
#ifdef SILC_HAVE_CUDA
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <limits>

#include "silc/base/check.h"
#include "silc/learn/cuda_ppo.h"
#include "silc/learn/half_networks.h"
#endif

namespace silc {

#ifdef SILC_HAVE_CUDA

namespace {

HalfBits* Bits(const Tensor& t) { return reinterpret_cast<HalfBits*>(t.data_ptr<at::Half>()); }
CUstream_st* Stream() { return c10::cuda::getCurrentCUDAStream().stream(); }
const float* FloatsOf(const Tensor& t) { return t.defined() ? t.data_ptr<float>() : nullptr; }

// CopyInto(), which forgets what is not there any more.
void CopyOrForget(const Tensor& from, Tensor* to) {
  if (from.defined()) {
    CopyInto(from, to);
  } else {
    *to = Tensor();
  }
}

}  // namespace

struct Trainer::Impl::Half {
  HalfNetworks actors, critics;
  HalfWorkspace workspace;
  Tensor obs, critic_obs;  // (T + 1, N, width) float16, scaled as the networks take them
  Tensor batch_obs, batch_critic_obs;  // (samples, width), mini-batch after mini-batch
  Tensor order;                        // (samples) which sample stands where in them
  Tensor advantage, target;            // (T, N, agents)
  Tensor d_actor, d_critic;            // (agents, B, padded) float16
  Tensor actor_partial, critic_partial, scratch;
  Tensor kl, surrogate, value_loss;  // (agents)
  // of the penalty, where it sets in: per mini-batch its rows, per penalised step its signs
  std::vector<MiniBatch> penalty;
  std::vector<Tensor> signs;
  Pressure pressure;
  DeviceGraph graph;
  // what the last update did; its recording serves the next one that does the same
  bool penalised = false, pressed = false;
  UpdateResult result;
};

void Trainer::Impl::MakeHalf() {
  if (config.precision == "float32") return;
  const bool asked = config.precision == "float16";
  const auto refuse = [&](const std::string& why) {
    if (asked) throw ConfigError("learn.precision: float16: " + why + "; choose float32");
  };
  if (config.device != "cuda") return refuse("only on a GPU");
  if (method == Method::kSnLcp) return refuse("sn-lcp normalises its weights in float32");
  if (2 * agents.size() > kMaxNetworks) return refuse("too many agents");
  for (const Agent& agent : agents) {
    if (HalfNetworks::Takes(agent.actor.shape) && HalfNetworks::Takes(agent.critic.shape)) continue;
    return refuse("inputs and layers must be multiples of 8 wide, layers of at most 2048");
  }
  half = std::make_shared<Half>();
  std::vector<const Network*> actors, critics;
  for (const Agent& agent : agents) {
    actors.push_back(&agent.actor);
    critics.push_back(&agent.critic);
  }
  Half& h = *half;
  h.actors = HalfNetworks(actors);
  h.critics = HalfNetworks(critics);
  const std::int64_t T = config.steps, N = spec.num_envs, G = std::int64_t(agents.size());
  const std::int64_t samples = T * N, B = samples / config.mini_batches;
  const auto halves = options.dtype(at::kHalf);
  h.obs = at::zeros({T + 1, N, obs_width}, halves);
  h.critic_obs = at::zeros({T + 1, N, critic_obs_width}, halves);
  h.batch_obs = at::zeros({samples, obs_width}, halves);
  h.batch_critic_obs = at::zeros({samples, critic_obs_width}, halves);
  h.order = at::zeros({samples}, options.dtype(at::kLong));
  h.advantage = at::zeros({T, N, G}, options);
  h.target = at::zeros({T, N, G}, options);
  h.d_actor = at::zeros({G, B, h.actors.padded()}, halves);
  h.d_critic = at::zeros({G, B, h.critics.padded()}, halves);
  h.actor_partial = at::zeros({G, kLossBlocks, kLossWidth}, options);
  h.critic_partial = at::zeros({G, kLossBlocks, 2}, options);
  h.scratch = at::zeros({kStepScratch}, options);
  h.kl = at::zeros({G}, options);
  h.surrogate = at::zeros({G}, options);
  h.value_loss = at::zeros({G}, options);
  h.penalty.resize(config.mini_batches);
}

void Trainer::Impl::RefreshHalf() {
  half->actors.Refresh();
  half->critics.Refresh();
}

void Trainer::Impl::ActHalf(std::int64_t t) {
  Half& h = *half;
  const std::int64_t N = spec.num_envs;
  const int A = spec.num_actions(), G = static_cast<int>(agents.size());
  SILC_CHECK(LaunchToHalf(obs[t].data_ptr<float>(),
                          FloatsOf(actor_inputs.shift),
                          FloatsOf(actor_inputs.scale),
                          N,
                          obs_width,
                          Bits(h.obs[t]),
                          Stream()) == 0);
  SILC_CHECK(LaunchToHalf(critic_obs[t].data_ptr<float>(),
                          FloatsOf(critic_inputs.shift),
                          FloatsOf(critic_inputs.scale),
                          N,
                          critic_obs_width,
                          Bits(h.critic_obs[t]),
                          Stream()) == 0);
  const Tensor output = h.actors.Forward(h.obs[t], &h.workspace);
  for (int k = 0; k < G; ++k) {
    const Agent& agent = agents[k];
    ActArguments a;
    a.output = output[k].data_ptr<float>();
    a.padded = h.actors.padded();
    a.count = agent.count;
    a.bias = agent.actor.layers.bias.back().data_ptr<float>();
    a.std = agent.actor.std.data_ptr<float>();
    a.rows = N;
    a.noise = noise[t].data_ptr<float>() + agent.first;
    a.mean = mean[t].data_ptr<float>() + agent.first;
    a.action = action[t].data_ptr<float>() + agent.first;
    a.actions = A;
    a.logp = logp[t].data_ptr<float>() + k;
    a.agents = G;
    SILC_CHECK(LaunchAct(a, Stream()) == 0);
  }
}

void Trainer::Impl::EndRolloutHalf() {
  const std::int64_t T = config.steps;
  SILC_CHECK(LaunchToHalf(critic_obs[T].data_ptr<float>(),
                          FloatsOf(critic_inputs.shift),
                          FloatsOf(critic_inputs.scale),
                          spec.num_envs,
                          critic_obs_width,
                          Bits(half->critic_obs[T]),
                          Stream()) == 0);
}

Trainer::Impl::UpdateResult Trainer::Impl::UpdateHalf() {
  Half& h = *half;
  at::NoGradGuard no_tape;
  kl_target.fill_(config.kl_target * CoolDown(iteration, config.iterations, config.cool_down));
  const std::int64_t samples = h.order.size(0), B = samples / config.mini_batches;
  h.order.copy_(DrawOrder()[0]);
  const int steps = config.epochs * config.mini_batches;
  const std::int64_t rows = PenaltyRows(B, 0);
  const bool penalises = has_penalty && iteration >= config.penalty.start;
  if (penalises) {
    for (int m = 0; m < config.mini_batches; ++m) {
      if (!PenalisesBatch(m)) continue;
      const Tensor index = h.order.narrow(0, m * B, rows);
      const auto pick = [&](const Tensor& buffer) {
        return buffer.narrow(0, 0, config.steps).flatten(0, 1).index_select(0, index);
      };
      MiniBatch own, &kept = h.penalty[m];
      own.budget.resize(1);
      own.gravity.resize(1);
      own.mode.resize(1);
      if (needs_stiffness) GatherBudget(index, 0, &own);
      kept.budget.resize(1);
      kept.gravity.resize(1);
      kept.mode.resize(1);
      CopyOrForget(pick(obs), &kept.obs);
      CopyOrForget(pick(action), &kept.action);
      CopyFields(own.budget[0], &kept.budget[0], CopyOrForget);
      CopyOrForget(own.gravity[0], &kept.gravity[0]);
      CopyOrForget(own.mode[0], &kept.mode[0]);
    }
    h.signs.resize(steps);
    for (int step = 0; step < steps; ++step) {
      if (needs_stiffness && config.penalty.probes > 0 && Penalises(step)) {
        CopyOrForget(DrawSigns(rows), &h.signs[step]);
      }
    }
    Pressure pressure;
    if (weight.Lambda(iteration) > 0) {
      pressure.lambda = at::full({}, weight.Lambda(iteration), options);
    }
    pressure.bound = at::full({}, weight.Bound(), options);
    CopyOrForget(pressure.lambda, &h.pressure.lambda);
    CopyOrForget(pressure.bound, &h.pressure.bound);
  }
  const bool presses = h.pressure.lambda.defined();
  const bool as_before = h.penalised == penalises && h.pressed == presses;
  h.penalised = penalises;
  h.pressed = presses;
  if (!as_before) h.graph = {};
  // an update of a new kind runs once before it is recorded: libraries make their handles in it,
  // and cannot while a stream is captured
  if (!Records() || !as_before) {
    h.result = RunHalf();
    return h.result;
  }
  if (!h.graph.recorded()) {
    h.result = {};
    h.graph.Record([&] { h.result = RunHalf(); }, &rollout_graph);
  }
  h.graph.Replay();
  return h.result;
}

// Values of all states, advantages, and the mini-batches' observations.
void Trainer::Impl::PrepareHalf() {
  Half& h = *half;
  const std::int64_t T = config.steps, N = spec.num_envs, samples = T * N;
  const std::int64_t B = samples / config.mini_batches;
  const int G = static_cast<int>(agents.size());
  // the state after the last step counts, too
  for (std::int64_t first = 0; first < samples + N; first += B) {
    const std::int64_t rows = std::min(B, samples + N - first);
    const Tensor x = h.critic_obs.flatten(0, 1).narrow(0, first, rows);
    const Tensor output = h.critics.Forward(x, &h.workspace);
    for (int k = 0; k < G; ++k) {
      SILC_CHECK(LaunchValues(output[k].data_ptr<float>(),
                              h.critics.padded(),
                              agents[k].critic.layers.bias.back().data_ptr<float>(),
                              rows,
                              value.data_ptr<float>() + first * G + k,
                              G,
                              Stream()) == 0);
    }
  }
  AdvantageArguments gae;
  gae.reward = reward.data_ptr<float>();
  gae.value = value.data_ptr<float>();
  gae.last_value = value[T].data_ptr<float>();
  gae.done = done.data_ptr<std::uint8_t>();
  gae.timed_out = timed_out.data_ptr<std::uint8_t>();
  gae.steps = static_cast<int>(T);
  gae.robots = static_cast<int>(N);
  gae.agents = G;
  gae.gamma = static_cast<float>(config.gamma);
  gae.lambda = static_cast<float>(config.lambda);
  gae.advantage = h.advantage.data_ptr<float>();
  gae.target = h.target.data_ptr<float>();
  SILC_CHECK(LaunchAdvantages(gae, Stream()) == 0);
  h.advantage.copy_(NormaliseAll(h.advantage));
  const std::int64_t* order = h.order.data_ptr<std::int64_t>();
  SILC_CHECK(
      LaunchGatherHalf(Bits(h.obs), order, samples, obs_width, Bits(h.batch_obs), Stream()) == 0);
  SILC_CHECK(LaunchGatherHalf(Bits(h.critic_obs),
                              order,
                              samples,
                              critic_obs_width,
                              Bits(h.batch_critic_obs),
                              Stream()) == 0);
}

// The task's gradients of mini-batch m, of actors and critics.
void Trainer::Impl::GradientsHalf(std::int64_t m) {
  Half& h = *half;
  const std::int64_t B = h.order.size(0) / config.mini_batches;
  const int A = spec.num_actions(), G = static_cast<int>(agents.size());
  const std::int64_t* index = h.order.data_ptr<std::int64_t>() + m * B;
  const Tensor x = h.batch_obs.narrow(0, m * B, B);
  const Tensor y = h.batch_critic_obs.narrow(0, m * B, B);
  ActorLoss actor_loss[kMaxNetworks];
  CriticLoss critic_loss[kMaxNetworks];
  const Tensor output = h.actors.Forward(x, &h.workspace);
  for (int k = 0; k < G; ++k) {
    const Agent& agent = agents[k];
    ActorLoss& a = actor_loss[k];
    a.output = output[k].data_ptr<float>();
    a.d_output = Bits(h.d_actor[k]);
    a.padded = h.actors.padded();
    a.count = agent.count;
    a.bias = agent.actor.layers.bias.back().data_ptr<float>();
    a.std = agent.actor.std.data_ptr<float>();
    a.std_old = std_old[k].data_ptr<float>();
    a.index = index;
    a.action = action.data_ptr<float>() + agent.first;
    a.mean = mean.data_ptr<float>() + agent.first;
    a.actions = A;
    a.logp = logp.data_ptr<float>() + k;
    a.advantage = h.advantage.data_ptr<float>() + k;
    a.agents = G;
    a.clip = static_cast<float>(config.clip);
    a.partial = h.actor_partial[k].data_ptr<float>();
  }
  SILC_CHECK(LaunchActorLoss(actor_loss, G, B, Stream()) == 0);
  h.actors.Backward(x, h.d_actor, &h.workspace);

  const Tensor values = h.critics.Forward(y, &h.workspace);
  for (int k = 0; k < G; ++k) {
    CriticLoss& c = critic_loss[k];
    c.output = values[k].data_ptr<float>();
    c.d_output = Bits(h.d_critic[k]);
    c.padded = h.critics.padded();
    c.bias = agents[k].critic.layers.bias.back().data_ptr<float>();
    c.index = index;
    c.value = value.data_ptr<float>() + k;
    c.target = h.target.data_ptr<float>() + k;
    c.agents = G;
    c.clip = config.value_clip > 0 ? static_cast<float>(config.value_clip)
                                   : std::numeric_limits<float>::max();
    c.weight = static_cast<float>(config.value_weight);
    c.partial = h.critic_partial[k].data_ptr<float>();
  }
  SILC_CHECK(LaunchCriticLoss(critic_loss, G, B, Stream()) == 0);
  h.critics.Backward(y, h.d_critic, &h.workspace);
}

// Over all processes: between gradients and step one message with the gradients, which are means
// over the rows here, and the losses' unfinished sums, which StepHalf() divides by all rows. It is
// part of the recording.
void Trainer::Impl::ReduceHalf() {
  if (groups == 1) return;
  Half& h = *half;
  const Tensor own[] = {
      h.actors.gradients(), h.critics.gradients(), h.actor_partial, h.critic_partial};
  std::vector<Tensor> flat;
  for (const Tensor& t : own) flat.push_back(t.reshape(-1));
  const Tensor total = ranks->Sum(at::cat(flat).unsqueeze(0));
  std::int64_t at = 0;
  for (int i = 0; i < 4; ++i) {
    const Tensor piece = total.narrow(0, at, own[i].numel()).view(own[i].sizes());
    own[i].copy_(i < 2 ? piece / groups : piece);
    at += own[i].numel();
  }
}

// The optimiser's step from the gradients that lie there.
void Trainer::Impl::StepHalf() {
  Half& h = *half;
  StepArguments a;
  a.rows = h.order.size(0) / config.mini_batches * groups;
  a.kl_target = kl_target.data_ptr<double>();
  a.min_rate = config.min_rate;
  a.max_rate = config.max_rate;
  a.entropy_weight = static_cast<float>(config.entropy_weight);
  a.gradient_clip = static_cast<float>(config.gradient_clip);
  a.weight_decay = static_cast<float>(config.weight_decay);
  a.min_std = static_cast<float>(config.min_std);
  a.scratch = h.scratch.data_ptr<float>();
  for (int k = 0; k < static_cast<int>(agents.size()); ++k) {
    Agent& agent = agents[k];
    for (const bool actor : {true, false}) {
      const HalfNetworks& of = actor ? h.actors : h.critics;
      AdamW& adam = actor ? agent.actor_adam : agent.critic_adam;
      StepNetwork& n = a.network[a.count++];
      n.flat = of.network(k).flat.data_ptr<float>();
      n.m = adam.m.data_ptr<float>();
      n.v = adam.v.data_ptr<float>();
      n.t = adam.t.data_ptr<double>();
      n.gradient = of.gradient(k).data_ptr<float>();
      n.half = Bits(of.half(k));
      n.count = of.network(k).count();
      n.bias_at = of.bias_at(k);
      n.outputs = of.network(k).shape.outputs;
      n.std_at = of.spread_at(k);
      n.loss_partial = (actor ? h.actor_partial : h.critic_partial)[k].data_ptr<float>();
      n.rate = agent.rate.data_ptr<double>();
      n.loss = (actor ? h.surrogate : h.value_loss).data_ptr<float>() + k;
      if (actor) {
        n.held = has_penalty ? agent.penalty_gradient.data_ptr<float>() : nullptr;
        n.norm = agent.task_norm.data_ptr<float>();
        n.kl = h.kl.data_ptr<float>() + k;
      } else if (config.critic_rate > 0) {
        n.own_rate = agent.critic_rate.data_ptr<double>();
      }
    }
  }
  SILC_CHECK(LaunchStep(a, Stream()) == 0);
}

Trainer::Impl::UpdateResult Trainer::Impl::RunHalf() {
  Half& h = *half;
  PrepareHalf();
  UpdateResult result;
  for (int step = 0; step < config.epochs * config.mini_batches; ++step) {
    const std::int64_t m = step % config.mini_batches;
    GradientsHalf(m);
    ChunkResult chunk;
    if (Penalises(step)) {
      const MiniBatch& batch = h.penalty[m];
      PenaltyInput input;
      {
        const at::AutoGradMode tape(true);
        for (const Agent& agent : agents) {
          input.actors.push_back(LayersOf(agent));
          input.activations.push_back(Forward(input.actors.back(), batch.obs));
        }
        input.count = batch.obs.size(0);
        Penalise(batch, 0, batch.action, h.signs[step], h.pressure, 1.0 / groups, &input, &chunk);
      }
      if (groups > 1 && !chunk.penalty.empty()) {
        const Tensor total = ranks->Sum(at::cat(chunk.penalty).unsqueeze(0));
        std::int64_t at = 0;
        for (Tensor& gradient : chunk.penalty) {
          gradient = total.narrow(0, at, gradient.numel());
          at += gradient.numel();
        }
      }
      for (std::size_t k = 0; k < chunk.penalty.size(); ++k) {
        HoldPenalty(chunk.penalty[k], &agents[k]);
      }
      chunk.penalty.clear();  // memory that the next step may use
    }
    ReduceHalf();
    StepHalf();
    for (std::size_t k = 0; k < agents.size(); ++k) {
      // of all processes already, and the report adds them up
      const auto share = [&](const Tensor& t) {
        const Tensor own = t[static_cast<std::int64_t>(k)];
        return groups == 1 ? own : own / groups;
      };
      chunk.kl.push_back(share(h.kl));
      chunk.surrogate.push_back(share(h.surrogate));
      chunk.value.push_back(share(h.value_loss));
    }
    result.last.assign(1, std::move(chunk));
    if (Penalises(step)) result.penalised = result.last;
  }
  return result;
}

#else

struct Trainer::Impl::Half {};
void Trainer::Impl::MakeHalf() {
  if (config.precision == "float16") {
    throw ConfigError(
        "learn.precision: float16: only on a GPU, and this build has no CUDA; "
        "choose float32");
  }
}
void Trainer::Impl::RefreshHalf() {}
void Trainer::Impl::ActHalf(std::int64_t) {}
void Trainer::Impl::EndRolloutHalf() {}
Trainer::Impl::UpdateResult Trainer::Impl::UpdateHalf() { return {}; }
void Trainer::Impl::PrepareHalf() {}
void Trainer::Impl::GradientsHalf(std::int64_t) {}
void Trainer::Impl::ReduceHalf() {}
void Trainer::Impl::StepHalf() {}
Trainer::Impl::UpdateResult Trainer::Impl::RunHalf() { return {}; }

#endif

}  // namespace silc
