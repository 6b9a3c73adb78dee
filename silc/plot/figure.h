// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace silc::plot {

/// Colours by role, not by value: the same number is the same colour in every panel, chosen so that
/// colour-blind readers tell them apart, on white and on black alike. 0 is the reader's text
/// colour.
using ColorIndex = int;
constexpr int kNumColors = 8;

enum class Stroke { kSolid, kDashed, kDotted, kPoints };

/// One curve. A NaN in y breaks the line there, and so does a number over 1e100.
struct Series {
  std::string label;  // empty: not in the legend
  std::vector<double> x, y;
  ColorIndex color = 1;
  Stroke stroke = Stroke::kSolid;
  double width = 1.6;  // [px]
};

/// A horizontal line across the panel: a budget, a limit.
struct Level {
  std::string label;
  double y = 0;
  ColorIndex color = 0;
};

/// A shaded stretch of the x axis: a contact mode, a push. Bands of one label share one legend
/// entry.
struct Band {
  std::string label;
  double x0 = 0, x1 = 0;
  ColorIndex color = 1;
};

struct Axis {
  std::string label;  // with its unit: "time [s]"
  bool log = false;   // values ≤ 0 are not drawn
  /// Fixed limits; without them the axis fits the data with a margin.
  std::optional<std::pair<double, double>> range;
};

struct Panel {
  std::string title;
  Axis x, y;
  std::vector<Series> series;
  std::vector<Level> levels;
  std::vector<Band> bands;
  bool equal_aspect = false;      // one unit is as long in x as in y: ellipses keep their shape
  std::string empty = "no data";  // stands in the place of what cannot be drawn
};

/// Panels on a grid, left to right, top to bottom.
struct Figure {
  std::string title;
  std::string subtitle;
  std::vector<Panel> panels;
  int columns = 1;
  double panel_width = 460;   // [px]
  double panel_height = 250;  // [px]
};

/// A self-contained SVG document, light or dark as the viewer prefers. A panel without drawable
/// data says so in its place.
std::string RenderSvg(const Figure& figure);

}  // namespace silc::plot
