// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "silc/learn/rank_setup.h"

namespace at {
class Tensor;
}

namespace silc {

/// The processes of one training, over PyTorch's c10d: NCCL where tensors lie on GPUs, Gloo where
/// they do not. All of them call the same functions in the same order. One process alone has them
/// too, and they then do nothing.
///
/// A call throws RunError, or ends the process with a message, when a rank is lost.
class Ranks {
 public:
  virtual ~Ranks() = default;

  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  virtual int local_size() const { return 1; }  ///< on this machine

  /// Adds up blocks over all ranks: those of rank 0, in order, then those of rank 1, … Over Gloo
  /// the additions are done in just that order, so that blocks give the same bits however they are
  /// shared out among ranks; over NCCL those of a rank come first and NCCL orders the rest.
  /// @param parts (blocks, n), as many on every rank   @return (n)
  virtual at::Tensor Sum(const at::Tensor& parts);
  /// Rows of all ranks, one below the other. @param rows (count, …), as many on every rank
  virtual at::Tensor Gather(const at::Tensor& rows);
  /// The bytes of every rank on rank 0; nothing on the others.
  virtual std::vector<std::string> GatherBytes(const std::string& bytes);
  /// Those of rank 0, on every rank.
  virtual std::string Broadcast(const std::string& bytes);

  /// Tells the others, before this process ends with an error of its own, why it does.
  virtual void Fail(const std::string& /*why*/) {}
  /// After the last call of all others: waits for the rest and lets go of them.
  virtual void Leave() {}
};

std::shared_ptr<Ranks> OneRank();

/// Ranks::Sum() of numbers on the host. @param parts (blocks, n)   @return (n)
std::vector<double> SumOnHost(Ranks* ranks,
                              std::span<const double> parts,
                              std::size_t blocks,
                              bool gpu);

/// Waits for the others, five times `timeout` at most, then lets none of them go unwatched: every
/// rank says that it lives, ten times in `timeout`. On a GPU the device of `local_rank` is this
/// thread's from here on. Throws ConfigError where this build has nothing to connect with, RunError
/// that names the rank which did not come.
std::shared_ptr<Ranks> ConnectRanks(const RankSetup& setup, bool gpu);

/// A store that ranks can meet at, on a free port of this machine: what torchrun keeps.
class RankStore {
 public:
  RankStore();
  ~RankStore();
  int port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether this build can connect processes: on CPUs, on GPUs.
bool RanksOnCpu();
bool RanksOnGpu();

}  // namespace silc
