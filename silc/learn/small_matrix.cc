// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/small_matrix.h"

#include "silc/base/check.h"
#ifdef SILC_HAVE_CUDA
#include <c10/cuda/CUDAStream.h>

#include "silc/learn/cuda_small_matrix.h"
#endif

namespace silc {
namespace {

#ifdef SILC_HAVE_CUDA
bool ForOurKernels(const Tensor& A) {
  return A.is_cuda() && A.scalar_type() == at::kFloat && A.size(-1) <= kMaxSmallMatrix;
}
#endif

}  // namespace

SymmetricEigen EigenOf(const Tensor& A) {
  SILC_CHECK(A.dim() == 3 && A.size(1) == A.size(2));
#ifdef SILC_HAVE_CUDA
  if (ForOurKernels(A)) {
    const Tensor a = A.contiguous();
    SymmetricEigen result{at::empty({a.size(0), a.size(1)}, a.options()), at::empty_like(a)};
    SILC_CHECK(LaunchSymmetricEigen(a.data_ptr<float>(),
                                    static_cast<int>(a.size(0)),
                                    static_cast<int>(a.size(1)),
                                    result.values.data_ptr<float>(),
                                    result.vectors.data_ptr<float>(),
                                    c10::cuda::getCurrentCUDAStream().stream()) == 0);
    return result;
  }
#endif
  const auto [values, vectors] = at::linalg_eigh(A);
  return {values.flip(1), vectors.transpose(1, 2).flip(1)};
}

Singular SingularOf(const Tensor& A) {
  SILC_CHECK(A.dim() == 3 && A.size(1) <= A.size(2));
  const auto shortest = [](const Tensor& sigma) { return sigma.clamp_min(1e-12).unsqueeze(2); };
  Singular result;
#ifdef SILC_HAVE_CUDA
  if (ForOurKernels(A) && A.size(1) == A.size(2)) {
    const Tensor a = A.contiguous(), rows = at::empty_like(a);
    result.sigma = at::empty({a.size(0), a.size(1)}, a.options());
    SILC_CHECK(LaunchSingular(a.data_ptr<float>(),
                              static_cast<int>(a.size(0)),
                              static_cast<int>(a.size(1)),
                              result.sigma.data_ptr<float>(),
                              rows.data_ptr<float>(),
                              c10::cuda::getCurrentCUDAStream().stream()) == 0);
    result.v = rows / shortest(result.sigma);
    result.u = at::matmul(result.v, a.transpose(1, 2)) / shortest(result.sigma);
    return result;
  }
#endif
  const SymmetricEigen eigen = EigenOf(at::matmul(A, A.transpose(1, 2)));
  result.sigma = eigen.values.clamp_min(0).sqrt();
  result.u = eigen.vectors;
  result.v = at::matmul(result.u, A) / shortest(result.sigma);
  return result;
}

Tensor InverseOf(const Tensor& A) {
  SILC_CHECK(A.dim() == 3 && A.size(1) == A.size(2));
#ifdef SILC_HAVE_CUDA
  if (ForOurKernels(A)) {
    const Tensor a = A.contiguous();
    const Tensor inverse = at::empty_like(a);
    SILC_CHECK(LaunchInverse(a.data_ptr<float>(),
                             static_cast<int>(a.size(0)),
                             static_cast<int>(a.size(1)),
                             inverse.data_ptr<float>(),
                             c10::cuda::getCurrentCUDAStream().stream()) == 0);
    return inverse;
  }
#endif
  return std::get<0>(at::linalg_inv_ex(A));
}

}  // namespace silc
