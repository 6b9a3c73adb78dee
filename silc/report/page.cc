// SPDX-License-Identifier: Apache-2.0
#include "silc/report/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "silc/base/shell.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/policy/method.h"
#include "silc/report/html.h"
#include "silc/report/markdown.h"
#include "silc/report/page_style.h"
#include "silc/report/page_words.h"
#include "silc/report/page_writer.h"
#include "silc/report/png.h"

namespace silc {

std::string PageWriter::Write() {
  std::string body;
  body += Section("story", "In one page", "In one page", Story());
  body += Section("questions", "Six questions", "Six questions", Questions());
  body += Section("policies", "Policies", "The policies", Policies());
  body += Section("table-1", "Table I", "Table I: what is specified", TableOne());
  for (const PageExperiment& section : data_.plan.experiments) body += ExperimentSection(section);
  body += CertificateSection();
  body += Section("errata", "Errata", "What is wrong in the paper", Errata());
  body += Section("rerun", "Rerun", "How these numbers are made", Method());
  return Head() + body + "</main>\n" + Foot() + "</body></html>\n";
}

bool PageWriter::Has(const RowKey& row) const {
  const auto is_row = [&](const FolderPolicy& p) { return p.fault.empty() && p.row == row; };
  return std::any_of(data_.policies.begin(), data_.policies.end(), is_row) ||
         std::any_of(data_.others.begin(), data_.others.end(), [&](const OthersResult& other) {
           return other.row() == row;
         });
}

std::vector<const ExperimentResult*> PageWriter::Results(const std::string& experiment,
                                                         const RowKey& row) const {
  std::vector<const ExperimentResult*> results;
  for (std::size_t i = 0; i < data_.found.size(); ++i) {
    if (!(data_.policies[i].row == row) || !data_.policies[i].fault.empty()) continue;
    for (const ExperimentResult& result : data_.found[i]) {
      if (result.experiment == experiment) results.push_back(&result);
    }
  }
  for (const OthersResult& other : data_.others) {
    if (other.row() == row && other.result.experiment == experiment)
      results.push_back(&other.result);
  }
  // other seeds of a row speak for it only together with the one that is here
  if (results.empty()) return results;
  for (const RecordedResult& other : data_.recorded) {
    if (other.row == row && other.result.experiment == experiment) results.push_back(&other.result);
  }
  return results;
}

Estimate PageWriter::Get(const RowKey& row, MetricHandle metric) const {
  std::vector<const Metric*> metrics;
  const std::vector<const ExperimentResult*> results = Results(metric->experiment, row);
  for (const ExperimentResult* result : results) {
    // another budget makes another quantity of it: only what stands against the same is pooled
    if (metric->of_budget && !(result->budget == results.front()->budget)) continue;
    if (const Metric* found = result->Find(metric)) metrics.push_back(found);
  }
  if (metrics.empty()) return {};
  const Metric pooled = PoolMetrics(metrics);
  return {pooled.value, pooled.low, pooled.high};
}

std::vector<RowKey> PageWriter::RowsWith(const std::string& experiment) const {
  std::vector<RowKey> rows;
  for (const std::string& method : MethodNames()) {
    for (const FolderPolicy& policy : data_.policies) {
      if (policy.row.method == method && !Results(experiment, policy.row).empty() &&
          std::find(rows.begin(), rows.end(), policy.row) == rows.end())
        rows.push_back(policy.row);
    }
  }
  for (const OthersResult& other : data_.others) {
    if (other.result.experiment == experiment) rows.push_back(other.row());
  }
  return rows;
}

Verdict PageWriter::VerdictOn(const PaperMeasure& measure, const RowKey& row) const {
  const Estimate against =
      measure.against ? Get(OnServoOf(row, *measure.against), measure.metric) : Estimate{};
  return Judge(measure, row, Get(row, measure.metric), against);
}

std::string PageWriter::WhyMissing(const RowKey& row, const std::string& experiment) const {
  if (!Has(row)) return kNotTrained;
  const std::vector<const ExperimentResult*> results = Results(experiment, row);
  if (!results.empty()) {
    const bool fell = std::all_of(results.begin(), results.end(), [](const ExperimentResult* r) {
      return r->trials > 0 && r->falls == r->trials;
    });
    return fell ? "none: it fell" : "no value";
  }
  for (const FolderPolicy& policy : data_.policies) {
    const auto at = data_.failures.find(RunKey(experiment, policy.path));
    if (policy.row == row && at != data_.failures.end()) return "failed";
  }
  return "not run";
}

std::string PageWriter::Section(const std::string& id,
                                const std::string& menu,
                                const std::string& title,
                                const std::string& body) {
  sections_.emplace_back(id, menu);
  return "<section id=\"" + id + "\">\n<h2>" + EscapeHtml(title) + "</h2>\n" + body +
         "</section>\n";
}

std::string PageWriter::Head() const {
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

std::string PageWriter::Shots() const {
  if (data_.pictures.empty()) {
    return data_.no_pictures.empty()
               ? ""
               : "<p class=\"note\">No pictures: " + EscapeHtml(data_.no_pictures) + ".</p>\n";
  }
  std::string out = "<div class=\"shots\">\n";
  const MetricTable* const shown[] = {
      &metric::Walk(), &metric::ComImpulse(), &metric::HandLoad(), &metric::HandImpact()};
  for (const MetricTable* of : shown) out += Shot(of->experiment(), "");
  return out + "</div>\n";
}

std::string PageWriter::Shot(const std::string& experiment, const std::string& style) const {
  const auto at = data_.pictures.find(experiment);
  if (at == data_.pictures.end()) return "";
  const std::string caption = EscapeHtml(at->second.caption);
  return "<figure" + (style.empty() ? "" : " class=\"" + style + "\"") + "><img alt=\"" + caption +
         "\" src=\"data:image/png;base64," + Base64(at->second.png) + "\"><figcaption>" + caption +
         "</figcaption></figure>\n";
}

std::string PageWriter::Foot() const {
  return "<footer><p>Try it: " + Code("silc view") +
         " opens these robots in a browser, to be pushed.</p><p>Written by silc " +
         EscapeHtml(data_.version) + " with " + Code(data_.command) + ".</p></footer>\n";
}

std::string PageWriter::Rerun(const std::vector<std::string>& commands) {
  std::string out = "<pre><code>";
  for (const std::string& command : commands) out += EscapeHtml(command) + "\n";
  return out + "</code></pre>\n";
}

std::string PageWriter::Errata() {
  // its own title and first lines say what this section's heading says
  const auto begin = data_.errata.find("## ");
  return Paragraph(
             "Each line says what is right instead and names the tests of this project that show "
             "it; run one with the command below.") +
         Rerun({"ctest --preset release",
                "build/release/silc/stiffness/task_stiffness_test "
                "--gtest_filter=TaskStiffness.DiscBoundsTheTask"}) +
         (begin == std::string::npos ? ""
                                     : "<div class=\"errata\">\n" +
                                           MarkdownToHtml(data_.errata.substr(begin)) + "</div>\n");
}

std::string PageWriter::Method() {
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

std::string RunKey(const std::string& experiment, const std::string& policy_path) {
  return experiment + ", " + policy_path;
}

std::string EvalCommand(const std::string& experiment,
                        const std::string& policy_path,
                        const std::string& mode,
                        int episodes,
                        const std::vector<std::uint64_t>& seeds) {
  return fmt::format("silc eval {} --policy {}{} --episodes {} --seeds {}",
                     experiment,
                     ShellQuote(policy_path),
                     mode.empty() ? "" : " --mode " + ShellQuote(mode),
                     episodes,
                     fmt::join(seeds, ","));
}

std::string RenderPage(const ReportData& data) { return PageWriter(data).Write(); }

}  // namespace silc
