// SPDX-License-Identifier: Apache-2.0
#include "silc/lqr/riccati.h"

#include <Eigen/LU>
#include <unsupported/Eigen/MatrixFunctions>

#include "silc/base/check.h"
#include "silc/base/error.h"

namespace silc {

using Eigen::MatrixXd;

SampledSystem SampleSystem(const MatrixXd& A_c, const MatrixXd& B_c, double period) {
  SILC_CHECK(A_c.rows() == A_c.cols() && A_c.rows() == B_c.rows());
  const Eigen::Index nx = A_c.rows(), nu = B_c.cols();
  // exp of [A B; 0 0] T holds both the state map and the integral that a held input drives
  MatrixXd joined = MatrixXd::Zero(nx + nu, nx + nu);
  joined.topLeftCorner(nx, nx) = A_c * period;
  joined.topRightCorner(nx, nu) = B_c * period;
  const MatrixXd flow = joined.exp();
  return {flow.topLeftCorner(nx, nx), flow.topRightCorner(nx, nu)};
}

MatrixXd RegulatorGain(const SampledSystem& system, const MatrixXd& Q, const MatrixXd& R) {
  const Eigen::Index nx = system.A.rows();
  SILC_CHECK(system.B.rows() == nx && Q.rows() == nx && Q.cols() == nx);
  SILC_CHECK(R.rows() == system.B.cols() && R.cols() == system.B.cols());
  const MatrixXd identity = MatrixXd::Identity(nx, nx);

  // A_k is the closed loop over 2^k samples, X_k the cost-to-go of that horizon
  MatrixXd A = system.A, X = Q;
  MatrixXd G = system.B * R.ldlt().solve(system.B.transpose());
  constexpr int kMaxDoublings = 60;
  for (int k = 0;; ++k) {
    if (k == kMaxDoublings || !X.allFinite()) {
      throw RunError(
          "the standing regulator does not exist: a falling mode is out of the joints' reach");
    }
    const Eigen::PartialPivLU<MatrixXd> step(identity + G * X);
    const MatrixXd V = step.solve(A);
    const MatrixXd increment = A.transpose() * X * V;
    const MatrixXd G_next = G + A * step.solve(G) * A.transpose();
    A = A * V;
    G = (G_next + G_next.transpose()) / 2;
    X += (increment + increment.transpose()) / 2;
    // entrywise: the sum of squares in a norm would overflow long before a diverging X does
    if (X.allFinite() && increment.cwiseAbs().maxCoeff() <= 1e-14 * X.cwiseAbs().maxCoeff()) break;
  }
  const MatrixXd BtX = system.B.transpose() * X;
  return (R + BtX * system.B).ldlt().solve(BtX * system.A);
}

}  // namespace silc
