// SPDX-License-Identifier: Apache-2.0
#include "silc/base/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "silc/base/check.h"

namespace silc {
namespace {

// Longer than most of what a training does between two of its loops; short enough not to be missed
// by others where more threads run than there are cores.
constexpr auto kLookFor = std::chrono::microseconds(50);

// Leaves the core to the other thread on it, where it has one.
void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Looks for a moment whether ready() has come true.
template <class Ready>
bool LookFor(const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + kLookFor;
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

int HardwareThreads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

ThreadPool::ThreadPool(int threads) {
  SILC_CHECK(threads >= 1 && static_cast<std::uint64_t>(threads) <= kInside);
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { Work(i); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Drain(int worker) {
  for (int i = next_.fetch_add(1); i < count_; i = next_.fetch_add(1)) {
    try {
      (*body_)(worker, i);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_ || i < error_index_) {
        error_ = std::current_exception();
        error_index_ = i;
      }
    }
  }
}

// Enters the open loop unless it is `*joined`, which then tells it.
bool ThreadPool::Join(std::uint64_t* joined) {
  std::uint64_t gate = gate_.load();
  while ((gate & kOpen) != 0 && gate / kRound != *joined) {
    if (!gate_.compare_exchange_weak(gate, gate + 1)) continue;
    *joined = gate / kRound;
    return true;
  }
  return false;
}

void ThreadPool::Work(int worker) {
  std::uint64_t joined = 0;
  for (;;) {
    const auto begins = [&] { return stop_.load() || Join(&joined); };
    if (!LookFor(begins)) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, begins);
    }
    if (stop_) return;
    Drain(worker);
    // the last one out of a closed loop
    const std::uint64_t gate = gate_.fetch_sub(1) - 1;
    if ((gate & (kOpen | kInside)) != 0) continue;
    const std::lock_guard lock(mutex_);
    done_.notify_one();
  }
}

void ThreadPool::ParallelFor(int count, const std::function<void(int, int)>& body) {
  {
    // a worker that is about to fall asleep holds the lock: it sees the loop, or is woken
    const std::lock_guard lock(mutex_);
    SILC_CHECK(body_ == nullptr);  // a loop inside a loop would wait for itself
    body_ = &body;
    count_ = count;
    next_ = 0;
    if (count > 1) gate_ = (gate_ / kRound + 1) * kRound | kOpen;
  }
  if (count > 1) wake_.notify_all();
  Drain(0);
  gate_ &= ~kOpen;
  const auto all_out = [&] { return (gate_ & kInside) == 0; };
  if (!LookFor(all_out)) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, all_out);
  }
  {
    const std::lock_guard lock(mutex_);
    body_ = nullptr;
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::ParallelForRanges(int count,
                                   int grain,
                                   const std::function<void(int, int, int)>& body) {
  SILC_CHECK(grain >= 1);
  ParallelFor((count + grain - 1) / grain, [&](int worker, int piece) {
    body(worker, piece * grain, std::min(count, (piece + 1) * grain));
  });
}

}  // namespace silc
