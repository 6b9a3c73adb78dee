// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <vector>

namespace silc {

/// How the action answers to small changes of what the policy observed, at one observation.
///
/// Frame i is i control steps old: 0 is the newest. Every block is the derivative with respect to
/// the physical quantity, so observation scales, offsets and normalisers are already inside, and
/// columns are in the robot's joint order. A policy that does not observe a quantity leaves its
/// list empty.
///
///     δa_t = Σ_i  J_q[i] δq_{t−i} + J_v[i] δq̇_{t−i} + J_a[i] δa_{t−1−i} + J_tau[i] δτ_{t−i}
///                 + J_g[i] δg_{t−i} + J_w[i] δω_{t−i}
///
/// nu actions (the robot's joint order), nv joints. The stiffness functions want nu = nv: a joint
/// that no action drives has a zero row (and α = 0 in the servo).
struct PolicyJacobians {
  std::vector<Eigen::MatrixXd> J_q;    // [1/rad]      nu × nv   joint position
  std::vector<Eigen::MatrixXd> J_v;    // [s/rad]      nu × nv   joint velocity
  std::vector<Eigen::MatrixXd> J_a;    // [1]          nu × nu   action of step t−1−i
  std::vector<Eigen::MatrixXd> J_tau;  // [1/(N·m)]    nu × nv   joint torque
  std::vector<Eigen::MatrixXd>
      J_g;  // [1]          nu × 3    unit gravity vector in the base frame B
  std::vector<Eigen::MatrixXd> J_w;  // [s/rad]      nu × 3    base angular velocity in B
};

/// What K₁ (S2) and K_s (S3) need of the Jacobians: the newest frame's J_q, and the blocks summed
/// over the frames. Cheaper than the list of all frames, because a sum of frames is one set of
/// columns. A policy that does not observe a quantity leaves its sum at zero size.
struct SummedJacobians {
  Eigen::MatrixXd J_q0;   // [1/rad]     nu × nv   newest frame alone
  Eigen::MatrixXd S_q;    // [1/rad]     nu × nv   Σ_i J_q[i]
  Eigen::MatrixXd S_a;    // [1]         nu × nu   Σ_i J_a[i]
  Eigen::MatrixXd S_tau;  // [1/(N·m)]   nu × nv   Σ_i J_tau[i]
  Eigen::MatrixXd S_g;    // [1]         nu × 3    Σ_i J_g[i]
};

/// Σ_i blocks[i], written into `sum`, which has its size already (zero when the list is empty).
/// Does not allocate.
void SumFrames(const std::vector<Eigen::MatrixXd>& blocks, Eigen::Ref<Eigen::MatrixXd> sum);

}  // namespace silc
