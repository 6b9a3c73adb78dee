// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/eval/experiment.h"
#include "silc/plot/figure.h"

namespace silc {

/// The curves of an experiment for several policies in one figure: one panel per panel name, one
/// colour per policy, in the order of the results. With `apart`, every policy has panels of its
/// own, side by side (Experiment::plots_apart).
/// @param labels  what to call the policies; empty: their files' names
plot::Figure FigureOf(const std::vector<const ExperimentResult*>& results,
                      const std::vector<std::string>& labels = {},
                      bool apart = false);

}  // namespace silc
