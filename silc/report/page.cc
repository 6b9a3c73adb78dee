// SPDX-License-Identifier: Apache-2.0
#include "silc/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "silc/config/budget_file.h"
#include "silc/eval/experiment_plot.h"
#include "silc/report/html.h"
#include "silc/report/markdown.h"
#include "silc/report/page_style.h"
#include "silc/report/png.h"

namespace silc {
namespace {

const RowKey kBaseline{"baseline", ""}, kScalar{"scalar-lcp", ""};
constexpr const char* kMethods[] = {
    "baseline", "lcp", "sn-lcp", "scalar-lcp", "alcp", "silc-paper", "silc"};
constexpr const char* kNotTrained = "not trained yet";

// ---- words
// ---------------------------------------------------------------------------------------

std::string Chip(Verdict verdict) {
  static constexpr const char* kClasses[] = {"yes", "part", "no", "open"};
  return fmt::format(
      "<span class=\"chip {}\">{}</span>", kClasses[static_cast<int>(verdict)], Describe(verdict));
}

std::string Label(const RowKey& row) {
  return row.mode.empty() ? row.method : row.method + ", " + row.mode;
}

// "+12 %", "−49 %"; a factor where percent would be silly
std::string ShowChange(double ratio) {
  if (!std::isfinite(ratio)) return "–";
  if (ratio >= 3) return "× " + ShowNumber(ratio);
  const double percent = std::round(100 * (ratio - 1));
  return (percent > 0 ? "+" : percent < 0 ? "−" : "±") + fmt::format("{:.0f} %", std::abs(percent));
}

std::string ShowChange(const Estimate& ratio) {
  std::string text = ShowChange(ratio.value);
  if (std::isfinite(ratio.low) && ratio.low > 0)
    text += " <span class=\"ci\">[" + ShowChange(ratio.low) + ", " + ShowChange(ratio.high) +
            "]</span>";
  return text;
}

// A power of ten all numbers of a column share, for those too large or small to read; else 1.
double CommonScale(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  if (largest == 0) return 1;
  const double exponent = std::floor(std::log10(largest) + 1e-9);
  return exponent > 3 || exponent < -3 ? std::pow(10.0, exponent) : 1;
}

Estimate Divide(const Estimate& estimate, double by) {
  return {estimate.value / by, estimate.low / by, estimate.high / by};
}

std::string Show(const Estimate& estimate, const std::string& unit = "") {
  std::string text = ShowNumber(estimate.value);
  if (std::isfinite(estimate.value) && !unit.empty() && unit != "1")
    text += "&nbsp;" + EscapeHtml(unit);
  if (!std::isnan(estimate.low) && !std::isnan(estimate.high)) {
    text += " <span class=\"ci\">[" + ShowNumber(estimate.low) + ", " + ShowNumber(estimate.high) +
            "]</span>";
  }
  return text;
}

// plain text with its indices lowered: K_s
std::string Pretty(const std::string& text) {
  std::string out = EscapeHtml(text);
  const std::string plain = "K_s", lowered = "K<sub>s</sub>";
  for (auto at = out.find(plain); at != out.npos; at = out.find(plain, at + lowered.size()))
    out.replace(at, plain.size(), lowered);
  return out;
}

std::string Paragraph(const std::string& html) { return "<p>" + html + "</p>\n"; }

// SVG of one panel, ready to stand inside the page: its style sheet goes to the head once, its
// clip paths get names of their own, its size is the column's.
struct InlineSvg {
  std::string svg, style;
};
InlineSvg MakeInline(const plot::Panel& panel, int number) {
  plot::Figure figure;
  figure.panels = {panel};
  figure.panel_width = 520;
  figure.panel_height = 300;
  std::string svg = plot::RenderSvg(figure);
  const auto cut = [&](const std::string& from, const std::string& to) {
    const auto begin = svg.find(from), end = svg.find(to, begin + from.size());
    std::string piece = svg.substr(begin + from.size(), end - begin - from.size());
    svg.erase(begin, end + to.size() - begin);
    return piece;
  };
  InlineSvg out;
  out.style = cut("<style>", "</style>");
  cut(" xmlns=\"", "\"");  // inside HTML the element needs no name space
  cut(" width=\"", "\"");
  cut(" height=\"", "\"");
  const std::string label = "aria-label=\"";
  svg.insert(svg.find(label) + label.size(), EscapeHtml(panel.title));
  for (const std::string mark : {"id=\"c", "url(#c"}) {
    for (auto at = svg.find(mark); at != svg.npos; at = svg.find(mark, at + mark.size())) {
      svg.insert(at + mark.size() - 1, fmt::format("f{}", number));
    }
  }
  out.svg = svg;
  return out;
}

// ---- the page
// ------------------------------------------------------------------------------------

class PageWriter {
 public:
  explicit PageWriter(const ReportData& data) : data_(data) {}

  std::string Write() {
    std::string body;
    body += Section("story", "In one page", Story());
    body += Section("questions", "Six questions", Questions());
    body += Section("policies", "The policies", Policies());
    body += Section("table-1", "Table I: what is specified", TableOne());
    body +=
        Experiment("table-2",
                   "Table II: walking under random commands",
                   "walk",
                   "Each robot gets velocity commands and arm motions at random for one episode of "
                   "20 s. Jitter is the mean absolute third difference over Δt³ at 50 Hz.");
    body +=
        Experiment("table-3",
                   "Table III: a weight dropped from the hand",
                   "hand-impact",
                   "2.5 kg hang from the right hand by a rope of 0.3 m and fall 0.2 m before it is "
                   "taut. The paper did this on the robot; here it is MuJoCo.");
    body +=
        Experiment("table-4",
                   "Table IV: one foot on foam",
                   "foam-step",
                   "Stepping in place, the left foot on a pad of 30 mm. The paper did this on the "
                   "robot; here it is MuJoCo, so that sensor noise and play are missing.");
    body += Experiment(
        "fig-com",
        "Figure: the centre of mass after a push",
        "com-impulse",
        "Standing, −150 N along x at the pelvis for 0.05 s. The paper's text says that "
        "<i>compliance</i> returns and <i>high-stiff</i> does not, its caption says the "
        "opposite; the caption’s larger swing of <i>compliance</i> is what is judged here.");
    body += Experiment(
        "fig-hand",
        "Figure: the hand under a constant load",
        "hand-load",
        "Standing, −40 N on the left hand. The displacement is taken against an unloaded "
        "twin of the same run, so that drift does not count as stiffness.");
    body += Experiment(
        "fig-budget",
        "Figure: the quadratic form against its budget",
        "budget",
        "Stepping in place with moving arms; the form of the one-step stiffness K₁ along "
        "random unit vectors, as in the paper, and its worst direction, which random "
        "vectors hardly ever meet (item 11 of the errata).");
    body +=
        Experiment("frequency",
                   "Ours: stiffness over frequency",
                   "frequency",
                   "A shaker at the left hand and the centre of mass, 0.5 to 24 Hz: what is felt, "
                   "real part and damping, against the model (S4). Not in the paper.");
    body += Section("errata", "What is wrong in the paper", Errata());
    body += Section("rerun", "How these numbers are made", Method());
    return Head() + body + "</main>\n" + Foot() + "</body></html>\n";
  }

 private:
  // ---- looking things up ----

  bool Has(const RowKey& row) const {
    return std::any_of(data_.shelf.begin(), data_.shelf.end(), [&](const ShelfPolicy& p) {
      return p.fault.empty() && p.row == row;
    });
  }

  std::vector<const ExperimentResult*> Results(const std::string& experiment,
                                               const RowKey& row) const {
    std::vector<const ExperimentResult*> results;
    for (std::size_t i = 0; i < data_.found.size(); ++i) {
      if (!(data_.shelf[i].row == row) || !data_.shelf[i].fault.empty()) continue;
      for (const ExperimentResult& result : data_.found[i]) {
        if (result.experiment == experiment) results.push_back(&result);
      }
    }
    return results;
  }

  // over the policies of a row, which differ by their training seed
  Estimate Get(const std::string& experiment, const RowKey& row, const std::string& metric) const {
    std::vector<const Metric*> metrics;
    for (const ExperimentResult* result : Results(experiment, row)) {
      if (const Metric* found = result->Find(metric)) metrics.push_back(found);
    }
    if (metrics.empty()) return {};
    const Metric pooled = PoolMetrics(metrics);
    return {pooled.value, pooled.low, pooled.high};
  }

  // rows of the shelf that have a result, in the order a reader expects
  std::vector<RowKey> RowsWith(const std::string& experiment) const {
    std::vector<RowKey> rows;
    for (const char* method : kMethods) {
      for (const ShelfPolicy& policy : data_.shelf) {
        if (policy.row.method == method && !Results(experiment, policy.row).empty() &&
            std::find(rows.begin(), rows.end(), policy.row) == rows.end())
          rows.push_back(policy.row);
      }
    }
    return rows;
  }

  Verdict VerdictOn(const PaperMeasure& measure, const RowKey& row) const {
    const Estimate against =
        measure.against ? Get(measure.experiment, *measure.against, measure.metric) : Estimate{};
    return Judge(measure, row, Get(measure.experiment, row, measure.metric), against);
  }

  std::string WhyMissing(const RowKey& row, const std::string& experiment) const {
    if (!Has(row)) return kNotTrained;
    const std::vector<const ExperimentResult*> results = Results(experiment, row);
    if (!results.empty()) {
      const bool fell = std::all_of(results.begin(), results.end(), [](const ExperimentResult* r) {
        return r->trials > 0 && r->falls == r->trials;
      });
      return fell ? "none: it fell" : "no value";
    }
    for (const ShelfPolicy& policy : data_.shelf) {
      const auto at = data_.failures.find(RunKey(experiment, policy.path));
      if (policy.row == row && at != data_.failures.end()) return "failed";
    }
    return "not run";
  }

  // ---- parts ----

  std::string Section(const std::string& id, const std::string& title, const std::string& body) {
    static const std::map<std::string, std::string> kBrief = {{"fig-com", "CoM push"},
                                                              {"fig-hand", "Hand load"},
                                                              {"fig-budget", "Budget"},
                                                              {"frequency", "Frequency"},
                                                              {"errata", "Errata"},
                                                              {"rerun", "Rerun"},
                                                              {"policies", "Policies"}};
    const auto brief = kBrief.find(id);
    sections_.emplace_back(
        id, brief != kBrief.end() ? brief->second : title.substr(0, title.find(": ")));
    return "<section id=\"" + id + "\">\n<h2>" + EscapeHtml(title) + "</h2>\n" + body +
           "</section>\n";
  }

  std::string Head() const {
    std::string out =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n"
        "<title>silc: the paper’s experiments, again</title>\n<style>";
    out += kPageStyle + svg_style_ + "</style></head>\n<body>\n<header>\n";
    out += "<h1>How stiff is a humanoid’s policy? The SILC paper’s experiments, again</h1>\n";
    out +=
        "<p class=\"lead\">Every table and figure of “Task-Specified Compliance Bounds for "
        "Humanoids via Lipschitz-Constrained Policies” (" +
        EscapeHtml(data_.paper.source) +
        ") beside the same experiment in MuJoCo, on policies trained with silc for the Unitree G1: "
        "the paper’s number, ours, and a plain word on whether they agree.</p>\n";
    out += Shots();
    out += "</header>\n<main>\n<nav aria-label=\"sections\"><ul>\n";
    for (const auto& [id, title] : sections_) {
      out += "<li><a href=\"#" + id + "\">" + EscapeHtml(title) + "</a></li>\n";
    }
    return out + "</ul></nav>\n";
  }

  std::string Shots() const {
    if (data_.pictures.empty()) {
      return data_.no_pictures.empty()
                 ? ""
                 : "<p class=\"note\">No pictures: " + EscapeHtml(data_.no_pictures) + ".</p>\n";
    }
    std::string out = "<div class=\"shots\">\n";
    for (const std::string experiment : {"walk", "com-impulse", "hand-load", "hand-impact"}) {
      out += Shot(experiment, "");
    }
    return out + "</div>\n";
  }

  std::string Shot(const std::string& experiment, const std::string& style) const {
    const auto at = data_.pictures.find(experiment);
    if (at == data_.pictures.end()) return "";
    const std::string caption = EscapeHtml(at->second.caption);
    return "<figure" + (style.empty() ? "" : " class=\"" + style + "\"") + "><img alt=\"" +
           caption + "\" src=\"data:image/png;base64," + Base64(at->second.png) +
           "\"><figcaption>" + caption + "</figcaption></figure>\n";
  }

  std::string Foot() const {
    return "<footer><p>Written by silc " + EscapeHtml(data_.version) + " with " +
           Code(data_.command) + ".</p></footer>\n";
  }

  // ---- in one page ----

  std::string Story() {
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
        "static stiffness K<sub>s</sub> (items 9 and 10). Method <code>silc-paper</code> trains as "
        "printed; "
        "method <code>silc</code> bounds K<sub>s</sub> by a condition that is sound in every "
        "contact mode.");
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

  struct Claim {
    const char *text, *experiment, *metric;
    RowKey paper_row, silc_row;
  };

  std::string Headline() {
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
                     {"ours, as printed<br><code>silc-paper</code>", true},
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
      table.Row({claim.text,
                 printed,
                 baseline ? ours(kBaseline) + " <span class=\"ci\">baseline</span>"
                          : ours(claim.paper_row),
                 ours(claim.silc_row),
                 Chip(VerdictOn(*measure, claim.paper_row))});
    }
    return table.Render();
  }

  static std::string ShowPaper(const PaperRow& row, const std::string& unit, double scale = 1) {
    switch (row.says) {
      case PaperRow::Says::kNone:
        return "never";
      case PaperRow::Says::kSome:
        return "periodically";
      case PaperRow::Says::kLarger:
        return "larger";
      case PaperRow::Says::kSmaller:
        return "smaller";
      case PaperRow::Says::kNothing:
        break;
    }
    if (std::isnan(row.value)) return "–";
    std::string text = ShowNumber(row.value / scale) +
                       (unit.empty() || unit == "1" ? "" : "&nbsp;" + EscapeHtml(unit));
    if (!std::isnan(row.spread))
      text += " <span class=\"ci\">± " + ShowNumber(row.spread / scale) + "</span>";
    return text;
  }

  // ---- the shelf ----

  std::string Policies() {
    HtmlTable table({{"file"},
                     {"method"},
                     {"mode"},
                     {"seed", true},
                     {"iterations", true},
                     {"survive walking", true},
                     {"velocity error, over a gait", true},
                     {"arms", true}});
    for (const ShelfPolicy& policy : data_.shelf) {
      if (!policy.fault.empty()) {
        table.Row({Code(policy.path), EscapeHtml(policy.fault), "", "", "", "", "", ""}, "missing");
        continue;
      }
      const auto metric = [&](const char* name, const char* unit) {
        for (const ExperimentResult& result :
             data_.found[std::size_t(&policy - data_.shelf.data())]) {
          const Metric* found = result.experiment == "walk" ? result.Find(name) : nullptr;
          if (found) return ShowNumber(found->value) + "&nbsp;" + unit;
        }
        return std::string("–");
      };
      const auto or_dash = [](const std::string& text) {
        return text.empty() ? "–" : EscapeHtml(text);
      };
      table.Row({Code(policy.path),
                 EscapeHtml(policy.row.method),
                 or_dash(policy.row.mode) + (policy.gravity_held ? ", gravity held" : ""),
                 or_dash(policy.seed),
                 or_dash(policy.iterations),
                 metric("survival", "%"),
                 metric("gait_error", "m/s"),
                 metric("arm_error", "rad")});
    }
    std::string out = Paragraph(
        "Method, mode and seed are what each file says of itself. Rows are comparable only where "
        "tracking is: the paper asks for very similar tracking rewards, and these columns show it. "
        "A "
        "card beside each file (<code>.md</code>) says how it was trained.");
    out += data_.shelf.empty() ? Paragraph("The folder holds no policies.") : table.Render();
    return out;
  }

  std::string TableOne() {
    HtmlTable table({{"mode"},
                     {"CoM [N/m]", true},
                     {"null space [N·m/rad]", true},
                     {"hands [N/m]", true},
                     {"ours"},
                     {"verdict"}});
    const auto axes = [](double x, double y, double z) {
      return fmt::format("{:g}, {:g}, {:g}", x, y, z);
    };
    for (const PaperMode& mode : data_.paper.modes) {
      const BudgetSpec spec = ReadBudget(mode.name).spec;
      const auto three = [&](const std::optional<Eigen::Vector3d>& k) {
        return k ? axes((*k)[0], (*k)[1], (*k)[2]) : std::string("–");
      };
      const std::string com = axes(mode.com[0], mode.com[1], mode.com[2]);
      const std::string hands =
          mode.hands ? axes((*mode.hands)[0], (*mode.hands)[1], (*mode.hands)[2]) : "–";
      const bool same = com == three(spec.com) && hands == three(spec.hand[0]) &&
                        mode.null_space == spec.null_stiffness;
      const std::string ours = three(spec.com) + "; " + fmt::format("{:g}", spec.null_stiffness) +
                               "; " + three(spec.hand[0]);
      table.Row({EscapeHtml(mode.name),
                 com,
                 fmt::format("{:g}", mode.null_space),
                 hands,
                 same ? "the same" : ours,
                 Chip(same ? Verdict::kReproduced : Verdict::kNot)});
    }
    return Paragraph(
               "Upper bounds on stiffness; the hands’ are from the text of the constant-load "
               "experiment. Ours are the files in <code>configs/budgets</code>. As bounds on "
               "the total stiffness of a standing robot 200 N/m at the centre of mass could "
               "not be met: gravity alone asks for mg/h, about 500 N/m. They bound the joints’ "
               "part.") +
           table.Render() + Rerun({"silc observe POLICY.onnx --rollout 5 --mode compliance"});
  }

  // ---- one experiment: its measures, figure, notes, commands ----

  std::string Experiment(const std::string& id,
                         const std::string& title,
                         const std::string& experiment,
                         const std::string& intro) {
    std::string out = Paragraph(intro);
    std::vector<Verdict> verdicts;
    std::string tables;
    for (const PaperMeasure& measure : data_.paper.measures) {
      if (measure.experiment == experiment) tables += MeasureTable(measure, &verdicts);
    }
    const bool in_paper = !tables.empty();
    if (in_paper) {
      int count[4] = {};
      for (const Verdict verdict : verdicts) ++count[static_cast<int>(verdict)];
      const int total = static_cast<int>(verdicts.size());
      out += Paragraph(
          fmt::format("{}{}: {} of {} comparisons reproduced, {} partly, {} not, {} open.",
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
    out += tables;
    out += Figures(experiment);
    out += AllMetrics(experiment);
    std::vector<std::string> commands;
    for (const ShelfPolicy& policy : data_.shelf) {
      const auto at = data_.commands.find(RunKey(experiment, policy.path));
      if (at != data_.commands.end()) commands.push_back(at->second);
    }
    out += commands.empty() ? Paragraph("No policy on the shelf has a row here yet.")
                            : Rerun(commands);
    return Section(id, title, out);
  }

  std::string MeasureTable(const PaperMeasure& measure, std::vector<Verdict>* verdicts) {
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
      const Estimate ours = Get(measure.experiment, key, measure.metric);
      const bool there = !std::isnan(ours.value);
      std::vector<std::string> cells = {
          EscapeHtml(Label(key)),
          paper ? ShowPaper(*paper, "", scale) : "",
          there ? Show(Divide(ours, scale)) : WhyMissing(key, measure.experiment)};
      cells.push_back(
          there && paper && !std::isnan(paper->value) ? ShowChange(ours.value / paper->value) : "");
      if (relative) {
        const bool itself = key == *measure.against;
        const PaperRow* reference = measure.Find(*measure.against);
        cells.push_back(paper && !itself && !std::isnan(paper->value) &&
                                !std::isnan(reference->value)
                            ? ShowChange(paper->value / reference->value)
                            : "");
        cells.push_back(
            there && !itself
                ? ShowChange(Ratio(ours, Get(measure.experiment, *measure.against, measure.metric)))
                : "");
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
    for (const RowKey& key : RowsWith(measure.experiment)) {
      if (measure.Find(key)) continue;
      if (!more) table.Group("not in the paper");
      more = true;
      add(key, nullptr);
    }
    // "1.00·10⁴" without its mantissa
    const std::string power =
        scale == 1 ? "" : ShowNumber(scale).substr(std::string("1.00·").size()) + " ";
    return table.Render(
        Pretty(measure.where + ": " + measure.label + " [" + power + measure.unit + "]"));
  }

  // every metric of the experiment, for the policies that have it
  std::string AllMetrics(const std::string& experiment) {
    const std::vector<RowKey> rows = RowsWith(experiment);
    if (rows.empty()) return "";
    std::vector<HtmlTable::Column> columns = {{"metric"}};
    for (const RowKey& row : rows) columns.push_back({EscapeHtml(Label(row)), true});
    HtmlTable table(columns);
    std::vector<std::pair<std::string, std::string>> names;  // name, label with unit
    for (const RowKey& row : rows) {
      for (const ExperimentResult* result : Results(experiment, row)) {
        for (const Metric& metric : result->metrics) {
          const auto known = std::find_if(
              names.begin(), names.end(), [&](const auto& n) { return n.first == metric.name; });
          if (known == names.end()) {
            names.emplace_back(
                metric.name, metric.label + (metric.unit.empty() ? "" : " [" + metric.unit + "]"));
          }
        }
      }
    }
    for (const auto& [name, label] : names) {
      std::vector<std::string> cells = {Pretty(label)};
      for (const RowKey& row : rows) cells.push_back(Show(Get(experiment, row, name)));
      table.Row(std::move(cells));
    }
    const std::string html = table.Render();
    return "<details><summary>All " + std::to_string(names.size()) + " metrics</summary>\n" + html +
           "</details>\n";
  }

  std::string Figures(const std::string& experiment) {
    std::vector<const ExperimentResult*> results;
    std::vector<std::string> labels;
    for (const RowKey& row : RowsWith(experiment)) {
      results.push_back(
          Results(experiment, row).front());  // one training seed is enough to look at
      labels.push_back(Label(row));
    }
    const plot::Figure figure = FigureOf(results, labels, PlotsApart(experiment));
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

  std::string Notes(const std::string& experiment) {
    std::string out;
    for (const RowKey& row : RowsWith(experiment)) {
      for (const ExperimentResult* result : Results(experiment, row)) {
        for (const std::string& note : result->notes)
          out += "<li>" + EscapeHtml(Label(row)) + ": " + Pretty(note) + ".</li>\n";
      }
    }
    for (const ShelfPolicy& policy : data_.shelf) {
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

  static std::string Rerun(const std::vector<std::string>& commands) {
    std::string out = "<pre><code>";
    for (const std::string& command : commands) out += EscapeHtml(command) + "\n";
    return out + "</code></pre>\n";
  }

  // ---- six questions ----

  std::string Question(int number, const std::string& question, const std::string& answer) {
    return fmt::format("<h3 id=\"q{}\">{}. {}</h3>\n<div class=\"answer\">{}</div>\n",
                       number,
                       number,
                       question,
                       answer);
  }

  // a table of metrics (columns) over rows, with "not trained yet" where there is no policy
  struct Wanted {
    const char *title, *experiment, *metric;
  };
  std::string Compare(const std::vector<RowKey>& rows, const std::vector<Wanted>& wanted) {
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

  // "no policy for this row yet" for those of the rows that have none; "" when all are there
  std::string Absent(const std::vector<RowKey>& rows) const {
    std::string list;
    int count = 0;
    for (const RowKey& row : rows) {
      if (Has(row)) continue;
      list += (list.empty() ? "" : ", ") + Code(Name(row));
      ++count;
    }
    if (count == 0) return "";
    return Paragraph(list + (count == 1 ? ": no policy for this row yet."
                                        : ": no policies for these rows yet."));
  }

  std::string Questions() {
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
      out +=
          Compare(rows,
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
      out += Question(
          2,
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
      const Estimate base = Get("hand-load", kBaseline, "step_stiffness_z");
      if (!std::isnan(base.value))
        answer += Paragraph("For comparison, <code>baseline</code>: " + Show(base, "N/m") + ".");
      out +=
          Question(3,
                   "Hand load: what is measured against the specified 200 and 1000 N/m (the paper: "
                   "400 and 1000)?",
                   answer + Absent(rows));
      std::vector<RowKey> shown = {kBaseline};
      shown.insert(shown.end(), rows.begin(), rows.end());
      out += Compare(shown,
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
        compare(
            row, "hand-impact", "band_power_z", "5–100 Hz part of the hand’s motion", "a tenth");
      }
      for (const RowKey& row : {paper_compliance, silc_compliance})
        compare(row, "foam-step", "gyro_rms", "gyro RMS on foam", "half");
      out += Question(
          5,
          "Hand impact and foam: settling time, high-frequency energy and gyro RMS against "
          "the baseline?",
          answer + Absent(rows));
      std::vector<RowKey> shown = {kBaseline};
      shown.insert(shown.end(), rows.begin(), rows.end());
      out += Compare(shown,
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

  // ---- errata and method ----

  std::string Errata() {
    // its own title and first lines say what this section's heading says
    const auto begin = data_.errata.find("## ");
    return Paragraph(
               "Each line says what is right instead and names the tests of this project that show "
               "it; run one with the command below.") +
           Rerun({"ctest --preset release",
                  "build/release/silc/stiffness/task_stiffness_test "
                  "--gtest_filter=TaskStiffness.DiscBoundsTheTask"}) +
           (begin == std::string::npos
                ? ""
                : "<div class=\"errata\">\n" + MarkdownToHtml(data_.errata.substr(begin)) +
                      "</div>\n");
  }

  std::string Method() {
    std::string out;
    out += "<h3>The rule of verdicts</h3>\n<ul>\n";
    out += "<li><b>An effect</b>, where the paper compares a row with another: " +
           Chip(Verdict::kReproduced) +
           " when our ratio is on the paper’s side of 1, its 95 % interval does not hold 1, and it "
           "is at least "
           "half of the paper’s effect on a logarithmic scale; " +
           Chip(Verdict::kPartly) + " when it is on that side; " + Chip(Verdict::kNot) +
           " otherwise. Where the paper’s own difference is under 5 %: within 10 %, within 25 %, "
           "beyond.</li>\n";
    out +=
        "<li><b>A number</b> without such a comparison: within 20 %; within a factor of 2; "
        "beyond.</li>\n";
    out +=
        "<li><b>“Never”</b>: up to 0.1 % of the samples; up to 5 %; beyond. <b>“Periodically”</b>: "
        "5 % of "
        "the samples or more; some; none.</li>\n";
    out +=
        "<li><b>A table</b>: all of its judged rows; none of them even partly; otherwise "
        "partly.</li>\n</ul>\n";
    out +=
        "<h3>What differs from the paper</h3>\n<ul>\n"
        "<li>The simulator: MuJoCo here, Isaac Gym there; Tables III and IV were measured on the "
        "robot.</li>\n"
        "<li>The robot: Unitree G1, 29 joints, 33.3 kg, shapes from primitives.</li>\n"
        "<li>Arm motions: generated reaches here, AMASS there.</li>\n"
        "<li>Units: what the paper prints as energy in J is a power in W or a mean square in m²; "
        "the numbers "
        "are compared as they are computed.</li>\n</ul>\n";
    out += "<h3>Run it again</h3>\n";
    out += Paragraph(
        "Results are kept beside this page in <code>cache/</code>, named by the content of the "
        "policy, the experiment, its settings and the version; what is there is not computed "
        "twice. This page:");
    out += Rerun({data_.command});
    if (data_.quick) {
      out += Paragraph(
          "It was written with <code>--quick</code>: fewer robots and trials than the full "
          "experiments have, so wider intervals. Without it the paper’s numbers of robots are "
          "used.");
    }
    out += Paragraph(EscapeHtml(data_.settings));
    return out;
  }

  const ReportData& data_;
  std::vector<std::pair<std::string, std::string>> sections_;  // id, title
  std::string svg_style_;
  int figure_count_ = 0;
};

}  // namespace

std::string RunKey(const std::string& experiment, const std::string& policy_path) {
  return experiment + ", " + policy_path;
}

std::string RenderPage(const ReportData& data) { return PageWriter(data).Write(); }

}  // namespace silc
