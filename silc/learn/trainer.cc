// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/thread_pool.h"
#include "silc/learn/frequency_penalty.h"
#include "silc/learn/half_networks.h"
#include "silc/learn/trainer_impl.h"

namespace silc {

std::string VecEnv::JoinStates(std::span<const std::string> parts) const {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}
double VecEnv::TaskScore() const { return std::numeric_limits<double>::quiet_NaN(); }

Trainer::Impl::Impl(const LearnConfig& c, VecEnv* e, std::shared_ptr<Ranks> r)
    : config(c),
      env(e),
      spec(e->spec()),
      method(MethodOf(c)),
      ranks(r ? std::move(r) : OneRank()),
      weight(c.penalty) {
  config.Validate("learn");
  groups = config.groups > 0 ? config.groups : ranks->size();
  own_groups = groups / ranks->size();
  Check();
  obs_width = static_cast<int>(InEights(spec.obs_dim));
  critic_obs_width = static_cast<int>(InEights(spec.critic_obs_dim));
  const bool cuda = config.device == "cuda";
  options = at::TensorOptions(at::kFloat).device(cuda ? at::kCUDA : at::kCPU);
  if (cuda) {
    at::globalContext().setAllowTF32CuBLAS(true);
  } else {
    HoldToOneThread();
    pool = env->pool();
    chunks = config.chunks;
  }
  if (!pool) {
    const int all = HardwareThreads();
    pool = std::make_shared<ThreadPool>(cuda ? 1 : config.threads > 0 ? config.threads : all);
  }
  MakeAgents();
  if (config.scale_inputs) {
    actor_inputs = InputScaling::Make(obs_width, options);
    critic_inputs = InputScaling::Make(critic_obs_width, options);
  }
  MakeBuffers();
  if (needs_stiffness || method == Method::kScalarLcp || method == Method::kAlcp) MakeChannels();
  without_tape = MakeHalf();
  if (!without_tape) without_tape = MakeFloat();
}

void Trainer::Impl::Check() const {
  if (spec.on_gpu != (config.device == "cuda")) {
    throw ConfigError(
        fmt::format("learn.device: {}: the environment's memory is on the {}; "
                    "choose the backend that goes with it",
                    config.device,
                    spec.on_gpu ? "GPU" : "CPU"));
  }
  if (config.device == "cuda" && !at::hasCUDA()) {
    throw ConfigError("learn.device: cuda: this LibTorch has no CUDA; build against one that has");
  }
  if (groups % ranks->size() != 0 || spec.num_envs % std::max(1, own_groups) != 0) {
    throw ConfigError(
        fmt::format("learn.groups: {}: must be a multiple of the {} processes, and divide the {} "
                    "robots",
                    groups,
                    ranks->size(),
                    spec.all_envs()));
  }
  if (config.device == "cuda" && own_groups > 1) {
    throw ConfigError(
        fmt::format("learn.groups: {}: on GPUs a process is a group; leave it out", groups));
  }
  const long samples = long(spec.num_envs) * config.steps;
  if (samples / own_groups % config.mini_batches != 0) {
    throw ConfigError(
        fmt::format("learn.mini_batches: {}: does not divide the {} samples of an "
                    "iteration ({} robots × {} steps)",
                    config.mini_batches,
                    samples / own_groups,
                    spec.num_envs / own_groups,
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
  if (jacobian && spec.stiffness_spec.q0.empty()) {
    throw ConfigError("learn.penalty.method: " + config.penalty.method +
                      ": bounds how actions follow the joints' angles, and the task's layout shows "
                      "none; add a term with source: joint_pos, or train with --method baseline");
  }
  for (const double f : config.penalty.frequencies) {
    const double nyquist = 0.5 / spec.stiffness_spec.period;  // [Hz]
    if (f >= nyquist) {
      throw ConfigError(fmt::format(
          "learn.penalty.frequencies: {:g} Hz is not under {:g} Hz, half the policy's rate",
          f,
          nyquist));
    }
  }
  const Condition condition = spec.stiffness_spec.budget.condition;
  if (method == Method::kSilc && condition != Condition::kDisc) {
    throw ConfigError(fmt::format(
        "learn.penalty.method: silc: trains the disc condition (S7c), and the budget asks for {}\n"
        "  Choose a budget with condition: disc; silc-paper trains the one-sided one.",
        Name(condition)));
  }
  SILC_CHECK(!jacobian || spec.stiffness_spec.servo.nv() == spec.num_actions());
  // what is commanded must be seen, or nothing could be learnt of it
  for (int i = 0; i < kNumCommanded; ++i) {
    const bool told = spec.stiffness_spec.command[i].input >= 0;
    SILC_CHECK(told || !spec.stiffness_spec.budget.command.range[i]);
  }
}

void Trainer::Impl::MakeAgents() {
  int first = 0;
  for (std::uint32_t k = 0; k < spec.agents.size(); ++k) {
    Agent agent;
    agent.name = spec.agents[k].name;
    agent.first = first;
    agent.count = spec.agents[k].num_actions;
    first += agent.count;
    const double std = config.init_std[config.init_std.size() == 1 ? 0 : k];
    const auto forget_padding = [](Network* network, int width) {
      at::NoGradGuard no_tape;
      const Tensor first_weight = network->layers.weight[0];
      first_weight.narrow(1, width, first_weight.size(1) - width).zero_();
    };
    agent.actor = MakeNetwork({obs_width, config.actor_hidden, agent.count},
                              std::vector<double>(agent.count, std),
                              config.seed,
                              2 * k,
                              options);
    forget_padding(&agent.actor, spec.obs_dim);
    if (config.average > 0) {
      agent.average = NetworkOn(agent.actor.shape, agent.actor.flat.clone());
    }
    agent.critic = MakeNetwork(
        {critic_obs_width, config.critic_hidden, 1}, {}, config.seed, 2 * k + 1, options);
    forget_padding(&agent.critic, spec.critic_obs_dim);
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

void Trainer::Impl::MakeBuffers() {
  const std::int64_t T = config.steps, N = spec.num_envs, A = spec.num_actions();
  const std::int64_t G = static_cast<std::int64_t>(agents.size());
  obs = at::zeros({T + 1, N, obs_width}, options);
  critic_obs = at::zeros({T + 1, N, critic_obs_width}, options);
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
    hand_on_base = at::zeros({T + 1, N, 2, 3, n}, options);
    closing = at::zeros({T + 1, N, 6, n}, options);
    gravity = at::zeros({T + 1, N, 3, n}, options);
  }
}

void Trainer::Impl::MakeChannels() {
  const StiffnessSpec& s = spec.stiffness_spec;
  const int n = s.servo.nv();
  const auto dense = [&](const std::vector<ColumnEntry>& entries, int columns) {
    return DenseColumns(entries, obs_width, columns, options);
  };
  channels = {.q0 = dense(s.q0, n), .q = dense(s.q, n), .a = dense(s.a, n)};
  if (s.budget.torque == Channel::kFollowed) channels.tau = dense(s.tau, n);
  if (s.budget.gravity == Channel::kFollowed) channels.g = dense(s.g, 3);
  const auto vector = [&](const JointVector& v) {
    return at::tensor(std::vector<double>(v.data(), v.data() + v.size()), at::kDouble).to(options);
  };
  servo = {vector(s.servo.kp), vector(s.servo.alpha)};
  if (config.penalty.frequencies.empty()) return;
  servo.kd = vector(s.servo.kd);
  FrequencyEntries entries = {.q = s.q, .v = s.v, .a = s.a, .age = s.age};
  if (s.budget.torque == Channel::kFollowed) entries.tau = s.tau;
  if (s.budget.gravity == Channel::kFollowed) entries.g = s.g;
  channels.frequencies = MakeFrequencyPoints(
      config.penalty.frequencies, s.period, config.penalty.latency, entries, obs_width, n, options);
}

void CopyInto(const Tensor& from, Tensor* to) {
  if (to->defined()) {
    to->copy_(from);
  } else {
    *to = from.clone();
  }
}

void Trainer::Impl::DrawLoopPoints() {
  const StiffnessSpec& s = spec.stiffness_spec;
  const std::vector<ColumnEntry> no_torque;
  const std::vector<LoopPoint> drawn =
      MakeLoopPoints(DrawLoopAngles(config.penalty.action_loop_points, config.seed, iteration),
                     s.a,
                     s.budget.torque == Channel::kFollowed ? s.tau : no_torque,
                     s.age,
                     obs_width,
                     s.servo.nv(),
                     options);
  channels.loop.resize(drawn.size());
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    for (Tensor LoopPoint::*part :
         {&LoopPoint::a, &LoopPoint::a_imag, &LoopPoint::tau, &LoopPoint::tau_imag}) {
      if ((drawn[i].*part).defined()) CopyInto(drawn[i].*part, &(channels.loop[i].*part));
    }
  }
}

Layers Trainer::Impl::LayersOf(const Agent& agent, const Network& network) const {
  const Layers layers = method == Method::kSnLcp ? agent.normaliser.Apply(network) : network.layers;
  return config.scale_inputs ? actor_inputs.Apply(layers) : layers;
}

void Trainer::Impl::Average() {
  if (config.average == 0) return;
  // (P18): the mean of all iterations while they are few, then one that forgets
  const double share = 1.0 / std::min(iteration + 1, config.average);
  at::NoGradGuard no_tape;
  for (Agent& agent : agents) agent.average.flat.lerp_(agent.actor.flat, share);
}

Layers Trainer::Impl::CriticOf(const Agent& agent) const {
  return config.scale_inputs ? critic_inputs.Apply(agent.critic.layers) : agent.critic.layers;
}

bool Trainer::Impl::Records() const {
  return config.device == "cuda" && config.graphs && iterated > 0 && DeviceGraph::Available();
}

void Trainer::Impl::SeedDraws() {
  const auto seed_of = [&](int block) {
    const std::uint64_t seed = config.seed * 0x9E3779B97F4A7C15u + std::uint64_t(iteration);
    if (block == 0) return seed;
    // as far from the neighbours' as from any other (SplitMix64's finish)
    std::uint64_t z = seed + 0xD1B54A32D192ED03u * std::uint64_t(block);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  };
  const int first = ranks->rank() * own_groups;
  at::manual_seed(seed_of(first));
  generators.clear();
  if (own_groups == 1) {
    generators.push_back(at::globalContext().defaultGenerator(options.device()));
    return;
  }
  for (int b = 0; b < own_groups; ++b) {
    generators.push_back(at::detail::createCPUGenerator(seed_of(first + b)));
  }
}

std::vector<double> Trainer::Impl::SumOverBlocks(const std::vector<double>& parts) const {
  if (groups == 1) return parts;
  return SumOnHost(ranks.get(), parts, own_groups, config.device == "cuda");
}

void Trainer::Impl::AddInputs() {
  const std::int64_t T = config.steps;
  const auto add = [&](const Tensor& buffer, InputScaling* to) {
    const Tensor seen = buffer.narrow(0, 0, T);
    if (groups == 1) return to->Add(seen.flatten(0, 1));
    std::vector<Tensor> moments;
    for (int b = 0; b < own_groups; ++b) {
      moments.push_back(InputScaling::Moments(OfBlock(seen, b, 1).flatten(0, 1)));
    }
    const Tensor all = ranks->Gather(at::stack(moments));
    for (int b = 0; b < groups; ++b) to->AddMoments(T * spec.num_envs / own_groups, all[b]);
  };
  add(obs, &actor_inputs);
  add(critic_obs, &critic_inputs);
}

Trainer::Trainer(const LearnConfig& config, VecEnv* env, std::shared_ptr<Ranks> ranks)
    : impl_(std::make_unique<Impl>(config, env, std::move(ranks))) {}
Trainer::~Trainer() = default;

int Trainer::iteration() const { return impl_->iteration; }
void Trainer::MeasureStages(bool on) { impl_->measured = on; }
const StageTimes& Trainer::last_times() const { return impl_->times; }

IterationReport Trainer::Iterate() {
  Impl& impl = *impl_;
  impl.times = {};
  const auto start = Clock::now();
  impl.SeedDraws();
  impl.Collect();
  if (impl.measured) {
    WaitForDevice();
    impl.times.rollout = Since(start);
  }
  const auto updating = Clock::now();
  if (impl.method == Method::kSilc) impl.DrawLoopPoints();
  const double left = CoolDown(impl.iteration, impl.config.iterations, impl.config.cool_down);
  impl.kl_target.fill_(impl.config.kl_target * left);
  const Impl::UpdateResult update = impl.without_tape ? impl.without_tape->Update() : impl.Update();
  // after the update: within an iteration acting and learning see the same network
  if (impl.config.scale_inputs) impl.AddInputs();
  impl.Average();
  IterationReport report;
  report.scalars = impl.Report(update);  // waits for the device
  impl.times.update = Since(updating);
  ++impl.iteration;
  ++impl.iterated;
  report.iteration = impl.iteration;
  report.iterations = impl.config.iterations;
  report.steps_per_s = double(impl.spec.all_envs()) * impl.config.steps / Since(start);
  return report;
}

bool Trainer::Run(const std::string& folder,
                  TrainLog* log,
                  const std::atomic<bool>* stop,
                  const std::function<void()>& on_checkpoint) {
  const LearnConfig& config = impl_->config;
  CheckpointFolder checkpoints(folder + "/checkpoints", config.keep_checkpoints);
  const bool writes = impl_->ranks->rank() == 0;
  // of all processes: one that was told to stop would leave the others waiting
  const auto told_to_stop = [&] {
    const double own = stop != nullptr && stop->load() ? 1 : 0;
    if (impl_->ranks->size() == 1) return own > 0;
    const Tensor told = at::full({1, 1}, own, impl_->options);
    return impl_->ranks->Sum(told).item<float>() > 0;
  };
  while (iteration() < config.iterations) {
    const IterationReport report = Iterate();
    if (log != nullptr) log->Write(report);
    const bool told = told_to_stop();
    const bool ends = iteration() == config.iterations || told;
    if (!folder.empty() && (ends || iteration() % config.checkpoint_every == 0)) {
      const Blobs blobs = Save();
      if (writes) checkpoints.Save(iteration(), blobs);
      if (writes && on_checkpoint) on_checkpoint();
    }
    if (ends) break;
  }
  return iteration() >= config.iterations;
}

bool Trainer::Resume(const std::string& folder,
                     const std::function<void(const std::string&)>& warn) {
  Ranks& ranks = *impl_->ranks;
  const CheckpointFolder checkpoints(folder + "/checkpoints", impl_->config.keep_checkpoints);
  if (ranks.rank() != 0) {
    // what rank 0 found: another machine's disk may be behind
    const std::string bytes = ranks.Broadcast("");
    if (!bytes.empty()) Load(ParseBlobs(bytes, folder), folder);
    return !bytes.empty();
  }
  const auto loaded = checkpoints.LoadNewest(warn);
  if (ranks.size() > 1) ranks.Broadcast(loaded ? SerializeBlobs(loaded->blobs) : "");
  if (!loaded) return false;
  Load(loaded->blobs, loaded->path);
  // out of the way of their successors, for somebody who knows what to do with them
  for (const std::string& path : loaded->broken) {
    std::error_code error;
    std::filesystem::rename(path, path + ".broken", error);
    if (error) throw RunError(path + ": cannot be set aside: " + error.message());
  }
  return true;
}

MlpNetwork Trainer::Policy() const {
  at::NoGradGuard no_tape;
  std::vector<Layers> layers;
  for (const Agent& agent : impl_->agents) {
    const bool averaged = agent.average.flat.defined();
    layers.push_back(impl_->LayersOf(agent, averaged ? agent.average : agent.actor));
    layers.back().weight[0] = layers.back().weight[0].narrow(1, 0, impl_->spec.obs_dim);
  }
  return ToMlpNetwork(layers);
}

}  // namespace silc
