// SPDX-License-Identifier: Apache-2.0
#include "silc/certify/sigma_bound.h"

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <limits>

#include "silc/base/check.h"
#include "silc/base/nan.h"
#include "silc/stiffness/frequency_condition.h"
#include "silc/stiffness/joint_stiffness.h"

namespace silc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// (C7) Products of up to six matrices with up to some thousand terms a sum are off by less than
// this times the product of their moduli: 4000 terms of 2⁻⁵³, with room.
constexpr double kChainError = 2e-12;
// β and τ, computed through T⁻¹, are enlarged by this: over 1e−12 times the condition of T.
constexpr double kLoopRoom = 1e-6;

double LargestSingular(const Eigen::MatrixXd& A) {
  if (!A.allFinite()) return kNan;
  return Eigen::JacobiSVD<Eigen::MatrixXd>(A).singularValues()[0];
}

// (S3) at one observation. `J` is J E_A beside J E_G: torques and gravity are in these already, so
// that what is left to settle are previous actions.
StiffnessStatus SettleAt(const SigmaFunction& f, const Eigen::MatrixXd& J, StaticStiffness* out) {
  const int nv = f.servo.nv();
  PolicySums sums;
  sums.S_a = J.leftCols(nv);
  sums.S_q = J.rightCols(nv);
  sums.sees_action = true;
  return SolveQuasiStatic(f.servo, sums, {.torque = false}, out);
}

// The matrix whose largest singular value is σ.
Eigen::MatrixXd ConditionOf(const SigmaFunction& f, const Eigen::MatrixXd& K) {
  Eigen::MatrixXd A = f.gain * (f.F * K * f.F.transpose() - f.floor);
  A.diagonal().array() -= f.identity;
  return A;
}

}  // namespace

StiffnessStatus MakeSigmaFunction(const BudgetSpec& spec,
                                  const Servo& servo,
                                  const ContactKinematics& contact,
                                  const ObservationTable& table,
                                  SigmaFunction* out) {
  SILC_CHECK(spec.condition != Condition::kOneSided);
  const int nv = servo.nv();
  BudgetCoordinates coordinates;
  const StiffnessStatus status = MakeBudgetCoordinates(spec, servo, contact, &coordinates);
  if (status != StiffnessStatus::kOk) return status;
  out->F = std::move(coordinates.F);
  out->floor = std::move(coordinates.floor);
  const bool disc = spec.condition == Condition::kDisc;
  out->gain = disc ? 2 : 1;
  out->identity = disc ? 1 : 0;

  out->servo = servo;
  out->action_joint = table.action_joint;
  const int inputs = table.width();
  out->E_A = Eigen::MatrixXd::Zero(inputs, nv);
  out->E_G = Eigen::MatrixXd::Zero(inputs, nv);
  for (int i = 0; i < inputs; ++i) {
    const auto& entry =
        table.entries[static_cast<std::size_t>(table.slots[static_cast<std::size_t>(i)].element)];
    const int column = table.Column(entry);
    switch (entry.source) {
      case TermSource::kJointPos:
        out->E_G(i, column) += entry.scale;
        break;
      case TermSource::kPrevAction:
        out->E_A(i, column) += entry.scale;
        break;
      case TermSource::kJointTorque:
        // τ = Kp (α a − q) at rest
        if (spec.torque == Channel::kHeld) break;
        out->E_A(i, column) += entry.scale * servo.kp[column] * servo.alpha[column];
        out->E_G(i, column) -= entry.scale * servo.kp[column];
        break;
      case TermSource::kProjectedGravity:
        if (spec.gravity == Channel::kHeld) break;
        out->E_G.row(i) += entry.scale * contact.E.row(column);
        break;
      default:
        break;
    }
  }
  return StiffnessStatus::kOk;
}

SigmaProblem::SigmaProblem(const DenseNetwork& network,
                           SigmaFunction function,
                           const Eigen::VectorXd& centre)
    : network_(network), function_(std::move(function)), centre_(centre) {
  const SigmaFunction& f = function_;
  const Eigen::Index nv = f.servo.nv();
  SILC_CHECK(f.E_A.rows() == network.inputs && f.E_G.rows() == network.inputs);
  SILC_CHECK(static_cast<int>(f.action_joint.size()) == network.outputs);
  Eigen::MatrixXd columns(network.inputs, 2 * nv);
  columns << f.E_A, f.E_G;
  StaticStiffness settled;
  solvable_ = SettleAt(f, JacobianTimes(centre, columns), &settled) == StiffnessStatus::kOk;
  if (!solvable_) return;
  N_ = settled.loop.inverse();
  X_ = settled.X;
  const Eigen::MatrixXd K = settled.K;
  A_ = ConditionOf(f, K);
  at_centre_ = LargestSingular(A_);
  solvable_ = N_.allFinite() && std::isfinite(at_centre_);
  if (!solvable_) return;
  const Eigen::MatrixXd moduli =
      f.F.cwiseAbs() * K.cwiseAbs() * f.F.cwiseAbs().transpose() + f.floor.cwiseAbs();
  A_room_ = kChainError * (f.gain * moduli.norm() + 1);

  // T: U with its missing directions filled, so that it can be inverted
  const Eigen::VectorXd kp_alpha = f.servo.kp.cwiseProduct(f.servo.alpha);
  U_ = -(f.F * kp_alpha.asDiagonal() * N_);
  Eigen::MatrixXd gram = U_.transpose() * U_;
  constexpr double kFill = 0.1;
  gram.diagonal().array() += kFill * kFill * gram.trace() / static_cast<double>(nv);
  T_ = Eigen::LLT<Eigen::MatrixXd>(gram).matrixU();
  T_inverse_ = T_.inverse();
  O_ = U_ * T_inverse_;

  Eigen::MatrixXd V(network.inputs, f.F.rows() + nv);
  V << (f.E_G + f.E_A * X_) * f.F.transpose(), f.E_A * N_ * T_inverse_;
  const Eigen::MatrixXd scaled = network.scale.asDiagonal() * V;
  int output = 0;
  for (const std::vector<DenseNetwork::Layer>& branch : network.branches) {
    const Eigen::Index rows = branch.back().W.rows();
    Eigen::MatrixXd left(nv, rows);
    for (Eigen::Index r = 0; r < rows; ++r) {
      left.col(r) = T_.col(f.action_joint[static_cast<std::size_t>(output++)]);
    }
    left_.push_back(std::move(left));
    first_.emplace_back(branch.front().W * scaled);
    first_abs_.emplace_back(branch.front().W.cwiseAbs() * scaled.cwiseAbs());
  }
}

Eigen::MatrixXd SigmaProblem::JacobianTimes(const Eigen::VectorXd& x,
                                            const Eigen::MatrixXd& columns) const {
  Eigen::MatrixXd J = Eigen::MatrixXd::Zero(function_.servo.nv(), columns.cols());
  const Eigen::MatrixXd scaled = network_.scale.asDiagonal() * columns;
  int output = 0;
  for (std::size_t b = 0; b < network_.branches.size(); ++b) {
    const auto& layers = network_.branches[b];
    const std::vector<Eigen::VectorXd> slopes = BranchSlopes(network_, static_cast<int>(b), x);
    Eigen::MatrixXd left = Eigen::MatrixXd(slopes.back().asDiagonal()) * layers.back().W;
    for (std::size_t l = layers.size() - 1; l-- > 0;) {
      left = Eigen::MatrixXd(left * slopes[l].asDiagonal()) * layers[l].W;
    }
    const Eigen::MatrixXd product = left * scaled;
    for (Eigen::Index r = 0; r < product.rows(); ++r) {
      J.row(function_.action_joint[static_cast<std::size_t>(output++)]) = product.row(r);
    }
  }
  return J;
}

double SigmaProblem::At(const Eigen::VectorXd& x) const {
  const SigmaFunction& f = function_;
  Eigen::MatrixXd columns(network_.inputs, 2 * f.servo.nv());
  columns << f.E_A, f.E_G;
  StaticStiffness settled;
  const StiffnessStatus status = SettleAt(f, JacobianTimes(x, columns), &settled);
  return status == StiffnessStatus::kOk ? LargestSingular(ConditionOf(f, settled.K)) : kNan;
}

// P_l, left of a layer's slopes, and Q_l, right of them, at the slopes in the middle; and the same
// of moduli, for the rounding.
struct SigmaProblem::Products {
  std::vector<Eigen::MatrixXd> P, Q;
  Eigen::MatrixXd centre;  // T J [V, V_A]
  double room = 0;         // (C7)
};

SigmaProblem::Products SigmaProblem::Multiply(int branch,
                                              const std::vector<LayerRelaxation>& layers) const {
  const std::size_t b = static_cast<std::size_t>(branch), count = layers.size();
  const auto& weights = network_.branches[b];
  Products out;
  std::vector<Eigen::MatrixXd> P_abs(count), Q_abs(count);
  out.P.resize(count);
  out.Q.resize(count);
  out.P[count - 1] = left_[b];
  P_abs[count - 1] = left_[b].cwiseAbs();
  for (std::size_t l = count - 1; l > 0; --l) {
    const Eigen::MatrixXd scaled = out.P[l] * layers[l].slope.asDiagonal();
    out.P[l - 1] = scaled * weights[l].W;
    const Eigen::MatrixXd moduli = P_abs[l] * layers[l].slope.cwiseAbs().asDiagonal();
    P_abs[l - 1] = moduli * weights[l].W.cwiseAbs();
  }
  out.Q[0] = first_[b];
  Q_abs[0] = first_abs_[b];
  for (std::size_t l = 1; l < count; ++l) {
    const Eigen::MatrixXd scaled = layers[l - 1].slope.asDiagonal() * out.Q[l - 1];
    out.Q[l] = weights[l].W * scaled;
    const Eigen::MatrixXd moduli = layers[l - 1].slope.cwiseAbs().asDiagonal() * Q_abs[l - 1];
    Q_abs[l] = weights[l].W.cwiseAbs() * moduli;
  }
  const std::size_t last = count - 1;
  const Eigen::MatrixXd end = layers[last].slope.asDiagonal() * out.Q[last];
  out.centre = out.P[last] * end;
  const Eigen::MatrixXd end_abs = layers[last].slope.cwiseAbs().asDiagonal() * Q_abs[last];
  out.room = kChainError * (P_abs[last] * end_abs).norm();
  for (std::size_t l = 0; l < count; ++l) {
    for (Eigen::Index k = 0; k < layers[l].spread.size(); ++k) {
      out.room +=
          kChainError * layers[l].spread[k] * P_abs[l].col(k).norm() * Q_abs[l].row(k).norm();
    }
  }
  return out;
}

// (C5): what is left of the product once the terms with one deviation are taken out.
void SigmaProblem::AddSecondOrder(int branch,
                                  const std::vector<LayerRelaxation>& layers,
                                  const Products& products,
                                  FormBound* on_stiffness,
                                  FormBound* on_loop) const {
  const auto& weights = network_.branches[static_cast<std::size_t>(branch)];
  const Eigen::Index nz = on_stiffness->Y.rows(), nv = on_loop->Y.rows();
  std::vector<std::size_t> bent;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (!layers[l].is_constant) bent.push_back(l);
  }
  // √spread, weighed so that both sides of a unit are as large
  std::vector<Eigen::VectorXd> to_left(layers.size()), to_right(layers.size());
  for (const std::size_t l : bent) {
    const Eigen::VectorXd p = products.P[l].colwise().norm();
    const Eigen::VectorXd q = products.Q[l].leftCols(nz).rowwise().norm();
    const double p_floor = 1e-6 * p.maxCoeff() + 1e-300, q_floor = 1e-6 * q.maxCoeff() + 1e-300;
    const Eigen::VectorXd root = layers[l].spread.cwiseSqrt();
    const Eigen::ArrayXd weight =
        ((p.array() + p_floor) / (q.array() + q_floor)).sqrt() * (1 + 1e-15);
    to_left[l] = (root.array() / weight).matrix();
    to_right[l] = (root.array() * weight).matrix();
  }
  // C(l, m) = ‖ to_right_l W_l D_{l−1} … W_{m+1} to_left_m ‖, m < l
  const Eigen::Index n = static_cast<Eigen::Index>(bent.size());
  Eigen::MatrixXd C = Eigen::MatrixXd::Zero(n, n);
  for (Eigen::Index i = 1; i < n; ++i) {
    std::size_t l = bent[static_cast<std::size_t>(i)];
    Eigen::MatrixXd path = Eigen::MatrixXd(to_right[l].asDiagonal()) * weights[l].W;
    for (Eigen::Index j = i; j-- > 0;) {
      const std::size_t m = bent[static_cast<std::size_t>(j)];
      while (--l > m) path = Eigen::MatrixXd(path * layers[l].slope.asDiagonal()) * weights[l].W;
      C(i, j) = NormBound(path * to_left[m].asDiagonal()) * (1 + 1e-9);
      if (j > 0) path = Eigen::MatrixXd(path * layers[m].slope.asDiagonal()) * weights[m].W;
    }
  }
  // Γ = C + C² + …, C strictly lower triangular
  Eigen::MatrixXd sum = C, power = C;
  for (Eigen::Index i = 2; i < n; ++i) {
    power = Eigen::MatrixXd(power * C);
    sum += power;
  }
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < i; ++j) {
      const std::size_t l = bent[static_cast<std::size_t>(i)],
                        m = bent[static_cast<std::size_t>(j)];
      const Eigen::MatrixXd P = products.P[l] * to_left[l].asDiagonal();
      const Eigen::MatrixXd Q = to_right[m].asDiagonal() * products.Q[m];
      on_stiffness->AddProduct(P, sum(i, j), Q.leftCols(nz));
      on_loop->AddProduct(P, sum(i, j), Q.rightCols(nv));
    }
  }
}

SigmaBound SigmaProblem::Bound(const ObservationBox& box, double action_clip) {
  SigmaBound bound;
  bound.upper = bound.loop_change = kInfinity;
  segments_.clear();
  if (!solvable_) return bound;
  const Eigen::Index nv = function_.servo.nv(), nz = function_.F.rows();
  const int branches = static_cast<int>(network_.branches.size());

  Eigen::MatrixXd centre = Eigen::MatrixXd::Zero(nv, nz + nv);
  double room = 0;
  FormBound on_stiffness = FormBound::Zero(nv, nz), on_loop = FormBound::Zero(nv, nv);
  std::vector<Eigen::MatrixXd> segments(static_cast<std::size_t>(box.symbols),
                                        Eigen::MatrixXd::Zero(nv, nz + nv));
  for (int b = 0; b < branches; ++b) {
    const std::vector<LayerRelaxation> layers = RelaxBranch(network_, b, box);
    if (!layers.back().spread.allFinite()) return bound;  // an overflow: not bounded
    const double reach = std::max(layers.back().high.maxCoeff(), -layers.back().low.minCoeff());
    if (!(reach < action_clip)) bound.clipped = true;
    const Products products = Multiply(b, layers);
    centre += products.centre;
    room += products.room;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      if (layers[l].is_constant) continue;
      const Eigen::MatrixXd &P = products.P[l], &Q = products.Q[l];
      on_stiffness.AddUnits(P, layers[l].own, Q.leftCols(nz));
      on_loop.AddUnits(P, layers[l].own, Q.rightCols(nv));
      for (int j = 0; j < box.symbols; ++j) {
        const Eigen::MatrixXd scaled = layers[l].tilt.col(j).asDiagonal() * Q;
        segments[static_cast<std::size_t>(j)].noalias() += P * scaled;
      }
    }
    AddSecondOrder(b, layers, products, &on_stiffness, &on_loop);
  }
  if (bound.clipped) return bound;
  for (const Eigen::MatrixXd& segment : segments) {
    if (!segment.allFinite()) return bound;
  }
  for (const Eigen::MatrixXd& segment : segments) {
    on_stiffness.AddSegment(segment.leftCols(nz));
    on_loop.AddSegment(segment.rightCols(nv));
    segments_.emplace_back(function_.gain * (O_ * segment.leftCols(nz)));
  }
  on_stiffness.AddBall(room);
  on_loop.AddBall(room);

  // (C6)
  const Eigen::MatrixXd TXF = T_ * X_ * function_.F.transpose();
  const Eigen::MatrixXd known = centre.leftCols(nz) - TXF;  // T R Fᵀ
  Eigen::MatrixXd loop_known = centre.rightCols(nv) - T_ * N_ * T_inverse_;
  loop_known.diagonal().array() += 1;
  bound.loop_change = (NormBound(loop_known) + on_loop.Norm() +
                       kChainError * T_.norm() * N_.norm() * T_inverse_.norm()) *
                      (1 + kLoopRoom);
  if (!(bound.loop_change < 1)) return bound;
  const double change = (NormBound(known) + on_stiffness.Norm()) * (1 + kLoopRoom);
  FormBound on_sigma;
  on_sigma.X = function_.gain * (O_ * on_stiffness.X * O_.transpose());
  on_sigma.Y = function_.gain * on_stiffness.Y;
  const double not_in_O = (U_ - O_ * T_).norm() * T_inverse_.norm() * change;
  on_sigma.AddBall(A_room_ + function_.gain * (room + not_in_O + kChainError * TXF.norm()));
  bound.upper = ShiftedNormBound(A_ + function_.gain * (O_ * known), on_sigma) +
                function_.gain * bound.loop_change * change / (1 - bound.loop_change);
  return bound;
}

SigmaFound SigmaProblem::Seek(const ObservationBox& box, int samples, Rng* rng) const {
  SigmaFound found;
  found.sampled = found.sought = at_centre_;
  if (!solvable_) return found;
  const auto at = [&](const Eigen::VectorXd& t) {
    Eigen::VectorXd x = box.centre;
    for (const ObservationBox::Entry& entry : box.entries) {
      x[entry.input] += entry.radius * t[entry.symbol];
    }
    return At(x);
  };
  Eigen::VectorXd t(box.symbols);
  for (int i = 0; i < samples; ++i) {
    for (Eigen::Index j = 0; j < t.size(); ++j) {
      t[j] = rng->Uniform(-1, 1);
      if (i % 2 == 1) t[j] = t[j] < 0 ? -1 : 1;
    }
    found.sampled = std::max(found.sampled, at(t));
  }
  if (static_cast<int>(segments_.size()) != box.symbols) return found;
  // given t, the best u and v are singular vectors; given u and v, the best t are signs
  constexpr int kStarts = 3, kSteps = 8;
  for (int start = 0; start < kStarts; ++start) {
    Eigen::MatrixXd A = A_;
    Eigen::VectorXd previous;
    for (int step = 0; step < kSteps; ++step) {
      const Eigen::JacobiSVD<Eigen::MatrixXd> svd(A, Eigen::ComputeThinU | Eigen::ComputeThinV);
      const int which = step == 0 ? std::min<int>(start, static_cast<int>(A.cols()) - 1) : 0;
      const Eigen::VectorXd u = svd.matrixU().col(which), v = svd.matrixV().col(which);
      A = A_;
      for (int j = 0; j < box.symbols; ++j) {
        const Eigen::MatrixXd& B = segments_[static_cast<std::size_t>(j)];
        t[j] = u.dot(B * v) < 0 ? -1 : 1;
        A += t[j] * B;
      }
      if (step > 0 && t == previous) break;
      previous = t;
    }
    found.sought = std::max(found.sought, at(t));
  }
  return found;
}

}  // namespace silc
