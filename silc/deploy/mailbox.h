// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace silc {

/// The newest value from one thread to another. Neither side ever waits, locks or allocates: three
/// places, one that is written, one that is read, one in between that changes hands.
template <typename T>
class Mailbox {
 public:
  /// Writer: the place to fill, then Publish() it.
  T& draft() { return places_[written_]; }
  void Publish() {
    written_ =
        between_.exchange(static_cast<std::uint8_t>(written_ | kFresh), std::memory_order_acq_rel) &
        kPlace;
  }
  void Put(const T& value) {
    draft() = value;
    Publish();
  }

  /// Reader: the newest value, or null when nothing came since the last call. Valid until the next.
  const T* Take() {
    if ((between_.load(std::memory_order_relaxed) & kFresh) == 0) return nullptr;
    read_ = between_.exchange(read_, std::memory_order_acq_rel) & kPlace;
    return &places_[read_];
  }

 private:
  static constexpr std::uint8_t kPlace = 3, kFresh = 4;
  std::array<T, 3> places_{};
  std::uint8_t written_ = 0;  // the writer's
  std::uint8_t read_ = 1;     // the reader's
  std::atomic<std::uint8_t> between_{2};
};

/// Values in order from one thread to another, as many as fit. Neither side waits.
template <typename T, std::size_t kSize>
class Ring {
 public:
  /// The place to fill, then Push(); null when the reader is behind by kSize values.
  T* Draft() {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head - tail_.load(std::memory_order_acquire) == kSize) return nullptr;
    return &places_[head % kSize];
  }
  void Push() { head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  /// The oldest value, then Pop() it; null when there is none.
  const T* Front() const {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == head_.load(std::memory_order_acquire)) return nullptr;
    return &places_[tail % kSize];
  }
  /// Values that wait. The reader's; the writer may add to them meanwhile.
  std::size_t size() const {
    return head_.load(std::memory_order_acquire) - tail_.load(std::memory_order_relaxed);
  }
  void Pop() { tail_.store(tail_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

 private:
  std::array<T, kSize> places_{};
  std::atomic<std::size_t> head_{0}, tail_{0};
};

}  // namespace silc
