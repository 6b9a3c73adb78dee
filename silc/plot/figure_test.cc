// SPDX-License-Identifier: Apache-2.0
#include "silc/plot/figure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "silc/base/nan.h"

namespace silc::plot {
namespace {

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// The path data of the first curve drawn in colour 1.
std::string CurvePath(const std::string& svg) {
  std::smatch match;
  const std::regex curve("class=\"s1\" stroke-width=\"1.6\" d=\"([^\"]*)\"");
  return std::regex_search(svg, match, curve) ? match[1].str() : "";
}

Figure OneCurve(std::vector<double> x, std::vector<double> y) {
  Panel panel;
  panel.x.range = {{0, 10}};
  panel.y.range = {{0, 10}};
  panel.series.push_back({.label = "", .x = std::move(x), .y = std::move(y)});
  return {.panels = {panel}};
}

TEST(RenderSvg, ANanLiftsThePen) {
  const std::string path = CurvePath(RenderSvg(OneCurve({0, 1, 2, 3, 4}, {1, 2, kNan, 3, 4})));
  EXPECT_EQ(Count(path, "M"), 2);
  EXPECT_EQ(Count(path, "L"), 2);
}

TEST(RenderSvg, UpIsUpAndRightIsRight) {
  const std::string path = CurvePath(RenderSvg(OneCurve({2, 8}, {1, 9})));
  std::smatch match;
  ASSERT_TRUE(
      std::regex_match(path, match, std::regex("M([0-9.]+) ([0-9.]+)L([0-9.]+) ([0-9.]+)")));
  EXPECT_LT(std::stod(match[1]), std::stod(match[3]));
  EXPECT_GT(std::stod(match[2]), std::stod(match[4]));  // pixels count downwards
}

TEST(RenderSvg, EqualAspectKeepsACircleRound) {
  Panel panel;
  panel.equal_aspect = true;
  Series circle;
  for (int i = 0; i <= 72; ++i) {
    circle.x.push_back(3 * std::cos(i * M_PI / 36));
    circle.y.push_back(3 * std::sin(i * M_PI / 36));
  }
  panel.series.push_back(circle);
  const std::string path = CurvePath(RenderSvg({.panels = {panel}}));
  double x0 = 1e9, x1 = -1e9, y0 = 1e9, y1 = -1e9;
  const std::regex point("([0-9.]+) ([0-9.]+)");
  for (std::sregex_iterator it(path.begin(), path.end(), point), end; it != end; ++it) {
    x0 = std::min(x0, std::stod((*it)[1]));
    x1 = std::max(x1, std::stod((*it)[1]));
    y0 = std::min(y0, std::stod((*it)[2]));
    y1 = std::max(y1, std::stod((*it)[2]));
  }
  EXPECT_NEAR(x1 - x0, y1 - y0, 0.3);  // coordinates are written to 0.1 px
  EXPECT_GT(x1 - x0, 50);
}

// Curves come from files, too: any double is drawn or left out, and the document holds numbers.
TEST(RenderSvg, AnyDoubleStillGivesADocument) {
  const double least = 5e-324, most = std::numeric_limits<double>::max();
  const std::vector<std::vector<double>> hostile = {{least, least},
                                                    {least, 1},
                                                    {least, most},
                                                    {-most, most},
                                                    {most, most},
                                                    {1, std::nextafter(1, 2)},
                                                    {1e-320, 2e-320},
                                                    {0, least},
                                                    {1e99, 1e100}};
  for (const bool log : {false, true}) {
    for (const std::vector<double>& values : hostile) {
      Figure figure = OneCurve(values, values);
      for (Axis* axis : {&figure.panels[0].x, &figure.panels[0].y}) {
        axis->range.reset();
        axis->log = log;
      }
      const std::string svg = RenderSvg(figure);
      EXPECT_NE(svg.find("</svg>"), std::string::npos);
      EXPECT_EQ(svg.find("nan"), std::string::npos) << values[0] << " " << values[1] << " " << log;
      EXPECT_EQ(svg.find("inf"), std::string::npos) << values[0] << " " << values[1] << " " << log;
    }
  }
}

TEST(RenderSvg, EmptyAndHostileInputStillGivesADocument) {
  Figure figure = OneCurve({}, {});
  figure.panels[0].x.range.reset();
  figure.panels[0].y.range.reset();
  figure.panels[0].title = "<script> & \"quotes\"";
  const std::string svg = RenderSvg(figure);
  EXPECT_NE(svg.find("no data"), std::string::npos);
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt; &amp; &quot;quotes&quot;"), std::string::npos);
  EXPECT_EQ(Count(svg, "<g"), Count(svg, "</g>"));
}

TEST(RenderSvg, ALogAxisLeavesOutWhatHasNoLogarithm) {
  Figure figure = OneCurve({1, 2, 3, 4}, {1, 0, -3, 100});
  figure.panels[0].y.log = true;
  figure.panels[0].y.range.reset();
  EXPECT_EQ(Count(CurvePath(RenderSvg(figure)), "M"), 2);
}

TEST(RenderSvg, BandsOfOneLabelShareOneLegendEntry) {
  Figure figure = OneCurve({0, 10}, {0, 10});
  figure.panels[0].bands = {{"double support", 0, 1, 3}, {"double support", 2, 3, 3}};
  EXPECT_EQ(Count(RenderSvg(figure), "double support"), 1);
}

}  // namespace
}  // namespace silc::plot
