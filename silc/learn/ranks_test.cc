// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process: what they exchange. Processes are in silc/cli/ranks_cli_test.cc.
#include "silc/learn/ranks.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "silc/learn/tensor.h"

namespace silc {
namespace {

// Every rank does the same on a thread of its own.
void OnRanks(int size, const std::function<void(Ranks*)>& work) {
  RankStore store;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      RankSetup setup;
      setup.rank = rank;
      setup.size = size;
      setup.port = store.port();
      setup.store_is_kept = true;
      setup.timeout = 60;
      const std::shared_ptr<Ranks> ranks = ConnectRanks(setup, /*gpu=*/false);
      work(ranks.get());
      ranks->Leave();
    });
  }
}

class RankExchange : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RanksOnCpu()) GTEST_SKIP() << "this build cannot connect processes on CPUs";
  }
};

// Floats of very different sizes: any other order of additions gives other bits.
Tensor Blocks(std::int64_t blocks, std::int64_t n) {
  const Tensor i = at::arange(blocks * n, at::kDouble).view({blocks, n});
  return ((i * 0.7).sin() * ((i * 1.3).cos() * 12).exp()).to(at::kFloat);
}

TEST_F(RankExchange, AddsBlocksInTheirOrderHoweverTheyAreSharedOut) {
  for (const std::int64_t n : {1, 3, 1024, 4097}) {  // short ones and those cut into slices
    const Tensor blocks = Blocks(4, n);
    // the plain sum, one block after the other
    Tensor expected = blocks[0];
    for (int i = 1; i < 4; ++i) expected = expected + blocks[i];
    EXPECT_TRUE(OneRank()->Sum(blocks).equal(expected));
    for (const int size : {2, 4}) {
      OnRanks(size, [&](Ranks* ranks) {
        const int own = 4 / size;
        const Tensor sum = ranks->Sum(blocks.narrow(0, ranks->rank() * own, own));
        EXPECT_TRUE(sum.equal(expected)) << n << " on rank " << ranks->rank() << " of " << size;
      });
    }
  }
}

TEST_F(RankExchange, GathersRowsAndBytesInTheRanksOrder) {
  OnRanks(3, [](Ranks* ranks) {
    const int rank = ranks->rank();
    const Tensor all = ranks->Gather(at::full({2, 2}, rank, at::kDouble));
    ASSERT_EQ(all.size(0), 6);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(all[i][1].item<double>(), i / 2);
    // as many letters as the rank's number, rank 0 none
    const auto bytes = ranks->GatherBytes(std::string(rank, static_cast<char>('a' + rank)));
    if (rank == 0) {
      EXPECT_EQ(bytes, (std::vector<std::string>{"", "b", "cc"}));
    } else {
      EXPECT_TRUE(bytes.empty());
    }
    const std::string said = std::string("with \0 inside", 13);
    EXPECT_EQ(ranks->Broadcast(rank == 0 ? said : "not this"), said);
    EXPECT_EQ(ranks->Broadcast(""), "");
  });
}

TEST_F(RankExchange, NamesTheRankThatDoesNotCome) {
  RankSetup setup;
  RankStore store;
  setup.size = 2;
  setup.port = store.port();
  setup.store_is_kept = true;
  setup.timeout = 0.2;
  try {
    ConnectRanks(setup, false);
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 of 2 did not come within 1 s"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace silc
