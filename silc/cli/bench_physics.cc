// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "silc/cli/number.h"
#include "silc/cli/verbs.h"
#include "silc/physics_tools/bench.h"

namespace silc {

void AddBenchPhysics(CLI::App* bench) {
  auto args = std::make_shared<PhysicsBenchOptions>();
  CLI::App* physics = bench->add_subcommand(
      "physics", "physics steps per second, MuJoCo beside it in the same run");
  physics->add_option("--backend", args->backend, "batch (CPU), cuda or mujoco")
      ->capture_default_str();
  physics->add_option(
      "--kernel", args->kernel, "avx512, avx2 or baseline; default: the widest here");
  physics->add_option("--model", args->robot, "robot name or path of a robot.yaml")
      ->capture_default_str();
  physics->add_option("--envs", args->envs, "robots; several numbers make several runs")
      ->check(WholeIn(1, 1 << 22))
      ->capture_default_str();
  physics->add_option("--threads", args->threads, "CPU threads")
      ->check(WholeIn(1, 1024))
      ->capture_default_str();
  physics->add_option("--substeps", args->substeps, "physics steps per call")
      ->check(WholeIn(1, 1000))
      ->capture_default_str();
  physics->add_option("--steps", args->steps, "physics steps per repeat")
      ->check(WholeIn(1, 1000000))
      ->capture_default_str();
  physics->add_option("--repeats", args->repeats, "interleaved with MuJoCo")
      ->check(WholeIn(1, 1000))
      ->capture_default_str();
  physics
      ->add_option("--friction-loss",
                   args->friction_loss,
                   "on every joint [N·m]; several numbers make several runs")
      ->check(NumberIn(0.0, 1000.0))
      ->capture_default_str();
  physics->add_option("--push", args->push, "largest steady push on the base, along x and y [N]")
      ->check(NumberIn(0.0, 1000.0))
      ->capture_default_str();
  physics->add_flag("--self-collision",
                    args->self_collision,
                    "contacts between the robot's own links, in MuJoCo too");
  physics->callback([args] { RunPhysicsBench(*args); });
}

}  // namespace silc
