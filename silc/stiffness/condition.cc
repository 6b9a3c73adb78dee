// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/condition.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "silc/base/check.h"

namespace silc {
namespace {

// Largest root of det(x I − T), T symmetric tridiagonal. The pivots p_i = x − d_i −
// e²_{i−1}/p_{i−1} of x I − T are all positive exactly when x lies above every eigenvalue; from
// there Newton's steps on the determinant, Π p_i, fall monotonically to the largest one. A tenth of
// the time of all n.
double LargestOfTridiagonal(int n, const double* d, const double* e) {
  // whether x is above all eigenvalues; then Σ p_i'/p_i = (log det)'
  const auto above = [&](double x, double* slope) {
    double pivot = x - d[0], derivative = 1;
    if (!(pivot > 0)) return false;
    *slope = derivative / pivot;
    for (int i = 1; i < n; ++i) {
      const double ratio = e[i - 1] / pivot;
      derivative = 1 + ratio * ratio * derivative;
      pivot = x - d[i] - e[i - 1] * ratio;
      if (!(pivot > 0)) return false;
      *slope += derivative / pivot;
    }
    return true;
  };
  constexpr int kHalvings = 200;  // some twelve are taken; bisection alone needs under 60
  // Gershgorin's discs above, the largest diagonal entry below
  double low = d[0], high = d[0], slope = 0;
  for (int i = 0; i < n; ++i) {
    const double radius = (i > 0 ? std::abs(e[i - 1]) : 0) + (i + 1 < n ? std::abs(e[i]) : 0);
    low = std::max(low, d[i]);
    high = std::max(high, d[i] + radius);
  }
  // Newton's first steps from afar are short, n of them for one halving, and so they are where
  // roots coincide: bisect until they are not
  double last = high - low;
  for (int k = 0; k < kHalvings && above(high, &slope); ++k) {
    const double step = 1 / slope;
    if (!(high - step < high)) break;
    if (step < 0.25 * last) {
      high -= step;
      last = step;
    } else {
      const double middle = 0.5 * (low + high);
      if (!(low < middle && middle < high)) break;
      (above(middle, &slope) ? high : low) = middle;
      last = std::min(last, 8 * step);
    }
  }
  return high;
}

}  // namespace

const char* Name(Condition condition) {
  switch (condition) {
    case Condition::kOneSided:
      return "one-sided";
    case Condition::kTwoSided:
      return "two-sided";
    case Condition::kDisc:
      return "disc";
  }
  return "unknown condition";
}

StiffnessStatus LargestEigenvalue(const JointMatrix& symmetric, double* lambda) {
  SILC_CHECK(symmetric.rows() == symmetric.cols() && symmetric.rows() > 0);
  if (!symmetric.allFinite()) return StiffnessStatus::kNotFinite;
  const int n = static_cast<int>(symmetric.rows());
  double d[kMaxDofs] = {symmetric(0, 0)}, e[kMaxDofs] = {};
  if (n > 1) {
    const Eigen::Tridiagonalization<JointMatrix> tridiagonal(symmetric);
    for (int i = 0; i < n; ++i) d[i] = tridiagonal.diagonal()[i];
    for (int i = 0; i + 1 < n; ++i) e[i] = tridiagonal.subDiagonal()[i];
  }
  *lambda = LargestOfTridiagonal(n, d, e);
  return StiffnessStatus::kOk;
}

}  // namespace silc
