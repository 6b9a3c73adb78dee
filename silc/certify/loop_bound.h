// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include "silc/certify/matrix_bounds.h"

namespace silc {

/// A bound on the spectral radius of every action loop a_t = Σ_i A_i a_{t−1−i} of a set: the
/// companion matrices C = C̄ + e Δ, e the first block column of the identity, Δ from `change`. All
/// have ρ(C) < r when there is a P ≻ 0 with
///
///     [ C̄ᵀP C̄ − r² (P − Y)    C̄ᵀP e L        ]
///     [ Lᵀeᵀ P C̄              Lᵀeᵀ P e L − r² I ] ≺ 0,     L Lᵀ ⪰ X                           (C9)
///
/// with (X, Y) of (C4): vᵀP v is then a Lyapunov function of all of them at once. P comes from a
/// Riccati equation; what is believed is a Cholesky factorisation of the matrix above.
///
/// @param A       n × n·H  [Ā_0 Ā_1 …]
/// @param change  of [A_0 A_1 …] − A:  X n × n, Y n·H × n·H
/// @param steps   halvings of the interval between ρ(C̄) and 1 in which r is looked for; 0: r = 1
/// @return the smallest r ≤ 1 that was shown; infinite: none.
double LoopRadiusBound(const Eigen::MatrixXd& A, const FormBound& change, int steps);

/// ρ of one loop, as eigenvalues are computed; NaN where they are not.
double LoopRadius(const Eigen::MatrixXd& A);

}  // namespace silc
