// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "silc/base/error.h"
#include "silc/base/limits.h"
#include "silc/npz/npz.h"
#include "silc/observe/leg_contacts.h"
#include "silc/robot/kinematics.h"

namespace silc {
namespace {

// 0.2 Hz to just under the policy's Nyquist frequency, evenly on a logarithmic axis
std::vector<double> SweepGrid(double period) {
  constexpr int kPoints = 60;
  const double low = 0.2, high = 0.98 * 0.5 / period;
  std::vector<double> hz;
  for (int i = 0; i < kPoints; ++i) hz.push_back(low * std::pow(high / low, i / (kPoints - 1.0)));
  return hz;
}

ObservationRun Begin(ClosedLoop* loop, const ObservationOptions& options, std::string source) {
  ObservationRun run;
  run.robot = loop->robot().spec().name;
  run.joints = loop->robot().spec().joints;
  run.source = std::move(source);
  run.budget = options.budget;
  run.servo = loop->options().servo;
  run.timing = {loop->period(), loop->options().latency};
  const RobotModel& robot = loop->robot();
  run.joint_damping.resize(robot.num_joints());
  run.friction_loss.resize(robot.num_joints());
  for (int i = 0; i < robot.num_joints(); ++i) {
    run.joint_damping[i] = robot.model()->dof_damping[robot.dof_address()[i]];
    run.friction_loss[i] = robot.model()->dof_frictionloss[robot.dof_address()[i]];
  }
  return run;
}

// The sweep of the moment in the middle of the run, by σ where there is one: a moment that
// happened, so its matrices belong together, which an average's would not.
class MedianSweep {
 public:
  // Moments come one by one. One in `every_` gets a whole sweep: 60 complex solves and 0.8 MB each,
  // and the median needs no more. Where a run goes on for long, every other one is given up.
  void Consider(const Moment& moment,
                const MomentObserver& observer,
                const std::vector<double>& grid) {
    if (count_++ % every_ != 0) return;
    sweeps_.emplace_back(moment.reading.quasi_static.sigma, observer.Sweep(grid));
    if (sweeps_.size() <= kMaxSweeps) return;
    for (std::size_t i = 0; 2 * i < sweeps_.size(); ++i) std::swap(sweeps_[i], sweeps_[2 * i]);
    sweeps_.resize((sweeps_.size() + 1) / 2);
    every_ *= 2;
  }
  FrequencySweep Take() {
    if (sweeps_.empty()) return {};
    const auto key = [](double sigma) { return std::isfinite(sigma) ? sigma : HUGE_VAL; };
    const auto middle = sweeps_.begin() + static_cast<std::ptrdiff_t>((sweeps_.size() - 1) / 2);
    std::nth_element(sweeps_.begin(), middle, sweeps_.end(), [&](const auto& a, const auto& b) {
      return key(a.first) < key(b.first);
    });
    return std::move(middle->second);
  }

 private:
  static constexpr std::size_t kMaxSweeps = 40;
  int count_ = 0, every_ = 25;
  std::vector<std::pair<double, FrequencySweep>> sweeps_;
};

bool Wanted(const ObservationOptions& options) { return !options.wanted || options.wanted(); }

// Hands a moment on and keeps it, with its matrices while the run has few.
void Keep(Moment moment, const ObservationOptions& options, ObservationRun* run) {
  if (options.on_moment) options.on_moment(moment);
  if (static_cast<int>(run->moments.size()) >= options.whole_moments) moment.DropMatrices();
  run->moments.push_back(std::move(moment));
}

// States as they were recorded, one row per control period. What only a log of a robot holds is
// empty elsewhere; its mode is NaN where nobody observed.
struct RecordedStates {
  int rows = 0;
  std::vector<double> qpos, qvel;             // rows × nq, nv
  std::vector<double> tau, gravity, command;  // rows × joints, 3, 5
  std::vector<double> mode, session;          // rows
};

void Append(std::vector<double>* to, const std::vector<double>& values) {
  to->insert(to->end(), values.begin(), values.end());
}

void AppendStates(const std::string& path, const RobotModel& robot, bool log, RecordedStates* out) {
  const mjModel* model = robot.model();
  const NpzFile file = ReadNpz(path);
  if (log && !file.Has("qpos")) return;  // a second without the policy
  const std::vector<double> qpos = file["qpos"].AsDoubles({kAnySize, model->nq});
  const auto rows = static_cast<std::int64_t>(qpos.size()) / model->nq;
  if (out->rows + rows > kMaxStates) {
    throw ConfigError(fmt::format(
        "{}: with it there are more than {} states; give a part of them", path, kMaxStates));
  }
  const std::vector<double> qvel = file["qvel"].AsDoubles({kAnySize, model->nv});
  if (static_cast<std::int64_t>(qvel.size()) != rows * model->nv) {
    throw ConfigError(fmt::format("{}: qpos has {} rows and qvel {}: they must be the same states",
                                  path,
                                  rows,
                                  qvel.size() / model->nv));
  }
  out->rows += static_cast<int>(rows);
  Append(&out->qpos, qpos);
  Append(&out->qvel, qvel);
  if (!log) return;
  Append(&out->tau, file["tau"].AsDoubles({rows, robot.num_joints()}));
  Append(&out->gravity, file["gravity_B"].AsDoubles({rows, 3}));
  Append(&out->command, file["command"].AsDoubles({rows, 5}));
  Append(&out->mode, file["contact_mode"].AsDoubles({rows}, NpyArray::Finite::kNotRequired));
  Append(&out->session, file["session"].AsDoubles({rows}));
}

RecordedStates ReadStates(const std::string& path, const RobotModel& robot) {
  RecordedStates states;
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    AppendStates(path, robot, false, &states);
    return states;
  }
  std::vector<std::string> chunks;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("chunk_") && name.ends_with(".npz"))
      chunks.push_back(entry.path().string());
  }
  std::sort(chunks.begin(), chunks.end());
  if (chunks.empty()) throw ConfigError(path + ": is no log: it holds no chunk_*.npz");
  for (const std::string& chunk : chunks) AppendStates(chunk, robot, true, &states);
  return states;
}

// What the policy saw at a row of a log.
ObservationInput InputOf(const RecordedStates& states, int row, const RobotModel& robot) {
  const auto at = [&](const std::vector<double>& values, int width) {
    return Eigen::Map<const Eigen::VectorXd>(&values[static_cast<std::size_t>(row) * width], width);
  };
  const mjModel* model = robot.model();
  const Eigen::VectorXd qpos = at(states.qpos, model->nq), qvel = at(states.qvel, model->nv);
  ObservationInput input;
  input.q.resize(robot.num_joints());
  input.qd.resize(robot.num_joints());
  for (int j = 0; j < robot.num_joints(); ++j) {
    input.q[j] = qpos[robot.qpos_address()[static_cast<std::size_t>(j)]];
    input.qd[j] = qvel[robot.dof_address()[static_cast<std::size_t>(j)]];
  }
  input.tau = at(states.tau, robot.num_joints());
  input.w_WB_B = qvel.segment<3>(robot.base_dof_address() + 3);
  input.g_B = at(states.gravity, 3);
  const Eigen::VectorXd command = at(states.command, 5);
  input.command.lin_vel = command.head<2>();
  input.command.yaw_rate = command[2];
  input.command.height = command[3];
  input.command.walk = command[4];
  return input;
}

// [1] a base's quaternion may be this far from unit length and still be a rotation that was rounded
constexpr double kUnitTolerance = 1e-3;
constexpr double kGravityTolerance = 0.01;  // [1] the same of a direction of gravity

// Throws ConfigError, with the row and what is meant, for numbers that no robot can have measured:
// what would be computed of them would look like an answer.
void CheckStates(const RecordedStates& states, const std::string& path, const RobotModel& robot) {
  const mjModel* model = robot.model();
  const auto at = [](const std::vector<double>& values, int row, int width) {
    return values.data() + static_cast<std::size_t>(row) * static_cast<std::size_t>(width);
  };
  const auto within = [&](const double* values,
                          int count,
                          double limit,
                          const char* array,
                          int row,
                          const std::string& what) {
    for (int i = 0; i < count; ++i) {
      if (std::abs(values[i]) <= limit) continue;
      throw ConfigError(fmt::format(
          "{}: {}[{}]: {}, {:g}, is outside ±{:g}", path, array, row, what, values[i], limit));
    }
  };
  const bool log = !states.mode.empty();
  for (int i = 0; i < states.rows; ++i) {
    const double* qpos = at(states.qpos, i, model->nq);
    const double* base = qpos + robot.base_qpos_address();
    within(base, 3, kMaxBasePosition, "qpos", i, "the base's position [m]");
    const double length = std::hypot(std::hypot(base[3], base[4]), std::hypot(base[5], base[6]));
    if (!(std::abs(length - 1) <= kUnitTolerance)) {
      throw ConfigError(fmt::format(
          "{}: qpos[{}]: the base's quaternion ({:g}, {:g}, {:g}, {:g}) has length {:g}; "
          "an orientation has length 1",
          path,
          i,
          base[3],
          base[4],
          base[5],
          base[6],
          length));
    }
    for (int j = 0; j < robot.num_joints(); ++j) {
      const auto joint = static_cast<std::size_t>(j);
      within(qpos + robot.qpos_address()[joint],
             1,
             kMaxAngle,
             "qpos",
             i,
             robot.spec().joints[joint] + " [rad]");
    }
    within(at(states.qvel, i, model->nv), model->nv, kMaxSpeed, "qvel", i, "a velocity");
    if (!log) continue;
    within(at(states.tau, i, robot.num_joints()),
           robot.num_joints(),
           kMaxEffort,
           "tau",
           i,
           "a torque [N·m]");
    within(at(states.command, i, 5), 5, kMaxCommand, "command", i, "a number of the command");
    const double* g = at(states.gravity, i, 3);
    const double size = std::hypot(g[0], g[1], g[2]);
    if (!(std::abs(size - 1) <= kGravityTolerance)) {
      throw ConfigError(
          fmt::format("{}: gravity_B[{}]: ({:g}, {:g}, {:g}) has length {:g}; a direction has "
                      "length 1",
                      path,
                      i,
                      g[0],
                      g[1],
                      g[2],
                      size));
    }
    const double mode = states.mode[static_cast<std::size_t>(i)];
    if (std::isnan(mode)) continue;  // nobody observed
    if (!(mode == 0 || mode == 1 || mode == 2 || mode == 3)) {
      throw ConfigError(fmt::format(
          "{}: contact_mode[{}]: {:g} is no contact mode; they are 0, 1, 2 and 3", path, i, mode));
    }
  }
}

}  // namespace

ObservationRun ObservePose(ClosedLoop loop, const ObservationOptions& options) {
  ObservationRun run = Begin(&loop, options, "standing pose");
  run.end = loop.SettlePolicy();
  if (run.end != LoopStatus::kRunning) return run;
  MomentObserver observer(loop.robot(), run.servo, run.timing, options);
  Moment moment =
      observer.Observe(&loop.policy(), loop.data(), ContactMode::kDoubleSupport, loop.time());
  moment.tau = loop.tau();
  run.sweep = observer.Sweep(SweepGrid(run.timing.period));
  Keep(std::move(moment), options, &run);
  return run;
}

ObservationRun ObserveRollout(ClosedLoop loop,
                              double seconds,
                              double settle,
                              const ObservationOptions& options,
                              const Progress& progress) {
  const PolicyCommand& command = loop.options().command;
  ObservationRun run = Begin(&loop,
                             options,
                             fmt::format("rollout of {:g} s, command {:g} {:g} m/s, {:g} rad/s",
                                         seconds,
                                         command.lin_vel.x(),
                                         command.lin_vel.y(),
                                         command.yaw_rate));
  MomentObserver observer(loop.robot(), run.servo, run.timing, options);
  ContactModeTracker tracker = MakeContactTracker(loop.robot());
  MedianSweep median;
  const std::vector<double> grid = SweepGrid(run.timing.period);

  const int steps = static_cast<int>(std::lround((settle + seconds) / loop.period()));
  for (int step = 0; step < steps; ++step) {
    loop.TrackContacts(&tracker);
    run.end = loop.Decide();
    if (run.end != LoopStatus::kRunning) break;
    if (loop.time() >= settle - 1e-9 && Wanted(options)) {
      Moment moment = observer.Observe(&loop.policy(), loop.data(), tracker.mode(), loop.time());
      moment.saturation = loop.saturation();
      moment.tau = loop.tau();
      median.Consider(moment, observer, grid);
      Keep(std::move(moment), options, &run);
    }
    run.end = loop.Advance();
    if (run.end != LoopStatus::kRunning) break;
    if (progress) progress((step + 1.0) / steps);
  }
  run.end_time = loop.time();
  run.sweep = median.Take();
  return run;
}

std::vector<Eigen::VectorXd> RecordedPoses(const std::string& npz_path,
                                           const RobotModel& robot,
                                           int most) {
  const RecordedStates states = ReadStates(npz_path, robot);
  if (!states.mode.empty()) {
    throw ConfigError(npz_path + ": is a robot's log, which does not know where the floor was");
  }
  if (states.rows == 0) throw ConfigError(npz_path + ": holds no states");
  CheckStates(states, npz_path, robot);
  const int nq = robot.model()->nq, count = std::min(most, states.rows);
  std::vector<Eigen::VectorXd> poses;
  for (int i = 0; i < count; ++i) {
    const auto row = static_cast<std::size_t>(static_cast<long long>(i) * states.rows / count);
    poses.emplace_back(
        Eigen::Map<const Eigen::VectorXd>(&states.qpos[row * static_cast<std::size_t>(nq)], nq));
  }
  return poses;
}

LoopStatus ReplayStates(ClosedLoop* loop,
                        const std::string& path,
                        const std::function<void(const RecordedMoment&)>& visit) {
  const mjModel* model = loop->robot().model();
  const RecordedStates states = ReadStates(path, loop->robot());
  const std::vector<double>&qpos = states.qpos, &qvel = states.qvel;
  const int rows = states.rows;
  const bool log = !states.mode.empty();
  if (rows == 0) throw ConfigError(path + ": holds no states");
  CheckStates(states, path, loop->robot());
  ContactModeTracker tracker = MakeContactTracker(loop->robot());
  LegContacts legs(loop->robot());
  BodyJacobians body;
  const auto row = [](const std::vector<double>& values, int index, int width) {
    return std::span<const double>(values).subspan(static_cast<std::size_t>(index) * width, width);
  };
  for (int i = 0; i < rows; ++i) {
    loop->SetState(row(qpos, i, model->nq), row(qvel, i, model->nv));
    loop->TrackContacts(&tracker);
    ContactMode mode = tracker.mode();
    if (log) {
      const auto k = static_cast<std::size_t>(i);
      const ObservationInput input = InputOf(states, i, loop->robot());
      // the policy was entered anew
      if (i > 0 && states.session[k] != states.session[k - 1]) {
        loop->policy().Reset();
        legs.Reset();
      }
      // contacts as they were seen on the robot, or as they would have been
      ComputeBodyJacobians(loop->robot(), loop->data(), &body);
      mode = legs.Update(loop->data(), body, input.tau, loop->period());
      if (!std::isnan(states.mode[k])) mode = static_cast<ContactMode>(states.mode[k]);
      loop->ShowPolicy(input);
    }
    const LoopStatus status = loop->Decide();
    if (status != LoopStatus::kRunning) return status;
    visit({i, rows, i * loop->period(), mode, log});
    loop->HoldTarget();
  }
  return LoopStatus::kRunning;
}

ObservationRun ObserveStates(ClosedLoop loop,
                             const std::string& npz_path,
                             const ObservationOptions& options,
                             const Progress& progress) {
  ObservationRun run = Begin(&loop, options, "states from " + npz_path);
  MomentObserver observer(loop.robot(), run.servo, run.timing, options);
  MedianSweep median;
  const std::vector<double> grid = SweepGrid(run.timing.period);
  run.end = ReplayStates(&loop, npz_path, [&](const RecordedMoment& recorded) {
    run.source = fmt::format("{} states from {}", recorded.count, npz_path);
    run.end_time = (recorded.index + 1) * loop.period();
    if (!Wanted(options)) return;
    Moment moment = observer.Observe(&loop.policy(), loop.data(), recorded.mode, recorded.time);
    moment.tau = loop.tau();
    median.Consider(moment, observer, grid);
    Keep(std::move(moment), options, &run);
    if (progress) progress((recorded.index + 1.0) / recorded.count);
  });
  run.sweep = median.Take();
  return run;
}

}  // namespace silc
