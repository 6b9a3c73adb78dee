// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/train_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "silc/base/file.h"

namespace silc {
namespace {

const IterationReport kReport = {.iteration = 3,
                                 .iterations = 13,
                                 .steps_per_s = 20000,
                                 .scalars = {{"train/kl", 0.0125}, {"stiffness/sigma", NAN}}};

TEST(TrainLog, ALineOfMetricsIsJsonAlsoWithANumberThatIsNone) {
  const auto line = nlohmann::json::parse(MetricsLine(kReport, 1.5));
  EXPECT_EQ(line["iteration"], 3);
  EXPECT_EQ(line["train/kl"], 0.0125);
  EXPECT_TRUE(line["stiffness/sigma"].is_null());
}

TEST(TrainLog, SaysWhatIsLeft) {
  EXPECT_EQ(PlainLine(kReport, 3725),
            "3/13  20000 steps/s  1 h 02 min left  kl 0.0125  sigma nan\n");
  EXPECT_EQ(PanelText(kReport, 61).substr(0, 52),
            "iteration 3 of 13   20000 steps/s   1 min 01 s left\n");
}

TEST(TrainLog, SingleRewardTermsAreForTheFiles) {
  IterationReport report = kReport;
  report.scalars.emplace_back("reward/upright", 0.5);
  EXPECT_EQ(PlainLine(report, 1), PlainLine(kReport, 1));
  EXPECT_EQ(PanelText(report, 1), PanelText(kReport, 1));
  EXPECT_NE(MetricsLine(report, 1).find("reward/upright"), std::string::npos);
}

TEST(TrainLog, WritesPlainLinesWhereThereIsNoTerminal) {
  const auto folder = std::filesystem::temp_directory_path() / "silc_train_log_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string shown = (folder / "out.txt").string();
  {
    std::FILE* out = std::fopen(shown.c_str(), "w");
    TrainLog log(folder.string(), out);
    log.Write(kReport);
    log.Write(kReport);
    log.Say("stopped");
    std::fclose(out);
  }
  const std::string text = ReadFile(shown);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  const std::string metrics = ReadFile((folder / "metrics.jsonl").string());
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 2);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace silc
