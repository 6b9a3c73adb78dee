// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace silc {

/// Threads that wait for loops. The caller works too, so a pool of one has no thread of its own.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(worker, index) for index in [0, count), in any order, and returns when all are
  /// done. `worker` is in [0, size()); no two calls share one at a time. `body` must not throw.
  void For(int count, const std::function<void(int worker, int index)>& body);

 private:
  void Work(int worker);
  void Drain(int worker);

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int, int)>* body_ = nullptr;
  int count_ = 0;
  std::atomic<int> next_{0};
  int busy_ = 0;
  long round_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace silc
