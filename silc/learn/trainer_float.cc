// SPDX-License-Identifier: Apache-2.0
// Rollout and update on the CPU without the tape, in float32: gradients of the losses are written
// out, and products are our own (float_kernel.h). The penalty stays on the tape, on its own rows.
// docs/learning.md, "An update without the tape".
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "silc/base/error.h"
#include "silc/learn/float_kernel.h"
#include "silc/learn/float_networks.h"
#include "silc/learn/ppo_terms.h"
#include "silc/learn/trainer_impl.h"

namespace silc {
namespace {

// Rows that go through all layers together, so that they stay in a core's cache. Gradients are
// added block by block: the number is part of the result.
constexpr int kBlockRows = 384;
// Rows of the rollout that a thread takes at once. Rows do not see each other: any number will do.
constexpr int kActRows = 64, kValueRows = 128, kGatherRows = 256, kEstimates = 64;

const float* FloatsOf(const Tensor& t) { return t.defined() ? t.data_ptr<float>() : nullptr; }

const FloatKernel& KernelFor(const std::string& precision) {
  if (precision != "bfloat16") return BestFloatKernel();
  const FloatKernel* kernel = Bfloat16Kernel();
  if (kernel == nullptr) {
    throw ConfigError(
        "learn.precision: bfloat16: this processor cannot multiply bfloat16; choose float32");
  }
  return *kernel;
}

// Inputs as the network takes them, (P12). @param shift, scale null: as they are
void ScaleRow(const float* from, const float* shift, const float* scale, int width, float* to) {
  if (scale == nullptr) {
    std::copy_n(from, width, to);
    return;
  }
  for (int i = 0; i < width; ++i) to[i] = (from[i] - shift[i]) * scale[i];
}

}  // namespace

class Trainer::Impl::Float : public WithoutTape {
 public:
  explicit Float(Impl* owner);
  void BeginRollout() override;
  void Act(std::int64_t t) override;
  void EndRollout() override {}
  UpdateResult Update() override;

 private:
  // What an agent's losses read, sample after sample in the order of the mini-batches.
  struct Rows {
    std::vector<float> action, mean;                    // (samples, stride of the actor's output)
    std::vector<float> logp, advantage, value, target;  // (samples)
  };
  // One network and its place in the vector of all gradients.
  struct Part {
    FloatNetwork network;
    std::int64_t at = 0;
    AdamW* adam = nullptr;
    Agent* agent = nullptr;
    bool actor = false;
  };

  void Forward(const FloatNetwork& network,
               const Tensor& rows,
               std::int64_t first,
               int count,
               const InputScaling& scaling,
               FloatWorkspace* workspace) const;
  void EvaluateStates();
  void EstimateAll();
  void Gather();
  void GatherBudgets(int m);
  // piece of mini-batch m: one network's gradients of the task, into its place in the piece's row
  void TaskGradients(int m, int piece, int part, FloatWorkspace* workspace);
  void ActorGradient(int k, std::int64_t at, int rows, float* row, FloatWorkspace* workspace) const;
  void CriticGradient(
      int k, std::int64_t at, int rows, float* row, FloatWorkspace* workspace) const;
  // one sample's part of a mini-batch of all processes
  float ShareOfSample() const {
    const std::int64_t own = order_.size(0) / trainer_.config.mini_batches;
    const std::int64_t all = own / trainer_.own_groups * trainer_.groups;
    return 1.0f / static_cast<float>(all);
  }
  void PenaltyGradients(
      int m, int piece, const Tensor& signs, const Pressure& pressure, ChunkResult* result);
  // over the pieces of each block in their order, then over all blocks
  Tensor SumOverPieces(const Tensor& pieces, Tensor* of_blocks) const;
  void HoldPenalties();
  void Step();
  void StepPart(Part* part, const float* gradient);

  Impl& trainer_;
  const FloatKernel& kernel_;
  std::vector<Part> parts_;  // actor and critic of agent 0, of agent 1, …
  std::vector<FloatWorkspace> workspaces_;
  std::int64_t x_stride_ = 0, y_stride_ = 0;
  std::vector<float> x_, y_;         // (samples, stride) what actors and critics see
  Tensor order_;                     // (samples) which sample of the rollout stands where
  std::vector<Rows> rows_;           // per agent
  Tensor advantage_, target_;        // (T, N, agents)
  Tensor gradients_, block_sums_;    // (pieces, n), (blocks, n): all parts, then per agent KL,
                                     // surrogate and value loss
  Tensor penalties_, penalty_sums_;  // (pieces, …), (blocks, …): of all actors
  std::int64_t figures_at_ = 0;
  std::vector<MiniBatch> penalty_;  // per mini-batch the budgets of the penalty's rows
};

std::unique_ptr<Trainer::Impl::WithoutTape> Trainer::Impl::MakeFloat() {
  const bool bfloat16 = config.precision == "bfloat16";
  if (config.device != "cpu") {
    if (bfloat16) throw ConfigError("learn.precision: bfloat16: only on a CPU; choose float16");
    return nullptr;
  }
  if (bfloat16 && method == Method::kSnLcp) {
    throw ConfigError(
        "learn.precision: bfloat16: sn-lcp normalises its weights in float32; choose float32");
  }
  if (config.tape || method == Method::kSnLcp) return nullptr;
  return std::make_unique<Float>(this);
}

Trainer::Impl::Float::Float(Impl* owner)
    : trainer_(*owner), kernel_(KernelFor(owner->config.precision)) {
  const std::int64_t T = trainer_.config.steps, N = trainer_.spec.num_envs, samples = T * N;
  const std::int64_t G = std::int64_t(trainer_.agents.size());
  const auto& options = trainer_.options;
  std::int64_t actors = 0;
  for (Agent& agent : trainer_.agents) {
    for (const bool actor : {true, false}) {
      Part part;
      part.network = FloatNetwork(actor ? agent.actor : agent.critic, kernel_);
      part.at = figures_at_;
      part.adam = actor ? &agent.actor_adam : &agent.critic_adam;
      part.agent = &agent;
      part.actor = actor;
      figures_at_ += part.network.network().count();
      parts_.push_back(std::move(part));
    }
    actors += agent.actor.count();
    const std::size_t stride = InRegisters(agent.count), count = samples;
    Rows rows;
    rows.action.assign(count * stride, 0.0f);
    rows.mean.assign(count * stride, 0.0f);
    for (auto member : {&Rows::logp, &Rows::advantage, &Rows::value, &Rows::target}) {
      (rows.*member).assign(count, 0.0f);
    }
    rows_.push_back(std::move(rows));
  }
  workspaces_.resize(trainer_.pool->size());
  x_stride_ = InRegisters(trainer_.obs_width);
  y_stride_ = InRegisters(trainer_.critic_obs_width);
  x_.assign(samples * x_stride_, 0.0f);
  y_.assign(samples * y_stride_, 0.0f);
  order_ = at::zeros({samples}, options.dtype(at::kLong));
  advantage_ = at::zeros({T, N, G}, options);
  target_ = at::zeros({T, N, G}, options);
  gradients_ = at::zeros({trainer_.pieces(), figures_at_ + 3 * G}, options);
  block_sums_ = at::zeros({trainer_.own_groups, figures_at_ + 3 * G}, options);
  if (trainer_.has_penalty) {
    penalties_ = at::zeros({trainer_.pieces(), actors}, options);
    penalty_sums_ = at::zeros({trainer_.own_groups, actors}, options);
  }
  penalty_.resize(trainer_.config.mini_batches);
}

void Trainer::Impl::Float::BeginRollout() {
  for (Part& part : parts_) part.network.Refresh();
}

// Rows [first, first + count) of a buffer (…, width) of the rollout.
void Trainer::Impl::Float::Forward(const FloatNetwork& network,
                                   const Tensor& rows,
                                   std::int64_t first,
                                   int count,
                                   const InputScaling& scaling,
                                   FloatWorkspace* workspace) const {
  const int width = network.network().shape.inputs;
  const float* x = rows.data_ptr<float>() + first * width;
  if (trainer_.config.scale_inputs) {
    float* scaled = Room(&workspace->input, std::int64_t(count) * width);
    for (int r = 0; r < count; ++r) {
      ScaleRow(x + std::int64_t(r) * width,
               FloatsOf(scaling.shift),
               FloatsOf(scaling.scale),
               width,
               scaled + std::int64_t(r) * width);
    }
    x = scaled;
  }
  network.Forward(x, width, count, workspace);
}

void Trainer::Impl::Float::Act(std::int64_t t) {
  const std::int64_t N = trainer_.spec.num_envs, A = trainer_.spec.num_actions();
  const std::int64_t G = std::int64_t(trainer_.agents.size());
  const float* noise = trainer_.noise.data_ptr<float>() + t * N * A;
  float* mean = trainer_.mean.data_ptr<float>() + t * N * A;
  float* action = trainer_.action.data_ptr<float>() + t * N * A;
  float* logp = trainer_.logp.data_ptr<float>() + t * N * G;
  trainer_.pool->ParallelForRanges(int(N), kActRows, [&](int worker, int begin, int end) {
    FloatWorkspace& workspace = workspaces_[worker];
    for (std::int64_t k = 0; k < G; ++k) {
      const Agent& agent = trainer_.agents[k];
      const FloatNetwork& actor = parts_[2 * k].network;
      Forward(actor, trainer_.obs, t * N + begin, end - begin, trainer_.actor_inputs, &workspace);
      const float* std = agent.actor.std.data_ptr<float>();
      float constant = float(agent.count) * kHalfLogTwoPi;
      for (int j = 0; j < agent.count; ++j) constant += std::log(std[j]);
      for (int i = begin; i < end; ++i) {
        const float* output = workspace.output.data() + (i - begin) * actor.output_stride();
        const std::int64_t at = i * A + agent.first;
        float squares = 0;
        for (int j = 0; j < agent.count; ++j) {
          mean[at + j] = output[j];
          action[at + j] = output[j] + std[j] * noise[at + j];
          // from the action as it was rounded: what the update will see
          const float x = (action[at + j] - output[j]) / std[j];
          squares += x * x;
        }
        logp[i * G + k] = -0.5f * squares - constant;
      }
    }
  });
}

// Values of all states, those after the last step included.
void Trainer::Impl::Float::EvaluateStates() {
  const std::int64_t states = std::int64_t(trainer_.config.steps + 1) * trainer_.spec.num_envs;
  const std::int64_t G = std::int64_t(trainer_.agents.size());
  float* value = trainer_.value.data_ptr<float>();
  trainer_.pool->ParallelForRanges(int(states), kValueRows, [&](int worker, int begin, int end) {
    FloatWorkspace& workspace = workspaces_[worker];
    for (std::int64_t k = 0; k < G; ++k) {
      const FloatNetwork& critic = parts_[2 * k + 1].network;
      Forward(critic, trainer_.critic_obs, begin, end - begin, trainer_.critic_inputs, &workspace);
      for (int i = begin; i < end; ++i) {
        value[i * G + k] = workspace.output[(i - begin) * critic.output_stride()];
      }
    }
  });
}

void Trainer::Impl::Float::EstimateAll() {
  AdvantageArguments a;
  a.reward = trainer_.reward.data_ptr<float>();
  a.value = trainer_.value.data_ptr<float>();
  a.last_value = trainer_.value[trainer_.config.steps].data_ptr<float>();
  a.done = trainer_.done.data_ptr<std::uint8_t>();
  a.timed_out = trainer_.timed_out.data_ptr<std::uint8_t>();
  a.steps = trainer_.config.steps;
  a.robots = trainer_.spec.num_envs;
  a.agents = int(trainer_.agents.size());
  a.gamma = float(trainer_.config.gamma);
  a.lambda = float(trainer_.config.lambda);
  a.advantage = advantage_.data_ptr<float>();
  a.target = target_.data_ptr<float>();
  trainer_.pool->ParallelForRanges(a.robots * a.agents, kEstimates, [&](int, int begin, int end) {
    for (int i = begin; i < end; ++i) EstimateAdvantagesOf(a, i);
  });
  advantage_.copy_(trainer_.NormaliseAll(advantage_));
}

// One permutation for all epochs: the samples are put into the order of the mini-batches once.
void Trainer::Impl::Float::Gather() {
  const std::vector<Tensor> orders = trainer_.DrawOrder();
  const std::int64_t samples = order_.size(0), B = samples / trainer_.config.mini_batches;
  const std::int64_t of_block = B / trainer_.own_groups;
  for (int m = 0; m < trainer_.config.mini_batches; ++m) {
    for (int b = 0; b < trainer_.own_groups; ++b) {
      order_.narrow(0, m * B + b * of_block, of_block)
          .copy_(orders[b].narrow(0, m * of_block, of_block));
    }
  }
  const std::int64_t* order = order_.data_ptr<std::int64_t>();
  const std::int64_t A = trainer_.spec.num_actions(), G = std::int64_t(trainer_.agents.size());
  const int width = trainer_.obs_width, critic_width = trainer_.critic_obs_width;
  const float *obs = trainer_.obs.data_ptr<float>(),
              *critic_obs = trainer_.critic_obs.data_ptr<float>(),
              *action = trainer_.action.data_ptr<float>(), *mean = trainer_.mean.data_ptr<float>(),
              *logp = trainer_.logp.data_ptr<float>(), *value = trainer_.value.data_ptr<float>(),
              *advantage = advantage_.data_ptr<float>(), *target = target_.data_ptr<float>();
  const InputScaling &actor = trainer_.actor_inputs, &critic = trainer_.critic_inputs;
  const float *actor_shift = FloatsOf(actor.shift), *actor_scale = FloatsOf(actor.scale);
  const float *critic_shift = FloatsOf(critic.shift), *critic_scale = FloatsOf(critic.scale);
  trainer_.pool->ParallelForRanges(int(samples), kGatherRows, [&](int, int begin, int end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t from = order[i];
      ScaleRow(obs + from * width, actor_shift, actor_scale, width, x_.data() + i * x_stride_);
      ScaleRow(critic_obs + from * critic_width,
               critic_shift,
               critic_scale,
               critic_width,
               y_.data() + i * y_stride_);
      for (std::int64_t k = 0; k < G; ++k) {
        const Agent& agent = trainer_.agents[k];
        Rows& to = rows_[k];
        const std::int64_t stride = InRegisters(agent.count), at = from * A + agent.first;
        std::copy_n(action + at, agent.count, to.action.data() + i * stride);
        std::copy_n(mean + at, agent.count, to.mean.data() + i * stride);
        to.logp[i] = logp[from * G + k];
        to.value[i] = value[from * G + k];
        to.advantage[i] = advantage[from * G + k];
        to.target[i] = target[from * G + k];
      }
    }
  });
}

void Trainer::Impl::Float::GatherBudgets(int m) {
  const int pieces = trainer_.pieces();
  const std::int64_t B = order_.size(0) / trainer_.config.mini_batches;
  MiniBatch& batch = penalty_[m];
  batch.budget.assign(pieces, {});
  batch.gravity.assign(pieces, {});
  batch.mode.assign(pieces, {});
  if (!trainer_.needs_stiffness || !trainer_.PenalisesBatch(m)) return;
  trainer_.pool->ParallelFor(pieces, [&](int, int piece) {
    at::NoGradGuard no_tape;
    const auto [first, count] = trainer_.PieceRows(B, piece);
    const std::int64_t some = trainer_.PenaltyRows(count, piece % trainer_.chunks);
    if (some > 0) trainer_.GatherBudget(order_.narrow(0, m * B + first, some), piece, &batch);
  });
}

void Trainer::Impl::Float::TaskGradients(int m, int piece, int part, FloatWorkspace* workspace) {
  const Part& own = parts_[part];
  const std::int64_t B = order_.size(0) / trainer_.config.mini_batches;
  const auto [first, count] = trainer_.PieceRows(B, piece);
  float* row = gradients_.data_ptr<float>() + piece * gradients_.size(1);
  float* gradient = row + own.at;
  std::fill_n(gradient, own.network.network().count(), 0.0f);
  const std::int64_t stride = own.actor ? x_stride_ : y_stride_;
  for (std::int64_t begin = 0; begin < count; begin += kBlockRows) {
    const int rows = int(std::min<std::int64_t>(kBlockRows, count - begin));
    const std::int64_t at = m * B + first + begin;
    const float* inputs = (own.actor ? x_ : y_).data() + at * stride;
    own.network.Forward(inputs, stride, rows, workspace);
    if (own.actor) {
      ActorGradient(part / 2, at, rows, row, workspace);
    } else {
      CriticGradient(part / 2, at, rows, row, workspace);
    }
    own.network.Backward(inputs, stride, rows, workspace, gradient);
  }
}

// (P4), (P6), (P7) of samples [at, at + rows) after the forward pass: workspace->d_output, the
// spread's gradient and the figures.
void Trainer::Impl::Float::ActorGradient(
    int k, std::int64_t at, int rows, float* row, FloatWorkspace* workspace) const {
  const LearnConfig& config = trainer_.config;
  const Rows& own = rows_[k];
  const Agent& agent = trainer_.agents[k];
  const Part& actor = parts_[2 * k];
  ActorLossRows a;
  a.rows = rows;
  a.count = agent.count;
  a.stride = int(actor.network.output_stride());
  a.output = workspace->output.data();
  a.action = own.action.data() + at * a.stride;
  a.mean_old = own.mean.data() + at * a.stride;
  a.std = agent.actor.std.data_ptr<float>();
  a.std_old = trainer_.std_old[k].data_ptr<float>();
  a.logp_old = own.logp.data() + at;
  a.advantage = own.advantage.data() + at;
  a.clip = float(config.clip);
  a.scale = ShareOfSample();
  a.scratch = Room(&workspace->scratch, 4 * a.stride);
  a.d_output = Room(&workspace->d_output, std::int64_t(rows) * a.stride);
  a.d_std = row + actor.at + actor.network.spread_at();
  a.kl = row + figures_at_ + k;
  a.surrogate = a.kl + rows_.size();
  kernel_.actor_loss(a);
  // (P6): −w ∂ ln σ/∂σ
  const float entropy = float(config.entropy_weight) * float(rows) * a.scale;
  for (int j = 0; j < agent.count; ++j) a.d_std[j] -= entropy / a.std[j];
}

// (P5), likewise.
void Trainer::Impl::Float::CriticGradient(
    int k, std::int64_t at, int rows, float* row, FloatWorkspace* workspace) const {
  const LearnConfig& config = trainer_.config;
  const Rows& own = rows_[k];
  CriticLossRows c;
  c.rows = rows;
  c.stride = int(parts_[2 * k + 1].network.output_stride());
  c.output = workspace->output.data();
  c.value_old = own.value.data() + at;
  c.target = own.target.data() + at;
  c.clip = config.value_clip > 0 ? float(config.value_clip) : std::numeric_limits<float>::max();
  c.weight = float(config.value_weight);
  c.scale = ShareOfSample();
  c.d_output = Room(&workspace->d_output, std::int64_t(rows) * c.stride);
  c.loss = row + figures_at_ + 2 * rows_.size() + k;
  kernel_.critic_loss(c);
}

void Trainer::Impl::Float::PenaltyGradients(
    int m, int piece, const Tensor& signs, const Pressure& pressure, ChunkResult* result) {
  const std::int64_t B = order_.size(0) / trainer_.config.mini_batches;
  const auto [first, count] = trainer_.PieceRows(B, piece);
  const std::int64_t some = trainer_.PenaltyRows(count, piece % trainer_.chunks);
  Tensor flat = penalties_[piece];
  if (some > 0) {
    const at::AutoGradMode tape(true);
    const Tensor index = order_.narrow(0, m * B + first, some);
    const auto pick = [&](const Tensor& buffer) {
      return buffer.narrow(0, 0, trainer_.config.steps).flatten(0, 1).index_select(0, index);
    };
    PenaltyInput input;
    const Tensor seen = pick(trainer_.obs);
    for (const Agent& agent : trainer_.agents) {
      input.actors.push_back(trainer_.LayersOf(agent));
      input.activations.push_back(silc::Forward(input.actors.back(), seen));
    }
    input.count = some;
    Tensor own_signs;
    if (signs.defined()) {
      own_signs = signs.narrow(0, trainer_.PieceRows(signs.size(0), piece).first, some);
    }
    trainer_.Penalise(penalty_[m],
                      piece,
                      pick(trainer_.action),
                      own_signs,
                      pressure,
                      double(some) / double(trainer_.TotalPenalised(B)),
                      &input,
                      result);
  }
  const at::NoGradGuard no_tape;
  if (result->penalty.empty()) {
    flat.zero_();
  } else {
    at::cat_out(flat, result->penalty);
    result->penalty.clear();
  }
}

Tensor Trainer::Impl::Float::SumOverPieces(const Tensor& pieces, Tensor* of_blocks) const {
  const int chunks = trainer_.chunks, blocks = trainer_.own_groups;
  const std::int64_t n = pieces.size(1);
  const float* from = pieces.data_ptr<float>();
  float* to = of_blocks->data_ptr<float>();
  constexpr int kGrain = 16384;
  trainer_.pool->ParallelForRanges(int(n), kGrain, [&](int, int begin, int end) {
    for (int b = 0; b < blocks; ++b) {
      kernel_.add_rows(from + b * chunks * n + begin, n, chunks, end - begin, to + b * n + begin);
    }
  });
  return trainer_.groups == 1 ? (*of_blocks)[0] : trainer_.ranks->Sum(*of_blocks);
}

void Trainer::Impl::Float::HoldPenalties() {
  const Tensor total = SumOverPieces(penalties_, &penalty_sums_);
  std::int64_t at = 0;
  for (Agent& agent : trainer_.agents) {
    trainer_.HoldPenalty(total.narrow(0, at, agent.actor.count()), &agent);
    at += agent.actor.count();
  }
}

void Trainer::Impl::Float::Step() {
  const Tensor total = SumOverPieces(gradients_, &block_sums_);
  const float* gradient = total.data_ptr<float>();
  const LearnConfig& config = trainer_.config;
  const double kl_target = *trainer_.kl_target.data_ptr<double>();
  for (std::size_t k = 0; k < trainer_.agents.size(); ++k) {
    double* rate = trainer_.agents[k].rate.data_ptr<double>();
    *rate =
        RateAfter(*rate, gradient[figures_at_ + k], kl_target, config.min_rate, config.max_rate);
  }
  trainer_.pool->ParallelFor(int(parts_.size()),
                             [&](int, int i) { StepPart(&parts_[i], gradient + parts_[i].at); });
}

void Trainer::Impl::Float::StepPart(Part* part, const float* gradient) {
  const LearnConfig& config = trainer_.config;
  const Network& network = part->network.network();
  const Agent& agent = *part->agent;
  AdamRows a;
  a.count = network.count();
  a.gradient = gradient;
  a.flat = network.flat.data_ptr<float>();
  a.m = part->adam->m.data_ptr<float>();
  a.v = part->adam->v.data_ptr<float>();
  const float norm = float(std::sqrt(kernel_.sum_of_squares(gradient, a.count)));
  a.clip = ClipFactorOf(norm, float(config.gradient_clip));
  const bool own_rate = !part->actor && config.critic_rate > 0;
  a.rate = float(*(own_rate ? agent.critic_rate : agent.rate).data_ptr<double>());
  const double t = *part->adam->t.data_ptr<double>() += 1;
  // in double: 1 − 0.999ᵗ has three digits less in float
  a.c1 = float(1 - std::pow(kAdamBeta1, t));
  a.c2 = float(std::sqrt(1 - std::pow(kAdamBeta2, t)));
  a.weight_decay = float(config.weight_decay);
  if (part->actor) {
    *agent.task_norm.data_ptr<float>() = norm;
    if (trainer_.has_penalty) a.held = agent.penalty_gradient.data_ptr<float>();
  }
  kernel_.adam(a);
  if (part->actor) {
    float* std = a.flat + part->network.spread_at();
    for (int j = 0; j < agent.count; ++j) std[j] = std::max(std[j], float(config.min_std));
  }
  part->network.Refresh();
}

Trainer::Impl::UpdateResult Trainer::Impl::Float::Update() {
  at::NoGradGuard no_tape;
  const LearnConfig& config = trainer_.config;
  EvaluateStates();
  EstimateAll();
  Gather();
  if (trainer_.has_penalty) {
    for (int m = 0; m < config.mini_batches; ++m) GatherBudgets(m);
  }
  const Pressure pressure = trainer_.PressureNow();
  const int pieces = trainer_.pieces();
  const std::int64_t B = order_.size(0) / config.mini_batches;
  UpdateResult result;
  for (int step = 0; step < config.epochs * config.mini_batches; ++step) {
    const int m = step % config.mini_batches;
    const bool penalised = trainer_.Penalises(step);
    Tensor signs;
    if (penalised && trainer_.needs_stiffness && config.penalty.probes > 0) {
      signs = trainer_.DrawSigns(config.penalty.samples == 0 ? B / trainer_.own_groups
                                                             : trainer_.PenaltySamples());
    }
    if (penalised) result.penalised.assign(pieces, {});
    // each network of each piece is worked out by itself; the penalty first, which takes longest
    gradients_.narrow(1, figures_at_, gradients_.size(1) - figures_at_).zero_();
    const int parts = int(parts_.size()), penalties = penalised ? pieces : 0;
    trainer_.pool->ParallelFor(penalties + pieces * parts, [&](int worker, int i) {
      if (i < penalties) {
        PenaltyGradients(m, i, signs, pressure, &result.penalised[i]);
      } else {
        const int task = i - penalties;
        TaskGradients(m, task / parts, task % parts, &workspaces_[worker]);
      }
    });
    if (penalised && pressure.lambda.defined()) HoldPenalties();
    Step();
  }
  // figures of the last step
  const std::int64_t G = std::int64_t(trainer_.agents.size());
  result.last.resize(pieces);
  for (int piece = 0; piece < pieces; ++piece) {
    const Tensor figures = gradients_[piece].narrow(0, figures_at_, 3 * G);
    for (std::int64_t k = 0; k < G; ++k) {
      result.last[piece].kl.push_back(figures[k]);
      result.last[piece].surrogate.push_back(figures[G + k]);
      result.last[piece].value.push_back(figures[2 * G + k]);
    }
  }
  return result;
}

}  // namespace silc
