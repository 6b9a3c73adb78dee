// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/stiffness/action_loop.h"
#include "silc/stiffness/test_support.h"

namespace silc::test {

/// ρ of a_t = Σ_i A_i a_{t−1−i}, A = [A_0 A_1 …], as the observer has it: by a Schur decomposition.
inline double ObserversRadius(const MatrixXd& A) {
  const int n = static_cast<int>(A.rows()), frames = static_cast<int>(A.cols()) / n;
  PolicyJacobians jacobians;
  for (int i = 0; i < frames; ++i) jacobians.J_a.emplace_back(A.middleCols(i * n, n));
  Servo servo;
  servo.kp = servo.kd = servo.alpha = VectorXd::Ones(n);
  return ActionLoop(n, frames).Exact(servo, jacobians, false).rho;
}

}  // namespace silc::test
