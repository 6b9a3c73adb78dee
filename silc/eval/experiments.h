// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/eval/episodes.h"
#include "silc/eval/experiment.h"
#include "silc/eval/experiment_metrics.h"

namespace silc {

// Numbers of the experiments that others name, too.
inline constexpr double kImpulseForce = -150;  // [N] com-impulse: along x of W, at the pelvis
inline constexpr double kLoadForce = -40;      // [N] hand-load: along z of W, at the left hand
inline constexpr double kDroppedMass = 2.5;    // [kg] hand-impact: the paper's

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
ExperimentResult RunComLoadWalk(const Policy&, const ExperimentOptions&, const Progress&);
ExperimentResult RunKnob(const Policy&, const ExperimentOptions&, const Progress&);
ExperimentResult RunPunch(const Policy&, const ExperimentOptions&, const Progress&);

/// What episodes come to, under the names of `walk` or `stand`: what those two say of theirs.
ExperimentResult ResultOfEpisodes(const metric::EpisodeMetrics& declared,
                                  const EpisodeReport& report,
                                  const ExperimentOptions& options);

}  // namespace silc
