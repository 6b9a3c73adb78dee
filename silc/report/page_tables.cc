// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "silc/config/budget_file.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiment_plot.h"
#include "silc/report/html.h"
#include "silc/report/page_words.h"
#include "silc/report/page_writer.h"

namespace silc {
namespace {

// What a budget's terms are called, and who is judged by them: terms that all share stand alone.
using JudgedBy = std::vector<std::pair<std::string, std::vector<std::string>>>;

void Add(const BudgetSpec& budget, const std::string& who, JudgedBy* judged) {
  const std::string terms = BudgetTerms(budget);
  auto at = std::find_if(
      judged->begin(), judged->end(), [&](const auto& known) { return known.first == terms; });
  if (at == judged->end()) at = judged->insert(at, {terms, {}});
  if (std::find(at->second.begin(), at->second.end(), who) == at->second.end())
    at->second.push_back(who);
}

std::string Describe(const JudgedBy& judged) {
  std::string text;
  for (const auto& [terms, who] : judged) {
    text += (text.empty() ? "" : "; ") + terms;
    if (judged.size() > 1) text += fmt::format(" ({})", fmt::join(who, "; "));
  }
  return text.empty() ? "" : "Held against a budget with " + EscapeHtml(text) + ".";
}

std::string Note(const std::string& html) {
  return html.empty() ? "" : "<p class=\"note\">" + html + "</p>\n";
}

}  // namespace

std::string PageWriter::Channels(const std::vector<RowKey>& rows,
                                 const std::vector<MetricHandle>& metrics) const {
  JudgedBy judged;
  bool felt = false;
  for (const MetricHandle metric : metrics) {
    felt |= metric->unit == "N/m" && !metric->of_budget;
    if (!metric->of_budget) continue;
    for (const RowKey& row : rows) {
      const std::vector<const ExperimentResult*> results = Results(metric->experiment, row);
      if (!results.empty()) Add(results.front()->budget, Label(row), &judged);
    }
  }
  std::string text = Describe(judged);
  if (felt) {
    text += std::string(text.empty() ? "" : " ") +
            "Stiffness in N/m is what is felt: torque and gravity followed.";
  }
  if (!text.empty()) text += " K₁ follows no channel.";
  return Note(text);
}

std::string PageWriter::Policies() {
  HtmlTable table({{"file"},
                   {"method"},
                   {"mode"},
                   {"judged by"},
                   {"judged with"},
                   {"gains"},
                   {"seed", true},
                   {"iterations", true},
                   {"survive walking", true},
                   {"velocity error, over a gait", true},
                   {"arms", true}});
  for (const FolderPolicy& policy : data_.policies) {
    if (!policy.fault.empty()) {
      table.Row({Code(policy.path), EscapeHtml(policy.fault), "", "", "", "", "", "", "", "", ""},
                "missing");
      continue;
    }
    const auto show = [&](MetricHandle metric) {
      for (const ExperimentResult& result :
           data_.found[std::size_t(&policy - data_.policies.data())]) {
        if (const Metric* found = result.Find(metric))
          return ShowNumber(found->value) + "&nbsp;" + metric->unit;
      }
      return std::string("–");
    };
    const auto or_dash = [](const std::string& text) {
      return text.empty() ? "–" : EscapeHtml(text);
    };
    table.Row({Code(policy.path),
               EscapeHtml(policy.row.method),
               or_dash(policy.row.mode),
               EscapeHtml(BudgetNumbers(policy.budget.spec)),
               EscapeHtml(BudgetTerms(policy.budget.spec)),
               EscapeHtml(policy.gains),
               or_dash(policy.seed),
               or_dash(policy.iterations),
               show(metric::Walk().survival),
               show(metric::Walk().gait_error),
               show(metric::Walk().arm_error)});
  }
  std::string out = Paragraph(
      "Method, mode and seed are what each file says of itself. Rows are comparable only where "
      "tracking is: the paper asks for very similar tracking rewards, and these columns show it. "
      "A "
      "card beside each file (<code>.md</code>) says how it was trained. Each is judged by the "
      "budget inside its file, a policy without one by " +
      Code(kDefaultMode) +
      ": a channel that is held does not count in K<sub>s</sub> against the budget.");
  out += data_.policies.empty() ? Paragraph("The folder holds no policies.") : table.Render();
  if (!data_.recorded.empty()) {
    out += Paragraph(fmt::format(
        "{} more policies, the same rows trained with other seeds, are not in the folder; their "
        "results are, in <code>seeds/</code>. Where a row has them its number is the mean over "
        "training seeds, and its interval resamples seeds and robots.",
        data_.recorded.size()));
  }
  std::vector<std::string> others;
  for (const OthersResult& other : data_.others) {
    if (std::find(others.begin(), others.end(), other.name) == others.end())
      others.push_back(other.name);
  }
  if (!others.empty()) {
    out += Paragraph(
        EscapeHtml(fmt::format("{}", fmt::join(others, ", "))) +
        ": trained and released by other people. Their files are not in the folder; results of "
        "theirs are, in <code>others/</code>, and stand beside ours where they were recorded.");
  }
  for (const std::string& why : data_.not_recorded) {
    out += Paragraph("Left out: " + EscapeHtml(why));
  }
  return out;
}

std::string PageWriter::TableOne() {
  HtmlTable table({{"mode"},
                   {"in the paper"},
                   {"CoM [N/m]", true},
                   {"null space [N·m/rad]", true},
                   {"hands [N/m]", true},
                   {"judged with"}});
  const auto axes = [](const std::optional<Eigen::Vector3d>& k) {
    return k ? fmt::format("{:g}, {:g}, {:g}", (*k)[0], (*k)[1], (*k)[2]) : std::string("–");
  };
  double softest = HUGE_VAL;  // [N/m] at the centre of mass
  for (const PaperMode& mode : data_.paper.modes) {
    const BudgetSpec spec = ReadBudget(mode.name).spec;
    if (spec.com) softest = std::min(softest, spec.com->x());
    table.Row({EscapeHtml(mode.name),
               EscapeHtml(mode.where),
               axes(spec.com),
               fmt::format("{:g}", spec.null_stiffness),
               axes(spec.hand[0]),
               EscapeHtml(BudgetTerms(spec))});
  }
  return Paragraph(
             "Upper bounds on stiffness, the paper’s numbers, as the files in "
             "<code>configs/budgets</code> have them. The hands’ are from the text of the "
             "constant-load experiment. A hand’s number is held against the pelvis, so that in the "
             "world it has the legs in series.") +
         Paragraph(
             "The last column is ours. As bounds on the total stiffness of a standing robot " +
             fmt::format("{:g}", softest) +
             " N/m at the centre of mass could not be met: gravity alone asks for mg/h, about 500 "
             "N/m. So gravity sensing is held: what a policy does with it does not count. The "
             "hands’ floor is the least share of their numbers that a policy must keep, along x, "
             "y, z.") +
         table.Render() +
         Rerun({fmt::format("silc observe POLICY.onnx --rollout 5 --mode {}", kDefaultMode)});
}

std::string PageWriter::ExperimentSection(const PageExperiment& section) {
  const std::string& experiment = section.experiment->name;
  std::string out = Paragraph(section.intro);
  std::vector<Verdict> verdicts;
  std::string tables;
  for (const PaperMeasure& measure : data_.paper.measures) {
    if (measure.metric->experiment == experiment) tables += MeasureTable(measure, &verdicts);
  }
  const bool in_paper = !tables.empty();
  if (in_paper) {
    int count[4] = {};
    for (const Verdict verdict : verdicts) ++count[static_cast<int>(verdict)];
    const int total = static_cast<int>(verdicts.size());
    out +=
        Paragraph(fmt::format("{}{}: {} of {} comparisons reproduced, {} partly, {} not, {} open.",
                              Chip(Together(verdicts)),
                              count[3] > 0 && count[3] < total ? " so far" : "",
                              count[0],
                              total,
                              count[1],
                              count[2],
                              count[3]));
  }
  out += Notes(experiment);
  const std::string shot = Shot(experiment, "side");
  if (!shot.empty()) out = "<div class=\"intro\"><div>\n" + out + "</div>" + shot + "</div>\n";
  out += SeedsOf(experiment);
  out += Channels(RowsWith(experiment), section.experiment->metrics.All());
  out += tables;
  out += BesideOthers(section);
  out += Figures(experiment);
  out += CurveTables(section);
  out += AllMetrics(experiment);
  std::vector<std::string> commands;
  for (const FolderPolicy& policy : data_.policies) {
    const auto at = data_.commands.find(RunKey(experiment, policy.path));
    if (at != data_.commands.end()) commands.push_back(at->second);
  }
  bool other_seeds = false;
  for (const RecordedResult& other : data_.recorded) {
    const ExperimentResult& result = other.result;
    if (result.experiment != experiment || !Has(other.row)) continue;
    if (!other_seeds)
      commands.emplace_back("# other training seeds: silc sweep makes their policies");
    other_seeds = true;
    const int seeds = std::max(1, static_cast<int>(result.seeds.size()));
    commands.push_back(
        EvalCommand(experiment, result.policy, result.mode, result.trials / seeds, result.seeds));
  }
  bool of_others = false;
  for (const OthersResult& other : data_.others) {
    if (other.result.experiment != experiment) continue;
    if (!of_others) commands.emplace_back("# policies of other people: their files do not ship");
    of_others = true;
    commands.push_back(other.command);
  }
  out +=
      commands.empty() ? Paragraph("No policy of the folder has a row here yet.") : Rerun(commands);
  return Section(section.id, section.menu, section.title, out);
}

std::string PageWriter::CurveTables(const PageExperiment& section) {
  if (!section.experiment->tabulates) return "";
  constexpr std::size_t kLongest = 20;  // rows; a course of time is for a figure
  std::string out;
  for (const RowKey& row : RowsWith(section.experiment->name)) {
    const ExperimentResult& result = *Results(section.experiment->name, row).front();
    std::vector<std::string> panels;
    for (const Curve& first : result.curves) {
      if (first.x.empty() || first.x.size() > kLongest ||
          std::find(panels.begin(), panels.end(), first.panel) != panels.end())
        continue;
      panels.push_back(first.panel);
      // the first column is what is commanded: its line says it again
      std::vector<const Curve*> beside;
      std::vector<HtmlTable::Column> columns = {{EscapeHtml(first.x_label), true}};
      for (const Curve& curve : result.curves) {
        if (curve.panel != first.panel || curve.x != first.x || curve.shared) continue;
        beside.push_back(&curve);
        columns.push_back({Pretty(curve.label), true});
      }
      HtmlTable table(columns);
      for (std::size_t i = 0; i < first.x.size(); ++i) {
        std::vector<std::string> cells = {ShowNumber(first.x[i])};
        for (const Curve* curve : beside) {
          cells.push_back(std::isnan(curve->y[i]) ? "–" : ShowNumber(curve->y[i]));
        }
        table.Row(std::move(cells));
      }
      out += table.Render(Pretty(Label(row) + ": " + first.panel + ", " + first.y_label));
    }
  }
  return out;
}

std::string PageWriter::CertificateSection() {
  const PageCertificates& plan = data_.plan.certificates;
  if (plan.id.empty()) return "";
  HtmlTable table({{"policy"},
                   {"moments", true},
                   {"σ", true},
                   {"largest σ found in the box", true},
                   {"bound", true},
                   {"certified [%]", true},
                   {"seen to break [%]", true},
                   {"largest certified box", true}});
  std::vector<std::string> commands;
  JudgedBy judged;
  for (const PageCertificate& one : data_.certificates) {
    const FolderPolicy& policy = data_.policies[one.policy];
    const std::string name = EscapeHtml(policy.name);
    Add(policy.budget.spec, policy.name, &judged);
    commands.push_back(one.command);
    if (!one.failure.empty()) {
      table.Row({name, "none: " + EscapeHtml(one.failure), "", "", "", "", "", ""}, "missing");
      continue;
    }
    const CertificateSummary& s = one.summary;
    table.Row({name,
               fmt::format("{:g}", s.moments),
               ShowNumber(s.sigma),
               ShowNumber(s.seen),
               std::isfinite(s.upper) ? ShowNumber(s.upper) : "none",
               ShowNumber(100 * s.certified),
               ShowNumber(100 * s.broken),
               ShowNumber(s.largest_box)});
  }
  std::string out = Paragraph(plan.intro) + Note(Describe(judged));
  out += data_.certificates.empty() ? Paragraph("No policy was certified for this page.")
                                    : table.Render() + Rerun(commands);
  return Section(plan.id, plan.menu, plan.title, out);
}

std::string PageWriter::SeedsOf(const std::string& experiment) const {
  std::string rows;
  for (const RowKey& row : RowsWith(experiment)) {
    std::string seeds;
    for (const RecordedResult& other : data_.recorded) {
      if (!(other.row == row) || other.result.experiment != experiment) continue;
      // what is held against the budget is pooled under one budget only, see Get()
      const bool same = other.result.budget == Results(experiment, row).front()->budget;
      seeds += fmt::format("{}{} ({}{})",
                           seeds.empty() ? "" : ", ",
                           other.seed,
                           other.result.trials,
                           same ? ""
                                : "; against " + BudgetNumbers(other.result.budget) + "; " +
                                      BudgetTerms(other.result.budget) +
                                      ": not in what is held against the budget");
    }
    if (!seeds.empty()) rows += (rows.empty() ? "" : "; ") + Label(row) + " " + seeds;
  }
  if (rows.empty()) return "";
  return Paragraph("Training seeds beside those of the folder, in brackets their robots: " +
                   EscapeHtml(rows) + ". They share the policy that the row started from.");
}

std::string PageWriter::MeasureTable(const PaperMeasure& measure, std::vector<Verdict>* verdicts) {
  const bool relative = measure.against.has_value();
  std::vector<HtmlTable::Column> columns = {
      {"policy"}, {"paper", true}, {"ours", true}, {"difference", true}};
  if (relative) {
    const std::string name = EscapeHtml(Label(*measure.against));
    columns.push_back({"against " + name + ": paper", true});
    columns.push_back({"against " + name + ": ours", true});
  }
  columns.push_back({"verdict"});
  HtmlTable table(columns);
  std::vector<double> values;
  for (const PaperRow& row : measure.rows) values.push_back(row.value);
  const double scale = CommonScale(values);
  const auto add = [&](const RowKey& key, const PaperRow* paper) {
    const Estimate ours = Get(key, measure.metric);
    const bool there = !std::isnan(ours.value);
    std::vector<std::string> cells = {
        EscapeHtml(Label(key)),
        paper ? ShowPaper(*paper, "", scale) : "",
        there ? Show(Divide(ours, scale)) : WhyMissing(key, measure.metric->experiment)};
    cells.push_back(
        there && paper && !std::isnan(paper->value) ? ShowChange(ours.value / paper->value) : "");
    if (relative) {
      const RowKey with = OnServoOf(key, *measure.against);
      const bool itself = key == with;
      const PaperRow* reference = measure.Find(*measure.against);
      cells.push_back(paper && !itself && !std::isnan(paper->value) && !std::isnan(reference->value)
                          ? ShowChange(paper->value / reference->value)
                          : "");
      cells.push_back(there && !itself ? ShowChange(Ratio(ours, Get(with, measure.metric))) : "");
    }
    const bool judged =
        paper && (paper->says != PaperRow::Says::kNothing || !std::isnan(paper->value));
    if (judged) {
      verdicts->push_back(VerdictOn(measure, key));
      cells.push_back(Chip(verdicts->back()));
    } else {
      cells.emplace_back("");
    }
    table.Row(std::move(cells), there ? "" : "missing");
  };
  for (const PaperRow& row : measure.rows) add(row.row, &row);
  bool more = false;
  for (const RowKey& key : RowsWith(measure.metric->experiment)) {
    if (measure.Find(key)) continue;
    if (!more) table.Group("not in the paper");
    more = true;
    add(key, nullptr);
  }
  // "1.00·10⁴" without its mantissa
  const std::string power =
      scale == 1 ? "" : ShowNumber(scale).substr(std::string("1.00·").size()) + " ";
  return table.Render(
      Pretty(measure.where + ": " + measure.label + " [" + power + measure.metric->unit + "]"));
}

std::string PageWriter::BesideOthers(const PageExperiment& section) {
  const Experiment& experiment = *section.experiment;
  HtmlTable origin({{"policy"}, {"from"}, {"licence"}, {"SHA-256", true}});
  for (const OthersResult& other : data_.others) {
    if (other.result.experiment != experiment.name) continue;
    origin.Row({EscapeHtml(other.name),
                EscapeHtml(other.source),
                EscapeHtml(other.licence),
                Code(other.result.policy_hash.substr(0, 16)) + "…"});
  }
  if (origin.empty()) return "";
  std::vector<HtmlTable::Column> columns = {{"policy"}, {EscapeHtml(experiment.unit), true}};
  for (const MetricHandle metric : experiment.headline)
    columns.push_back({Pretty(LabelWithUnit(metric)), true});
  HtmlTable table(columns);
  bool theirs = false;
  for (const RowKey& row : RowsWith(experiment.name)) {
    const bool other = std::any_of(data_.others.begin(),
                                   data_.others.end(),
                                   [&](const OthersResult& one) { return one.row() == row; });
    if (other && !theirs) table.Group("trained by other people, recorded");
    theirs |= other;
    int trials = 0;
    for (const ExperimentResult* result : Results(experiment.name, row)) trials += result->trials;
    std::vector<std::string> cells = {EscapeHtml(Label(row)), std::to_string(trials)};
    for (const MetricHandle metric : experiment.headline) cells.push_back(Show(Get(row, metric)));
    table.Row(std::move(cells));
  }
  return table.Render() +
         Paragraph(
             "Policies of other people are measured as ours are, and their files do not ship. "
             "Their numbers were recorded once with the commands below; this page does not run "
             "them again.") +
         origin.Render();
}

std::string PageWriter::AllMetrics(const std::string& experiment) {
  const std::vector<RowKey> rows = RowsWith(experiment);
  if (rows.empty()) return "";
  std::vector<HtmlTable::Column> columns = {{"metric"}};
  for (const RowKey& row : rows) columns.push_back({EscapeHtml(Label(row)), true});
  HtmlTable table(columns);
  std::vector<MetricHandle> metrics;  // in the order in which results name them
  for (const RowKey& row : rows) {
    for (const ExperimentResult* result : Results(experiment, row)) {
      for (const Metric& metric : result->metrics) {
        if (std::find(metrics.begin(), metrics.end(), metric.what) == metrics.end())
          metrics.push_back(metric.what);
      }
    }
  }
  for (const MetricHandle metric : metrics) {
    std::vector<std::string> cells = {Pretty(LabelWithUnit(metric))};
    for (const RowKey& row : rows) cells.push_back(Show(Get(row, metric)));
    table.Row(std::move(cells));
  }
  const std::string html = table.Render();
  return "<details><summary>All " + std::to_string(metrics.size()) + " metrics</summary>\n" + html +
         "</details>\n";
}

std::string PageWriter::Figures(const std::string& experiment) {
  std::vector<const ExperimentResult*> results;
  std::vector<std::string> labels;
  for (const RowKey& row : RowsWith(experiment)) {
    results.push_back(Results(experiment, row).front());  // one training seed is enough to look at
    labels.push_back(Label(row));
  }
  const plot::Figure figure = FigureOf(results, labels, FindExperiment(experiment).plots_apart);
  std::string out;
  for (plot::Panel panel : figure.panels) {
    // a figure of one policy has no other place for its name
    if (results.size() == 1) panel.title += ": " + labels.front();
    const InlineSvg svg = MakeInline(panel, figure_count_++);
    svg_style_ = svg.style;
    out += svg.svg;
  }
  return out.empty() ? "" : "<div class=\"figs\">\n" + out + "</div>\n";
}

std::string PageWriter::Notes(const std::string& experiment) {
  std::string out;
  for (const RowKey& row : RowsWith(experiment)) {
    for (const ExperimentResult* result : Results(experiment, row)) {
      for (const std::string& note : result->notes)
        out += "<li>" + EscapeHtml(Label(row)) + ": " + Pretty(note) + ".</li>\n";
    }
  }
  for (const FolderPolicy& policy : data_.policies) {
    const auto at = data_.failures.find(RunKey(experiment, policy.path));
    if (at != data_.failures.end())
      out += "<li>" + EscapeHtml(policy.name) + " failed: " + EscapeHtml(at->second) + "</li>\n";
  }
  std::string settings;
  for (const RowKey& row : RowsWith(experiment)) {
    for (const auto& [key, value] : Results(experiment, row).front()->settings)
      settings += (settings.empty() ? "" : "; ") + Pretty(key + ": " + value);
    break;
  }
  if (!settings.empty()) settings = "<p class=\"note\">Settings: " + settings + ".</p>\n";
  return (out.empty() ? "" : "<ul class=\"note\">\n" + out + "</ul>\n") + settings;
}

}  // namespace silc
