// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/policy_jacobians.h"

#include <gtest/gtest.h>

#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

TEST(SumFrames, IsTheAnswerToAQuantityThatFillsTheWholeHistory) {
  Rng rng(3);
  std::vector<Eigen::MatrixXd> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(test::RandomMatrix(5, 7, &rng));
  Eigen::MatrixXd sum(5, 7);
  SumFrames(blocks, sum);
  // the same change in every frame, frame by frame
  const Eigen::VectorXd dq = test::RandomMatrix(7, 1, &rng);
  Eigen::VectorXd da = Eigen::VectorXd::Zero(5);
  for (const Eigen::MatrixXd& block : blocks) da += block * dq;
  EXPECT_TRUE((sum * dq).isApprox(da, 1e-14));
}

TEST(SumFrames, AnEmptyListIsZero) {
  Eigen::MatrixXd sum = Eigen::MatrixXd::Ones(3, 4);
  SumFrames({}, sum);
  EXPECT_EQ(sum, Eigen::MatrixXd::Zero(3, 4));
}

TEST(SumFramesDeathTest, BlocksOfAnotherSizeAreABug) {
  Eigen::MatrixXd sum(3, 3);
  EXPECT_DEATH(SumFrames({Eigen::MatrixXd::Zero(3, 2)}, sum), "check failed");
}

}  // namespace
}  // namespace silc
