// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/action_loop.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "silc/base/check.h"
#include "silc/base/nan.h"
#include "silc/base/rng.h"
#include "silc/stiffness/vector_kernel.h"

namespace silc {
namespace {

// A radius this close to one cannot be told from one: eigenvalues carry about nv·H·ε ≈ 1e-13, more
// when they are defective.
constexpr double kMargin = 1e-9;
constexpr int kForwardSteps = 20;     // f: powers of C on the random vector
constexpr int kInverse = 8;           // p: dimensions the space grows by (I − C)⁻¹
constexpr int kForward = 4;           // then by C; two at least, see Project()
constexpr int kLongForward = 24;      // where that leaves it open
constexpr double kTrust = 10;         // residuals a Ritz value keeps from the circle
constexpr double kWatched = 0.9;      // Ritz values beyond this have to keep that distance
constexpr double kInvariant = 1e-12;  // what is left of a column in an invariant space, relative
constexpr int kBoundSteps = 6;

int Padded(int n) { return (n + kVectorLanes - 1) / kVectorLanes * kVectorLanes; }

// In place, since a temporary would come from the heap.
void TurnAboutAntidiagonal(Eigen::MatrixXd* A) {
  const Eigen::Index last = A->rows() - 1;
  for (Eigen::Index j = 0; j <= last; ++j) {
    for (Eigen::Index i = 0; i + j < last; ++i) std::swap((*A)(i, j), (*A)(last - j, last - i));
  }
}

// Calls visit(θ) for the eigenvalues of a quasi-triangular matrix, of complex pairs the upper one.
template <typename Visitor>
void ForEachEigenvalue(const Eigen::MatrixXd& T, int size, const Visitor& visit) {
  for (int k = 0; k < size;) {
    if (k + 1 < size && T(k + 1, k) != 0) {
      // real pairs were split by the decomposition: this one is complex
      const double mean = 0.5 * (T(k, k) + T(k + 1, k + 1));
      const double half = 0.5 * (T(k, k) - T(k + 1, k + 1));
      const double square = half * half + T(k, k + 1) * T(k + 1, k);
      visit(std::complex<double>(mean, std::sqrt(std::max(0.0, -square))));
      k += 2;
    } else {
      visit(std::complex<double>(T(k, k), 0));
      k += 1;
    }
  }
}

// Frames that feed back on the next action.
std::size_t FramesUsed(const PolicyJacobians& jacobians, bool torque) {
  return std::max(jacobians.J_a.size(), torque ? jacobians.J_tau.size() : 0);
}

}  // namespace

ActionLoop::ActionLoop(int nv, int frames) : nv_(nv) {
  SILC_CHECK(nv > 0 && nv <= kMaxDofs && frames > 0);
  absolute_.resize(nv, nv);
  direction_.resize(nv);
  image_.resize(Padded(nv));
  Resize(std::min(frames, std::max(1, kMaxActionLoop / nv)));
}

void ActionLoop::Resize(int frames) {
  frames_ = frames;
  const int size = nv_ * frames;
  blocks_.setZero(Padded(nv_), size);
  companion_.setZero(size, size);
  short_space_.Resize(size, kForward);
  long_space_.Resize(size, kLongForward);
  work_.setZero(Padded(size));
  random_.setZero(Padded(size));
  Rng rng(0x51c);  // any vector will do as long as it is the same one every time
  for (int k = 0; k < size; ++k) random_[k] = rng.Uniform(-1, 1);
  random_.normalize();
  // run once on zeros: Eigen leaves the status of a solver that never ran uninitialised, and
  // copying that is undefined
  schur_ = Eigen::RealSchur<Eigen::MatrixXd>(Eigen::MatrixXd::Zero(size, size), false);
}

void ActionLoop::Space::Resize(int size, int forward_steps) {
  const int steps = kInverse + forward_steps;
  krylov.setZero(Padded(size), steps + 1);
  inverse.setZero(kInverse + 1, kInverse);
  forward.setZero(steps, steps);
  projected.setZero(steps, steps);
  coefficients.resize(steps);
  ritz_vector.resize(steps);
  ritz = Eigen::RealSchur<Eigen::MatrixXd>(Eigen::MatrixXd::Zero(steps, steps), false);
  reduction = Eigen::HessenbergDecomposition<Eigen::MatrixXd>(Eigen::MatrixXd::Zero(steps, steps));
}

bool ActionLoop::TooLong(const PolicyJacobians& jacobians, bool torque) const {
  return FramesUsed(jacobians, torque) > static_cast<std::size_t>(kMaxActionLoop / nv_);
}

// blocks_ = [A_0 A_1 …], A_i = J_a[i] + J_tau[i] Kp α. False when there is no loop at all.
bool ActionLoop::Gather(const Servo& servo, const PolicyJacobians& jacobians, bool torque) {
  SILC_CHECK(servo.nv() == nv_ && servo.alpha.size() == nv_);
  const int actions = static_cast<int>(jacobians.J_a.size());
  const int torques = torque ? static_cast<int>(jacobians.J_tau.size()) : 0;
  const int used = static_cast<int>(FramesUsed(jacobians, torque));
  if (used == 0) return false;
  if (used > frames_) Resize(used);
  for (int i = 0; i < frames_; ++i) {
    auto block = blocks_.block(0, i * nv_, nv_, nv_);
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
  absolute_ = blocks_.topLeftCorner(nv_, nv_).cwiseAbs();
  for (int i = 1; i < frames_; ++i) absolute_ += blocks_.block(0, i * nv_, nv_, nv_).cwiseAbs();
  direction_.setOnes();
  double best = std::numeric_limits<double>::infinity();
  for (int step = 0; step < kBoundSteps; ++step) {
    auto image = image_.head(nv_);
    image.noalias() = absolute_ * direction_;
    best = std::min(best, (image.array() / direction_.array()).maxCoeff());
    if (best < 1 - kMargin) return std::pow(best, 1.0 / frames_);
    // towards the Perron vector; the floor keeps it positive
    direction_ = image / image.maxCoeff();
    direction_.array() += 1e-3;
  }
  return std::numeric_limits<double>::infinity();
}

// to = C · from: the history shifts, the new action comes in front. May be the same vector.
void ActionLoop::Advance(const double* from, double* to) {
  const int size = nv_ * frames_;
  image_.setZero();
  BestVectorKernel().add_times(
      blocks_.data(), static_cast<int>(blocks_.rows()), size, from, image_.data());
  std::copy_backward(from, from + size - nv_, to + size);
  std::copy_n(image_.data(), nv_, to);
}

// to = (I − C)⁻¹ from. Block rows 1, 2, … of (I − C) x = b
// say x_i = x_{i−1} + b_i, so x_i = x_0 + c_i,
// and the first one (I − Σ A_i) x_0 = b_0 + Σ A_i c_i.
void ActionLoop::ShiftInvert(const double* from, double* to) {
  const int size = nv_ * frames_;
  std::fill_n(work_.data(), nv_, 0.0);
  for (int k = nv_; k < size; ++k) work_[k] = work_[k - nv_] + from[k];
  image_.setZero();
  std::copy_n(from, nv_, image_.data());
  BestVectorKernel().add_times(
      blocks_.data(), static_cast<int>(blocks_.rows()), size, work_.data(), image_.data());
  const JointVector b = image_.head(nv_);
  const JointVector x = loop_.solve(b);
  for (int i = 0; i < frames_; ++i) {
    for (int k = 0; k < nv_; ++k) to[i * nv_ + k] = x[k] + work_[i * nv_ + k];
  }
}

// space->krylov.col(0) = Cᶠ r, normalised
void ActionLoop::FilterStart(Space* space) {
  auto start = space->krylov.col(0);
  start = random_;
  for (int k = 0; k < kForwardSteps; ++k) {
    Advance(start.data(), space->krylov.col(1).data());
    const double norm = space->krylov.col(1).norm();
    if (!(norm > 0)) break;  // nilpotent along this vector: the space will say so
    start = space->krylov.col(1) / norm;
  }
}

// Makes space->krylov.col(j + 1) orthogonal to those before it and a unit vector; the coefficients
// go to `column`. False when nothing is left of it: the space is invariant.
bool ActionLoop::Orthogonalise(Space* space,
                               int j,
                               Eigen::Ref<Eigen::VectorXd> column,
                               double* next) {
  const VectorKernel& kernel = BestVectorKernel();
  const int rows = static_cast<int>(space->krylov.rows());
  auto v = space->krylov.col(j + 1);
  auto h = space->coefficients.head(j + 1);
  column.setZero();
  // twice: next to a mode at the circle the columns are nearly parallel, and once leaves them so
  for (int pass = 0; pass < 2; ++pass) {
    kernel.transposed_times(space->krylov.data(), rows, j + 1, v.data(), h.data());
    column.head(j + 1) += h;
    h = -h;
    kernel.add_times(space->krylov.data(), rows, j + 1, h.data(), v.data());
  }
  *next = v.norm();
  if (!(*next > kInvariant * column.norm())) {
    *next = 0;
    return false;
  }
  v /= *next;
  return true;
}

// The start of a rational Krylov space: (I − C)⁻¹ V_p = V_{p+1} K, p steps.
void ActionLoop::Begin(Space* space) {
  FilterStart(space);
  JointMatrix loop = -blocks_.topLeftCorner(nv_, nv_);
  for (int i = 1; i < frames_; ++i) loop -= blocks_.block(0, i * nv_, nv_, nv_);
  loop.diagonal().array() += 1;
  loop_.compute(loop);

  space->forward.setZero();
  int p = 0;
  bool more = true;
  while (p < kInverse && more) {
    ShiftInvert(space->krylov.col(p).data(), space->krylov.col(p + 1).data());
    more = Orthogonalise(space, p, space->inverse.col(p), &space->next);
    space->inverse(p + 1, p) = space->next;
    ++p;
  }
  space->inverse_steps = space->columns = p;
}

// A longer space begins as the one that was too short.
void ActionLoop::Continue(const Space& begun, Space* space) {
  const int used = begun.columns;
  space->krylov.leftCols(used + 1) = begun.krylov.leftCols(used + 1);
  space->inverse = begun.inverse;
  space->forward.setZero();
  space->forward.topLeftCorner(used, used) = begun.forward.topLeftCorner(used, used);
  // the last column of the shorter one leads out of it
  if (used > begun.inverse_steps) space->forward(used, used - 1) = begun.next;
  space->inverse_steps = begun.inverse_steps;
  space->columns = used;
  space->next = begun.next;
}

// Forward steps C v = V h, as many as fit; none when the space is invariant.
void ActionLoop::Extend(Space* space) {
  const int most = static_cast<int>(space->projected.cols());
  while (space->next > 0 && space->columns < most) {
    const int used = space->columns++;
    Advance(space->krylov.col(used).data(), space->krylov.col(used + 1).data());
    Orthogonalise(space, used, space->forward.col(used), &space->next);
    if (used + 1 < most) space->forward(used + 1, used) = space->next;
  }
}

// space->projected = F with
//     C V = V F + next v eᵀ,   V orthonormal, e the last unit vector.
// Columns of F from p on are the h. Those before follow from C = I − ((I − C)⁻¹)⁻¹:
//     C V_{p+1} K = V_{p+1} (K − I),  so  F_p K_p = K − I − (column p of F) k_{p+1,p} e_pᵀ.
void ActionLoop::Project(Space* space) {
  const int p = space->inverse_steps, used = space->columns;
  space->projected = space->forward;
  using Small = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, kInverse, kInverse>;
  using Wide =
      Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, kInverse, kInverse + kLongForward>;
  const Small K_T = space->inverse.topLeftCorner(p, p).transpose();
  Wide R_T = Wide::Zero(p, used);
  R_T.leftCols(p) = K_T;
  R_T.diagonal().array() -= 1;
  if (used > p) {
    R_T(p - 1, p) += space->inverse(p, p - 1);
    R_T.row(p - 1) -= space->inverse(p, p - 1) * space->projected.col(p).head(used).transpose();
  }
  const Eigen::PartialPivLU<Small> factor(K_T);
  R_T = factor.solve(R_T);
  space->projected.block(0, 0, used, p) = R_T.transpose();
}

// ‖C V y − θ V y‖/‖y‖ with y built up from its last entry so that all rows of (F − θ I) y = 0 but
// the first hold, for an F of Hessenberg form; what is left is that row, and what leaves the space.
double ActionLoop::RitzResidual(Space* space, std::complex<double> theta, double next) {
  const int last = static_cast<int>(space->projected.cols()) - 1;
  auto& y = space->ritz_vector;
  y[last] = 1;
  for (int k = last;; --k) {
    std::complex<double> sum = -theta * y[k];
    for (int j = k; j <= last; ++j) sum += space->projected(k, j) * y[j];
    if (k == 0) return std::hypot(std::abs(sum), next * std::abs(y[last])) / y.norm();
    y[k - 1] = -sum / space->projected(k, k - 1);
    if (std::abs(y[k - 1]) > 1e100) y.tail(last - k + 2) *= 1e-100;
  }
}

// Where the Ritz values of C near the circle and beyond it lie, if they have settled.
ActionLoop::Verdict ActionLoop::Judge(Space* space, double* rho) {
  Project(space);
  if (!space->projected.allFinite()) return Verdict::kOpen;
  // Hessenberg form without touching the last coordinate, along which the space is left: Eigen's
  // reduction spares the first one, so it is given the matrix turned about its antidiagonal
  TurnAboutAntidiagonal(&space->projected);
  space->reduction.compute(space->projected);
  space->projected = space->reduction.matrixH();
  TurnAboutAntidiagonal(&space->projected);
  space->ritz.computeFromHessenberg(space->projected, space->projected, false);
  if (space->ritz.info() != Eigen::Success) return Verdict::kOpen;

  const int size = static_cast<int>(space->projected.cols());
  double top = 0, outside = 0;
  ForEachEigenvalue(
      space->ritz.matrixT(), size, [&](auto theta) { top = std::max(top, std::abs(theta)); });
  bool inside = true;
  ForEachEigenvalue(space->ritz.matrixT(), size, [&](auto theta) {
    const double modulus = std::abs(theta);
    if (modulus < std::min(top, kWatched)) return;
    // an invariant space has true eigenvalues
    const double doubt = kTrust * (space->columns < size ? kInvariant * top
                                                         : RitzResidual(space, theta, space->next));
    if (!(modulus + doubt < 1 - kMargin)) inside = false;
    if (modulus - doubt > 1 + kMargin) outside = std::max(outside, modulus);
  });
  *rho = outside > 0 ? outside : top;
  if (outside > 0) return Verdict::kUnstable;
  return inside ? Verdict::kStable : Verdict::kOpen;
}

ActionLoopRadius ActionLoop::Schur() {
  const int size = static_cast<int>(companion_.rows());
  companion_.setZero();
  companion_.topRows(nv_) = blocks_.topRows(nv_);
  for (int k = nv_; k < size; ++k) companion_(k, k - nv_) = 1;
  schur_.compute(companion_, false);
  if (schur_.info() != Eigen::Success) {
    return {StiffnessStatus::kNoConvergence, kNan, ActionLoopMethod::kExact};
  }
  double rho = 0;
  ForEachEigenvalue(
      schur_.matrixT(), size, [&](auto theta) { rho = std::max(rho, std::abs(theta)); });
  const bool stable = rho < 1 - kMargin;
  return {stable ? StiffnessStatus::kOk : StiffnessStatus::kUnstableActionLoop,
          rho,
          ActionLoopMethod::kExact};
}

ActionLoopRadius ActionLoop::Exact(const Servo& servo,
                                   const PolicyJacobians& jacobians,
                                   bool torque) {
  if (TooLong(jacobians, torque)) {
    return {StiffnessStatus::kLongActionLoop, kNan, ActionLoopMethod::kNone};
  }
  if (!Gather(servo, jacobians, torque)) return {StiffnessStatus::kOk, 0, ActionLoopMethod::kNone};
  if (!blocks_.allFinite()) {
    return {StiffnessStatus::kNotFinite, kNan, ActionLoopMethod::kExact};
  }
  return Schur();
}

ActionLoopRadius ActionLoop::Fast(const Servo& servo,
                                  const PolicyJacobians& jacobians,
                                  bool torque) {
  if (TooLong(jacobians, torque)) {
    return {StiffnessStatus::kLongActionLoop, kNan, ActionLoopMethod::kNone};
  }
  if (!Gather(servo, jacobians, torque)) return {StiffnessStatus::kOk, 0, ActionLoopMethod::kNone};
  if (!blocks_.allFinite()) {
    return {StiffnessStatus::kNotFinite, kNan, ActionLoopMethod::kBound};
  }
  const double bound = ProvenBound();
  if (bound < 1) return {StiffnessStatus::kOk, bound, ActionLoopMethod::kBound};
  double rho = 0;
  for (Space* space : {&short_space_, &long_space_}) {
    if (space == &short_space_) {
      Begin(space);
    } else {
      Continue(short_space_, space);
    }
    Extend(space);
    switch (Judge(space, &rho)) {
      case Verdict::kStable:
        return {StiffnessStatus::kOk, rho, ActionLoopMethod::kArnoldi};
      case Verdict::kUnstable:
        return {StiffnessStatus::kUnstableActionLoop, rho, ActionLoopMethod::kArnoldi};
      case Verdict::kOpen:
        break;
    }
  }
  return Schur();
}

}  // namespace silc
