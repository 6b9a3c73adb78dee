// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>

#include "silc/eval/experiment_metrics.h"
#include "silc/report/html.h"
#include "silc/report/page_words.h"
#include "silc/report/page_writer.h"

namespace silc {

std::string PageWriter::Story() {
  std::string out;
  out += Paragraph(
      "A policy that reads joint angles and answers with joint targets is a spring: its "
      "Jacobian, "
      "times the servo’s gain, is a stiffness. The paper bounds that stiffness in training, so "
      "that a humanoid is as soft at its centre of mass and its hands as somebody wrote down in "
      "N/m. The idea stands, and it can be measured.");
  out += Paragraph(
      "Two things in it do not stand. The printed condition does not bound the stiffness it sets "
      "out to bound (<a href=\"#errata\">errata</a>, items 2 to 6). And it looks at the newest "
      "frame of joint angles alone, the stiffness K₁ of one control step, while a robot that is "
      "leaned on moves all its frames and its own previous actions with it; what is felt is the "
      "static stiffness K<sub>s</sub> (items 9 and 10). Method <code>silc-paper</code> trains "
      "with the printed condition, at the limit its card names (at the printed limit it has not "
      "learnt to walk); method <code>silc</code> bounds K<sub>s</sub> by a condition that is sound "
      "in every contact mode.");
  out += Headline();
  out +=
      "<p class=\"note\">" + EscapeHtml(data_.settings) +
      " Brackets are 95 % intervals by bootstrap over trials and training seeds. Verdicts follow "
      "a <a href=\"#rerun\">written rule</a>; “open” means that there is nothing to judge "
      "yet.</p>\n";
  std::set<std::string> missing;
  for (const PaperMeasure& measure : data_.paper.measures) {
    for (const PaperRow& row : measure.rows) {
      if (!Has(row.row)) missing.insert(Label(row.row));
    }
  }
  if (!missing.empty()) {
    std::string list;
    for (const std::string& row : missing) list += (list.empty() ? "" : "; ") + EscapeHtml(row);
    out += Paragraph("Rows of the paper without a trained policy so far: " + list +
                     ". They are shown as “" + kNotTrained + "”; no number stands in for them.");
  }
  return out;
}

std::string PageWriter::Headline() {
  HtmlTable table({{"what the paper reports"},
                   {"paper", true},
                   {"ours, its condition<br><code>silc-paper</code>", true},
                   {"ours, sound<br><code>silc</code>", true},
                   {"verdict on the paper"}});
  for (const PaperClaim& claim : data_.paper.claims) {
    const PaperMeasure& measure = *data_.paper.Find(claim.metric);
    const PaperRow& paper = *measure.Find(claim.row);
    const bool relative = measure.against && !(*measure.against == claim.row);
    const auto ours = [&](const RowKey& row) -> std::string {
      const Estimate value = Get(row, claim.metric);
      if (std::isnan(value.value)) return WhyMissing(row, claim.metric->experiment);
      if (!relative) return Show(value, claim.metric->unit);
      return ShowChange(Ratio(value, Get(OnServoOf(row, *measure.against), claim.metric)));
    };
    const std::string printed =
        relative ? ShowChange(paper.value / measure.Find(*measure.against)->value)
                 : ShowPaper(paper, claim.metric->unit);
    const std::optional<RowKey> silc_row = data_.paper.OurRowBeside(claim.row);
    table.Row({EscapeHtml(claim.text),
               printed,
               silc_row ? ours(claim.row)
                        : ours(claim.row) + " <span class=\"ci\">" + EscapeHtml(Label(claim.row)) +
                              "</span>",
               silc_row ? ours(*silc_row) : "",
               Chip(VerdictOn(measure, claim.row))});
  }
  // what the two methods differ in, without which a reader of the first line alone would choose the
  // wrong one
  const metric::BudgetMetrics& budget = metric::Budget();
  const auto held = [&](const RowKey& row) {
    const Estimate over = Get(row, budget.worst_moments_static);
    return std::isnan(over.value) ? WhyMissing(row, budget.experiment())
                                  : Show(over, budget.worst_moments_static->unit);
  };
  std::vector<RowKey> shown;
  for (const RowKey& row : data_.paper.RowsOf({budget.random_direction_violations_one_step})) {
    const std::optional<RowKey> silc_row = data_.paper.OurRowBeside(row);
    if (!silc_row) continue;
    table.Row({"Not in the paper: moments of stepping with the static stiffness over the budget",
               "–",
               held(row),
               held(*silc_row),
               ""});
    shown.push_back(row);
    shown.push_back(*silc_row);
  }
  return table.Render() + Channels(shown, {budget.worst_moments_static});
}

}  // namespace silc
