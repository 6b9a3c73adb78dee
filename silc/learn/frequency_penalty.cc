// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/frequency_penalty.h"

#include <cmath>
#include <complex>
#include <numbers>
#include <utility>

#include "silc/base/check.h"
#include "silc/learn/penalty_terms.h"

namespace silc {
namespace {

// A batch of complex matrices or vectors as two real ones: a GPU's graph takes no complex products.
struct Complex {
  Tensor re, im;
};

Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
Complex operator-(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
Complex Product(const Complex& a, const Complex& b) {
  return {at::matmul(a.re, b.re) - at::matmul(a.im, b.im),
          at::matmul(a.re, b.im) + at::matmul(a.im, b.re)};
}
Complex Product(const Complex& a, const Tensor& b) {
  return {at::matmul(a.re, b), at::matmul(a.im, b)};
}
Complex Times(const Complex& a, std::complex<double> factor) {
  return {factor.real() * a.re - factor.imag() * a.im, factor.real() * a.im + factor.imag() * a.re};
}
Complex Times(const Complex& a, const Tensor& factor) { return {a.re * factor, a.im * factor}; }
Complex ComplexTransposed(const Complex& a) { return {a.re.transpose(1, 2), a.im.transpose(1, 2)}; }
Complex Conjugate(const Complex& a) { return {a.re, -a.im}; }

// (R + jI)⁻¹ by two real inverses; not finite where R is singular. R = I − Re A is not where ‖A‖
// < 1.
Complex ComplexInverseOf(const Complex& a) {
  const Tensor turned = at::matmul(InverseOf(a.re), a.im);
  const Tensor re = InverseOf(a.re + at::matmul(a.im, turned));
  return {re, -at::matmul(turned, re)};
}

// Vectors (B, 1, 2n) of Embedded() as complex ones.
Complex Halves(const Tensor& vector) {
  const std::int64_t n = vector.size(2) / 2;
  return {vector.narrow(2, 0, n), vector.narrow(2, n, n)};
}

// (S4) at one frequency, and what its gradient needs.
struct DynamicBatch {
  Complex N;    // (B, nu, nu) (I − A)⁻¹
  Complex X;    // (B, nu, nv) N G: how actions follow the joints
  Complex K_e;  // (B, nv, nv) K − jω Kd
};

// Columns of one frequency among those of all.
struct Columns {
  std::int64_t q = -1, a = -1, tau = -1, g = -1;  // first of the real part; the imaginary follows
};

DynamicBatch SolveDynamic(const FrequencyPoint& point,
                          const Columns& at,
                          const Tensor& blocks,
                          const PenaltyInput& input) {
  const Tensor &kp = input.servo.kp, &kd = input.servo.kd, gain = kp * input.servo.alpha;
  const std::int64_t n = kp.size(0);
  const auto block = [&](std::int64_t first, std::int64_t width) -> Complex {
    return {blocks.narrow(2, first, width), blocks.narrow(2, first + width, width)};
  };
  Complex G = block(at.q, n);
  Complex loop = {at::eye(n, kp.options()).expand_as(G.re), at::zeros_like(G.re)};
  if (at.a >= 0) loop = loop - block(at.a, n);
  if (at.tau >= 0) {
    const Complex tau = block(at.tau, n);
    G = G - Times(tau, kp) - Times(Times(tau, {0, point.omega}), kd);
    loop = loop - Times(Times(tau, point.torque_delay), gain);
  }
  if (at.g >= 0) G = G + Product(block(at.g, 3), input.gravity);
  DynamicBatch out;
  out.N = ComplexInverseOf(loop);
  out.X = Product(out.N, G);
  out.K_e = Times(Times(out.X, -point.path), gain.view({1, -1, 1}));
  out.K_e.re = out.K_e.re + at::diag(kp);
  return out;
}

// The two tangents of Re(lᴴ dK r), l and r (B, 1, nv) with the slope of the hinge in l: dK = −path
// Kp α N (dG + dA X), so that they are Re(pᴴ dJ o), p = −Nᴴ (path* Kp α l) and o the observation
// that follows joints moving along r.
void AddTangents(const FrequencyPoint& point,
                 const Columns& at,
                 const DynamicBatch& moved,
                 const PenaltyInput& input,
                 const Complex& l,
                 const Complex& r,
                 std::int64_t columns,
                 std::vector<Tensor>* directions,
                 std::vector<Tensor>* pulls) {
  const Tensor &kp = input.servo.kp, &kd = input.servo.kd, gain = kp * input.servo.alpha;
  const std::int64_t n = kp.size(0);
  // rows: pᵀ = −(path* Kp α l)ᵀ N*
  const Complex weighed = Times(Times(l, -std::conj(point.path)), gain);
  const Complex p = Product(weighed, Conjugate(moved.N));
  const Complex actions = Product(r, ComplexTransposed(moved.X));
  Tensor along = at::zeros({r.re.size(0), 1, columns}, r.re.options());
  Tensor across = at::zeros_like(along);
  const auto put = [&](std::int64_t first, std::int64_t width, const Complex& c) {
    if (first < 0) return;
    // (C + jS)(c_r + j c_i)
    along.narrow(2, first, width).copy_(c.re);
    along.narrow(2, first + width, width).copy_(-c.im);
    across.narrow(2, first, width).copy_(c.im);
    across.narrow(2, first + width, width).copy_(c.re);
  };
  put(at.q, n, r);
  put(at.a, n, actions);
  if (at.tau >= 0) {
    const Complex springs = Times(r, kp) + Times(Times(r, {0, point.omega}), kd);
    put(at.tau, n, Times(Times(actions, point.torque_delay), gain) - springs);
  }
  if (at.g >= 0) put(at.g, 3, Product(r, input.gravity.transpose(1, 2)));
  directions->push_back(along);
  directions->push_back(across);
  pulls->push_back(p.re);
  pulls->push_back(p.im);
}

}  // namespace

std::vector<FrequencyPoint> MakeFrequencyPoints(std::span<const double> hz,
                                                double period,
                                                double latency,
                                                const FrequencyEntries& entries,
                                                int obs_dim,
                                                int joints,
                                                const at::TensorOptions& options) {
  using Number = std::complex<double>;
  constexpr Number kJ(0, 1);
  std::vector<FrequencyPoint> points;
  for (const double f : hz) {
    if (f == 0) continue;
    FrequencyPoint point;
    point.omega = 2 * std::numbers::pi * f;
    const double turn = point.omega * period;
    SILC_CHECK(turn < std::numbers::pi);
    point.path =
        std::exp(-kJ * (point.omega * latency)) * (1.0 - std::exp(-kJ * turn)) / (kJ * turn);
    point.torque_delay = std::exp(-kJ * (turn * std::max(1.0, std::ceil(latency / period))));
    const auto add =
        [&](std::span<const ColumnEntry> list, double lag, Number factor, Tensor* sum) {
          if (list.empty()) return;
          if (!sum->defined()) *sum = at::zeros({obs_dim, 2, joints}, at::kDouble);
          auto at = sum->accessor<double, 3>();
          for (const ColumnEntry& e : list) {
            const double age =
                entries.age.empty() ? 0 : entries.age[static_cast<std::size_t>(e.input)];
            const Number z =
                static_cast<double>(e.value) * factor * std::exp(-kJ * (turn * (age + lag)));
            at[e.input][0][e.column] += z.real();
            at[e.input][1][e.column] += z.imag();
          }
        };
    Tensor q, a, tau, g;
    add(entries.q, 0, 1, &q);
    add(entries.v, 0, kJ * point.omega, &q);
    add(entries.a, 1, 1, &a);
    add(entries.tau, 0, 1, &tau);
    add(entries.g, 0, 1, &g);
    SILC_CHECK(q.defined());
    const auto columns = [&](const Tensor& sum, std::int64_t width) {
      if (!sum.defined()) return Tensor();
      return sum.narrow(2, 0, width).reshape({obs_dim, 2 * width}).to(options);
    };
    point.q = columns(q, joints);
    point.a = columns(a, joints);
    point.tau = columns(tau, joints);
    point.g = columns(g, 3);
    points.push_back(std::move(point));
  }
  return points;
}

void AddFrequencyPenalty(const PenaltyInput& input,
                         const PenaltyConfig& config,
                         const Tensor& ok,
                         PenaltyResult* result) {
  const std::vector<FrequencyPoint>& points = input.channels.frequencies;
  if (points.empty()) return;
  SILC_CHECK(input.servo.kd.defined());
  // all columns of all frequencies through one chain
  std::vector<Tensor> parts;
  std::vector<Columns> where;
  std::int64_t width = 0;
  for (const FrequencyPoint& point : points) {
    Columns at;
    const auto take = [&](const Tensor& columns, std::int64_t* first) {
      if (!columns.defined()) return;
      *first = width;
      width += columns.size(1);
      parts.push_back(columns);
    };
    take(point.q, &at.q);
    take(point.a, &at.a);
    take(point.tau, &at.tau);
    if (input.gravity.defined()) take(point.g, &at.g);
    where.push_back(at);
  }
  const Tensor columns = at::cat(parts, 1);
  const Tensor blocks = ActionJacobian(
      input.actors, FrozenSlopes(input.activations, input.first, input.count), columns);

  const Tensor& P = input.budget.P;
  const Tensor P_T = P.transpose(1, 2);
  const Tensor bound = BoundOf(input, P), scale = 2 / bound.clamp_max(1);
  const double share = 1.0 / static_cast<double>(points.size());
  std::vector<Tensor> directions, pulls;
  for (std::size_t f = 0; f < points.size(); ++f) {
    const FrequencyPoint& point = points[f];
    DynamicBatch moved = SolveDynamic(point, where[f], blocks, input);
    const auto finite = [](const Complex& a) {
      return at::isfinite(a.re).all(2).all(1).logical_and(at::isfinite(a.im).all(2).all(1));
    };
    const Tensor good = ok.logical_and(finite(moved.K_e))
                            .logical_and(moved.N.re.abs().amax({1, 2}) < config.loop_gain_limit)
                            .logical_and(moved.N.im.abs().amax({1, 2}) < config.loop_gain_limit);
    const Tensor zero = at::zeros({}, P.options());
    for (Complex* part : {&moved.N, &moved.X, &moved.K_e}) {
      part->re = at::where(BroadcastOverMatrix(good), part->re, zero);
      part->im = at::where(BroadcastOverMatrix(good), part->im, zero);
    }

    // (S12): 2 Pᵀ (K_e − m) P/min(b, 1) − Π_c
    Complex held = moved.K_e;
    if (input.budget.floor.defined()) held.re = held.re - input.budget.floor;
    const Complex form = {at::matmul(at::matmul(P_T, held.re), P),
                          at::matmul(at::matmul(P_T, held.im), P)};
    Complex A = {scale * form.re - input.budget.unit, scale * form.im};
    A = {at::where(BroadcastOverMatrix(good), A.re, zero),
         at::where(BroadcastOverMatrix(good), A.im, zero)};
    const Singular s = LargestSingular(Embedded(A.re, A.im));
    const Tensor sigma = s.sigma.select(1, 0);
    const HingeTerms hinge = HingeOf(sigma, config.hinge, bound.clamp_min(1));
    result->value = result->value + share * MeanOf(hinge.value, good);
    // P_T takes rows (B, 1, n) to the joints: (P u)ᵀ = uᵀ Pᵀ
    const Tensor slope = BroadcastOverMatrix(share * hinge.slope);
    const Complex l = Times(Product(Halves(s.u), P_T), slope * scale);
    AddTangents(
        point, where[f], moved, input, l, Product(Halves(s.v), P_T), width, &directions, &pulls);

    // (S13): D = −2 Pᵀ S P, S = sym Im K − j skew Re K; shifted, so that the largest eigenvalue is
    // the largest in size
    const Tensor im = moved.K_e.im + at::diag(point.omega * input.servo.kd);
    const Complex twice = {-(im + im.transpose(1, 2)), moved.K_e.re - moved.K_e.re.transpose(1, 2)};
    Complex D = {at::matmul(at::matmul(P_T, twice.re), P),
                 at::matmul(at::matmul(P_T, twice.im), P)};
    D = {at::where(BroadcastOverMatrix(good), D.re, zero),
         at::where(BroadcastOverMatrix(good), D.im, zero)};
    const Tensor shift = (D.re.square() + D.im.square()).sum({1, 2}).sqrt();
    const Tensor matrix = Embedded(D.re, D.im);
    const Singular d = LargestSingular(matrix + BroadcastOverMatrix(shift) *
                                                    at::eye(matrix.size(1), matrix.options()));
    const Tensor driving = d.sigma.select(1, 0) - shift, over = driving.clamp_min(0);
    const double weight = share * config.damping_weight;
    result->value = result->value + weight * MeanOf(over.square(), good);
    // dν = Re(lᴴ dK r), r = P u and l = −2j r
    const Complex r = Product(Halves(d.v), P_T);
    AddTangents(point,
                where[f],
                moved,
                input,
                Times(Times(r, {0, -2}), BroadcastOverMatrix(2 * weight * over)),
                r,
                width,
                &directions,
                &pulls);

    const auto largest = [](const Tensor& before, const Tensor& now) {
      return before.defined() ? at::maximum(before, now) : now;
    };
    result->frequency_sigma = largest(result->frequency_sigma, sigma);
    result->frequency_driving = largest(result->frequency_driving, driving);
  }
  result->surrogate =
      result->surrogate +
      MeanAlongTangent(input, at::cat(pulls, 1), {{columns, at::cat(directions, 1)}});
}

}  // namespace silc
