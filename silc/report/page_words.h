// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/plot/figure.h"
#include "silc/policy/method.h"
#include "silc/report/paper.h"
#include "silc/report/verdict.h"

/// Small pieces the report's page is made of.
namespace silc {

inline const RowKey kBaseline{Name(Method::kBaseline), ""};  // on the robot's default servo
inline constexpr const char* kNotTrained = "not trained yet";

std::string Chip(Verdict verdict);
std::string Label(const RowKey& row);
/// "+12 %", "−49 %"; a factor where percent would be silly.
std::string ShowChange(double ratio);
std::string ShowChange(const Estimate& ratio);
/// A power of ten all numbers of a column share, for those too large or small to read; else 1.
double CommonScale(const std::vector<double>& values);
Estimate Divide(const Estimate& estimate, double by);
std::string Show(const Estimate& estimate, const std::string& unit = "");
/// What the paper says of a row: a number with its spread, or a word.
std::string ShowPaper(const PaperRow& row, const std::string& unit, double scale = 1);
/// Plain text with its indices lowered: K_s.
std::string Pretty(const std::string& text);
std::string Paragraph(const std::string& html);

/// SVG of one panel, ready to stand inside the page: its style sheet goes to the head once, its
/// clip paths get names of their own, its size is the column's.
struct InlineSvg {
  std::string svg, style;
};
InlineSvg MakeInline(const plot::Panel& panel, int number);

}  // namespace silc
