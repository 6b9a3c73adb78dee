// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

namespace silc {

/// Bounds that keep every matrix of this module off the heap: storage is inside the object, the
/// size in use is chosen at run time. 64 joints cover a humanoid with two dexterous hands.
inline constexpr int kMaxDofs = 64;
/// Task rows that can be stacked: centre of mass 3, hands 3 + 3, room for one point more.
inline constexpr int kMaxTaskRows = 12;

using JointMatrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, kMaxDofs, kMaxDofs>;
using JointVector = Eigen::Matrix<double, Eigen::Dynamic, 1, Eigen::ColMajor, kMaxDofs, 1>;
using TaskMatrix = Eigen::
    Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, kMaxTaskRows, kMaxTaskRows>;
using TaskVector = Eigen::Matrix<double, Eigen::Dynamic, 1, Eigen::ColMajor, kMaxTaskRows, 1>;
/// m × nv, m ≤ kMaxTaskRows.
using TaskJacobian =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, kMaxTaskRows, kMaxDofs>;
/// 3 × nv and 6 × nv.
using Jacobian3 = Eigen::Matrix<double, 3, Eigen::Dynamic, Eigen::ColMajor, 3, kMaxDofs>;
using Jacobian6 = Eigen::Matrix<double, 6, Eigen::Dynamic, Eigen::ColMajor, 6, kMaxDofs>;

/// How inputs arrive. Column-major: a row-major argument would be copied, on the heap and in
/// silence.
using ConstMatrix = Eigen::Ref<const Eigen::MatrixXd>;
using ConstVector = Eigen::Ref<const Eigen::VectorXd>;

/// The low-level servo (S1) in docs/math/stiffness.md:
///
///     τ = Kp (q* − q) − Kd q̇,   q* = q_ref + α a,   a = π(o)                        (S1)
///
/// One entry per joint, the robot's order. A joint no action drives has alpha = 0.
struct Servo {
  JointVector kp;     // [N·m/rad]     > 0
  JointVector kd;     // [N·m·s/rad]   ≥ 0; only damping and K(jω) read it
  JointVector alpha;  // [rad]         target moved by one unit of action

  int nv() const { return static_cast<int>(kp.size()); }
};

}  // namespace silc
