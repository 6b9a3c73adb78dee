// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace silc {

/// Text made safe for HTML content and quoted attributes. Bytes that are no UTF-8 and control
/// characters become U+FFFD.
std::string EscapeHtml(std::string_view text);

/// <code>…</code> of a text.
std::string Code(std::string_view text);

/// Three significant digits; powers of ten where plain digits would be long ("4.13·10⁴", as text).
/// Not finite: "–", "∞".
std::string ShowNumber(double value);

/// A table that reads on a phone: its first column stays while the rest scrolls. Cells are HTML.
class HtmlTable {
 public:
  struct Column {
    std::string title;     // HTML
    bool numeric = false;  // to the right, digits of one width
  };
  explicit HtmlTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// As many cells as columns. `style`: class of the row, "" for none.
  void Row(std::vector<std::string> cells, std::string style = "");
  /// A row with a name and one cell over all other columns: why there are no numbers.
  void Across(const std::string& name, const std::string& cell);
  /// A row across the table: the name of what follows.
  void Group(const std::string& title);
  bool empty() const { return rows_.empty(); }
  std::string Render(const std::string& caption = "") const;

 private:
  struct Line {
    std::vector<std::string> cells;
    std::string style;
    bool group = false, across = false;
  };
  std::vector<Column> columns_;
  std::vector<Line> rows_;
};

/// Whether every element is closed in the order it was opened, attributes are quoted and entities
/// known: what a browser would otherwise mend in silence. "" or the first fault with its place.
std::string FindHtmlFault(std::string_view html);

}  // namespace silc
