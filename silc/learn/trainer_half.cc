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

class Trainer::Impl::Half : public WithoutTape {
 public:
  explicit Half(Impl* owner);
  void BeginRollout() override;
  void Act(std::int64_t t) override;
  void EndRollout() override;
  UpdateResult Update() override;

 private:
  void Prepare();
  void Gradients(std::int64_t m);
  void Reduce();
  void Step();
  UpdateResult Run();

  Impl& trainer_;
  HalfNetworks actors_, critics_;
  HalfWorkspace workspace_;
  Tensor obs_, critic_obs_;  // (T + 1, N, width) float16, scaled as the networks take them
  Tensor batch_obs_, batch_critic_obs_;  // (samples, width), mini-batch after mini-batch
  Tensor order_;                         // (samples) which sample stands where in them
  Tensor advantage_, target_;            // (T, N, agents)
  Tensor d_actor_, d_critic_;            // (agents, B, padded) float16
  Tensor actor_partial_, critic_partial_, scratch_;
  Tensor kl_, surrogate_, value_loss_;  // (agents)
  // of the penalty, where it sets in: per mini-batch its rows, per penalised step its signs
  std::vector<MiniBatch> penalty_;
  std::vector<Tensor> signs_;
  Pressure pressure_;
  DeviceGraph graph_;
  // what the last update did; its recording serves the next one that does the same
  bool penalised_ = false, pressed_ = false;
  UpdateResult result_;
};

std::unique_ptr<Trainer::Impl::WithoutTape> Trainer::Impl::MakeHalf() {
  // MakeFloat() has the last word on bfloat16
  if (config.precision == "float32" || config.precision == "bfloat16" || config.tape) {
    return nullptr;
  }
  const bool asked = config.precision == "float16";
  const auto refuse = [&](const std::string& why) -> std::unique_ptr<WithoutTape> {
    if (asked) throw ConfigError("learn.precision: float16: " + why + "; choose float32");
    return nullptr;
  };
  if (config.device != "cuda") return refuse("only on a GPU");
  if (method == Method::kSnLcp) return refuse("sn-lcp normalises its weights in float32");
  if (2 * agents.size() > kMaxNetworks) return refuse("too many agents");
  for (const Agent& agent : agents) {
    if (HalfNetworks::Takes(agent.actor.shape) && HalfNetworks::Takes(agent.critic.shape)) continue;
    return refuse("inputs and layers must be multiples of 8 wide, layers of at most 2048");
  }
  return std::make_unique<Half>(this);
}

Trainer::Impl::Half::Half(Impl* owner) : trainer_(*owner) {
  std::vector<const Network*> actor_list, critic_list;
  for (const Agent& agent : trainer_.agents) {
    actor_list.push_back(&agent.actor);
    critic_list.push_back(&agent.critic);
  }
  actors_ = HalfNetworks(actor_list);
  critics_ = HalfNetworks(critic_list);
  const std::int64_t T = trainer_.config.steps, N = trainer_.spec.num_envs,
                     G = std::int64_t(trainer_.agents.size());
  const std::int64_t samples = T * N, B = samples / trainer_.config.mini_batches;
  const auto halves = trainer_.options.dtype(at::kHalf);
  obs_ = at::zeros({T + 1, N, trainer_.obs_width}, halves);
  critic_obs_ = at::zeros({T + 1, N, trainer_.critic_obs_width}, halves);
  batch_obs_ = at::zeros({samples, trainer_.obs_width}, halves);
  batch_critic_obs_ = at::zeros({samples, trainer_.critic_obs_width}, halves);
  order_ = at::zeros({samples}, trainer_.options.dtype(at::kLong));
  advantage_ = at::zeros({T, N, G}, trainer_.options);
  target_ = at::zeros({T, N, G}, trainer_.options);
  d_actor_ = at::zeros({G, B, actors_.padded()}, halves);
  d_critic_ = at::zeros({G, B, critics_.padded()}, halves);
  actor_partial_ = at::zeros({G, kLossBlocks, kLossWidth}, trainer_.options);
  critic_partial_ = at::zeros({G, kLossBlocks, 2}, trainer_.options);
  scratch_ = at::zeros({kStepScratch}, trainer_.options);
  kl_ = at::zeros({G}, trainer_.options);
  surrogate_ = at::zeros({G}, trainer_.options);
  value_loss_ = at::zeros({G}, trainer_.options);
  penalty_.resize(trainer_.config.mini_batches);
}

void Trainer::Impl::Half::BeginRollout() {
  actors_.Refresh();
  critics_.Refresh();
}

void Trainer::Impl::Half::Act(std::int64_t t) {
  const std::int64_t N = trainer_.spec.num_envs;
  const int A = trainer_.spec.num_actions(), G = static_cast<int>(trainer_.agents.size());
  SILC_CHECK(LaunchToHalf(trainer_.obs[t].data_ptr<float>(),
                          FloatsOf(trainer_.actor_inputs.shift),
                          FloatsOf(trainer_.actor_inputs.scale),
                          N,
                          trainer_.obs_width,
                          Bits(obs_[t]),
                          Stream()) == 0);
  SILC_CHECK(LaunchToHalf(trainer_.critic_obs[t].data_ptr<float>(),
                          FloatsOf(trainer_.critic_inputs.shift),
                          FloatsOf(trainer_.critic_inputs.scale),
                          N,
                          trainer_.critic_obs_width,
                          Bits(critic_obs_[t]),
                          Stream()) == 0);
  const Tensor output = actors_.Forward(obs_[t], &workspace_);
  for (int k = 0; k < G; ++k) {
    const Agent& agent = trainer_.agents[k];
    ActArguments a;
    a.output = output[k].data_ptr<float>();
    a.padded = actors_.padded();
    a.count = agent.count;
    a.bias = agent.actor.layers.bias.back().data_ptr<float>();
    a.std = agent.actor.std.data_ptr<float>();
    a.rows = N;
    a.noise = trainer_.noise[t].data_ptr<float>() + agent.first;
    a.mean = trainer_.mean[t].data_ptr<float>() + agent.first;
    a.action = trainer_.action[t].data_ptr<float>() + agent.first;
    a.actions = A;
    a.logp = trainer_.logp[t].data_ptr<float>() + k;
    a.agents = G;
    SILC_CHECK(LaunchAct(a, Stream()) == 0);
  }
}

void Trainer::Impl::Half::EndRollout() {
  const std::int64_t T = trainer_.config.steps;
  SILC_CHECK(LaunchToHalf(trainer_.critic_obs[T].data_ptr<float>(),
                          FloatsOf(trainer_.critic_inputs.shift),
                          FloatsOf(trainer_.critic_inputs.scale),
                          trainer_.spec.num_envs,
                          trainer_.critic_obs_width,
                          Bits(critic_obs_[T]),
                          Stream()) == 0);
}

Trainer::Impl::UpdateResult Trainer::Impl::Half::Update() {
  at::NoGradGuard no_tape;
  const std::int64_t samples = order_.size(0), B = samples / trainer_.config.mini_batches;
  order_.copy_(trainer_.DrawOrder()[0]);
  const int steps = trainer_.config.epochs * trainer_.config.mini_batches;
  const std::int64_t rows = trainer_.PenaltyRows(B, 0);
  const bool penalises =
      trainer_.has_penalty && trainer_.iteration >= trainer_.config.penalty.start;
  if (penalises) {
    for (int m = 0; m < trainer_.config.mini_batches; ++m) {
      if (!trainer_.PenalisesBatch(m)) continue;
      const Tensor index = order_.narrow(0, m * B, rows);
      const auto pick = [&](const Tensor& buffer) {
        return buffer.narrow(0, 0, trainer_.config.steps).flatten(0, 1).index_select(0, index);
      };
      MiniBatch own, &kept = penalty_[m];
      own.budget.resize(1);
      own.gravity.resize(1);
      own.mode.resize(1);
      if (trainer_.needs_stiffness) trainer_.GatherBudget(index, 0, &own);
      kept.budget.resize(1);
      kept.gravity.resize(1);
      kept.mode.resize(1);
      CopyOrForget(pick(trainer_.obs), &kept.obs);
      CopyOrForget(pick(trainer_.action), &kept.action);
      CopyFields(own.budget[0], &kept.budget[0], CopyOrForget);
      CopyOrForget(own.gravity[0], &kept.gravity[0]);
      CopyOrForget(own.mode[0], &kept.mode[0]);
    }
    signs_.resize(steps);
    for (int step = 0; step < steps; ++step) {
      if (trainer_.needs_stiffness && trainer_.config.penalty.probes > 0 &&
          trainer_.Penalises(step)) {
        CopyOrForget(trainer_.DrawSigns(rows), &signs_[step]);
      }
    }
    const Pressure now = trainer_.PressureNow();
    CopyOrForget(now.lambda, &pressure_.lambda);
    CopyOrForget(now.bound, &pressure_.bound);
  }
  const bool presses = pressure_.lambda.defined();
  const bool as_before = penalised_ == penalises && pressed_ == presses;
  penalised_ = penalises;
  pressed_ = presses;
  if (!as_before) graph_ = {};
  // an update of a new kind runs once before it is recorded: libraries make their handles in it,
  // and cannot while a stream is captured
  if (!trainer_.Records() || !as_before) {
    result_ = Run();
    return result_;
  }
  if (!graph_.recorded()) {
    result_ = {};
    graph_.Record([&] { result_ = Run(); }, &trainer_.rollout_graph);
  }
  graph_.Replay();
  return result_;
}

// Values of all states, advantages, and the mini-batches' observations.
void Trainer::Impl::Half::Prepare() {
  const std::int64_t T = trainer_.config.steps, N = trainer_.spec.num_envs, samples = T * N;
  const std::int64_t B = samples / trainer_.config.mini_batches;
  const int G = static_cast<int>(trainer_.agents.size());
  // the state after the last step counts, too
  for (std::int64_t first = 0; first < samples + N; first += B) {
    const std::int64_t rows = std::min(B, samples + N - first);
    const Tensor x = critic_obs_.flatten(0, 1).narrow(0, first, rows);
    const Tensor output = critics_.Forward(x, &workspace_);
    for (int k = 0; k < G; ++k) {
      SILC_CHECK(LaunchValues(output[k].data_ptr<float>(),
                              critics_.padded(),
                              trainer_.agents[k].critic.layers.bias.back().data_ptr<float>(),
                              rows,
                              trainer_.value.data_ptr<float>() + first * G + k,
                              G,
                              Stream()) == 0);
    }
  }
  AdvantageArguments gae;
  gae.reward = trainer_.reward.data_ptr<float>();
  gae.value = trainer_.value.data_ptr<float>();
  gae.last_value = trainer_.value[T].data_ptr<float>();
  gae.done = trainer_.done.data_ptr<std::uint8_t>();
  gae.timed_out = trainer_.timed_out.data_ptr<std::uint8_t>();
  gae.steps = static_cast<int>(T);
  gae.robots = static_cast<int>(N);
  gae.agents = G;
  gae.gamma = static_cast<float>(trainer_.config.gamma);
  gae.lambda = static_cast<float>(trainer_.config.lambda);
  gae.advantage = advantage_.data_ptr<float>();
  gae.target = target_.data_ptr<float>();
  SILC_CHECK(LaunchAdvantages(gae, Stream()) == 0);
  advantage_.copy_(trainer_.NormaliseAll(advantage_));
  const std::int64_t* order = order_.data_ptr<std::int64_t>();
  SILC_CHECK(LaunchGatherHalf(
                 Bits(obs_), order, samples, trainer_.obs_width, Bits(batch_obs_), Stream()) == 0);
  SILC_CHECK(LaunchGatherHalf(Bits(critic_obs_),
                              order,
                              samples,
                              trainer_.critic_obs_width,
                              Bits(batch_critic_obs_),
                              Stream()) == 0);
}

// The task's gradients of mini-batch m, of actors and critics.
void Trainer::Impl::Half::Gradients(std::int64_t m) {
  const std::int64_t B = order_.size(0) / trainer_.config.mini_batches;
  const int A = trainer_.spec.num_actions(), G = static_cast<int>(trainer_.agents.size());
  const std::int64_t* index = order_.data_ptr<std::int64_t>() + m * B;
  const Tensor x = batch_obs_.narrow(0, m * B, B);
  const Tensor y = batch_critic_obs_.narrow(0, m * B, B);
  ActorLoss actor_loss[kMaxNetworks];
  CriticLoss critic_loss[kMaxNetworks];
  const Tensor output = actors_.Forward(x, &workspace_);
  for (int k = 0; k < G; ++k) {
    const Agent& agent = trainer_.agents[k];
    ActorLoss& a = actor_loss[k];
    a.output = output[k].data_ptr<float>();
    a.d_output = Bits(d_actor_[k]);
    a.padded = actors_.padded();
    a.count = agent.count;
    a.bias = agent.actor.layers.bias.back().data_ptr<float>();
    a.std = agent.actor.std.data_ptr<float>();
    a.std_old = trainer_.std_old[k].data_ptr<float>();
    a.index = index;
    a.action = trainer_.action.data_ptr<float>() + agent.first;
    a.mean = trainer_.mean.data_ptr<float>() + agent.first;
    a.actions = A;
    a.logp = trainer_.logp.data_ptr<float>() + k;
    a.advantage = advantage_.data_ptr<float>() + k;
    a.agents = G;
    a.clip = static_cast<float>(trainer_.config.clip);
    a.partial = actor_partial_[k].data_ptr<float>();
  }
  SILC_CHECK(LaunchActorLoss(actor_loss, G, B, Stream()) == 0);
  actors_.Backward(x, d_actor_, &workspace_);

  const Tensor values = critics_.Forward(y, &workspace_);
  for (int k = 0; k < G; ++k) {
    CriticLoss& c = critic_loss[k];
    c.output = values[k].data_ptr<float>();
    c.d_output = Bits(d_critic_[k]);
    c.padded = critics_.padded();
    c.bias = trainer_.agents[k].critic.layers.bias.back().data_ptr<float>();
    c.index = index;
    c.value = trainer_.value.data_ptr<float>() + k;
    c.target = target_.data_ptr<float>() + k;
    c.agents = G;
    c.clip = trainer_.config.value_clip > 0 ? static_cast<float>(trainer_.config.value_clip)
                                            : std::numeric_limits<float>::max();
    c.weight = static_cast<float>(trainer_.config.value_weight);
    c.partial = critic_partial_[k].data_ptr<float>();
  }
  SILC_CHECK(LaunchCriticLoss(critic_loss, G, B, Stream()) == 0);
  critics_.Backward(y, d_critic_, &workspace_);
}

// Over all processes: between gradients and step one message with the gradients, which are means
// over the rows here, and the losses' unfinished sums, which Step() divides by all rows. It is
// part of the recording.
void Trainer::Impl::Half::Reduce() {
  if (trainer_.groups == 1) return;
  const Tensor own[] = {actors_.gradients(), critics_.gradients(), actor_partial_, critic_partial_};
  std::vector<Tensor> flat;
  for (const Tensor& t : own) flat.push_back(t.reshape(-1));
  const Tensor total = trainer_.ranks->Sum(at::cat(flat).unsqueeze(0));
  std::int64_t at = 0;
  for (int i = 0; i < 4; ++i) {
    const Tensor piece = total.narrow(0, at, own[i].numel()).view(own[i].sizes());
    own[i].copy_(i < 2 ? piece / trainer_.groups : piece);
    at += own[i].numel();
  }
}

// The optimiser's step from the gradients that lie there.
void Trainer::Impl::Half::Step() {
  StepArguments a;
  a.rows = order_.size(0) / trainer_.config.mini_batches * trainer_.groups;
  a.kl_target = trainer_.kl_target.data_ptr<double>();
  a.min_rate = trainer_.config.min_rate;
  a.max_rate = trainer_.config.max_rate;
  a.entropy_weight = static_cast<float>(trainer_.config.entropy_weight);
  a.gradient_clip = static_cast<float>(trainer_.config.gradient_clip);
  a.weight_decay = static_cast<float>(trainer_.config.weight_decay);
  a.min_std = static_cast<float>(trainer_.config.min_std);
  a.scratch = scratch_.data_ptr<float>();
  for (int k = 0; k < static_cast<int>(trainer_.agents.size()); ++k) {
    Agent& agent = trainer_.agents[k];
    for (const bool actor : {true, false}) {
      const HalfNetworks& of = actor ? actors_ : critics_;
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
      n.loss_partial = (actor ? actor_partial_ : critic_partial_)[k].data_ptr<float>();
      n.rate = agent.rate.data_ptr<double>();
      n.loss = (actor ? surrogate_ : value_loss_).data_ptr<float>() + k;
      if (actor) {
        n.held = trainer_.has_penalty ? agent.penalty_gradient.data_ptr<float>() : nullptr;
        n.norm = agent.task_norm.data_ptr<float>();
        n.kl = kl_.data_ptr<float>() + k;
      } else if (trainer_.config.critic_rate > 0) {
        n.own_rate = agent.critic_rate.data_ptr<double>();
      }
    }
  }
  SILC_CHECK(LaunchStep(a, Stream()) == 0);
}

Trainer::Impl::UpdateResult Trainer::Impl::Half::Run() {
  Prepare();
  UpdateResult result;
  for (int step = 0; step < trainer_.config.epochs * trainer_.config.mini_batches; ++step) {
    const std::int64_t m = step % trainer_.config.mini_batches;
    Gradients(m);
    ChunkResult chunk;
    if (trainer_.Penalises(step)) {
      const MiniBatch& batch = penalty_[m];
      PenaltyInput input;
      {
        const at::AutoGradMode tape(true);
        for (const Agent& agent : trainer_.agents) {
          input.actors.push_back(trainer_.LayersOf(agent));
          input.activations.push_back(Forward(input.actors.back(), batch.obs));
        }
        input.count = batch.obs.size(0);
        trainer_.Penalise(
            batch, 0, batch.action, signs_[step], pressure_, 1.0 / trainer_.groups, &input, &chunk);
      }
      if (trainer_.groups > 1 && !chunk.penalty.empty()) {
        const Tensor total = trainer_.ranks->Sum(at::cat(chunk.penalty).unsqueeze(0));
        std::int64_t at = 0;
        for (Tensor& gradient : chunk.penalty) {
          gradient = total.narrow(0, at, gradient.numel());
          at += gradient.numel();
        }
      }
      for (std::size_t k = 0; k < chunk.penalty.size(); ++k) {
        trainer_.HoldPenalty(chunk.penalty[k], &trainer_.agents[k]);
      }
      chunk.penalty.clear();  // memory that the next step may use
    }
    Reduce();
    Step();
    for (std::size_t k = 0; k < trainer_.agents.size(); ++k) {
      // of all processes already, and the report adds them up
      const auto share = [&](const Tensor& t) {
        const Tensor own = t[static_cast<std::int64_t>(k)];
        return trainer_.groups == 1 ? own : own / trainer_.groups;
      };
      chunk.kl.push_back(share(kl_));
      chunk.surrogate.push_back(share(surrogate_));
      chunk.value.push_back(share(value_loss_));
    }
    result.last.assign(1, std::move(chunk));
    if (trainer_.Penalises(step)) result.penalised = result.last;
  }
  return result;
}

#else

std::unique_ptr<Trainer::Impl::WithoutTape> Trainer::Impl::MakeHalf() {
  if (config.precision == "float16") {
    throw ConfigError(
        "learn.precision: float16: only on a GPU, and this build has no CUDA; "
        "choose float32");
  }
  return nullptr;
}

#endif

}  // namespace silc
