// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/status.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace silc {
namespace {

// A status is only worth having when each one says something of its own.
TEST(StiffnessStatus, EveryOneHasItsOwnSentence) {
  std::set<std::string> sentences;
  for (int k = 0; k <= static_cast<int>(StiffnessStatus::kLongActionLoop); ++k) {
    const std::string text = Describe(static_cast<StiffnessStatus>(k));
    EXPECT_NE(text, "unknown status") << k;
    EXPECT_TRUE(sentences.insert(text).second) << text;
  }
  EXPECT_STREQ(Describe(StiffnessStatus::kOk), "ok");
  EXPECT_STREQ(Describe(static_cast<StiffnessStatus>(99)), "unknown status");
}

}  // namespace
}  // namespace silc
