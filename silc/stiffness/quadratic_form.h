// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/base/rng.h"
#include "silc/stiffness/types.h"

namespace silc {

/// The paper's test of a budget: unit vectors drawn at random, xᵀKx against xᵀMx.
struct QuadraticFormTest {
  int samples = 0;
  int violations = 0;       ///< samples with xᵀKx > xᵀMx
  double worst_ratio = 0;   ///< [1] largest xᵀKx / xᵀMx seen
  double worst_form = 0;    ///< [N·m·rad] xᵀKx there
  double worst_budget = 0;  ///< [N·m·rad] xᵀMx there
};

/// Nearly blind in 29 dimensions: a single direction at twice the budget is met in about 5 of 100
/// 000 draws. Kept to reproduce the paper's figure; WorstEigenvalue() is the test.
/// @pre K and M n × n, M positive definite, samples > 0.
QuadraticFormTest TestQuadraticForm(const ConstMatrix& K,
                                    const ConstMatrix& M,
                                    int samples,
                                    Rng* rng);

}  // namespace silc
