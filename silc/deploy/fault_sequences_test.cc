// SPDX-License-Identifier: Apache-2.0
// A thousand random sequences of faults: rows of the fault table in docs/deploy.md, one after the
// other and on top of each other, with an operator who presses everything in between. A judge that
// shares no code with the commander looks at every command.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "silc/deploy/test_fault_rows.h"

namespace silc::test {
namespace {

std::size_t U(int i) { return static_cast<std::size_t>(i); }

// CRC-32, most significant bit first, by a table of this file's own.
std::uint32_t PlainCrc(const LowCommand& command) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> remainders{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t r = byte << 24;
      for (int bit = 0; bit < 8; ++bit) r = (r << 1) ^ ((r >> 31) != 0 ? 0x04c11db7U : 0U);
      remainders[byte] = r;
    }
    return remainders;
  }();
  std::array<std::uint32_t, sizeof(LowCommand) / 4> words{};
  std::memcpy(words.data(), &command, sizeof command);
  std::uint32_t crc = 0xffffffffU;
  for (std::size_t w = 0; w + 1 < words.size(); ++w) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      crc = (crc << 8) ^ table[(crc >> 24) ^ ((words[w] >> shift) & 0xffU)];
    }
  }
  return crc;
}

// What went into a tick, as the test knows it.
struct TickSeen {
  std::int64_t now_ns = 0;
  bool fresh = false;       // a state with a right CRC came in
  LowState state{};         // the last such state
  OperatorRequest keys;     // of the keyboard
  int foreign_writers = 0;  // who else sends
};

// Holds commands against "Rules of a command" and "States" in docs/deploy.md.
class CommandJudge {
 public:
  explicit CommandJudge(const CommanderConfig& config) : config_(config) {}

  /// "" or why the tick's answer is unsafe.
  std::string Judge(const TickSeen& seen, const TickResult& result) {
    const double dt = 1e-9 * static_cast<double>(seen.now_ns - last_ns_);
    last_ns_ = seen.now_ns;
    Listen(seen);
    if (asked_to_stop_ && !result.latched) return "a stop did not latch";
    if (asked_to_stop_) on_ = true;  // and answered once there is somebody to be sent to
    if (!spoke_) return result.send ? "sent before the robot spoke" : "";
    const bool begins = asked_to_damp_ && !on_;
    if (begins && seen.foreign_writers > 0 && result.send) return "began beside another writer";
    // refused, with the reason, or followed
    if (begins && result.refused == DriveFault::kNone) on_ = true;
    if (result.send != on_) return on_ ? "fell silent" : "sent while off";
    if (!on_) return "";

    std::string frame = WrongFrame(result.command);
    if (!frame.empty()) return frame;
    const bool damps = IsDamping(result.command, config_);
    std::string latch = WrongLatch(damps, result);
    if (!latch.empty()) return latch;
    if (damps) {
      targets_.reset();
      return "";
    }
    const double age = 1e-9 * static_cast<double>(seen.now_ns - heard_ns_);
    if (age > config_.rules[U(static_cast<int>(DriveFault::kStateAge))].limit) {
      return "moves by a state that is too old";
    }
    return WrongServo(seen.state, dt, result.command);
  }

  // how often a rule had something to say [joints × ticks]
  long servo = 0, known_target = 0, at_speed_limit = 0, at_torque_limit = 0, at_range = 0,
       range_over_torque = 0;

 private:
  // Where a joint's target may be before torque and range shape it: all that commands tell of it.
  struct Interval {
    double lo, hi;
  };

  // States, requests of the remote and of the keyboard.
  void Listen(const TickSeen& seen) {
    std::uint16_t pressed = 0, held = 0;
    if (seen.fresh) {
      if (!spoke_) machine_mode_ = seen.state.mode_machine;
      // one that was sent before says nothing of the robot as it is now
      if (!spoke_ || seen.state.tick - counter_ - 1U < 0x7fff'ffffU) heard_ns_ = seen.now_ns;
      counter_ = seen.state.tick;
      spoke_ = true;
      bool sticks = true;
      for (const int at : {4, 8, 12, 20}) {
        float stick = 0;
        std::memcpy(&stick, seen.state.remote + at, sizeof stick);
        sticks = sticks && std::abs(stick) <= 1.05F;
      }
      if (sticks) {
        std::memcpy(&held, seen.state.remote + 2, sizeof held);
        pressed = static_cast<std::uint16_t>(held & ~buttons_);
        buttons_ = held;
      }
    }
    const auto bit = [](std::uint16_t of, RemoteButton button) {
      return ((of >> static_cast<int>(button)) & 1) != 0;
    };
    asked_to_stop_ = seen.keys.emergency_stop || bit(held, RemoteButton::kSelect) ||
                     (bit(held, RemoteButton::kL2) && bit(held, RemoteButton::kB));
    asked_to_damp_ = seen.keys.damp || bit(pressed, RemoteButton::kB);
    let_go_ = seen.keys.acknowledge || bit(pressed, RemoteButton::kX);
  }

  std::string WrongFrame(const LowCommand& command) const {
    if (command.mode_pr != 0) return "mode_pr";
    if (command.mode_machine != machine_mode_) return "machine mode";
    if (command.crc != PlainCrc(command)) return "CRC";
    for (int j = 0; j < kFrameMotors; ++j) {
      const MotorCommand& m = command.motor[j];
      const std::string where = " of motor " + std::to_string(j);
      for (const float x : {m.q, m.dq, m.tau, m.kp, m.kd}) {
        if (!std::isfinite(x)) return "not finite" + where;
      }
      if (m.dq != 0 || m.tau != 0) return "feed-forward" + where;
      if (m.mode != (j < kRobotMotors ? 1 : 0)) return "mode" + where;
      if (j >= kRobotMotors && (m.q != 0 || m.kp != 0 || m.kd != 0)) return "not a joint" + where;
    }
    return "";
  }

  // Nothing but damping from a fault that stops until the operator lets go, and in that tick.
  std::string WrongLatch(bool damps, const TickResult& result) {
    const bool was = latched_;
    bool stops = false;
    for (int i = 0; i < result.num_reports; ++i) {
      stops |= result.reports[U(i)].reaction == Reaction::kStop;
    }
    if (stops && !result.latched) return "a fault that stops did not latch";
    if (was && !result.latched && !let_go_) return "the latch was let go by nobody";
    latched_ = result.latched;
    if ((was || latched_) && !damps) return "not damping after a stop";
    return "";
  }

  std::string WrongServo(const LowState& state, double dt, const LowCommand& command) {
    const bool entered = !targets_.has_value();
    if (entered) targets_.emplace();
    for (int j = 0; j < kRobotMotors; ++j) {
      const std::string wrong = WrongJoint(j, state.motor[j], dt, entered, command.motor[j]);
      if (!wrong.empty()) return wrong + " of motor " + std::to_string(j);
    }
    return "";
  }

  std::string WrongJoint(
      int j, const MotorReading& motor, double dt, bool entered, const MotorCommand& m) {
    const auto i = U(j);
    const double q = motor.q, qd = motor.dq, s = m.q;
    if (!std::isfinite(q) || !std::isfinite(qd)) return "servo on a state that is no number";
    constexpr double kRounding = 1e-6;  // commands are floats
    const double kp_lo = config_.softest * std::min(config_.kp[i], config_.stand_kp[i]),
                 kp_hi = std::max(config_.kp[i], config_.stand_kp[i]),
                 kd_lo = std::min(config_.kd[i], config_.stand_kd[i]),
                 kd_hi = std::max(config_.kd[i], config_.stand_kd[i]);
    if (m.kp < kp_lo * (1 - kRounding) || m.kp > kp_hi * (1 + kRounding)) return "kp";
    if (m.kd < kd_lo * (1 - kRounding) || m.kd > kd_hi * (1 + kRounding)) return "kd";
    const double q_min = config_.q_min[i], q_max = config_.q_max[i];
    if (s < q_min - kRounding || s > q_max + kRounding) return "target beyond the range";

    // targets with a torque within the effort limit
    const double middle = q + m.kd * qd / m.kp, reach = config_.effort_limit[i] / m.kp;
    const double lowest = middle - reach, highest = middle + reach;
    const double eps = 1e-5 * (1 + std::abs(middle) + reach);
    ++servo;
    if (lowest > q_max || highest < q_min) {
      // none is within the range, which wins: the one that asks least
      ++range_over_torque;
      if (std::abs(s - (lowest > q_max ? q_max : q_min)) > eps) return "torque, out of range";
    } else if (s < lowest - eps || s > highest + eps) {
      return "torque";
    }

    // Rule 1, from what commands tell. The target before the rules was `s`, unless a rule shaped
    // it: then it lies beyond.
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Interval told{s, s};
    const double floor = std::max(q_min, std::min(lowest, q_max)),
                 ceiling = std::min(q_max, std::max(highest, q_min));
    if (s <= floor + eps) told.lo = -kInfinity;
    if (s >= ceiling - eps) told.hi = kInfinity;
    at_torque_limit += std::abs(s - lowest) <= eps || std::abs(s - highest) <= eps ? 1 : 0;
    at_range += std::abs(s - q_min) <= eps || std::abs(s - q_max) <= eps ? 1 : 0;

    const double step = config_.velocity_limit[i] * std::min(dt, config_.tick_period);
    Interval& target = (*targets_)[i];
    if (entered) target = {q, q};  // standing up begins where the joint is
    const Interval may{target.lo - step - eps, target.hi + step + eps};
    if (told.lo == told.hi) {
      ++known_target;
      const double moved = std::max(target.lo - s, s - target.hi);
      at_speed_limit += moved > 0.999 * step - eps && step > 0 ? 1 : 0;
    }
    target = {std::max(may.lo, told.lo), std::min(may.hi, told.hi)};
    if (target.lo > target.hi) return "target too fast";
    return "";
  }

  CommanderConfig config_;
  bool spoke_ = false, on_ = false, latched_ = false;
  bool asked_to_stop_ = false, asked_to_damp_ = false, let_go_ = false;
  std::uint8_t machine_mode_ = 0;
  std::uint16_t buttons_ = 0xffff;
  std::int64_t last_ns_ = 0, heard_ns_ = 0;
  std::uint32_t counter_ = 0;  // of the last state
  std::optional<std::array<Interval, kRobotMotors>> targets_;
};

CommanderConfig QuickConfig() {
  CommanderConfig config = PlainConfig();
  config.stand_up_time = 0.1;
  config.blend_time = 0.05;
  return config;
}

// Something done to the rig from one tick to another.
struct Trouble {
  int begin, end;                  // [tick]
  int row;                         // of FaultRows(); −1: what is no row
  std::function<void(Rig*)> wild;  // then
};

using Random = std::mt19937;
bool Often(Random* rng, unsigned n) { return (*rng)() % n == 0; }
double Uniform(Random* rng) { return std::uniform_real_distribution<double>(-1, 1)(*rng); }

// Trouble that no row describes: any number in a state, any answer.
std::function<void(Rig*)> DrawWild(Random* rng) {
  const auto joint = (*rng)() % kRobotMotors;
  const unsigned what = (*rng)() % 12;
  const double value = std::pow(10, 3 * Uniform(rng)) * Uniform(rng), target = 3 * Uniform(rng);
  return [=](Rig* rig) {
    const float x = static_cast<float>(value);
    switch (what) {
      case 0:
        rig->spoil_state = [=](LowState* s) { s->motor[joint].q = x; };
        break;
      case 1:
        rig->spoil_state = [=](LowState* s) { s->motor[joint].dq = x; };
        break;
      case 2:
        rig->spoil_state = [=](LowState* s) { s->motor[joint].tau_est = x; };
        break;
      case 3:
        rig->spoil_state = [=](LowState* s) { s->imu.gyro[joint % 3] = x; };
        break;
      case 4:
        rig->spoil_state = [=](LowState* s) { s->imu.quat_wxyz[joint % 4] = x; };
        break;
      case 5:
        rig->spoil_answer = [=](PolicyAnswer* a) { a->target[joint] = target; };
        break;
      case 6:
        rig->spoil_answer = [=](PolicyAnswer* a) { a->target[joint] = HUGE_VAL; };
        break;
      case 7:
        rig->spoil_answer = [=](PolicyAnswer* a) { a->target.fill(target); };
        break;
      default:
        // a restless policy: steps larger than a joint may go in one tick
        rig->spoil_answer = [=](PolicyAnswer* a) {
          for (double& t : a->target) t += a->sequence % 2 == 0 ? 0.1 * target : -0.1 * target;
        };
        break;
    }
  };
}

// [tick] in which a row must have tripped
int Allowed(const FaultRow& row, const CommanderConfig& config) {
  return config.rules[U(static_cast<int>(row.fault))].ticks + row.extra_ticks;
}

// Two to five troubles, most of them rows; half of them begin before the one before is over.
std::vector<Trouble> DrawTroubles(const std::vector<FaultRow>& rows,
                                  const CommanderConfig& config,
                                  Random* rng) {
  std::vector<Trouble> troubles;
  int at = static_cast<int>((*rng)() % 250);
  for (int left = 2 + static_cast<int>((*rng)() % 4); left > 0; --left) {
    Trouble trouble;
    trouble.row = Often(rng, 4) ? -1 : static_cast<int>((*rng)() % rows.size());
    trouble.begin = at;
    const int allowed = trouble.row < 0 ? 60 : Allowed(rows[U(trouble.row)], config);
    // mostly long enough to trip, sometimes not
    const int least = Often(rng, 4) ? 1 : allowed + 1;
    trouble.end = at + least + static_cast<int>((*rng)() % static_cast<unsigned>(allowed + 20));
    if (trouble.row < 0) trouble.wild = DrawWild(rng);
    const int lasted = trouble.end - trouble.begin;
    at = Often(rng, 2) ? trouble.begin + static_cast<int>((*rng)() % static_cast<unsigned>(lasted))
                       : trouble.end + static_cast<int>((*rng)() % 150);
    troubles.push_back(std::move(trouble));
  }
  return troubles;
}

// Drives on, and now and then presses anything, by key and by remote.
void Press(Random* rng, Rig* rig) {
  const bool by_remote = Often(rng, 3);
  const auto press = [&](bool OperatorRequest::*key, RemoteButton button) {
    if (by_remote) {
      rig->remote.buttons |= static_cast<std::uint16_t>(1U << static_cast<int>(button));
    } else {
      rig->keys.*key = true;
    }
  };
  rig->remote = {.valid = true};
  const DriveState state = rig->commander.state();
  if (rig->commander.latched() && Often(rng, 12)) {
    press(&OperatorRequest::acknowledge, RemoteButton::kX);
  }
  if (state == DriveState::kOff && Often(rng, 8)) press(&OperatorRequest::damp, RemoteButton::kB);
  if (state == DriveState::kDamping && Often(rng, 8)) {
    press(&OperatorRequest::stand, RemoteButton::kStart);
  }
  if (state == DriveState::kStanding && Often(rng, 8)) {
    press(&OperatorRequest::run, RemoteButton::kA);
  }
  if (!Often(rng, 200)) return;
  switch ((*rng)() % 8) {
    case 0:
      press(&OperatorRequest::damp, RemoteButton::kB);
      break;
    case 1:
    case 2:
      press(&OperatorRequest::stand, RemoteButton::kStart);
      break;
    case 3:
    case 4:
      press(&OperatorRequest::run, RemoteButton::kA);
      break;
    case 5:
      if (Often(rng, 4)) press(&OperatorRequest::emergency_stop, RemoteButton::kSelect);
      break;
    default:
      press(&OperatorRequest::acknowledge, RemoteButton::kX);
      break;
  }
}

// What a thousand sequences had in them.
struct Coverage {
  std::array<int, kNumFaults> injected{};  // rows that began to be watched
  std::array<int, kNumFaults> tripped{};
  std::array<long, 5> ticks{};  // by DriveState
  int together = 0;             // sequences with two rows or more at once
  int let_go = 0;               // latches that the operator left
  long silent = 0;              // ticks before the robot spoke
};

class Sequence {
 public:
  Sequence(const std::vector<FaultRow>& rows, unsigned seed, Coverage* coverage)
      : rows_(rows),
        config_(QuickConfig()),
        rng_(seed),
        rig_(config_),
        judge_(config_),
        troubles_(DrawTroubles(rows, config_, &rng_)),
        counted_(troubles_.size(), false),
        coverage_(coverage) {
    // one in four begins without a good state
    silent_until_ = Often(&rng_, 4) ? static_cast<int>(rng_() % 40) : 0;
    silent_by_crc_ = Often(&rng_, 2);
    for (const Trouble& trouble : troubles_) length_ = std::max(length_, trouble.end + 60);
  }

  /// "" or what went wrong, and when.
  std::string Run() {
    bool together = false;
    for (int tick = 0; tick < length_; ++tick) {
      const bool was_latched = rig_.commander.latched();
      Arrange(tick);
      const std::vector<int> active = ActiveRows(tick);
      together |= active.size() > 1;
      Press(&rng_, &rig_);
      const OperatorRequest keys = rig_.keys;
      const std::uint64_t heard = rig_.heard;
      const int foreign = rig_.link.foreign_writers;
      CountInjected(tick);
      rig_.Step();
      const std::string wrong =
          judge_.Judge({rig_.now_ns, rig_.heard != heard, rig_.shown, keys, foreign}, rig_.last);
      const std::string at = "tick " + std::to_string(tick) + " (" + Name(rig_.last.state) + "): ";
      if (!wrong.empty()) return at + wrong;
      const std::string missed = Missed(tick, active);
      if (!missed.empty()) return at + missed;
      Count(was_latched);
    }
    coverage_->together += together ? 1 : 0;
    return "";
  }
  const CommandJudge& judge() const { return judge_; }

 private:
  std::vector<int> ActiveRows(int tick) const {
    std::vector<int> active;
    for (const Trouble& trouble : troubles_) {
      if (trouble.row >= 0 && trouble.begin <= tick && tick < trouble.end)
        active.push_back(trouble.row);
    }
    return active;
  }

  // What begins begins, and what ends ends: the rest is put in again.
  void Arrange(int tick) {
    bool changes = tick == 0 || tick == silent_until_;
    for (const Trouble& trouble : troubles_) {
      changes |= trouble.begin == tick || trouble.end == tick;
    }
    if (changes) {
      Mend(&rig_);
      steady_since_ = tick;
      wild_ = tick < silent_until_;
      if (wild_ && silent_by_crc_) rig_.spoil_bytes = [](LowState* s) { s->motor[1].q += 1; };
      if (wild_ && !silent_by_crc_) rig_.drop_states = true;
      for (const Trouble& trouble : troubles_) {
        if (tick < trouble.begin || tick >= trouble.end) continue;
        if (trouble.row < 0) {
          trouble.wild(&rig_);
          wild_ = true;
        } else {
          rows_[U(trouble.row)].inject(&rig_);
        }
      }
      timed_ = rig_.extra_ns != 0;
    }
    // ticks come early and late, by up to half a period
    if (!timed_) rig_.extra_ns = static_cast<std::int64_t>(1e6 * Uniform(&rng_));
  }

  // Rows that are put in and undisturbed, in states that watch them, for as long as each of them
  // needs: one has stopped the robot by then.
  std::string Missed(int tick, const std::vector<int>& active) {
    int longest = 0;
    bool watched = !wild_ && !rig_.last.latched;
    for (const int row : active) {
      const FaultRule& rule = config_.rules[U(static_cast<int>(rows_[U(row)].fault))];
      if (rule.reaction != Reaction::kStop || rows_[U(row)].once) continue;
      longest = std::max(longest, Allowed(rows_[U(row)], config_));
      watched = watched && rig_.last.state >= rows_[U(row)].from;
    }
    if (!watched || longest == 0) watched_since_ = tick + 1;
    const int since = std::max(watched_since_, steady_since_);
    if (tick + 1 - since <= longest + kSlack) return "";
    std::string names;
    for (const int row : active) names += " " + std::string(KindOf(rows_[U(row)].fault).name);
    return "not stopped by" + names;
  }

  // A row counts as put in when it meets a state that watches it.
  void CountInjected(int tick) {
    for (std::size_t i = 0; i < troubles_.size(); ++i) {
      const Trouble& trouble = troubles_[i];
      if (counted_[i] || trouble.row < 0 || tick < trouble.begin || tick >= trouble.end) continue;
      const FaultRow& row = rows_[U(trouble.row)];
      if (rig_.commander.latched() || rig_.commander.state() < row.from) continue;
      counted_[i] = true;
      ++coverage_->injected[U(static_cast<int>(row.fault))];
    }
  }

  void Count(bool was_latched) {
    for (int i = 0; i < rig_.last.num_reports; ++i) {
      ++coverage_->tripped[U(static_cast<int>(rig_.last.reports[U(i)].fault))];
    }
    ++coverage_->ticks[U(static_cast<int>(rig_.last.state))];
    coverage_->let_go += was_latched && !rig_.last.latched ? 1 : 0;
    coverage_->silent += rig_.heard == 0 ? 1 : 0;
  }

  // [tick] until the policy is asked again, and what it said is in
  static constexpr int kSlack = 12;

  const std::vector<FaultRow>& rows_;
  CommanderConfig config_;
  Random rng_;
  Rig rig_;
  CommandJudge judge_;
  std::vector<Trouble> troubles_;
  std::vector<bool> counted_;
  Coverage* coverage_;
  int length_ = 0, silent_until_ = 0;
  bool silent_by_crc_ = false, wild_ = false, timed_ = false;
  int steady_since_ = 0, watched_since_ = 0;
};

TEST(FaultSequences, AThousandHaveNoUnsafeCommand) {
  std::vector<FaultRow> rows = FaultRows();
  rows.push_back(OldStatesSentSlowly());
  Coverage coverage;
  long servo = 0, known = 0, speed = 0, torque = 0, range = 0, range_over_torque = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Sequence sequence(rows, seed, &coverage);
    ASSERT_EQ(sequence.Run(), "") << "sequence " << seed;
    const CommandJudge& judge = sequence.judge();
    servo += judge.servo;
    known += judge.known_target;
    speed += judge.at_speed_limit;
    torque += judge.at_torque_limit;
    range += judge.at_range;
    range_over_torque += judge.range_over_torque;
  }

  // every row was put in and tripped, often
  for (std::size_t i = 1; i < U(kNumFaults); ++i) {
    EXPECT_GE(coverage.injected[i], 20) << FaultKinds()[i].name;
    EXPECT_GE(coverage.tripped[i], 20) << FaultKinds()[i].name;
    RecordProperty(std::string(FaultKinds()[i].name),
                   std::to_string(coverage.injected[i]) + " put in, " +
                       std::to_string(coverage.tripped[i]) + " tripped");
  }
  EXPECT_GE(coverage.together, 250);
  EXPECT_GE(coverage.let_go, 250);
  EXPECT_GE(coverage.silent, 1000);
  for (const long ticks : coverage.ticks) EXPECT_GE(ticks, 10'000);
  // and the limits had something to do
  EXPECT_GE(known, servo / 2) << "targets that rules 2 and 3 leave as they are";
  EXPECT_GE(speed, 10'000);
  EXPECT_GE(torque, 10'000);
  EXPECT_GE(range, 1000);
  EXPECT_GE(range_over_torque, 25);
}

// The judge itself: a command that breaks one rule is found out, whichever it is.
class JudgedRig {
 public:
  JudgedRig() : rig_(QuickConfig()), judge_(rig_.config) {}

  std::string Step(const std::function<void(TickResult*)>& change = {}) {
    const OperatorRequest keys = rig_.keys;
    const std::uint64_t heard = rig_.heard;
    rig_.Step();
    TickResult result = rig_.last;
    if (change) change(&result);
    return judge_.Judge(
        {rig_.now_ns, rig_.heard != heard, rig_.shown, keys, rig_.link.foreign_writers}, result);
  }
  void DriveToPolicy() {
    for (int k = 0; k < 10; ++k) ASSERT_EQ(Step(), "");
    rig_.keys.damp = true;
    ASSERT_EQ(Step(), "");
    rig_.keys.stand = true;
    for (int k = 0; k < 70; ++k) ASSERT_EQ(Step(), "");
    rig_.keys.run = true;
    for (int k = 0; k < 100; ++k) ASSERT_EQ(Step(), "");
    ASSERT_EQ(rig_.last.state, DriveState::kPolicy);
  }
  Rig& rig() { return rig_; }

 private:
  Rig rig_;
  CommandJudge judge_;
};

TEST(CommandJudge, FindsEveryBrokenRule) {
  using Change = std::function<void(TickResult*)>;
  const auto command = [](const std::function<void(LowCommand*)>& change) -> Change {
    return [=](TickResult* result) {
      change(&result->command);
      result->command.crc = PlainCrc(result->command);
    };
  };
  const std::pair<const char*, Change> broken[] = {
      {"mode_pr", command([](LowCommand* c) { c->mode_pr = 1; })},
      {"machine mode", command([](LowCommand* c) { c->mode_machine = 6; })},
      {"CRC", [](TickResult* r) { r->command.motor[3].kp += 1; }},
      {"mode of motor 7", command([](LowCommand* c) { c->motor[7].mode = 0; })},
      {"mode of motor 30", command([](LowCommand* c) { c->motor[30].mode = 1; })},
      {"not a joint of motor 31", command([](LowCommand* c) { c->motor[31].kd = 1; })},
      {"feed-forward of motor 2", command([](LowCommand* c) { c->motor[2].tau = 1; })},
      {"not finite of motor 2", command([](LowCommand* c) { c->motor[2].q = std::nanf(""); })},
      {"kp of motor 2", command([](LowCommand* c) { c->motor[2].kp = 120; })},
      {"kp of motor 0", command([](LowCommand* c) { c->motor[0].kp = 0; })},
      {"kd of motor 2", command([](LowCommand* c) { c->motor[2].kd = 0; })},
      {"target beyond the range of motor 4", command([](LowCommand* c) { c->motor[4].q = 1.6F; })},
      {"torque of motor 4", command([](LowCommand* c) { c->motor[4].q = 1.5F; })},
      {"target too fast of motor 4", command([](LowCommand* c) { c->motor[4].q += 0.08F; })},
      {"target too fast of motor 4", command([](LowCommand* c) { c->motor[4].q -= 0.08F; })},
      {"fell silent", [](TickResult* r) { r->send = false; }},
      {"a fault that stops did not latch",
       [](TickResult* r) {
         r->num_reports = 1;
         r->reports[0] = {DriveFault::kTilt, Reaction::kStop};
       }},
      {"not damping after a stop", [](TickResult* r) { r->latched = true; }},
  };
  for (const auto& [words, change] : broken) {
    JudgedRig rig;
    rig.DriveToPolicy();
    EXPECT_EQ(rig.Step(change), words);
  }
}

TEST(CommandJudge, FindsWhatIsSentTooEarlyAndWhatLeavesALatch) {
  const auto send = [](TickResult* r) { r->send = true; };
  JudgedRig rig;
  rig.rig().drop_states = true;
  EXPECT_EQ(rig.Step(), "");
  EXPECT_EQ(rig.Step(send), "sent before the robot spoke");
  rig.rig().drop_states = false;
  EXPECT_EQ(rig.Step(), "");
  EXPECT_EQ(rig.Step(send), "sent while off");
  rig.rig().link.foreign_writers = 1;
  rig.rig().keys.damp = true;
  EXPECT_EQ(rig.Step(send), "began beside another writer");
  rig.rig().link.foreign_writers = 0;
  rig.rig().keys.damp = true;
  EXPECT_EQ(rig.Step([](TickResult* r) { r->send = false; }), "fell silent");

  JudgedRig stopped;
  stopped.rig().drop_states = true;
  stopped.rig().keys.emergency_stop = true;
  EXPECT_EQ(stopped.Step([](TickResult* r) { r->latched = false; }), "a stop did not latch");

  JudgedRig driven;
  driven.DriveToPolicy();
  const LowCommand moving = driven.rig().last.command;
  driven.rig().keys.emergency_stop = true;
  EXPECT_EQ(driven.Step(), "");
  EXPECT_EQ(driven.Step([&](TickResult* r) { r->command = moving; }), "not damping after a stop");
  EXPECT_EQ(driven.Step([](TickResult* r) { r->latched = false; }),
            "the latch was let go by nobody");
}

}  // namespace
}  // namespace silc::test
