// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "silc/train/sweep.h"

namespace silc {

/// What the script of a sweep is told besides the trainings.
struct SlurmOptions {
  std::string silc;       // the program, by its path
  std::string directory;  // where it runs: relative paths of the sweep are relative to it
  std::string script;     // the file's own path, for what it says about itself
};

/// A sweep as a shell script for SLURM: run by a user it submits the trainings, run by SLURM it is
/// one of them. Trainings are the elements of a job array, those that start from another's networks
/// submitted apart and held until that one has succeeded. Words after the script's name go to
/// sbatch. A training that was cut goes on, one that is done ends at once; one that does not reach
/// its last iteration fails, so that nothing starts from it. The script can be submitted again.
std::string SlurmScript(const Sweep& sweep, const SlurmOptions& options);

}  // namespace silc
