// SPDX-License-Identifier: Apache-2.0
#include "silc/certify/sigma_bound.h"

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <Eigen/SVD>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "silc/base/check.h"
#include "silc/base/nan.h"
#include "silc/certify/loop_bound.h"
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
// ε of T, in root mean squares of U's singular values. With more, T⁻¹ is smaller and so is β, but
// changes that σ hardly feels count as well. Which is best depends on the policy and the box.
constexpr std::array<double, 3> kFills = {0.3, 1, 0.1};

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
  out->age.clear();
  for (const ObservationSlot& slot : table.slots) out->age.push_back(slot.age);
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
  SILC_CHECK(static_cast<int>(f.age.size()) == network.inputs);
  // E_A, a block of columns for each age that is fed back
  int frames = 1;
  for (Eigen::Index i = 0; i < f.E_A.rows(); ++i) {
    if (!f.E_A.row(i).isZero(0)) frames = std::max(frames, f.age[static_cast<std::size_t>(i)] + 1);
  }
  E_loop_ = Eigen::MatrixXd::Zero(network.inputs, nv * frames);
  for (Eigen::Index i = 0; i < f.E_A.rows(); ++i) {
    const int age = f.age[static_cast<std::size_t>(i)];
    if (age < frames) E_loop_.block(i, age * nv, 1, nv) = f.E_A.row(i);
  }
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

  const Eigen::VectorXd kp_alpha = f.servo.kp.cwiseProduct(f.servo.alpha);
  U_ = -(f.F * kp_alpha.asDiagonal() * N_);
  const Eigen::MatrixXd gram = U_.transpose() * U_;
  for (const double fill : kFills) {
    // (C6) TᵀT = UᵀU + ε² I
    Coordinates to;
    Eigen::MatrixXd filled = gram;
    filled.diagonal().array() += fill * fill * gram.trace() / static_cast<double>(nv);
    to.T = Eigen::LLT<Eigen::MatrixXd>(filled).matrixU();
    to.T_inverse = to.T.inverse();
    to.O = U_ * to.T_inverse;
    coordinates_.push_back(std::move(to));
  }

  Eigen::MatrixXd V(network.inputs, f.F.rows() + nv), V_abs(network.inputs, f.F.rows() + nv);
  V << (f.E_G + f.E_A * X_) * f.F.transpose(), f.E_A * N_;
  V_abs << (f.E_G.cwiseAbs() + f.E_A.cwiseAbs() * X_.cwiseAbs()) * f.F.cwiseAbs().transpose(),
      f.E_A.cwiseAbs() * N_.cwiseAbs();
  to_stiffness_ = MakeColumns(V, V_abs, f.F.rows());
  to_loop_ = MakeColumns(E_loop_, E_loop_.cwiseAbs(), E_loop_.cols());
}

SigmaProblem::Columns SigmaProblem::MakeColumns(const Eigen::MatrixXd& V,
                                                const Eigen::MatrixXd& V_abs,
                                                Eigen::Index leading) const {
  Columns columns;
  columns.leading = leading;
  const Eigen::MatrixXd scaled = network_.scale.asDiagonal() * V;
  const Eigen::MatrixXd scaled_abs = network_.scale.cwiseAbs().asDiagonal() * V_abs;
  for (const std::vector<DenseNetwork::Layer>& branch : network_.branches) {
    columns.first.emplace_back(branch.front().W * scaled);
    columns.first_abs.emplace_back(branch.front().W.cwiseAbs() * scaled_abs);
  }
  return columns;
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

double SigmaProblem::RadiusAt(const Eigen::VectorXd& x) const {
  return LoopRadius(JacobianTimes(x, E_loop_));
}

// One branch on one box, before any coordinates: its layers, P_l left of a layer's slopes and Q_l
// right of them, at the slopes in the middle, and the same of moduli, for the rounding.
struct SigmaProblem::BranchOnBox {
  std::vector<LayerRelaxation> layers;
  std::vector<Eigen::MatrixXd> P, Q, P_abs, Q_abs;
  // of the terms with two deviations (C5), where a layer is no constant: √spread, weighed, and Γ
  std::vector<std::size_t> bent;
  std::vector<Eigen::VectorXd> to_left, to_right;
  Eigen::MatrixXd chains;
};

// J over one box, along some columns. Segments are B_j of J times them.
struct SigmaProblem::BoxOfJ {
  std::vector<BranchOnBox> branches;
  std::vector<Eigen::MatrixXd> segments;
  bool clipped = false;  // an action may reach its clip
  bool finite = false;   // or nothing is known
};

void SigmaProblem::Multiply(int branch, const Columns& columns, BranchOnBox* out) const {
  const std::size_t b = static_cast<std::size_t>(branch), count = out->layers.size();
  const auto& weights = network_.branches[b];
  const std::vector<LayerRelaxation>& layers = out->layers;
  out->P.resize(count);
  out->Q.resize(count);
  out->P_abs.resize(count);
  out->Q_abs.resize(count);
  const Eigen::Index outputs = weights.back().W.rows();
  out->P[count - 1] = out->P_abs[count - 1] = Eigen::MatrixXd::Identity(outputs, outputs);
  for (std::size_t l = count - 1; l > 0; --l) {
    const Eigen::MatrixXd scaled = out->P[l] * layers[l].slope.asDiagonal();
    out->P[l - 1] = scaled * weights[l].W;
    const Eigen::MatrixXd moduli = out->P_abs[l] * layers[l].slope.cwiseAbs().asDiagonal();
    out->P_abs[l - 1] = moduli * weights[l].W.cwiseAbs();
  }
  out->Q[0] = columns.first[b];
  out->Q_abs[0] = columns.first_abs[b];
  for (std::size_t l = 1; l < count; ++l) {
    const Eigen::MatrixXd scaled = layers[l - 1].slope.asDiagonal() * out->Q[l - 1];
    out->Q[l] = weights[l].W * scaled;
    const Eigen::MatrixXd moduli = layers[l - 1].slope.cwiseAbs().asDiagonal() * out->Q_abs[l - 1];
    out->Q_abs[l] = weights[l].W.cwiseAbs() * moduli;
  }
}

// (C5): Γ of what is left of the product once the terms with one deviation are taken out.
void SigmaProblem::ChainDeviations(int branch,
                                   int first_output,
                                   Eigen::Index leading,
                                   BranchOnBox* out) const {
  const auto& weights = network_.branches[static_cast<std::size_t>(branch)];
  const std::vector<LayerRelaxation>& layers = out->layers;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (!layers[l].is_constant) out->bent.push_back(l);
  }
  // √spread, weighed so that both sides of a unit are as large in the first coordinates; any
  // weights will do
  out->to_left.resize(layers.size());
  out->to_right.resize(layers.size());
  const Eigen::MatrixXd left =
      LeftOf(coordinates_.front().T, first_output, weights.back().W.rows());
  for (const std::size_t l : out->bent) {
    const Eigen::VectorXd p = (left * out->P[l]).colwise().norm();
    const Eigen::VectorXd q = out->Q[l].leftCols(leading).rowwise().norm();
    const double p_floor = 1e-6 * p.maxCoeff() + 1e-300, q_floor = 1e-6 * q.maxCoeff() + 1e-300;
    const Eigen::VectorXd root = layers[l].spread.cwiseSqrt();
    const Eigen::ArrayXd weight =
        ((p.array() + p_floor) / (q.array() + q_floor)).sqrt() * (1 + 1e-15);
    out->to_left[l] = (root.array() / weight).matrix();
    out->to_right[l] = (root.array() * weight).matrix();
  }
  // C(l, m) = ‖ to_right_l W_l D_{l−1} … W_{m+1} to_left_m ‖, m < l
  const Eigen::Index n = static_cast<Eigen::Index>(out->bent.size());
  Eigen::MatrixXd C = Eigen::MatrixXd::Zero(n, n);
  for (Eigen::Index i = 1; i < n; ++i) {
    std::size_t l = out->bent[static_cast<std::size_t>(i)];
    Eigen::MatrixXd path = Eigen::MatrixXd(out->to_right[l].asDiagonal()) * weights[l].W;
    for (Eigen::Index j = i; j-- > 0;) {
      const std::size_t m = out->bent[static_cast<std::size_t>(j)];
      while (--l > m) path = Eigen::MatrixXd(path * layers[l].slope.asDiagonal()) * weights[l].W;
      C(i, j) = NormBound(path * out->to_left[m].asDiagonal()) * (1 + 1e-9);
      if (j > 0) path = Eigen::MatrixXd(path * layers[m].slope.asDiagonal()) * weights[m].W;
    }
  }
  // Γ = C + C² + …, C strictly lower triangular
  out->chains = C;
  Eigen::MatrixXd power = C;
  for (Eigen::Index i = 2; i < n; ++i) {
    power = Eigen::MatrixXd(power * C);
    out->chains += power;
  }
}

Eigen::MatrixXd SigmaProblem::LeftOf(const Eigen::MatrixXd& T,
                                     int first_output,
                                     Eigen::Index outputs) const {
  Eigen::MatrixXd left(T.rows(), outputs);
  for (Eigen::Index r = 0; r < outputs; ++r) {
    left.col(r) = T.col(function_.action_joint[static_cast<std::size_t>(first_output + r)]);
  }
  return left;
}

// T J V R over a box: its middle, and sets that hold what it may be off.
struct SigmaProblem::Deviation {
  Eigen::MatrixXd centre;
  double room = 0;                              // (C7), in the sets, too
  FormBound in_symbols, of_units, two_or_more;  // the terms of (C5)

  FormBound All() const {
    FormBound all = in_symbols;
    all.Add(of_units);
    all.Add(two_or_more);
    return all;
  }
};

// V are `count` columns of those that the box was relaxed along. R may be empty: the identity.
SigmaProblem::Deviation SigmaProblem::DeviationIn(const Eigen::MatrixXd& T,
                                                  const BoxOfJ& box,
                                                  Eigen::Index begin,
                                                  Eigen::Index count,
                                                  const Eigen::MatrixXd& R) const {
  const Eigen::Index nv = function_.servo.nv();
  Deviation out;
  out.centre = Eigen::MatrixXd::Zero(nv, count);
  out.in_symbols = out.of_units = out.two_or_more = FormBound::Zero(nv, count);
  const Eigen::MatrixXd R_abs = R.cwiseAbs();
  const auto right = [&](const Eigen::MatrixXd& Q, const Eigen::MatrixXd& times) {
    if (times.size() == 0) return Eigen::MatrixXd(Q.middleCols(begin, count));
    return Eigen::MatrixXd(Q.middleCols(begin, count) * times);
  };
  int output = 0;
  for (const BranchOnBox& branch : box.branches) {
    const std::size_t layers = branch.layers.size();
    const Eigen::Index outputs = branch.P.back().rows();
    const Eigen::MatrixXd left = LeftOf(T, output, outputs), left_abs = left.cwiseAbs();
    output += static_cast<int>(outputs);
    std::vector<Eigen::MatrixXd> P(layers), Q(layers);
    for (std::size_t l = 0; l < layers; ++l) {
      const LayerRelaxation& layer = branch.layers[l];
      P[l] = left * branch.P[l];
      Q[l] = right(branch.Q[l], R);
      const Eigen::MatrixXd P_abs = left_abs * branch.P_abs[l];
      const Eigen::MatrixXd Q_abs = right(branch.Q_abs[l], R_abs);
      for (Eigen::Index k = 0; k < layer.spread.size(); ++k) {
        out.room += kChainError * layer.spread[k] * P_abs.col(k).norm() * Q_abs.row(k).norm();
      }
      if (l + 1 == layers) {
        const Eigen::MatrixXd end = layer.slope.asDiagonal() * Q[l];
        out.centre += P[l] * end;
        const Eigen::MatrixXd end_abs = layer.slope.cwiseAbs().asDiagonal() * Q_abs;
        out.room += kChainError * (P_abs * end_abs).norm();
      }
      if (!layer.is_constant) out.of_units.AddUnits(P[l], layer.own, Q[l]);
    }
    for (Eigen::Index i = 0; i < branch.chains.rows(); ++i) {
      for (Eigen::Index j = 0; j < i; ++j) {
        const std::size_t l = branch.bent[static_cast<std::size_t>(i)],
                          m = branch.bent[static_cast<std::size_t>(j)];
        const Eigen::MatrixXd from = P[l] * branch.to_left[l].asDiagonal();
        const Eigen::MatrixXd onto = branch.to_right[m].asDiagonal() * Q[m];
        out.two_or_more.AddProduct(from, branch.chains(i, j), onto);
      }
    }
  }
  for (const Eigen::MatrixXd& segment : box.segments) {
    out.in_symbols.AddSegment(T * right(segment, R));
  }
  out.in_symbols.AddBall(out.room);
  return out;
}

SigmaBound SigmaProblem::BoundIn(const Coordinates& to, const BoxOfJ& box) const {
  SigmaBound bound;
  bound.upper = kInfinity;
  const Eigen::Index nv = function_.servo.nv(), nz = function_.F.rows();
  const double gain = function_.gain;
  const Deviation deviation = DeviationIn(to.T, box, 0, nz, {});        // of T J V
  const Deviation loop = DeviationIn(to.T, box, nz, nv, to.T_inverse);  // of T J V_A T⁻¹
  const FormBound on_stiffness = deviation.All(), on_loop = loop.All();

  // (C6): the middles of T (J V − X Fᵀ) and T Θ T⁻¹, and β
  const Eigen::MatrixXd TXF = to.T * X_ * function_.F.transpose();
  const Eigen::MatrixXd known = deviation.centre - TXF;
  Eigen::MatrixXd loop_known = loop.centre - to.T * N_ * to.T_inverse;
  loop_known.diagonal().array() += 1;
  const double loop_middle =
      (NormBound(loop_known) + kChainError * to.T.norm() * N_.norm() * to.T_inverse.norm()) *
      (1 + kLoopRoom);
  const double loop_rest = on_loop.Norm() * (1 + kLoopRoom);
  bound.loop_change = loop_middle + loop_rest;
  if (!(bound.loop_change < 1)) return bound;

  // (C8): what a changed loop does to what has changed, in the directions of both; the middles,
  // which are small, by their norms
  const double answer = 1 / (1 - bound.loop_change);  // ≥ ‖(I − T Θ T⁻¹)⁻¹‖
  const double middle = NormBound(known) * (1 + kLoopRoom) + kChainError * TXF.norm();
  const double change = middle + on_stiffness.Norm() * (1 + kLoopRoom);
  const double remainder = answer * (loop_middle * change + loop_rest * middle) * (1 + kLoopRoom);
  const FormBound looped = ChainOf(on_loop, answer * (1 + kLoopRoom), on_stiffness);
  std::vector<FormBound> on_sigma;
  for (const FormBound* set :
       {&deviation.in_symbols, &deviation.of_units, &deviation.two_or_more, &looped}) {
    on_sigma.push_back(ImageOf(*set, gain, to.O));
  }
  const double not_in_O = ((U_ - to.O * to.T).norm() + kChainError * to.O.norm() * to.T.norm()) *
                          to.T_inverse.norm() * change * answer;
  on_sigma.front().AddBall(A_room_ + gain * (deviation.room + not_in_O + kChainError * TXF.norm()));
  bound.upper = ShiftedNormBound(A_ + gain * (to.O * known), on_sigma) + gain * remainder;
  return bound;
}

SigmaProblem::BoxOfJ SigmaProblem::RelaxOn(const ObservationBox& box,
                                           double action_clip,
                                           const Columns& columns) const {
  const Eigen::Index nv = function_.servo.nv(), width = columns.first.front().cols();
  BoxOfJ of_J;
  of_J.branches.resize(network_.branches.size());
  of_J.segments.assign(static_cast<std::size_t>(box.symbols), Eigen::MatrixXd::Zero(nv, width));
  int output = 0;
  for (std::size_t b = 0; b < of_J.branches.size(); ++b) {
    BranchOnBox& branch = of_J.branches[b];
    branch.layers = RelaxBranch(network_, static_cast<int>(b), box);
    const LayerRelaxation& last = branch.layers.back();
    if (!last.spread.allFinite()) return of_J;  // an overflow: not bounded
    const double reach = std::max(last.high.maxCoeff(), -last.low.minCoeff());
    if (!(reach < action_clip)) of_J.clipped = true;
    Multiply(static_cast<int>(b), columns, &branch);
    const Eigen::Index outputs = last.spread.size();
    for (int j = 0; j < box.symbols; ++j) {
      Eigen::MatrixXd B = Eigen::MatrixXd::Zero(outputs, width);
      for (std::size_t l = 0; l < branch.layers.size(); ++l) {
        if (branch.layers[l].is_constant) continue;
        const Eigen::MatrixXd scaled = branch.layers[l].tilt.col(j).asDiagonal() * branch.Q[l];
        B.noalias() += branch.P[l] * scaled;
      }
      for (Eigen::Index r = 0; r < outputs; ++r) {
        of_J.segments[static_cast<std::size_t>(j)].row(
            function_.action_joint[static_cast<std::size_t>(output + r)]) += B.row(r);
      }
    }
    ChainDeviations(static_cast<int>(b), output, columns.leading, &branch);
    output += static_cast<int>(outputs);
  }
  of_J.finite = true;
  for (const Eigen::MatrixXd& segment : of_J.segments) {
    if (!segment.allFinite()) of_J.finite = false;
  }
  return of_J;
}

SigmaBound SigmaProblem::Bound(const ObservationBox& box, double action_clip, double enough) {
  SigmaBound bound;
  bound.upper = bound.loop_change = kInfinity;
  segments_.clear();
  if (!solvable_) return bound;
  const BoxOfJ of_J = RelaxOn(box, action_clip, to_stiffness_);
  bound.clipped = of_J.clipped;
  if (of_J.clipped || !of_J.finite) return bound;
  const Eigen::Index nz = function_.F.rows();
  for (const Eigen::MatrixXd& segment : of_J.segments) {
    segments_.emplace_back(function_.gain * (U_ * segment.leftCols(nz)));
  }
  for (const Coordinates& to : coordinates_) {
    const SigmaBound here = BoundIn(to, of_J);
    if (here.upper < bound.upper) {
      bound = here;
    } else if (!std::isfinite(bound.upper)) {
      bound.loop_change = std::min(bound.loop_change, here.loop_change);
    }
    if (bound.upper <= enough) break;
  }
  return bound;
}

double SigmaProblem::BoundRadius(const ObservationBox& box, double action_clip, int steps) const {
  if (!solvable_) return kInfinity;
  const BoxOfJ of_J = RelaxOn(box, action_clip, to_loop_);
  if (of_J.clipped || !of_J.finite) return kInfinity;
  const Eigen::Index nv = function_.servo.nv();
  const Deviation loop =
      DeviationIn(Eigen::MatrixXd::Identity(nv, nv), of_J, 0, E_loop_.cols(), {});
  return LoopRadiusBound(loop.centre, loop.All(), steps);
}

SigmaFound SigmaProblem::Seek(const ObservationBox& box, int samples, Rng* rng) const {
  SigmaFound found;
  found.sampled = found.sought = at_centre_;
  if (!solvable_) return found;
  found.radius = RadiusAt(box.centre);
  const auto observation = [&](const Eigen::VectorXd& t) {
    Eigen::VectorXd x = box.centre;
    for (const ObservationBox::Entry& entry : box.entries) {
      x[entry.input] += entry.radius * t[entry.symbol];
    }
    return x;
  };
  constexpr int kRadiusEvery = 16;  // its eigenvalues take longer than σ
  Eigen::VectorXd t(box.symbols);
  for (int i = 0; i < samples; ++i) {
    for (Eigen::Index j = 0; j < t.size(); ++j) {
      t[j] = rng->Uniform(-1, 1);
      if (i % 2 == 1) t[j] = t[j] < 0 ? -1 : 1;
    }
    const Eigen::VectorXd x = observation(t);
    found.sampled = std::max(found.sampled, At(x));
    if (i % kRadiusEvery == 1) found.radius = std::max(found.radius, RadiusAt(x));
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
    const Eigen::VectorXd x = observation(t);
    found.sought = std::max(found.sought, At(x));
    found.radius = std::max(found.radius, RadiusAt(x));
  }
  return found;
}

}  // namespace silc
