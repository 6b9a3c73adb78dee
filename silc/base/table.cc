// SPDX-License-Identifier: Apache-2.0
#include "silc/base/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "silc/base/check.h"
#include "silc/base/utf8.h"

namespace silc {
namespace {

// A positive number 0.d₁d₂d₃… · 10^point.
struct Decimal {
  std::string digits;  // no zeros at the end
  int point;
};

// The shortest digits that read back as the same double: rounding these, and not the binary value,
// gives what a reader expects of 1.005.
Decimal ShortestDecimal(double positive) {
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, positive, std::chars_format::scientific).ptr;
  char* exponent_mark = std::find(buffer, end, 'e');
  Decimal decimal{std::string(1, buffer[0]), 0};
  if (exponent_mark - buffer > 2) decimal.digits.append(buffer + 2, exponent_mark);
  const std::string exponent(exponent_mark + 1, end);
  decimal.point = std::atoi(exponent.c_str()) + 1;
  return decimal;
}

void DropTrailingZeros(std::string* digits) { digits->erase(digits->find_last_not_of('0') + 1); }

// Keeps the first `count` ≥ 1 digits, half away from zero; may carry into a new leading digit.
Decimal Round(Decimal decimal, int count) {
  if (static_cast<int>(decimal.digits.size()) > count) {
    const bool up = decimal.digits[count] >= '5';
    decimal.digits.resize(count);
    if (up) {
      int i = count - 1;
      while (i >= 0 && decimal.digits[i] == '9') decimal.digits[i--] = '0';
      if (i >= 0) {
        ++decimal.digits[i];
      } else {
        decimal.digits.insert(decimal.digits.begin(), '1');
        ++decimal.point;
      }
    }
  }
  DropTrailingZeros(&decimal.digits);
  return decimal;
}

std::string Rule(int width, const std::string& title) {
  std::string text;
  int used = 0;
  if (!title.empty()) {
    text.append("── ").append(title).append(" ──");
    used = DisplayWidth(text);
  }
  for (; used < width; ++used) text += "─";
  return text;
}

}  // namespace

std::string FormatNumber(double value, int significant) {
  SILC_CHECK(significant >= 1 && significant <= 17);
  if (std::isnan(value)) return "–";
  if (std::isinf(value)) return value > 0 ? "∞" : "-∞";
  if (value == 0) return "0";
  const Decimal exact = ShortestDecimal(std::abs(value));

  const int max_before_point = std::max(5, significant);
  constexpr int kMinPoint = -3;  // 0.0001
  const Decimal fixed = Round(exact, std::max(significant, exact.point));
  std::string text = value < 0 ? "-" : "";
  if (fixed.point > max_before_point || fixed.point < kMinPoint) {
    const Decimal rounded = Round(exact, significant);
    text += rounded.digits[0];
    if (rounded.digits.size() > 1) text.append(".").append(rounded.digits, 1);
    return text.append("e").append(std::to_string(rounded.point - 1));
  }
  if (fixed.point <= 0) return text.append("0.").append(-fixed.point, '0').append(fixed.digits);
  const std::size_t num_before = fixed.point;
  if (fixed.digits.size() <= num_before) {
    return text.append(fixed.digits).append(num_before - fixed.digits.size(), '0');
  }
  return text.append(fixed.digits, 0, num_before).append(".").append(fixed.digits, num_before);
}

Table::Table(std::vector<TableColumn> columns) : columns_(std::move(columns)) {
  SILC_CHECK(!columns_.empty());
}

void Table::Row(std::vector<std::string> cells) {
  SILC_CHECK(cells.size() <= columns_.size());
  for (std::string& cell : cells) {
    for (char& c : cell) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
    }
  }
  cells.resize(columns_.size());
  lines_.push_back({false, std::move(cells)});
}

void Table::Group(const std::string& title) { lines_.push_back({true, {title}}); }

std::string Table::Render() const {
  constexpr int kGap = 2;
  std::vector<std::string> headers, units;
  std::vector<int> widths;
  bool any_unit = false;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    headers.push_back(columns_[i].header);
    units.push_back(columns_[i].unit);
    any_unit = any_unit || !columns_[i].unit.empty();
    int width = std::max(DisplayWidth(headers[i]), DisplayWidth(units[i]));
    for (const Line& line : lines_) {
      if (!line.is_rule) width = std::max(width, DisplayWidth(line.cells[i]));
    }
    widths.push_back(width);
  }
  int total = kGap * (static_cast<int>(columns_.size()) - 1);
  for (const int width : widths) total += width;
  for (const Line& line : lines_) {  // a title longer than the table widens its rules
    if (line.is_rule) total = std::max(total, DisplayWidth(Rule(0, line.cells[0])));
  }

  std::string text;
  const auto append = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - DisplayWidth(cells[i]), ' ');
      if (i > 0) line += std::string(kGap, ' ');
      line += columns_[i].align == Align::kToLeft ? cells[i] + padding : padding + cells[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  append(headers);
  if (any_unit) append(units);
  // a group that opens the table takes the place of the rule under the headers
  if (lines_.empty() || !lines_[0].is_rule) text += Rule(total, "") + "\n";
  for (const Line& line : lines_) {
    if (line.is_rule) {
      text += Rule(total, line.cells[0]) + "\n";
    } else {
      append(line.cells);
    }
  }
  return text;
}

}  // namespace silc
