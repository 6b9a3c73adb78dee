// SPDX-License-Identifier: Apache-2.0
// For clang-tidy alone (-include), before LibTorch 1's headers. They name std::vector<IValue> where
// IValue is incomplete. In C++20 the members of std::vector are constexpr, and clang instantiates
// constexpr members as soon as they are named, so that it stops at those headers; g++ waits. Here
// libstdc++'s <vector> is read with its members not constexpr, as it is for C++17.
#pragma once

// what <vector> builds on, as it is
#include <memory>
#include <string>

#ifdef _GLIBCXX20_CONSTEXPR
#pragma push_macro("_GLIBCXX20_CONSTEXPR")
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#define __fill_a1 __fill_a1_not_constexpr  // one of the headers above has declared it constexpr
#include <vector>
#undef __fill_a1
#pragma pop_macro("_GLIBCXX20_CONSTEXPR")
#endif
