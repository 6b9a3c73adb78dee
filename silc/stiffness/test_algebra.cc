// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/test_algebra.h"

namespace silc::test::eager {
namespace {

using Complex = std::complex<double>;

template <typename Scalar>
const Scalar& At(const Entries<Scalar>& m, Index i, Index j) {
  return m.data[i * m.row_step + j * m.col_step];
}

template <typename Scalar>
void MultiplyEntries(const Entries<Scalar>& a, const Entries<Scalar>& b, Scalar* out) {
  for (Index j = 0; j < b.cols; ++j, out += a.rows) {
    for (Index i = 0; i < a.rows; ++i) out[i] = 0;
    for (Index k = 0; k < a.cols; ++k) {
      for (Index i = 0; i < a.rows; ++i) out[i] += At(a, i, k) * At(b, k, j);
    }
  }
}

template <typename Scalar>
void CombineEntries(
    double s, const Entries<Scalar>& a, double t, const Entries<Scalar>& b, Scalar* out) {
  for (Index j = 0; j < a.cols; ++j) {
    for (Index i = 0; i < a.rows; ++i) *out++ = s * At(a, i, j) + t * At(b, i, j);
  }
}

template <typename Scalar>
void ScaleEntries(double s, const Entries<Scalar>& a, Scalar* out) {
  for (Index j = 0; j < a.cols; ++j) {
    for (Index i = 0; i < a.rows; ++i) *out++ = s * At(a, i, j);
  }
}

}  // namespace

void Multiply(const Entries<double>& a, const Entries<double>& b, double* out) {
  MultiplyEntries(a, b, out);
}
void Multiply(const Entries<Complex>& a, const Entries<Complex>& b, Complex* out) {
  MultiplyEntries(a, b, out);
}
void Combine(double s, const Entries<double>& a, double t, const Entries<double>& b, double* out) {
  CombineEntries(s, a, t, b, out);
}
void Combine(
    double s, const Entries<Complex>& a, double t, const Entries<Complex>& b, Complex* out) {
  CombineEntries(s, a, t, b, out);
}
void Scale(double s, const Entries<double>& a, double* out) { ScaleEntries(s, a, out); }
void Scale(double s, const Entries<Complex>& a, Complex* out) { ScaleEntries(s, a, out); }

}  // namespace silc::test::eager
