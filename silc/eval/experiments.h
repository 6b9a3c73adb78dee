// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/eval/experiment.h"

namespace silc {

// The experiments of the registry (experiment.h), one source file each; docs/experiments.md has
// protocols and definitions. `options.episodes` is what is meant: RunExperiment() fills in
// defaults.
ExperimentResult RunComImpulse(const Policy&, const ExperimentOptions&, const Progress&);
ExperimentResult RunHandLoad(const Policy&, const ExperimentOptions&, const Progress&);
ExperimentResult RunBudget(const Policy&, const ExperimentOptions&, const Progress&);
ExperimentResult RunWalk(const Policy&, const ExperimentOptions&, const Progress&);
ExperimentResult RunStand(const Policy&, const ExperimentOptions&, const Progress&);
ExperimentResult RunHandImpact(const Policy&, const ExperimentOptions&, const Progress&);
ExperimentResult RunFoamStep(const Policy&, const ExperimentOptions&, const Progress&);
ExperimentResult RunFrequency(const Policy&, const ExperimentOptions&, const Progress&);
ExperimentResult RunComLoad(const Policy&, const ExperimentOptions&, const Progress&);
ExperimentResult RunKnob(const Policy&, const ExperimentOptions&, const Progress&);
ExperimentResult RunPunch(const Policy&, const ExperimentOptions&, const Progress&);

}  // namespace silc
