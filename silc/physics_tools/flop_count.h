// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "silc/physics/batch.h"

namespace silc {

struct FlopCount {
  double per_step;  // additions, multiplications, divisions, roots, comparisons that pick a value
};

/// Floating-point operations of one physics step of one robot on average, counted by running the
/// step with a scalar that counts, from the given initial states (robots, nq) and (robots, nv),
/// with the gains and targets of robot 0 of the batch.
FlopCount CountFlop(const BatchModel& model,
                    const std::vector<float>& qpos,
                    const std::vector<float>& qvel,
                    int steps,
                    PhysicsBatch& batch);

}  // namespace silc
