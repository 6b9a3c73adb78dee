// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace silc {

// One function per verb: adds it, its options and what runs when it was chosen. Errors are thrown
// (silc/base/error.h) and told in main.cc.
void AddObserve(CLI::App* app);
void AddCertify(CLI::App* app);
void AddBench(CLI::App* app);
void AddMotion(CLI::App* app);
void AddSim(CLI::App* app);
void AddDeploy(CLI::App* app);
void AddEval(CLI::App* app);
void AddReport(CLI::App* app);
void AddExport(CLI::App* app);
void AddGains(CLI::App* app);
// where Boost and three.js are
void AddView(CLI::App* app);
// in silc-trainer (silc/cli/trainer.h)
void AddTrain(CLI::App* app);
void AddRuns(CLI::App* app);
void AddSweep(CLI::App* app);

// The parts of `bench` that live in files of their own.
void AddBenchPhysics(CLI::App* bench);
void AddBenchView(CLI::App* bench);
void AddBenchTrain(CLI::App* bench);
void AddBenchPenalty(CLI::App* bench);

}  // namespace silc
