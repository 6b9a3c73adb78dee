// SPDX-License-Identifier: Apache-2.0
#include "silc/view/live_observer.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace silc {

void CopyMoment(ClosedLoop* loop,
                ContactMode mode,
                const std::shared_ptr<const ReadingSetup>& setup,
                const std::optional<HeldPoint>& held,
                ObservedState* state) {
  if (!state->data) state->data = loop->robot().MakeData();
  mj_copyData(state->data.get(), loop->robot().model(), loop->data());
  state->setup = setup;
  state->policy = loop->policy();
  state->mode = mode;
  state->time = loop->time();
  state->tau = loop->tau();
  state->held = held;
}

LiveObserver::LiveObserver(const RobotModel& robot, int num_robots)
    : robot_(robot),
      slots_(num_robots),
      thread_([this](const std::stop_token& stop) { Work(stop); }) {}

LiveObserver::~LiveObserver() {
  thread_.request_stop();
  wake_.notify_all();
}

void LiveObserver::Offer(int robot,
                         ClosedLoop* loop,
                         ContactMode mode,
                         const std::shared_ptr<const ReadingSetup>& setup,
                         const std::optional<HeldPoint>& held) {
  {
    const std::scoped_lock lock(mutex_);
    Slot& slot = slots_[robot];
    CopyMoment(loop, mode, setup, held, &slot.next);
    slot.offered = true;
  }
  wake_.notify_one();
}

std::optional<LiveReading> LiveObserver::Latest(int robot, std::uint32_t number) const {
  const std::scoped_lock lock(mutex_);
  const std::optional<LiveReading>& latest = slots_[robot].latest;
  return latest && latest->setup == number ? latest : std::nullopt;
}

std::uint64_t LiveObserver::count() const {
  const std::scoped_lock lock(mutex_);
  return count_;
}

void LiveObserver::Work(const std::stop_token& stop) {
  std::size_t turn = 0;
  while (!stop.stop_requested()) {
    Slot* slot = nullptr;
    {
      std::unique_lock lock(mutex_);
      const auto offered = [](const Slot& s) { return s.offered; };
      if (!wake_.wait(lock, stop, [&] { return std::ranges::any_of(slots_, offered); })) return;
      // in turns, so that one robot cannot starve another
      do turn = (turn + 1) % slots_.size();
      while (!slots_[turn].offered);
      slot = &slots_[turn];
      std::swap(slot->next, slot->now);
      slot->offered = false;
    }
    // `now` and `reader` belong to this thread alone
    if (!slot->reader || slot->reader_setup != slot->now.setup->number) {
      slot->reader = std::make_unique<LiveReader>(robot_, slot->now.setup);
      slot->reader_setup = slot->now.setup->number;
    }
    const LiveReading reading = slot->reader->Read(&slot->now);
    {
      const std::scoped_lock lock(mutex_);
      slot->latest = reading;
      ++count_;
    }
    // half of a core at most: the simulation and a browser on the same machine want the rest
    std::this_thread::sleep_for(std::chrono::duration<double>(reading.view.observe_time));
  }
}

}  // namespace silc
