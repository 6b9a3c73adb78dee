// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/quadratic_form.h"

#include <limits>

#include "silc/base/check.h"

namespace silc {

QuadraticFormTest TestQuadraticForm(const ConstMatrix& K,
                                    const ConstMatrix& M,
                                    int samples,
                                    Rng* rng) {
  const int n = static_cast<int>(K.rows());
  SILC_CHECK(K.cols() == n && M.rows() == n && M.cols() == n && n <= kMaxDofs && samples > 0);
  QuadraticFormTest test;
  test.samples = samples;
  test.worst_ratio = -std::numeric_limits<double>::infinity();
  JointVector x(n);
  for (int s = 0; s < samples; ++s) {
    // a normal vector has no preferred direction
    for (int i = 0; i < n; ++i) x[i] = rng->Normal();
    x.normalize();
    const double form = x.dot(K * x), budget = x.dot(M * x);
    if (form > budget) ++test.violations;
    if (form / budget > test.worst_ratio) {
      test.worst_ratio = form / budget;
      test.worst_form = form;
      test.worst_budget = budget;
    }
  }
  return test;
}

}  // namespace silc
