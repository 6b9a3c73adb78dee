// SPDX-License-Identifier: Apache-2.0
#include "silc/base/nearest.h"

#include <gtest/gtest.h>

namespace silc {
namespace {

TEST(EditDistance, CountsSlips) {
  EXPECT_EQ(EditDistance("knee", "knee"), 0);
  EXPECT_EQ(EditDistance("kneee", "knee"), 1);
  EXPECT_EQ(EditDistance("knee", "keen"), 2);
  EXPECT_EQ(EditDistance("nkee", "knee"), 1);  // a swap is one slip
  EXPECT_EQ(EditDistance("", "abc"), 3);
}

TEST(NearestNames, OrdersBySlipsAndDropsStrangers) {
  const std::vector<std::string> joints = {
      "left_knee_joint", "right_knee_joint", "waist_yaw_joint"};
  EXPECT_EQ(NearestNames("left_kne_joint", joints), std::vector<std::string>{"left_knee_joint"});
  EXPECT_EQ(NearestNames("kdd", {"kp", "other", "kd"}), (std::vector<std::string>{"kd", "kp"}));
  EXPECT_EQ(NearestNames("waist_yaw", joints), std::vector<std::string>{"waist_yaw_joint"});
  EXPECT_TRUE(NearestNames("gripper", joints).empty());
}

// The table of the distance has the product of the lengths: 10¹⁰ entries for two words of a file.
TEST(NearestNames, WordsWithoutEndAreNotCompared) {
  const std::string long_a(100'000, 'a');
  const std::vector<std::string> names = {std::string(100'000, 'b'), "knee"};
  EXPECT_TRUE(NearestNames(long_a, names).empty());
  EXPECT_TRUE(NearestNames("kneee", names) == std::vector<std::string>{"knee"});
  EXPECT_EQ(DidYouMean(long_a, names), "");
  EXPECT_EQ(DidYouMean("zzzzzz", names), "");
}

TEST(DidYouMean, EndsAMessage) {
  EXPECT_EQ(DidYouMean("stnad", {"stand", "walk"}), "; did you mean stand?");
  EXPECT_EQ(DidYouMean("zzzzzz", {"stand", "walk"}), "; known: stand, walk");
  EXPECT_EQ(DidYouMean("zzzzzz", {}), "");
}

}  // namespace
}  // namespace silc
