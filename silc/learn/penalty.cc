// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/penalty.h"

#include <algorithm>
#include <cmath>

#include "silc/base/check.h"
#include "silc/learn/frequency_penalty.h"
#include "silc/learn/penalty_terms.h"
#include "silc/stiffness/contact_mode.h"
#include "silc/stiffness/row_rank.h"

namespace silc {

HingeTerms HingeOf(const Tensor& sigma, const std::string& kind, const Tensor& bound) {
  if (kind == "log") {
    const Tensor over = (sigma / bound).clamp_min(1).log();
    return {over.square(), 2 * over / sigma.clamp_min(1e-12)};
  }
  const Tensor over = (sigma / bound - 1).clamp_min(0);
  return {over.square(), 2 * over / bound};
}

Tensor BoundOf(const PenaltyInput& input, const Tensor& like) {
  return input.bound.defined() ? input.bound.to(like.scalar_type()) : at::ones({}, like.options());
}

Tensor MeanAlongTangent(const PenaltyInput& input,
                        const Tensor& p,
                        const std::vector<Seed>& seeds) {
  const Slopes slopes = TapedSlopes(input.activations, input.first, input.count);
  return (p * ActionTangent(input.actors, slopes, seeds)).sum() / double(input.count);
}

Tensor BroadcastOverMatrix(const Tensor& per_sample) { return per_sample.view({-1, 1, 1}); }

Tensor Embedded(const Tensor& re, const Tensor& im) {
  return at::cat({at::cat({re, -im}, 2), at::cat({im, re}, 2)}, 1);
}

Tensor MeanOf(const Tensor& value, const Tensor& ok) {
  return (value * ok.to(value.scalar_type())).mean();
}

namespace {

Tensor IdentityLike(const Tensor& like) { return at::eye(like.size(-1), like.options()); }
Tensor Transposed(const Tensor& A) { return A.transpose(1, 2); }

// Cholesky factors; samples that have none get the identity and are marked
Tensor CholeskyOf(const Tensor& A, Tensor* ok) {
  const auto [L, info] = at::linalg_cholesky_ex(A);
  const Tensor good = (info == 0).logical_and(at::isfinite(L).all(2).all(1));
  *ok = ok->logical_and(good);
  return at::where(BroadcastOverMatrix(good), L, IdentityLike(A));
}

// The same of Gram matrices J Jᵀ, also marking samples whose rows are not independent: twin of
// RowsAreIndependent() in silc/stiffness/row_rank.h.
enum class RowUnits { kOne, kMixed };  // kMixed: the rule is of the rows scaled to length one
Tensor CholeskyOfRows(const Tensor& gram, RowUnits units, Tensor* ok) {
  const Tensor L = CholeskyOf(gram, ok);
  Tensor part = L.diagonal(0, 1, 2);
  if (units == RowUnits::kMixed) part = part / gram.diagonal(0, 1, 2).sqrt();
  const Tensor good = std::get<0>(part.min(1)) > kRankTolerance * std::get<0>(part.max(1));
  *ok = ok->logical_and(good);
  return at::where(BroadcastOverMatrix(good), L, IdentityLike(gram));
}

Tensor SolveLower(const Tensor& L, const Tensor& B) {
  return at::linalg_solve_triangular(L, B, /*upper=*/false);
}

// Singular triples with the hinge's slope folded in: Σ_k l_k d(·) r_kᵀ is the gradient.
struct Directions {
  Tensor value;        // (B)
  Tensor sigma;        // (B) largest
  Tensor left, right;  // (B, k, n)
};
Directions PenalisedDirections(const Tensor& A,
                               const Tensor& bound,
                               const PenaltyConfig& config,
                               const PenaltyInput& input) {
  const bool all = config.sigmas == "all";
  Singular s;
  if (all || config.spectral == "eigen") {
    s = SingularOf(A);
    if (!all) {
      s = {s.sigma.narrow(1, 0, 1), s.u.narrow(1, 0, 1), s.v.narrow(1, 0, 1)};
    }
  } else {
    s = LargestSingular(A);
  }
  const HingeTerms hinge = HingeOf(s.sigma, config.hinge, bound);
  Directions result;
  result.value = hinge.value.sum(1);
  result.sigma = s.sigma.select(1, 0);
  const Tensor root = hinge.slope.sqrt().unsqueeze(2);
  result.left = s.u * root;
  result.right = s.v * root;
  if (all && config.probes > 0) {
    // E[(Σ ε_i l_i)(Σ ε_j r_j)ᵀ] = Σ l_i r_iᵀ for independent signs: one tangent instead of n
    const Tensor& signs = input.signs;
    SILC_CHECK(signs.defined() && signs.size(1) == config.probes);
    const double scale = 1 / std::sqrt(double(config.probes));
    result.left = at::matmul(signs, result.left) * scale;
    result.right = at::matmul(signs, result.right) * scale;
  }
  return result;
}

}  // namespace

// Twin of FactorBudget() and StackBudgetRows() in silc/stiffness/budget.h                     (S6)
BudgetFactors MakeBudgetFactors(const BudgetSpec& spec,
                                const Tensor& kp,
                                const ContactBatch& contact,
                                at::ScalarType type,
                                const Tensor& command) {
  at::NoGradGuard no_tape;
  const std::int64_t B = contact.mode.size(0), n = kp.size(0);
  const auto options = kp.options().dtype(at::kDouble);
  const Tensor weight =
      spec.weight == NullWeight::kServo ? kp.to(at::kDouble) : at::ones({n}, options);
  const Tensor scale = weight.rsqrt();  // Ŵ⁻¹
  const Tensor closed = contact.mode == static_cast<int>(ContactMode::kDoubleSupport);
  const Tensor flies = contact.mode == static_cast<int>(ContactMode::kFlight);
  const Tensor eye = at::eye(n, options);
  BudgetFactors result;
  // an environment that does not know the contact mode says a number beyond the last
  result.ok = contact.mode <= static_cast<int>(ContactMode::kFlight);

  // projector off the rows of J; samples without a closed chain keep the identity
  const auto projector = [&](const Tensor& J) {
    Tensor gram = at::matmul(J, Transposed(J));
    gram = at::where(BroadcastOverMatrix(closed), gram, at::eye(6, options));
    const Tensor Y = SolveLower(CholeskyOfRows(gram, RowUnits::kMixed, &result.ok), J);
    return eye - at::matmul(Transposed(Y), Y);
  };
  const Tensor J_c = at::where(
      BroadcastOverMatrix(closed), contact.closing.to(at::kDouble), at::zeros({1, 6, n}, options));
  result.Pi = projector(J_c);
  const Tensor Pi_c = spec.weight == NullWeight::kIdentity ? result.Pi : projector(J_c * scale);

  // the points that have a bound, stacked as StackBudgetRows() does
  std::vector<Tensor> rows;
  std::vector<double> K_x;
  const auto stack = [&](const std::optional<Eigen::Vector3d>& k, const Tensor& J) {
    if (!k) return;
    rows.push_back(J.to(at::kDouble));
    K_x.insert(K_x.end(), k->data(), k->data() + 3);
  };
  stack(spec.com, contact.com);
  for (int side = 0; side < 2; ++side) {
    stack(spec.hand[side], spec.hand[side] ? contact.hand_on_base.select(1, side) : Tensor());
  }
  // twin of BudgetAt(): whether a number is the command's, and its stiffness per sample     (B2)
  const auto commanded = [&](CommandedNumber i) {
    return command.defined() && spec.command.range[i].has_value();
  };
  const auto told = [&](CommandedNumber i) {
    return BroadcastOverMatrix(command.select(1, i).exp());
  };
  const Tensor root_b = commanded(kCommandNull)
                            ? told(kCommandNull).rsqrt()
                            : at::full({1, 1, 1}, 1 / std::sqrt(spec.null_stiffness), options);
  Tensor P = root_b * Pi_c;
  if (!rows.empty()) {
    const std::int64_t m = static_cast<std::int64_t>(K_x.size());
    const Tensor J_x = at::cat(rows, 1);
    std::vector<double> least_share(K_x.size(), 0.0);
    const std::int64_t hands = spec.com ? 3 : 0;  // their first row
    for (std::int64_t i = hands; i < m; ++i) least_share[i] = spec.hand_floor[i % 3];
    const auto column = [&](const std::vector<double>& k) {
      // entry by entry: a copy from the host would wait for the device
      Tensor all = at::empty({1, m, 1}, options);
      for (std::int64_t i = 0; i < m; ++i) all.select(1, i).fill_(k[i]);
      return all;
    };
    Tensor K = column(K_x);
    if (commanded(kCommandCom) || commanded(kCommandHands)) {
      K = K.expand({B, m, 1}).clone();
      if (commanded(kCommandCom)) K.narrow(1, 0, 2).copy_(told(kCommandCom).expand({B, 2, 1}));
      if (commanded(kCommandHands)) {
        K.narrow(1, hands, m - hands).copy_(told(kCommandHands).expand({B, m - hands, 1}));
      }
    }
    if (spec.HasFloor()) {
      const Tensor K_floor = column(least_share) * K;
      result.floor = at::matmul(Transposed(J_x), K_floor * J_x).to(type);
      K = K - K_floor;  // (S6) of M − m: the rows are the same
    }
    // in flight the centre of mass, whose rows are the first, has no bound: a row that is out is
    // zero, with a one in the Gram matrix's place
    const Tensor out = at::zeros({B, m}, flies.options());
    if (spec.com) out.narrow(1, 0, 3).copy_(flies.unsqueeze(1));
    Tensor J = at::matmul(J_x * scale, Pi_c);
    J = at::where(out.unsqueeze(2), at::zeros({}, options), J);
    const Tensor gram = at::matmul(J, Transposed(J)) + at::diag_embed(out.to(at::kDouble));
    const Tensor R_T = CholeskyOfRows(gram, RowUnits::kOne, &result.ok);  // Rᵀ
    const Tensor Q_T = SolveLower(R_T, J);                                // (B, m, n)
    // F Fᵀ = A⁻¹, A = R K_x Rᵀ
    const Tensor L_A = CholeskyOf(at::matmul(Transposed(R_T), K * R_T), &result.ok);
    const Tensor F = Transposed(SolveLower(L_A, at::eye(m, options).expand({B, m, m})));
    // b^{−1/2} (Π_c − Q Qᵀ) + Q F Qᵀ
    P = P + at::matmul(at::matmul(Transposed(Q_T), F - root_b * at::eye(m, options)), Q_T);
  }
  P = scale.view({1, n, 1}) * P;
  result.unit = Pi_c.to(type);
  result.ok = result.ok.logical_and(at::isfinite(P).all(2).all(1));
  result.P = at::where(BroadcastOverMatrix(result.ok), P, at::zeros({}, options)).to(type);
  result.Pi = result.Pi.to(type);
  return result;
}

Singular LargestSingular(const Tensor& A) {
  const Tensor gram = at::matmul(A, Transposed(A));
  const auto trace = [](const Tensor& C) {
    return C.diagonal(0, 1, 2).sum(1).clamp_min(1e-30).view({-1, 1, 1});
  };
  Tensor C = gram;
  for (int i = 0; i < 10; ++i) {
    C = C / trace(C);
    C = at::matmul(C, C);
  }
  // the column with the largest diagonal entry has most of the first vector in it
  const Tensor index = C.diagonal(0, 1, 2).argmax(1).view({-1, 1, 1});
  Tensor u = Transposed(C.gather(2, index.expand({-1, C.size(1), 1})));  // (B, 1, rows)
  const auto unit = [](const Tensor& x) { return x / x.norm(2, {2}, true).clamp_min(1e-30); };
  // two steps on the matrix itself take off the rounding of the squarings
  for (int i = 0; i < 2; ++i) u = unit(at::matmul(unit(u), gram));
  const Tensor w = at::matmul(u, A);
  Singular result;
  result.sigma = w.norm(2, {2});
  result.u = u;
  result.v = unit(w);
  return result;
}

PenaltyResult LogProbGradientPenalty(const PenaltyInput& input) {
  const Slopes slopes = TapedSlopes(input.activations, input.first, input.count);
  Tensor sum;
  for (std::size_t k = 0; k < input.actors.size(); ++k) {
    const Tensor mean = input.activations[k].output.narrow(0, input.first, input.count);
    // ∂ log π/∂μ
    const Tensor e = (input.action[k] - mean) / input.std[k].square();
    const Tensor each = ObservationGradient(input.actors[k], slopes.actor[k], e).square().sum(1);
    sum = sum.defined() ? sum + each : each;
  }
  PenaltyResult result;
  result.surrogate = sum.mean();
  result.value = result.surrogate.detach();
  result.sigma = sum.detach().sqrt();
  result.ok = at::ones({input.count}, sum.options().dtype(at::kBool));
  return result;
}

PenaltyResult ScalarPenalty(const PenaltyInput& input, const PenaltyConfig& config) {
  const Tensor J = ActionJacobian(
      input.actors, FrozenSlopes(input.activations, input.first, input.count), input.channels.q0);
  Singular s = config.spectral == "power" ? LargestSingular(J) : SingularOf(J);
  PenaltyResult result;
  const Tensor sigma = s.sigma.select(1, 0);
  const Tensor over = (sigma - config.lipschitz).clamp_min(0);
  const Tensor p = (2 * over).view({-1, 1, 1}) * s.u.narrow(1, 0, 1);
  result.surrogate = MeanAlongTangent(input, p, {{input.channels.q0, s.v.narrow(1, 0, 1)}});
  result.value = over.square().mean();
  result.sigma = sigma / config.lipschitz;
  result.ok = at::ones({input.count}, sigma.options().dtype(at::kBool));
  return result;
}

PenaltyResult AnisotropicPenalty(const PenaltyInput& input, const PenaltyConfig& config) {
  const Tensor J = ActionJacobian(
      input.actors, FrozenSlopes(input.activations, input.first, input.count), input.channels.q0);
  const double k2 = config.lipschitz * config.lipschitz;
  const SymmetricEigen eigen =
      EigenOf(at::matmul(J, Transposed(J)) - k2 * at::eye(J.size(1), J.options()));
  const Tensor largest = eigen.values.select(1, 0);
  const Tensor over = largest.clamp_min(0);
  const Tensor w = eigen.vectors.narrow(1, 0, 1);  // (B, 1, nu)
  PenaltyResult result;
  // (S10): dv = 2 wᵀ dJ Jᵀ w
  result.surrogate = MeanAlongTangent(
      input, (4 * over).view({-1, 1, 1}) * w, {{input.channels.q0, at::matmul(w, J)}});
  result.value = over.square().mean();
  result.sigma = ((largest + k2).clamp_min(0) / k2).sqrt();
  result.ok = at::ones({input.count}, over.options().dtype(at::kBool));
  return result;
}

PenaltyResult PaperPenalty(const PenaltyInput& input, const PenaltyConfig& config) {
  const Tensor J = ActionJacobian(
      input.actors, FrozenSlopes(input.activations, input.first, input.count), input.channels.q0);
  // (S2)
  const Tensor gain = (input.servo.kp * input.servo.alpha).view({1, -1, 1});
  const Tensor K_1 = at::diag(input.servo.kp) - gain * J;
  PenaltyResult result;
  result.ok = input.budget.ok.logical_and(at::isfinite(K_1).all(2).all(1));
  const Tensor K = at::where(BroadcastOverMatrix(result.ok), K_1, at::zeros({}, K_1.options()));
  // (S7a): ‖Pᵀ K Π‖
  const Tensor A = at::matmul(at::matmul(Transposed(input.budget.P), K), input.budget.Pi);
  const Directions d = PenalisedDirections(A, BoundOf(input, A), config, input);
  // left = P u, right = Π v; p = −α Kp left
  const Tensor p = -at::matmul(d.left, Transposed(input.budget.P)) * gain.view({1, 1, -1});
  const Tensor r = at::matmul(d.right, Transposed(input.budget.Pi));
  result.surrogate = MeanAlongTangent(input, p, {{input.channels.q0, r}});
  result.value = MeanOf(d.value, result.ok);
  result.sigma = d.sigma;
  return result;
}

namespace {

// The feedback of actions that go as z^t on the next action: A(z) = Σ z^{−k} (S_a + S_τ Kp α)_k.
struct FeedbackAt {
  Tensor real, imag;  // (B, nu, nu); imag is undefined where z is real
  // first columns of the real and imaginary parts among those of the observation
  std::int64_t a = -1, a_imag = -1, tau = -1, tau_imag = -1;
};

// What (S3) leaves of a batch.
struct QuasiStaticBatch {
  std::vector<FeedbackAt> points;  // z = 1 first; none where the policy sees neither
  Tensor loop;                     // (B, nu, nu) I − S_a − S_τ Kp α
  Tensor inverse;                  // its inverse N₀; not finite where there is none
  Tensor X;                        // (B, nu, nv) N₀ (S_q + S_g E − S_τ Kp)
  Tensor columns;                  // (obs, c) of the channels it sees: q, a, τ, g
  bool sees_action = false, sees_torque = false, sees_gravity = false;
};

// Twin of SolveQuasiStatic() in silc/stiffness/joint_stiffness.h                             (S3)
QuasiStaticBatch SolveQuasiStaticBatch(const PenaltyInput& input) {
  const Channels& channels = input.channels;
  const Slopes slopes = FrozenSlopes(input.activations, input.first, input.count);
  const Tensor kp = input.servo.kp, alpha = input.servo.alpha;
  QuasiStaticBatch result;
  result.sees_action = channels.a.defined();
  result.sees_torque = channels.tau.defined();
  result.sees_gravity = channels.g.defined() && input.gravity.defined();

  // all columns through one chain: the products from the left are the same for every channel
  std::vector<Tensor> columns = {channels.q};
  if (result.sees_action) columns.push_back(channels.a);
  if (result.sees_torque) columns.push_back(channels.tau);
  if (result.sees_gravity) columns.push_back(channels.g);
  for (const LoopPoint& point : channels.loop) {
    for (const Tensor& part : {point.a, point.a_imag, point.tau, point.tau_imag}) {
      if (part.defined()) columns.push_back(part);
    }
  }
  result.columns = at::cat(columns, 1);
  const Tensor blocks = ActionJacobian(input.actors, slopes, result.columns);
  std::int64_t column = 0;
  const auto next_block = [&](const Tensor& of) {
    Tensor block = blocks.narrow(2, column, of.size(1));
    column += of.size(1);
    return block;
  };

  // (S3)
  Tensor drive = next_block(channels.q);
  result.loop = IdentityLike(drive).expand_as(drive);
  FeedbackAt slow;  // z = 1, where trained policies have their slowest modes
  if (result.sees_action) {
    slow.a = column;
    result.loop = result.loop - next_block(channels.a);
  }
  if (result.sees_torque) {
    slow.tau = column;
    const Tensor S_tau = next_block(channels.tau);
    result.loop = result.loop - S_tau * (kp * alpha);
    drive = drive - S_tau * kp;
  }
  if (result.sees_gravity) drive = drive + at::matmul(next_block(channels.g), input.gravity);
  if (result.sees_action || result.sees_torque) {
    slow.real = IdentityLike(drive) - result.loop;  // S_a + S_τ Kp α
    result.points.push_back(slow);
  }
  for (const LoopPoint& point : channels.loop) {
    FeedbackAt at;
    const auto add = [&](const Tensor& part, bool torque, Tensor* sum, std::int64_t* first) {
      if (!part.defined()) return;
      *first = column;
      const Tensor block = torque ? next_block(part) * (kp * alpha) : next_block(part);
      *sum = sum->defined() ? *sum + block : block;
    };
    add(point.a, false, &at.real, &at.a);
    add(point.a_imag, false, &at.imag, &at.a_imag);
    add(point.tau, true, &at.real, &at.tau);
    add(point.tau_imag, true, &at.imag, &at.tau_imag);
    result.points.push_back(at);
  }
  result.inverse = InverseOf(result.loop);
  result.X = at::matmul(result.inverse, drive);
  return result;
}

// (P16): tangents that hold ‖A(z)‖ under a limit, appended to `direction` and `pull`; the violation
// is added to `value`. A complex matrix is the real one [Re −Im; Im Re], which has its norm; with
// singular vectors (u_r, u_i), (v_r, v_i) of that,
//     dσ = u_r · (dRe v_r − dIm v_i) + u_i · (dRe v_i + dIm v_r)
// so that it costs two tangents where a real one costs one.
void HoldFeedback(const FeedbackAt& at,
                  const QuasiStaticBatch& settled,
                  const Tensor& gain,  // (nu) Kp α
                  const Tensor& limit,
                  const PenaltyConfig& config,
                  Tensor* direction,
                  Tensor* pull,
                  PenaltyResult* result) {
  const std::int64_t n = at.real.size(1);
  Tensor A = at.real;
  if (at.imag.defined()) {
    A = Embedded(at.real, at.imag);
  }
  const Tensor zero = at::zeros({}, A.options());
  A = at::where(BroadcastOverMatrix(at::isfinite(A).all(2).all(1)), A, zero);
  // a complex point's matrix has twice as many rows as joints, more than SingularOf() takes on a
  // GPU
  const bool largest = config.spectral == "power" || at.imag.defined();
  const Singular s = largest ? LargestSingular(A) : SingularOf(A);
  const Tensor norm = s.sigma.select(1, 0);
  const double weight = config.action_loop_weight;
  const Tensor over = (norm - limit).clamp_min(0);
  result->value = result->value + weight * over.square().mean();
  result->loop_norm = result->loop_norm.defined() ? at::maximum(result->loop_norm, norm) : norm;
  const Tensor slope = (2 * weight * over).view({-1, 1, 1});
  const auto tangent = [&](const Tensor& u, const Tensor& along, const Tensor& across) {
    Tensor moved = at::zeros({u.size(0), 1, settled.columns.size(1)}, u.options());
    const auto put = [&](std::int64_t first, const Tensor& v) {
      if (first >= 0) moved.narrow(2, first, n).copy_(v);
    };
    put(at.a, along);
    put(at.tau, along * gain);
    if (across.defined()) {
      put(at.a_imag, across);
      put(at.tau_imag, across * gain);
    }
    *direction = at::cat({*direction, moved}, 1);
    *pull = at::cat({*pull, slope * u}, 1);
  };
  const Tensor u = s.u.narrow(1, 0, 1), v = s.v.narrow(1, 0, 1);
  if (!at.imag.defined()) {
    tangent(u, v, {});
    return;
  }
  const Tensor v_r = v.narrow(2, 0, n), v_i = v.narrow(2, n, n);
  tangent(u.narrow(2, 0, n), v_r, -v_i);
  tangent(u.narrow(2, n, n), v_i, v_r);
}

}  // namespace

PenaltyResult StaticPenalty(const PenaltyInput& input, const PenaltyConfig& config) {
  const Tensor kp = input.servo.kp, alpha = input.servo.alpha;
  const QuasiStaticBatch settled = SolveQuasiStaticBatch(input);
  const Tensor eye = IdentityLike(settled.X);

  // a sample whose action loop is nearly an integrator has no K_s worth the name
  PenaltyResult result;
  result.ok = input.budget.ok.logical_and(at::isfinite(settled.X).all(2).all(1))
                  .logical_and(settled.inverse.abs().amax({1, 2}) < config.loop_gain_limit);
  const Tensor zero = at::zeros({}, settled.X.options());
  const Tensor X = at::where(BroadcastOverMatrix(result.ok), settled.X, zero);
  const Tensor N_0 = at::where(BroadcastOverMatrix(result.ok), settled.inverse, eye);
  const Tensor gain = (kp * alpha).view({1, -1, 1});
  const Tensor K = at::diag(kp) - gain * X;

  // (S7c): A = 2 Pᵀ (K − m) P − Π_c; samples left out become A = 0. A bound b under 1 is a margin:
  // the budget is b M then, which asks for less stiffness and for no more of it anywhere.
  const Tensor bound = BoundOf(input, K);
  const Tensor scale = 2 / bound.clamp_max(1);
  const Tensor held = input.budget.floor.defined() ? K - input.budget.floor : K;
  const Tensor form = at::matmul(at::matmul(Transposed(input.budget.P), held), input.budget.P);
  const auto condition = [&](const Tensor& twice) {
    return at::where(BroadcastOverMatrix(result.ok), twice - input.budget.unit, zero);
  };
  const Directions d =
      PenalisedDirections(condition(scale * form), bound.clamp_min(1), config, input);
  if (std::min(config.bound_start, config.bound_end) < 1) result.condition = condition(2 * form);
  // left = 2 P u/min(b, 1), right = P v; p = −N₀ᵀ α Kp left                               (S9)
  const Tensor left = scale * at::matmul(d.left, Transposed(input.budget.P));
  const Tensor r = at::matmul(d.right, Transposed(input.budget.P));
  const Tensor p = at::matmul(-left * gain.view({1, 1, -1}), N_0);
  // how the observation moves along the channels, in the order of their columns
  std::vector<Tensor> along = {r};
  if (settled.sees_action) along.push_back(at::matmul(r, Transposed(X)));
  if (settled.sees_torque) along.push_back(-at::matmul(r, Transposed(K)));
  if (settled.sees_gravity) along.push_back(at::matmul(r, Transposed(input.gravity)));
  // the columns of other points of the circle are the loop's alone
  Tensor direction = at::cat(along, 2), pull = p;
  const std::int64_t rest = settled.columns.size(1) - direction.size(2);
  if (rest > 0) {
    const auto others = {direction.size(0), direction.size(1), rest};
    direction = at::cat({direction, at::zeros(others, direction.options())}, 2);
  }
  result.value = MeanOf(d.value, result.ok);
  result.sigma = d.sigma;

  // the action loop, also of samples left out: it is what brings them back. A bound that is still
  // being tightened leaves the loop as much room.
  const Tensor limit = config.action_loop_limit + 0.5 * bound.clamp_min(1).log();
  for (const FeedbackAt& at : settled.points) {
    HoldFeedback(at, settled, kp * alpha, limit, config, &direction, &pull, &result);
  }
  result.surrogate = MeanAlongTangent(input, pull, {{settled.columns, direction}});
  AddFrequencyPenalty(input, config, result.ok, &result);
  return result;
}

PenaltyResult Penalty(Method method, const PenaltyInput& input, const PenaltyConfig& config) {
  switch (method) {
    case Method::kLcp:
      return LogProbGradientPenalty(input);
    case Method::kScalarLcp:
      return ScalarPenalty(input, config);
    case Method::kAlcp:
      return AnisotropicPenalty(input, config);
    case Method::kSilcPaper:
      return PaperPenalty(input, config);
    case Method::kSilc:
      return StaticPenalty(input, config);
    case Method::kBaseline:
    case Method::kSnLcp:
      break;
  }
  SILC_CHECK(false && "this method has no penalty");
  return {};
}

double PenaltyWeight::Lambda(int iteration) const {
  if (iteration < config_.start) return 0;
  if (config_.schedule == "ramp") {
    return config_.lambda * std::min(1.0, double(iteration - config_.start + 1) / config_.ramp);
  }
  if (config_.schedule == "multiplier") return config_.lambda * std::exp(state.log_multiplier);
  return config_.lambda;
}

double PenaltyWeight::Bound() const { return config_.bound_start * std::exp(state.log_bound); }

void PenaltyWeight::Follow(double violation, double score) {
  if (!std::isfinite(violation) || !std::isfinite(score)) return;
  const auto smooth = [&](double value, double* mean) {
    *mean = state.follows == 0 ? value : *mean + 0.1 * (value - *mean);
  };
  smooth(score, &state.smoothed_score);
  smooth(violation, &state.smoothed_violation);
  state.best_score =
      state.follows == 0 ? state.smoothed_score : std::max(state.best_score, state.smoothed_score);
  ++state.follows;
  const double reference = config_.score_reference > 0 ? config_.score_reference : state.best_score;
  const double floor = config_.multiplier_floor * reference;
  const bool fulfilled = !(reference > 0 && state.smoothed_score < floor);
  const double way = std::log(config_.bound_end / config_.bound_start);
  if (!fulfilled) {
    state.log_bound -= std::copysign(config_.bound_rate, way);
  } else if (state.smoothed_violation <= config_.bound_lag) {
    state.log_bound += std::copysign(config_.bound_rate, way);
  }
  state.log_bound = std::clamp(state.log_bound, std::min(way, 0.0), std::max(way, 0.0));
  if (config_.schedule != "multiplier") return;
  double drive = (violation - config_.multiplier_target) / config_.multiplier_target;
  if (!fulfilled) drive = -4 * (1 - state.smoothed_score / floor);
  state.log_multiplier += config_.multiplier_rate * std::clamp(drive, -1.0, 1.0);
  // four decades either way: beyond them the weight says nothing any more
  state.log_multiplier = std::clamp(state.log_multiplier, std::log(1e-4), std::log(1e4));
}

}  // namespace silc
