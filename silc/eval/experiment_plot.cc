// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/experiment_plot.h"

#include <algorithm>
#include <filesystem>

namespace silc {
namespace {

plot::Stroke StrokeOf(Curve::Style style) {
  switch (style) {
    case Curve::Style::kSolid:
      return plot::Stroke::kSolid;
    case Curve::Style::kDashed:
      return plot::Stroke::kDashed;
    case Curve::Style::kDotted:
      return plot::Stroke::kDotted;
    case Curve::Style::kPoints:
      return plot::Stroke::kPoints;
  }
  return plot::Stroke::kSolid;
}

}  // namespace

plot::Figure FigureOf(const std::vector<const ExperimentResult*>& results,
                      const std::vector<std::string>& labels,
                      bool apart) {
  plot::Figure figure;
  if (results.empty()) return figure;
  figure.title = results.front()->experiment;
  figure.columns = apart ? std::min<int>(3, static_cast<int>(results.size())) : 2;
  const bool several = results.size() > 1;
  const auto label_of = [&](std::size_t k) {
    return k < labels.size() ? labels[k]
                             : std::filesystem::path(results[k]->policy).stem().string();
  };
  if (!several) figure.subtitle = label_of(0);

  // panels in the order in which curves name them
  std::vector<std::string> names;
  for (const ExperimentResult* result : results) {
    for (const Curve& curve : result->curves) {
      if (std::find(names.begin(), names.end(), curve.panel) == names.end()) {
        names.push_back(curve.panel);
      }
    }
  }
  const auto fill = [&](const std::string& name, std::size_t from, std::size_t to) {
    plot::Panel panel;
    panel.title = name;
    if (apart && several) panel.title += ": " + label_of(from);
    bool shared_drawn = false;
    // several policies with several curves each: colours say whose, strokes say what, each once
    std::vector<plot::Series> strokes;
    for (std::size_t k = from; k < to; ++k) {
      int colour = apart ? 1 : 1 + static_cast<int>(k) % (plot::kNumColors - 1);
      bool first = true, shared_here = false;
      for (const Curve& curve : results[k]->curves) {
        if (curve.panel != name || (curve.shared && shared_drawn)) continue;
        shared_here = shared_here || curve.shared;
        plot::Series series;
        series.x = curve.x;
        series.y = curve.y;
        series.stroke = StrokeOf(curve.style);
        series.color = curve.shared ? 0 : colour;
        series.label = curve.label;
        if (!curve.shared && several && !apart) {
          series.label = first ? label_of(k) : "";
          const bool told = curve.label.empty() ||
                            std::any_of(strokes.begin(), strokes.end(), [&](const auto& other) {
                              return other.label == curve.label;
                            });
          if (!told) {
            strokes.push_back({.label = curve.label, .color = 0, .stroke = series.stroke});
          }
        }
        panel.series.push_back(std::move(series));
        panel.x = {curve.x_label, curve.log_x, {}};
        panel.y = {curve.y_label, curve.log_y, {}};
        // with a panel to itself a policy's curves differ by colour as well
        if ((apart || !several) && !curve.shared) colour = 1 + colour % (plot::kNumColors - 1);
        first = first && curve.shared;
      }
      shared_drawn = shared_drawn || shared_here;
      if (first) continue;
      if (k > from && !apart) continue;
      for (const Span& span : results[k]->spans) {
        if (span.panel == name) panel.bands.push_back({span.label, span.x0, span.x1, 2});
      }
    }
    panel.series.insert(panel.series.end(), strokes.begin(), strokes.end());
    figure.panels.push_back(std::move(panel));
  };
  for (const std::string& name : names) {
    if (apart) {
      for (std::size_t k = 0; k < results.size(); ++k) fill(name, k, k + 1);
    } else {
      fill(name, 0, results.size());
    }
  }
  if (figure.panels.size() == 1) figure.columns = 1;
  return figure;
}

}  // namespace silc
