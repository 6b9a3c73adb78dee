// SPDX-License-Identifier: Apache-2.0
#include "silc/report/page_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "silc/report/html.h"

namespace silc {

std::string Chip(Verdict verdict) {
  static constexpr const char* kClasses[] = {"yes", "part", "no", "open"};
  return fmt::format(
      "<span class=\"chip {}\">{}</span>", kClasses[static_cast<int>(verdict)], Describe(verdict));
}

std::string Label(const RowKey& row) {
  return row.method + (row.mode.empty() ? "" : ", " + row.mode) +
         (row.gains.empty() ? "" : ", gains " + row.gains);
}

std::string ShowChange(double ratio) {
  if (!std::isfinite(ratio)) return "–";
  if (ratio >= 3) return "× " + ShowNumber(ratio);
  const double percent = std::round(100 * (ratio - 1));
  return (percent > 0 ? "+" : percent < 0 ? "−" : "±") + fmt::format("{:.0f} %", std::abs(percent));
}

std::string ShowChange(const Estimate& ratio) {
  std::string text = ShowChange(ratio.value);
  if (std::isfinite(ratio.low) && ratio.low > 0)
    text += " <span class=\"ci\">[" + ShowChange(ratio.low) + ", " + ShowChange(ratio.high) +
            "]</span>";
  return text;
}

double CommonScale(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  if (largest == 0) return 1;
  const double exponent = std::floor(std::log10(largest) + 1e-9);
  return exponent > 3 || exponent < -3 ? std::pow(10.0, exponent) : 1;
}

Estimate Divide(const Estimate& estimate, double by) {
  return {estimate.value / by, estimate.low / by, estimate.high / by};
}

std::string Show(const Estimate& estimate, const std::string& unit) {
  std::string text = ShowNumber(estimate.value);
  if (std::isfinite(estimate.value) && !unit.empty() && unit != "1")
    text += "&nbsp;" + EscapeHtml(unit);
  if (!std::isnan(estimate.low) && !std::isnan(estimate.high)) {
    text += " <span class=\"ci\">[" + ShowNumber(estimate.low) + ", " + ShowNumber(estimate.high) +
            "]</span>";
  }
  return text;
}

std::string Pretty(const std::string& text) {
  std::string out = EscapeHtml(text);
  const std::string plain = "K_s", lowered = "K<sub>s</sub>";
  for (auto at = out.find(plain); at != out.npos; at = out.find(plain, at + lowered.size()))
    out.replace(at, plain.size(), lowered);
  return out;
}

std::string Paragraph(const std::string& html) { return "<p>" + html + "</p>\n"; }

InlineSvg MakeInline(const plot::Panel& panel, int number) {
  plot::Figure figure;
  figure.panels = {panel};
  figure.panel_width = 520;
  figure.panel_height = 300;
  std::string svg = plot::RenderSvg(figure);
  const auto cut = [&](const std::string& from, const std::string& to) {
    const auto begin = svg.find(from), end = svg.find(to, begin + from.size());
    std::string piece = svg.substr(begin + from.size(), end - begin - from.size());
    svg.erase(begin, end + to.size() - begin);
    return piece;
  };
  InlineSvg out;
  out.style = cut("<style>", "</style>");
  cut(" xmlns=\"", "\"");  // inside HTML the element needs no name space
  cut(" width=\"", "\"");
  cut(" height=\"", "\"");
  const std::string label = "aria-label=\"";
  svg.insert(svg.find(label) + label.size(), EscapeHtml(panel.title));
  for (const std::string mark : {"id=\"c", "url(#c"}) {
    for (auto at = svg.find(mark); at != svg.npos; at = svg.find(mark, at + mark.size())) {
      svg.insert(at + mark.size() - 1, fmt::format("f{}", number));
    }
  }
  out.svg = svg;
  return out;
}

std::string ShowPaper(const PaperRow& row, const std::string& unit, double scale) {
  switch (row.says) {
    case PaperRow::Says::kNone:
      return "never";
    case PaperRow::Says::kSome:
      return "periodically";
    case PaperRow::Says::kLarger:
      return "larger";
    case PaperRow::Says::kSmaller:
      return "smaller";
    case PaperRow::Says::kNothing:
      break;
  }
  if (std::isnan(row.value)) return "–";
  std::string text = ShowNumber(row.value / scale) +
                     (unit.empty() || unit == "1" ? "" : "&nbsp;" + EscapeHtml(unit));
  if (!std::isnan(row.spread))
    text += " <span class=\"ci\">± " + ShowNumber(row.spread / scale) + "</span>";
  return text;
}

}  // namespace silc
