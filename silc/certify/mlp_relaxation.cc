// SPDX-License-Identifier: Apache-2.0
#include "silc/certify/mlp_relaxation.h"

#include <cmath>
#include <limits>

#include "silc/base/check.h"

namespace silc {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// A sum of n products in any order is off by at most this times the sum of their moduli: n u/(1 − n
// u), with u = kEpsilon/2 and twice the room.
double SumError(Eigen::Index n) { return kEpsilon * static_cast<double>(n + 4); }

Eigen::VectorXd RowSums(const Eigen::MatrixXd& m) {
  if (m.cols() == 0) return Eigen::VectorXd::Zero(m.rows());
  return m.cwiseAbs().rowwise().sum();
}

}  // namespace

DenseNetwork MakeDenseNetwork(const MlpNetwork& network) {
  network.Check();
  DenseNetwork dense;
  dense.inputs = network.inputs;
  dense.outputs = network.outputs();
  dense.scale = Eigen::VectorXd::Ones(network.inputs);
  dense.shift = Eigen::VectorXd::Zero(network.inputs);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  dense.clip_low = Eigen::VectorXd::Constant(network.inputs, -kInfinity);
  dense.clip_high = Eigen::VectorXd::Constant(network.inputs, kInfinity);
  for (const InputStep& step : network.prefix) {
    for (int i = 0; i < network.inputs; ++i) {
      double& scale = dense.scale[i];
      double& shift = dense.shift[i];
      const double operand =
          step.operand.empty() ? 0 : static_cast<double>(step.operand[static_cast<std::size_t>(i)]);
      switch (step.kind) {
        case InputStep::Kind::kAdd:
          shift += operand;
          break;
        case InputStep::Kind::kSub:
          shift -= operand;
          break;
        case InputStep::Kind::kMul:
          scale *= operand;
          shift *= operand;
          break;
        case InputStep::Kind::kDiv:
          scale /= operand;
          shift /= operand;
          break;
        case InputStep::Kind::kClip: {
          // low ≤ scale x + shift ≤ high
          double low = (step.low - shift) / scale, high = (step.high - shift) / scale;
          if (low > high) std::swap(low, high);
          dense.clip_low[i] = std::max(dense.clip_low[i], low);
          dense.clip_high[i] = std::min(dense.clip_high[i], high);
          break;
        }
      }
    }
  }
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  for (const std::vector<MlpLayer>& branch : network.branches) {
    std::vector<DenseNetwork::Layer> layers;
    for (const MlpLayer& layer : branch) {
      DenseNetwork::Layer to;
      to.W = Eigen::Map<const RowMajor>(layer.weight.data(), layer.outputs, layer.inputs)
                 .cast<double>();
      to.b = Eigen::Map<const Eigen::VectorXf>(layer.bias.data(), layer.outputs).cast<double>();
      to.activation = layer.activation;
      to.alpha = layer.alpha;
      layers.push_back(std::move(to));
    }
    dense.branches.push_back(std::move(layers));
  }
  return dense;
}

std::vector<LayerRelaxation> RelaxBranch(const DenseNetwork& network,
                                         int branch,
                                         const ObservationBox& box) {
  SILC_CHECK(box.centre.size() == network.inputs);
  // the input: centre, lines in the symbols, lines in errors (none yet), and what rounding left
  Eigen::VectorXd h = network.scale.cwiseProduct(box.centre) + network.shift;
  Eigen::VectorXd slack =
      SumError(4) * (network.scale.cwiseProduct(box.centre).cwiseAbs() + network.shift.cwiseAbs());
  Eigen::MatrixXd in_symbols = Eigen::MatrixXd::Zero(network.inputs, box.symbols);
  for (const ObservationBox::Entry& entry : box.entries) {
    in_symbols(entry.input, entry.symbol) += network.scale[entry.input] * entry.radius;
    slack[entry.input] += SumError(4) * std::abs(network.scale[entry.input] * entry.radius);
  }
  Eigen::MatrixXd in_errors(network.inputs, 0);

  std::vector<LayerRelaxation> relaxed;
  for (const DenseNetwork::Layer& layer : network.branches[static_cast<std::size_t>(branch)]) {
    const Eigen::Index units = layer.W.rows(), inputs = layer.W.cols();
    const Eigen::MatrixXd size = layer.W.cwiseAbs();
    const Eigen::VectorXd reach = RowSums(in_symbols) + RowSums(in_errors);

    // z = W h + b, and the moduli whose share the roundings are
    const Eigen::VectorXd z = layer.W * h + layer.b;
    Eigen::VectorXd z_slack = size * slack;
    z_slack += SumError(inputs + in_symbols.cols() + in_errors.cols()) *
               (size * (h.cwiseAbs() + reach + slack) + layer.b.cwiseAbs());
    const Eigen::MatrixXd z_symbols = layer.W * in_symbols;
    const Eigen::MatrixXd z_errors = layer.W * in_errors;
    const Eigen::VectorXd error_reach = RowSums(z_errors) + z_slack;
    const Eigen::VectorXd symbol_reach = RowSums(z_symbols);

    LayerRelaxation out;
    out.slope.resize(units);
    out.own.resize(units);
    out.spread.resize(units);
    out.low.resize(units);
    out.high.resize(units);
    Eigen::VectorXd tilt(units), gain(units), value_error(units);
    h.resize(units);
    for (Eigen::Index k = 0; k < units; ++k) {
      const double radius =
          (symbol_reach[k] + error_reach[k]) * (1 + SumError(z_symbols.cols() + z_errors.cols()));
      const ActivationBounds bounds =
          BoundActivation(layer.activation, layer.alpha, z[k], radius + kEpsilon * std::abs(z[k]));
      h[k] = bounds.value.value;
      gain[k] = bounds.value.slope;
      value_error[k] = bounds.value.error;
      tilt[k] = bounds.slope.slope;
      out.slope[k] = bounds.slope.value;
      // the last term: what rounding tilt ∘ z does to the lines in the symbols
      out.own[k] = bounds.slope.error +
                   std::abs(tilt[k]) * (error_reach[k] + 2 * kEpsilon * symbol_reach[k]);
      out.spread[k] = bounds.slope.error + std::abs(tilt[k]) * radius;
      out.low[k] = z[k] - radius;
      out.high[k] = z[k] + radius;
      // finite weights can overflow a double: nothing is known then, here and in every later layer
      const double all =
          out.high[k] - out.low[k] + value_error[k] + out.own[k] + out.spread[k] + h[k];
      if (!std::isfinite(all)) {
        h[k] = gain[k] = tilt[k] = out.slope[k] = 0;
        value_error[k] = out.own[k] = out.spread[k] = out.high[k] = HUGE_VAL;
        out.low[k] = -HUGE_VAL;
      }
    }
    out.is_constant = layer.activation == Activation::kNone;
    if (!out.is_constant) out.tilt = tilt.asDiagonal() * z_symbols;
    relaxed.push_back(std::move(out));

    // h = φ(z): each unit's error is a symbol of its own from here on
    const bool bends = layer.activation != Activation::kNone;
    in_symbols = gain.asDiagonal() * z_symbols;
    const Eigen::Index old = z_errors.cols();
    in_errors.resize(units, old + (bends ? units : 0));
    in_errors.leftCols(old) = gain.asDiagonal() * z_errors;
    if (bends) in_errors.rightCols(units) = Eigen::MatrixXd(value_error.asDiagonal());
    slack = gain.cwiseAbs().cwiseProduct(z_slack);
    for (Eigen::Index k = 0; k < units; ++k) {
      if (!std::isfinite(value_error[k])) slack[k] = HUGE_VAL;
    }
  }
  return relaxed;
}

std::vector<Eigen::VectorXd> BranchSlopes(const DenseNetwork& network,
                                          int branch,
                                          const Eigen::VectorXd& x) {
  Eigen::VectorXd h = network.scale.cwiseProduct(x) + network.shift;
  std::vector<Eigen::VectorXd> slopes;
  for (const DenseNetwork::Layer& layer : network.branches[static_cast<std::size_t>(branch)]) {
    const Eigen::VectorXd z = layer.W * h + layer.b;
    Eigen::VectorXd slope(z.size());
    h.resize(z.size());
    for (Eigen::Index k = 0; k < z.size(); ++k) {
      h[k] = EvaluateActivation(layer.activation, layer.alpha, z[k]);
      slope[k] = ActivationSlope(layer.activation, layer.alpha, z[k]);
    }
    slopes.push_back(std::move(slope));
  }
  return slopes;
}

}  // namespace silc
