// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <Eigen/Geometry>
#include <functional>
#include <vector>

#include "silc/base/rng.h"
#include "silc/stiffness/action_loop.h"
#include "silc/stiffness/budget.h"
#include "silc/stiffness/contact_jacobian.h"
#include "silc/stiffness/joint_stiffness.h"
#include "silc/stiffness/policy_jacobians.h"
#include "silc/stiffness/test_algebra.h"
#include "silc/stiffness/types.h"

/// Random matrices, plain references and a small floating-base robot for the tests of this folder.
/// References are slow and obvious on purpose, and share no code with what is tested. The bodies
/// are in the .cc file, because each of Eigen's decompositions takes seconds to compile.
namespace silc::test {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd RandomMatrix(int rows, int cols, Rng* rng, double scale = 1);

/// Symmetric with eigenvalues drawn log-uniformly from [low, high].
MatrixXd RandomSpd(int n, Rng* rng, double low = 0.1, double high = 10);

MatrixXd Sym(const MatrixXd& A);
MatrixXd Skew(const MatrixXd& A);

/// Largest singular value, by Jacobi rotations: not the eigenvalues of AᵀA that the code uses.
double SpectralNorm(const MatrixXd& A);
double MaxEigenvalue(const MatrixXd& S);
double MinEigenvalue(const MatrixXd& S);
VectorXd SingularValues(const MatrixXd& A);  // largest first
/// Of a symmetric matrix, of a Hermitian one, and the λ of S x = λ M x; smallest first.
VectorXd Eigenvalues(const MatrixXd& S);
VectorXd Eigenvalues(const Eigen::MatrixXcd& S);
VectorXd Eigenvalues(const MatrixXd& S, const MatrixXd& M);
/// A ≤ B in Loewner's order, up to rounding of the larger.
bool LoewnerLessEqual(const MatrixXd& A, const MatrixXd& B, double tolerance = 1e-9);
MatrixXd Inverse(const MatrixXd& A);
/// M⁻¹ B, M symmetric and positive definite.
MatrixXd SolveSpd(const MatrixXd& M, const MatrixXd& B);
MatrixXd LowerCholesky(const MatrixXd& M);
MatrixXd SqrtSpd(const MatrixXd& M);
/// A⁻¹ B by elimination with full pivoting, for matrices with entries of all sizes.
MatrixXd Solve(const MatrixXd& A, const MatrixXd& B);
/// Moore and Penrose's; times a vector the shortest of the best solutions.
MatrixXd PseudoInverse(const MatrixXd& A);
/// The first columns, as many as A has, of the Q of its QR factorisation.
MatrixXd OrthonormalColumns(const MatrixXd& A);
/// Orthonormal basis of ker A, from the trailing right singular vectors.
MatrixXd Kernel(const MatrixXd& A);

Servo RandomServo(int n, Rng* rng);

/// Gains of the size a trained policy has; the action loop is stable by its norm.
PolicyJacobians RandomPolicy(int n, int frames, Rng* rng, bool torque = false, bool base = false);

/// ∂f/∂x by central differences; the error is about h² of the third derivative plus 1e-16/h of the
/// value.
MatrixXd Difference(const std::function<double(const MatrixXd&)>& f, const MatrixXd& x, double h);

/// A budget with a name.
struct NamedBudget {
  const char* name;
  BudgetSpec spec;
};

/// The numbers of the paper's Table I and of its hand-load experiment (section V-B2).
const std::vector<NamedBudget>& PaperModes();

/// (S3) of a policy, and whether it is valid: the library's two calls as one.
StiffnessStatus QuasiStaticStiffness(const Servo& servo,
                                     const PolicyJacobians& jacobians,
                                     const StaticChannels& channels,
                                     StaticStiffness* out,
                                     ActionLoopRadius* radius = nullptr);

/// A humanoid of stick and point masses: two legs of six joints, two arms of four, 20 in all.
/// Everything comes from forward kinematics; Jacobians are differences of it.
class StickHumanoid {
 public:
  static constexpr int kJoints = 20;

  struct Pose {
    Eigen::Isometry3d T_WB = Eigen::Isometry3d::Identity();
    VectorXd q = VectorXd::Zero(kJoints);
  };
  struct Frames {
    Eigen::Isometry3d foot[2], hand[2];  // in W
    Eigen::Vector3d com;
  };

  static Frames Forward(const Pose& pose);

  /// Knees and elbows bent, nothing symmetric, nothing aligned.
  static Pose Stance(Rng* rng, double knee = 0.6);

  /// Moves by velocities × 1: base linear in W, base angular in B, joints; as MuJoCo integrates
  /// qvel.
  static Pose Moved(const Pose& pose, const VectorXd& v);

  static Eigen::Vector3d RotationVector(const Eigen::Matrix3d& R);

  /// Floating-base Jacobians by central differences, error about 1e-9.
  static BodyJacobians Jacobians(const Pose& pose);
};

}  // namespace silc::test
