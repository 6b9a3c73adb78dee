// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/node.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "silc/deploy/mailbox.h"

namespace silc {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kSecond = 1'000'000'000;  // [ns]
// of SCHED_FIFO: the command thread above what brings its states and carries its commands, those
// above the policy; observing and logging have what is left
constexpr int kCommandPriority = 80, kLinkPriority = 75, kPolicyPriority = 70;
constexpr double kDampAtEnd = 1;  // [s]
constexpr int kAloneAtEnd = 3;    // [1] waits without a robot, in lock step
// For a state, in lock step. A simulation that has lost a command goes on after a second; who gave
// it up at the same moment would stop over a robot that is there.
constexpr std::chrono::milliseconds kLockstepWait{2000};

// Nobody sets this clock, and it goes on while the computer is suspended: after that everything the
// robot and the policy said is old.
constexpr clockid_t kClock = CLOCK_BOOTTIME;

std::int64_t Now() {
  timespec t{};
  clock_gettime(kClock, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

// 0, or why not.
int AskForPriority(std::thread* thread, int priority) {
  sched_param parameter{};
  parameter.sched_priority = priority;
  return pthread_setschedparam(thread->native_handle(), SCHED_FIFO, &parameter);
}

bool IsOver(std::int64_t begin_ns, std::int64_t now_ns, double seconds) {
  return seconds > 0 && 1e-9 * static_cast<double>(now_ns - begin_ns) >= seconds;
}

}  // namespace

void OperatorPanel::SetVelocity(const OperatorVelocity& velocity) {
  vx_.store(velocity.vx, std::memory_order_relaxed);
  vy_.store(velocity.vy, std::memory_order_relaxed);
  yaw_rate_.store(velocity.yaw_rate, std::memory_order_relaxed);
}

OperatorVelocity OperatorPanel::velocity() const {
  return {vx_.load(std::memory_order_relaxed),
          vy_.load(std::memory_order_relaxed),
          yaw_rate_.load(std::memory_order_relaxed)};
}

OperatorRequest OperatorPanel::Take() {
  const std::uint32_t asked = asked_.exchange(0, std::memory_order_relaxed);
  OperatorRequest request;
  request.emergency_stop = (asked & kStop) != 0;
  request.damp = (asked & kDamp) != 0;
  request.stand = (asked & kStand) != 0;
  request.run = (asked & kRun) != 0;
  request.acknowledge = (asked & kAcknowledge) != 0;
  request.console_lost = lost_.load(std::memory_order_relaxed);
  const OperatorVelocity asked_velocity = velocity();
  request.vx = asked_velocity.vx;
  request.vy = asked_velocity.vy;
  request.yaw_rate = asked_velocity.yaw_rate;
  return request;
}

void DeadlineStatistics::Add(double gap, double period, double tick_work) {
  ++ticks;
  late += gap > 2 * period ? 1 : 0;
  worst = std::max(worst, gap - period);
  most_work = std::max(most_work, tick_work);
  const auto bin = static_cast<int>(std::abs(gap - period) / kBin);
  ++histogram[static_cast<std::size_t>(std::clamp(bin, 0, kBins - 1))];
}

double DeadlineStatistics::Jitter(double quantile) const {
  const double wanted = quantile * static_cast<double>(ticks);
  double seen = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    seen += histogram[static_cast<std::size_t>(bin)];
    if (seen >= wanted) return (bin + 1) * kBin;
  }
  return kBins * kBin;
}

// What the command thread shares with the others.
struct Node::Shared {
  // A semaphore: posting neither locks nor allocates. A wait ends by the monotonic clock, which
  // nobody sets: a wall clock that is set back by an hour would make the wait an hour longer.
  class Bell {
   public:
    Bell() { sem_init(&semaphore_, 0, 0); }
    ~Bell() { sem_destroy(&semaphore_); }
    Bell(const Bell&) = delete;
    Bell& operator=(const Bell&) = delete;
    void Ring() { sem_post(&semaphore_); }
    void Wait(std::int64_t ns) {
      timespec end{};
      clock_gettime(CLOCK_MONOTONIC, &end);
      const std::int64_t at = end.tv_nsec + ns;
      end.tv_sec += at / kSecond;
      end.tv_nsec = at % kSecond;
      while (sem_clockwait(&semaphore_, CLOCK_MONOTONIC, &end) != 0 && errno == EINTR) {
      }
      while (sem_trywait(&semaphore_) == 0) {
      }
    }

   private:
    sem_t semaphore_{};
  };

  struct MadeCommand {
    LowCommand command;
    std::int64_t made_ns;
  };
  Mailbox<LowState> states;
  Mailbox<MadeCommand> commands;
  Mailbox<PolicyRequest> requests;
  Mailbox<PolicyAnswer> answers;
  Ring<ObserverTask, 256>
      watched;  // every answered request: the observer's history is the policy's
  Mailbox<StiffnessNote> notes;
  Ring<TickRecord, 2048> records;
  Ring<FaultReport, 256> reports;  // every fault at once, several times over
  struct Answer {
    DriveFault refused, acknowledged;
  };
  Ring<Answer, 16> to_operator;
  std::atomic<bool> robot_present{false};
  std::atomic<int> foreign_writers{0}, failed_sends{0};
  std::atomic<std::int64_t> taken_ns{0};  // when the newest command that the link took was made
  std::atomic<DriveState> state{DriveState::kOff};
  std::atomic<bool> over{false};          // for the threads around the command thread
  std::atomic<bool> not_realtime{false};  // to be told, once
  // what was thrown, among the threads around the command thread
  std::atomic<bool> failed{false};
  std::mutex failure_mutex;
  std::string failure;
  Bell send, ask, watch, log;
};

Node::Node(RobotLink* link, const NodeOptions& options, NodeWork work)
    : link_(link),
      options_(options),
      work_(std::move(work)),
      commander_(options.commander),
      shared_(std::make_unique<Shared>()) {}

Node::~Node() = default;

void Node::Run(const std::atomic<bool>& stop) {
  if (!options_.dry_run) link_->BeginSending();
  if (options_.lockstep) {
    RunLockstep(stop);
  } else {
    RunThreads(stop);
  }
}

void Node::RunThreads(const std::atomic<bool>& stop) {
  Shared& s = *shared_;
  const auto ask_link = [&] {
    const LinkHealth health = link_->Health();
    s.robot_present = health.robot_present;
    s.foreign_writers = health.foreign_writers;
  };
  // the first request of the operator is judged by it
  ask_link();
  std::vector<std::thread> threads;  // receive, send, policy, then those that have time
  // what the link says of itself, often enough for faults that are watched in ticks
  threads.emplace_back([&] {
    std::int64_t asked_ns = 0;
    while (!s.over) {
      if (link_->ReceiveState(&s.states.draft(), 5ms)) s.states.Publish();
      if (Now() - asked_ns < kSecond / 100) continue;
      asked_ns = Now();
      ask_link();
    }
  });
  threads.emplace_back([&] {
    while (!s.over) {
      s.send.Wait(kSecond / 100);
      const Shared::MadeCommand* made = s.commands.Take();
      if (made == nullptr) continue;
      const bool sent = link_->SendCommand(made->command);
      if (sent) s.taken_ns = made->made_ns;
      s.failed_sends = sent ? 0 : s.failed_sends + 1;
    }
  });
  threads.emplace_back([&] {
    bool gap = false;  // what is watched was too much
    while (!s.over) {
      s.ask.Wait(kSecond / 100);
      const PolicyRequest* request = s.requests.Take();
      if (request == nullptr) continue;
      PolicyAnswer& answer = s.answers.draft();
      Answer(*request, &answer);
      answer.answered_ns = Now();
      s.answers.Publish();
      if (!work_.observe) continue;
      if (ObserverTask* task = s.watched.Draft()) {
        task->request = *request;
        task->after_gap = gap;
        gap = false;
        s.watched.Push();
        s.watch.Ring();
      } else {
        gap = true;
      }
    }
  });
  if (work_.observe) {
    threads.emplace_back([&] {
      while (!s.over) {
        s.watch.Wait(kSecond / 100);
        while (const ObserverTask* task = s.watched.Front()) {
          const auto waiting = static_cast<int>(s.watched.size()) - 1;
          if (Observe(*task, waiting, &s.notes.draft())) s.notes.Publish();
          s.watched.Pop();
        }
      }
    });
  }
  threads.emplace_back([&] {
    while (true) {
      const bool last = s.over;
      s.log.Wait(kSecond / 50);
      while (const TickRecord* record = s.records.Front()) {
        Survives([&] {
          if (work_.log) work_.log(*record);
        });
        s.records.Pop();
      }
      while (const FaultReport* report = s.reports.Front()) {
        Survives([&] {
          if (work_.tell) work_.tell(*report);
        });
        s.reports.Pop();
      }
      while (const Shared::Answer* answer = s.to_operator.Front()) {
        Survives([&] { TellAnswer(answer->refused, answer->acknowledged); });
        s.to_operator.Pop();
      }
      Survives([&] {
        if (work_.tell_state && s.state != told_state_) work_.tell_state(told_state_ = s.state);
        if (s.not_realtime.exchange(false) && work_.tell_not_realtime) {
          work_.tell_not_realtime(priority_);
        }
      });
      TellFailure();
      if (last) return;
    }
  });

  std::thread command([&] { CommandLoop(stop); });
  if (options_.realtime) {
    const int refused = AskForPriority(&command, kCommandPriority);
    AskForPriority(&threads[0], kLinkPriority);
    AskForPriority(&threads[1], kLinkPriority);
    AskForPriority(&threads[2], kPolicyPriority);
    const bool locked = mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
    priority_ = refused == 0 ? "SCHED_FIFO " + std::to_string(kCommandPriority)
                             : std::string("ordinary priority (") + std::strerror(refused) + ")";
    priority_ += locked ? ", memory locked" : ", memory not locked";
    s.not_realtime = refused != 0 || !locked;  // the thread that tells reads priority_ after this
  }
  command.join();
  s.over = true;
  for (Shared::Bell* bell : {&s.send, &s.ask, &s.watch, &s.log}) bell->Ring();
  for (std::thread& thread : threads) thread.join();
}

// Runs work that may throw. False: it threw, and the operator is to be told.
template <typename Action>
bool Node::Survives(const Action& action) {
  try {
    action();
    return true;
  } catch (const std::exception& error) {
    KeepFailure(error.what());
  } catch (...) {
    KeepFailure("an error without a name");
  }
  return false;
}

// A policy that is asked again fails in the same way again: that is told once.
void Node::KeepFailure(const char* what) {
  const std::lock_guard<std::mutex> lock(shared_->failure_mutex);
  if (shared_->failure == what) return;
  shared_->failure = what;
  shared_->failed = true;
}

void Node::TellFailure() {
  if (!shared_->failed.exchange(false) || !work_.tell_failed) return;
  std::string what;
  {
    const std::lock_guard<std::mutex> lock(shared_->failure_mutex);
    what = shared_->failure;
  }
  Survives([&] { work_.tell_failed(what); });
}

// What the policy answers, and to which request; a policy that threw has no number to give.
void Node::Answer(const PolicyRequest& request, PolicyAnswer* answer) {
  *answer = PolicyAnswer{};
  if (!Survives([&] { work_.policy(request, answer); })) {
    *answer = PolicyAnswer{.width = kRobotMotors, .finite = false};
  }
  answer->sequence = request.sequence;
  answer->session = request.session;
  answer->asked_ns = request.time_ns;
}

bool Node::Observe(const ObserverTask& task, int waiting, StiffnessNote* note) {
  bool observed = false;
  const bool survived = Survives([&] { observed = work_.observe(task, waiting, note); });
  note->sequence = task.request.sequence;
  note->session = task.request.session;
  return survived && observed;
}

// What the work could not log since the tick before.
int Node::NewlyLost() {
  if (work_.lost_records == nullptr) return 0;
  const std::uint64_t lost = work_.lost_records->load(std::memory_order_relaxed);
  const auto newly = static_cast<int>(lost - lost_before_);
  lost_before_ = lost;
  return newly;
}

void Node::CommandLoop(const std::atomic<bool>& stop) {
  Shared& s = *shared_;
  const double period = options_.commander.tick_period;
  const auto period_ns = static_cast<std::int64_t>(std::llround(1e9 * period));
  std::int64_t next = Now() + period_ns, before = next - period_ns, stopped = 0;
  const std::int64_t begin = before;
  std::int64_t first_made = 0, last_made = 0;  // commands; 0: none
  int dropped_now = 0;
  while (true) {
    timespec until{};
    until.tv_sec = next / kSecond;
    until.tv_nsec = next % kSecond;
    while (clock_nanosleep(kClock, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
    TickInput input;
    input.now_ns = Now();
    input.frame = s.states.Take();
    input.answer = s.answers.Take();
    input.stiffness = s.notes.Take();
    // how old the robot's command is, while it has not got the last one: whether the transport
    // keeps that, or the thread that sends does not run
    const std::int64_t taken_ns = s.taken_ns;
    const std::int64_t behind_ns =
        taken_ns == last_made ? 0 : input.now_ns - std::max(taken_ns, first_made);
    input.link = {
        s.robot_present, s.foreign_writers, s.failed_sends, 1e-9 * static_cast<double>(behind_ns)};
    input.keys = panel_.Take();
    input.log_dropped = dropped_now + NewlyLost();
    // at the end: damping, for a while; one that is off was never driven, and is left alone
    const bool over = stop || IsOver(begin, input.now_ns, options_.seconds);
    if (over && stopped == 0) stopped = input.now_ns;
    if (stopped != 0 && commander_.state() != DriveState::kOff) input.keys.damp = true;

    const TickResult& result = commander_.Tick(input);
    if (!result.follows_keys) panel_.DropVelocity();
    if (result.send && !options_.dry_run) {
      s.commands.Put({result.command, input.now_ns});
      s.send.Ring();
      last_made = input.now_ns;
      if (first_made == 0) first_made = last_made;
    }
    if (result.ask_policy) {
      s.requests.Put(result.request);
      s.ask.Ring();
    }
    for (int i = 0; i < result.num_reports; ++i) {
      if (FaultReport* report = s.reports.Draft()) {
        *report = result.reports[static_cast<std::size_t>(i)];
        s.reports.Push();
      }
    }
    if (result.refused != DriveFault::kNone || result.acknowledged != DriveFault::kNone) {
      if (Shared::Answer* answer = s.to_operator.Draft()) {
        *answer = {result.refused, result.acknowledged};
        s.to_operator.Push();
      }
    }
    s.state = result.state;
    const double gap = 1e-9 * static_cast<double>(input.now_ns - before);
    const double work = 1e-9 * static_cast<double>(Now() - input.now_ns);
    deadlines_.Add(gap, period, work);
    before = input.now_ns;
    dropped_now = 0;
    if (TickRecord* record = s.records.Draft()) {
      record->time_ns = input.now_ns;
      record->gap = gap;
      record->work = work;
      record->state = result.state;
      record->latched = commander_.latched_fault().fault;
      record->sent = result.send && !options_.dry_run;
      record->fresh = input.frame != nullptr;
      // a tick without a state shows the one before, not what this place of the ring held
      record->robot = input.frame != nullptr ? *input.frame : commander_.robot();
      record->command = result.command;
      s.records.Push();
    } else {
      ++dropped_;
      dropped_now = 1;
    }
    if (stopped != 0 && (1e-9 * static_cast<double>(input.now_ns - stopped) > kDampAtEnd ||
                         result.state == DriveState::kOff)) {
      return;
    }
    // a tick that came late is not caught up with: the next one keeps its distance
    next = std::max(next + period_ns, input.now_ns + period_ns / 2);
  }
}

// What became of a request.
void Node::TellAnswer(DriveFault refused, DriveFault acknowledged) const {
  if (refused != DriveFault::kNone && work_.tell_refused) work_.tell_refused(refused);
  if (acknowledged != DriveFault::kNone && work_.tell_acknowledged) {
    work_.tell_acknowledged(acknowledged);
  }
}

void Node::Tell(const TickResult& result) {
  for (int i = 0; i < result.num_reports && work_.tell; ++i) {
    work_.tell(result.reports[static_cast<std::size_t>(i)]);
  }
  TellAnswer(result.refused, result.acknowledged);
  const bool changed = result.state != told_state_;
  told_state_ = result.state;
  if (changed && work_.tell_state) work_.tell_state(result.state);
}

void Node::RunLockstep(const std::atomic<bool>& stop) {
  const auto period_ns =
      static_cast<std::int64_t>(std::llround(1e9 * options_.commander.tick_period));
  LowState state{};
  PolicyAnswer answer;
  StiffnessNote note;
  bool answering = false, noted = false;
  int failed_sends = 0, alone = 0;
  std::int64_t now_ns = 0, begin = 0, before = 0, stopped = 0;
  TickRecord record;
  while (true) {
    // without a robot time goes on all the same, or its loss would never be noticed; at the end one
    // that is gone is not waited for
    const bool waits = stopped == 0 || link_->Health().robot_present;
    const bool fresh = link_->ReceiveState(&state, waits ? kLockstepWait : 20ms);
    now_ns = fresh ? static_cast<std::int64_t>(state.tick) * 1'000'000 : now_ns + 100 * period_ns;
    if (begin == 0) begin = now_ns;
    TickInput input;
    input.link = link_->Health();
    input.link.failed_sends = failed_sends;
    // a simulation that is gone does not come back
    alone = fresh || input.link.robot_present ? 0 : alone + 1;
    const bool over = stop || IsOver(begin, now_ns, options_.seconds) || alone > kAloneAtEnd;
    if (over && stopped == 0) stopped = std::max<std::int64_t>(now_ns, 1);
    input.now_ns = now_ns;
    input.frame = fresh ? &state : nullptr;
    // an answer that says when it came is held back until then
    const bool answered = answering && answer.answered_ns <= now_ns;
    input.answer = answered ? &answer : nullptr;
    answering = answering && !answered;
    input.stiffness = noted ? &note : nullptr;
    input.keys = panel_.Take();
    input.log_dropped = NewlyLost();
    if (stopped != 0 && commander_.state() != DriveState::kOff) input.keys.damp = true;
    const TickResult& result = commander_.Tick(input);
    if (!result.follows_keys) panel_.DropVelocity();
    noted = false;
    if (result.ask_policy && !answering) {
      Answer(result.request, &answer);
      if (answer.answered_ns == 0) answer.answered_ns = answer.asked_ns;
      answering = true;
      noted = work_.observe && Observe({result.request, false}, 0, &note);
    }
    Survives([&] { Tell(result); });
    TellFailure();
    deadlines_.Add(before == 0 ? options_.commander.tick_period : 1e-9 * double(now_ns - before),
                   options_.commander.tick_period,
                   0);
    record = TickRecord{now_ns,
                        1e-9 * double(now_ns - before),
                        0,
                        result.state,
                        commander_.latched_fault().fault,
                        result.send && !options_.dry_run,
                        fresh,
                        state,
                        result.command};
    before = now_ns;
    Survives([&] {
      if (work_.log) work_.log(record);
    });
    // what is sent while off lets the robot go on and moves nothing: its motors are disabled
    LowCommand command = result.command;
    if (!result.send) {
      for (MotorCommand& motor : command.motor) motor = MotorCommand{};
      command.crc = FrameCrc(command);
    }
    if (!options_.dry_run) failed_sends = link_->SendCommand(command) ? 0 : failed_sends + 1;
    if (stopped != 0 &&
        (1e-9 * double(now_ns - stopped) > kDampAtEnd || result.state == DriveState::kOff)) {
      return;
    }
  }
}

}  // namespace silc
