// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "silc/base/rng.h"
#include "silc/policy/graph.h"
#include "silc/policy/mlp.h"
#include "silc/policy/observation_layout.h"

// Small random networks and layouts the tests of this folder share.
namespace silc {

inline std::vector<float> RandomFloats(Rng* rng, std::size_t count, double size = 1.0) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(size * rng->Normal());
  return values;
}

/// inputs → widths[0] → … → widths.back(), Elu in between, linear at the end.
inline std::vector<MlpLayer> RandomLayers(Rng* rng,
                                          int inputs,
                                          const std::vector<int>& widths,
                                          Activation activation = Activation::kElu) {
  std::vector<MlpLayer> layers;
  for (std::size_t l = 0; l < widths.size(); ++l) {
    MlpLayer layer;
    layer.inputs = l == 0 ? inputs : widths[l - 1];
    layer.outputs = widths[l];
    layer.weight = RandomFloats(
        rng,
        static_cast<std::size_t>(layer.inputs) * static_cast<std::size_t>(layer.outputs),
        1.0 / std::sqrt(layer.inputs));
    layer.bias = RandomFloats(rng, static_cast<std::size_t>(layer.outputs), 0.3);
    layer.activation = l + 1 == widths.size() ? Activation::kNone : activation;
    layers.push_back(std::move(layer));
  }
  return layers;
}

/// Two actors on one input behind a normaliser with a clip: FALCON's shape, in small.
inline MlpNetwork RandomTwoActors(Rng* rng, int inputs, int outputs_a, int outputs_b) {
  MlpNetwork network;
  network.inputs = inputs;
  const auto n = static_cast<std::size_t>(inputs);
  network.prefix.resize(3);
  network.prefix[0].kind = InputStep::Kind::kSub;
  network.prefix[0].operand = RandomFloats(rng, n, 0.2);
  network.prefix[1].kind = InputStep::Kind::kDiv;
  for (std::size_t i = 0; i < n; ++i)
    network.prefix[1].operand.push_back(static_cast<float>(rng->Uniform(0.5, 2.0)));
  network.prefix[2].kind = InputStep::Kind::kClip;
  network.prefix[2].low = -5;
  network.prefix[2].high = 5;
  network.branches.push_back(RandomLayers(rng, inputs, {40, 24, 12, outputs_a}));
  network.branches.push_back(RandomLayers(rng, inputs, {33, 20, outputs_b}));
  return network;
}

/// ∂output/∂input by central differences in double precision, row-major.
inline std::vector<double> DifferenceJacobian(GraphEvaluator<double>* evaluator,
                                              int output,
                                              int input,
                                              double h) {
  const int rows = evaluator->graph().output_width(output);
  const int cols = evaluator->graph().input_width(input);
  std::vector<double> jacobian(static_cast<std::size_t>(rows * cols));
  const std::span<double> x = evaluator->input(input);
  for (int c = 0; c < cols; ++c) {
    const double at = x[static_cast<std::size_t>(c)];
    std::vector<double> plus, minus;
    x[static_cast<std::size_t>(c)] = at + h;
    evaluator->Evaluate();
    plus.assign(evaluator->output(output).begin(), evaluator->output(output).end());
    x[static_cast<std::size_t>(c)] = at - h;
    evaluator->Evaluate();
    minus.assign(evaluator->output(output).begin(), evaluator->output(output).end());
    x[static_cast<std::size_t>(c)] = at;
    for (int r = 0; r < rows; ++r) {
      jacobian[static_cast<std::size_t>(r) * cols + c] =
          (plus[static_cast<std::size_t>(r)] - minus[static_cast<std::size_t>(r)]) / (2 * h);
    }
  }
  evaluator->Evaluate();
  return jacobian;
}

/// Every kind of term, three joints named a, b, c, the action in another order; history 3.
inline ObservationLayout ThreeJointLayout() {
  ObservationLayout layout;
  layout.name = "three";
  layout.control_dt = 0.02;
  layout.joints = {"b", "a", "c"};
  layout.default_pose = {0.2, 0.1, 0.3};
  layout.kp = {20, 10, 30};
  layout.kd = {2, 1, 3};
  layout.history = 3;
  layout.action.joints = {"c", "b", "a"};
  layout.action.scale = {0.3, 0.2, 0.1};
  layout.action.residual_joints = {"c"};
  layout.action.clip = 50;
  const auto add = [&](const char* name, TermSource source, double scale) -> ObservationTerm& {
    ObservationTerm term;
    term.name = name;
    term.source = source;
    term.scale = {scale};
    layout.terms.push_back(term);
    return layout.terms.back();
  };
  add("actions", TermSource::kPrevAction, 1.0);
  add("omega", TermSource::kBaseAngVel, 0.25);
  add("twist", TermSource::kCommandTwist, 2.0);
  ObservationTerm& pos = add("pos", TermSource::kJointPos, 1.0);
  pos.minus_default = true;
  pos.scale = {1.0, 2.0, 3.0};
  add("vel", TermSource::kJointVel, 0.05);
  add("torque", TermSource::kJointTorque, 0.1).joints = {"a", "c"};
  add("gravity", TermSource::kProjectedGravity, 1.0);
  add("ref", TermSource::kRefJointPos, 1.0).joints = {"c"};
  return layout;
}

}  // namespace silc
