// SPDX-License-Identifier: Apache-2.0
// The verbs that need LibTorch live in a program of their own, `silc-trainer`, beside `silc`.
// LibTorch brings some 250 shared libraries, and loading them takes half a second of processor
// time: more than most other verbs need for their work. `silc` knows those verbs by name and hands
// its arguments over, so that a user sees one program.
#pragma once

#include <CLI/CLI.hpp>

namespace silc {

inline constexpr char kTrainHelp[] = "train a policy, with or without a stiffness bound";
inline constexpr char kRunsHelp[] = "trainings in a folder and how far they are";
inline constexpr char kSweepHelp[] =
    "train a list of policies: what is done is skipped, what was cut goes on";
inline constexpr char kBenchTrainHelp[] = "control steps per second: env, rollout, whole iteration";
inline constexpr char kBenchPenaltyHelp[] =
    "an update with and without the penalty, PyTorch's own ways beside it";

/// Adds train, runs and sweep, and train and penalty to `bench`, which must be there. In
/// silc-trainer they run; in silc they start silc-trainer; where LibTorch was not found they are
/// left out.
/// @param argv  the program's, which silc-trainer gets unchanged; must outlive the parsing
void AddTrainerVerbs(CLI::App* app, char** argv);

}  // namespace silc
