// SPDX-License-Identifier: Apache-2.0
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "silc/learn/cuda_ppo.h"

namespace silc {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kAllLanes = 0xffffffffu;

// Beyond what a float16 holds stands the largest it holds: an infinity would turn into NaN in the
// next product. NaN stays, so that it is seen.
__device__ float Saturated(float x) { return fabsf(x) > 65504.0f ? copysignf(65504.0f, x) : x; }
__device__ __half ToHalf(float x) { return __float2half_rn(Saturated(x)); }

// eight float16 as one access of memory
struct Eight {
  __half value[8];
};
__device__ Eight Load(const HalfBits* at) {
  const uint4 bits = *reinterpret_cast<const uint4*>(at);
  return *reinterpret_cast<const Eight*>(&bits);
}
__device__ void Store(const Eight& eight, HalfBits* at) {
  *reinterpret_cast<uint4*>(at) = *reinterpret_cast<const uint4*>(&eight);
}

__device__ float WarpSum(float x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(kAllLanes, x, offset);
  return x;
}

// The sum over a block, in thread 0. @pre blockDim.x == kThreads
__device__ float BlockSum(float x) {
  __shared__ float warp_sum[kThreads / 32];
  x = WarpSum(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warp_sum[threadIdx.x / 32] = x;
  __syncthreads();
  float sum = 0;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kThreads / 32; ++i) sum += warp_sum[i];
  }
  return sum;
}

int Blocks(long work) { return static_cast<int>((work + kThreads - 1) / kThreads); }

// ---- data into half precision -------------------------------------------------------------------

__global__ void ToHalfKernel(
    const float* x, const float* shift, const float* scale, long count, int width, HalfBits* out) {
  const long i = (static_cast<long>(blockIdx.x) * kThreads + threadIdx.x) * 8;
  if (i >= count) return;
  const int column = static_cast<int>(i % width);
  Eight eight;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    float value = x[i + k];
    if (scale != nullptr) value = (value - shift[column + k]) * scale[column + k];
    eight.value[k] = ToHalf(value);
  }
  Store(eight, out + i);
}

__global__ void GatherHalfKernel(
    const HalfBits* from, const std::int64_t* index, long rows, int width, HalfBits* out) {
  const int pieces = width / 8;
  const long i = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows * pieces) return;
  const long row = i / pieces, piece = i % pieces;
  *reinterpret_cast<uint4*>(out + i * 8) =
      *reinterpret_cast<const uint4*>(from + index[row] * width + piece * 8);
}

// ---- hidden layers ------------------------------------------------------------------------------

struct Biases {
  const float* group[kMaxNetworks];
};
// work     5 flop and an exponential an entry, 4 bytes: memory decides
__global__ void BiasEluKernel(HalfBits* z, Biases bias, long size, int width) {
  const long i = (static_cast<long>(blockIdx.x) * kThreads + threadIdx.x) * 8;
  if (i >= size) return;
  HalfBits* at = z + blockIdx.y * size + i;
  const float* b = bias.group[blockIdx.y] + i % width;
  Eight eight = Load(at);
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const float x = __half2float(eight.value[k]) + b[k];
    eight.value[k] = ToHalf(x > 0 ? x : expm1f(x));
  }
  Store(eight, at);
}

// mapping  a block per piece of the rows; a thread has eight columns of every n-th row, n rows at a
//          time
// work     6 bytes an entry: memory decides
__global__ void __launch_bounds__(kThreads)
    EluBackwardKernel(HalfBits* d, const HalfBits* h, long rows, int width, float* partial) {
  __shared__ float sum_of[kThreads][9];  // nine: threads fall into different banks
  const int lanes = width / 8, at_once = kThreads / lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes,
            own = static_cast<int>(threadIdx.x) / lanes;
  const long first = rows * blockIdx.x / kTiles, last = rows * (blockIdx.x + 1) / kTiles;
  const long group = static_cast<long>(blockIdx.y) * rows * width;
  float sum[8] = {};
  if (own < at_once) {
#pragma unroll 4
    for (long row = first + own; row < last; row += at_once) {
      const long at = group + row * width + lane * 8;
      Eight slope = Load(h + at), eight = Load(d + at);
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        // elu'(z) = e^z = 1 + h under zero
        const float y = __half2float(slope.value[k]);
        const __half x = ToHalf(__half2float(eight.value[k]) * (y > 0 ? 1.0f : 1.0f + y));
        eight.value[k] = x;
        sum[k] += __half2float(x);
      }
      Store(eight, d + at);
    }
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) sum_of[threadIdx.x][k] = sum[k];
  __syncthreads();
  float* out = partial + (static_cast<long>(blockIdx.y) * kTiles + blockIdx.x) * width;
  for (int c = static_cast<int>(threadIdx.x); c < width; c += kThreads) {
    float total = 0;
    for (int r = 0; r < at_once; ++r) total += sum_of[r * lanes + c / 8][c % 8];
    out[c] = total;
  }
}

struct ColumnSums {
  ColumnSum sum[kMaxNetworks];
};
// mapping  a block per 32 columns of a group and a layer, eight threads to a column
__global__ void ColumnSumKernel(ColumnSums sums, float scale) {
  __shared__ float part[8][33];
  const ColumnSum& own = sums.sum[blockIdx.z];
  const int column = static_cast<int>(blockIdx.x) * 32 + static_cast<int>(threadIdx.x) % 32;
  const int slice = static_cast<int>(threadIdx.x) / 32;
  float total = 0;
  if (column < own.width) {
    const float* from = own.partial + static_cast<long>(blockIdx.y) * kTiles * own.width + column;
#pragma unroll 8
    for (int tile = slice; tile < kTiles; tile += 8)
      total += from[static_cast<long>(tile) * own.width];
  }
  part[slice][threadIdx.x % 32] = total;
  __syncthreads();
  if (slice != 0 || column >= own.width) return;
  for (int k = 1; k < 8; ++k) total += part[k][threadIdx.x];
  own.out[blockIdx.y * own.stride + column] = scale * total;
}

struct SliceSums {
  SliceSum sum[kMaxNetworks + 1];
};
// work     4 bytes an entry and slice: memory decides
__global__ void SliceSumKernel(SliceSums sums, float scale) {
  const SliceSum& own = sums.sum[blockIdx.z];
  const float* from = own.partial + static_cast<long>(blockIdx.y) * own.slices * own.count;
  for (long i = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x; i < own.count;
       i += static_cast<long>(gridDim.x) * kThreads) {
    float total = 0;
#pragma unroll 8
    for (int s = 0; s < own.slices; ++s) total += from[s * own.count + i];
    own.out[blockIdx.y * own.stride + i] = scale * total;
  }
}

// ---- the policy's Gaussian ----------------------------------------------------------------------

// mapping  a warp per row, a lane per action
__global__ void ActKernel(ActArguments a) {
  const long row = static_cast<long>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  const int j = static_cast<int>(threadIdx.x) % 32;
  if (row >= a.rows) return;
  float log_density = 0;
  if (j < a.count) {
    const float mean = a.output[row * a.padded + j] + a.bias[j], std = a.std[j];
    const float action = mean + std * a.noise[row * a.actions + j];
    a.mean[row * a.actions + j] = mean;
    a.action[row * a.actions + j] = action;
    // from the action as it was rounded: what the update will see
    const float x = (action - mean) / std;
    log_density = -0.5f * x * x - logf(std) - kHalfLogTwoPi;
  }
  log_density = WarpSum(log_density);
  if (j == 0) a.logp[row * a.agents] = log_density;
}

__global__ void ValuesKernel(
    const float* output, int padded, const float* bias, long rows, float* out, int stride) {
  const long row = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x;
  if (row < rows) out[row * stride] = output[row * padded] + bias[0];
}

__global__ void AdvantagesKernel(AdvantageArguments a) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i < a.robots * a.agents) EstimateAdvantagesOf(a, i);
}

struct ActorLosses {
  ActorLoss agent[kMaxNetworks];
};
struct CriticLosses {
  CriticLoss agent[kMaxNetworks];
};

// Entries of a gradient beyond this are cut off: a float16 must hold what the layers below make of
// them. A sample's own is of the order (a − μ)/σ² · A, some hundreds at most.
constexpr float kLargestGradient = 8192.0f;

// mapping  a warp per row, a lane per action; a warp's rows are added up in its lanes' registers
__global__ void __launch_bounds__(kThreads) ActorLossKernel(ActorLosses losses, long rows) {
  constexpr int kWarps = kThreads / 32;
  __shared__ float part[kWarps][kLossWidth];
  const ActorLoss& a = losses.agent[blockIdx.y];
  const int j = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const bool real = j < a.count;
  const float std = real ? a.std[j] : 1.0f, std_old = real ? a.std_old[j] : 1.0f;
  const float bias = real ? a.bias[j] : 0.0f;
  const float log_std = logf(std), log_ratio = logf(std / std_old);
  float d_bias = 0, d_std = 0, surrogate = 0, kl = 0;
  for (long row = static_cast<long>(blockIdx.x) * kWarps + warp; row < rows;
       row += static_cast<long>(kLossBlocks) * kWarps) {
    const std::int64_t sample = a.index[row];
    float x = 0, log_density = 0;
    if (real) {
      const float mean = a.output[row * a.padded + j] + bias;
      x = (a.action[sample * a.actions + j] - mean) / std;
      log_density = -0.5f * x * x - log_std - kHalfLogTwoPi;
      const float apart = a.mean[sample * a.actions + j] - mean;
      kl += log_ratio + (std_old * std_old + apart * apart) / (2 * std * std) - 0.5f;
    }
    log_density = WarpSum(log_density);
    const float ratio = expf(log_density - a.logp[sample * a.agents]);
    // its slope is rows · ∂loss/∂log π
    const LossTerm term = SurrogateTerm(ratio, a.advantage[sample * a.agents], a.clip);
    if (j == 0) surrogate += term.value;
    if (real) {
      const float d = term.slope * x / std;
      d_bias += d;
      d_std += term.slope * (x * x - 1) / std;
      a.d_output[row * a.padded + j] =
          __half_as_ushort(__float2half_rn(fminf(fmaxf(d, -kLargestGradient), kLargestGradient)));
    } else if (j < a.padded) {
      a.d_output[row * a.padded + j] = 0;
    }
  }
  kl = WarpSum(kl);
  part[warp][j] = d_bias;
  part[warp][kMaxOutputs + j] = d_std;
  if (j == 0) {
    part[warp][2 * kMaxOutputs] = surrogate;
    part[warp][2 * kMaxOutputs + 1] = kl;
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kLossWidth; i += kThreads) {
    float sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += part[w][i];
    a.partial[blockIdx.x * kLossWidth + i] = sum;
  }
}

__global__ void __launch_bounds__(kThreads) CriticLossKernel(CriticLosses losses, long rows) {
  const CriticLoss& a = losses.agent[blockIdx.y];
  const float bias = a.bias[0];
  float d_bias = 0, loss = 0;
  for (long row = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x; row < rows;
       row += static_cast<long>(kLossBlocks) * kThreads) {
    const std::int64_t sample = a.index[row];
    const float value = a.output[row * a.padded] + bias;
    const LossTerm term =
        ValueTerm(value, a.value[sample * a.agents], a.target[sample * a.agents], a.clip);
    loss += term.value;
    const float d = a.weight * term.slope;
    d_bias += d;
    a.d_output[row * a.padded] =
        __half_as_ushort(__float2half_rn(fminf(fmaxf(d, -kLargestGradient), kLargestGradient)));
  }
  const float bias_sum = BlockSum(d_bias), loss_sum = BlockSum(loss);
  if (threadIdx.x == 0) {
    a.partial[blockIdx.x * 2] = bias_sum;
    a.partial[blockIdx.x * 2 + 1] = loss_sum;
  }
}

// ---- the step -----------------------------------------------------------------------------------

// A block per network: sums of the losses' pieces into gradients and results.
__global__ void FinishLossKernel(StepArguments a) {
  const StepNetwork& own = a.network[blockIdx.x];
  const bool actor = own.std_at >= 0;
  const int width = actor ? kLossWidth : 2, i = static_cast<int>(threadIdx.x);
  if (i >= width) return;
  float sum = 0;
#pragma unroll 8
  for (int block = 0; block < kLossBlocks; ++block) sum += own.loss_partial[block * width + i];
  sum /= static_cast<float>(a.rows);
  if (!actor) {
    *(i == 0 ? own.gradient + own.bias_at : own.loss) = sum;
  } else if (i < kMaxOutputs) {
    if (i < own.outputs) own.gradient[own.bias_at + i] = sum;
  } else if (i < 2 * kMaxOutputs) {
    const int j = i - kMaxOutputs;
    // the entropy's part: ∂ ln σ/∂σ
    if (j < own.outputs) {
      own.gradient[own.std_at + j] = sum - a.entropy_weight / own.flat[own.std_at + j];
    }
  } else {
    *(i == 2 * kMaxOutputs ? own.loss : own.kl) = sum;
  }
}

__global__ void __launch_bounds__(kThreads) NormKernel(StepArguments a) {
  const StepNetwork& own = a.network[blockIdx.y];
  float sum = 0;
  for (long i = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x; i < own.count;
       i += static_cast<long>(kNormBlocks) * kThreads) {
    sum += own.gradient[i] * own.gradient[i];
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) a.scratch[blockIdx.y * kNormBlocks + blockIdx.x] = sum;
}

// What a network's step needs to know: clip factor, rate, corrections of m and v.
__device__ float* ScalarsOf(const StepArguments& a, int network) {
  return a.scratch + kMaxNetworks * kNormBlocks + 4 * network;
}

// One warp per network, all in one block: an agent's critic takes the rate that its actor's KL has
// just moved.
__global__ void ScalarKernel(StepArguments a) {
  const int network = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (network < a.count && lane == 0) {
    const StepNetwork& own = a.network[network];
    if (own.std_at >= 0) {
      *own.rate = RateAfter(*own.rate, *own.kl, *a.kl_target, a.min_rate, a.max_rate);
    }
  }
  __syncthreads();
  if (network >= a.count) return;
  const StepNetwork& own = a.network[network];
  const float* partial = a.scratch + network * kNormBlocks;
  float sum = 0;
  for (int i = lane; i < kNormBlocks; i += 32) sum += partial[i];
  const float norm = sqrtf(WarpSum(sum));
  if (lane != 0) return;
  if (own.norm != nullptr) *own.norm = norm;
  const double t = *own.t + 1;
  *own.t = t;
  float* scalars = ScalarsOf(a, network);
  scalars[0] = ClipFactorOf(norm, a.gradient_clip);
  scalars[1] = static_cast<float>(own.own_rate != nullptr ? *own.own_rate : *own.rate);
  // in double: 1 − 0.999ᵗ has three digits less in float
  scalars[2] = static_cast<float>(1 - pow(kAdamBeta1, t));
  scalars[3] = static_cast<float>(sqrt(1 - pow(kAdamBeta2, t)));
}

// (P8), and the half-precision copy
__global__ void __launch_bounds__(kThreads) AdamKernel(StepArguments a) {
  const StepNetwork& own = a.network[blockIdx.y];
  const float* scalars = ScalarsOf(a, static_cast<int>(blockIdx.y));
  const AdamStep step = {scalars[0], scalars[1], scalars[2], scalars[3], a.weight_decay};
  for (long i = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x; i < own.count;
       i += static_cast<long>(gridDim.x) * kThreads) {
    const float held = own.held != nullptr ? own.held[i] : 0.0f;
    float w = AdamParameter(step, own.flat[i], own.gradient[i], held, own.m + i, own.v + i);
    if (own.std_at >= 0 && i >= own.std_at) w = fmaxf(w, a.min_std);
    own.flat[i] = w;
    own.half[i] = __half_as_ushort(ToHalf(w));
  }
}

}  // namespace

int LaunchToHalf(const float* x,
                 const float* shift,
                 const float* scale,
                 long rows,
                 int width,
                 HalfBits* out,
                 CUstream_st* stream) {
  ToHalfKernel<<<Blocks(rows * width / 8), kThreads, 0, stream>>>(
      x, shift, scale, rows * width, width, out);
  return cudaGetLastError();
}

int LaunchGatherHalf(const HalfBits* from,
                     const std::int64_t* index,
                     long rows,
                     int width,
                     HalfBits* out,
                     CUstream_st* stream) {
  GatherHalfKernel<<<Blocks(rows * (width / 8)), kThreads, 0, stream>>>(
      from, index, rows, width, out);
  return cudaGetLastError();
}

int LaunchBiasElu(
    HalfBits* z, const float* const* bias, int groups, long rows, int width, CUstream_st* stream) {
  const long size = rows * width;
  Biases biases{};
  for (int g = 0; g < groups; ++g) biases.group[g] = bias[g];
  const dim3 blocks(Blocks(size / 8), groups);
  BiasEluKernel<<<blocks, kThreads, 0, stream>>>(z, biases, size, width);
  return cudaGetLastError();
}

int LaunchEluBackward(HalfBits* d,
                      const HalfBits* h,
                      int groups,
                      long rows,
                      int width,
                      float* partial,
                      CUstream_st* stream) {
  const dim3 blocks(kTiles, groups);
  EluBackwardKernel<<<blocks, kThreads, 0, stream>>>(d, h, rows, width, partial);
  return cudaGetLastError();
}

int LaunchColumnSums(
    const ColumnSum* sums, int count, int groups, float scale, CUstream_st* stream) {
  ColumnSums all{};
  int widest = 0;
  for (int i = 0; i < count; ++i) {
    all.sum[i] = sums[i];
    widest = sums[i].width > widest ? sums[i].width : widest;
  }
  const dim3 blocks((widest + 31) / 32, groups, count);
  ColumnSumKernel<<<blocks, kThreads, 0, stream>>>(all, scale);
  return cudaGetLastError();
}

int LaunchSliceSums(const SliceSum* sums, int count, int groups, float scale, CUstream_st* stream) {
  SliceSums all{};
  for (int i = 0; i < count; ++i) all.sum[i] = sums[i];
  const dim3 blocks(64, groups, count);
  SliceSumKernel<<<blocks, kThreads, 0, stream>>>(all, scale);
  return cudaGetLastError();
}

int LaunchAct(const ActArguments& arguments, CUstream_st* stream) {
  ActKernel<<<Blocks(arguments.rows * 32), kThreads, 0, stream>>>(arguments);
  return cudaGetLastError();
}

int LaunchValues(const float* output,
                 int padded,
                 const float* bias,
                 long rows,
                 float* out,
                 int stride,
                 CUstream_st* stream) {
  ValuesKernel<<<Blocks(rows), kThreads, 0, stream>>>(output, padded, bias, rows, out, stride);
  return cudaGetLastError();
}

int LaunchAdvantages(const AdvantageArguments& arguments, CUstream_st* stream) {
  const long work = static_cast<long>(arguments.robots) * arguments.agents;
  AdvantagesKernel<<<Blocks(work), kThreads, 0, stream>>>(arguments);
  return cudaGetLastError();
}

int LaunchActorLoss(const ActorLoss* agents, int count, long rows, CUstream_st* stream) {
  ActorLosses all{};
  for (int i = 0; i < count; ++i) all.agent[i] = agents[i];
  const dim3 blocks(kLossBlocks, count);
  ActorLossKernel<<<blocks, kThreads, 0, stream>>>(all, rows);
  return cudaGetLastError();
}

int LaunchCriticLoss(const CriticLoss* agents, int count, long rows, CUstream_st* stream) {
  CriticLosses all{};
  for (int i = 0; i < count; ++i) all.agent[i] = agents[i];
  const dim3 blocks(kLossBlocks, count);
  CriticLossKernel<<<blocks, kThreads, 0, stream>>>(all, rows);
  return cudaGetLastError();
}

int LaunchStep(const StepArguments& arguments, CUstream_st* stream) {
  FinishLossKernel<<<arguments.count, 96, 0, stream>>>(arguments);
  NormKernel<<<dim3(kNormBlocks, arguments.count), kThreads, 0, stream>>>(arguments);
  ScalarKernel<<<1, 32 * kMaxNetworks, 0, stream>>>(arguments);
  AdamKernel<<<dim3(128, arguments.count), kThreads, 0, stream>>>(arguments);
  return cudaGetLastError();
}

}  // namespace silc
