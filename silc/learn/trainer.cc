// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/learn/device_graph.h"
#include "silc/learn/input_scaling.h"
#include "silc/learn/jacobian.h"
#include "silc/learn/networks.h"
#include "silc/learn/penalty.h"
#include "silc/learn/ppo.h"
#include "silc/learn/tensor.h"

namespace silc {

double VecEnv::TaskScore() const { return std::numeric_limits<double>::quiet_NaN(); }

namespace {

using Clock = std::chrono::steady_clock;
double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// body(chunk) for every chunk, by up to `threads` threads. Threads are made anew: some 30 µs
// against the milliseconds of a chunk.
void ForChunks(int chunks, int threads, const std::function<void(int)>& body) {
  std::atomic<int> next{0};
  std::exception_ptr failed;
  std::atomic<bool> has_failed{false};
  const auto work = [&] {
    for (int chunk = next++; chunk < chunks; chunk = next++) {
      try {
        body(chunk);
      } catch (...) {
        if (!has_failed.exchange(true)) failed = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < std::min(threads, chunks); ++i) helpers.emplace_back(work);
    work();
  }
  if (failed) std::rethrow_exception(failed);
}

std::string BytesOf(const Tensor& t) {
  const Tensor host = t.detach().to(at::kCPU).contiguous();
  return {static_cast<const char*>(host.data_ptr()), host.nbytes()};
}
void CopyBytes(const Blobs& blobs, const std::string& name, const std::string& place, Tensor* t) {
  const auto found = blobs.find(name);
  if (found == blobs.end()) throw ConfigError(place + ": " + name + ": is missing");
  if (found->second.size() != t->nbytes()) {
    throw ConfigError(fmt::format("{}: {}: has {} bytes, the settings ask for {}: another network?",
                                  place,
                                  name,
                                  found->second.size(),
                                  t->nbytes()));
  }
  Tensor host = at::empty(t->sizes(), t->options().device(at::kCPU));
  std::memcpy(host.data_ptr(), found->second.data(), found->second.size());
  at::NoGradGuard no_tape;
  t->copy_(host);
}

// One agent: a block of the action, its actor, critic and rate.
struct Agent {
  std::string name;
  int first = 0, count = 0;  // actions
  Network actor, critic;
  AdamW actor_adam, critic_adam;
  Tensor rate;                     // scalar, on the device
  Tensor critic_rate;              // where it has one of its own
  Tensor task_norm, penalty_norm;  // of the actor's gradients before they are clipped
  Tensor penalty_gradient;         // of the last step that worked it out; held in between
  SpectralNormaliser normaliser;
};

// networks, optimisers and rate, by their names in a checkpoint
std::vector<std::pair<std::string, Tensor>> StateOf(const Agent& agent) {
  return {{agent.name + ".actor", agent.actor.flat},
          {agent.name + ".critic", agent.critic.flat},
          {agent.name + ".actor.m", agent.actor_adam.m},
          {agent.name + ".actor.v", agent.actor_adam.v},
          {agent.name + ".actor.t", agent.actor_adam.t},
          {agent.name + ".critic.m", agent.critic_adam.m},
          {agent.name + ".critic.v", agent.critic_adam.v},
          {agent.name + ".critic.t", agent.critic_adam.t},
          {agent.name + ".rate", agent.rate}};
}
// the vectors of spectral normalisation, which only sn-lcp has
std::vector<std::pair<std::string, Tensor>> StateOf(const SpectralNormaliser& normaliser,
                                                    const std::string& agent) {
  std::vector<std::pair<std::string, Tensor>> list;
  for (std::size_t l = 0; l < normaliser.u.size(); ++l) {
    list.emplace_back(fmt::format("{}.u{}", agent, l), normaliser.u[l]);
    list.emplace_back(fmt::format("{}.v{}", agent, l), normaliser.v[l]);
  }
  return list;
}

// What a chunk of a mini-batch contributes; scalars are means weighted by the chunk's share.
struct ChunkResult {
  std::vector<Tensor> actor, critic, penalty;  // gradients, flat, per agent
  std::vector<Tensor> kl, surrogate, value;    // per agent
  Tensor penalty_value, sigma, ok, loop_norm, mode;
};

Tensor Flat(const std::vector<Tensor>& gradients, const std::vector<Tensor>& leaves) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    parts.push_back(gradients[i].defined() ? gradients[i].reshape(-1)
                                           : at::zeros({leaves[i].numel()}, leaves[i].options()));
  }
  return at::cat(parts);
}

}  // namespace

struct Trainer::Impl {
  LearnConfig config;
  VecEnv* env;
  EnvSpec spec;
  Method method;
  at::TensorOptions options;
  int threads = 1, chunks = 1, iteration = 0;
  // observations are padded with zeros to a multiple of eight: rows that begin at odd addresses
  // keep a GPU from its matrix units
  int obs_width = 0;
  bool needs_stiffness = false, has_penalty = false, started = false, measured = false;
  std::vector<Agent> agents;
  InputScaling actor_inputs, critic_inputs;  // where they are scaled
  Channels channels;
  ServoTensors servo;
  PenaltyWeight weight;
  StageTimes times;

  // rollout, (steps + 1) where the state after the last step counts, too
  Tensor obs, critic_obs, action, mean, value, logp, reward, done, timed_out;
  Tensor mode, com, hand, closing, gravity;
  std::vector<Tensor> std_old;
  Tensor noise;      // (T, N, actions) standard normal
  Tensor kl_target;  // scalar, on the device
  DeviceGraph rollout_graph;
  int iterated = 0;  // since construction

  Impl(const LearnConfig& c, VecEnv* e)
      : config(c), env(e), spec(e->spec()), method(MethodOf(c)), weight(c.penalty) {
    config.Validate("learn");
    Check();
    obs_width = (spec.obs_dim + 7) / 8 * 8;
    const bool cuda = config.device == "cuda";
    options = at::TensorOptions(at::kFloat).device(cuda ? at::kCUDA : at::kCPU);
    if (cuda) {
      at::globalContext().setAllowTF32CuBLAS(true);
    } else {
      HoldToOneThread();
      threads = config.threads > 0 ? config.threads
                                   : std::max(1, int(std::thread::hardware_concurrency()));
      chunks = config.chunks;
    }
    MakeAgents();
    if (config.scale_inputs) {
      actor_inputs = InputScaling::Make(obs_width, options);
      critic_inputs = InputScaling::Make(spec.critic_obs_dim, options);
    }
    MakeBuffers();
    if (needs_stiffness || method == Method::kScalarLcp || method == Method::kAlcp) MakeChannels();
  }

  void Check() const {
    if (spec.on_gpu != (config.device == "cuda")) {
      throw ConfigError(
          fmt::format("learn.device: {}: the environment's memory is on the {}; "
                      "choose the backend that goes with it",
                      config.device,
                      spec.on_gpu ? "GPU" : "CPU"));
    }
    if (config.device == "cuda" && !at::hasCUDA()) {
      throw ConfigError(
          "learn.device: cuda: this LibTorch has no CUDA; build against one that has");
    }
    const long samples = long(spec.num_envs) * config.steps;
    if (samples % config.mini_batches != 0) {
      throw ConfigError(
          fmt::format("learn.mini_batches: {}: does not divide the {} samples of an "
                      "iteration ({} robots × {} steps)",
                      config.mini_batches,
                      samples,
                      spec.num_envs,
                      config.steps));
    }
    if (config.init_std.size() != 1 && config.init_std.size() != spec.agents.size()) {
      throw ConfigError(fmt::format(
          "learn.init_std: {} values for {} agents", config.init_std.size(), spec.agents.size()));
    }
    const bool jacobian = method == Method::kScalarLcp || method == Method::kAlcp ||
                          method == Method::kSilcPaper || method == Method::kSilc;
    if (jacobian && !spec.stiffness) {
      throw ConfigError("learn.penalty.method: " + config.penalty.method +
                        ": this task does not say how its observations move with the joints");
    }
    SILC_CHECK(!jacobian || spec.stiffness_spec.servo.nv() == spec.num_actions());
  }

  void MakeAgents() {
    int first = 0;
    for (std::uint32_t k = 0; k < spec.agents.size(); ++k) {
      Agent agent;
      agent.name = spec.agents[k].name;
      agent.first = first;
      agent.count = spec.agents[k].num_actions;
      first += agent.count;
      const double std = config.init_std[config.init_std.size() == 1 ? 0 : k];
      agent.actor = MakeNetwork({obs_width, config.actor_hidden, agent.count},
                                std::vector<double>(agent.count, std),
                                config.seed,
                                2 * k,
                                options);
      {
        at::NoGradGuard no_tape;
        agent.actor.layers.weight[0].narrow(1, spec.obs_dim, obs_width - spec.obs_dim).zero_();
      }
      agent.critic = MakeNetwork(
          {spec.critic_obs_dim, config.critic_hidden, 1}, {}, config.seed, 2 * k + 1, options);
      agent.actor_adam = AdamW(agent.actor.flat, config.weight_decay);
      agent.critic_adam = AdamW(agent.critic.flat, config.weight_decay);
      agent.rate = at::full({}, config.rate, options.dtype(at::kDouble));
      agent.critic_rate = at::full({}, config.critic_rate, options.dtype(at::kDouble));
      agent.penalty_gradient = at::zeros_like(agent.actor.flat);
      agent.task_norm = at::zeros({}, options);
      agent.penalty_norm = at::zeros({}, options);
      if (method == Method::kSnLcp) {
        agent.normaliser = SpectralNormaliser::Make(agent.actor, config.penalty.spectral_gain);
      }
      agents.push_back(std::move(agent));
    }
    needs_stiffness = method == Method::kSilcPaper || method == Method::kSilc;
    has_penalty = method != Method::kBaseline && method != Method::kSnLcp;
  }

  void MakeBuffers() {
    const std::int64_t T = config.steps, N = spec.num_envs, A = spec.num_actions();
    const std::int64_t G = static_cast<std::int64_t>(agents.size());
    obs = at::zeros({T + 1, N, obs_width}, options);
    critic_obs = at::zeros({T + 1, N, spec.critic_obs_dim}, options);
    action = at::zeros({T, N, A}, options);
    mean = at::zeros({T, N, A}, options);
    value = at::zeros({T + 1, N, G}, options);
    logp = at::zeros({T, N, G}, options);
    reward = at::zeros({T, N, G}, options);
    kl_target = at::zeros({}, options.dtype(at::kDouble));
    done = at::zeros({T, N}, options.dtype(at::kByte));
    timed_out = at::zeros({T, N}, options.dtype(at::kByte));
    if (needs_stiffness) {
      const std::int64_t n = spec.stiffness_spec.servo.nv();
      mode = at::zeros({T + 1, N}, options.dtype(at::kByte));
      com = at::zeros({T + 1, N, 3, n}, options);
      hand = at::zeros({T + 1, N, 2, 3, n}, options);
      closing = at::zeros({T + 1, N, 6, n}, options);
      gravity = at::zeros({T + 1, N, 3, n}, options);
    }
  }

  void MakeChannels() {
    const StiffnessSpec& s = spec.stiffness_spec;
    const int n = s.servo.nv();
    const auto dense = [&](const std::vector<ColumnEntry>& entries, int columns) {
      return DenseColumns(entries, obs_width, columns, options);
    };
    channels = {dense(s.q0, n), dense(s.q, n), dense(s.a, n), dense(s.tau, n), dense(s.g, 3)};
    const auto vector = [&](const JointVector& v) {
      return at::tensor(std::vector<double>(v.data(), v.data() + v.size()), at::kDouble)
          .to(options);
    };
    servo = {vector(s.servo.kp), vector(s.servo.alpha)};
  }

  ObservationView ViewAt(std::int64_t t) {
    ObservationView view;
    view.obs = obs[t].data_ptr<float>();
    view.obs_stride = obs_width;
    view.critic_obs = critic_obs[t].data_ptr<float>();
    if (needs_stiffness) {
      view.stiffness = {mode[t].data_ptr<std::uint8_t>(),
                        com[t].data_ptr<float>(),
                        hand[t].data_ptr<float>(),
                        closing[t].data_ptr<float>(),
                        gravity[t].data_ptr<float>()};
    }
    return view;
  }

  // buffers whose last entry is the first of the next rollout, by their name in a checkpoint
  std::vector<std::pair<std::string, Tensor>> Carried() const {
    std::vector<std::pair<std::string, Tensor>> list = {{"next.obs", obs},
                                                        {"next.critic_obs", critic_obs}};
    if (needs_stiffness) {
      list.insert(list.end(),
                  {{"next.mode", mode},
                   {"next.com", com},
                   {"next.hand", hand},
                   {"next.closing", closing},
                   {"next.gravity", gravity}});
    }
    return list;
  }

  std::vector<std::pair<std::string, Tensor>> InputState() const {
    std::vector<std::pair<std::string, Tensor>> list;
    if (!config.scale_inputs) return list;
    for (const auto& [name, s] : {std::pair{"actor", &actor_inputs}, {"critic", &critic_inputs}}) {
      for (const auto& [part, t] : {std::pair{"count", s->count},
                                    {"mean", s->mean},
                                    {"square", s->square},
                                    {"shift", s->shift},
                                    {"scale", s->scale}}) {
        list.emplace_back(fmt::format("inputs.{}.{}", name, part), t);
      }
    }
    return list;
  }

  // weights as the forward pass uses them
  Layers LayersOf(const Agent& agent) const {
    const Layers layers =
        method == Method::kSnLcp ? agent.normaliser.Apply(agent.actor) : agent.actor.layers;
    return config.scale_inputs ? actor_inputs.Apply(layers) : layers;
  }
  Layers CriticOf(const Agent& agent) const {
    return config.scale_inputs ? critic_inputs.Apply(agent.critic.layers) : agent.critic.layers;
  }

  // ---- collect ----

  // rows of a chunk: [first, first + count)
  static std::pair<std::int64_t, std::int64_t> Rows(std::int64_t total, int chunk, int chunks) {
    const std::int64_t first = total * chunk / chunks;
    return {first, total * (chunk + 1) / chunks - first};
  }

  void Act(std::int64_t t, const std::vector<Layers>& actors, const std::vector<Layers>& critics) {
    ForChunks(chunks, threads, [&](int chunk) {
      at::NoGradGuard no_tape;
      const auto [first, count] = Rows(spec.num_envs, chunk, chunks);
      if (count == 0) return;
      const Tensor o = obs[t].narrow(0, first, count), c = critic_obs[t].narrow(0, first, count);
      for (std::size_t k = 0; k < agents.size(); ++k) {
        const Agent& agent = agents[k];
        const auto block = [&](const Tensor& x) {
          return x.narrow(0, first, count).narrow(1, agent.first, agent.count);
        };
        const Tensor mu = Forward(actors[k], o).output;
        const Tensor a = mu + agent.actor.std.detach() * block(noise[t]);
        block(mean[t]).copy_(mu);
        block(action[t]).copy_(a);
        logp[t]
            .narrow(0, first, count)
            .select(1, k)
            .copy_(LogProb(mu, agent.actor.std.detach(), a));
        value[t]
            .narrow(0, first, count)
            .select(1, k)
            .copy_(Forward(critics[k], c).output.squeeze(1));
      }
    });
  }

  void Collect() {
    const std::int64_t T = config.steps;
    if (!started) {
      env->Reset(ViewAt(T));
      started = true;
    }
    // the state after the last rollout is the first of this one
    for (const auto& [name, buffer] : Carried()) buffer[0].copy_(buffer[T]);
    at::NoGradGuard no_tape;
    std_old.resize(agents.size());
    for (std::size_t k = 0; k < agents.size(); ++k) {
      const Tensor std = agents[k].actor.std.detach();
      if (!std_old[k].defined()) std_old[k] = at::empty_like(std);
      std_old[k].copy_(std);
    }
    if (!noise.defined()) noise = at::empty({T, spec.num_envs, spec.num_actions()}, options);
    noise.normal_();
    env->BeginIteration(iteration);
    const auto roll = [&] {
      std::vector<Layers> actors, critics;
      for (const Agent& agent : agents) {
        actors.push_back(LayersOf(agent));
        critics.push_back(CriticOf(agent));
      }
      for (std::int64_t t = 0; t < T; ++t) {
        const auto start = Clock::now();
        Act(t, actors, critics);
        times.policy += Since(start);
        const auto stepping = Clock::now();
        env->Step(action[t].data_ptr<float>(),
                  {reward[t].data_ptr<float>(),
                   done[t].data_ptr<std::uint8_t>(),
                   timed_out[t].data_ptr<std::uint8_t>()},
                  ViewAt(t + 1));
        times.env += Since(stepping);
      }
      for (std::size_t k = 0; k < agents.size(); ++k) {
        value[T].select(1, k).copy_(Forward(critics[k], critic_obs[T]).output.squeeze(1));
      }
    };
    // normalised weights are made anew for each rollout, so a recording of them would be of the
    // first
    if (!Records() || method == Method::kSnLcp) {
      roll();
      return;
    }
    if (!rollout_graph.recorded()) rollout_graph.Record(roll);
    rollout_graph.Replay();
  }

  // The first iteration runs kernel by kernel: libraries set themselves up in it. From the second
  // on a GPU replays what was recorded.
  bool Records() const {
    return config.device == "cuda" && config.graphs && iterated > 0 && DeviceGraph::Available();
  }

  // ---- update ----

  // The samples of a mini-batch, gathered once and used in every epoch.
  struct MiniBatch {
    Tensor obs, critic_obs, action, mean, value, logp, advantage, target;
    // the penalty's share: rows [0, penalised) of every chunk
    std::vector<BudgetFactors> budget;
    std::vector<Tensor> gravity, mode;
  };

  // Whether the penalty is worked out in optimiser step `step` of this iteration; the first always.
  bool Penalises(int step) const {
    return has_penalty && iteration >= config.penalty.start && step % config.penalty.every == 0;
  }
  // whether it has in any that uses mini-batch m
  bool PenalisesBatch(int m) const {
    for (int epoch = 0; epoch < config.epochs; ++epoch) {
      if (Penalises(epoch * config.mini_batches + m)) return true;
    }
    return false;
  }
  // how many rows of a chunk take part then
  std::int64_t PenaltyRows(std::int64_t rows, int chunk) const {
    if (config.penalty.samples == 0) return rows;
    return std::min(rows, Rows(config.penalty.samples, chunk, chunks).second);
  }

  MiniBatch Gather(const Tensor& index, const Advantages& advantages, bool penalised) {
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
    batch.budget.resize(chunks);
    batch.gravity.resize(chunks);
    batch.mode.resize(chunks);
    if (!needs_stiffness || !penalised) return batch;
    ForChunks(chunks, threads, [&](int chunk) {
      const auto [first, count] = Rows(B, chunk, chunks);
      const std::int64_t some = PenaltyRows(count, chunk);
      if (some == 0) return;
      const Tensor rows = index.narrow(0, first, some);
      const auto pick = [&](const Tensor& buffer) {
        return buffer.narrow(0, 0, T).flatten(0, 1).index_select(0, rows);
      };
      batch.mode[chunk] = pick(mode);
      batch.gravity[chunk] = pick(gravity);
      batch.budget[chunk] =
          MakeBudgetFactors(spec.stiffness_spec.budget,
                            servo.kp,
                            {batch.mode[chunk], pick(com), pick(hand), pick(closing), {}},
                            at::kFloat);
    });
    return batch;
  }

  // How hard the penalty presses, scalars on the device.
  struct Pressure {
    Tensor lambda;  // undefined: the penalty is reported and has no say
    Tensor bound;
  };

  ChunkResult Gradients(const MiniBatch& batch,
                        int chunk,
                        const Tensor& signs,
                        const Pressure& pressure,
                        bool penalised) {
    const std::int64_t B = batch.obs.size(0);
    const auto [first, count] = Rows(B, chunk, chunks);
    const double share = double(count) / double(B);
    ChunkResult result;
    if (count == 0) return result;
    const auto rows = [first = first, count = count](const Tensor& t) {
      return t.narrow(0, first, count);
    };
    const std::int64_t some = penalised ? PenaltyRows(count, chunk) : 0;
    PenaltyInput input;
    Tensor loss, value_loss;
    for (std::size_t k = 0; k < agents.size(); ++k) {
      const Agent& agent = agents[k];
      const auto block = [&](const Tensor& t) {
        return rows(t).narrow(1, agent.first, agent.count);
      };
      input.actors.push_back(LayersOf(agent));
      // the penalised rows on a tape of their own: its reverse pass then costs those rows alone
      const Tensor o = rows(batch.obs);
      input.activations.push_back(
          Forward(input.actors.back(), some > 0 ? o.narrow(0, 0, some) : o));
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
    const auto split = [&](const Tensor& scalar, bool actor, bool keep) {
      std::vector<Tensor> leaves, flat;
      for (const Agent& a : agents) {
        const auto& own = actor ? a.actor.leaves : a.critic.leaves;
        leaves.insert(leaves.end(), own.begin(), own.end());
      }
      const auto all = torch::autograd::grad({scalar}, leaves, {}, keep, false, true);
      std::size_t at = 0;
      for (const Agent& a : agents) {
        const auto& own = actor ? a.actor.leaves : a.critic.leaves;
        flat.push_back(Flat({all.begin() + at, all.begin() + at + own.size()}, own));
        at += own.size();
      }
      return flat;
    };
    result.actor = split(share * loss, true, penalise);
    result.critic = split(share * config.value_weight * value_loss, false, false);
    if (some == 0) return result;

    // its rows come first in the chunk, and the forward pass above serves both
    input.count = some;
    input.channels = channels;
    input.servo = servo;
    input.budget = batch.budget[chunk];
    input.gravity = batch.gravity[chunk];
    for (const Agent& agent : agents) {
      input.std.push_back(agent.actor.std);
      input.action.push_back(
          rows(batch.action).narrow(0, 0, some).narrow(1, agent.first, agent.count));
    }
    if (signs.defined()) {
      const auto [from, unused] = Rows(signs.size(0), chunk, chunks);
      input.signs = signs.narrow(0, from, some);
    }
    input.bound = pressure.bound;
    const PenaltyResult penalty = Penalty(method, input, config.penalty);
    const double weight_of_chunk = double(some) / double(TotalPenalised(B));
    if (penalise)
      result.penalty = split(pressure.lambda * (weight_of_chunk * penalty.surrogate), true, false);
    result.penalty_value = weight_of_chunk * penalty.value;
    result.sigma = penalty.sigma;
    result.ok = penalty.ok;
    result.loop_norm = penalty.loop_norm;
    result.mode = batch.mode[chunk];
    return result;
  }

  std::int64_t TotalPenalised(std::int64_t B) const {
    std::int64_t sum = 0;
    for (int chunk = 0; chunk < chunks; ++chunk)
      sum += PenaltyRows(Rows(B, chunk, chunks).second, chunk);
    return sum;
  }

  // One optimiser step of every network from the chunks' gradients, added in their order.
  void Step(const std::vector<ChunkResult>& results) {
    at::NoGradGuard no_tape;
    const auto sum = [&](auto member, std::size_t k) {
      Tensor total;
      for (const ChunkResult& result : results) {
        const std::vector<Tensor>& list = result.*member;
        if (list.empty()) continue;
        total = total.defined() ? total + list[k] : list[k];
      }
      return total;
    };
    for (std::size_t k = 0; k < agents.size(); ++k) {
      Agent& agent = agents[k];
      agent.rate.copy_(AdaptedRate(agent.rate,
                                   sum(&ChunkResult::kl, k).to(at::kDouble),
                                   kl_target,
                                   config.min_rate,
                                   config.max_rate));
      Tensor actor = sum(&ChunkResult::actor, k);
      agent.task_norm.copy_(actor.norm());
      actor = actor * ClipFactor(actor, config.gradient_clip);
      const Tensor penalty = sum(&ChunkResult::penalty, k);
      // clipped apart: a strong penalty must not drown the task, nor a strong task the penalty
      if (penalty.defined()) {
        agent.penalty_norm.copy_(penalty.norm());
        agent.penalty_gradient.copy_(penalty * ClipFactor(penalty, config.penalty.gradient_clip));
      }
      if (has_penalty) actor = actor + agent.penalty_gradient;
      Tensor critic = sum(&ChunkResult::critic, k);
      critic = critic * ClipFactor(critic, config.gradient_clip);
      agent.actor_adam.Step(agent.actor.flat, actor, agent.rate);
      agent.critic_adam.Step(
          agent.critic.flat, critic, config.critic_rate > 0 ? agent.critic_rate : agent.rate);
      agent.actor.std.detach().clamp_min_(config.min_std);
      if (method == Method::kSnLcp) agent.normaliser.Step(agent.actor);
    }
  }

  // of an iteration's last optimiser step, and of the last that the penalty had a part in
  struct UpdateResult {
    std::vector<ChunkResult> last, penalised;
  };

  UpdateResult Update() {
    kl_target.fill_(config.kl_target * CoolDown(iteration, config.iterations, config.cool_down));
    const std::int64_t T = config.steps, N = spec.num_envs, samples = T * N;
    Advantages advantages = EstimateAdvantages(
        reward, value.narrow(0, 0, T), value[T], done, timed_out, config.gamma, config.lambda);
    advantages.advantage = Normalised(advantages.advantage);
    // one permutation for all epochs, as FALCON has it: mini-batches and budgets are gathered once
    const Tensor order = at::randperm(samples, options.dtype(at::kLong));
    const std::int64_t B = samples / config.mini_batches;
    std::vector<MiniBatch> batches;
    for (int m = 0; m < config.mini_batches; ++m) {
      batches.push_back(Gather(order.narrow(0, m * B, B), advantages, PenalisesBatch(m)));
    }
    Pressure pressure;
    if (has_penalty) {
      if (weight.Lambda(iteration) > 0) {
        pressure.lambda = at::full({}, weight.Lambda(iteration), options);
      }
      pressure.bound = at::full({}, weight.Bound(), options);
    }
    UpdateResult result;
    for (int step = 0; step < config.epochs * config.mini_batches; ++step) {
      const MiniBatch& batch = batches[step % config.mini_batches];
      const bool penalised = Penalises(step);
      Tensor signs;
      if (penalised && needs_stiffness && config.penalty.probes > 0) {
        const std::int64_t rows = config.penalty.samples == 0 ? B : config.penalty.samples;
        signs =
            at::randint(0, 2, {rows, config.penalty.probes, spec.num_actions()}, options) * 2 - 1;
      }
      if (Records()) {
        result.last = Replay(batch, signs, pressure, penalised);
      } else {
        result.last.assign(chunks, {});
        ForChunks(chunks, threads, [&](int chunk) {
          result.last[chunk] = Gradients(batch, chunk, signs, pressure, penalised);
        });
        Step(result.last);
      }
      if (penalised) result.penalised = result.last;
    }
    return result;
  }

  // Optimiser steps as they were recorded, and the memory they read and write.
  struct Recording {
    DeviceGraph graph;
    std::vector<ChunkResult> results;
  };
  Recording plain_step, penalised_step;
  MiniBatch recorded_batch;
  Tensor recorded_signs;
  Pressure recorded_pressure;

  const std::vector<ChunkResult>& Replay(const MiniBatch& batch,
                                         const Tensor& signs,
                                         const Pressure& pressure,
                                         bool penalised) {
    const auto put = [](const Tensor& from, Tensor* to) {
      if (!from.defined()) return;
      if (to->defined()) {
        to->copy_(from);
      } else {
        *to = from.clone();
      }
    };
    MiniBatch& b = recorded_batch;
    put(batch.obs, &b.obs);
    put(batch.critic_obs, &b.critic_obs);
    put(batch.action, &b.action);
    put(batch.mean, &b.mean);
    put(batch.value, &b.value);
    put(batch.logp, &b.logp);
    put(batch.advantage, &b.advantage);
    put(batch.target, &b.target);
    Recording& r = penalised ? penalised_step : plain_step;
    bool fits = r.graph.recorded();
    if (penalised) {
      b.budget.resize(1);
      b.gravity.resize(1);
      b.mode.resize(1);
      put(batch.budget[0].P, &b.budget[0].P);
      put(batch.budget[0].Pi, &b.budget[0].Pi);
      put(batch.budget[0].unit, &b.budget[0].unit);
      put(batch.budget[0].ok, &b.budget[0].ok);
      put(batch.gravity[0], &b.gravity[0]);
      put(batch.mode[0], &b.mode[0]);
      put(signs, &recorded_signs);
      // a penalty in force is more work than one that is only reported
      fits = fits && recorded_pressure.lambda.defined() == pressure.lambda.defined();
      if (!pressure.lambda.defined()) recorded_pressure.lambda = Tensor();
      put(pressure.lambda, &recorded_pressure.lambda);
      put(pressure.bound, &recorded_pressure.bound);
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

  // ---- report ----

  Scalars Report(const UpdateResult& update) {
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

  void ReportPenalty(const std::vector<ChunkResult>& results, double score, Scalars* scalars) {
    std::vector<Tensor> sigmas, oks, modes, loops;
    double violation = 0;
    for (const ChunkResult& r : results) {
      if (!r.sigma.defined()) continue;
      violation += r.penalty_value.item<double>();
      sigmas.push_back(r.sigma);
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
};

Trainer::Trainer(const LearnConfig& config, VecEnv* env)
    : impl_(std::make_unique<Impl>(config, env)) {}
Trainer::~Trainer() = default;

int Trainer::iteration() const { return impl_->iteration; }
void Trainer::MeasureStages(bool on) { impl_->measured = on; }
const StageTimes& Trainer::last_times() const { return impl_->times; }

IterationReport Trainer::Iterate() {
  Impl& impl = *impl_;
  impl.times = {};
  const auto start = Clock::now();
  // draws depend on (seed, iteration) alone
  at::manual_seed(impl.config.seed * 0x9E3779B97F4A7C15u + std::uint64_t(impl.iteration));
  impl.Collect();
  if (impl.measured) {
    WaitForDevice();
    impl.times.rollout = Since(start);
  }
  const auto updating = Clock::now();
  const Impl::UpdateResult update = impl.Update();
  // after the update: within an iteration acting and learning see the same network
  if (impl.config.scale_inputs) {
    const std::int64_t T = impl.config.steps;
    impl.actor_inputs.Add(impl.obs.narrow(0, 0, T).flatten(0, 1));
    impl.critic_inputs.Add(impl.critic_obs.narrow(0, 0, T).flatten(0, 1));
  }
  IterationReport report;
  report.scalars = impl.Report(update);  // waits for the device
  impl.times.update = Since(updating);
  ++impl.iteration;
  ++impl.iterated;
  report.iteration = impl.iteration;
  report.iterations = impl.config.iterations;
  report.steps_per_s = double(impl.spec.num_envs) * impl.config.steps / Since(start);
  return report;
}

bool Trainer::Run(const std::string& folder,
                  TrainLog* log,
                  const std::atomic<bool>* stop,
                  const std::function<void()>& on_checkpoint) {
  const LearnConfig& config = impl_->config;
  CheckpointFolder checkpoints(folder + "/checkpoints", config.keep_checkpoints);
  while (iteration() < config.iterations) {
    const IterationReport report = Iterate();
    if (log != nullptr) log->Write(report);
    const bool ends = iteration() == config.iterations || (stop != nullptr && stop->load());
    if (!folder.empty() && (ends || iteration() % config.checkpoint_every == 0)) {
      checkpoints.Save(iteration(), Save());
      if (on_checkpoint) on_checkpoint();
    }
    if (ends) break;
  }
  return iteration() >= config.iterations;
}

bool Trainer::Resume(const std::string& folder,
                     const std::function<void(const std::string&)>& warn) {
  const auto loaded =
      CheckpointFolder(folder + "/checkpoints", impl_->config.keep_checkpoints).LoadNewest(warn);
  if (!loaded) return false;
  Load(loaded->blobs, loaded->path);
  return true;
}

Blobs Trainer::Save() const {
  const Impl& impl = *impl_;
  Blobs blobs;
  blobs["iteration"] = std::to_string(impl.iteration);
  LearnConfig settings = impl.config;
  settings.threads = 0;  // the result does not depend on it, nor shall the bytes
  blobs["config"] = ToYaml(settings);
  for (const Agent& agent : impl.agents) {
    for (const auto& [name, t] : StateOf(agent)) blobs[name] = BytesOf(t);
    for (const auto& [name, t] : StateOf(agent.normaliser, agent.name)) blobs[name] = BytesOf(t);
  }
  for (const auto& [name, t] : impl.InputState()) blobs[name] = BytesOf(t);
  const double state[] = {impl.weight.log_multiplier,
                          impl.weight.smoothed_score,
                          impl.weight.best_score,
                          double(impl.weight.follows),
                          impl.weight.log_bound,
                          impl.weight.smoothed_violation};
  blobs["penalty"] = {reinterpret_cast<const char*>(state), sizeof(state)};
  // the observation the next rollout begins with, and all that makes the ones after it
  if (!impl.config.checkpoint_env) return blobs;
  blobs["env"] = impl.env->SaveState();
  const std::int64_t T = impl.config.steps;
  for (const auto& [name, buffer] : impl.Carried()) blobs[name] = BytesOf(buffer[T]);
  return blobs;
}

void Trainer::Load(const Blobs& blobs, const std::string& place) {
  Impl& impl = *impl_;
  for (const Agent& agent : impl.agents) {
    for (auto [name, t] : StateOf(agent)) CopyBytes(blobs, name, place, &t);
    for (auto [name, t] : StateOf(agent.normaliser, agent.name)) CopyBytes(blobs, name, place, &t);
  }
  for (auto [name, t] : impl.InputState()) CopyBytes(blobs, name, place, &t);
  const auto blob = [&](const char* name) -> const std::string& {
    const auto found = blobs.find(name);
    if (found == blobs.end()) throw ConfigError(place + ": " + name + ": is missing");
    return found->second;
  };
  double state[6];
  if (blob("penalty").size() != sizeof(state)) throw ConfigError(place + ": penalty: wrong size");
  std::memcpy(state, blob("penalty").data(), sizeof(state));
  impl.weight.log_multiplier = state[0];
  impl.weight.smoothed_score = state[1];
  impl.weight.best_score = state[2];
  impl.weight.follows = static_cast<int>(state[3]);
  impl.weight.log_bound = state[4];
  impl.weight.smoothed_violation = state[5];
  impl.iteration = std::atoi(blob("iteration").c_str());
  // saved without its environment: all episodes start over
  if (!blobs.contains("env")) return;
  const std::int64_t T = impl.config.steps;
  for (const auto& [name, buffer] : impl.Carried()) {
    Tensor last = buffer[T];
    CopyBytes(blobs, name, place, &last);
  }
  impl.env->LoadState(blob("env"));
  impl.started = impl.iteration > 0;
}

void Trainer::Init(const Blobs& blobs, const std::string& place) {
  Impl& impl = *impl_;
  const auto found = blobs.find("config");
  if (found == blobs.end()) throw ConfigError(place + ": config: is missing");
  const YamlNode theirs = YamlNode::Parse(found->second, place + ": config")["learn"];
  const auto same_widths = [&](const char* key, const std::vector<int>& own) {
    const std::vector<double> widths = theirs[key].AsDoubles();
    if (std::equal(widths.begin(), widths.end(), own.begin(), own.end())) return;
    throw ConfigError(
        fmt::format("{}: learn.{} is [{}] there and [{}] here: a warm start needs the same "
                    "networks\n  Set learn.{} to what it is there.",
                    place,
                    key,
                    fmt::join(widths, ", "),
                    fmt::join(own, ", "),
                    key));
  };
  same_widths("actor_hidden", impl.config.actor_hidden);
  same_widths("critic_hidden", impl.config.critic_hidden);
  const bool scaled = theirs.Has("scale_inputs") && theirs["scale_inputs"].AsBool();
  if (scaled != impl.config.scale_inputs) {
    throw ConfigError(
        fmt::format("{}: learn.scale_inputs is {} there and {} here: a warm start "
                    "needs the same\n  Set learn.scale_inputs={}.",
                    place,
                    scaled,
                    impl.config.scale_inputs,
                    scaled));
  }
  for (auto [name, t] : impl.InputState()) CopyBytes(blobs, name, place, &t);
  for (Agent& agent : impl.agents) {
    for (auto [name, t] : StateOf(agent)) CopyBytes(blobs, name, place, &t);
    const bool normalised = blobs.contains(agent.name + ".u0");
    SpectralNormaliser normaliser;
    if (normalised || impl.method == Method::kSnLcp) {
      normaliser = SpectralNormaliser::Make(agent.actor, impl.config.penalty.spectral_gain);
    }
    if (normalised) {
      for (auto [name, t] : StateOf(normaliser, agent.name)) CopyBytes(blobs, name, place, &t);
    }
    if (impl.method == Method::kSnLcp) {
      agent.normaliser = std::move(normaliser);
    } else if (normalised) {
      normaliser.gain = theirs["penalty"]["spectral_gain"].AsDouble();
      at::NoGradGuard no_tape;
      const Layers acting = normaliser.Apply(agent.actor);
      for (std::size_t l = 0; l < acting.weight.size(); ++l) {
        agent.actor.layers.weight[l].copy_(acting.weight[l]);
      }
    }
  }
}

MlpNetwork Trainer::Policy() const {
  at::NoGradGuard no_tape;
  std::vector<Layers> layers;
  for (const Agent& agent : impl_->agents) {
    layers.push_back(impl_->LayersOf(agent));
    layers.back().weight[0] = layers.back().weight[0].narrow(1, 0, impl_->spec.obs_dim);
  }
  return ToMlpNetwork(layers);
}

}  // namespace silc
