// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/thread_pool.h"

#include "silc/base/check.h"

namespace silc {

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
  for (int i = next_.fetch_add(1); i < count_; i = next_.fetch_add(1)) (*body_)(worker, i);
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

void ThreadPool::For(int count, const std::function<void(int, int)>& body) {
  if (workers_.empty()) {
    for (int i = 0; i < count; ++i) body(0, i);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
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
}

}  // namespace silc
