// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/half_networks.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAStream.h>
#include <cublas_v2.h>

#include <algorithm>

#include "silc/base/check.h"
#include "silc/learn/cuda_ppo.h"

namespace silc {
namespace {

HalfBits* Bits(const Tensor& t) { return reinterpret_cast<HalfBits*>(t.data_ptr<at::Half>()); }
CUstream_st* Stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

// A stack of row-major float16 matrices.
struct Operand {
  const HalfBits* data = nullptr;
  std::int64_t columns = 0;  // from one row to the next
  std::int64_t stride = 0;   // from one matrix to the next
  bool transposed = false;
};

// out = scale · a b, (rows, columns) of each, `inner` summed over. cuBLAS counts by columns: it is
// told to work out outᵀ = bᵀ aᵀ.
template <typename Out>
void Product(const Operand& a,
             const Operand& b,
             std::int64_t rows,
             std::int64_t inner,
             std::int64_t columns,
             float scale,
             Out* out,
             std::int64_t out_stride,
             int count) {
  const float zero = 0;
  const cudaDataType type = sizeof(Out) == 2 ? CUDA_R_16F : CUDA_R_32F;
  const auto order = [](const Operand& x) { return x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const cublasStatus_t status = cublasGemmStridedBatchedEx(at::cuda::getCurrentCUDABlasHandle(),
                                                           order(b),
                                                           order(a),
                                                           static_cast<int>(columns),
                                                           static_cast<int>(rows),
                                                           static_cast<int>(inner),
                                                           &scale,
                                                           b.data,
                                                           CUDA_R_16F,
                                                           static_cast<int>(b.columns),
                                                           b.stride,
                                                           a.data,
                                                           CUDA_R_16F,
                                                           static_cast<int>(a.columns),
                                                           a.stride,
                                                           &zero,
                                                           out,
                                                           type,
                                                           static_cast<int>(columns),
                                                           out_stride,
                                                           count,
                                                           CUBLAS_COMPUTE_32F,
                                                           CUBLAS_GEMM_DEFAULT);
  SILC_CHECK(status == CUBLAS_STATUS_SUCCESS);
}

// the first `count` entries of a buffer that is made, or made larger, when it is too small
Tensor Room(Tensor* buffer, std::int64_t count, const at::TensorOptions& options) {
  if (!buffer->defined() || buffer->numel() < count) *buffer = at::zeros({count}, options);
  return buffer->narrow(0, 0, count);
}

// A weight gradient is a small matrix summed over a long batch: a GPU has few tiles to share out.
// So the batch is cut into slices with a product each, as many as give each of some 130 processors
// a tile of 128 × 128. @return a divisor of `rows`
int SlicesOf(std::int64_t rows, std::int64_t outputs, std::int64_t inputs, int networks) {
  const auto tiles = [](std::int64_t n) { return (n + 127) / 128; };
  const std::int64_t have = tiles(outputs) * tiles(inputs) * networks;
  int slices = 1;
  while (slices * have < 128 && slices < 64 && rows % (2 * slices) == 0) slices *= 2;
  return slices;
}

}  // namespace

bool HalfNetworks::Takes(const MlpShape& shape) {
  const auto fits = [](int width) { return width % 8 == 0 && width <= kMaxHidden; };
  return shape.inputs % 8 == 0 && shape.outputs <= kMaxOutputs && !shape.hidden.empty() &&
         shape.hidden.size() <= kMaxNetworks &&
         std::all_of(shape.hidden.begin(), shape.hidden.end(), fits);
}

HalfNetworks::HalfNetworks(const std::vector<const Network*>& networks) : networks_(networks) {
  SILC_CHECK(!networks.empty());
  const MlpShape& shape = networks[0]->shape;
  widths_ = {shape.inputs};
  widths_.insert(widths_.end(), shape.hidden.begin(), shape.hidden.end());
  int outputs = 0;
  std::int64_t longest = 0;
  for (const Network* network : networks) {
    SILC_CHECK(Takes(network->shape) && network->shape.inputs == shape.inputs &&
               network->shape.hidden == shape.hidden);
    outputs = std::max(outputs, network->shape.outputs);
    longest = std::max(longest, network->count());
  }
  padded_ = static_cast<int>(InEights(outputs));
  std::int64_t at = 0;
  for (std::size_t l = 0; l + 1 < widths_.size(); ++l) {
    weight_at_.push_back(at);
    bias_at_.push_back(at + widths_[l] * widths_[l + 1]);
    at = bias_at_.back() + widths_[l + 1];
  }
  weight_at_.push_back(at);
  // The last layer is read as one of padded_ rows: what stands behind it is read along, and its
  // results are not used. The vectors are so long that it is there to read.
  stride_ = InEights(std::max(longest, weight_at_.back() + padded_ * widths_.back()));
  const auto options = networks[0]->flat.options();
  half_ = at::zeros({count(), stride_}, options.dtype(at::kHalf));
  gradient_ = at::zeros({count(), stride_}, options);
}

std::int64_t HalfNetworks::bias_at(int network) const {
  return weight_at_.back() + widths_.back() * networks_[network]->shape.outputs;
}

std::int64_t HalfNetworks::spread_at(int network) const {
  const Network& own = *networks_[network];
  return own.std.defined() ? own.count() - own.shape.outputs : -1;
}

void HalfNetworks::Refresh() {
  at::NoGradGuard no_tape;
  for (int k = 0; k < count(); ++k) {
    half_[k].narrow(0, 0, networks_[k]->count()).copy_(networks_[k]->flat);
  }
}

Tensor HalfNetworks::Forward(const Tensor& x, HalfWorkspace* workspace) {
  const std::int64_t rows = x.size(0);
  const std::size_t hidden = widths_.size() - 1;
  const auto options = half_.options();
  SILC_CHECK(x.dim() == 2 && x.size(1) == widths_[0] && x.is_contiguous());
  workspace->h.resize(std::max(workspace->h.size(), hidden));
  Operand input{Bits(x), widths_[0], 0, false};  // the same for every network
  for (std::size_t l = 0; l < hidden; ++l) {
    const std::int64_t width = widths_[l + 1];
    const Tensor h = Room(&workspace->h[l], count() * rows * width, options);
    Product(input,
            {Bits(half_) + weight_at_[l], widths_[l], stride_, true},
            rows,
            widths_[l],
            width,
            1,
            Bits(h),
            rows * width,
            count());
    std::vector<const float*> bias;
    for (const Network* network : networks_) {
      bias.push_back(network->flat.data_ptr<float>() + bias_at_[l]);
    }
    SILC_CHECK(
        LaunchBiasElu(Bits(h), bias.data(), count(), rows, static_cast<int>(width), Stream()) == 0);
    input = {Bits(h), width, rows * width, false};
  }
  const Tensor output = Room(&output_, count() * rows * padded_, gradient_.options());
  Product(input,
          {Bits(half_) + weight_at_[hidden], widths_[hidden], stride_, true},
          rows,
          widths_[hidden],
          padded_,
          1,
          output.data_ptr<float>(),
          rows * padded_,
          count());
  return output.view({count(), rows, padded_});
}

void HalfNetworks::Backward(const Tensor& x, const Tensor& d_output, HalfWorkspace* workspace) {
  const std::int64_t rows = x.size(0);
  const std::size_t hidden = widths_.size() - 1;
  SILC_CHECK(d_output.size(1) == rows && d_output.is_contiguous());
  workspace->d.resize(std::max(workspace->d.size(), hidden));
  workspace->partial.resize(std::max(workspace->partial.size(), hidden));
  workspace->slices.resize(std::max(workspace->slices.size(), hidden + 1));
  const float mean = 1.0f / static_cast<float>(rows);
  float* gradient = gradient_.data_ptr<float>();
  std::vector<ColumnSum> sums;
  std::vector<SliceSum> weight_sums;
  Operand d{Bits(d_output), padded_, rows * padded_, false};
  std::int64_t width = padded_;
  for (std::size_t l = hidden + 1; l-- > 0;) {
    const Operand below = l == 0
                              ? Operand{Bits(x), widths_[0], 0, false}
                              : Operand{Bits(workspace->h[l - 1]), widths_[l], rows * widths_[l]};
    // ∂/∂W = dᵀ h, slice by slice; of the last layer also rows of zeros, over what is written later
    const int slices = SlicesOf(rows, width, widths_[l], l == 0 ? 1 : count());
    const std::int64_t rows_of_slice = rows / slices, size = width * widths_[l];
    const Tensor sliced = Room(&workspace->slices[l], count() * slices * size, gradient_.options());
    // slices of all networks lie one after the other, but the inputs are the same for all
    const int apart = l == 0 ? count() : 1;
    for (int k = 0; k < apart; ++k) {
      Product<float>({d.data + k * d.stride, width, rows_of_slice * width, true},
                     {below.data, widths_[l], rows_of_slice * widths_[l], false},
                     width,
                     rows_of_slice,
                     widths_[l],
                     1,
                     sliced.data_ptr<float>() + k * slices * size,
                     size,
                     slices * count() / apart);
    }
    weight_sums.push_back(
        {sliced.data_ptr<float>(), slices, size, gradient + weight_at_[l], stride_});
    if (l == 0) break;
    const Tensor d_h = Room(&workspace->d[l - 1], count() * rows * widths_[l], half_.options());
    Product(d,
            {Bits(half_) + weight_at_[l], widths_[l], stride_, false},
            rows,
            width,
            widths_[l],
            1,
            Bits(d_h),
            rows * widths_[l],
            count());
    const Tensor partial =
        Room(&workspace->partial[l - 1], count() * kTiles * widths_[l], gradient_.options());
    SILC_CHECK(LaunchEluBackward(Bits(d_h),
                                 below.data,
                                 count(),
                                 rows,
                                 static_cast<int>(widths_[l]),
                                 partial.data_ptr<float>(),
                                 Stream()) == 0);
    sums.push_back({partial.data_ptr<float>(),
                    static_cast<int>(widths_[l]),
                    gradient + bias_at_[l - 1],
                    stride_});
    d = {Bits(d_h), widths_[l], rows * widths_[l], false};
    width = widths_[l];
  }
  // weights first: the last layer's rows of zeros lie over its bias
  SILC_CHECK(
      LaunchSliceSums(
          weight_sums.data(), static_cast<int>(weight_sums.size()), count(), mean, Stream()) == 0);
  SILC_CHECK(
      LaunchColumnSums(sums.data(), static_cast<int>(sums.size()), count(), mean, Stream()) == 0);
}

}  // namespace silc
