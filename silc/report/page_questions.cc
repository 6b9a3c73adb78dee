// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "silc/report/html.h"
#include "silc/report/page_words.h"
#include "silc/report/page_writer.h"

namespace silc {
namespace {

std::vector<RowKey> AfterBaseline(std::vector<RowKey> rows) {
  rows.insert(rows.begin(), kBaseline);
  return rows;
}

}  // namespace

std::string PageWriter::Question(int number,
                                 const std::string& question,
                                 const std::string& answer) {
  return fmt::format("<h3 id=\"q{}\">{}. {}</h3>\n<div class=\"answer\">{}</div>\n",
                     number,
                     number,
                     question,
                     answer);
}

std::string PageWriter::Compare(const std::vector<RowKey>& rows,
                                const std::vector<Wanted>& wanted) {
  std::vector<HtmlTable::Column> columns = {{"policy"}};
  for (const Wanted& w : wanted) columns.push_back({Pretty(w.title), true});
  HtmlTable table(columns);
  for (const RowKey& row : rows) {
    if (!Has(row)) {
      table.Across(EscapeHtml(Label(row)), kNotTrained);
      continue;
    }
    std::vector<std::string> cells = {EscapeHtml(Label(row))};
    for (const Wanted& w : wanted) {
      const Estimate value = Get(w.experiment, row, w.metric);
      cells.push_back(std::isnan(value.value) ? WhyMissing(row, w.experiment) : Show(value));
    }
    table.Row(std::move(cells));
  }
  return table.Render();
}

std::string PageWriter::Absent(const std::vector<RowKey>& rows) const {
  std::string list;
  int count = 0;
  for (const RowKey& row : rows) {
    if (Has(row)) continue;
    list += (list.empty() ? "" : ", ") + Code(Name(row));
    ++count;
  }
  if (count == 0) return "";
  return Paragraph(
      list + (count == 1 ? ": no policy for this row yet." : ": no policies for these rows yet."));
}

std::string PageWriter::Questions() {
  std::string out;
  const RowKey paper_soft{"silc-paper", "soft-hand"}, paper_hard{"silc-paper", "hard-hand"},
      silc_soft{"silc", "soft-hand"}, silc_hard{"silc", "hard-hand"},
      paper_compliance{"silc-paper", "compliance"}, silc_compliance{"silc", "compliance"};
  {
    const std::vector<RowKey> rows = {kBaseline, kScalar, paper_compliance, silc_compliance};
    std::string answer;
    for (const RowKey& row : rows) {
      const Estimate over = Get("budget", row, "form_violations_one_step");
      const Estimate moments = Get("budget", row, "form_moments_one_step");
      const Estimate worst = Get("budget", row, "worst_moments_one_step");
      if (std::isnan(over.value)) continue;
      const char* word = over.value == 0    ? "never exceeds it along a random direction"
                         : over.value < 0.1 ? "hardly exceeds it along random directions"
                                            : "exceeds it";
      answer += Paragraph(Code(Name(row)) +
                          fmt::format(" {}: {} % of the random directions, {} % of the moments "
                                      "with one of 64 over, and {} % of the "
                                      "moments in its worst direction.",
                                      word,
                                      Show(over),
                                      Show(moments),
                                      Show(worst)));
    }
    out += Question(1,
                    "Does <code>silc-paper</code> keep the quadratic form under the budget while "
                    "<code>baseline</code> and <code>scalar-lcp</code> exceed it?",
                    answer + Absent(rows));
    out += Compare(rows,
                   {{"random directions over, K₁ [%]", "budget", "form_violations_one_step"},
                    {"worst direction over, K₁ [% of moments]", "budget", "worst_moments_one_step"},
                    {"worst eigenvalue p99, K₁", "budget", "worst_one_step_p99"},
                    {"worst direction over, K_s [% of moments]", "budget", "worst_moments_static"},
                    {"σ p99, (S7c) on K_s", "budget", "disc_p99"},
                    {"moments with a static stiffness [%]", "budget", "sound_share"}});
  }
  {
    // signs and sizes over the published differences of Table II
    int judged = 0, same_sign = 0, half_size = 0, total = 0;
    HtmlTable table({{"policy"},
                     {"action jitter", true},
                     {"velocity jitter", true},
                     {"torque jitter", true},
                     {"power", true}});
    const PaperMeasure* first = data_.paper.Find("walk", "action_jitter");
    std::vector<RowKey> rows;
    if (first) {
      for (const PaperRow& row : first->rows) rows.push_back(row.row);
    }
    for (const char* mode : {"high-stiff", "compliance", "hard-nullspace"})
      rows.push_back({"silc", mode});
    for (const RowKey& row : rows) {
      if (row == kBaseline) continue;
      std::vector<std::string> cells = {EscapeHtml(Label(row))};
      for (const char* metric : {"action_jitter", "velocity_jitter", "torque_jitter", "power"}) {
        const PaperMeasure* measure = data_.paper.Find("walk", metric);
        const PaperRow* printed = measure ? measure->Find(row) : nullptr;
        const Estimate ours = Ratio(Get("walk", row, metric), Get("walk", kBaseline, metric));
        std::string cell;
        if (printed) {
          const double paper = printed->value / measure->Find(kBaseline)->value;
          cell = ShowChange(paper) + " → ";
          ++total;
          if (!std::isnan(ours.value)) {
            ++judged;
            const double share = std::log(ours.value) / std::log(paper);
            same_sign += share > 0;
            half_size += share >= kEffectShare;
          }
        }
        cell += std::isnan(ours.value) ? (Has(row) ? "–" : kNotTrained) : ShowChange(ours);
        cells.push_back(cell);
      }
      table.Row(std::move(cells), Has(row) ? "" : "missing");
    }
    std::string answer =
        judged == 0
            ? Paragraph(fmt::format("None of the {} differences from the baseline that Table II "
                                    "prints can be judged with the policies "
                                    "there are.",
                                    total))
            : Paragraph(fmt::format(
                  "Of the {} differences from the baseline that Table II prints, {} can be "
                  "judged with the policies "
                  "there are; {} have the paper’s sign and {} at least half of its size.",
                  total,
                  judged,
                  same_sign,
                  half_size));
    out +=
        Question(2,
                 "Table II: what are the signs and sizes of the differences in jitter and energy?",
                 answer + Absent(rows));
    out += Paragraph("Against the baseline, paper → ours:") + table.Render();
  }
  {
    const std::vector<RowKey> rows = {paper_soft, paper_hard, silc_soft, silc_hard};
    std::string answer;
    for (const RowKey& row : rows) {
      const Estimate step = Get("hand-load", row, "step_stiffness_z");
      const Estimate spec = Get("hand-load", row, "spec_z");
      if (std::isnan(step.value)) continue;
      answer += Paragraph(Code(Name(row)) +
                          fmt::format(": {} N/m measured where {} N/m is specified ({}).",
                                      Show(step),
                                      ShowNumber(spec.value),
                                      ShowChange(step.value / spec.value)));
    }
    const double soft = Get("hand-load", silc_soft, "step_stiffness_z").value;
    const double hard = Get("hand-load", silc_hard, "step_stiffness_z").value;
    if (std::isfinite(soft) && std::isfinite(hard)) {
      const auto within = [](double k, double spec) { return k <= spec && k >= 0.85 * spec; };
      answer +=
          Paragraph(fmt::format("The goal for <code>silc</code>, within 15 % under its bound and "
                                "monotone in it: soft {}, hard {}, "
                                "{}.",
                                within(soft, 200) ? "met" : "not met",
                                within(hard, 1000) ? "met" : "not met",
                                hard > soft ? "monotone" : "not monotone"));
    }
    // what holds at the hand need not hold in every direction of the joints
    std::string over;
    for (const RowKey& row : {silc_soft, silc_hard}) {
      const Estimate share = Get("budget", row, "disc_violations");
      if (std::isnan(share.value)) continue;
      over += (over.empty() ? "" : ", ") + Show(share, "%") + " (" + Code(Name(row)) + ")";
    }
    if (!over.empty()) {
      answer += Paragraph(
          "Moments of stepping with the static stiffness over the budget in some "
          "direction of the joints: " +
          over + ".");
    }
    const Estimate base = Get("hand-load", kBaseline, "step_stiffness_z");
    if (!std::isnan(base.value))
      answer += Paragraph("For comparison, <code>baseline</code>: " + Show(base, "N/m") + ".");
    out +=
        Question(3,
                 "Hand load: what is measured against the specified 200 and 1000 N/m (the paper: "
                 "400 and 1000)?",
                 answer + Absent(rows));
    out += Compare(AfterBaseline(rows),
                   {{"specified, z [N/m]", "hand-load", "spec_z"},
                    {"−40 N step, z", "hand-load", "step_stiffness_z"},
                    {"ramps ±10 N, x", "hand-load", "measured_x"},
                    {"y", "hand-load", "measured_y"},
                    {"z", "hand-load", "measured_z"},
                    {"ramps ±40 N, z", "hand-load", "measured_40n_z"},
                    {"survive [%]", "hand-load", "survival"}});
  }
  {
    std::vector<RowKey> rows = {kBaseline, kScalar};
    for (const char* method : {"silc-paper", "silc"})
      for (const char* mode : {"high-stiff", "compliance", "hard-nullspace"})
        rows.push_back({method, mode});
    std::string answer;
    for (const RowKey& row : rows) {
      const Estimate peak = Get("com-impulse", row, "peak_excursion");
      const Estimate rest = Get("com-impulse", row, "residual_offset");
      if (std::isnan(peak.value)) continue;
      const bool back = std::abs(rest.value) < 0.1 * peak.value;
      answer +=
          Paragraph(Code(Name(row)) + fmt::format(": swings out by {} and {} ({} off after 5 s).",
                                                  Show(peak, "m"),
                                                  back ? "returns" : "does not return",
                                                  Show(rest, "m")));
    }
    out += Question(
        4,
        "CoM impulse: how far does the centre of mass go in each mode, and does it return?",
        answer + Absent(rows));
    out += Compare(rows,
                   {{"peak [m]", "com-impulse", "peak_excursion"},
                    {"overshoot [m]", "com-impulse", "overshoot"},
                    {"offset after 5 s [m]", "com-impulse", "residual_offset"},
                    {"settling [s]", "com-impulse", "settling_time"},
                    {"took a step [%]", "com-impulse", "stepped"},
                    {"survive [%]", "com-impulse", "survival"}});
  }
  {
    const std::vector<RowKey> rows = {paper_soft, paper_compliance, silc_soft, silc_compliance};
    std::string answer;
    const auto compare = [&](const RowKey& row,
                             const char* experiment,
                             const char* metric,
                             const char* what,
                             const char* paper) {
      const Estimate ratio =
          Ratio(Get(experiment, row, metric), Get(experiment, kBaseline, metric));
      if (std::isnan(ratio.value)) return;
      answer += Paragraph(
          Code(Name(row)) +
          fmt::format(
              ": {} {} against the baseline (the paper: {}).", what, ShowChange(ratio), paper));
    };
    for (const RowKey& row : {paper_soft, silc_soft}) {
      compare(row, "hand-impact", "settling_time_z", "settling time", "half");
      compare(row, "hand-impact", "band_power_z", "5–100 Hz part of the hand’s motion", "a tenth");
    }
    for (const RowKey& row : {paper_compliance, silc_compliance})
      compare(row, "foam-step", "gyro_rms", "gyro RMS on foam", "half");
    out +=
        Question(5,
                 "Hand impact and foam: settling time, high-frequency energy and gyro RMS against "
                 "the baseline?",
                 answer + Absent(rows));
    out += Compare(AfterBaseline(rows),
                   {{"settling [s]", "hand-impact", "settling_time_z"},
                    {"5–100 Hz, z [m²]", "hand-impact", "band_power_z"},
                    {"gyro RMS [rad/s]", "foam-step", "gyro_rms"},
                    {"accelerometer RMS [m/s²]", "foam-step", "acc_rms"}});
  }
  {
    std::vector<RowKey> rows = RowsWith("hand-load");
    for (const RowKey& row : {kBaseline, paper_soft, silc_soft}) {
      if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
    }
    std::string answer;
    for (const RowKey& row : rows) {
      const double measured = Get("hand-load", row, "measured_z").value;
      const double one_step = Get("hand-load", row, "one_step_z").value;
      const double model = Get("hand-load", row, "static_gravity_z").value;
      const double damping = Get("frequency", row, "hand_z_damping_3hz").value;
      if (std::isnan(measured)) continue;
      std::string text =
          Code(Name(row)) + fmt::format(": {} N/m measured at the hand; the one-step K₁ says {}",
                                        ShowNumber(measured),
                                        ShowNumber(one_step));
      text += std::isnan(model) ? ", and a static stiffness does not exist (the policy’s loop "
                                  "through its own actions is unstable)"
                                : ", the static K<sub>s</sub> " + ShowNumber(model);
      const double radius = Get("hand-load", row, "action_loop_radius").value;
      if (radius >= 1) {
        text += fmt::format(
            "; its feedback of its own previous actions has radius {} and holds nothing still",
            ShowNumber(radius));
      }
      if (!std::isnan(damping)) {
        text += fmt::format("; damping at 3 Hz is {} N·s/m{}",
                            ShowNumber(damping),
                            damping < 0 ? ", that is, the policy feeds the motion" : "");
      }
      answer += Paragraph(text + ".");
    }
    out += Question(
        6,
        "Does a penalty on the latest frame control the stiffness that is felt? Is damping "
        "lost? Does <code>silc</code> close the hole?",
        answer + Absent({paper_soft, silc_soft}));
    out += Compare(rows,
                   {{"springs alone, z [N/m]", "hand-load", "pd_z"},
                    {"one-step K₁, z", "hand-load", "one_step_z"},
                    {"static K_s, z", "hand-load", "static_z"},
                    {"K_s with gravity, z", "hand-load", "static_gravity_z"},
                    {"measured ±10 N, z", "hand-load", "measured_z"},
                    {"action loop, radius", "hand-load", "action_loop_radius"},
                    {"damping at 3 Hz, z [N·s/m]", "frequency", "hand_z_damping_3hz"}});
  }
  return out;
}

}  // namespace silc
