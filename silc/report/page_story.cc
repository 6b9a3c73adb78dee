// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>

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
  const Claim claims[] = {
      {"Stepping keeps the quadratic form under the budget: random directions over it",
       "budget",
       "form_violations_one_step",
       {"silc-paper", "compliance"},
       {"silc", "compliance"}},
      {"The same for the baseline, which has no budget",
       "budget",
       "form_violations_one_step",
       kBaseline,
       {}},
      {"Hand specified at 200 N/m, measured under 40 N",
       "hand-load",
       "step_stiffness_z",
       {"silc-paper", "soft-hand"},
       {"silc", "soft-hand"}},
      {"Hand specified at 1000 N/m, measured under 40 N",
       "hand-load",
       "step_stiffness_z",
       {"silc-paper", "hard-hand"},
       {"silc", "hard-hand"}},
      {"Walking: action jitter against the baseline",
       "walk",
       "action_jitter",
       {"silc-paper", "compliance"},
       {"silc", "compliance"}},
      {"Walking: mechanical power against the baseline",
       "walk",
       "power",
       {"silc-paper", "compliance"},
       {"silc", "compliance"}},
      {"Weight dropped from the hand: settling time against the baseline",
       "hand-impact",
       "settling_time_z",
       {"silc-paper", "soft-hand"},
       {"silc", "soft-hand"}},
      {"Weight dropped from the hand: motion in 5–100 Hz against the baseline",
       "hand-impact",
       "band_power_z",
       {"silc-paper", "soft-hand"},
       {"silc", "soft-hand"}},
      {"One foot on foam: gyro RMS against the baseline",
       "foam-step",
       "gyro_rms",
       {"silc-paper", "compliance"},
       {"silc", "compliance"}},
  };
  HtmlTable table({{"what the paper reports"},
                   {"paper", true},
                   {"ours, its condition<br><code>silc-paper</code>", true},
                   {"ours, sound<br><code>silc</code>", true},
                   {"verdict on the paper"}});
  for (const Claim& claim : claims) {
    const PaperMeasure* measure = data_.paper.Find(claim.experiment, claim.metric);
    if (!measure) continue;
    const PaperRow* paper = measure->Find(claim.paper_row);
    const bool relative = measure->against && !(*measure->against == claim.paper_row);
    const auto ours = [&](const RowKey& row) -> std::string {
      if (row.method.empty()) return "";
      const Estimate value = Get(claim.experiment, row, claim.metric);
      if (std::isnan(value.value)) return WhyMissing(row, claim.experiment);
      if (!relative) return Show(value, measure->unit);
      return ShowChange(Ratio(value, Get(claim.experiment, *measure->against, claim.metric)));
    };
    const std::string printed =
        relative ? ShowChange(paper->value / measure->Find(*measure->against)->value)
                 : ShowPaper(*paper, measure->unit);
    const bool baseline = claim.paper_row == kBaseline;
    table.Row(
        {claim.text,
         printed,
         baseline ? ours(kBaseline) + " <span class=\"ci\">baseline</span>" : ours(claim.paper_row),
         ours(claim.silc_row),
         Chip(VerdictOn(*measure, claim.paper_row))});
  }
  // what the two methods differ in, without which a reader of the first line alone would choose the
  // wrong one
  const auto held = [&](const RowKey& row) {
    const Estimate over = Get("budget", row, "worst_moments_static");
    return std::isnan(over.value) ? WhyMissing(row, "budget") : Show(over, "%");
  };
  table.Row({"Not in the paper: moments of stepping with the static stiffness over the budget",
             "–",
             held({"silc-paper", "compliance"}),
             held({"silc", "compliance"}),
             ""});
  return table.Render();
}

}  // namespace silc
