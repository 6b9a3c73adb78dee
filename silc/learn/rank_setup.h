// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace silc {

/// Which of the processes of a training this one is, and where they meet.
struct RankSetup {
  int rank = 0;                       // among all processes
  int size = 1;                       // how many there are
  int local_rank = 0;                 // among those of this machine: which GPU is its own
  int local_size = 1;                 // how many there are on this machine, as far as we are told
  std::string address = "127.0.0.1";  // of the machine that keeps the store …
  int port = 29500;                   // … and its port there
  bool store_is_kept = false;         // by who started us: rank 0 does not open one
  std::string prefix = "silc";        // of our names in that store
  double timeout = 60;                // [s] silence after which a rank counts as lost
  std::string way_out;  // what a user who reads of a lost rank can do; a line, or empty
};

/// From the variables that torchrun, mpirun (Open MPI) or srun (SLURM) set; size 1 where there are
/// none:
///
///     torchrun   RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
///     mpirun     OMPI_COMM_WORLD_RANK …_SIZE …_LOCAL_RANK …_LOCAL_SIZE
///     srun       SLURM_PROCID SLURM_STEP_NUM_TASKS SLURM_LOCALID SLURM_STEP_NODELIST SLURM_JOB_ID
///
/// MASTER_ADDR and MASTER_PORT go before what the last two say. SLURM_NTASKS is not asked: a batch
/// script has it too, where `silc train` without srun is one process.
///
/// @param get  as std::getenv
/// Throws ConfigError that names the variable which is missing or wrong.
RankSetup ReadRankSetup(const std::function<const char*(const char*)>& get);

/// The first machine of a SLURM list, as of "gpu[003-006,010],cpu1": gpu003.
std::string FirstHost(const std::string& nodelist);

}  // namespace silc
