// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <vector>

#include "silc/certify/activation_bounds.h"
#include "silc/policy/mlp.h"

namespace silc {

/// An MLP in double precision, its normaliser taken as it is between its clips:
/// x ↦ branch(scale ∘ x + shift), each branch D_L W_L … D_1 W_1 in its Jacobian.
struct DenseNetwork {
  struct Layer {
    Eigen::MatrixXd W;  // outputs × inputs
    Eigen::VectorXd b;
    Activation activation = Activation::kNone;
    double alpha = 1;
  };
  int inputs = 0, outputs = 0;
  Eigen::VectorXd scale, shift;         // of the normaliser, per input
  Eigen::VectorXd clip_low, clip_high;  // the observation between these meets no clip of it
  std::vector<std::vector<Layer>> branches;
};
DenseNetwork MakeDenseNetwork(const MlpNetwork& network);

/// The box, as an image of a cube:  x = centre + R t,  |t_j| ≤ 1 for every symbol j.         (C1)
struct ObservationBox {
  struct Entry {
    int input;
    int symbol;
    double radius;
  };
  Eigen::VectorXd centre;      // inputs
  std::vector<Entry> entries;  // of R
  int symbols = 0;
};

/// One layer on a box. Over the box its slopes φ′ are
///
///     d(t) = slope + tilt t + own ∘ η,    |η_k| ≤ 1, one η for each unit                     (C3)
struct LayerRelaxation {
  Eigen::VectorXd slope;      // units
  Eigen::MatrixXd tilt;       // units × symbols
  Eigen::VectorXd own;        // units  ≥ 0
  Eigen::VectorXd spread;     // units  ≥ |d − slope| over the box
  Eigen::VectorXd low, high;  // of what the activation is given
  bool is_constant = false;   // spread is zero throughout
};

/// All layers of one branch on a box. Affine arithmetic: every quantity is a centre, a line in the
/// symbols of the box, and lines in the errors of the activations before it, with all rounding of
/// the computation inside those errors. Where a number overflows, own, spread, low and high of that
/// unit and of all units of later layers are infinite.
std::vector<LayerRelaxation> RelaxBranch(const DenseNetwork& network,
                                         int branch,
                                         const ObservationBox& box);

/// The slopes of every layer at one observation: (C3) of a box of radius zero, without bounds.
std::vector<Eigen::VectorXd> BranchSlopes(const DenseNetwork& network,
                                          int branch,
                                          const Eigen::VectorXd& x);

}  // namespace silc
