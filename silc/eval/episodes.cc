// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/episodes.h"

#include <fmt/format.h>

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <optional>

#include "silc/base/error.h"
#include "silc/eval/metrics.h"
#include "silc/observe/closed_loop.h"
#include "silc/task/loco_env.h"

namespace silc {
namespace {

constexpr int kChunk = 16;      // robots per task of the thread pool
constexpr double kSettled = 2;  // [s] after a new command, before its tracking is judged

// What the robot would report, from the physics alone.
void Sense(LocoEnv& env, int robot, ObservationInput* in) {
  const TaskRobot& r = env.robot();
  const FieldView qpos = env.physics().view(Field::kQpos), qvel = env.physics().view(Field::kQvel),
                  torque = env.physics().view(Field::kTorque);
  in->q.resize(kTaskJoints);
  in->qd.resize(kTaskJoints);
  in->tau.resize(kTaskJoints);
  in->q_ref.setZero(kTaskJoints);
  const EnvState& state = env.state(robot);
  for (int j = 0; j < kTaskJoints; ++j) {
    in->q[j] = qpos(robot, r.qpos[j]);
    in->qd[j] = qvel(robot, r.dof[j]);
    in->tau[j] = torque(robot, r.actuator[j]);
    if (j >= kLowerJoints) in->q_ref[j] = state.arms.ref[j - kLowerJoints];
  }
  const int k = r.base_qpos + 3, w = r.base_dof + 3;
  const Eigen::Quaterniond R_WB(
      qpos(robot, k), qpos(robot, k + 1), qpos(robot, k + 2), qpos(robot, k + 3));
  in->g_B = R_WB.conjugate() * Eigen::Vector3d(0, 0, -1);
  for (int i = 0; i < 3; ++i) in->w_WB_B[i] = qvel(robot, w + i);
  const int v = r.base_dof;
  in->v_WB_B =
      R_WB.conjugate() * Eigen::Vector3d(qvel(robot, v), qvel(robot, v + 1), qvel(robot, v + 2));
  const TaskCommand& c = state.command;
  in->command.lin_vel << c.vx, c.vy;
  in->command.yaw_rate = c.yaw_rate;
  in->command.height = c.height;
  in->command.walk = c.walk;
  in->command.waist << c.waist[0], c.waist[1], c.waist[2];
}

// (S5)'s ingredients from the batch's fields: columns are base linear, base angular, joints.
void FillBody(LocoEnv& env, int robot, const Eigen::Vector3d& g_B, BodyJacobians* body) {
  const TaskRobot& r = env.robot();
  const FieldView com = env.physics().view(Field::kComJacobian),
                  frame = env.physics().view(Field::kFrameJacobian);
  const int nv = r.nv, columns = 6 + kTaskJoints;
  const auto dof = [&](int column) { return column < 6 ? r.base_dof + column : r.dof[column - 6]; };
  const auto fill = [&](const FieldView& field, int start, int rows, auto* J) {
    J->resize(rows, columns);
    for (int row = 0; row < rows; ++row) {
      for (int c = 0; c < columns; ++c) (*J)(row, c) = field(robot, start + nv * row + dof(c));
    }
  };
  fill(com, 0, 3, &body->com);
  for (int side = 0; side < 2; ++side) {
    fill(frame, 6 * nv * (kFrameLeftFoot + side), 6, &body->foot[side]);
    fill(frame, 6 * nv * (kFrameLeftHand + side), 3, &body->hand[side]);
  }
  body->g_B = g_B;
}

// The walking part's jitter and power of one group of joints.
struct MotionMeter {
  int first, count;
  ThirdDifferenceMeter action{count}, velocity{count}, torque{count};
  double power = 0;
  long rows = 0;

  void Add(const std::vector<double>& a,
           const std::vector<double>& qd,
           const std::vector<double>& tau) {
    const auto part = [&](const std::vector<double>& row) {
      return std::span<const double>(row).subspan(first, count);
    };
    action.Add(part(a));
    velocity.Add(part(qd));
    torque.Add(part(tau));
    power += MeanAbsolutePower(part(tau), part(qd), count);
    ++rows;
  }
  void Break() {
    action.Break();
    velocity.Break();
    torque.Break();
  }
  MotionMeasures Measures(double dt) const {
    MotionMeasures m;
    m.action_jitter = action.Jitter(dt);
    m.velocity_jitter = velocity.Jitter(dt);
    m.torque_jitter = torque.Jitter(dt);
    if (rows > 0) m.power = power / static_cast<double>(rows);
    return m;
  }
};

// One robot's policy and what is remembered of its episode.
struct Runner {
  Policy policy;
  MotionMeter all{0, kTaskJoints}, lower{0, kLowerJoints}, upper{kLowerJoints, kUpperJoints};
  double saturated = 0;
  EpisodeResult result;
  PolicyStatus status = PolicyStatus::kOk;  // of its last answer
  bool over = false;
  long steps = 0, judged = 0;
  double arm_error2 = 0, velocity_error2 = 0, gait_error2 = 0;
  TaskCommand command{};
  int since_command = 0;
  std::vector<Eigen::Vector2d> velocity;  // ring over one gait cycle
  std::vector<SigmaSample> sigma;
};

bool SameCommand(const TaskCommand& a, const TaskCommand& b) {
  return a.vx == b.vx && a.vy == b.vy && a.walk == b.walk && a.heading == b.heading;
}

}  // namespace

TaskConfig NominalTask(TaskConfig task, float force_scale) {
  task.noise = {.joint_pos = 0, .joint_vel = 0, .torque = 0, .base_ang_vel = 0, .gravity = 0};
  task.action.delay_max = 0;
  task.randomisation.friction_min = task.randomisation.friction_max = 0.8f;
  task.randomisation.mass_min = task.randomisation.mass_max = 1;
  task.randomisation.pelvis_mass_min = task.randomisation.pelvis_mass_max = 0;
  task.randomisation.gain_min = task.randomisation.gain_max = 1;
  task.randomisation.strength_min = task.randomisation.strength_max = 1;
  task.randomisation.torso_mass_min = task.randomisation.torso_mass_max = 0;
  task.randomisation.hand_mass_min = task.randomisation.hand_mass_max = 0;
  task.randomisation.torso_com = 0;
  task.curriculum.force_start = force_scale;
  task.curriculum.height_start = 1;
  return task;
}

namespace {
// Targets and gains of any policy can be put to the environment; joints and period are its own.
void CheckFits(const Policy& policy, const RobotModel& robot) {
  const std::string who =
      "the policy's layout '" + policy.layout().name + "' does not fit the task: ";
  const double period = robot.spec().control_period;
  if (policy.num_joints() != kTaskJoints) throw ConfigError(who + "it needs the G1's 29 joints");
  if (std::abs(policy.layout().control_dt - period) > 1e-6) {
    throw ConfigError(who + "its control period is not " + std::to_string(period) + " s");
  }
}

// What a thread needs for itself.
struct Worker {
  Worker(const ObserverOptions& disc_options,
         const ObserverOptions& own_options,
         const ObserverOptions& paper_options)
      : target(Eigen::VectorXd::Zero(kTaskJoints)),
        disc(disc_options),
        own(own_options),
        paper(paper_options) {}
  ObservationInput input;
  Eigen::VectorXd target;
  BodyJacobians body;
  PolicyJacobians jacobians;
  StiffnessObserver disc, own, paper;  // by (S7c), by the budget's condition, by (S7a)
};

std::vector<Worker> MakeWorkers(const Policy& policy,
                                const GainSet& gains,
                                const EpisodeOptions& options,
                                int count) {
  ObserverOptions disc;
  disc.servo.kp = gains.kp;
  disc.servo.kd = gains.kd;
  disc.servo.alpha = policy.action_scale();
  disc.budget = options.budget;
  const ObserverOptions own = disc;
  disc.budget.condition = Condition::kDisc;
  ObserverOptions paper = disc;
  paper.one_step_sigma = true;
  paper.budget.condition = Condition::kOneSided;
  paper.budget.hand_floor.setZero();  // which (S7a) does not have
  std::vector<Worker> workers;
  for (int i = 0; i < count; ++i) workers.emplace_back(disc, own, paper);
  return workers;
}

// Whether the environment makes the policy's own target of its raw action: the task's own policies,
// whose action then goes through as it is, to the last bit.
bool HasTaskActions(const Policy& policy, const TaskRobot& robot) {
  bool same = true;
  for (int j = 0; j < kTaskJoints; ++j) {
    const bool arm = j >= kLowerJoints;
    same = same && policy.commanded()[j] && policy.residual()[j] == arm &&
           float(policy.action_scale()[j]) == robot.action_scale[j] &&
           (arm || float(policy.default_pose()[j]) == robot.default_q[j]);
  }
  return same;
}

// The action of one robot, 29 numbers; zeros once its episode is over. Returns whether it acted.
bool Decide(LocoEnv& env, int i, bool same_actions, Runner* runner, Worker* worker, float* action) {
  Runner& r = *runner;
  const TaskRobot& robot = env.robot();
  if (!r.over) {
    Sense(env, i, &worker->input);
    r.status = r.policy.Act(worker->input, &worker->target);
  }
  if (r.over || r.status != PolicyStatus::kOk) {
    std::fill_n(action, kTaskJoints, 0.0f);
    return false;
  }
  // what the environment makes this target of, whatever the policy's own scale is
  for (int j = 0; j < kTaskJoints; ++j) {
    const double centre = j < kLowerJoints ? robot.default_q[j] : worker->input.q_ref[j];
    action[j] = same_actions
                    ? static_cast<float>(r.policy.raw_action()[j])
                    : static_cast<float>((worker->target[j] - centre) / robot.action_scale[j]);
  }
  return true;
}

// σ of the moment in which a robot has just acted, under the budget and under the paper's
// condition.
void Observe(LocoEnv& env, int i, ContactMode mode, Runner* r, Worker* worker) {
  if (r->policy.StaticJacobians(&worker->jacobians) != PolicyStatus::kOk) return;
  FillBody(env, i, worker->input.g_B, &worker->body);
  SigmaSample sample;
  sample.mode = mode;
  const StiffnessReading& disc = worker->disc.Observe(worker->jacobians, worker->body, mode);
  sample.sound = disc.quasi_static.status == StiffnessStatus::kOk;
  sample.disc = disc.quasi_static.sigma;
  sample.worst = disc.quasi_static.worst;
  sample.own = sample.disc;
  if (worker->own.options().budget.condition != Condition::kDisc) {
    sample.own = worker->own.Observe(worker->jacobians, worker->body, mode).quasi_static.sigma;
  }
  const StiffnessReading& paper = worker->paper.Observe(worker->jacobians, worker->body, mode);
  sample.paper = paper.one_step.sigma;
  sample.paper_worst = paper.one_step.worst;
  r->sigma.push_back(sample);
}

// Numbers of one robot, per joint.
struct JointRows {
  std::vector<double> action = std::vector<double>(kTaskJoints);
  std::vector<double> qd = action, tau = action;
};

// What a step brought, for a robot that lived through it.
void Judge(LocoEnv& env, int i, Runner* runner, JointRows* rows) {
  Runner& r = *runner;
  const TaskRobot& robot = env.robot();
  const FieldView qpos = env.physics().view(Field::kQpos), qvel = env.physics().view(Field::kQvel),
                  torque = env.physics().view(Field::kTorque);
  const Eigen::VectorXd& limit = env.robot_model().effort_limit();
  const EnvState& state = env.state(i);
  double arm_error2 = 0;
  for (int j = 0; j < kUpperJoints; ++j) {
    const double e = qpos(i, robot.qpos[kLowerJoints + j]) - state.arms.ref[j];
    arm_error2 += e * e / kUpperJoints;
  }
  r.arm_error2 += arm_error2;
  for (int j = 0; j < kTaskJoints; ++j) {
    rows->action[j] = r.policy.raw_action()[j];
    rows->qd[j] = qvel(i, robot.dof[j]);
    rows->tau[j] = torque(i, robot.actuator[j]);
    r.saturated += std::abs(rows->tau[j]) > 0.999 * limit[j];
  }
  for (MotionMeter* meter : {&r.all, &r.lower, &r.upper}) {
    if (state.command.walk > 0.5f) {
      meter->Add(rows->action, rows->qd, rows->tau);
    } else {
      meter->Break();
    }
  }
  const int k = robot.base_qpos + 3;
  const Eigen::Quaterniond R_WB(qpos(i, k), qpos(i, k + 1), qpos(i, k + 2), qpos(i, k + 3));
  const int v = robot.base_dof;
  const Eigen::Vector3d v_B =
      R_WB.conjugate() * Eigen::Vector3d(qvel(i, v), qvel(i, v + 1), qvel(i, v + 2));
  const int cycle = static_cast<int>(r.velocity.size());
  r.velocity[r.steps % cycle] = v_B.head<2>();
  if (!SameCommand(state.command, r.command)) {
    r.command = state.command;
    r.since_command = 0;
  }
  ++r.since_command;
  const int settled = static_cast<int>(std::lround(kSettled / robot.control_dt));
  if (state.command.walk > 0.5f && r.since_command > settled) {
    const Eigen::Vector2d wanted(state.command.vx, state.command.vy);
    Eigen::Vector2d mean = Eigen::Vector2d::Zero();
    for (const Eigen::Vector2d& one : r.velocity) mean += one / cycle;
    r.velocity_error2 += (v_B.head<2>() - wanted).squaredNorm();
    r.gait_error2 += (mean - wanted).squaredNorm();
    ++r.judged;
  }
}

}  // namespace

EpisodeReport RunEpisodes(const Policy& policy,
                          const EpisodeOptions& options,
                          const std::function<void(double)>& progress) {
  const int n = options.episodes;
  const RobotModel model = RobotModel::Load(kDefaultRobot);
  CheckFits(policy, model);
  const GainSet gains = GainsOf(model, policy);
  LocoEnv env({.config = options.task,
               .gains = gains,
               .backend = options.backend,
               .num_envs = n,
               .threads = options.threads,
               .seed = options.seed,
               .stagger = false});
  const TaskRobot& robot = env.robot();
  const int steps = static_cast<int>(std::lround(options.task.episode.length / robot.control_dt));
  const int cycle =
      std::max(1, static_cast<int>(std::lround(env.config().gait.period / robot.control_dt)));
  std::vector<Runner> runners;
  runners.reserve(n);
  for (int i = 0; i < n; ++i) {
    runners.push_back({.policy = policy});
    runners.back().velocity.assign(cycle, Eigen::Vector2d::Zero());
  }
  ThreadPool& pool = *env.pool();
  std::vector<Worker> workers = MakeWorkers(policy, gains, options, pool.size());
  const bool same_actions = HasTaskActions(policy, robot);
  std::vector<float> actions(static_cast<std::size_t>(n) * kTaskJoints, 0.0f);
  LocoStep step = env.view();
  JointRows rows;
  for (int t = 0; t < steps; ++t) {
    const bool observe = options.observe_every > 0 && t > 0 && t % options.observe_every == 0;
    pool.ParallelForRanges(n, kChunk, [&](int id, int begin, int end) {
      for (int i = begin; i < end; ++i) {
        float* action = &actions[static_cast<std::size_t>(i) * kTaskJoints];
        const bool acted = Decide(env, i, same_actions, &runners[i], &workers[id], action);
        const ContactMode mode = step.contact_mode[i];
        if (acted && observe && mode != kModeUnknown) {
          Observe(env, i, mode, &runners[i], &workers[id]);
        }
      }
    });
    // no fall: whoever reads of one would look for it in the walk
    for (int i = 0; i < n; ++i) {
      if (runners[i].status == PolicyStatus::kOk) continue;
      throw RunError(fmt::format("robot {} of {}, step {} ({:.2f} s): {}",
                                 i + 1,
                                 n,
                                 t + 1,
                                 t * robot.control_dt,
                                 Describe(runners[i].status)));
    }
    step = env.Step(actions);
    for (int i = 0; i < n; ++i) {
      Runner& r = runners[i];
      if (r.over) continue;
      ++r.steps;
      if (step.flag[i] == kRunning) {
        Judge(env, i, &r, &rows);
      } else {
        // the state is the next episode's already
        r.over = true;
        r.result.fell = step.flag[i] != kTimedOut;
      }
    }
    if (progress) progress((t + 1.0) / steps);
  }

  EpisodeReport report;
  for (Runner& r : runners) {
    const double lived = std::max(1L, r.steps), judged = std::max(1L, r.judged);
    r.result.seconds = static_cast<double>(r.steps) * robot.control_dt;
    r.result.walking = static_cast<double>(r.judged) * robot.control_dt;
    r.result.arm_error2 = r.arm_error2 / lived;
    r.result.velocity_error2 = r.velocity_error2 / judged;
    r.result.gait_error2 = r.gait_error2 / judged;
    r.result.saturation = r.saturated / (lived * kTaskJoints);
    r.result.all = r.all.Measures(robot.control_dt);
    r.result.lower = r.lower.Measures(robot.control_dt);
    r.result.upper = r.upper.Measures(robot.control_dt);
    for (SigmaSample& sample : r.sigma) {
      sample.episode = static_cast<int>(report.episodes.size());
    }
    report.episodes.push_back(r.result);
    report.sigma.insert(report.sigma.end(), r.sigma.begin(), r.sigma.end());
  }
  return report;
}

}  // namespace silc
