// SPDX-License-Identifier: Apache-2.0
#include "silc/report/page_plan.h"

#include <gtest/gtest.h>

#include "silc/base/error.h"
#include "silc/base/test_paths.h"
#include "silc/eval/experiment_metrics.h"

namespace silc {
namespace {

Paper OneMeasure() {
  Paper paper;
  paper.measures = {{metric::Walk().motion.power, "Table II"}};
  paper.measures[0].rows = {{{"baseline", ""}}, {{"silc-paper", "high-stiff"}}};
  return paper;
}

PagePlan Plan(const std::string& rest) {
  const std::string head =
      "experiments:\n  - {name: walk, id: i, menu: m, title: t, intro: x, quick: 3";
  return ReadPagePlan(YamlNode::Parse(head + rest + "}\n", "report.yaml"), OneMeasure());
}

std::string ErrorOfPlan(const std::string& rest) {
  try {
    Plan(rest);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(PagePlan, ShowsThePapersRowsAndSilcsBesideThem) {
  const PagePlan plan = Plan("");
  const PageExperiment& walk = plan.Find("walk");
  EXPECT_TRUE(walk.Shows({"baseline", ""}));
  EXPECT_TRUE(walk.Shows({"silc-paper", "high-stiff"}));
  EXPECT_TRUE(walk.Shows({"silc", "high-stiff"}));
  EXPECT_FALSE(walk.Shows({"silc", "compliance"}));
  EXPECT_FALSE(walk.Shows({"lcp", ""}));
  EXPECT_EQ(walk.Episodes(true), 3);
  EXPECT_EQ(walk.Episodes(false), FindExperiment("walk").episodes);
}

TEST(PagePlan, PatternsAddRowsAndTakeThemAway) {
  const PagePlan some = Plan(", also: [lcp, \"*/soft-hand\"]");
  EXPECT_TRUE(some.Find("walk").Shows({"lcp", ""}));
  EXPECT_TRUE(some.Find("walk").Shows({"silc", "soft-hand"}));
  EXPECT_FALSE(some.Find("walk").Shows({"alcp", ""}));
  const PagePlan most = Plan(", also: [\"*\"], but_not: [\"*/soft-hand\", \"*/high-stiff\"]");
  EXPECT_TRUE(most.Find("walk").Shows({"alcp", ""}));
  EXPECT_TRUE(most.Find("walk").Shows({"silc", "somebody's"}));
  EXPECT_FALSE(most.Find("walk").Shows({"silc", "soft-hand"}));
  EXPECT_TRUE(most.Find("walk").Shows({"silc", "high-stiff"})) << "the paper's rows stay";
}

TEST(PagePlan, WrongNamesAreSaid) {
  EXPECT_NE(ErrorOfPlan(", also: [basline]").find("did you mean baseline?"), std::string::npos);
  EXPECT_NE(ErrorOfPlan("}\n  - {name: wlak, id: i, menu: m, title: t, intro: x, quick: 1")
                .find("did you mean walk?"),
            std::string::npos);
  EXPECT_NE(ErrorOfPlan("}\n  - {name: walk, id: i, menu: m, title: t, intro: x, quick: 1")
                .find("is there twice"),
            std::string::npos);
  EXPECT_THROW(Plan("").Find("budget"), ConfigError);
  // a table of the paper without a section
  Paper paper = OneMeasure();
  paper.measures.push_back({metric::Budget().judged_share, "Fig. 9"});
  EXPECT_THROW(ReadPagePlan(YamlNode::Parse("experiments: [{name: walk, id: i, menu: m, title: t, "
                                            "intro: x, quick: 3}]\n",
                                            "report.yaml"),
                            paper),
               ConfigError);
}

TEST(PagePlan, WhatShipsIsRead) {
  const std::string root = SourcePath("");
  const Paper paper = ReadPaper(YamlNode::ParseFile(root + "/configs/paper.yaml"));
  const PagePlan plan = ReadPagePlan(YamlNode::ParseFile(root + "/configs/report.yaml"), paper);
  // the hands' modes are tried at the hands, not by a push at the pelvis
  EXPECT_TRUE(plan.Find("hand-load").Shows({"silc", "hard-hand"}));
  EXPECT_FALSE(plan.Find("com-impulse").Shows({"silc", "hard-hand"}));
}

}  // namespace
}  // namespace silc
