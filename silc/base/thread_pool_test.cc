// SPDX-License-Identifier: Apache-2.0
#include "silc/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace silc {
namespace {

TEST(ThreadPool, CallsEachIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (const int count : {0, 1, 2, 7, 1000}) {
      std::vector<int> calls(count, 0);  // no two calls share an index, so plain ints do
      pool.ParallelFor(count, [&](int, int i) { ++calls[i]; });
      EXPECT_EQ(calls, std::vector<int>(count, 1)) << threads << " threads";
    }
  }
}

// What is kept per worker needs no lock.
TEST(ThreadPool, NoTwoCallsShareAWorkerAtATime) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(pool.size());
  std::atomic<int> shared{0};
  pool.ParallelFor(2000, [&](int worker, int) {
    if (inside[worker]++ != 0) ++shared;
    --inside[worker];
  });
  EXPECT_EQ(shared, 0);
}

TEST(ThreadPool, RangesCoverAllOnceAndNoneIsLongerThanTheGrain) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (const int count : {0, 1, 63, 64, 65, 640}) {
      std::vector<int> calls(count, 0);
      std::atomic<int> longest{0};
      pool.ParallelForRanges(count, 64, [&](int, int begin, int end) {
        if (end - begin > longest) longest = end - begin;
        for (int i = begin; i < end; ++i) ++calls[i];
      });
      EXPECT_EQ(calls, std::vector<int>(count, 1)) << count;
      EXPECT_LE(longest, 64);
    }
  }
}

// Workers that are awake, that are falling asleep and that sleep all find the next loop, and none
// comes to a loop that has ended: its sums are gone by then.
TEST(ThreadPool, LoopsMayFollowEachOtherAtAnyTime) {
  for (const int threads : {2, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 1000; ++round) {
      const int count = round % 7;
      std::vector<int> calls(count, 0);
      pool.ParallelFor(count, [&](int, int i) { ++calls[i]; });
      ASSERT_EQ(calls, std::vector<int>(count, 1)) << "loop " << round;
      if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(round % 100));
    }
  }
}

// Workers do take part, whether they were looking for work or asleep.
TEST(ThreadPool, TwoCallsThatWaitForEachOtherRunAtOnce) {
  ThreadPool pool(2);
  for (const int pause_ms : {0, 5, 0}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    std::atomic<int> begun{0};
    pool.ParallelFor(2, [&](int, int) {
      ++begun;
      while (begun < 2) std::this_thread::yield();  // until another thread has begun the other
    });
    EXPECT_EQ(begun, 2);
  }
}

// The same error whatever the number of threads, after everything else was done; the pool goes on.
TEST(ThreadPool, ThrowsTheErrorOfTheLowestIndexWhenAllAreDone) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::atomic<int> done{0};
    std::string what;
    try {
      pool.ParallelFor(100, [&](int, int i) {
        if (i % 10 == 7) throw std::runtime_error("at " + std::to_string(i));
        ++done;
      });
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    EXPECT_EQ(what, "at 7") << threads << " threads";
    EXPECT_EQ(done, 90);
    done = 0;
    pool.ParallelFor(10, [&](int, int) { ++done; });
    EXPECT_EQ(done, 10);
  }
}

TEST(ThreadPoolDeathTest, RefusesALoopInsideALoop) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ThreadPool pool(1);
        pool.ParallelFor(1, [&](int, int) { pool.ParallelFor(1, [](int, int) {}); });
      },
      "thread_pool.cc");
}

}  // namespace
}  // namespace silc
