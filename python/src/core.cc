// SPDX-License-Identifier: Apache-2.0
// silc._core: policies, layouts, budgets and the observer for Python. Plain data in and out; the
// classes that users see are written in Python (python/silc), with this module behind them.
#include <nanobind/eigen/dense.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "silc/base/error.h"
#include "silc/config/budget_file.h"
#include "silc/config/policy_budget.h"
#include "silc/policy/layout_file.h"
#include "silc/policy/mlp.h"
#include "silc/policy/observation_table.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/onnx/writer.h"
#include "silc/policy/policy.h"
#include "silc/policy/policy_metadata.h"
#include "silc/policy/training_notes.h"
#include "silc/robot/robot_spec.h"
#include "silc/stiffness/dynamic_stiffness.h"
#include "silc/stiffness/observer.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace silc {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Axes = std::optional<std::array<double, 3>>;

// ---- budgets ------------------------------------------------------------------------------------

nb::object AxesOf(const std::optional<Eigen::Vector3d>& v) {
  if (!v) return nb::none();
  return nb::make_tuple((*v)[0], (*v)[1], (*v)[2]);
}

// The ranges by name; None where there are none.
nb::object CommandDict(const BudgetCommand& command) {
  if (!command.any()) return nb::none();
  nb::dict d;
  for (int i = 0; i < kNumCommanded; ++i) {
    const auto& range = command.range[static_cast<std::size_t>(i)];
    d[Name(static_cast<CommandedNumber>(i))] =
        range ? nb::object(nb::make_tuple(range->low, range->high)) : nb::object(nb::none());
  }
  return d;
}

BudgetCommand CommandFrom(const nb::object& ranges) {
  BudgetCommand command;
  if (ranges.is_none()) return command;
  const auto d = nb::cast<nb::dict>(ranges);
  for (int i = 0; i < kNumCommanded; ++i) {
    const auto range =
        nb::cast<std::optional<std::array<double, 2>>>(d[Name(static_cast<CommandedNumber>(i))]);
    if (range) command.range[static_cast<std::size_t>(i)] = BudgetRange{(*range)[0], (*range)[1]};
  }
  return command;
}

nb::dict BudgetDict(const BudgetSpec& spec) {
  nb::dict d;
  d["com"] = AxesOf(spec.com);
  d["left_hand"] = AxesOf(spec.hand[0]);
  d["right_hand"] = AxesOf(spec.hand[1]);
  d["hand_floor"] = nb::make_tuple(spec.hand_floor[0], spec.hand_floor[1], spec.hand_floor[2]);
  d["weight"] = spec.weight == NullWeight::kServo ? "gains" : "identity";
  d["null_space"] = spec.null_stiffness;
  d["torque"] = Name(spec.torque);
  d["gravity"] = Name(spec.gravity);
  d["condition"] = Name(spec.condition);
  d["command"] = CommandDict(spec.command);
  return d;
}

// The keys of BudgetDict(); silc.Budget has checked words and ranges.
BudgetSpec BudgetFrom(const nb::dict& d) {
  const auto axes = [&](const char* key) -> std::optional<Eigen::Vector3d> {
    const auto value = nb::cast<Axes>(d[key]);
    if (!value) return std::nullopt;
    return Eigen::Vector3d((*value)[0], (*value)[1], (*value)[2]);
  };
  const auto channel = [&](const char* key) {
    return nb::cast<std::string>(d[key]) == "held" ? Channel::kHeld : Channel::kFollowed;
  };
  BudgetSpec spec;
  spec.com = axes("com");
  spec.hand = {axes("left_hand"), axes("right_hand")};
  spec.hand_floor = axes("hand_floor").value_or(Eigen::Vector3d::Zero());
  spec.weight =
      nb::cast<std::string>(d["weight"]) == "gains" ? NullWeight::kServo : NullWeight::kIdentity;
  spec.null_stiffness = nb::cast<double>(d["null_space"]);
  spec.torque = channel("torque");
  spec.gravity = channel("gravity");
  const auto condition = nb::cast<std::string>(d["condition"]);
  spec.condition = condition == "one-sided"   ? Condition::kOneSided
                   : condition == "two-sided" ? Condition::kTwoSided
                                              : Condition::kDisc;
  spec.command = CommandFrom(d["command"]);
  const std::string wrong = spec.Validate();
  if (!wrong.empty()) throw ConfigError("budget: " + wrong);
  return spec;
}

// ---- robots -------------------------------------------------------------------------------------

nb::dict RobotDict(const std::string& path) {
  const RobotSpec spec = ReadRobotSpec(path);
  const auto foot = [&](const FootSpec& f) {
    nb::dict d;
    d["body"] = f.body;
    d["site"] = f.site;
    nb::dict sets;
    for (const FootGeoms& set : f.geom_sets) sets[set.name.c_str()] = set.geoms;
    d["geoms"] = sets;
    return d;
  };
  nb::dict d, gains, poses;
  nb::list hands;
  for (const HandSpec& hand : spec.hands) hands.append(nb::make_tuple(hand.body, hand.site));
  for (const GainSet& set : spec.gains) {
    gains[set.name.c_str()] = nb::make_tuple(set.kp, set.kd, set.action_scale);
  }
  for (const Pose& pose : spec.poses) {
    poses[pose.name.c_str()] = nb::make_tuple(pose.base_height, pose.q);
  }
  d["file"] = spec.file;
  d["name"] = spec.name;
  d["model_file"] = spec.model_file;
  d["joints"] = spec.joints;
  d["base"] = spec.base;
  d["feet"] = nb::make_tuple(foot(spec.left_foot), foot(spec.right_foot));
  d["foot_collision"] = spec.foot_collision;
  d["foot_force"] = nb::make_tuple(spec.foot_force.enter, spec.foot_force.leave);
  d["hands"] = hands;
  d["gains"] = gains;
  d["default_gains"] = spec.default_gains;
  d["poses"] = poses;
  d["default_pose"] = spec.default_pose;
  d["control_period"] = spec.control_period;
  d["physics_period"] = spec.physics_period;
  return d;
}

// ---- layouts ------------------------------------------------------------------------------------

struct Layout {
  ObservationLayout layout;
};

Layout ReadLayout(const std::string& path) {
  LayoutFile file = ReadLayoutFile(path);
  if (file.from_metadata) {
    throw ConfigError(
        path +
        ": from_metadata: is a vocabulary, whose joints and terms come from a policy's "
        "file; name a layout that stands alone");
  }
  return {std::move(file.layout)};
}

// One row per number of the observation: what it is made of.
nb::list LayoutTable(const Layout& self, const std::vector<std::string>& robot_joints) {
  const ObservationTable table =
      CompileObservation(self.layout, robot_joints, self.layout.Place("layout"));
  nb::list rows;
  for (const ObservationSlot& slot : table.slots) {
    const ObservationEntry<double>& e = table.entries[static_cast<std::size_t>(slot.element)];
    rows.append(nb::make_tuple(
        TermSourceName(e.source), table.Column(e), slot.age, e.scale, e.offset, e.clip));
  }
  return rows;
}

// Names of the numbers of a budget that a layout tells its policy.
std::vector<std::string> ToldNumbers(const ObservationLayout& layout) {
  std::vector<std::string> names;
  for (const ObservationTerm& term : layout.terms) {
    if (const auto told = CommandedBy(term.source)) names.emplace_back(Name(*told));
  }
  return names;
}

Layout WithBudgetTerms(const Layout& self, const nb::object& command) {
  Layout with = self;
  AddBudgetTerms(CommandFrom(command), &with.layout);
  with.layout.Validate(with.layout.Place("layout"));
  return with;
}

// ---- policies -----------------------------------------------------------------------------------

struct PolicyFile {
  PolicyFile(const std::string& path,
             const std::string& layout,
             const std::string& layout_folder,
             const std::vector<std::string>& joints,
             const VectorXd& default_pose)
      : path(path), model(ReadOnnx(path)), notes(TrainingNotesOf(model.metadata)) {
    if (default_pose.size() != static_cast<Eigen::Index>(joints.size())) {
      throw ConfigError("default_pose: as many numbers as joints are needed");
    }
    PolicyOptions options;
    options.place = path;
    policy = std::make_unique<Policy>(model.graph,
                                      ChooseLayout(model.metadata, layout, layout_folder, path),
                                      PolicyRobot{joints, default_pose},
                                      options);
    if (policy->sees_budget()) {
      if (const auto middle = BudgetOfPolicy(notes, path).told) policy->SetBudget(*middle);
    }
    // Policy chose and checked them
    const ObservationLayout& l = policy->layout();
    input = l.input.empty() ? 0 : model.graph->FindInput(l.input);
    output = l.output.empty() ? 0 : model.graph->FindOutput(l.output);
    evaluator = std::make_unique<GraphEvaluator<double>>(model.graph);
  }

  VectorXd Act(const VectorXd& q,
               const VectorXd& qd,
               const VectorXd& tau,
               const Eigen::Vector3d& w_WB_B,
               const Eigen::Vector3d& v_WB_B,
               const Eigen::Vector3d& g_B,
               const Eigen::Vector3d& velocity,
               double height,
               double walk,
               const Eigen::Vector3d& waist,
               const std::optional<VectorXd>& q_ref) {
    const int n = policy->num_joints();
    ObservationInput in;
    const auto take = [&](const VectorXd& from, const char* name, VectorXd* to) {
      if (from.size() != n) {
        throw ConfigError(std::string(name) + ": " + std::to_string(from.size()) +
                          " numbers, expected " + std::to_string(n));
      }
      *to = from;
    };
    take(q, "q", &in.q);
    take(qd, "qd", &in.qd);
    take(tau, "tau", &in.tau);
    if (q_ref) take(*q_ref, "q_ref", &in.q_ref);
    in.w_WB_B = w_WB_B;
    in.v_WB_B = v_WB_B;
    in.g_B = g_B;
    in.command.lin_vel = velocity.head<2>();
    in.command.yaw_rate = velocity[2];
    in.command.height = height;
    in.command.walk = walk;
    in.command.waist = waist;
    VectorXd target = policy->default_pose();
    const PolicyStatus status = policy->Act(in, &target);
    acted = status == PolicyStatus::kOk;
    if (!acted) throw ConfigError(path + ": " + Describe(status));
    return target;
  }

  // From the next Act() on. silc.Policy has held the numbers to their ranges.
  void Tell(const BudgetValues& values) {
    for (int i = 0; i < kNumCommanded; ++i) {
      const double value = values[static_cast<std::size_t>(i)];
      if (std::isfinite(value) && value > 0) continue;
      throw ConfigError(std::string(Name(static_cast<CommandedNumber>(i))) +
                        ": must be finite and above 0");
    }
    policy->SetBudget(values);
  }

  // The file's; with ranges at their middle, as budgets for training have it.
  nb::dict Budget() const {
    const PolicyBudget found = BudgetOfPolicy(notes, path);
    BudgetSpec spec = found.budget.spec;
    spec.command = found.command;
    return BudgetDict(spec);
  }

  const PolicyJacobians& Jacobians() {
    if (!acted) throw ConfigError(path + ": act() comes first: there is no observation yet");
    policy->Jacobians(&jacobians);
    return jacobians;
  }

  // the network alone, in double, at any observation
  VectorXd Evaluate(const VectorXd& observation) {
    const std::span<double> in = evaluator->input(input);
    if (observation.size() != static_cast<Eigen::Index>(in.size())) {
      throw ConfigError("observation: " + std::to_string(observation.size()) +
                        " numbers, the network takes " + std::to_string(in.size()));
    }
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = observation[static_cast<Eigen::Index>(i)];
    evaluator->Evaluate();
    const std::span<const double> out = evaluator->output(output);
    return Eigen::Map<const VectorXd>(out.data(), static_cast<Eigen::Index>(out.size()));
  }
  MatrixXd NetworkJacobian(const VectorXd& observation) {
    Evaluate(observation);
    const std::vector<double> J = GraphJacobian(evaluator.get(), output, input);
    const auto rows = static_cast<Eigen::Index>(evaluator->output(output).size());
    return Eigen::Map<const RowMajor>(J.data(), rows, static_cast<Eigen::Index>(J.size()) / rows);
  }

  std::string path;
  OnnxModel model;
  TrainingNotes notes;
  std::unique_ptr<Policy> policy;
  std::unique_ptr<GraphEvaluator<double>> evaluator;
  PolicyJacobians jacobians;
  int input = 0, output = 0;
  bool acted = false;
};

nb::dict JacobiansDict(const PolicyJacobians& j) {
  nb::dict d;
  d["J_q"] = j.J_q;
  d["J_v"] = j.J_v;
  d["J_a"] = j.J_a;
  d["J_tau"] = j.J_tau;
  d["J_g"] = j.J_g;
  d["J_w"] = j.J_w;
  return d;
}

// ---- the observer -------------------------------------------------------------------------------

std::string StatusText(StiffnessStatus status) {
  return status == StiffnessStatus::kOk ? "ok" : Describe(status);
}

nb::dict BudgetReadingDict(const BudgetReading& r) {
  nb::dict d;
  d["status"] = StatusText(r.status);
  d["sigma"] = r.sigma;
  d["worst"] = r.worst;
  return d;
}

nb::dict PointDict(const PointReading& p) {
  nb::dict d;
  d["status"] = StatusText(p.status);
  d["K_x"] = MatrixXd(p.K_x);
  d["C_x"] = MatrixXd(p.C_x);
  d["one_axis"] = VectorXd(p.one_axis);
  d["worst"] = p.worst;
  return d;
}

ObserverOptions MakeOptions(const VectorXd& kp,
                            const VectorXd& kd,
                            const VectorXd& alpha,
                            const nb::dict& budget) {
  if (kp.size() > kMaxDofs || kp.size() <= 6) {
    throw ConfigError("kp: between 7 and " + std::to_string(kMaxDofs) + " joints are possible");
  }
  if (kd.size() != kp.size() || alpha.size() != kp.size()) {
    throw ConfigError("kp, kd, alpha: must have one number per joint each");
  }
  if (!(kp.array() > 0).all() || !kp.allFinite() || !kd.allFinite() || !alpha.allFinite()) {
    throw ConfigError("kp, kd, alpha: must be finite, kp positive");
  }
  ObserverOptions options;
  options.servo.kp = kp;
  options.servo.kd = kd;
  options.servo.alpha = alpha;
  options.budget = BudgetFrom(budget);
  options.one_step_sigma = true;
  options.exact_action_loop = true;
  return options;
}

class Observer {
 public:
  Observer(const VectorXd& kp, const VectorXd& kd, const VectorXd& alpha, const nb::dict& budget)
      : observer_(MakeOptions(kp, kd, alpha, budget)) {}

  nb::dict Observe(PolicyFile& policy,
                   const std::array<RowMajor, 2>& foot,
                   const RowMajor& com,
                   const std::array<RowMajor, 2>& hand,
                   const Eigen::Vector3d& g_B,
                   int mode) {
    const Eigen::Index width = 6 + observer_.options().servo.nv();
    if (policy.policy->num_joints() + 6 != width) {
      throw ConfigError("policy: has another number of joints than the servo");
    }
    BodyJacobians body;
    const auto check = [&](const RowMajor& J, Eigen::Index rows, const char* name) {
      if (J.rows() == rows && J.cols() == width) return;
      throw ConfigError(std::string(name) + ": shape (" + std::to_string(J.rows()) + ", " +
                        std::to_string(J.cols()) + "), expected (" + std::to_string(rows) + ", " +
                        std::to_string(width) + ")");
    };
    check(com, 3, "com");
    body.com = com;
    for (std::size_t side = 0; side < 2; ++side) {
      check(foot[side], 6, "foot");
      check(hand[side], 3, "hand");
      body.foot[side] = foot[side];
      body.hand[side] = hand[side];
    }
    body.g_B = g_B;
    if (mode < 0 || mode > static_cast<int>(ContactMode::kFlight)) {
      throw ConfigError("mode: must be 0 (double support), 1 (left), 2 (right) or 3 (flight)");
    }
    jacobians_ = policy.Jacobians();
    const StiffnessReading& r = observer_.Observe(jacobians_, body, static_cast<ContactMode>(mode));
    nb::dict d;
    d["mode"] = mode;
    d["contact_status"] = StatusText(r.contact_status);
    d["one_step_status"] = StatusText(r.one_step_status);
    d["static_status"] = StatusText(r.static_status);
    d["judged_status"] = StatusText(r.judged_status);
    d["K_1"] = MatrixXd(r.K_1);
    d["K_s"] = MatrixXd(r.K_s);
    d["K_judged"] = MatrixXd(r.K_judged);
    d["loop_radius"] = r.loop.rho;
    d["loop_condition"] = r.loop_condition;
    d["one_step"] = BudgetReadingDict(r.one_step);
    d["quasi_static"] = BudgetReadingDict(r.quasi_static);
    d["com"] = PointDict(r.com);
    d["left_hand_in_world"] = PointDict(r.hand_in_world[0]);
    d["right_hand_in_world"] = PointDict(r.hand_in_world[1]);
    d["left_hand_on_base"] = PointDict(r.hand_on_base[0]);
    d["right_hand_on_base"] = PointDict(r.hand_on_base[1]);
    return d;
  }

  // (S4) at the moment last observed, one matrix per frequency
  std::vector<Eigen::MatrixXcd> Sweep(const std::vector<double>& hz,
                                      double period,
                                      double latency) {
    if (jacobians_.J_q.empty()) throw ConfigError("observe() comes first");
    if (!(period > 0 && latency >= 0 && latency <= kMaxLatency)) {
      throw ConfigError("latency: " + std::to_string(latency) + " s is outside [0, " +
                        std::to_string(kMaxLatency) + "]");
    }
    for (const double f : hz) {
      if (!(f >= 0 && f < 0.5 / period)) {
        throw ConfigError("hz: " + std::to_string(f) + " is outside [0, " +
                          std::to_string(0.5 / period) + "), half the policy's rate");
      }
    }
    return SweepDynamicStiffness(
        observer_.options().servo, jacobians_, {period, latency}, observer_.contact(), hz);
  }

 private:
  StiffnessObserver observer_;
  PolicyJacobians jacobians_;
};

// ---- writing ------------------------------------------------------------------------------------

using WrittenLayer =
    std::tuple<nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>,
               nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>,
               std::string,
               float>;

Activation ActivationOf(const std::string& name) {
  const std::pair<const char*, Activation> known[] = {{"none", Activation::kNone},
                                                      {"elu", Activation::kElu},
                                                      {"relu", Activation::kRelu},
                                                      {"leaky_relu", Activation::kLeakyRelu},
                                                      {"tanh", Activation::kTanh},
                                                      {"sigmoid", Activation::kSigmoid},
                                                      {"softplus", Activation::kSoftplus}};
  for (const auto& [text, activation] : known) {
    if (name == text) return activation;
  }
  throw ConfigError("activation: '" + name +
                    "' cannot be written: elu, relu, leaky_relu, tanh, sigmoid, softplus");
}

// What is written is read again, and nothing reads these.
void NeedFinite(const std::vector<float>& values, const std::string& name) {
  for (const float x : values) {
    if (std::isfinite(x)) continue;
    throw ConfigError(name + ": holds " + (std::isnan(x) ? "a NaN" : "an infinity") +
                      "; was the training lost?");
  }
}

// A normaliser o ↦ (o − mean)/std, where given, then MLPs side by side, with layout and notes.
void WritePolicy(const std::string& path,
                 const std::optional<std::pair<std::vector<float>, std::vector<float>>>& normaliser,
                 const std::vector<std::vector<WrittenLayer>>& branches,
                 const Layout& layout,
                 const std::map<std::string, std::string>& notes,
                 const std::optional<nb::dict>& budget,
                 const std::string& mode) {
  layout.layout.Validate(layout.layout.Place("layout"));
  MlpNetwork network;
  network.inputs = ObservationWidth(layout.layout);
  if (normaliser) {
    const auto step = [&](InputStep::Kind kind, const std::vector<float>& operand) {
      if (static_cast<int>(operand.size()) != network.inputs) {
        throw ConfigError("normaliser: " + std::to_string(operand.size()) +
                          " numbers, the layout has " + std::to_string(network.inputs));
      }
      NeedFinite(operand, "normaliser");
      network.prefix.push_back({kind, operand});
    };
    step(InputStep::Kind::kSub, normaliser->first);
    step(InputStep::Kind::kDiv, normaliser->second);
  }
  for (const std::vector<WrittenLayer>& layers : branches) {
    std::vector<MlpLayer> branch;
    int width = network.inputs;
    for (const auto& [weight, bias, activation, alpha] : layers) {
      MlpLayer layer;
      layer.inputs = static_cast<int>(weight.shape(1));
      layer.outputs = static_cast<int>(weight.shape(0));
      if (layer.inputs != width || bias.shape(0) != weight.shape(0)) {
        throw ConfigError("actor: a layer takes " + std::to_string(layer.inputs) + " inputs, " +
                          std::to_string(width) + " come from " +
                          (branch.empty() ? "the layout" : "the layer before it"));
      }
      width = layer.outputs;
      layer.weight.assign(weight.data(), weight.data() + weight.size());
      layer.bias.assign(bias.data(), bias.data() + bias.size());
      const std::string name =
          "actor." + std::to_string(network.branches.size()) + "." + std::to_string(branch.size());
      NeedFinite(layer.weight, name + ".weight");
      NeedFinite(layer.bias, name + ".bias");
      layer.activation = ActivationOf(activation);
      layer.alpha = alpha;
      branch.push_back(std::move(layer));
    }
    if (branch.empty()) throw ConfigError("actor: has no layers");
    network.branches.push_back(std::move(branch));
  }
  const auto actions =
      static_cast<int>(layout.layout.action.joints.empty() ? layout.layout.joints.size()
                                                           : layout.layout.action.joints.size());
  if (network.branches.empty() || network.outputs() != actions) {
    throw ConfigError("actor: answers with " +
                      std::to_string(network.branches.empty() ? 0 : network.outputs()) +
                      " numbers, the layout has " + std::to_string(actions) + " actions");
  }
  Metadata metadata = MetadataFor(layout.layout, "");
  TrainingNotes training;
  if (budget) {
    const BudgetSpec spec = BudgetFrom(*budget);
    const std::vector<std::string> told = ToldNumbers(layout.layout);
    for (int i = 0; i < kNumCommanded; ++i) {
      const std::string name = Name(static_cast<CommandedNumber>(i));
      if (!spec.command.range[static_cast<std::size_t>(i)]) continue;
      if (std::find(told.begin(), told.end(), name) != told.end()) continue;
      throw ConfigError("budget: has a range for " + name +
                        ", of which the layout does not tell the policy; "
                        "Layout.with_budget_terms() adds the term");
    }
    PutBudget({mode.empty() ? "own" : mode, spec}, &training);
  }
  WriteNotes(training, &metadata);
  for (const auto& [key, value] : notes) metadata[key] = value;
  WriteOnnx(path, network, "obs", "actions", metadata);
}

// A policy, what it sees, and the file it is in.
void BindPolicy(nb::module_& m) {
  nb::class_<Layout>(m, "Layout")
      .def_static("read", &ReadLayout, "path"_a)
      .def("table",
           &LayoutTable,
           "robot_joints"_a,
           "One row per number of the observation: source, column, age, scale, offset, clip")
      .def("yaml", [](const Layout& l) { return LayoutYaml(l.layout); })
      .def("with_budget_terms",
           &WithBudgetTerms,
           "command"_a.none(),
           "The layout with a term for every range that it does not tell yet")
      .def_prop_ro("told_numbers", [](const Layout& l) { return ToldNumbers(l.layout); })
      .def_prop_ro("name", [](const Layout& l) { return l.layout.name; })
      .def_prop_ro("joints", [](const Layout& l) { return l.layout.joints; })
      .def_prop_ro("action_joints",
                   [](const Layout& l) {
                     return l.layout.action.joints.empty() ? l.layout.joints
                                                           : l.layout.action.joints;
                   })
      .def_prop_ro("action_scale", [](const Layout& l) { return l.layout.action.scale; })
      .def_prop_ro("default_pose", [](const Layout& l) { return l.layout.default_pose; })
      .def_prop_ro("kp", [](const Layout& l) { return l.layout.kp; })
      .def_prop_ro("kd", [](const Layout& l) { return l.layout.kd; })
      .def_prop_ro("control_dt", [](const Layout& l) { return l.layout.control_dt; })
      .def_prop_ro("history", [](const Layout& l) { return l.layout.history; })
      .def_prop_ro("width", [](const Layout& l) { return ObservationWidth(l.layout); });

  nb::class_<PolicyFile>(m, "Policy")
      .def(nb::init<const std::string&,
                    const std::string&,
                    const std::string&,
                    const std::vector<std::string>&,
                    const VectorXd&>(),
           "path"_a,
           "layout"_a,
           "layout_folder"_a,
           "joints"_a,
           "default_pose"_a)
      .def("reset",
           [](PolicyFile& p) {
             p.policy->Reset();
             p.acted = false;
           })
      .def("act",
           &PolicyFile::Act,
           "q"_a,
           "qd"_a,
           "tau"_a,
           "w_WB_B"_a,
           "v_WB_B"_a,
           "g_B"_a,
           "velocity"_a,
           "height"_a,
           "walk"_a,
           "waist"_a,
           "q_ref"_a.none())
      .def("jacobians", [](PolicyFile& p) { return JacobiansDict(p.Jacobians()); })
      .def("evaluate", &PolicyFile::Evaluate, "observation"_a)
      .def("network_jacobian", &PolicyFile::NetworkJacobian, "observation"_a)
      .def_prop_ro("layout", [](const PolicyFile& p) { return Layout{p.policy->layout()}; })
      .def_prop_ro("metadata", [](const PolicyFile& p) { return p.model.metadata; })
      .def("tell", &PolicyFile::Tell, "values"_a)
      .def_prop_ro("told_numbers",
                   [](const PolicyFile& p) { return ToldNumbers(p.policy->layout()); })
      .def_prop_ro("budget", &PolicyFile::Budget)
      .def_prop_ro("has_budget", [](const PolicyFile& p) { return !p.notes.budget.empty(); })
      .def_prop_ro(
          "observation",
          [](const PolicyFile& p) { return VectorXd(p.policy->observation().cast<double>()); })
      .def_prop_ro("raw_action",
                   [](const PolicyFile& p) { return VectorXd(p.policy->raw_action()); })
      .def_prop_ro("action_scale",
                   [](const PolicyFile& p) { return VectorXd(p.policy->action_scale()); })
      .def_prop_ro("default_pose",
                   [](const PolicyFile& p) { return VectorXd(p.policy->default_pose()); })
      .def_prop_ro("kp", [](const PolicyFile& p) { return VectorXd(p.policy->kp()); })
      .def_prop_ro("kd", [](const PolicyFile& p) { return VectorXd(p.policy->kd()); })
      .def_prop_ro("effort_limit",
                   [](const PolicyFile& p) { return VectorXd(p.policy->effort_limit()); })
      .def_prop_ro("is_mlp", [](const PolicyFile& p) { return p.policy->is_mlp(); });

  m.def("write_policy",
        &WritePolicy,
        "path"_a,
        "normaliser"_a.none(),
        "branches"_a,
        "layout"_a,
        "notes"_a,
        "budget"_a.none(),
        "mode"_a,
        "An MLP policy as an ONNX file that silc observe takes");
}

// What is made of a policy at one moment.
void BindObserver(nb::module_& m) {
  nb::class_<Observer>(m, "Observer")
      .def(nb::init<const VectorXd&, const VectorXd&, const VectorXd&, const nb::dict&>(),
           "kp"_a,
           "kd"_a,
           "alpha"_a,
           "budget"_a)
      .def(
          "observe", &Observer::Observe, "policy"_a, "foot"_a, "com"_a, "hand"_a, "g_B"_a, "mode"_a)
      .def("sweep", &Observer::Sweep, "hz"_a, "period"_a, "latency"_a);

  nb::class_<ContactModeTracker>(m, "ContactModeTracker")
      .def(
          "__init__",
          [](ContactModeTracker* t, double enter, double leave) {
            ContactModeOptions options;
            options.enter_force = enter;
            options.leave_force = leave;
            const std::string wrong = options.Validate();
            if (!wrong.empty()) throw ConfigError("contact forces: " + wrong);
            new (t) ContactModeTracker(options);
          },
          "enter"_a,
          "leave"_a)
      .def(
          "update",
          [](ContactModeTracker& t, double left, double right, double dt) {
            t.Update(left, right, dt);
            return static_cast<int>(t.mode());
          },
          "left"_a,
          "right"_a,
          "dt"_a);
}

}  // namespace
}  // namespace silc

NB_MODULE(_core, m) {
  using namespace silc;
  m.doc() = "silc's C++ core; the package silc is what users import";
  nb::set_leak_warnings(false);  // at exit the interpreter frees nothing, and says so
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const ConfigError& e) {
      PyErr_SetString(PyExc_ValueError, e.what());
    } catch (const RunError& e) {
      PyErr_SetString(PyExc_OSError, e.what());
    }
  });

  m.attr("DEFAULT_ROBOT") = kDefaultRobot;
  m.attr("DEFAULT_MODE") = kDefaultMode;
  m.attr("CONTACT_MODES") = nb::make_tuple(Name(kContactModes[0]),
                                           Name(kContactModes[1]),
                                           Name(kContactModes[2]),
                                           Name(kContactModes[3]));
  m.def(
      "read_budget",
      [](const std::string& mode) { return BudgetDict(ReadBudget(mode).spec); },
      "mode"_a,
      "A budget as --mode takes it, under the names of silc.Budget; ranges under command");
  m.def(
      "budget_yaml",
      [](const nb::dict& budget) { return BudgetYaml(BudgetFrom(budget)); },
      "budget"_a,
      "A budget as a file of configs/budgets says it");
  m.def("read_robot", &RobotDict, "path"_a, "A robot.yaml as plain data");

  BindPolicy(m);
  BindObserver(m);
}
