// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/test_clock.h"

#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;  // [ns]
std::atomic<std::int64_t> wall_clock_moved{0}, suspended{0};

[[maybe_unused]] std::int64_t MovedBy(clockid_t clock) {
  if (clock == CLOCK_REALTIME) return wall_clock_moved;
  return clock == CLOCK_BOOTTIME ? suspended.load() : 0;
}

[[maybe_unused]] void Add(std::int64_t ns, timespec* time) {
  const std::int64_t sum = time->tv_sec * kSecond + time->tv_nsec + ns;
  time->tv_sec = sum / kSecond;
  time->tv_nsec = sum % kSecond;
}

}  // namespace

namespace silc::test {

void MoveWallClock(std::int64_t ns) { wall_clock_moved = ns; }
void SuspendFor(std::int64_t ns) { suspended += ns; }

}  // namespace silc::test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0) Add(MovedBy(clock), time);
  return result;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* wait, timespec* left) {
  timespec until = *wait;
  if ((flags & TIMER_ABSTIME) != 0) Add(-MovedBy(clock), &until);
  return syscall(SYS_clock_nanosleep, clock, flags, &until, left) == 0 ? 0 : errno;
}

// Its end is a time of the wall clock.
int sem_timedwait(sem_t* semaphore, const timespec* until) {
  while (sem_trywait(semaphore) != 0) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec > until->tv_sec ||
        (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec)) {
      errno = ETIMEDOUT;
      return -1;
    }
    usleep(200);
  }
  return 0;
}

}  // extern "C"

#endif
