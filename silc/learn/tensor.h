// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of LibTorch the learner uses. Included by its sources and by headers internal to them;
// config.h, vec_env.h, trainer.h, checkpoint.h and the logs do not need it.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

namespace silc {

using at::Tensor;

}  // namespace silc
