// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace silc {

/// A number as people read it in a table: `significant` digits, rounded half away from zero, zeros
/// at the end dropped. Digits before the point are always shown up to 99999 (or `significant` of
/// them, when that is more); beyond, and below 0.0001, it is d.dde5. NaN is "–", infinities "∞" and
/// "-∞".
///
///     FormatNumber(1234.5) = "1235"   FormatNumber(0.01234) = "0.0123"   FormatNumber(1.6e5) =
///     "1.6e5"
///
/// @pre 1 ≤ significant ≤ 17. The locale has no say.
std::string FormatNumber(double value, int significant = 3);

enum class Align { kToLeft, kToRight };

struct TableColumn {
  std::string header;
  std::string unit;  // a second line under the headers; no column has one: no such line
  Align align = Align::kToRight;
};

/// A plain-text table for terminals:
///
///     joint          K₁       Kₛ
///               N·m/rad  N·m/rad
///     ──────────────────────────
///     left_knee     128     99.6
///     ── arms ──────────────────
///     left_elbow   14.2        –
///
/// Columns are as wide as their widest cell in glyphs (DisplayWidth), two spaces apart; no line
/// ends in a space.
class Table {
 public:
  explicit Table(std::vector<TableColumn> columns);

  /// Missing cells at the end stay empty. Control characters in cells are shown as '?', so that a
  /// name out of a file cannot break the lines.
  /// @pre no more cells than columns
  void Row(std::vector<std::string> cells);

  /// A rule across the table before the next row, with a title in it if there is one.
  void Group(const std::string& title = "");

  std::string Render() const;

 private:
  struct Line {
    bool is_rule;
    std::vector<std::string> cells;  // of a rule: its title
  };
  std::vector<TableColumn> columns_;
  std::vector<Line> lines_;
};

}  // namespace silc
