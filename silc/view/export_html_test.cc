// SPDX-License-Identifier: Apache-2.0
#include "silc/view/export_html.h"

#include <gtest/gtest.h>

#include "silc/base/test_paths.h"

namespace silc {
namespace {

// One file, nothing beside it. silc/view/browser_test.py plays it.
TEST(ExportHtml, IsOnePageThatNeedsNothing) {
  ExportOptions options;
  options.simulation.policies = {SourcePath("policies/g1_loco_silc_compliance.onnx")};
  options.seconds = 0.2;
  double done = 0;
  const std::string page = ExportHtml(options, [&](double share) { done = share; });
  EXPECT_EQ(done, 1);
  EXPECT_EQ(page.find("\"/page/"), std::string::npos) << "nothing is fetched";
  EXPECT_NE(page.find("window.silcRecording"), std::string::npos);
  EXPECT_GT(page.size(), 1000000u) << "three.js is inside";
}

TEST(ExportHtml, ANameCannotEndTheScript) {
  const std::string page =
      RecordingPage(R"({"robot": "</script><script>alert(1)</script>"})", {"abc", "de", "f"});
  EXPECT_EQ(page.find("</script><script>alert"), std::string::npos);
  // RFC 4648, section 10, of "abc" and of what needs filling up
  EXPECT_NE(page.find("\"frames\": [\"YWJj\",\"ZGU=\",\"Zg==\"]"), std::string::npos);
}

}  // namespace
}  // namespace silc
