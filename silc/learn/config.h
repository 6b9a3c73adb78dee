// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "silc/base/yaml.h"
#include "silc/policy/method.h"

namespace silc {

/// What is penalised besides the task, and how hard.
struct PenaltyConfig {
  std::string method = Name(Method::kBaseline);
  double lambda = 0.5;              // [1] weight; the paper's
  std::string schedule = "fixed";   // fixed, ramp, multiplier
  int start = 0;                    // iterations before the penalty sets in; none is computed
  int ramp = 300;                   // iterations from 0 to lambda (ramp)
  double multiplier_rate = 0.02;    // per iteration, of ln λ (multiplier)
  double multiplier_floor = 0.85;   // share of the reference score under which λ falls
  double multiplier_target = 0.01;  // mean violation that is left alone
  double score_reference = 0;       // [1] score of an unbounded policy; 0: the best seen so far
  double bound_start = 1;           // [1] σ allowed at first (silc, silc-paper) …
  double bound_end = 1;             // [1] … and at last; 1: the budget M, b < 1: b M (silc)
  double bound_rate = 0.003;        // per iteration, of ln bound, while the task is fulfilled
  double bound_lag = 0.05;          // mean violation above which the bound waits
  double gradient_clip = 1.0;       // norm of the penalty's gradient, clipped apart from PPO's
  int samples = 2048;               // of each mini-batch; 0: all
  int every = 1;                    // steps to one that works its gradient out; held in between
  std::string hinge = "square";     // square: (σ−1)₊², (S8); log: (ln σ)₊²
  std::string sigmas = "largest";   // largest, all
  int probes = 0;                   // all: random combinations of singular vectors; 0: every one
  std::string spectral = "eigen";   // eigen, power
  double action_loop_limit = 0.9;   // [1] ‖S_a + S_τ Kp α‖₂ above this is penalised (silc)
  double action_loop_weight = 0.1;  // [1] relative to the stiffness term
  int action_loop_points = 0;       // of the unit circle, drawn, at which it is held beside z = 1
  std::vector<double> frequencies;  // [Hz] at which K(jω) is held too (S12), (S13) (silc); none
  double damping_weight = 0.1;      // [1] of (S13), relative to (S12)
  double latency = 0;               // [s] of the loop that K(jω) is of
  double loop_gain_limit = 100;     // [1] entries of (I−S_a)⁻¹ beyond this: sample left out
  double lipschitz = 2.0;           // [1] scalar-lcp and the diagonal of K_LCP (alcp)
  double spectral_gain = 1.0;       // [1] of each layer (sn-lcp)
};

/// Proximal policy optimisation; defaults are FALCON's.
struct LearnConfig {
  std::uint64_t seed = 1;
  int iterations = 3000;
  int steps = 24;  // control steps per robot and iteration
  int epochs = 5;
  int mini_batches = 4;
  std::vector<int> actor_hidden = {512, 256, 128};
  std::vector<int> critic_hidden = {512, 256, 128};
  bool scale_inputs = false;  // (P12): of actors and critics, to mean 0 and spread 1
  std::vector<double> init_std = {0.8, 0.6};  // [1] one per agent, or one for all
  double min_std = 0.01;                      // [1] floor; the published code has none
  double rate = 1e-4;
  double min_rate = 1e-5;
  double max_rate = 1e-2;
  double kl_target = 0.01;
  int cool_down = 0;  // last iterations, over which kl_target falls to a tenth (P13)
  double weight_decay = 0.01;
  double gamma = 0.99;
  double lambda = 0.95;
  double clip = 0.2;
  double value_clip =
      0.2;                 // [reward] (P5); 0: none. Values far from it are learnt in as many steps
  double critic_rate = 0;  // 0: the actor's, which KL moves
  double value_weight = 1.0;
  double entropy_weight = 0.01;
  double gradient_clip = 1.0;  // norm, per network
  int chunks = 4;              // pieces of a mini-batch on the CPU: fixed, whatever the threads
  // blocks of robots that draw noise and mini-batches apart; 0: one per process. The result depends
  // on them and not on the number of processes (CPU). On a GPU a process is a block.
  int groups = 0;
  int threads = 0;             // CPU; 0: as many as there are
  std::string device = "cpu";  // cpu, cuda
  bool graphs = true;          // cuda: replay recorded work instead of launching kernel by kernel
  // of matrix products: float32 (TF32 on cuda), float16 (cuda), bfloat16 (cpu, where the processor
  // has it); sums and weights stay float32. auto: float16 on cuda where it can be done, else
  // float32
  std::string precision = "auto";
  // PPO's losses are differentiated by LibTorch's tape instead of by formulas: slower, to compare.
  // sn-lcp and float32 on cuda always have the tape.
  bool tape = false;
  int average = 0;             // iterations the policy is averaged over; 0: it is the last state
  int checkpoint_every = 100;  // iterations
  int keep_checkpoints = 3;
  bool init_curricula = true;  // a warm start goes on as hard as its start ended
  bool checkpoint_env = true;  // all robots' state too: a resumed run goes on as if never stopped
  PenaltyConfig penalty;

  /// Throws ConfigError ("PLACE: key: value: rule") when values contradict each other.
  void Validate(const std::string& place) const;
};

/// The defaults that go with a method where it differs: lcp 0.002, silc on all violating σ by
/// their logarithm. Sets penalty.method. Throws ConfigError for an unknown name.
void ApplyMethod(const std::string& method, const std::string& place, LearnConfig* config);
Method MethodOf(const LearnConfig& config);

/// Reads the keys of a `learn:` map over what `config` holds. Unknown keys, wrong types and values
/// out of range are ConfigErrors with file and line. penalty.method is applied first.
void ReadLearnConfig(const YamlNode& node, LearnConfig* config);

/// "learn.epochs=3", "learn.penalty.lambda=0.2": the same rules, from the command line.
void ApplyOverrides(std::span<const std::string> overrides, LearnConfig* config);

/// Every key as the command line takes it: "learn.epochs", …
std::vector<std::string> LearnKeys();

/// Everything, as YAML that ReadLearnConfig() takes under `learn:`.
std::string ToYaml(const LearnConfig& config);

}  // namespace silc
