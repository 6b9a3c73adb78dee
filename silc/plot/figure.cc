// SPDX-License-Identifier: Apache-2.0
#include "silc/plot/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "silc/base/check.h"
#include "silc/plot/ticks.h"

namespace silc::plot {
namespace {

// margins of a panel around its plotting area [px]
constexpr double kLeft = 62, kRight = 14, kTop = 44, kBottom = 42;
constexpr double kHeader = 58;      // title and subtitle above the grid
constexpr double kLegendRow = 15;   // one legend line
constexpr double kCharWidth = 5.9;  // mean advance at 11 px, for laying out legends without a font

// Okabe and Ito's palette, yellow left out (unreadable on white); entry 0 follows the text colour
constexpr const char* kLight[kNumColors] = {
    "#1b1f24", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a7f87"};
constexpr const char* kDark[kNumColors] = {
    "#e6edf3", "#56b4e9", "#ff8c42", "#2fd6a3", "#e6a5cc", "#9bd4f5", "#f0b84a", "#9aa3ad"};

std::string Escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Code points, near enough to glyphs for our labels.
double TextWidth(const std::string& text) {
  const auto glyphs =
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
  return kCharWidth * static_cast<double>(glyphs);
}

// Numbers beyond this are not drawn, so that no margin, quotient or difference of limits overflows.
constexpr double kLargest = 1e100;

// An axis as numbers: limits in data units, and the map to [0, 1].
struct Scale {
  double low = 0, high = 1;
  bool log = false;

  bool Draws(double value) const {
    return std::abs(value) <= kLargest && (!log || value >= 1 / kLargest);
  }
  double Unit(double value) const {
    return log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  }
};

// Limits that hold every drawable value, with a margin so that no curve lies on the frame.
std::optional<Scale> FitScale(const Axis& axis, const std::vector<double>& values) {
  Scale scale;
  scale.log = axis.log;
  if (axis.range) {
    std::tie(scale.low, scale.high) = *axis.range;
    SILC_CHECK(scale.low < scale.high && (!axis.log || scale.low > 0));
    return scale;
  }
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!scale.Draws(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) return std::nullopt;
  if (axis.log) {
    const double margin = std::max(1.1, std::pow(high / low, 0.05));
    scale.low = low / margin;
    scale.high = high * margin;
  } else {
    double margin = 0.05 * (high - low);
    // a constant gets room too, and so does what a double can hardly tell from one
    const double least = 1e-12 * std::max(std::abs(low), std::abs(high)) + 1 / kLargest;
    if (margin < least) margin = std::max(0.05 * std::abs(high), 1e-9);
    scale.low = low - margin;
    scale.high = high + margin;
  }
  return scale;
}

class PanelRenderer {
 public:
  PanelRenderer(const Panel& panel, double x, double y, double width, double height, int id)
      : panel_(panel), x_(x), y_(y), width_(width), height_(height), id_(id) {}

  std::string Render() {
    Write("<g transform=\"translate({:.1f},{:.1f})\">\n", x_, y_);
    Write("<text class=\"t\" x=\"{:.1f}\" y=\"14\">{}</text>\n", kLeft, Escape(panel_.title));
    Layout();
    if (x_scale_ && y_scale_) {
      Bands();
      Grid();
      Curves();
    } else {
      Write("<text class=\"n\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
            left_ + area_width_ / 2,
            top_ + area_height_ / 2,
            Escape(panel_.empty));
    }
    Frame();
    Legend();
    out_ += "</g>\n";
    return std::move(out_);
  }

 private:
  struct Entry {
    std::string label;
    ColorIndex color;
    char kind;  // 'l'ine, 'd'ashed, 'p'oints, 'b'and
  };

  template <typename... Args>
  void Write(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
  }

  void Layout() {
    // legend entries flow into rows; every row pushes the plotting area down
    for (const Series& series : panel_.series) {
      const char kind = series.stroke == Stroke::kPoints  ? 'p'
                        : series.stroke == Stroke::kSolid ? 'l'
                                                          : 'd';
      AddEntry({series.label, series.color, kind});
    }
    for (const Level& level : panel_.levels) AddEntry({level.label, level.color, 'd'});
    for (const Band& band : panel_.bands) AddEntry({band.label, band.color, 'b'});
    double used = 0;
    int rows = entries_.empty() ? 0 : 1;
    for (const Entry& entry : entries_) {
      const double advance = 30 + TextWidth(entry.label);
      if (used > 0 && used + advance > width_ - kLeft - kRight) {
        used = 0;
        ++rows;
      }
      positions_.emplace_back(kLeft + used, 14 + kLegendRow * rows);
      used += advance;
    }
    top_ = kTop - kLegendRow + kLegendRow * std::max(rows, 1) - 8;
    left_ = kLeft;
    area_width_ = width_ - kLeft - kRight;
    area_height_ = height_ - top_ - kBottom;

    std::vector<double> xs, ys;
    for (const Series& series : panel_.series) {
      SILC_CHECK(series.x.size() == series.y.size());
      SILC_CHECK(0 <= series.color && series.color < kNumColors);
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        if (!std::isfinite(series.y[i])) continue;
        xs.push_back(series.x[i]);
        ys.push_back(series.y[i]);
      }
    }
    for (const Level& level : panel_.levels) ys.push_back(level.y);
    x_scale_ = FitScale(panel_.x, xs);
    y_scale_ = xs.empty() ? std::nullopt : FitScale(panel_.y, ys);
    if (panel_.equal_aspect && x_scale_ && y_scale_) EqualiseUnits();
  }

  void AddEntry(Entry entry) {
    if (entry.label.empty()) return;
    for (const Entry& known : entries_) {
      if (known.label == entry.label) return;
    }
    entries_.push_back(std::move(entry));
  }

  // widen the axis whose unit is longer on paper, about its middle
  void EqualiseUnits() {
    const double x_unit = area_width_ / (x_scale_->high - x_scale_->low);
    const double y_unit = area_height_ / (y_scale_->high - y_scale_->low);
    Scale& wide = x_unit > y_unit ? *x_scale_ : *y_scale_;
    const double factor = std::max(x_unit, y_unit) / std::min(x_unit, y_unit);
    const double middle = (wide.low + wide.high) / 2, half = factor * (wide.high - wide.low) / 2;
    wide.low = middle - half;
    wide.high = middle + half;
  }

  double PixelX(double value) const { return left_ + area_width_ * x_scale_->Unit(value); }
  double PixelY(double value) const { return top_ + area_height_ * (1 - y_scale_->Unit(value)); }

  void Bands() {
    for (const Band& band : panel_.bands) {
      if (!x_scale_->Draws(band.x0) || !x_scale_->Draws(band.x1)) continue;
      const double x0 = PixelX(std::max(band.x0, x_scale_->low));
      const double x1 = PixelX(std::min(band.x1, x_scale_->high));
      if (x1 <= x0) continue;
      Write(
          "<rect class=\"f{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
          "opacity=\"0.13\"/>\n",
          band.color,
          x0,
          top_,
          x1 - x0,
          area_height_);
    }
  }

  void Grid() {
    const int x_count = std::max(2, static_cast<int>(area_width_ / 55));
    const int y_count = std::max(2, static_cast<int>(area_height_ / 32));
    const auto ticks = [](const Scale& scale, int count) {
      return scale.log ? LogTicks(scale.low, scale.high, count)
                       : LinearTicks(scale.low, scale.high, count);
    };
    for (const double tick : ticks(*x_scale_, x_count)) {
      const double x = PixelX(tick);
      Write("<path class=\"g\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", x, top_, top_ + area_height_);
      Write("<text class=\"k\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
            x,
            top_ + area_height_ + 14,
            TickLabel(tick));
    }
    for (const double tick : ticks(*y_scale_, y_count)) {
      const double y = PixelY(tick);
      Write("<path class=\"g\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", left_, y, left_ + area_width_);
      Write("<text class=\"k\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
            left_ - 5,
            y + 3.5,
            TickLabel(tick));
    }
  }

  void Curves() {
    Write(
        "<clipPath id=\"c{}\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>"
        "</clipPath>\n<g clip-path=\"url(#c{})\">\n",
        id_,
        left_,
        top_,
        area_width_,
        area_height_,
        id_);
    for (const Level& level : panel_.levels) {
      if (!y_scale_->Draws(level.y)) continue;
      Write(
          "<path class=\"s{}\" stroke-dasharray=\"7 4\" stroke-width=\"1.4\" d=\"M{:.1f} "
          "{:.1f}H{:.1f}\"/>\n",
          level.color,
          left_,
          PixelY(level.y),
          left_ + area_width_);
    }
    for (const Series& series : panel_.series) {
      series.stroke == Stroke::kPoints ? Points(series) : Line(series);
    }
    out_ += "</g>\n";
  }

  bool Drawable(const Series& series, std::size_t i) const {
    return x_scale_->Draws(series.x[i]) && y_scale_->Draws(series.y[i]);
  }

  void Line(const Series& series) {
    std::string path;
    bool pen_down = false;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!Drawable(series, i)) {
        pen_down = false;
        continue;
      }
      fmt::format_to(std::back_inserter(path),
                     "{}{:.1f} {:.1f}",
                     pen_down ? "L" : "M",
                     PixelX(series.x[i]),
                     PixelY(series.y[i]));
      pen_down = true;
    }
    if (path.empty()) return;
    const char* dash = series.stroke == Stroke::kDashed   ? " stroke-dasharray=\"6 4\""
                       : series.stroke == Stroke::kDotted ? " stroke-dasharray=\"1.5 3\""
                                                          : "";
    Write("<path class=\"s{}\"{} stroke-width=\"{:.2g}\" d=\"{}\"/>\n",
          series.color,
          dash,
          series.width,
          path);
  }

  void Points(const Series& series) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!Drawable(series, i)) continue;
      Write("<circle class=\"f{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.2g}\"/>\n",
            series.color,
            PixelX(series.x[i]),
            PixelY(series.y[i]),
            1.4 * series.width);
    }
  }

  void Frame() {
    Write("<rect class=\"b\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
          left_,
          top_,
          area_width_,
          area_height_);
    Write("<text class=\"a\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
          left_ + area_width_ / 2,
          top_ + area_height_ + 31,
          Escape(panel_.x.label));
    Write(
        "<text class=\"a\" transform=\"translate(13,{:.1f}) rotate(-90)\" "
        "text-anchor=\"middle\">{}</text>\n",
        top_ + area_height_ / 2,
        Escape(panel_.y.label));
  }

  void Legend() {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const auto [x, y] = positions_[i];
      const Entry& entry = entries_[i];
      if (entry.kind == 'b') {
        Write(
            "<rect class=\"f{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"9\" "
            "opacity=\"0.3\"/>\n",
            entry.color,
            x,
            y - 8);
      } else if (entry.kind == 'p') {
        Write("<circle class=\"f{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"/>\n",
              entry.color,
              x + 7,
              y - 3.5);
      } else {
        Write("<path class=\"s{}\" stroke-width=\"2\"{} d=\"M{:.1f} {:.1f}h14\"/>\n",
              entry.color,
              entry.kind == 'd' ? " stroke-dasharray=\"5 3\"" : "",
              x,
              y - 3.5);
      }
      Write("<text class=\"l\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
            x + 18,
            y,
            Escape(entry.label));
    }
  }

  const Panel& panel_;
  double x_, y_, width_, height_;
  int id_;
  double left_ = 0, top_ = 0, area_width_ = 0, area_height_ = 0;
  std::optional<Scale> x_scale_, y_scale_;
  std::vector<Entry> entries_;
  std::vector<std::pair<double, double>> positions_;
  std::string out_;
};

std::string StyleSheet() {
  std::string css =
      "text{font-family:system-ui,-apple-system,'Segoe "
      "UI',Helvetica,Arial,sans-serif;font-size:11px;"
      "fill:#1b1f24}.h{font-size:17px;font-weight:600}.u{font-size:12px;fill:#57606a}"
      ".t{font-size:12.5px;font-weight:600}.k{font-size:10px;fill:#57606a}.n{fill:#8b949e}"
      ".g{stroke:#d8dee4;stroke-width:0.7;fill:none}.b{stroke:#8b949e;stroke-width:0.9;fill:none}"
      ".p{fill:#ffffff}";
  std::string dark =
      "text{fill:#e6edf3}.u,.k{fill:#9aa3ad}.g{stroke:#2b323b}.b{stroke:#6e7681}.p{fill:#0d1117}";
  for (int i = 0; i < kNumColors; ++i) {
    css += fmt::format(".s{}{{stroke:{};fill:none;stroke-linejoin:round}}.f{}{{fill:{}}}",
                       i,
                       kLight[i],
                       i,
                       kLight[i]);
    dark += fmt::format(".s{}{{stroke:{}}}.f{}{{fill:{}}}", i, kDark[i], i, kDark[i]);
  }
  return css + "@media(prefers-color-scheme:dark){" + dark + "}";
}

}  // namespace

std::string RenderSvg(const Figure& figure) {
  SILC_CHECK(figure.columns >= 1);
  const int count = static_cast<int>(figure.panels.size());
  const int rows = (count + figure.columns - 1) / figure.columns;
  const double header = figure.title.empty() ? 10 : kHeader;
  const double width = figure.columns * figure.panel_width + 16;
  const double height = header + rows * (figure.panel_height + 8) + 6;

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" "
      "height=\"{:.0f}\" role=\"img\" aria-label=\"{}\">\n<style>{}</style>\n"
      "<rect class=\"p\" width=\"100%\" height=\"100%\"/>\n",
      width,
      height,
      width,
      height,
      Escape(figure.title),
      StyleSheet());
  if (!figure.title.empty()) {
    out += fmt::format("<text class=\"h\" x=\"16\" y=\"26\">{}</text>\n", Escape(figure.title));
    out += fmt::format("<text class=\"u\" x=\"16\" y=\"44\">{}</text>\n", Escape(figure.subtitle));
  }
  for (int i = 0; i < count; ++i) {
    const int column = i % figure.columns, row = i / figure.columns;
    const double x = 4 + column * figure.panel_width;
    const double y = header + row * (figure.panel_height + 8);
    out +=
        PanelRenderer(figure.panels[i], x, y, figure.panel_width, figure.panel_height, i).Render();
  }
  return out + "</svg>\n";
}

}  // namespace silc::plot
