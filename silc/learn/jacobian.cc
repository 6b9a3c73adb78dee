// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/jacobian.h"

#include <cmath>
#include <numbers>

#include "silc/base/check.h"
#include "silc/base/rng.h"

namespace silc {
namespace {

Slopes SlopesOf(const std::vector<Activations>& actors,
                std::int64_t first,
                std::int64_t count,
                bool tape) {
  Slopes slopes;
  for (const Activations& activations : actors) {
    std::vector<Tensor> layers;
    for (const Tensor& z : activations.z) {
      layers.push_back(EluSlope((tape ? z : z.detach()).narrow(0, first, count)));
    }
    slopes.actor.push_back(std::move(layers));
  }
  return slopes;
}

}  // namespace

Tensor DenseColumns(std::span<const ColumnEntry> entries,
                    int obs_dim,
                    int columns,
                    const at::TensorOptions& options) {
  if (entries.empty()) return {};
  Tensor dense = at::zeros({obs_dim, columns}, at::kFloat);
  auto at = dense.accessor<float, 2>();
  for (const ColumnEntry& entry : entries) {
    SILC_CHECK(entry.input >= 0 && entry.input < obs_dim);
    SILC_CHECK(entry.column >= 0 && entry.column < columns);
    at[entry.input][entry.column] += entry.value;
  }
  return dense.to(options);
}

std::vector<double> DrawLoopAngles(int points, std::uint64_t seed, int iteration) {
  constexpr std::uint32_t kStream = 0x6c6f6f70;  // of these draws alone
  Rng rng(seed, kStream, static_cast<std::uint32_t>(iteration));
  std::vector<double> angles;
  for (int i = 0; i < points; ++i) {
    angles.push_back(std::numbers::pi * (i + rng.Uniform()) / points);
  }
  return angles;
}

std::vector<LoopPoint> MakeLoopPoints(std::span<const double> angles,
                                      std::span<const ColumnEntry> a,
                                      std::span<const ColumnEntry> tau,
                                      std::span<const int> age,
                                      int obs_dim,
                                      int columns,
                                      const at::TensorOptions& options) {
  std::vector<LoopPoint> result;
  if (a.empty() && tau.empty()) return result;
  for (const double angle : angles) {
    const auto part = [&](std::span<const ColumnEntry> entries, bool imaginary) {
      if (entries.empty()) return Tensor();
      const Tensor turned = at::zeros({obs_dim, columns}, at::kDouble);
      auto at = turned.accessor<double, 2>();
      for (const ColumnEntry& e : entries) {
        SILC_CHECK(e.input >= 0 && e.input < obs_dim && e.column >= 0 && e.column < columns);
        const double lag = 1 + (age.empty() ? 0 : age[static_cast<std::size_t>(e.input)]);
        const double z = imaginary ? -std::sin(angle * lag) : std::cos(angle * lag);
        at[e.input][e.column] += e.value * z;
      }
      return turned.to(options);
    };
    result.push_back({part(a, false), part(a, true), part(tau, false), part(tau, true)});
  }
  return result;
}

Slopes FrozenSlopes(const std::vector<Activations>& actors,
                    std::int64_t first,
                    std::int64_t count) {
  return SlopesOf(actors, first, count, false);
}

Slopes TapedSlopes(const std::vector<Activations>& actors, std::int64_t first, std::int64_t count) {
  return SlopesOf(actors, first, count, true);
}

Tensor ActionJacobian(const std::vector<Layers>& actors,
                      const Slopes& slopes,
                      const Tensor& columns) {
  SILC_CHECK(actors.size() == slopes.actor.size());
  at::NoGradGuard no_tape;
  std::vector<Tensor> rows;
  for (std::size_t k = 0; k < actors.size(); ++k) {
    const std::vector<Tensor>& weight = actors[k].weight;
    const std::vector<Tensor>& slope = slopes.actor[k];
    // (P11)
    Tensor Y = weight.back().unsqueeze(0) * slope.back().unsqueeze(1);
    for (std::size_t l = weight.size() - 2; l > 0; --l) {
      Y = at::matmul(Y, weight[l]).mul_(slope[l - 1].unsqueeze(1));
    }
    rows.push_back(at::matmul(Y, at::mm(weight[0], columns)));
  }
  return at::cat(rows, 1);
}

Tensor ActionTangent(const std::vector<Layers>& actors,
                     const Slopes& slopes,
                     const std::vector<Seed>& seeds) {
  SILC_CHECK(actors.size() == slopes.actor.size() && !seeds.empty());
  std::vector<Tensor> outputs;
  for (std::size_t k = 0; k < actors.size(); ++k) {
    const std::vector<Tensor>& weight = actors[k].weight;
    Tensor t;
    for (const Seed& seed : seeds) {
      const Tensor first = at::matmul(seed.direction, at::mm(weight[0], seed.columns).t());
      t = t.defined() ? t + first : first;
    }
    for (std::size_t l = 1; l < weight.size(); ++l) {
      t = at::matmul(slopes.actor[k][l - 1].unsqueeze(1) * t, weight[l].t());
    }
    outputs.push_back(t);
  }
  return at::cat(outputs, 2);
}

Tensor ObservationGradient(const Layers& actor,
                           const std::vector<Tensor>& slopes,
                           const Tensor& e) {
  Tensor g = e;
  for (std::size_t l = actor.weight.size(); l-- > 0;) {
    g = at::mm(g, actor.weight[l]);
    if (l > 0) g = g * slopes[l - 1];
  }
  return g;
}

}  // namespace silc
