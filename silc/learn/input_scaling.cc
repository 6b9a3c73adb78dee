// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/input_scaling.h"

#include "silc/base/check.h"

namespace silc {
namespace {

// An input that hardly moves is not blown up beyond 20: it may move on the robot.
constexpr double kSmallestSpread = 0.05;

}  // namespace

InputScaling InputScaling::Make(std::int64_t inputs, const at::TensorOptions& options) {
  const auto wide = options.dtype(at::kDouble);
  return {.count = at::zeros({}, wide),
          .mean = at::zeros({inputs}, wide),
          .square = at::zeros({inputs}, wide),
          .shift = at::zeros({inputs}, options),
          .scale = at::ones({inputs}, options)};
}

void InputScaling::Add(const Tensor& x) {
  SILC_CHECK(x.dim() == 2 && x.size(1) == mean.size(0) && x.size(0) > 0);
  AddMoments(x.size(0), Moments(x));
}

Tensor InputScaling::Moments(const Tensor& x) {
  at::NoGradGuard no_tape;
  // two passes: a mean in float is good to its last digits, squares of what is left are small
  const Tensor own_mean = x.mean(0), own = (x - own_mean).square().sum(0);
  return at::stack({own_mean, own}).to(at::kDouble);
}

void InputScaling::AddMoments(std::int64_t samples, const Tensor& moments) {
  at::NoGradGuard no_tape;
  const double n = static_cast<double>(samples);
  const Tensor own = moments[1];
  const Tensor total = count + n, apart = moments[0] - mean;
  square.add_(own + apart.square() * (count * n / total));
  mean.add_(apart * (n / total));
  count.copy_(total);
  shift.copy_(mean);
  scale.copy_((square / count + kSmallestSpread * kSmallestSpread).rsqrt());
}

Layers InputScaling::Apply(const Layers& layers) const {
  Layers folded = layers;
  folded.weight[0] = layers.weight[0] * scale;
  folded.bias[0] = layers.bias[0] - at::mv(folded.weight[0], shift);
  return folded;
}

}  // namespace silc
