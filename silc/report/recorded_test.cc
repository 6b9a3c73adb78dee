// SPDX-License-Identifier: Apache-2.0
#include "silc/report/recorded.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/eval/experiment_metrics.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

class RecordedTest : public testing::Test {
 protected:
  RecordedTest()
      : folder_(fs::temp_directory_path() / ("silc_recorded_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "seeds");
  }
  ~RecordedTest() override { fs::remove_all(folder_); }

  void Put(const std::string& name, const std::string& hash) {
    ExperimentResult result;
    result.experiment = "walk";
    result.policy_hash = hash;
    result.metrics = {{metric::Walk().motion.power, 4.5, 4, 5, 2, {4, 5}}};
    WriteFileAtomically((folder_ / "seeds" / name).string(), ToJson(result));
  }
  std::string ErrorOf(const std::string& index) {
    WriteFileAtomically((folder_ / "seeds" / "index.yaml").string(), index);
    try {
      std::vector<std::string> left_out;
      ReadRecorded(folder_.string(), paper_, "falcon", &left_out);
      if (!left_out.empty()) return "left out: " + left_out.at(0);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
  Paper paper_ = [] {
    Paper paper;
    paper.measures = {{metric::Walk().motion.power, "Table II"}};
    return paper;
  }();
};

TEST_F(RecordedTest, ReadsWhatTheIndexLists) {
  std::vector<std::string> left_out;
  EXPECT_TRUE(ReadRecorded(folder_.string(), paper_, "falcon", &left_out).empty());
  Put("a.json", "1");
  Put("b.json", "2");
  Put("not_listed.json", "3");
  ASSERT_EQ(ErrorOf("- {file: a.json, method: baseline, seed: 2}\n"
                    "- {file: b.json, method: silc, mode: compliance, seed: 3}\n"),
            "");
  const std::vector<RecordedResult> recorded =
      ReadRecorded(folder_.string(), paper_, "falcon", &left_out);
  EXPECT_TRUE(left_out.empty());
  ASSERT_EQ(recorded.size(), 2u);
  EXPECT_EQ(recorded[0].row.method, "baseline");
  EXPECT_EQ(recorded[0].row.mode, "");
  EXPECT_EQ(recorded[1].row.mode, "compliance");
  EXPECT_EQ(recorded[1].seed, "3");
  EXPECT_EQ(recorded[1].row.gains, "");
  EXPECT_EQ(recorded[1].result.Value(metric::Walk().motion.power), 4.5);
}

TEST_F(RecordedTest, AResultLargerThanAnyIsLeftOutUnread) {
  Put("a.json", "1");
  fs::resize_file(folder_ / "seeds" / "a.json", kMaxResultBytes + 1);
  EXPECT_EQ(ErrorOf("- {file: a.json, method: baseline, seed: 2}\n"),
            "left out: " + (folder_ / "seeds" / "a.json").string() +
                ": 16777217 bytes, more than the limit of 16777216");
}

TEST_F(RecordedTest, SaysWhatIsWrongAndWhere) {
  Put("a.json", "1");
  const std::string missing = ErrorOf("- {file: b.json, method: silc, seed: 2}\n");
  EXPECT_EQ(missing.find("left out: " + (folder_ / "seeds" / "b.json").string()), 0u) << missing;
  EXPECT_NE(ErrorOf("- {file: a.json, method: slic, seed: 2}\n").find("silc"), std::string::npos);
  EXPECT_NE(ErrorOf("- {file: a.json, seed: 2}\n").find("method"), std::string::npos);
  EXPECT_NE(ErrorOf("- {file: a.json, method: silc, seed: 2}\n"
                    "- {file: a.json, method: silc, seed: 3}\n")
                .find("index.yaml:2"),
            std::string::npos);
  WriteFileAtomically((folder_ / "seeds" / "a.json").string(), "{\"experiment\": 3");
  EXPECT_NE(ErrorOf("- {file: a.json, method: silc, seed: 2}\n").find("no result of silc eval"),
            std::string::npos);
}

TEST_F(RecordedTest, ATornResultIsLeftOutAndTheOthersAreRead) {
  Put("a.json", "1");
  Put("b.json", "2");
  Put("c.json", "3");
  const std::string torn = (folder_ / "seeds" / "b.json").string();
  WriteFileAtomically(torn, ReadFile(torn).substr(0, 40));
  WriteFileAtomically((folder_ / "seeds" / "index.yaml").string(),
                      "- {file: a.json, method: silc, seed: 2}\n"
                      "- {file: b.json, method: silc, seed: 3}\n"
                      "- {file: c.json, method: silc, seed: 4}\n");
  std::vector<std::string> left_out;
  const std::vector<RecordedResult> recorded =
      ReadRecorded(folder_.string(), paper_, "falcon", &left_out);
  ASSERT_EQ(recorded.size(), 2u);
  EXPECT_EQ(recorded[0].seed, "2");
  EXPECT_EQ(recorded[1].seed, "4");
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_TRUE(left_out[0].starts_with(torn)) << left_out[0];
}

// A record of before a metric was renamed must not silently drop out of its row's mean.
TEST_F(RecordedTest, SaysWhichMetricIsUnknownOrMissing) {
  Put("a.json", "1");
  const std::string index = "- {file: a.json, method: silc, seed: 2}\n";
  ASSERT_EQ(ErrorOf(index), "");
  const std::string file = (folder_ / "seeds" / "a.json").string();
  std::string text = ReadFile(file);
  text.replace(text.find("\"power\""), 7, "\"energy\"");
  WriteFileAtomically(file, text);
  EXPECT_NE(ErrorOf(index).find("a.json: 'energy' is no metric of walk"), std::string::npos)
      << ErrorOf(index);

  Put("a.json", "1");
  paper_.measures.push_back({metric::Walk().motion.action_jitter, "Table II"});
  const std::string error = ErrorOf(index);
  EXPECT_NE(error.find("has no metric 'action_jitter', which Table II has"), std::string::npos)
      << error;
}

// The records that ship have every metric of the paper's tables, by today's names.
TEST(Recorded, WhatShipsIsRead) {
  const std::string root = SourcePath("");
  const Paper paper = ReadPaper(YamlNode::ParseFile(root + "/configs/paper.yaml"));
  std::vector<std::string> left_out;
  EXPECT_FALSE(ReadRecorded(root + "/policies", paper, "falcon", &left_out).empty());
  EXPECT_TRUE(left_out.empty()) << left_out.at(0);
}

}  // namespace
}  // namespace silc
