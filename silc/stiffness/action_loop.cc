// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/action_loop.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "silc/base/check.h"
#include "silc/base/rng.h"

namespace silc {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// A radius this close to one cannot be told from one: eigenvalues carry about nv·H·ε ≈ 1e-13, more
// when they are defective.
constexpr double kMargin = 1e-9;
constexpr int kArnoldiSteps = 16;
constexpr int kColdSteps =
    48;                        // power steps that clear the fast modes out of a random start vector
constexpr int kWarmSteps = 6;  // the same from the last call's vector
constexpr double kRandomPart = 1e-3;
constexpr int kBoundSteps = 6;

}  // namespace

ActionLoop::ActionLoop(int nv, int frames) : nv_(nv) {
  SILC_CHECK(nv > 0 && frames > 0);
  absolute_.resize(nv, nv);
  direction_.resize(nv);
  image_.resize(nv);
  Resize(frames);
}

void ActionLoop::Resize(int frames) {
  frames_ = frames;
  const int size = nv_ * frames;
  const int steps = std::min(kArnoldiSteps, size);
  blocks_.setZero(nv_, size);
  companion_.setZero(size, size);
  krylov_.resize(size, steps + 1);
  hessenberg_.resize(steps + 1, steps);
  ritz_matrix_.resize(steps, steps);
  work_.resize(size);
  random_.resize(size);
  Rng rng(0x51c);  // any vector will do as long as it is the same one every time
  for (int k = 0; k < size; ++k) random_[k] = rng.Uniform(-1, 1);
  random_.normalize();
  warm_ = false;
  // run once on zeros: Eigen leaves the status of a solver that never ran uninitialised, and
  // copying that is undefined
  schur_ = Eigen::RealSchur<Eigen::MatrixXd>(Eigen::MatrixXd::Zero(size, size), false);
  ritz_ = Eigen::EigenSolver<Eigen::MatrixXd>(Eigen::MatrixXd::Zero(steps, steps));
}

// blocks_ = [A_0 A_1 …], A_i = J_a[i] + J_tau[i] Kp α. False when there is no loop at all.
bool ActionLoop::Gather(const Servo& servo, const PolicyJacobians& jacobians, bool torque) {
  SILC_CHECK(servo.nv() == nv_ && servo.alpha.size() == nv_);
  const int actions = static_cast<int>(jacobians.J_a.size());
  const int torques = torque ? static_cast<int>(jacobians.J_tau.size()) : 0;
  const int used = std::max(actions, torques);
  if (used == 0) return false;
  if (used > frames_) Resize(used);
  for (int i = 0; i < frames_; ++i) {
    auto block = blocks_.middleCols(i * nv_, nv_);
    if (i < actions) {
      SILC_CHECK(jacobians.J_a[i].rows() == nv_ && jacobians.J_a[i].cols() == nv_);
      block = jacobians.J_a[i];
    } else {
      block.setZero();
    }
    if (i < torques) {
      SILC_CHECK(jacobians.J_tau[i].rows() == nv_ && jacobians.J_tau[i].cols() == nv_);
      for (int k = 0; k < nv_; ++k) {
        block.col(k) += servo.kp[k] * servo.alpha[k] * jacobians.J_tau[i].col(k);
      }
    }
  }
  return true;
}

// Σ|A_i| = T. If T d ≤ t d for a positive d and t < 1, then with r = t^{1/H} the entrywise bound
// Σ|A_i| r^{−i−1} d ≤ r^{−H} T d ≤ d holds, so no |z| > r solves det(I − Σ A_i z^{−i−1}) = 0.
double ActionLoop::ProvenBound() {
  absolute_ = blocks_.leftCols(nv_).cwiseAbs();
  for (int i = 1; i < frames_; ++i) absolute_ += blocks_.middleCols(i * nv_, nv_).cwiseAbs();
  direction_.setOnes();
  double best = std::numeric_limits<double>::infinity();
  for (int step = 0; step < kBoundSteps; ++step) {
    image_.noalias() = absolute_ * direction_;
    best = std::min(best, (image_.array() / direction_.array()).maxCoeff());
    if (best < 1 - kMargin) return std::pow(best, 1.0 / frames_);
    // towards the Perron vector; the floor keeps it positive
    direction_ = image_ / image_.maxCoeff();
    direction_.array() += 1e-3;
  }
  return std::numeric_limits<double>::infinity();
}

// krylov_.col(to) = companion · krylov_.col(from): the history shifts, the new action comes in
// front.
void ActionLoop::Advance(int from, int to) {
  const Eigen::Index older = krylov_.rows() - nv_;
  krylov_.col(to).tail(older) = krylov_.col(from).head(older);
  krylov_.col(to).head(nv_).noalias() = blocks_ * krylov_.col(from);
}

// Largest Ritz value of the companion matrix in a Krylov space; true when it has settled clearly
// inside the circle.
bool ActionLoop::Arnoldi(double* rho) {
  const int steps = static_cast<int>(hessenberg_.cols());
  if (warm_) {
    krylov_.col(0) += kRandomPart * random_;
  } else {
    krylov_.col(0) = random_;
  }
  for (int k = 0, count = warm_ ? kWarmSteps : kColdSteps; k < count; ++k) {
    Advance(0, 1);
    const double norm = krylov_.col(1).norm();
    if (!(norm > 0)) break;  // nilpotent along this vector: Arnoldi will say so
    krylov_.col(0) = krylov_.col(1) / norm;
  }
  krylov_.col(0).normalize();
  warm_ = true;
  hessenberg_.setZero();

  int used = steps;
  double next = 0;
  for (int j = 0; j < steps; ++j) {
    Advance(j, j + 1);
    auto v = krylov_.col(j + 1);
    auto h = hessenberg_.col(j).head(j + 1);
    h.noalias() = krylov_.leftCols(j + 1).transpose() * v;
    v.noalias() -= krylov_.leftCols(j + 1) * h;
    next = v.norm();
    hessenberg_(j + 1, j) = next;
    if (!(next > 1e-12 * h.norm())) {  // the space is invariant
      used = j + 1;
      next = 0;
      break;
    }
    v /= next;
  }
  ritz_matrix_.setZero();
  ritz_matrix_.topLeftCorner(used, used) = hessenberg_.topLeftCorner(used, used);
  ritz_.compute(ritz_matrix_, true);
  if (ritz_.info() != Eigen::Success) return false;

  const auto& values = ritz_.eigenvalues();
  int top = 0;
  for (int k = 1; k < values.size(); ++k) {
    if (std::abs(values[k]) > std::abs(values[top])) top = k;
  }
  *rho = std::abs(values[top]);
  // residual of that Ritz pair: next · |last entry of its eigenvector|; a complex pair is stored as
  // the real and the imaginary part in neighbouring columns
  const auto& vectors = ritz_.pseudoEigenvectors();
  double last = std::abs(vectors(used - 1, top)), norm = vectors.col(top).norm();
  if (values[top].imag() != 0) {
    const int twin = values[top].imag() > 0 ? top + 1 : top - 1;
    last = std::hypot(last, vectors(used - 1, twin));
    norm = std::hypot(norm, vectors.col(twin).norm());
  }
  return *rho + 3 * next * last / norm < 1 - kMargin;
}

ActionLoopRadius ActionLoop::Schur() {
  const int size = static_cast<int>(companion_.rows());
  companion_.setZero();
  companion_.topRows(nv_) = blocks_;
  for (int k = nv_; k < size; ++k) companion_(k, k - nv_) = 1;
  schur_.compute(companion_, false);
  if (schur_.info() != Eigen::Success) {
    return {StiffnessStatus::kNoConvergence, kNan, ActionLoopMethod::kExact};
  }
  // eigenvalues of the quasi-triangular factor: 1 × 1 and 2 × 2 blocks
  const Eigen::MatrixXd& T = schur_.matrixT();
  double rho = 0;
  for (int k = 0; k < size;) {
    if (k + 1 < size && T(k + 1, k) != 0) {
      // a complex pair has modulus √det; real pairs were split by the decomposition
      rho =
          std::max(rho, std::sqrt(std::abs(T(k, k) * T(k + 1, k + 1) - T(k, k + 1) * T(k + 1, k))));
      k += 2;
    } else {
      rho = std::max(rho, std::abs(T(k, k)));
      k += 1;
    }
  }
  const bool stable = rho < 1 - kMargin;
  return {stable ? StiffnessStatus::kOk : StiffnessStatus::kUnstableActionLoop,
          rho,
          ActionLoopMethod::kExact};
}

ActionLoopRadius ActionLoop::Exact(const Servo& servo,
                                   const PolicyJacobians& jacobians,
                                   bool torque) {
  if (!Gather(servo, jacobians, torque)) return {StiffnessStatus::kOk, 0, ActionLoopMethod::kNone};
  if (!blocks_.allFinite()) {
    return {StiffnessStatus::kNotFinite, kNan, ActionLoopMethod::kExact};
  }
  return Schur();
}

ActionLoopRadius ActionLoop::Fast(const Servo& servo,
                                  const PolicyJacobians& jacobians,
                                  bool torque) {
  if (!Gather(servo, jacobians, torque)) return {StiffnessStatus::kOk, 0, ActionLoopMethod::kNone};
  if (!blocks_.allFinite()) {
    return {StiffnessStatus::kNotFinite, kNan, ActionLoopMethod::kBound};
  }
  const double bound = ProvenBound();
  if (bound < 1) return {StiffnessStatus::kOk, bound, ActionLoopMethod::kBound};
  double rho = 0;
  if (Arnoldi(&rho)) return {StiffnessStatus::kOk, rho, ActionLoopMethod::kArnoldi};
  return Schur();
}

}  // namespace silc
