// SPDX-License-Identifier: Apache-2.0
#include "silc/physics_tools/sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/utf8.h"
#include "silc/cli/deploy_terminal.h"
#include "silc/cli/number.h"
#include "silc/cli/output_path.h"
#include "silc/cli/verbs.h"

namespace silc {
namespace {

struct SimArguments {
  SimOptions sim;
  std::string backend = "both", push, csv, plot;
  bool dds = false;
  DdsSimArguments on_network;
};

/// "fx,fy,fz@t" or "fx,fy,fz@ts": newtons and seconds.
void ParsePush(const std::string& text, SimOptions* options) {
  int read = 0;
  double* f = options->push.data();
  const int fields = std::sscanf(
      text.c_str(), "%lf,%lf,%lf@%lf%n", &f[0], &f[1], &f[2], &options->push_time, &read);
  const std::string rest = text.substr(static_cast<std::size_t>(std::max(read, 0)));
  const bool finite = std::isfinite(f[0]) && std::isfinite(f[1]) && std::isfinite(f[2]) &&
                      std::isfinite(options->push_time);
  if (fields != 4 || (!rest.empty() && rest != "s") || !finite) {
    throw ConfigError(
        "--push " + text +
        ": must be force and time, as in 50,0,0@0.5s: 50 N along x, 0.5 s after the start");
  }
  if (options->push_time < 0 || options->push_time >= options->seconds) {
    throw ConfigError(
        fmt::format("--push {}: {:g} s is outside the simulation, which begins at 0 and lasts {:g} "
                    "s (--seconds)",
                    text,
                    options->push_time,
                    options->seconds));
  }
}

void Sim(SimArguments args) {
  if (args.dds) {
    args.on_network.robot = args.sim.robot;
    SimulateOnNetwork(args.on_network);
    return;
  }
  if (!args.push.empty()) ParsePush(args.push, &args.sim);
  if (args.backend != "both") args.sim.backends = {args.backend};
  RequireWritable({{"--csv", args.csv}, {"--plot", args.plot}}, {args.sim.robot});
  const std::vector<SimTrace> traces = RunSim(args.sim);
  std::string faults;
  for (const SimTrace& trace : traces) {
    fmt::print(
        "{:8} base after {:g} s at {:+.4f} {:+.4f} {:.4f} m, tilt {:.3f} rad, feet {:.1f} N{}\n",
        trace.backend,
        trace.time.back(),
        trace.base.back()[0],
        trace.base.back()[1],
        trace.base.back()[2],
        trace.tilt.back(),
        trace.foot_force.back()[0] + trace.foot_force.back()[1],
        trace.fault ? ", FAULT" : "");
  }
  if (traces.size() == 2) {
    double most = 0;
    for (std::size_t i = 0; i < traces[0].time.size(); ++i) {
      for (int k = 0; k < 3; ++k) {
        most = std::max(most, std::abs(traces[0].base[i][k] - traces[1].base[i][k]));
      }
    }
    fmt::print("largest distance between the two bases: {:.2g} m\n", most);
  }
  for (const SimTrace& trace : traces) {
    if (trace.fault) faults += (faults.empty() ? "" : ", ") + trace.backend;
  }
  if (!args.csv.empty()) {
    WriteFileAtomically(args.csv, SimCsv(traces));
    fmt::print("wrote {}\n", Printable(args.csv));
  }
  if (!args.plot.empty()) {
    WriteFileAtomically(args.plot, SimSvg(args.sim, traces));
    fmt::print("wrote {}\n", Printable(args.plot));
  }
  if (!faults.empty()) {
    throw RunError(args.sim.robot + ": the simulation diverged (" + faults +
                   "); are mass, inertia, gains and physics_period what they should be?");
  }
}

// An option that would do nothing is refused.
void RefuseOthers(const CLI::App& sim, const std::vector<CLI::Option*>& of_dds, bool dds) {
  for (const CLI::Option* option : sim.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || name == "--robot" || name == "--dds") continue;
    const bool is_of_dds = std::find(of_dds.begin(), of_dds.end(), option) != of_dds.end();
    if (is_of_dds == dds) continue;
    std::string taken;
    for (const CLI::Option* other : of_dds) taken += ", " + other->get_name();
    throw ConfigError(dds ? "sim --dds: takes no " + name + "; beside it stand --robot" + taken
                          : "sim: " + name + " is for sim --dds");
  }
}

}  // namespace

void AddSim(CLI::App* app) {
  auto args = std::make_shared<SimArguments>();
  CLI::App* sim = app->add_subcommand(
      "sim", "a robot standing under its servos, pushed once: batch stepper and MuJoCo overlaid");
  sim->add_option("--robot", args->sim.robot, "robot name or path of a robot.yaml")
      ->capture_default_str();
  sim->add_option("--backend", args->backend, "both, batch, cuda or mujoco")->capture_default_str();
  sim->add_option("--gains", args->sim.gains, "gain set of the robot; default: its own");
  sim->add_option("--pose", args->sim.pose, "standing pose of the robot; default: its own");
  sim->add_option("--stiffness", args->sim.stiffness, "factor on kp")
      ->check(NumberIn(0.0, 1000.0))
      ->capture_default_str();
  sim->add_option("--push", args->push, "force on the base and time: fx,fy,fz@t [N, s]");
  sim->add_option("--push-duration", args->sim.push_duration, "[s]")
      ->check(NumberIn(0.0, 1000.0))
      ->capture_default_str();
  sim->add_option("--seconds", args->sim.seconds, "[s]")
      ->check(NumberIn(0.02, 3600.0))
      ->capture_default_str();
  sim->add_option("--csv", args->csv, "file for the numbers");
  sim->add_option("--plot", args->plot, "SVG file");
  sim->add_flag("--dds", args->dds, "a G1 in MuJoCo on the robot's topics, for silc deploy");
  const std::vector<CLI::Option*> of_dds = AddDdsSimOptions(sim, &args->on_network);
  sim->callback([args, sim, of_dds] {
    RefuseOthers(*sim, of_dds, args->dds);
    Sim(*args);
  });
}

}  // namespace silc
