// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "silc/config/budget_file.h"
#include "silc/eval/experiment_metrics.h"
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
                                const std::vector<MetricHandle>& metrics) {
  std::vector<HtmlTable::Column> columns = {{"policy"}};
  for (const MetricHandle metric : metrics)
    columns.push_back({Pretty(LabelWithUnit(metric)), true});
  HtmlTable table(columns);
  for (const RowKey& row : rows) {
    if (!Has(row)) {
      table.Across(EscapeHtml(Label(row)), kNotTrained);
      continue;
    }
    std::vector<std::string> cells = {EscapeHtml(Label(row))};
    for (const MetricHandle metric : metrics) {
      const Estimate value = Get(row, metric);
      cells.push_back(std::isnan(value.value) ? WhyMissing(row, metric->experiment) : Show(value));
    }
    table.Row(std::move(cells));
  }
  return table.Render() + Channels(rows, metrics);
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
  return QuadraticForm(1) + JitterAndEnergy(2) + HandUnderLoad(3) + CentreOfMass(4) +
         ImpactAndFoam(5) + FeltStiffness(6);
}

std::string PageWriter::QuadraticForm(int number) {
  const metric::BudgetMetrics& budget = metric::Budget();
  const std::vector<RowKey> rows =
      data_.paper.RowsOf({budget.random_direction_violations_one_step});
  std::string answer;
  for (const RowKey& row : rows) {
    const Estimate over = Get(row, budget.random_direction_violations_one_step);
    const Estimate moments = Get(row, budget.random_direction_moments_one_step);
    const Estimate worst = Get(row, budget.worst_moments_one_step);
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
  return Question(number,
                  "Does <code>silc-paper</code> keep the quadratic form under the budget while "
                  "<code>baseline</code> and <code>scalar-lcp</code> exceed it?",
                  answer + Absent(rows)) +
         Compare(rows,
                 {budget.random_direction_violations_one_step,
                  budget.worst_moments_one_step,
                  budget.all.worst_one_step_p99,
                  budget.worst_moments_static,
                  budget.all.disc_p99,
                  budget.judged_share});
}

std::string PageWriter::JitterAndEnergy(int number) {
  const metric::EpisodeMetrics::Motion& motion = metric::Walk().motion;
  const std::vector<MetricHandle> metrics = {
      motion.action_jitter, motion.velocity_jitter, motion.torque_jitter, motion.power};
  // signs and sizes over the published differences of Table II
  int judged = 0, same_sign = 0, half_size = 0, total = 0;
  std::vector<HtmlTable::Column> columns = {{"policy"}};
  for (const MetricHandle metric : metrics) columns.push_back({Pretty(metric->label), true});
  HtmlTable table(columns);
  const std::vector<RowKey> rows = data_.paper.RowsOf(metrics);
  for (const RowKey& row : rows) {
    if (row.method == kBaseline.method) continue;
    std::vector<std::string> cells = {EscapeHtml(Label(row))};
    for (const MetricHandle metric : metrics) {
      const PaperMeasure* measure = data_.paper.Find(metric);
      const PaperRow* printed = measure ? measure->Find(row) : nullptr;
      const Estimate ours = Ratio(Get(row, metric), Get(OnServoOf(row, kBaseline), metric));
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
  const std::string answer =
      judged == 0
          ? Paragraph(fmt::format("None of the {} differences from the baseline that Table II "
                                  "prints can be judged with the policies "
                                  "there are.",
                                  total))
          : Paragraph(
                fmt::format("Of the {} differences from the baseline that Table II prints, {} can "
                            "be "
                            "judged with the policies "
                            "there are; {} have the paper’s sign and {} at least half of its size.",
                            total,
                            judged,
                            same_sign,
                            half_size));
  return Question(number,
                  "Table II: what are the signs and sizes of the differences in jitter and energy?",
                  answer + Absent(rows)) +
         Paragraph("Against the baseline of the same gains, paper → ours:") + table.Render();
}

std::string PageWriter::HandUnderLoad(int number) {
  const metric::HandLoadMetrics& load = metric::HandLoad();
  const MetricHandle stiffness = load.step_stiffness_z;
  const std::vector<RowKey> rows = data_.paper.RowsOf({stiffness});
  std::string answer;
  for (const RowKey& row : rows) {
    // what is specified is the hand on the base; the paper's load has the legs in series
    const Estimate on_base = Get(row, load.on_base.z), step = Get(row, stiffness);
    const Estimate spec = Get(row, load.spec.z);
    std::string found;
    if (!std::isnan(on_base.value)) {
      found = fmt::format("on the base {} N/m measured at ±10 N where {} N/m is specified ({})",
                          Show(on_base),
                          ShowNumber(spec.value),
                          ShowChange(on_base.value / spec.value));
    }
    if (!std::isnan(step.value)) {
      found +=
          fmt::format("{}in the world {} N/m under 40 N", found.empty() ? "" : "; ", Show(step));
    }
    if (!found.empty()) answer += Paragraph(Code(Name(row)) + ": " + found + ".");
  }
  // the paper's rows: what they specify and what it measured there; silc's own beside them
  std::vector<std::string> specified, printed, met;
  std::vector<std::pair<double, double>> by_bound;  // [N/m] specified and measured
  std::string over;
  const PaperMeasure* measure = data_.paper.Find(stiffness);
  for (const PaperRow& paper : measure ? measure->rows : std::vector<PaperRow>{}) {
    const PaperMode* mode = data_.paper.FindMode(paper.row.mode);
    const auto hand = mode ? ReadBudget(mode->name).spec.hand[0] : std::nullopt;
    if (hand) specified.push_back(fmt::format("{:g}", hand->z()));
    printed.push_back(fmt::format("{:g}", paper.value));
    const std::optional<RowKey> ours = data_.paper.OurRowBeside(paper.row);
    if (!ours) continue;
    const double k = Get(*ours, load.on_base.z).value, bound = Get(*ours, load.spec.z).value;
    if (std::isfinite(k) && std::isfinite(bound)) {
      met.push_back(ours->mode + (k <= bound && k >= 0.85 * bound ? " met" : " not met"));
      by_bound.emplace_back(bound, k);
    }
    // what holds at the hand need not hold in every direction of the joints
    const Estimate share = Get(*ours, metric::Budget().disc_violations);
    if (std::isnan(share.value)) continue;
    over += (over.empty() ? "" : ", ") + Show(share, "%") + " (" + Code(Name(*ours)) + ")";
  }
  if (by_bound.size() > 1) {
    std::sort(by_bound.begin(), by_bound.end());
    const bool monotone =
        std::adjacent_find(by_bound.begin(), by_bound.end(), [](const auto& a, const auto& b) {
          return b.second <= a.second;
        }) == by_bound.end();
    answer += Paragraph(
        fmt::format("The goal for <code>silc</code>, on the base within 15 % under its bound and "
                    "monotone in it: {}, {}.",
                    EscapeHtml(fmt::format("{}", fmt::join(met, ", "))),
                    monotone ? "monotone" : "not monotone"));
  }
  if (!over.empty()) {
    answer += Paragraph(
        "Moments of stepping with the static stiffness over the budget in some "
        "direction of the joints: " +
        over + ".");
  }
  const Estimate base = Get(kBaseline, stiffness);
  if (!std::isnan(base.value))
    answer +=
        Paragraph("For comparison, <code>baseline</code>: " + Show(base, stiffness->unit) + ".");
  return Question(number,
                  fmt::format("Hand load: what is measured against the specified {} N/m (the "
                              "paper, in the world: {})?",
                              fmt::join(specified, " and "),
                              fmt::join(printed, " and ")),
                  answer + Absent(rows)) +
         Compare(AfterBaseline(rows),
                 {load.spec.z,
                  load.on_base.x,
                  load.on_base.y,
                  load.on_base.z,
                  stiffness,
                  load.measured.x,
                  load.measured.y,
                  load.measured.z,
                  load.measured_40n.z,
                  load.survival});
}

std::string PageWriter::CentreOfMass(int number) {
  const metric::ComImpulseMetrics& push = metric::ComImpulse();
  // the modes without a budget for the hands: those of Table II
  const std::vector<RowKey> rows = data_.paper.RowsOf({metric::Walk().motion.action_jitter});
  std::string answer;
  for (const RowKey& row : rows) {
    const Estimate peak = Get(row, push.peak_excursion);
    const Estimate rest = Get(row, push.residual_offset);
    if (std::isnan(peak.value)) continue;
    const bool back = std::abs(rest.value) < 0.1 * peak.value;
    answer +=
        Paragraph(Code(Name(row)) + fmt::format(": swings out by {} and {} ({} off after 5 s).",
                                                Show(peak, push.peak_excursion->unit),
                                                back ? "returns" : "does not return",
                                                Show(rest, push.residual_offset->unit)));
  }
  return Question(
             number,
             "CoM impulse: how far does the centre of mass go in each mode, and does it return?",
             answer + Absent(rows)) +
         Compare(rows,
                 {push.peak_excursion,
                  push.overshoot,
                  push.residual_offset,
                  push.settling_time,
                  push.stepped,
                  push.survival});
}

std::string PageWriter::ImpactAndFoam(int number) {
  const metric::HandImpactMetrics& impact = metric::HandImpact();
  const metric::FoamStepMetrics& foam = metric::FoamStep();
  std::string answer;
  const auto compare = [&](const RowKey& row, MetricHandle metric, const char* what) {
    const Estimate ratio = Ratio(Get(row, metric), Get(OnServoOf(row, kBaseline), metric));
    if (std::isnan(ratio.value)) return;
    // the paper has no row of silc's: what it says of its own condition stands there too
    const PaperMeasure* measure = data_.paper.Find(metric);
    const PaperRow* printed = nullptr;
    for (const PaperRow& paper : measure->rows) {
      if (paper.row == row || data_.paper.OurRowBeside(paper.row) == row) printed = &paper;
    }
    const PaperRow* against = measure->Find(kBaseline);
    if (!printed || !against) return;
    answer +=
        Paragraph(Code(Name(row)) + fmt::format(": {} {} against the baseline (the paper: {}).",
                                                what,
                                                ShowChange(ratio),
                                                ShowChange(printed->value / against->value)));
  };
  for (const RowKey& row : data_.paper.RowsOf({impact.settling_time_z})) {
    if (row.method == kBaseline.method) continue;
    compare(row, impact.settling_time_z, "settling time");
    compare(row, impact.band_power_z, "5–100 Hz part of the hand’s motion");
  }
  for (const RowKey& row : data_.paper.RowsOf({foam.gyro_rms})) {
    if (row.method == kBaseline.method) continue;
    compare(row, foam.gyro_rms, "gyro RMS on foam");
  }
  const std::vector<RowKey> rows = data_.paper.RowsOf({impact.settling_time_z, foam.gyro_rms});
  return Question(number,
                  "Hand impact and foam: settling time, high-frequency energy and gyro RMS against "
                  "the baseline?",
                  answer + Absent(rows)) +
         Compare(rows, {impact.settling_time_z, impact.band_power_z, foam.gyro_rms, foam.acc_rms});
}

std::string PageWriter::FeltStiffness(int number) {
  const metric::HandLoadMetrics& load = metric::HandLoad();
  const MetricHandle damping_at_3hz = metric::Frequency().hand_in_world_z.at_3hz.damping;
  // who was loaded, and who has the softest hand
  const std::vector<RowKey> softest = data_.paper.RowsOf({metric::HandImpact().settling_time_z});
  std::vector<RowKey> rows = RowsWith(load.experiment());
  for (const RowKey& row : softest) {
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  }
  std::string answer;
  for (const RowKey& row : rows) {
    const double measured = Get(row, load.measured.z).value;
    const double one_step = Get(row, load.one_step.z).value;
    const double model = Get(row, load.static_with_weight.z).value;
    const double damping = Get(row, damping_at_3hz).value;
    if (std::isnan(measured)) continue;
    std::string text =
        Code(Name(row)) + fmt::format(": {} N/m measured at the hand; the one-step K₁ says {}",
                                      ShowNumber(measured),
                                      ShowNumber(one_step));
    text += std::isnan(model) ? ", and a static stiffness does not exist (the policy’s loop "
                                "through its own actions is unstable)"
                              : ", the static K<sub>s</sub> " + ShowNumber(model);
    const double radius = Get(row, load.action_loop_radius).value;
    if (radius >= 1) {
      text += fmt::format(
          "; its feedback of its own previous actions has radius {} and holds nothing still",
          ShowNumber(radius));
    }
    if (!std::isnan(damping)) {
      text += fmt::format("; damping at 3 Hz is {} {}{}",
                          ShowNumber(damping),
                          damping_at_3hz->unit,
                          damping < 0 ? ", that is, the policy feeds the motion" : "");
    }
    answer += Paragraph(text + ".");
  }
  return Question(
             number,
             "Does a penalty on the latest frame control the stiffness that is felt? Is damping "
             "lost? Does <code>silc</code> close the hole?",
             answer + Absent(softest)) +
         Compare(rows,
                 {load.pd.z,
                  load.one_step.z,
                  load.static_stiffness.z,
                  load.static_with_weight.z,
                  load.measured.z,
                  load.action_loop_radius,
                  damping_at_3hz});
}

}  // namespace silc
