// SPDX-License-Identifier: Apache-2.0
#include "silc/report/page.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/report/html.h"

namespace silc {
namespace {

ReportData Empty() {
  ReportData data;
  data.paper = ReadPaper(YamlNode::ParseFile(SourcePath("configs/paper.yaml")));
  data.plan = ReadPagePlan(YamlNode::ParseFile(SourcePath("configs/report.yaml")), data.paper);
  data.errata = ReadFile(SourcePath("docs/paper_errata.md"));
  data.settings = "Quick settings: one robot.";
  data.command = "silc report --quick";
  data.version = "0";
  data.quick = true;
  return data;
}

void Add(ReportData* data, const RowKey& row, std::vector<ExperimentResult> results) {
  FolderPolicy policy;
  policy.name = row.method + "_" + row.mode;
  policy.path = "policies/" + policy.name + ".onnx";
  policy.row = row;
  for (ExperimentResult& result : results) {
    result.policy = policy.path;
    data->commands[RunKey(result.experiment, policy.path)] =
        "silc eval " + result.experiment + " --policy " + policy.path;
  }
  data->policies.push_back(policy);
  data->found.push_back(std::move(results));
}

ExperimentResult Result(const std::string& experiment, const std::vector<Metric>& metrics) {
  ExperimentResult result;
  result.experiment = experiment;
  result.metrics = metrics;
  result.settings = {{"trials", "3"}};
  return result;
}

Metric Number(MetricHandle what, double value, double half_width) {
  return {what, value, value - half_width, value + half_width, 3, {}};
}

// A page with rows of the paper, rows of ours and rows that are missing.
ReportData Some() {
  ReportData data = Empty();
  ExperimentResult budget =
      Result("budget", {Number(metric::Budget().random_direction_violations_one_step, 41, 2)});
  budget.curves = {{"form", "a<b", "time [s]", "form [1]", {0, 1, 2}, {1, 2, 1}}};
  ExperimentResult walk = Result("walk", {Number(metric::Walk().motion.action_jitter, 2e4, 100)});
  walk.notes = {"3 < 4 & a \"note\""};
  Add(&data, {"baseline", ""}, {walk, budget});
  Add(&data,
      {"silc-paper", "compliance"},
      {Result("walk", {Number(metric::Walk().motion.action_jitter, 1.5e4, 100)})});
  Add(&data,
      {"silc", "compliance"},
      {Result("walk", {Number(metric::Walk().motion.action_jitter, 1e4, 100)})});
  data.pictures["walk"] = {"\x89PNG", "A <robot>"};
  return data;
}

int Count(const std::string& text, const std::string& what) {
  int count = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(Page, IsWellFormedAndNeedsNothingButItself) {
  for (const ReportData& data : {Empty(), Some()}) {
    const std::string page = RenderPage(data);
    EXPECT_EQ(FindHtmlFault(page), "");
    for (const char* outside :
         {"http:", "https:", "//cdn", "<script", "<link", "<iframe", "@import", "javascript:"}) {
      EXPECT_EQ(page.find(outside), page.npos) << outside;
    }
    // images are inside, references point into the page
    EXPECT_EQ(Count(page, " src=\""), Count(page, " src=\"data:image/png;base64,"));
    EXPECT_EQ(Count(page, "url("), Count(page, "url(#"));
    EXPECT_NE(page.find("prefers-color-scheme:dark"), page.npos);
    EXPECT_NE(page.find("name=\"viewport\""), page.npos);
    EXPECT_NE(page.find("Try it: <code>silc view</code>"), page.npos);
  }
}

// A servo changes all that a policy is measured by: who is compared has the same one.
TEST(Page, ComparesPoliciesOfOneServo) {
  ReportData data = Some();  // on the default servo: baseline 2e4
  const auto jitter = [](double value) {
    return std::vector<ExperimentResult>{
        Result("walk", {Number(metric::Walk().motion.action_jitter, value, 1)})};
  };
  Add(&data, {"baseline", "", "mjlab"}, jitter(5e4));
  Add(&data, {"silc", "compliance", "mjlab"}, jitter(4e4));
  data.paper.our_gains = "mjlab";
  const std::string page = RenderPage(data);
  EXPECT_NE(page.find("baseline, gains mjlab"), page.npos);
  // 4e4 is 80 % of its own servo's baseline and twice the other's
  const std::string label = ">silc, compliance, gains mjlab</th>";
  std::string compared;
  for (auto at = page.find(label); at != page.npos; at = page.find(label, at + 1)) {
    const std::string cells = page.substr(at, page.find("</tr>", at) - at);
    if (cells.find(" %") != cells.npos) compared += cells + "\n";
  }
  EXPECT_NE(compared.find("−20 %"), compared.npos) << compared;
  EXPECT_EQ(compared.find("+100 %"), compared.npos) << compared;
}

TEST(Page, HasEverySectionOnceAndALinkToIt) {
  const std::string page = RenderPage(Some());
  std::set<std::string> ids;
  for (auto at = page.find(" id=\""); at != page.npos; at = page.find(" id=\"", at + 1)) {
    const auto begin = at + 5;
    EXPECT_TRUE(ids.insert(page.substr(begin, page.find('"', begin) - begin)).second)
        << page.substr(at, 40);
  }
  for (const char* id : {"story",
                         "questions",
                         "policies",
                         "table-1",
                         "table-2",
                         "table-3",
                         "table-4",
                         "fig-com",
                         "fig-hand",
                         "fig-budget",
                         "frequency",
                         "com-load-walk",
                         "punch",
                         "knob",
                         "certificate",
                         "errata",
                         "rerun"}) {
    EXPECT_EQ(ids.count(id), 1u) << id;
    EXPECT_NE(page.find("href=\"#" + std::string(id) + "\""), page.npos) << id;
  }
  for (int q = 1; q <= 6; ++q) EXPECT_EQ(ids.count("q" + std::to_string(q)), 1u) << q;
  // what a link or a clip path points to is there
  for (const std::string mark : {"href=\"#", "url(#"}) {
    for (auto at = page.find(mark); at != page.npos; at = page.find(mark, at + 1)) {
      const auto begin = at + mark.size(), end = page.find_first_of("\")", begin);
      EXPECT_EQ(ids.count(page.substr(begin, end - begin)), 1u) << page.substr(at, 40);
    }
  }
}

// With no policy there is nothing to judge, and no number of ours: every chip but Table
// I's five and the rule's own examples is "open".
TEST(Page, WithoutPoliciesNothingIsInvented) {
  const std::string page = RenderPage(Empty());
  // one each: the list of what verdicts mean
  EXPECT_EQ(Count(page, "chip yes"), 1);
  EXPECT_EQ(Count(page, "chip part"), 1);
  EXPECT_EQ(Count(page, "chip no\""), 1);
  EXPECT_EQ(page.find("silc eval walk --policy"), page.npos);
  EXPECT_GT(Count(page, "not trained yet"), 30);
  EXPECT_NE(page.find("no policies for these rows yet"), page.npos);
}

TEST(Page, PutsOursBesideThePaperWithTheVerdictAndTheCommand) {
  const std::string page = RenderPage(Some());
  // 2.00·10⁴ against the paper's 4.13·10⁴: 52 % less, beyond a factor of two
  EXPECT_NE(page.find("<td class=\"num\">4.13 <span class=\"ci\">± 1.94</span></td>"
                      "<td class=\"num\">2.00 <span class=\"ci\">[1.99, 2.01]</span></td>"
                      "<td class=\"num\">−52 %</td>"),
            page.npos);
  // −25 % where the paper has −23 %
  const auto row = page.find("<th scope=\"row\">silc-paper, compliance</th><td class=\"num\">3.19");
  ASSERT_NE(row, page.npos);
  const std::string line = page.substr(row, page.find("</tr>", row) - row);
  EXPECT_NE(line.find("−23 %"), line.npos) << line;
  EXPECT_NE(line.find("−25 %"), line.npos) << line;
  EXPECT_NE(line.find("chip yes"), line.npos) << line;
  // ours alone, below the paper's rows
  EXPECT_NE(page.find("not in the paper"), page.npos);
  EXPECT_NE(page.find("silc eval walk --policy policies/baseline_.onnx"), page.npos);
  // the third row of Table II has a policy nobody trained
  EXPECT_NE(page.find("<tr class=\"missing\"><th scope=\"row\">scalar-lcp</th>"), page.npos);
}

// A sweep of the command is a figure and a table; the line of the command itself is its first
// column, and a course of time stays a figure.
TEST(Page, TabulatesTheKnob) {
  ReportData data = Some();
  ExperimentResult knob = Result("knob", {});
  const Curve measured = {
      "hand, z", "measured", "commanded [N/m]", "stiffness [N/m]", {100, 1000}, {91.5, NAN}};
  Curve line = measured, model = measured, long_one = measured;
  line.label = "commanded";
  line.shared = true;
  line.y = {100, 1000};
  model.label = "K_s with weight";
  model.y = {87, 654};
  long_one.panel = "over time";
  long_one.x.assign(200, 1);
  long_one.y.assign(200, 2);
  knob.curves = {line, measured, model, long_one};
  Add(&data, {"silc", "command"}, {knob});
  const std::string page = RenderPage(data);
  EXPECT_EQ(FindHtmlFault(page), "");
  const auto cells = [](const char* a, const char* b, const char* c) {
    const std::string num = "<td class=\"num\">";
    return std::string(a) + "</th>" + num + b + "</td>" + num + c + "</td>";
  };
  EXPECT_NE(page.find(cells("100", "91.5", "87.0")), page.npos);
  EXPECT_NE(page.find("<td class=\"num\">–</td><td class=\"num\">654</td>"), page.npos);
  EXPECT_NE(page.find("silc, command: hand, z, stiffness [N/m]"), page.npos);
  EXPECT_EQ(page.find("silc, command: over time"), page.npos);
}

// What is specified is the hand on the base; what the paper measured has the legs in series, and is
// held against the paper's number alone.
TEST(Page, HoldsTheHandOnTheBaseAgainstItsSpec) {
  const metric::HandLoadMetrics& load = metric::HandLoad();
  ReportData data = Some();
  const auto add = [&](const std::string& mode, double spec, double on_base, double in_world) {
    Add(&data,
        {"silc", mode},
        {Result("hand-load",
                {Number(load.spec.z, spec, 0),
                 Number(load.on_base.z, on_base, 1),
                 Number(load.step_stiffness_z, in_world, 1)})});
  };
  add("soft-hand", 200, 180, 57);
  add("hard-hand", 1000, 500, 950);
  const std::string page = RenderPage(data);
  EXPECT_EQ(FindHtmlFault(page), "");
  EXPECT_NE(page.find("soft-hand met, hard-hand not met, monotone"), page.npos);
  const auto at = page.find("on the base 180");
  ASSERT_NE(at, page.npos);
  const std::string sentence = page.substr(at, page.find("</p>", at) - at);
  EXPECT_NE(sentence.find("200 N/m is specified"), sentence.npos) << sentence;
  EXPECT_NE(sentence.find("in the world 57"), sentence.npos) << sentence;
}

TEST(Page, ShowsCertificatesAndWhyOneIsMissing) {
  ReportData data = Some();
  EXPECT_NE(RenderPage(data).find("No policy was certified"), std::string::npos);
  CertificateSummary summary;
  summary.moments = 20;
  summary.sigma = 0.871;
  summary.upper = HUGE_VAL;
  summary.certified = 0.95;
  data.certificates = {{2, "silc certify a.onnx --moments 20", "", summary},
                       {1, "silc certify b.onnx --moments 20", "its network is <no> MLP", {}}};
  const std::string page = RenderPage(data);
  EXPECT_EQ(FindHtmlFault(page), "");
  EXPECT_NE(page.find("silc certify a.onnx --moments 20"), page.npos);
  EXPECT_NE(page.find("0.871"), page.npos);
  EXPECT_NE(page.find("95.0"), page.npos);
  EXPECT_NE(page.find("<td class=\"num\">none</td>"), page.npos);
  EXPECT_NE(page.find("none: its network is &lt;no&gt; MLP"), page.npos);
}

TEST(Page, TextFromFilesIsText) {
  ReportData data = Some();
  data.policies[0].path = "policies/<script>alert(1)</script>.onnx";
  data.policies[1].fault = "broken & <bad>";
  const std::string page = RenderPage(data);
  EXPECT_EQ(FindHtmlFault(page), "");
  EXPECT_EQ(page.find("<script"), page.npos);
  EXPECT_NE(page.find("broken &amp; &lt;bad&gt;"), page.npos);
  EXPECT_NE(page.find("3 &lt; 4 &amp; a &quot;note&quot;"), page.npos);
}

TEST(Page, SameDataSameBytes) { EXPECT_EQ(RenderPage(Some()), RenderPage(Some())); }

// Training seeds whose policies are not here: a row's number is the mean over all of them.
TEST(Page, PoolsRecordedSeedsWithTheFolders) {
  ReportData data = Some();
  const std::string before = RenderPage(data);
  EXPECT_EQ(before.find("Training seeds beside"), before.npos);
  ExperimentResult other =
      Result("walk", {Number(metric::Walk().motion.action_jitter, 3.5e4, 100)});
  other.trials = 256;
  other.policy = "runs/sweep/b-seed2/policy.onnx";
  other.mode = "compliance";
  other.seeds = {1};
  data.recorded.push_back({{"baseline", ""}, "2", other});
  // a row that has no policy here gets none from a record
  data.recorded.push_back({{"silc", "hard-hand"}, "2", other});
  const std::string page = RenderPage(data);
  EXPECT_EQ(FindHtmlFault(page), "");
  EXPECT_NE(page.find("baseline 2 (256)"), page.npos);
  EXPECT_EQ(page.find("hard-hand 2 (256)"), page.npos);
  EXPECT_NE(page.find("silc eval walk --policy runs/sweep/b-seed2/policy.onnx --mode compliance "
                      "--episodes 256 --seeds 1"),
            page.npos);
  // (2 + 3.5)/2 · 10⁴
  EXPECT_NE(page.find("2.75"), page.npos);
  EXPECT_EQ(before.find("2.75"), before.npos);
}

// A policy of other people has a row beside ours, with its origin, its licence and the command; it
// is in no row that the paper or silc trained.
TEST(Page, ShowsOtherPeoplesPoliciesBesideOurs) {
  const metric::PunchMetrics& punch = metric::Punch();
  ReportData data = Some();
  EXPECT_EQ(RenderPage(data).find("trained by other people"), std::string::npos);
  ExperimentResult ours = Result("punch", {Number(punch.standing[3], 62.5, 20)});
  ours.trials = 2;
  Add(&data, {"silc", "high-stiff"}, {ours});
  ExperimentResult theirs = Result("punch", {Number(punch.standing[3], 1.25, 0.5)});
  theirs.trials = 125;
  theirs.policy_hash = "8ac8f51875b878a79d9b5782";
  theirs.curves = {{"fallen", "standing", "force [N]", "fallen [%]", {150, 900}, {0, 12}}};
  data.others = {{"FALCON <1>", "a & b", "MIT", "silc eval punch --policy theirs.onnx", theirs}};
  const std::string page = RenderPage(data);
  EXPECT_EQ(FindHtmlFault(page), "");
  const auto begin = page.find("<section id=\"punch\">");
  const std::string section = page.substr(begin, page.find("</section>", begin) - begin);
  const auto our_row = section.find("silc, high-stiff</th><td class=\"num\">2</td>");
  const auto group = section.find("trained by other people");
  const auto their_row = section.find("FALCON &lt;1&gt;</th><td class=\"num\">125</td>");
  ASSERT_NE(our_row, section.npos);
  ASSERT_NE(their_row, section.npos);
  EXPECT_LT(our_row, group);
  EXPECT_LT(group, their_row);
  EXPECT_NE(section.find("1.25 <span", their_row), section.npos);
  EXPECT_NE(section.find("<td>a &amp; b</td><td>MIT</td>"), section.npos);
  EXPECT_NE(section.find("silc eval punch --policy theirs.onnx"), section.npos);
  EXPECT_NE(section.find("FALCON &lt;1&gt;", section.find("<svg")), section.npos);
  // elsewhere it is named once, among the policies
  const std::string rest = page.substr(0, begin);
  EXPECT_EQ(Count(rest, "FALCON"), 1);
}

// A σ against another budget is another quantity: it stays out of the mean, while what no budget
// judges stays in.
TEST(Page, DoesNotPoolWhatIsHeldAgainstAnotherBudget) {
  ReportData data = Some();
  for (std::size_t i = 0; i < data.policies.size(); ++i) {
    if (!(data.policies[i].row == RowKey{"baseline", ""})) continue;
    for (ExperimentResult& result : data.found[i]) {
      if (result.experiment == "walk") {
        result.metrics.push_back(Number(metric::Walk().disc_within, 61, 100));
      }
    }
  }
  ExperimentResult other = Result("walk",
                                  {Number(metric::Walk().motion.action_jitter, 3.5e4, 100),
                                   Number(metric::Walk().disc_within, 64, 100)});
  other.trials = 256;
  other.seeds = {1};
  data.recorded.push_back({{"baseline", ""}, "2", other});
  const std::string same = RenderPage(data);
  data.recorded.back().result.budget.gravity =
      other.budget.gravity == Channel::kHeld ? Channel::kFollowed : Channel::kHeld;
  const std::string differs = RenderPage(data);
  EXPECT_NE(same.find("62.5"), same.npos);
  EXPECT_EQ(differs.find("62.5"), differs.npos);
  EXPECT_NE(differs.find("2.75"), differs.npos);
  EXPECT_NE(differs.find("not in what is held against the budget"), differs.npos);
}

// A table of stiffness says under which channels its numbers hold: those of the budgets that its
// rows are held against, and of what is felt.
TEST(Page, SaysUnderWhichChannelsStiffnessHolds) {
  const metric::HandLoadMetrics& load = metric::HandLoad();
  ReportData data = Some();
  const auto judged = [](Channel gravity) {
    ExperimentResult result =
        Result("budget", {Number(metric::Budget().worst_moments_static, 41, 2)});
    result.budget.gravity = gravity;
    return result;
  };
  Add(&data, {"silc", "high-stiff"}, {judged(Channel::kFollowed)});
  Add(&data, {"silc", "hard-hand"}, {Result("hand-load", {Number(load.measured.z, 700, 1)})});
  const auto section = [&](const std::string& id) {
    const std::string page = RenderPage(data);
    EXPECT_EQ(FindHtmlFault(page), "");
    const auto at = page.find("<section id=\"" + id + "\">");
    return page.substr(at, page.find("</section>", at) - at);
  };
  // all alike: once, without names
  const std::string followed = EscapeHtml(
      "Held against a budget with gravity followed, torque followed, disc; hands' floor none");
  EXPECT_NE(section("fig-budget").find(followed + ". K₁ follows no channel."), std::string::npos)
      << section("fig-budget");
  EXPECT_EQ(section("fig-budget").find("what is felt"), std::string::npos);
  Add(&data, {"silc", "soft-hand"}, {judged(Channel::kHeld)});
  const std::string both = section("fig-budget");
  EXPECT_NE(both.find(followed + " (baseline; silc, high-stiff); gravity held, torque followed"),
            std::string::npos)
      << both;
  EXPECT_NE(both.find("(silc, soft-hand)."), std::string::npos) << both;
  EXPECT_NE(section("fig-hand").find("what is felt: torque and gravity followed."),
            std::string::npos)
      << section("fig-hand");
  // nothing about stiffness, no word of channels
  EXPECT_EQ(section("table-4").find("channel"), std::string::npos);
}

// A command is copied into a shell: a path with a space or a quote is still one word there.
TEST(EvalCommand, QuotesWhatTheShellWouldTakeApart) {
  EXPECT_EQ(EvalCommand("walk", "my policies/it's.onnx", "a b.yaml", 2, {1, 2}),
            "silc eval walk --policy 'my policies/it'\\''s.onnx' --mode 'a b.yaml' --episodes 2 "
            "--seeds 1,2");
}

}  // namespace
}  // namespace silc
