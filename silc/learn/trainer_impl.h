// SPDX-License-Identifier: Apache-2.0
#pragma once

// What trainer*.cc share; nobody else includes it. One file per stage of an iteration: the rollout,
// the update, the report; trainer_state.cc is what a checkpoint holds, trainer.cc the rest.
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "silc/learn/checkpoint.h"
#include "silc/learn/device_graph.h"
#include "silc/learn/input_scaling.h"
#include "silc/learn/jacobian.h"
#include "silc/learn/networks.h"
#include "silc/learn/penalty.h"
#include "silc/learn/ppo.h"
#include "silc/learn/ranks.h"
#include "silc/learn/tensor.h"
#include "silc/learn/trainer.h"

namespace silc {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

using Clock = std::chrono::steady_clock;
inline double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// To memory that recorded work reads: made the first time, written over after.
void CopyInto(const Tensor& from, Tensor* to);

/// One agent: a block of the action, its actor, critic and rate.
struct Agent {
  std::string name;
  int first = 0, count = 0;  // actions
  Network actor, critic;
  Network average;  // (P18) of the actor over its last iterations; none: flat is undefined
  AdamW actor_adam, critic_adam;
  Tensor rate;                     // scalar, on the device
  Tensor critic_rate;              // where it has one of its own
  Tensor task_norm, penalty_norm;  // of the actor's gradients before they are clipped
  Tensor penalty_gradient;         // of the last step that worked it out; held in between
  SpectralNormaliser normaliser;
};

/// Networks, optimisers and rate, by their names in a checkpoint.
NamedTensors StateOf(const Agent& agent);
/// The vectors of spectral normalisation, which only sn-lcp has.
NamedTensors StateOf(const SpectralNormaliser& normaliser, const std::string& agent);

/// What a chunk of a mini-batch contributes; scalars are means weighted by the chunk's share.
struct ChunkResult {
  std::vector<Tensor> actor, critic, penalty;  // gradients, flat, per agent
  std::vector<Tensor> kl, surrogate, value;    // per agent
  Tensor penalty_value, sigma, condition, ok, loop_norm, mode, frequency_sigma, frequency_driving;
};

struct Trainer::Impl {
  LearnConfig config;
  VecEnv* env;
  EnvSpec spec;
  Method method;
  at::TensorOptions options;
  std::shared_ptr<ThreadPool> pool;  // the environment's, where it has one
  std::shared_ptr<Ranks> ranks;
  int groups = 1, own_groups = 1;         // blocks of robots: of all processes, of this one
  int chunks = 1, iteration = 0;          // pieces of a block's part of a mini-batch
  std::vector<at::Generator> generators;  // of each block here
  // observations are padded with zeros to a multiple of eight: rows that begin at odd addresses
  // keep a GPU from its matrix units
  int obs_width = 0, critic_obs_width = 0;
  bool needs_stiffness = false, has_penalty = false, started = false, measured = false;
  std::vector<Agent> agents;
  InputScaling actor_inputs, critic_inputs;  // where they are scaled
  Channels channels;
  ServoTensors servo;
  PenaltyWeight weight;
  StageTimes times;

  // rollout, (steps + 1) where the state after the last step counts, too
  Tensor obs, critic_obs, action, mean, value, logp, reward, done, timed_out;
  Tensor mode, com, hand_on_base, closing, gravity;
  std::vector<Tensor> std_old;
  Tensor noise;      // (T, N, actions) standard normal
  Tensor kl_target;  // scalar, on the device
  DeviceGraph rollout_graph;
  int iterated = 0;  // since construction

  Impl(const LearnConfig& c, VecEnv* e, std::shared_ptr<Ranks> r);
  void Check() const;
  void MakeAgents();
  void MakeBuffers();
  void MakeChannels();
  /// Other points of the circle for every iteration, (P16).
  void DrawLoopPoints();
  // weights as the forward pass uses them
  Layers LayersOf(const Agent& agent, const Network& network) const;
  Layers LayersOf(const Agent& agent) const { return LayersOf(agent, agent.actor); }
  void Average();
  Layers CriticOf(const Agent& agent) const;
  // rows of a chunk: [first, first + count)
  static std::pair<std::int64_t, std::int64_t> Rows(std::int64_t total, int chunk, int chunks) {
    const std::int64_t first = total * chunk / chunks;
    return {first, total * (chunk + 1) / chunks - first};
  }
  // pieces of this process's blocks, one block after the other, and the rows of one
  int pieces() const { return own_groups * chunks; }
  std::pair<std::int64_t, std::int64_t> PieceRows(std::int64_t total, int piece) const {
    const std::int64_t of_block = total / own_groups;
    const auto [first, count] = Rows(of_block, piece % chunks, chunks);
    return {piece / chunks * of_block + first, count};
  }
  // robots of a block, of a tensor (…, robots, …)
  Tensor OfBlock(const Tensor& t, int block, int dim) const {
    const std::int64_t robots = t.size(dim) / own_groups;
    return t.narrow(dim, block * robots, robots);
  }
  // Draws depend on (seed, iteration, block) alone.
  void SeedDraws();
  // (blocks here, n) → (n), over all blocks of all processes in their order
  std::vector<double> SumOverBlocks(const std::vector<double>& parts) const;
  // The first iteration runs kernel by kernel: libraries set themselves up in it. From the second
  // on a GPU replays what was recorded.
  bool Records() const;

  // ---- state ----

  // buffers whose last entry is the first of the next rollout, by their name in a checkpoint
  NamedTensors Carried() const;
  NamedTensors InputState() const;
  /// Empty where nothing is averaged.
  NamedTensors AverageState() const;
  /// Lets the environment go on as hard as the one that saved these, if they say so.
  void TakeCurricula(const Blobs& blobs) const;

  // ---- rollout ----

  ObservationView ViewAt(std::int64_t t);
  void Act(std::int64_t t, const std::vector<Layers>& actors, const std::vector<Layers>& critics);
  void Collect();

  // ---- update ----

  // The samples of a mini-batch, gathered once and used in every epoch.
  struct MiniBatch {
    Tensor obs, critic_obs, action, mean, value, logp, advantage, target;
    // the penalty's share: rows [0, penalised) of every chunk
    std::vector<BudgetFactors> budget;
    std::vector<Tensor> gravity, mode;
  };

  // Whether the penalty is worked out in optimiser step `step` of this iteration; the first always.
  bool Penalises(int step) const;
  // whether it has in any that uses mini-batch m
  bool PenalisesBatch(int m) const;
  // how many rows of a chunk take part then
  std::int64_t PenaltyRows(std::int64_t rows, int chunk) const;
  // samples of a block's part of a mini-batch that take part; 0: all
  int PenaltySamples() const;
  // (P3) over all robots of all processes
  Tensor NormaliseAll(const Tensor& advantage) const;
  // samples of the rollout, block by block, in the order in which mini-batches take them
  std::vector<Tensor> DrawOrder();
  void AddInputs();
  MiniBatch Gather(const Tensor& index, const Advantages& advantages, bool penalised);
  // the penalty's share of a chunk: what belongs to these rows of the rollout
  void GatherBudget(const Tensor& rows, int chunk, MiniBatch* batch);

  // How hard the penalty presses, scalars on the device.
  struct Pressure {
    Tensor lambda;  // undefined: the penalty is reported and has no say
    Tensor bound;
  };
  ChunkResult Gradients(const MiniBatch& batch,
                        int chunk,
                        const Tensor& signs,
                        const Pressure& pressure,
                        bool penalised);
  // The penalty of the rows that `input` has activations of, the first of a chunk, and its
  // gradient.
  void Penalise(const MiniBatch& batch,
                int chunk,
                const Tensor& taken,
                const Tensor& signs,
                const Pressure& pressure,
                double weight_of_chunk,
                PenaltyInput* input,
                ChunkResult* result);
  // gradients of a scalar on the tape, flat, per agent
  std::vector<Tensor> GradientsOf(const Tensor& scalar, bool actor, bool keep_tape) const;
  std::int64_t TotalPenalised(std::int64_t B) const;  // of all processes; B: rows of this one
  // clipped apart from the task's: a strong penalty must not drown the task, nor the task it
  void HoldPenalty(const Tensor& gradient, Agent* agent) const;
  // @param rows of each block
  Tensor DrawSigns(std::int64_t rows);
  // What an optimiser step is made of, per agent: sums over the chunks and over all blocks.
  struct StepSums {
    std::vector<Tensor> actor, critic, penalty, kl;
  };
  StepSums SumOfStep(const std::vector<ChunkResult>& results) const;
  // One optimiser step of every network from the chunks' gradients, added in their order.
  void Step(const std::vector<ChunkResult>& results);

  // of an iteration's last optimiser step, and of the last that the penalty had a part in
  struct UpdateResult {
    std::vector<ChunkResult> last, penalised;
  };
  UpdateResult Update();
  Pressure PressureNow() const;

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
                                         bool penalised);

  // ---- both without the tape ----

  // Networks of the rollout and the update with its derivatives written out: float16 on a GPU
  // (trainer_half.cc), float32 on the CPU (trainer_float.cc). docs/learning.md, "An update without
  // the tape".
  class WithoutTape {
   public:
    virtual ~WithoutTape() = default;
    /// The weights as they are now are those that act.
    virtual void BeginRollout() = 0;
    /// Writes mean, action and logp of step t. Values are worked out in Update().
    virtual void Act(std::int64_t t) = 0;
    virtual void EndRollout() = 0;
    virtual UpdateResult Update() = 0;
  };
  std::unique_ptr<WithoutTape> without_tape;  // null: the tape
  // null where it cannot be, for which `precision` may ask in vain: then a ConfigError
  std::unique_ptr<WithoutTape> MakeHalf();
  class Half;
  std::unique_ptr<WithoutTape> MakeFloat();
  class Float;

  // ---- report ----

  Scalars Report(const UpdateResult& update);
};

}  // namespace silc
