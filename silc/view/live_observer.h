// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "silc/view/live_reading.h"

namespace silc {

/// A thread that observes robots while they move. The newest state wins: one that was offered and
/// not begun is overwritten by the next, and the simulation never waits for an observation.
class LiveObserver {
 public:
  LiveObserver(const RobotModel& robot, int num_robots);
  ~LiveObserver();
  LiveObserver(const LiveObserver&) = delete;
  LiveObserver& operator=(const LiveObserver&) = delete;

  /// Copies the moment that the loop's policy was just asked about. Call between Decide() and
  /// Advance().
  void Offer(int robot,
             ClosedLoop* loop,
             ContactMode mode,
             const std::shared_ptr<const ReadingSetup>& setup,
             const std::optional<HeldPoint>& held);

  /// The newest reading of a robot, if it was made under setup `number`.
  std::optional<LiveReading> Latest(int robot, std::uint32_t number) const;

  /// Observations finished since the start, of all robots.
  std::uint64_t count() const;

 private:
  struct Slot {
    bool offered = false;  // `next` is waiting
    ObservedState next, now;
    std::unique_ptr<LiveReader> reader;
    std::uint32_t reader_setup = 0;
    std::optional<LiveReading> latest;
  };
  void Work(const std::stop_token& stop);

  const RobotModel& robot_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<Slot> slots_;
  std::uint64_t count_ = 0;
  std::jthread thread_;  // last: it uses everything above
};

/// Fills `state` with a copy of the moment that the loop's policy was just asked about.
void CopyMoment(ClosedLoop* loop,
                ContactMode mode,
                const std::shared_ptr<const ReadingSetup>& setup,
                const std::optional<HeldPoint>& held,
                ObservedState* state);

}  // namespace silc
