// SPDX-License-Identifier: Apache-2.0
#include "silc/physics_tools/bench.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "silc/base/rng.h"
#include "silc/physics/group_kernel.h"
#include "silc/physics/robot_buffer.h"
#include "silc/physics_tools/flop_count.h"
#include "silc/physics_tools/make_batch.h"

namespace silc {
namespace {

using Json = nlohmann::ordered_json;

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
// of this thread alone: what other programs take does not count
double ThreadSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Initial states, and what differs from robot to robot, as a pure function of the robot's number.
struct Crowd {
  Crowd(const RobotModel& robot, PhysicsBatch* batch, const mjModel& mujoco, double most)
      : nq(batch->width(Field::kQpos)), nv(batch->width(Field::kQvel)) {
    const int n = batch->num_envs();
    envs.resize(n);
    std::iota(envs.begin(), envs.end(), 0);
    qpos.resize(static_cast<std::size_t>(n) * nq);
    batch->Read(Field::kQpos, qpos);
    qvel.resize(static_cast<std::size_t>(n) * nv);
    std::vector<float> wrench(static_cast<std::size_t>(n) * batch->width(Field::kWrench));
    const int base = robot.base_qpos_address();
    for (int env = 0; env < n; ++env) {
      Rng rng(7, env);
      float* q = qpos.data() + static_cast<std::size_t>(env) * nq;
      for (const int i : robot.qpos_address()) q[i] += static_cast<float>(0.05 * rng.Normal());
      for (int k = 4; k < 7; ++k) q[base + k] += static_cast<float>(0.02 * rng.Normal());
      for (int i = 0; i < nv; ++i) {
        qvel[static_cast<std::size_t>(env) * nv + i] = static_cast<float>(0.1 * rng.Normal());
      }
      friction.push_back(static_cast<float>(rng.Uniform(0.6, 1.4)));
      for (int k = 0; k < 2; ++k) {
        push.push_back(static_cast<float>(rng.Uniform(-most, most)));
        wrench[static_cast<std::size_t>(env) * batch->width(Field::kWrench) + k] = push.back();
      }
      std::vector<double> mass(mujoco.body_mass, mujoco.body_mass + mujoco.nbody);
      for (double& m : mass) m *= rng.Uniform(0.9, 1.1);
      batch->SetBodies(env, mass, {});
      masses.push_back(std::move(mass));
    }
    batch->Write(Field::kFriction, envs, friction);
    batch->Write(Field::kWrench, envs, wrench);
  }

  void Reset(PhysicsBatch* batch) const {
    batch->Reset(envs, qpos, qvel);
    batch->Write(Field::kWrenchSteps,
                 envs,
                 std::vector<float>(envs.size() * batch->width(Field::kWrenchSteps), 1e6f));
  }

  int nq, nv;
  std::vector<int> envs;
  std::vector<float> qpos, qvel, friction, push;  // push: 2 per robot, horizontal [N]
  std::vector<std::vector<double>> masses;
};

/// mj_step as its user calls it, on the first robots of the crowd: one mjData, torques of the same
/// servos in ctrl, the same masses, frictions and pushes. Steps per second.
double MujocoRate(const RobotModel& robot, const mjModel& nominal, const Crowd& crowd, int steps) {
  constexpr int kRobots = 12;
  const GainSet& gains = robot.spec().Gains();
  const Eigen::VectorXd& rest = robot.spec().StandingPose().q;
  const std::unique_ptr<mjModel, void (*)(mjModel*)> m(mj_copyModel(nullptr, &nominal),
                                                       mj_deleteModel);
  const std::unique_ptr<mjData, void (*)(mjData*)> d(mj_makeData(m.get()), mj_deleteData);
  const int robots = std::min<int>(kRobots, static_cast<int>(crowd.envs.size()));
  double spent = 0;
  for (int env = 0; env < robots; ++env) {
    for (int b = 1; b < m->nbody; ++b) {
      const double scale = crowd.masses[env][b] / std::max(nominal.body_mass[b], 1e-9);
      m->body_mass[b] = crowd.masses[env][b];
      for (int k = 0; k < 3; ++k)
        m->body_inertia[3 * b + k] = scale * nominal.body_inertia[3 * b + k];
    }
    for (int g = 0; g < m->ngeom; ++g) {
      m->geom_friction[3 * g] = crowd.friction[env] * nominal.geom_friction[3 * g];
    }
    mj_resetData(m.get(), d.get());
    std::copy_n(crowd.qpos.begin() + static_cast<long>(env) * crowd.nq, crowd.nq, d->qpos);
    std::copy_n(crowd.qvel.begin() + static_cast<long>(env) * crowd.nv, crowd.nv, d->qvel);
    std::copy_n(crowd.push.begin() + 2 * env, 2, d->xfrc_applied + 6 * robot.base_body());
    const double start = ThreadSeconds();
    for (int t = 0; t < steps; ++t) {
      for (int j = 0; j < robot.num_joints(); ++j) {
        const double q = d->qpos[robot.qpos_address()[j]], qd = d->qvel[robot.dof_address()[j]];
        d->ctrl[robot.actuator()[j]] = gains.kp[j] * (rest[j] - q) - gains.kd[j] * qd;
      }
      mj_step(m.get(), d.get());
    }
    spent += ThreadSeconds() - start;
  }
  return robots * steps / spent;
}

void BenchOne(const PhysicsBenchOptions& options,
              const RobotModel& robot,
              int envs,
              double friction) {
  RobotBatch made = MakeRobotBatch(robot,
                                   {.backend = options.backend,
                                    .kernel = options.kernel,
                                    .num_envs = envs,
                                    .threads = options.threads,
                                    .friction_loss = friction,
                                    .self_collision = options.self_collision});
  PhysicsBatch& batch = *made.batch;
  const Crowd crowd(robot, &batch, *made.model, options.push);
  // one thread of ours: its own time. Several, or a GPU: the clock on the wall.
  const bool single = options.backend != "cuda" && options.threads == 1;
  const auto clock = single ? ThreadSeconds : WallSeconds;
  std::vector<float> fault(envs);
  std::vector<double> rates, mujoco, ratios;
  auto* cpu = dynamic_cast<CpuBatch*>(&batch);
  StepCounts before;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    mujoco.push_back(MujocoRate(robot, *made.model, crowd, options.steps));
    crowd.Reset(&batch);
    batch.Read(Field::kFault, fault);  // waits for the GPU
    if (repeat == 0) {                 // caches, clocks and the GPU's code warm up
      batch.Advance(options.substeps);
      crowd.Reset(&batch);
      batch.Read(Field::kFault, fault);
      if (cpu) before = cpu->counts();
    }
    const double start = clock();
    const int calls = options.steps / options.substeps;
    for (int t = 0; t < calls; ++t) batch.Advance(options.substeps);
    if (options.backend == "cuda") batch.Read(Field::kFault, fault);
    rates.push_back(static_cast<double>(envs) * calls * options.substeps / (clock() - start));
    ratios.push_back(rates.back() / mujoco.back());
  }
  batch.Read(Field::kFault, fault);
  const auto faults = std::count_if(fault.begin(), fault.end(), [](float f) { return f != 0; });

  const auto print = [&](const char* name, double value, const char* unit, const Json& more) {
    Json line = {{"name", name},
                 {"value", value},
                 {"unit", unit},
                 {"backend", options.backend},
                 {"kernel", batch.name()},
                 {"model", options.robot},
                 {"envs", envs},
                 {"threads", options.threads},
                 {"substeps", options.substeps},
                 {"friction_loss", friction},
                 {"self_collision", options.self_collision},
                 {"push", options.push},
                 {"mujoco", mj_versionString()}};
    line.update(more);
    fmt::print("{}\n", line.dump());
  };
  print("physics.steps_per_s",
        std::round(Median(rates)),
        "1/s",
        {{"best", std::round(*std::max_element(rates.begin(), rates.end()))}, {"faults", faults}});
  print("physics.ratio_vs_mujoco",
        Median(ratios),
        "1",
        {{"mujoco_steps_per_s", std::round(Median(mujoco))},
         {"min", *std::min_element(ratios.begin(), ratios.end())},
         {"max", *std::max_element(ratios.begin(), ratios.end())}});
  if (!cpu) return;

  // where the time went, and how far from what the core can do
  StepCounts counts = cpu->counts();
  const double steps = static_cast<double>(counts.steps - before.steps);
  const double groups = static_cast<double>(counts.groups - before.groups);
  double ticks = 0;
  for (int i = 0; i < kNumStages; ++i)
    ticks += static_cast<double>(counts.ticks[i] - before.ticks[i]);
  const char* names[kNumStages] = {
      "kinematics", "contacts", "idle", "newton", "refine", "integrate"};
  Json share;
  for (int i = 0; i < kNumStages; ++i) {
    share[names[i]] =
        std::round(1000 * static_cast<double>(counts.ticks[i] - before.ticks[i]) / ticks) / 1000;
  }
  const FlopCount flop = CountFlop(cpu->model(), crowd.qpos, crowd.qvel, options.steps, batch);
  double peak = 0;
  for (const GroupKernel& kernel : AvailableGroupKernels()) {
    if (batch.name() != kernel.name) continue;
    constexpr long kRounds = 20'000'000;
    const double start = ThreadSeconds();
    volatile float sink = kernel.multiply_add(kRounds);
    (void)sink;
    peak = 24.0 * kernel.lanes * kRounds / (ThreadSeconds() - start);
  }
  const double rate = Median(rates) / options.threads;
  print(
      "physics.profile",
      flop.per_step * rate / peak,
      "of peak flop/s",
      {{"share", share},
       {"iterations", static_cast<double>(counts.iterations - before.iterations) / steps},
       {"iterations_of_vector",
        static_cast<double>(counts.group_iterations - before.group_iterations) / groups},
       {"contacts", static_cast<double>(counts.contacts - before.contacts) / steps},
       {"self_contacts", static_cast<double>(counts.self_contacts - before.self_contacts) / steps},
       {"live_links", static_cast<double>(counts.live_links - before.live_links) / groups},
       {"unconverged", static_cast<double>(counts.unconverged - before.unconverged) / steps},
       {"flop_per_step", flop.per_step},
       {"bytes_per_robot", MakeLayout(cpu->model().step).size * sizeof(float)},
       {"peak_flop_per_s", peak}});
}

}  // namespace

void RunPhysicsBench(const PhysicsBenchOptions& options) {
  const RobotModel robot =
      RobotModel::Load(options.robot, {.self_collision = options.self_collision});
  for (const int envs : options.envs) {
    for (const double friction : options.friction_loss) BenchOne(options, robot, envs, friction);
  }
}

}  // namespace silc
