// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "silc/learn/checkpoint.h"
#include "silc/learn/config.h"
#include "silc/learn/ranks.h"
#include "silc/learn/train_log.h"
#include "silc/learn/vec_env.h"
#include "silc/policy/mlp.h"

namespace silc {

/// Where the time of an iteration went [s]. On a GPU work is queued and env and policy are the
/// host's time for that; the stages' own times need MeasureStages().
struct StageTimes {
  double env = 0;      // physics and task
  double policy = 0;   // actors and critics while collecting
  double rollout = 0;  // both, the device waited for; 0 unless measured
  double update = 0;   // advantages, losses, penalty, optimiser, reading the report's numbers
};

/// PPO with one of the seven methods. Construction throws ConfigError when settings and environment
/// do not fit.
///
/// On the CPU the result is a function of settings and seed alone, whatever the thread count: a
/// mini-batch is cut into `chunks` pieces, each piece is worked by one thread with LibTorch and
/// BLAS held to one thread, and the pieces' gradients are added in their order. Random numbers come
/// from (seed, iteration), so a resumed run draws what it would have drawn.
///
/// Several processes train together when `ranks` connects them: each has robots of its own, and all
/// hold the same weights after every step. All of them call the same functions. Robots are cut into
/// config.groups blocks (one per process unless it says more), each with draws, mini-batches and
/// sums of its own, added in the blocks' order: on the CPU the result does not depend on the number
/// of processes either. docs/scaling.md.
class Trainer {
 public:
  /// @param ranks null: this process is alone
  Trainer(const LearnConfig& config, VecEnv* env, std::shared_ptr<Ranks> ranks = nullptr);
  ~Trainer();

  /// Collect, estimate advantages, update. @return what the logs say of it
  IterationReport Iterate();

  /// Iterates to config.iterations, with logs and checkpoints in `folder` (empty: neither). Ends
  /// early, after a checkpoint, once `stop` is set. Of several processes the first alone writes and
  /// is told of checkpoints, and all end once `stop` is set in one of them.
  /// @return whether all iterations were done
  bool Run(const std::string& folder,
           TrainLog* log,
           const std::atomic<bool>* stop = nullptr,
           const std::function<void()>& on_checkpoint = {});

  /// Goes on from the newest whole checkpoint in `folder`; false when there is none. Newer ones
  /// that are broken are set aside as FILE.broken. Throws, with nothing changed on disk, when the
  /// newest cannot be read or does not fit the settings.
  bool Resume(const std::string& folder, const std::function<void(const std::string&)>& warn);

  /// Networks, optimisers, rates, λ, iteration and the environment's state; of several processes
  /// the first one's are whole. Throws RunError when they do not hold the same weights.
  Blobs Save() const;
  /// Throws ConfigError beginning with `place` when they are of another network.
  void Load(const Blobs& blobs, const std::string& place);
  /// A warm start from another training's checkpoint: its networks, optimisers and rates.
  /// Iteration, λ and environment are this training's own, and so may the method be. From `sn-lcp`
  /// the normalised weights are taken, which are what acted. Throws ConfigError beginning with
  /// `place` when the networks differ in shape.
  void Init(const Blobs& blobs, const std::string& place);

  /// The actors side by side, for WriteOnnx() and MlpEngine.
  MlpNetwork Policy() const;

  int iteration() const;  ///< finished
  const StageTimes& last_times() const;
  /// Wait for the device between rollout and update, so that their times are theirs.
  void MeasureStages(bool on);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace silc
