// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/method.h"

#include <gtest/gtest.h>

#include <set>

namespace silc {
namespace {

// The list of names and the enumeration are two lists of the same things.
TEST(Method, EveryMethodHasItsName) {
  EXPECT_EQ(Name(Method::kBaseline), "baseline");
  EXPECT_EQ(Name(Method::kLcp), "lcp");
  EXPECT_EQ(Name(Method::kSnLcp), "sn-lcp");
  EXPECT_EQ(Name(Method::kScalarLcp), "scalar-lcp");
  EXPECT_EQ(Name(Method::kAlcp), "alcp");
  EXPECT_EQ(Name(Method::kSilcPaper), "silc-paper");
  EXPECT_EQ(Name(Method::kSilc), "silc");
  EXPECT_EQ(MethodNames().size(), static_cast<std::size_t>(Method::kSilc) + 1);
  std::set<std::string> bounded;
  for (const std::string& method : MethodNames()) {
    if (HasBudget(method)) bounded.insert(method);
  }
  EXPECT_EQ(bounded, (std::set<std::string>{"silc", "silc-paper"}));
}

}  // namespace
}  // namespace silc
