// SPDX-License-Identifier: Apache-2.0
// What the trainer's penalties answer on one random batch, for the twins in Python to be held
// against: penalty_samples OUT.npz
//
// Names of arrays: "input|…" what both sides are given, "body|…" and "contact|…" (S5),
// "command:NAME" u of each sample (B1) of a budget with ranges, "budget=NAME|…" the factors of
// (S6), "weight:OPTIONS|…" λ and the bound over iterations, and "case:TYPE;OPTIONS|value",
// "…|sigma", "…|ok", "…|loop_norm", "…|frequency_sigma", "…|frequency_driving", "…|gradient".
// "angles:POINTS;SEED|…" are the points of the circle of the first iterations.
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "silc/base/check.h"
#include "silc/base/rng.h"
#include "silc/learn/frequency_penalty.h"
#include "silc/learn/penalty.h"
#include "silc/npz/npz.h"
#include "silc/stiffness/contact_jacobian.h"
#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int kJoints = test::StickHumanoid::kJoints;  // 20
constexpr int kBatch = 10, kFrame = 2 * kJoints + 6, kFrames = 2, kObs = kFrame * kFrames;
constexpr int kActions[] = {12, 8};

Tensor ToTensor(const Eigen::MatrixXd& m) {
  const RowMajor rows = m;
  return at::from_blob(const_cast<double*>(rows.data()), {m.rows(), m.cols()}, at::kDouble).clone();
}

class Samples {
 public:
  void Add(const std::string& name, const Tensor& tensor) {
    const Tensor host = tensor.detach().to(at::kCPU, at::kDouble).contiguous();
    const double* first = host.data_ptr<double>();
    entries_.push_back({name,
                        NpyShape(host.sizes().begin(), host.sizes().end()),
                        std::vector<double>(first, first + host.numel())});
  }
  void Write(const std::string& path) const { WriteNpz(path, entries_); }

 private:
  std::vector<NpzEntry> entries_;
};

// A matrix of ±1 with orthogonal rows (Paley's construction from the squares modulo 19). With these
// rows as signs the random combinations add up to the exact sum, whatever signs the singular
// vectors come with, so that two eigenvalue routines can be compared.
Tensor HadamardOf20() {
  bool square[19] = {};
  for (int i = 1; i < 19; ++i) square[i * i % 19] = true;
  Tensor H = at::ones({20, 20}, at::kDouble);
  for (int i = 0; i < 19; ++i) {
    for (int j = 0; j < 19; ++j) {
      const int d = (j - i + 19) % 19;
      H[i + 1][j + 1] = i == j || square[d] ? 1.0 : -1.0;
    }
    H[i + 1][0] = -1.0;
  }
  SILC_CHECK(at::equal(at::mm(H, H.t()), 20 * at::eye(20, at::kDouble)));
  return H;
}

constexpr double kPeriod = 0.02;  // [s]

struct World {
  Servo servo;
  ContactBatch batch;
  std::vector<Network> networks;
  Tensor x, action;
  Channels channels;
  std::vector<ColumnEntry> q, v, a, tau, g;  // what the channels are made of
  std::vector<int> age;                      // of each number of the observation
};

World MakeWorld(Samples* samples) {
  World world;
  at::manual_seed(11);
  Rng rng(17);
  world.servo = test::RandomServo(kJoints, &rng);
  std::vector<Tensor> com, hand, closing, gravity;
  std::vector<Tensor> body_foot, body_com, body_hand, body_g;
  std::vector<int> modes;
  for (int i = 0; i < kBatch; ++i) {
    const auto mode = static_cast<ContactMode>(i % 4);
    ContactKinematics k;
    const BodyJacobians body = test::StickHumanoid::Jacobians(test::StickHumanoid::Stance(&rng));
    SILC_CHECK(ComputeContactKinematics(body, mode, nullptr, &k) == StiffnessStatus::kOk);
    modes.push_back(i % 4);
    com.push_back(ToTensor(k.com));
    hand.push_back(at::stack({ToTensor(k.hand_on_base[0]), ToTensor(k.hand_on_base[1])}));
    closing.push_back(ToTensor(k.J_c));
    gravity.push_back(ToTensor(k.E));
    body_foot.push_back(at::stack({ToTensor(body.foot[0]), ToTensor(body.foot[1])}));
    body_com.push_back(ToTensor(body.com));
    body_hand.push_back(at::stack({ToTensor(body.hand[0]), ToTensor(body.hand[1])}));
    body_g.push_back(ToTensor(body.g_B).view(-1));
  }
  world.batch = {at::tensor(modes).to(at::kByte),
                 at::stack(com),
                 at::stack(hand),
                 at::stack(closing),
                 at::stack(gravity)};
  samples->Add("body|foot", at::stack(body_foot));
  samples->Add("body|com", at::stack(body_com));
  samples->Add("body|hand", at::stack(body_hand));
  samples->Add("body|g_B", at::stack(body_g));
  samples->Add("contact|mode", world.batch.mode);
  samples->Add("contact|com", world.batch.com);
  samples->Add("contact|hand_on_base", world.batch.hand_on_base);
  samples->Add("contact|closing", world.batch.closing);
  samples->Add("contact|gravity", world.batch.gravity);
  // two samples that must be left out: of unknown contact, and with a Jacobian that lost rank
  world.batch.mode[8] = 255;
  world.batch.com[9][2].copy_(world.batch.com[9][0]);

  for (std::uint32_t k = 0; k < 2; ++k) {
    world.networks.push_back(
        MakeNetwork({.inputs = kObs, .hidden = {10, 9}, .outputs = kActions[k]},
                    std::vector<double>(kActions[k], 0.3 + 0.2 * k),
                    23,
                    k,
                    at::kDouble));
    at::NoGradGuard no_tape;
    world.networks[k].flat.mul_(2);
    world.networks[k].std.div_(2);
  }
  world.x = at::randn({kBatch, kObs}, at::kDouble);
  world.action = at::randn({kBatch, kJoints}, at::kDouble);

  std::vector<ColumnEntry> q0, q, v, a, tau, g;
  for (int frame = 0; frame < kFrames; ++frame) {
    const int first = frame * kFrame;  // newest last
    for (int j = 0; j < kJoints; ++j) {
      q.push_back({first + j, j, 1.f});
      if (frame == kFrames - 1) q0.push_back(q.back());
      // what is seen of q is also seen of the velocity, mixed in: no number more is needed
      v.push_back({first + j, j, 0.03f});
      a.push_back({first + kJoints + j, j, 0.5f});
    }
    world.age.insert(world.age.end(), kFrame, kFrames - 1 - frame);
    for (int j = 0; j < 3; ++j) {
      tau.push_back({first + 2 * kJoints + j, kJoints - 1 - j, 0.01f});
      g.push_back({first + 2 * kJoints + 3 + j, j, 1.f});
    }
  }
  const auto dense = [](const std::vector<ColumnEntry>& e, int n) {
    return DenseColumns(e, kObs, n, at::kDouble);
  };
  world.channels = {
      dense(q0, kJoints), dense(q, kJoints), dense(a, kJoints), dense(tau, kJoints), dense(g, 3)};
  samples->Add("input|v", dense(v, kJoints));
  samples->Add("input|age", at::tensor(world.age));
  world.q = q;
  world.v = v;
  world.a = a;
  world.tau = tau;
  world.g = g;
  return world;
}

void AddInputs(const World& world, const Tensor& signs, Samples* samples) {
  samples->Add("input|kp", ToTensor(world.servo.kp).view(-1));
  samples->Add("input|alpha", ToTensor(world.servo.alpha).view(-1));
  samples->Add("input|kd", ToTensor(world.servo.kd).view(-1));
  samples->Add("input|period", at::scalar_tensor(kPeriod, at::kDouble));
  samples->Add("input|mode", world.batch.mode);
  samples->Add("input|com", world.batch.com);
  samples->Add("input|hand_on_base", world.batch.hand_on_base);
  samples->Add("input|closing", world.batch.closing);
  samples->Add("input|gravity", world.batch.gravity);
  samples->Add("input|x", world.x);
  samples->Add("input|action", world.action);
  samples->Add("input|signs", signs);
  samples->Add("input|q0", world.channels.q0);
  samples->Add("input|q", world.channels.q);
  samples->Add("input|a", world.channels.a);
  samples->Add("input|tau", world.channels.tau);
  samples->Add("input|g", world.channels.g);
  for (std::size_t k = 0; k < world.networks.size(); ++k) {
    const Network& network = world.networks[k];
    const std::string actor = "input|actor" + std::to_string(k);
    for (std::size_t l = 0; l < network.layers.weight.size(); ++l) {
      samples->Add(actor + ".weight" + std::to_string(l), network.layers.weight[l]);
      samples->Add(actor + ".bias" + std::to_string(l), network.layers.bias[l]);
    }
    samples->Add(actor + ".std", network.std);
  }
}

std::vector<std::pair<std::string, BudgetSpec>> Budgets() {
  BudgetSpec com, hands, gains, posture;
  com.com = Eigen::Vector3d(200, 300, 20000);
  com.hand[1] = Eigen::Vector3d(200, 250, 300);
  hands.hand[0] = Eigen::Vector3d(1000, 900, 800);
  hands.hand[1] = Eigen::Vector3d(200, 250, 300);
  hands.hand_floor = Eigen::Vector3d(0, 0.2, 0.75);
  gains = com;
  gains.hand[0] = Eigen::Vector3d(1000, 900, 800);
  gains.weight = NullWeight::kServo;
  gains.null_stiffness = 0.5;
  return {{"com", com}, {"hands", hands}, {"gains", gains}, {"posture", posture}};
}

// Budgets with ranges, and u of every sample, drawn from them: all three numbers with a floor; all
// three with the null space as a share of the gains; the hands alone. What has no range is not
// read.
struct CommandedBudget {
  std::string name;
  BudgetSpec spec;
  Tensor command;  // (B, 3)
};
std::vector<CommandedBudget> CommandedBudgets() {
  BudgetSpec all;
  all.com = Eigen::Vector3d(775, 775, 20000);
  all.hand[0] = all.hand[1] = Eigen::Vector3d::Constant(316);
  BudgetSpec gains = all, hands = all;
  all.hand_floor = Eigen::Vector3d(0, 0.1, 0.75);
  all.command.range = {BudgetRange{200, 3000}, BudgetRange{100, 1000}, BudgetRange{20, 300}};
  gains.weight = NullWeight::kServo;
  gains.null_stiffness = 0.4;
  gains.command.range = {BudgetRange{200, 3000}, BudgetRange{100, 1000}, BudgetRange{0.1, 1.5}};
  hands.com.reset();
  hands.hand_floor = Eigen::Vector3d(0, 0, 0.5);
  hands.command.range[kCommandHands] = BudgetRange{100, 1000};
  std::vector<CommandedBudget> budgets = {
      {"told-all", all, {}}, {"told-gains", gains, {}}, {"told-hands", hands, {}}};
  Rng rng(41);
  for (CommandedBudget& budget : budgets) {
    budget.command = at::full({kBatch, kNumCommanded}, NAN, at::kDouble);
    for (int i = 0; i < kBatch; ++i) {
      for (int k = 0; k < kNumCommanded; ++k) {
        const auto& range = budget.spec.command.range[static_cast<std::size_t>(k)];
        if (!range) continue;
        budget.command[i][k] = rng.Uniform(std::log(range->low), std::log(range->high));
      }
    }
  }
  return budgets;
}

// of the points of the circle in every case
constexpr std::uint64_t kLoopSeed = 0x1234567890abcdef;
constexpr int kLoopIteration = 7;

// one case: the penalty of a type, with its gradient in every weight and bias
void AddCase(const World& world,
             const std::string& name,
             at::ScalarType type,
             Method method,
             const BudgetSpec& spec,
             const std::string& held,
             const PenaltyConfig& config,
             double bound,
             const Tensor& signs,
             const Tensor& command,
             Samples* samples) {
  const auto cast = [&](const Tensor& t) { return t.defined() ? t.to(type) : t; };
  PenaltyInput input;
  std::vector<Tensor> leaves;
  std::int64_t column = 0;
  for (const Network& network : world.networks) {
    Layers layers;
    for (std::size_t l = 0; l < network.layers.weight.size(); ++l) {
      layers.weight.push_back(cast(network.layers.weight[l].detach()).clone().requires_grad_());
      layers.bias.push_back(cast(network.layers.bias[l].detach()).clone().requires_grad_());
      leaves.push_back(layers.weight.back());
      leaves.push_back(layers.bias.back());
    }
    input.activations.push_back(Forward(layers, cast(world.x)));
    input.actors.push_back(std::move(layers));
    input.std.push_back(cast(network.std.detach()));
    const std::int64_t outputs = network.shape.outputs;
    input.action.push_back(cast(world.action.narrow(1, column, outputs)));
    column += outputs;
  }
  input.count = kBatch;
  input.channels = {cast(world.channels.q0),
                    cast(world.channels.q),
                    cast(world.channels.a),
                    held == "torque" ? Tensor() : cast(world.channels.tau),
                    held == "gravity" ? Tensor() : cast(world.channels.g)};
  input.servo = {cast(ToTensor(world.servo.kp).view(-1)),
                 cast(ToTensor(world.servo.alpha).view(-1)),
                 cast(ToTensor(world.servo.kd).view(-1))};
  FrequencyEntries seen = {.q = world.q, .v = world.v, .a = world.a, .age = world.age};
  if (held != "torque") seen.tau = world.tau;
  if (held != "gravity") seen.g = world.g;
  input.channels.loop =
      MakeLoopPoints(DrawLoopAngles(config.action_loop_points, kLoopSeed, kLoopIteration),
                     seen.a,
                     seen.tau,
                     seen.age,
                     kObs,
                     kJoints,
                     type);
  input.channels.frequencies =
      MakeFrequencyPoints(config.frequencies, kPeriod, config.latency, seen, kObs, kJoints, type);
  input.budget = MakeBudgetFactors(spec, input.servo.kp, world.batch, type, command);
  input.gravity = cast(world.batch.gravity);
  input.signs = cast(signs);
  input.bound = at::full({}, bound, type);
  const PenaltyResult result = Penalty(method, input, config);
  const auto gradients = torch::autograd::grad({result.surrogate}, leaves, {}, {}, false, true);
  std::vector<Tensor> flat;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    flat.push_back(gradients[i].defined() ? gradients[i].reshape(-1)
                                          : at::zeros({leaves[i].numel()}, leaves[i].options()));
  }
  const std::string prefix =
      std::string("case:") + (type == at::kDouble ? "float64" : "float32") + ";" + name + "|";
  samples->Add(prefix + "value", result.value);
  samples->Add(prefix + "sigma", result.sigma);
  samples->Add(prefix + "ok", result.ok);
  if (result.loop_norm.defined()) samples->Add(prefix + "loop_norm", result.loop_norm);
  if (result.frequency_sigma.defined()) {
    samples->Add(prefix + "frequency_sigma", result.frequency_sigma);
    samples->Add(prefix + "frequency_driving", result.frequency_driving);
  }
  samples->Add(prefix + "gradient", at::cat(flat));
}

struct Spectrum {
  const char *sigmas, *spectral;
  int probes;
};

std::string Number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", v);
  return text;
}

std::string CaseName(Method method,
                     const std::string& budget,
                     const std::string& held,
                     const PenaltyConfig& c,
                     double bound) {
  std::string hz;
  for (const double f : c.frequencies) hz += (hz.empty() ? "" : ",") + Number(f);
  return std::string("method=") + Name(method) + ";budget=" + budget + ";held=" + held +
         ";hinge=" + c.hinge + ";sigmas=" + c.sigmas + ";spectral=" + c.spectral +
         ";probes=" + std::to_string(c.probes) + ";bound=" + Number(bound) +
         ";loop_gain_limit=" + Number(c.loop_gain_limit) +
         ";action_loop_limit=" + Number(c.action_loop_limit) +
         ";action_loop_weight=" + Number(c.action_loop_weight) +
         ";action_loop_points=" + std::to_string(c.action_loop_points) + ";frequencies=" + hz +
         ";damping_weight=" + Number(c.damping_weight) + ";latency=" + Number(c.latency) +
         ";lipschitz=" + Number(c.lipschitz);
}

// the loop around the circle and the stiffness at frequencies, for every budget and bound
void AddMovingCases(const World& world,
                    at::ScalarType type,
                    const Tensor& signs,
                    Samples* samples) {
  const auto add = [&](const std::string& budget,
                       const BudgetSpec& spec,
                       const std::string& held,
                       const PenaltyConfig& c,
                       double bound) {
    const std::string name = CaseName(Method::kSilc, budget, held, c, bound);
    AddCase(world, name, type, Method::kSilc, spec, held, c, bound, signs, {}, samples);
  };
  PenaltyConfig around;
  around.hinge = "log";
  around.sigmas = "all";
  around.action_loop_limit = 0.3;
  PenaltyConfig moving = around;
  moving.action_loop_limit = 0.9;
  moving.frequencies = {0, 1, 5};
  for (const auto& [budget, spec] : Budgets()) {
    for (const double bound : {0.9, 1.0, 1.5}) {
      for (const int points : {1, 5}) {
        around.action_loop_points = points;
        add(budget, spec, "none", around, bound);
      }
      for (const char* hinge : {"square", "log"}) {
        moving.hinge = hinge;
        add(budget, spec, "none", moving, bound);
      }
    }
  }
  const BudgetSpec first = Budgets()[0].second;
  for (const char* held : {"torque", "gravity"}) {
    add("com", first, held, around, 1);
    add("com", first, held, moving, 1);
  }
  around.action_loop_weight = 2;
  around.spectral = "power";
  around.sigmas = "largest";
  add("com", first, "none", around, 1);
  moving.damping_weight = 3;
  for (const double latency : {0.004, 0.03}) {
    moving.latency = latency;
    add("com", first, "none", moving, 1);
  }
  // both at once, and samples that only a frequency's own loop leaves out
  moving.action_loop_points = 2;
  moving.action_loop_limit = 0.3;
  for (const double limit : {100.0, 1.5}) {
    moving.loop_gain_limit = limit;
    add("com", first, "none", moving, 1);
  }
}

// a budget of its own for every sample                                                      (B2)
void AddCommandedCases(const World& world,
                       at::ScalarType type,
                       const Tensor& signs,
                       Samples* samples) {
  for (const auto& [budget, spec, command] : CommandedBudgets()) {
    const auto add = [&, &budget = budget, &spec = spec, &command = command](
                         Method method, const PenaltyConfig& c, double bound) {
      const std::string name = CaseName(method, budget, "none", c, bound);
      AddCase(world, name, type, method, spec, "none", c, bound, signs, command, samples);
    };
    for (const double bound : {0.9, 1.0, 2.5}) {
      PenaltyConfig config;
      add(Method::kSilc, config, bound);
      config.hinge = "log";
      config.sigmas = "all";
      add(Method::kSilc, config, bound);
      if (!spec.HasFloor()) add(Method::kSilcPaper, config, bound);
      config.probes = 20;
      add(Method::kSilc, config, bound);
      config.probes = 0;
      config.action_loop_points = 2;
      config.frequencies = {0, 5};
      add(Method::kSilc, config, bound);
    }
  }
}

void AddAngles(Samples* samples) {
  for (const int points : {1, 4, 9}) {
    for (const std::uint64_t seed : {std::uint64_t{1}, kLoopSeed}) {
      std::vector<Tensor> rows;
      for (int iteration = 0; iteration < 3; ++iteration) {
        rows.push_back(at::tensor(DrawLoopAngles(points, seed, iteration), at::kDouble));
      }
      samples->Add("angles:" + std::to_string(points) + ";" + std::to_string(seed),
                   at::stack(rows));
    }
  }
}

void AddCases(const World& world, const Tensor& signs, Samples* samples) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const auto add = [&](Method method,
                         const std::string& budget,
                         const BudgetSpec& spec,
                         const std::string& held,
                         const PenaltyConfig& c,
                         double bound) {
      const std::string name = CaseName(method, budget, held, c, bound);
      AddCase(world, name, type, method, spec, held, c, bound, signs, {}, samples);
    };
    for (const auto& [budget, spec] : Budgets()) {
      for (const Spectrum& s : {Spectrum{"largest", "eigen", 0},
                                Spectrum{"largest", "power", 0},
                                Spectrum{"all", "eigen", 0},
                                Spectrum{"all", "eigen", 20}}) {
        for (const char* hinge : {"square", "log"}) {
          PenaltyConfig config;
          config.hinge = hinge;
          config.sigmas = s.sigmas;
          config.spectral = s.spectral;
          config.probes = s.probes;
          for (const double bound : {0.9, 1.0, 2.5}) {
            add(Method::kSilc, budget, spec, "none", config, bound);
          }
          if (!spec.HasFloor()) {
            for (const double bound : {1.0, 2.5}) {
              add(Method::kSilcPaper, budget, spec, "none", config, bound);
            }
          }
        }
      }
    }
    const BudgetSpec first = Budgets()[0].second;
    PenaltyConfig config;
    config.hinge = "log";
    config.sigmas = "all";
    for (const char* held : {"torque", "gravity"}) {
      add(Method::kSilc, "com", first, held, config, 1);
    }
    config.loop_gain_limit = 1.5;  // leaves samples out
    config.action_loop_limit = 0.3;
    add(Method::kSilc, "com", first, "none", config, 1);
    // the action loop alone, also under a bound that leaves it room
    config.loop_gain_limit = 100;
    for (const double bound : {0.9, 1.0, 1.5}) {
      config.sigmas = "all";
      config.spectral = "eigen";
      add(Method::kSilc, "com", first, "none", config, bound);
      config.sigmas = "largest";
      config.spectral = "power";
      add(Method::kSilc, "com", first, "none", config, bound);
    }
    PenaltyConfig lipschitz;
    lipschitz.lipschitz = 0.5;
    add(Method::kScalarLcp, "com", first, "none", lipschitz, 1);
    add(Method::kAlcp, "com", first, "none", lipschitz, 1);
    add(Method::kLcp, "com", first, "none", lipschitz, 1);
    lipschitz.spectral = "power";
    add(Method::kScalarLcp, "com", first, "none", lipschitz, 1);
    AddMovingCases(world, type, signs, samples);
    AddCommandedCases(world, type, signs, samples);
  }
}

// What a method sets by itself: λ, whether its hinge is the logarithm's, whether all σ count.
void AddMethods(Samples* samples) {
  for (const std::string& method : MethodNames()) {
    LearnConfig config;
    ApplyMethod(method, "penalty_samples", &config);
    const PenaltyConfig& p = config.penalty;
    samples->Add("method:" + method,
                 at::tensor({p.lambda, p.hinge == "log" ? 1.0 : 0.0, p.sigmas == "all" ? 1.0 : 0.0},
                            at::kDouble));
  }
}

// λ and the bound of 300 iterations under a score that falls and comes back
void AddWeights(Samples* samples) {
  Rng rng(5);
  constexpr int kIterations = 300;
  const Tensor told = at::empty({kIterations, 2}, at::kDouble);
  for (int i = 0; i < kIterations; ++i) {
    told[i][0] = 0.1 * rng.Uniform();
    told[i][1] = (i > 120 && i < 200 ? 0.3 : 1.0) + 0.1 * rng.Uniform();
  }
  samples->Add("weights|told", told);
  for (const char* schedule : {"fixed", "ramp", "multiplier"}) {
    for (const auto& [start, end] :
         {std::pair{1.0, 1.0}, std::pair{3.0, 0.93}, std::pair{0.5, 1.0}}) {
      PenaltyConfig config;
      config.schedule = schedule;
      config.start = 7;
      config.ramp = 40;
      config.bound_start = start;
      config.bound_end = end;
      config.bound_rate = 0.01;
      PenaltyWeight weight(config);
      const Tensor trace = at::empty({kIterations, 2}, at::kDouble);
      for (int i = 0; i < kIterations; ++i) {
        trace[i][0] = weight.Lambda(i);
        trace[i][1] = weight.Bound();
        weight.Follow(told[i][0].item<double>(), told[i][1].item<double>());
      }
      char name[96];
      std::snprintf(name, sizeof name, "weights:%s;%g;%g", schedule, start, end);
      samples->Add(name, trace);
    }
  }
}

}  // namespace
}  // namespace silc

int main(int argc, char** argv) {
  using namespace silc;
  if (argc != 2) {
    std::fprintf(stderr, "penalty_samples OUT.npz\n");
    return 2;
  }
  HoldToOneThread();
  Samples samples;
  const World world = MakeWorld(&samples);
  const Tensor signs = HadamardOf20().unsqueeze(0).expand({kBatch, 20, 20});
  AddInputs(world, signs, &samples);
  const auto add_factors = [&](const std::string& name, const BudgetSpec& spec, const Tensor& u) {
    const Tensor kp = ToTensor(world.servo.kp).view(-1);
    const BudgetFactors f = MakeBudgetFactors(spec, kp, world.batch, at::kDouble, u);
    samples.Add("budget=" + name + "|P", f.P);
    samples.Add("budget=" + name + "|Pi", f.Pi);
    samples.Add("budget=" + name + "|unit", f.unit);
    samples.Add("budget=" + name + "|ok", f.ok);
    if (f.floor.defined()) samples.Add("budget=" + name + "|floor", f.floor);
  };
  for (const auto& [name, spec] : Budgets()) add_factors(name, spec, {});
  for (const auto& [name, spec, command] : CommandedBudgets()) {
    add_factors(name, spec, command);
    samples.Add("command:" + name, command);
  }
  AddCases(world, signs, &samples);
  AddMethods(&samples);
  AddWeights(&samples);
  AddAngles(&samples);
  samples.Write(argv[1]);
  return 0;
}
