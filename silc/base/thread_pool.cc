// SPDX-License-Identifier: Apache-2.0
#include "silc/base/thread_pool.h"

#include <algorithm>
#include <utility>

#include "silc/base/check.h"

namespace silc {

int HardwareThreads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

ThreadPool::ThreadPool(int threads) {
  SILC_CHECK(threads >= 1);
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

void ThreadPool::Work(int worker) {
  long seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
    }
    Drain(worker);
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) done_.notify_one();
  }
}

void ThreadPool::ParallelFor(int count, const std::function<void(int, int)>& body) {
  {
    const std::lock_guard lock(mutex_);
    SILC_CHECK(body_ == nullptr);  // a loop inside a loop would wait for itself
    body_ = &body;
    count_ = count;
    next_ = 0;
    busy_ = static_cast<int>(workers_.size());
    ++round_;
  }
  wake_.notify_all();
  Drain(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return busy_ == 0; });
  body_ = nullptr;
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
