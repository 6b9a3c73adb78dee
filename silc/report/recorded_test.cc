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
      ReadRecorded(folder_.string(), paper_);
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
  EXPECT_TRUE(ReadRecorded(folder_.string(), paper_).empty());
  Put("a.json", "1");
  Put("b.json", "2");
  Put("not_listed.json", "3");
  ASSERT_EQ(ErrorOf("- {file: a.json, method: baseline, seed: 2}\n"
                    "- {file: b.json, method: silc, mode: compliance, seed: 3}\n"),
            "");
  const std::vector<RecordedResult> recorded = ReadRecorded(folder_.string(), paper_);
  ASSERT_EQ(recorded.size(), 2u);
  EXPECT_EQ(recorded[0].row.method, "baseline");
  EXPECT_EQ(recorded[0].row.mode, "");
  EXPECT_EQ(recorded[1].row.mode, "compliance");
  EXPECT_EQ(recorded[1].seed, "3");
  EXPECT_EQ(recorded[1].result.Value(metric::Walk().motion.power), 4.5);
}

TEST_F(RecordedTest, SaysWhatIsWrongAndWhere) {
  Put("a.json", "1");
  EXPECT_NE(ErrorOf("- {file: b.json, method: silc, seed: 2}\n").find("b.json: no such file"),
            std::string::npos);
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
  EXPECT_NE(error.find("index.yaml:1"), std::string::npos) << error;
}

// The records that ship have every metric of the paper's tables, by today's names.
TEST(Recorded, WhatShipsIsRead) {
  const std::string root = SourcePath("");
  const Paper paper = ReadPaper(YamlNode::ParseFile(root + "/configs/paper.yaml"));
  EXPECT_FALSE(ReadRecorded(root + "/policies", paper).empty());
}

}  // namespace
}  // namespace silc
