// SPDX-License-Identifier: Apache-2.0
#include "silc/view/export_html.h"

#include <gtest/gtest.h>

#include <stop_token>

#include "silc/base/error.h"
#include "silc/base/test_paths.h"
#include "silc/view/client.h"
#include "silc/view/viewer.h"

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

// The server's rules for scripts refuse modules inside a page, so that this one names the server's.
TEST(ExportHtml, AServedPageHasItsScriptBesideIt) {
  const std::string page = ServedRecordingPage(R"({"robot": "none"})", {"abc"});
  EXPECT_NE(page.find("\"frames\": [\"YWJj\"]"), std::string::npos);
  EXPECT_NE(page.find("\"/page/three.module.js\""), std::string::npos);
  EXPECT_EQ(page.find("data:text/javascript"), std::string::npos);
}

// Told at once, not after minutes of observing; and what was served can be read until asked to
// stop.
TEST(ServeRecording, ServesUntilAskedToStop) {
  ServerOptions options;
  options.port = 0;
  std::stop_source stop;
  std::string address, body;
  int port = 0;
  ServeRecording(options, "a page", stop.get_token(), [&](const std::string& at) {
    address = at;
    port = std::stoi(at.substr(at.rfind(':') + 1));
    body = HttpGet(port, "/").body;
    options.port = port;
    EXPECT_THROW(CheckServerOptions(options), ConfigError) << "the port is taken";
    stop.request_stop();
  });
  EXPECT_TRUE(address.starts_with("http://127.0.0.1:")) << address;
  EXPECT_EQ(body, "a page");
  EXPECT_NO_THROW(CheckServerOptions(options)) << "and free again";
  options.host = "0.0.0.0";
  EXPECT_THROW(CheckServerOptions(options), ConfigError) << "no token";
}

}  // namespace
}  // namespace silc
