// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace silc {

/// How many threads this machine runs at once; 1 where it does not say.
int HardwareThreads();

/// Threads that wait for loops. The caller works too, so a pool of one has no thread of its own.
///
/// One pool serves an environment, its physics and its learner, which work in turns: a loop may not
/// start another loop on the same pool, and only one thread at a time may start one.
///
/// A training starts a loop every fraction of a millisecond. To wake a sleeping thread takes tens
/// of microseconds, so whoever waits looks for work for a moment before falling asleep. A loop ends
/// when its calls are done: a worker that has not come by then is not waited for.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(worker, index) for index in [0, count), in any order, and returns when all are
  /// done. `worker` is in [0, size()); no two calls share one at a time. When bodies throw, all
  /// others are still called; then the exception of the lowest index is thrown here.
  void ParallelFor(int count, const std::function<void(int worker, int index)>& body);

  /// The same for short bodies: body(worker, begin, end) for [0, count) cut into pieces of `grain`.
  void ParallelForRanges(int count,
                         int grain,
                         const std::function<void(int worker, int begin, int end)>& body);

 private:
  void Work(int worker);
  void Drain(int worker);
  bool Join(std::uint64_t* joined);

  // The loop's number, whether workers may still join it, and how many are in it; in one word, so
  // that none joins a loop that has just been closed.
  static constexpr std::uint64_t kOpen = 1u << 16, kRound = kOpen << 1, kInside = kOpen - 1;
  alignas(64) std::atomic<std::uint64_t> gate_{0};
  std::atomic<bool> stop_{false};

  // of the loop that is open; on another cache line than what those that wait look at
  alignas(64) std::atomic<int> next_{0};
  int count_ = 0;
  const std::function<void(int, int)>* body_ = nullptr;  // null: no loop runs

  std::mutex mutex_;
  std::condition_variable wake_, done_;  // for those that have fallen asleep
  std::exception_ptr error_;
  int error_index_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace silc
