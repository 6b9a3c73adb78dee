// SPDX-License-Identifier: Apache-2.0
#include "silc/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "silc/base/check.h"

namespace silc {
namespace {

// length of the UTF-8 sequence at `i`, 0 where there is none
std::size_t SequenceAt(std::string_view text, std::size_t i) {
  const auto first = static_cast<unsigned char>(text[i]);
  const std::size_t length = first < 0x80                     ? 1
                             : first >= 0xC2 && first <= 0xDF ? 2
                             : first >= 0xE0 && first <= 0xEF ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 0;
  if (length == 0 || i + length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

constexpr const char* kReplacement = "\xEF\xBF\xBD";

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = SequenceAt(text, i);
    if (length == 0) {
      out += kReplacement;
      ++i;
      continue;
    }
    if (length > 1) {
      out.append(text.substr(i, length));
    } else if (const char c = text[i]; c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if ((c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == 0x7f) {
      out += kReplacement;
    } else {
      out += c;
    }
    i += length;
  }
  return out;
}

std::string Code(std::string_view text) { return "<code>" + EscapeHtml(text) + "</code>"; }

std::string ShowNumber(double value) {
  if (std::isnan(value)) return "–";
  const std::string minus = std::signbit(value) && value != 0 ? "−" : "";
  const double size = std::abs(value);
  if (std::isinf(size)) return minus + "∞";
  if (size == 0) return "0";
  // rounded first, so that 999.7 is 1000 and not 1·10³
  int exponent = static_cast<int>(std::floor(std::log10(size)));
  double mantissa = std::round(size / std::pow(10.0, exponent) * 100) / 100;
  if (mantissa >= 10) {
    mantissa /= 10;
    ++exponent;
  }
  if (exponent < -3 || exponent > 3) {
    static constexpr std::array<const char*, 10> kRaised = {
        "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    std::string power = exponent < 0 ? "⁻" : "";
    for (const char digit : std::to_string(std::abs(exponent))) power += kRaised[digit - '0'];
    return minus + fmt::format("{:.2f}·10{}", mantissa, power);
  }
  return minus + fmt::format("{:.{}f}",
                             mantissa * std::pow(10.0, exponent),
                             std::clamp(2 - exponent, 0, 6));
}

void HtmlTable::Row(std::vector<std::string> cells, std::string style) {
  SILC_CHECK(cells.size() == columns_.size());
  rows_.push_back({std::move(cells), std::move(style), false});
}

void HtmlTable::Across(const std::string& name, const std::string& cell) {
  rows_.push_back({{name, cell}, "missing", false, true});
}

void HtmlTable::Group(const std::string& title) { rows_.push_back({{title}, "", true}); }

std::string HtmlTable::Render(const std::string& caption) const {
  // scrolled with the keyboard too, hence tabindex
  std::string out = "<div class=\"scroll\" tabindex=\"0\"><table>\n";
  if (!caption.empty()) out += "<caption>" + caption + "</caption>\n";
  out += "<thead><tr>";
  for (const Column& column : columns_) {
    out += fmt::format(
        "<th scope=\"col\"{}>{}</th>", column.numeric ? " class=\"num\"" : "", column.title);
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const Line& row : rows_) {
    if (row.group) {
      out += fmt::format("<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{}\">{}</th></tr>\n",
                         columns_.size(),
                         row.cells.front());
      continue;
    }
    if (row.across) {
      out +=
          fmt::format("<tr class=\"{}\"><th scope=\"row\">{}</th><td colspan=\"{}\">{}</td></tr>\n",
                      row.style,
                      row.cells[0],
                      columns_.size() - 1,
                      row.cells[1]);
      continue;
    }
    out += row.style.empty() ? "<tr>" : "<tr class=\"" + row.style + "\">";
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const char* tag = i == 0 ? "th" : "td";
      out += fmt::format("<{}{}{}>{}</{}>",
                         tag,
                         i == 0 ? " scope=\"row\"" : "",
                         columns_[i].numeric ? " class=\"num\"" : "",
                         row.cells[i],
                         tag);
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string FindHtmlFault(std::string_view html) {
  static const std::vector<std::string_view> kVoid = {"meta", "img", "br", "hr", "link", "input"};
  static const std::vector<std::string_view> kEntities = {"amp", "lt", "gt", "quot", "#39", "nbsp"};
  std::vector<std::string> open;
  const auto fault = [&](std::size_t at, const std::string& what) {
    const auto begin = at > 40 ? at - 40 : 0;
    return what + " near '" + std::string(html.substr(begin, 90)) + "'";
  };
  for (std::size_t i = 0; i < html.size();) {
    if (html[i] == '&') {
      const auto end = html.find(';', i);
      const auto name = html.substr(i + 1, end == html.npos ? 0 : end - i - 1);
      if (std::find(kEntities.begin(), kEntities.end(), name) == kEntities.end())
        return fault(i, "an '&' that begins no entity");
    }
    if (html[i] == '>') return fault(i, "a '>' that closes nothing");
    if (html[i] != '<') {
      ++i;
      continue;
    }
    if (html.substr(i, 4) == "<!--" || html.substr(i, 2) == "<!") {
      const auto end = html.find('>', i);
      if (end == html.npos) return fault(i, "an open declaration");
      i = end + 1;
      continue;
    }
    // a tag: name, then attributes with quoted values
    std::size_t at = i + 1;
    const bool closing = at < html.size() && html[at] == '/';
    if (closing) ++at;
    const std::size_t name_begin = at;
    while (at < html.size() && (std::isalnum(static_cast<unsigned char>(html[at])) != 0)) ++at;
    const std::string name(html.substr(name_begin, at - name_begin));
    if (name.empty()) return fault(i, "a '<' that begins no tag");
    bool self_closing = false;
    while (at < html.size() && html[at] != '>') {
      if (html[at] == '"') {
        at = html.find('"', at + 1);
        if (at == html.npos) return fault(i, "an attribute without its closing quote");
      } else if (html[at] == '=' && (at + 1 >= html.size() || html[at + 1] != '"')) {
        return fault(i, "an attribute without quotes");
      } else if (html[at] == '<') {
        return fault(i, "a tag that is not closed");
      }
      self_closing = html[at] == '/';
      ++at;
    }
    if (at >= html.size()) return fault(i, "a tag that is not closed");
    i = at + 1;
    if (closing) {
      if (open.empty() || open.back() != name) {
        return fault(
            at, "</" + name + "> where " + (open.empty() ? "nothing" : open.back()) + " is open");
      }
      open.pop_back();
    } else if (!self_closing && std::find(kVoid.begin(), kVoid.end(), name) == kVoid.end()) {
      open.push_back(name);
      if (name == "style") i = std::min(html.find("</style", i), html.size());
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

}  // namespace silc
