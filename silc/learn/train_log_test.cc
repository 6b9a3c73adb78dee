// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/train_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "silc/base/file.h"
#include "silc/base/utf8.h"

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

// Every figure that is shown, with all its digits.
IterationReport FullReport() {
  IterationReport report = {.iteration = 29999, .iterations = 30000, .steps_per_s = 1234567};
  for (const char* name : {"train/reward",
                           "task/episode_length",
                           "task/velocity_error",
                           "task/yaw_rate_error",
                           "task/arm_error",
                           "task/height_error",
                           "task/survival",
                           "task/stand_speed",
                           "train/fall_share",
                           "task/penalty_scale",
                           "task/force_scale",
                           "task/height_scale",
                           "stiffness/sigma_mean",
                           "stiffness/sigma_p99",
                           "stiffness/violating",
                           "stiffness/violating_double",
                           "stiffness/violating_left",
                           "stiffness/violating_right",
                           "stiffness/violating_flight",
                           "stiffness/frequency_sigma_mean",
                           "stiffness/frequency_sigma_p99",
                           "stiffness/frequency_driving",
                           "penalty/lambda",
                           "penalty/left_out",
                           "train/kl_lower",
                           "train/kl_upper",
                           "train/rate_lower",
                           "train/rate_upper",
                           "train/std_lower",
                           "train/std_upper",
                           "train/value_loss_lower",
                           "train/value_loss_upper",
                           "reward/not_shown"}) {
    report.scalars.emplace_back(name, 0.123456);
  }
  return report;
}

TEST(TrainLog, SaysWhatPeopleWatchOnOneLine) {
  IterationReport report = {.iteration = 3,
                            .iterations = 13,
                            .steps_per_s = 20100,
                            .scalars = {{"train/reward", 0.12345},
                                        {"train/kl_lower", 0.0125},
                                        {"train/rate_lower", 1e-4},
                                        {"train/kl_upper", 0.01},
                                        {"train/rate_upper", 2e-5},
                                        {"stiffness/sigma_mean", NAN},
                                        {"task/episode_length", NAN},
                                        {"stiffness/violating", 0.125},
                                        {"reward/termination", -3}}};
  EXPECT_EQ(PlainLine(report, 3725),
            "3/13  20.1 k steps/s  1 h 02 min left  reward 0.123  episode –  σ –  over 13 %  "
            "KL 0.013/0.01  rate 0.0001/2e-5\n");
  EXPECT_EQ(PanelText(report, 61),
            "iteration 3 of 13   20.1 k steps/s   1 min 01 s left\n"
            "  task      reward 0.123   episode –\n"
            "  stiffness σ mean –   over 1.05 13 %\n"
            "  learning  KL 0.013/0.01   rate 0.0001/2e-5\n");
}

TEST(TrainLog, FitsTheScreen) {
  const IterationReport report = FullReport();
  EXPECT_LE(DisplayWidth(PlainLine(report, 1e5)), 160 + 1);  // and the line's end
  EXPECT_NE(PlainLine(report, 1e5).find("KL"), std::string::npos);
  for (const int columns : {100, 80, 60, 200}) {
    std::istringstream panel(PanelText(report, 1e5, columns));
    for (std::string line; std::getline(panel, line);) {
      EXPECT_LE(DisplayWidth(line), std::min(columns, 100)) << line;
    }
  }
}

TEST(TrainLog, LinesKeepTheirDistance) {
  std::FILE* out = std::tmpfile();
  TrainLog log("", out, 3600);
  IterationReport report = kReport;
  for (report.iteration = 1; report.iteration <= report.iterations; ++report.iteration) {
    log.Write(report);
  }
  std::rewind(out);
  char text[4096] = {};
  const std::size_t size = std::fread(text, 1, sizeof(text), out);
  std::fclose(out);
  // the first and the last
  EXPECT_EQ(std::count(text, text + size, '\n'), 2) << text;
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
