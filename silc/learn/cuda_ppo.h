// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "silc/learn/ppo_terms.h"

struct CUstream_st;

/// An update of PPO on a GPU, but for its matrix products: docs/learning.md, "An update without the
/// tape". All pointers are device memory, matrices row-major. Every function enqueues and returns
/// the launch's cudaError_t. Sums are taken in a fixed order: a run repeats bit for bit.
namespace silc {

using HalfBits = std::uint16_t;  // a float16: host code needs no CUDA header to hand it on

inline constexpr int kMaxNetworks = 8;   // of one launch
inline constexpr int kMaxOutputs = 32;   // of a network: a lane each
inline constexpr int kMaxHidden = 2048;  // widest hidden layer

/// out = (x − shift) ∘ scale in half precision; shift and scale null: x itself. width % 8 == 0.
int LaunchToHalf(const float* x,
                 const float* shift,
                 const float* scale,
                 long rows,
                 int width,
                 HalfBits* out,
                 CUstream_st* stream);

/// Rows `index` of a matrix, one below the other. width % 8 == 0.
int LaunchGatherHalf(const HalfBits* from,
                     const std::int64_t* index,
                     long rows,
                     int width,
                     HalfBits* out,
                     CUstream_st* stream);

/// z ← elu(z + bias) of `groups` matrices (rows, width), one after the other. width % 8 == 0.
/// @param bias  of each group (width)
int LaunchBiasElu(
    HalfBits* z, const float* const* bias, int groups, long rows, int width, CUstream_st* stream);

inline constexpr int kTiles = 256;  // pieces of a batch whose sums are written down

/// d ← d ∘ elu'(z), where h = elu(z), and the sums of each column over each of kTiles pieces of the
/// rows. @param partial (groups, kTiles, width)
int LaunchEluBackward(HalfBits* d,
                      const HalfBits* h,
                      int groups,
                      long rows,
                      int width,
                      float* partial,
                      CUstream_st* stream);

/// The bias gradients of one layer from its pieces: out[g][c] = scale · Σ partial[g][·][c].
struct ColumnSum {
  const float* partial = nullptr;  // (groups, kTiles, width)
  int width = 0;
  float* out = nullptr;  // group g begins at out + g · stride
  long stride = 0;
};
int LaunchColumnSums(
    const ColumnSum* sums, int count, int groups, float scale, CUstream_st* stream);

/// A layer's weight gradients from those of slices of the batch: out[g][i] = scale · Σ_s
/// partial[g][s][i].
struct SliceSum {
  const float* partial = nullptr;  // (groups, slices, count)
  int slices = 0;
  long count = 0;
  float* out = nullptr;  // group g begins at out + g · stride
  long stride = 0;
};
int LaunchSliceSums(const SliceSum* sums, int count, int groups, float scale, CUstream_st* stream);

/// What the actors did in a step of the rollout.
struct ActArguments {
  const float* output = nullptr;  // (rows, padded) of one actor, without its bias
  int padded = 0, count = 0;      // columns, and how many of them are actions
  const float* bias = nullptr;    // (count)
  const float* std = nullptr;     // (count)
  long rows = 0;
  const float* noise =
      nullptr;  // (rows, actions), as are the next two; all at the first of its own
  float* mean = nullptr;
  float* action = nullptr;
  int actions = 0;        // of all agents
  float* logp = nullptr;  // (rows, agents), at its own
  int agents = 0;
};
int LaunchAct(const ActArguments& arguments, CUstream_st* stream);

/// out[r · stride] = first column of `output` (rows, padded) + bias[0].
int LaunchValues(const float* output,
                 int padded,
                 const float* bias,
                 long rows,
                 float* out,
                 int stride,
                 CUstream_st* stream);

/// (P2), a thread per robot and agent.
int LaunchAdvantages(const AdvantageArguments& arguments, CUstream_st* stream);

inline constexpr int kLossBlocks = 64;
inline constexpr int kLossWidth = 2 * kMaxOutputs + 2;  // db, dstd, surrogate, KL

/// (P4) with its gradient by hand, and the KL since the rollout. Sample r is row index[r] of the
/// rollout's buffers.
struct ActorLoss {
  const float* output = nullptr;  // (rows, padded), without bias
  HalfBits* d_output = nullptr;   // (rows, padded): rows · ∂/∂output, zero beyond `count`
  int padded = 0, count = 0;
  const float *bias = nullptr, *std = nullptr, *std_old = nullptr;
  const std::int64_t* index = nullptr;
  const float *action = nullptr, *mean = nullptr;  // of the rollout, at this agent's first
  int actions = 0;
  const float *logp = nullptr, *advantage = nullptr;  // at this agent's
  int agents = 0;
  float clip = 0;
  float* partial = nullptr;  // (kLossBlocks, kLossWidth)
};
/// (P5) with its gradient.
struct CriticLoss {
  const float* output = nullptr;
  HalfBits* d_output = nullptr;  // column 0 is written; the others must be zero
  int padded = 0;
  const float* bias = nullptr;
  const std::int64_t* index = nullptr;
  const float *value = nullptr, *target = nullptr;  // at this agent's
  int agents = 0;
  float clip = 0;            // infinite: none
  float weight = 1;          // of the value loss in the gradient
  float* partial = nullptr;  // (kLossBlocks, 2): db, loss
};
int LaunchActorLoss(const ActorLoss* agents, int count, long rows, CUstream_st* stream);
int LaunchCriticLoss(const CriticLoss* agents, int count, long rows, CUstream_st* stream);

/// One optimiser step of actors and critics: the losses' sums finished, norms, (P7), (P9), (P8).
struct StepNetwork {
  float *flat = nullptr, *m = nullptr, *v = nullptr;
  double* t = nullptr;          // steps taken
  float* gradient = nullptr;    // like flat
  const float* held = nullptr;  // a gradient to add after clipping; null: none
  HalfBits* half = nullptr;     // the weights' copy that products use
  long count = 0;
  long bias_at = 0;  // where the last layer's bias begins
  int outputs = 0;
  long std_at = -1;  // where the spread begins; < 0: a critic
  const float* loss_partial = nullptr;
  double* rate = nullptr;            // the agent's; an actor's KL moves it
  const double* own_rate = nullptr;  // taken instead where it is not null
  float* norm = nullptr;             // of the gradient before it is clipped; null: nobody asks
  float* kl = nullptr;               // actor: result
  float* loss = nullptr;             // surrogate or value loss: result
};
struct StepArguments {
  StepNetwork network[kMaxNetworks];  // an agent's actor before its critic
  int count = 0;
  long rows = 0;  // of the mini-batch
  const double* kl_target = nullptr;
  double min_rate = 0, max_rate = 0;
  float entropy_weight = 0, gradient_clip = 0, weight_decay = 0, min_std = 0;
  float* scratch = nullptr;  // kStepScratch floats
};
inline constexpr int kNormBlocks = 64;
inline constexpr int kStepScratch = kMaxNetworks * (kNormBlocks + 4);
int LaunchStep(const StepArguments& arguments, CUstream_st* stream);

}  // namespace silc
