// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/mailbox.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace silc {
namespace {

using Block = std::array<std::uint64_t, 32>;

Block Filled(std::uint64_t value) {
  Block block;
  block.fill(value);
  return block;
}

TEST(Mailbox, GivesTheNewestValueOnce) {
  Mailbox<int> box;
  EXPECT_EQ(box.Take(), nullptr);
  box.Put(1);
  box.Put(2);
  ASSERT_NE(box.Take(), nullptr);
  EXPECT_EQ(box.Take(), nullptr);
  box.Put(3);
  const int* taken = box.Take();
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(*taken, 3);
  box.Put(4);
  box.Put(5);
  EXPECT_EQ(*taken, 3) << "stays until the next Take()";
}

TEST(Mailbox, NeverShowsHalfAValue) {
  Mailbox<Block> box;
  constexpr std::uint64_t kLast = 100'000;
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= kLast; ++i) box.Put(Filled(i));
  });
  std::uint64_t newest = 0;
  while (newest < kLast) {
    const Block* block = box.Take();
    if (block == nullptr) {
      std::this_thread::yield();
      continue;
    }
    for (const std::uint64_t word : *block) ASSERT_EQ(word, block->front());
    ASSERT_GT(block->front(), newest);
    newest = block->front();
  }
  writer.join();
}

TEST(Ring, KeepsOrderAndSaysWhenItIsFull) {
  Ring<int, 4> ring;
  EXPECT_EQ(ring.Front(), nullptr);
  for (int i = 0; i < 4; ++i) {
    ASSERT_NE(ring.Draft(), nullptr);
    *ring.Draft() = i;
    ring.Push();
  }
  EXPECT_EQ(ring.Draft(), nullptr);
  for (int i = 0; i < 4; ++i) {
    ASSERT_NE(ring.Front(), nullptr);
    EXPECT_EQ(*ring.Front(), i);
    ring.Pop();
  }
  EXPECT_EQ(ring.Front(), nullptr);
}

TEST(Ring, LosesNothingBetweenThreads) {
  Ring<Block, 8> ring;
  constexpr std::uint64_t kLast = 50'000;
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= kLast;) {
      Block* block = ring.Draft();
      if (block == nullptr) {
        std::this_thread::yield();
        continue;
      }
      *block = Filled(i++);
      ring.Push();
    }
  });
  for (std::uint64_t expected = 1; expected <= kLast;) {
    const Block* block = ring.Front();
    if (block == nullptr) {
      std::this_thread::yield();
      continue;
    }
    for (const std::uint64_t word : *block) ASSERT_EQ(word, expected);
    ring.Pop();
    ++expected;
  }
  writer.join();
}

}  // namespace
}  // namespace silc
