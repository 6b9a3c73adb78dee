// SPDX-License-Identifier: Apache-2.0
#include "silc/report/markdown.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/report/html.h"

namespace silc {
namespace {

TEST(Markdown, WhatOurPagesUse) {
  EXPECT_EQ(MarkdownToHtml("# A\n\none *two*\nthree **four** `a<b` [five](x.md)\n"),
            "<h2>A</h2>\n<p>one <i>two</i> three <b>four</b> <code>a&lt;b</code> five</p>\n");
  EXPECT_EQ(MarkdownToHtml("- a\n  b\n- c"), "<ul>\n<li>a b</li>\n<li>c</li>\n</ul>\n");
  const std::string table = MarkdownToHtml("| a | b |\n|---|--:|\n| `x|y` | 1 \\| 2 |\n");
  EXPECT_NE(table.find("<th scope=\"row\"><code>x|y</code></th><td>1 | 2</td>"), std::string::npos)
      << table;
  EXPECT_EQ(MarkdownToHtml("5 * 3 < 16 & 2$"), "<p>5 * 3 &lt; 16 &amp; 2$</p>\n");
}

TEST(Markdown, TexBecomesText) {
  EXPECT_EQ(TexToHtml("\\delta\\tau^\\top M^{-1}\\delta\\tau"), "δτᵀ M<sup>−1</sup>δτ");
  EXPECT_EQ(TexToHtml("\\lambda_{min}(M)<1"), "λ<sub>min</sub>(M) &lt; 1");
  EXPECT_EQ(TexToHtml("\\Vert L^{-1}K\\Vert\\le1"), "‖L<sup>−1</sup>K‖ ≤ 1");
  EXPECT_EQ(TexToHtml("\\{x: x^\\top Kx\\le c\\}"), "{x: xᵀ Kx ≤ c}");
  EXPECT_EQ(TexToHtml("\\dot q"), "q\u0307");
  EXPECT_EQ(TexToHtml("\\nosuch x"), "nosuchx");
}

// The errata are read from docs/ and shown in the report: nothing of TeX or Markdown may be left.
TEST(Errata, BecomeCleanHtml) {
  const std::string html = MarkdownToHtml(ReadFile(SourcePath("docs/paper_errata.md")));
  EXPECT_EQ(FindHtmlFault(html), "");
  for (const char* left : {"\\", "$", "**", "](", "|--"})
    EXPECT_EQ(html.find(left), std::string::npos)
        << left << " in " << html.substr(html.find(left) - 60, 120);
}

// Every test the errata name as evidence is a test of this project.
TEST(Errata, NameTestsThatExist) {
  namespace fs = std::filesystem;
  std::set<std::string> tests, names;
  for (const auto& entry : fs::recursive_directory_iterator(SourcePath("silc"))) {
    if (!entry.path().string().ends_with("_test.cc")) continue;
    std::istringstream lines(ReadFile(entry.path().string()));
    for (std::string line; std::getline(lines, line);) {
      const auto begin = line.find('('), comma = line.find(", "), end = line.find(')');
      if (!line.starts_with("TEST") || comma == line.npos || end == line.npos) continue;
      const std::string name = line.substr(comma + 2, end - comma - 2);
      tests.insert(line.substr(begin + 1, comma - begin - 1) + "." + name);
      names.insert(name);
    }
  }
  ASSERT_GT(tests.size(), 100u);
  int named = 0;
  const std::string errata = ReadFile(SourcePath("docs/paper_errata.md"));
  for (const std::string& span : CodeSpans(errata)) {
    const std::string dots = "…";
    if (span.starts_with(dots)) {  // the suite of the one before: …BoundsAJointByTheSquareRoot
      const std::string tail = span.substr(dots.size());
      const bool found = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return name.ends_with(tail);
      });
      EXPECT_TRUE(found) << span;
      ++named;
    } else if (span.find('.') != span.npos && span.find('/') == span.npos) {
      EXPECT_TRUE(tests.count(span) == 1) << span;
      ++named;
    }
  }
  EXPECT_GT(named, 20);
}

}  // namespace
}  // namespace silc
