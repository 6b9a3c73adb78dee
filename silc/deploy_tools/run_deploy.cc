// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy_tools/run_deploy.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "silc/base/error.h"
#include "silc/deploy/mailbox.h"
#include "silc/deploy_tools/deploy_log.h"
#include "silc/deploy_tools/preflight.h"
#include "silc/deploy_tools/safety_config.h"
#include "silc/deploy_tools/workers.h"

namespace silc {
namespace {

using namespace std::chrono_literals;

constexpr double kForeseenStanding = 120;      // [s] a second or so of computing
constexpr std::chrono::seconds kListening{1};  // for other writers
constexpr int kMostWaiting = 5;  // [control step] further behind the observer only follows

void Refuse(const std::string& what, const std::vector<std::string>& reasons) {
  if (reasons.empty()) return;
  std::string text = what;
  for (const std::string& reason : reasons) text += "\n  - " + reason;
  throw RunError(text);
}

// Throws ConfigError where the robot is to be stopped or softened by what an observer says.
void NeedNoObserver(const RobotSpec& spec, const FaultRules& rules) {
  for (const DriveFault fault :
       {DriveFault::kStiffness, DriveFault::kActionLoop, DriveFault::kObserverAge}) {
    if (rules[static_cast<std::size_t>(fault)].reaction == Reaction::kWarn) continue;
    throw ConfigError(fmt::format(
        "--no-observe: {}: safety.faults.{} does more than warn, which needs what is observed",
        spec.file,
        KindOf(fault).name));
  }
}

// Who writes commands is found a moment after who listens, and a second writer stops the first.
void ListenForOthers(RobotLink* link, const std::atomic<bool>& stop) {
  const auto end = std::chrono::steady_clock::now() + kListening;
  while (!stop && std::chrono::steady_clock::now() < end) {
    if (link->Health().foreign_writers > 0) return;
    std::this_thread::sleep_for(20ms);
  }
}

// The robot's machine mode, as its first good state has it.
int AwaitRobot(const RobotSpec& spec,
               RobotLink* link,
               const DeployOptions& options,
               const std::atomic<bool>& stop) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.wait_s);
  LowState state;
  int corrupt = 0;
  while (std::chrono::steady_clock::now() < end) {
    if (stop) throw RunError("ended before a robot answered");
    if (!link->ReceiveState(&state, 100ms)) continue;
    if (options.check_crc && state.crc != FrameCrc(state)) {
      ++corrupt;
      continue;
    }
    ListenForOthers(link, stop);
    Refuse("the robot is not driven:",
           CheckRobot(spec, state, link->Health(), options.check_machine_mode));
    return state.mode_machine;
  }
  throw RunError(fmt::format(
      "no robot answered within {:g} s ({} states with a wrong CRC): are network and domain right?",
      options.wait_s,
      corrupt));
}

// What the policy and the observer thread have for the log, on its way to the logger thread, which
// alone writes: neither of the two waits for a disk, locks or allocates. A disk that is full ends
// the log and not the control.
class LogQueue {
 public:
  /// "" for no log. Throws as DeployLog does.
  LogQueue(const std::string& folder, const SayLine& say) : say_(say) {
    if (!folder.empty()) log_.emplace(folder);
  }

  void PutStep(const PolicyStep& step) { Put(step, &steps_); }            ///< the policy thread's
  void PutMoment(const DeployMoment& moment) { Put(moment, &moments_); }  ///< the observer's

  /// The logger thread's: a tick, and what has come in.
  void Write(const TickRecord& record) {
    Drain();
    Try([&] { log_->Add(record); });
  }
  /// When all threads have ended. "": the log is whole.
  std::string Finish() {
    Drain();
    Try([&] { log_->Finish(); });
    return error_;
  }
  /// Steps and moments that found no place, so far.
  const std::atomic<std::uint64_t>& dropped() const { return dropped_; }

 private:
  template <typename T>
  using Queue = Ring<T, 256>;

  template <typename T>
  void Put(const T& value, std::unique_ptr<Queue<T>>* queue) {
    if (!log_) return;
    if (T* place = (*queue)->Draft()) {
      *place = value;
      (*queue)->Push();
    } else {
      ++dropped_;
    }
  }
  void Drain() {
    const auto take_steps = [&] {
      for (; const PolicyStep* step = steps_->Front(); steps_->Pop()) {
        Try([&] { log_->Add(*step); });
      }
    };
    // a step comes before what was observed of it
    for (; const DeployMoment* moment = moments_->Front(); moments_->Pop()) {
      take_steps();
      Try([&] { log_->Add(*moment); });
    }
    take_steps();
  }
  template <typename Action>
  void Try(const Action& action) {
    if (!log_ || !error_.empty()) return;
    try {
      action();
    } catch (const std::exception& error) {
      error_ = error.what();
      say_("the log has ended: " + error_);
    }
  }

  const SayLine& say_;
  std::optional<DeployLog> log_;
  std::string error_;
  std::atomic<std::uint64_t> dropped_{0};
  std::unique_ptr<Queue<PolicyStep>> steps_ = std::make_unique<Queue<PolicyStep>>();
  std::unique_ptr<Queue<DeployMoment>> moments_ = std::make_unique<Queue<DeployMoment>>();
};

}  // namespace

std::string FaultText(const FaultReport& report, const RobotSpec& spec) {
  const FaultKind& kind = KindOf(report.fault);
  const std::string unit = kind.unit.empty() ? "" : " " + std::string(kind.unit);
  std::string where;
  if (report.joint >= 0) where = " (" + spec.joints[static_cast<std::size_t>(report.joint)] + ")";
  return fmt::format("{}: {:.4g}{} {}{}, above {:.4g}{}",
                     kind.name,
                     report.value,
                     unit,
                     kind.meaning,
                     where,
                     report.limit,
                     unit);
}

DeploySummary RunDeploy(const RobotModel& robot,
                        const Policy& policy,
                        const Servo& servo,
                        RobotLink* link,
                        const DeployOptions& options,
                        const std::function<void(OperatorPanel*)>& on_start,
                        const SayLine& say,
                        const std::atomic<bool>& stop) {
  // a folder that cannot be used is said before anything is computed or sent
  LogQueue log(options.log, say);
  NodeOptions node_options;
  node_options.commander = MakeCommanderConfig(robot, policy, servo);
  node_options.commander.check_crc = options.check_crc;
  node_options.commander.check_tick = options.check_tick;
  node_options.commander.observed = options.observe;
  if (!options.observe) NeedNoObserver(robot.spec(), node_options.commander.rules);
  node_options.dry_run = options.dry_run;
  node_options.lockstep = options.lockstep;
  node_options.realtime = options.realtime;
  node_options.seconds = options.seconds;
  Refuse("the policy is not put on the robot:",
         CheckPolicy(robot, policy, servo, options.height, options.preflight_seconds, &stop));
  // slow ends are told, not refused: a robot that walks, or is put down in time, never meets them
  if (options.preflight_seconds > 0) {
    const std::string fall =
        FindStandingFall(robot, policy, servo, options.height, kForeseenStanding, &stop);
    if (!fall.empty()) say("warning: standing still in simulation, " + fall);
  }
  // what comes after it is another variant if it differs, and not the one that was looked at
  node_options.commander.machine_mode = AwaitRobot(robot.spec(), link, options, stop);

  DeploySummary summary;
  PolicyWorker worker(robot, policy, options.height);
  StiffnessWorker observer(robot, policy, servo, options.budget, options.height);
  std::int64_t begin_ns = 0;
  NodeWork work;
  work.policy = [&](const PolicyRequest& request, PolicyAnswer* answer) {
    worker.Answer(request, answer);
    log.PutStep(worker.step());
  };
  if (options.observe) {
    work.observe = [&](const ObserverTask& task, int waiting, StiffnessNote* note) {
      const DeployMoment& moment =
          observer.Observe(task.request, task.after_gap, waiting > kMostWaiting);
      log.PutMoment(moment);
      if (!moment.observed) return false;
      *note = NoteOf(moment);
      ++summary.moments;
      if (moment.judged) summary.worst_sigma = std::max(summary.worst_sigma, moment.sigma);
      summary.slowest_observation = std::max(summary.slowest_observation, moment.observe_s);
      return true;
    };
  }
  work.log = [&](const TickRecord& record) {
    if (begin_ns == 0) begin_ns = record.time_ns;
    log.Write(record);
  };
  const auto seconds = [&](std::int64_t time_ns) {
    return begin_ns == 0 ? 0 : 1e-9 * static_cast<double>(time_ns - begin_ns);
  };
  work.tell = [&](const FaultReport& report) {
    const bool stops = report.reaction == Reaction::kStop;
    ++(stops ? summary.stops : summary.warnings);
    say(fmt::format("{} at {:.3f} s: {}",
                    stops ? "STOP" : "warning",
                    seconds(report.time_ns),
                    FaultText(report, robot.spec())));
  };
  work.tell_refused = [&](DriveFault fault) {
    say(fmt::format("refused, because of {}", KindOf(fault).name));
  };
  work.tell_acknowledged = [&](DriveFault fault) {
    say(fmt::format("acknowledged: {}", KindOf(fault).name));
  };
  work.tell_state = [&](DriveState state) { say(fmt::format("now: {}", Name(state))); };
  work.tell_failed = [&](const std::string& what) { say("a part of the program failed: " + what); };
  work.tell_not_realtime = [&](const std::string& priority) {
    say("warning: " + priority + ": commands may be late on a busy computer");
  };

  work.lost_records = &log.dropped();

  Node node(link, node_options, std::move(work));
  on_start(&node.panel());
  node.Run(stop);
  summary.log_error = log.Finish();
  summary.deadlines = node.deadlines();
  summary.limits = node.commander().limit_counts();
  summary.latched = node.commander().latched_fault();
  summary.dropped_records = node.dropped_records() + log.dropped();
  summary.priority = node.priority();
  return summary;
}

}  // namespace silc
