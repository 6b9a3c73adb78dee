// SPDX-License-Identifier: Apache-2.0
#include "silc/report/html.h"

#include <gtest/gtest.h>

#include <cmath>

namespace silc {
namespace {

TEST(EscapeHtml, LeavesNothingABrowserWouldActOn) {
  EXPECT_EQ(EscapeHtml("a<b & \"c\" > 'd'"), "a&lt;b &amp; &quot;c&quot; &gt; &#39;d&#39;");
  EXPECT_EQ(EscapeHtml("σ ≤ 1, K₁"), "σ ≤ 1, K₁");
  EXPECT_EQ(EscapeHtml(std::string("a\0b\x1b", 4)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  EXPECT_EQ(EscapeHtml("\xff\xc3"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // no UTF-8; cut in the middle
}

TEST(ShowNumber, ThreeDigits) {
  EXPECT_EQ(ShowNumber(0), "0");
  EXPECT_EQ(ShowNumber(1), "1.00");
  EXPECT_EQ(ShowNumber(0.247), "0.247");
  EXPECT_EQ(ShowNumber(-12.664), "−12.7");
  EXPECT_EQ(ShowNumber(999.7), "1000");
  EXPECT_EQ(ShowNumber(0.9999), "1.00");
  EXPECT_EQ(ShowNumber(41300), "4.13·10⁴");
  EXPECT_EQ(ShowNumber(9994), "9990");
  EXPECT_EQ(ShowNumber(5.35e5), "5.35·10⁵");
  EXPECT_EQ(ShowNumber(1.01e-8), "1.01·10⁻⁸");
  EXPECT_EQ(ShowNumber(0.00123), "0.00123");
  EXPECT_EQ(ShowNumber(std::nan("")), "–");
  EXPECT_EQ(ShowNumber(-HUGE_VAL), "−∞");
}

TEST(HtmlTable, IsWellFormedAndKeepsItsCells) {
  HtmlTable table({{"name"}, {"value", true}});
  table.Group("first");
  table.Row({"a &lt; b", "1.00"});
  table.Row({"c", "2.00"}, "missing");
  table.Across("d", "not yet");
  const std::string html = table.Render("caption");
  EXPECT_EQ(FindHtmlFault(html), "");
  EXPECT_NE(html.find("<th scope=\"row\">a &lt; b</th><td class=\"num\">1.00</td>"),
            std::string::npos);
  EXPECT_NE(html.find("colspan=\"2\""), std::string::npos);
}

TEST(FindHtmlFault, FindsWhatABrowserWouldMend) {
  EXPECT_EQ(
      FindHtmlFault("<!doctype html><p>a<br>b<img src=\"x>y\"></p><svg><path d=\"M0\"/></svg>"),
      "");
  EXPECT_EQ(FindHtmlFault("<style>a>b{}</style>"), "");
  for (const char* faulty : {"<p><b>x</p></b>",
                             "<p>x",
                             "x</p>",
                             "<p class=a>x</p>",
                             "<p class=\"a>x</p>",
                             "a & b",
                             "a < b",
                             "a > b",
                             "&copy2;"}) {
    EXPECT_NE(FindHtmlFault(faulty), "") << faulty;
  }
}

}  // namespace
}  // namespace silc
