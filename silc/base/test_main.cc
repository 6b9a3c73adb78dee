// SPDX-License-Identifier: Apache-2.0
// main() of every test program. A program holds the tests of a folder; CTest runs it once per
// source file, with --source=budget_test.cc. GoogleTest calls a run without any test a success;
// here it fails, so that a renamed file or a filter with a slip is noticed. With --no-skip a
// skipped test fails, too: ./dev test-gpu must not pass because no GPU answered.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

/// A --gtest_filter with every test that `source`, a file name without folder, holds; "" for none.
std::string FilterOfSource(std::string_view source) {
  std::string filter;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const ::testing::TestInfo& test = *suite.GetTestInfo(t);
      const std::string_view path = test.file();
      if (path.substr(path.rfind('/') + 1) != source) continue;
      filter += std::string(filter.empty() ? "" : ":") + test.test_suite_name() + "." + test.name();
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);  // takes out the words that are GoogleTest's
  constexpr std::string_view kSource = "--source=";
  bool may_skip = true;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--no-skip") {
      may_skip = false;
      continue;
    }
    if (!word.starts_with(kSource)) {
      std::fprintf(stderr,
                   "%s: '%s' is no option; --source=FILE.cc, --no-skip or GoogleTest's\n",
                   argv[0],
                   argv[i]);
      return 2;
    }
    const std::string filter = FilterOfSource(word.substr(kSource.size()));
    if (filter.empty()) {
      std::fprintf(stderr, "%s: no test comes from that source: %s\n", argv[0], argv[i]);
      return 2;
    }
    GTEST_FLAG_SET(filter, filter);
  }
  const int status = RUN_ALL_TESTS();
  if (status == 0 && ::testing::UnitTest::GetInstance()->test_to_run_count() == 0 &&
      !GTEST_FLAG_GET(list_tests)) {
    std::fprintf(stderr, "%s: no test matches the filter\n", argv[0]);
    return 2;
  }
  if (!may_skip && ::testing::UnitTest::GetInstance()->skipped_test_count() > 0) {
    std::fprintf(stderr, "%s: tests were skipped, and --no-skip allows none\n", argv[0]);
    return 1;
  }
  return status;
}
