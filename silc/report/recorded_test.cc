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

class OthersTest : public RecordedTest {
 protected:
  OthersTest() {
    fs::create_directories(folder_ / "others");
    plan_.experiments.resize(1);
    plan_.experiments[0].experiment = &FindExperiment("walk");
    Put("a.json", "1");
    fs::rename(folder_ / "seeds/a.json", folder_ / "others/a.json");
  }
  std::vector<OthersResult> Read(const std::string& index) {
    WriteFileAtomically((folder_ / "others" / "index.yaml").string(), index);
    left_out_.clear();
    return ReadOthers(folder_.string(), paper_, plan_, &left_out_);
  }
  std::string ErrorOfOthers(const std::string& index) {
    try {
      Read(index);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  static std::string Entry(const std::string& name, const std::string& command) {
    return "- {file: a.json, name: " + name +
           ", source: \"theirs, a.onnx\", licence: MIT, command: " + command + "}\n";
  }

  PagePlan plan_;
  std::vector<std::string> left_out_;
};

TEST_F(OthersTest, ReadsWhoseItIsAndHowItWasMeasured) {
  EXPECT_TRUE(ReadOthers(folder_.string(), paper_, plan_, &left_out_).empty());  // no index
  const std::vector<OthersResult> others = Read(Entry("FALCON", "silc eval walk --policy a.onnx"));
  EXPECT_TRUE(left_out_.empty());
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0].row(), (RowKey{"FALCON", ""}));
  EXPECT_EQ(others[0].source, "theirs, a.onnx");
  EXPECT_EQ(others[0].licence, "MIT");
  EXPECT_EQ(others[0].command, "silc eval walk --policy a.onnx");
  EXPECT_EQ(others[0].result.Value(metric::Walk().motion.power), 4.5);
}

// A number without its origin, its licence or the command behind it is not shown.
TEST_F(OthersTest, RefusesWhatIsNotSaid) {
  const std::string sound = Entry("FALCON", "silc eval walk --policy a.onnx");
  for (const std::string key : {"source: \"theirs, a.onnx\"", "licence: MIT"}) {
    std::string without = sound;
    without.erase(without.find(key), key.size() + 2);
    EXPECT_NE(ErrorOfOthers(without).find("index.yaml:1"), std::string::npos) << without;
    std::string empty = sound;
    empty.replace(empty.find(key), key.size(), key.substr(0, key.find(':')) + ": \"\"");
    EXPECT_NE(ErrorOfOthers(empty).find("must say something"), std::string::npos) << empty;
  }
  EXPECT_NE(ErrorOfOthers(Entry("silc", "silc eval walk")).find("is a method of silc"),
            std::string::npos);
  EXPECT_NE(ErrorOfOthers(sound + sound).find("index.yaml:2"), std::string::npos);
}

TEST_F(OthersTest, LeavesOutAResultThatIsNotTheCommandsOrNotThePages) {
  EXPECT_TRUE(Read(Entry("FALCON", "silc eval punch --policy a.onnx")).empty());
  ASSERT_EQ(left_out_.size(), 1u);
  EXPECT_NE(left_out_[0].find("a.json: is a result of walk"), std::string::npos) << left_out_[0];
  plan_.experiments[0].experiment = &FindExperiment("punch");
  EXPECT_TRUE(Read(Entry("FALCON", "silc eval walk --policy a.onnx")).empty());
  ASSERT_EQ(left_out_.size(), 1u);
  EXPECT_NE(left_out_[0].find("the report has no experiment 'walk'"), std::string::npos);
  fs::remove(folder_ / "others/a.json");
  EXPECT_TRUE(Read(Entry("FALCON", "silc eval walk --policy a.onnx")).empty());
  ASSERT_EQ(left_out_.size(), 1u);
  EXPECT_TRUE(left_out_[0].starts_with((folder_ / "others/a.json").string())) << left_out_[0];
}

// What ships of other people is read, is of files that docs/real_policies.md says where to get, and
// is of a thousand pushes.
TEST(Others, WhatShipsIsReadAndCanBeMeasuredAgain) {
  const std::string root = SourcePath("");
  const Paper paper = ReadPaper(YamlNode::ParseFile(root + "/configs/paper.yaml"));
  const PagePlan plan = ReadPagePlan(YamlNode::ParseFile(root + "/configs/report.yaml"), paper);
  const std::string page = ReadFile(root + "/docs/real_policies.md");
  std::vector<std::string> left_out;
  const std::vector<OthersResult> others = ReadOthers(root + "/policies", paper, plan, &left_out);
  EXPECT_TRUE(left_out.empty()) << left_out.at(0);
  EXPECT_EQ(others.size(), 2u);
  for (const OthersResult& other : others) {
    EXPECT_NE(page.find(other.result.policy_hash), std::string::npos) << other.name;
    EXPECT_EQ(other.result.experiment, "punch");
    EXPECT_NE(other.command.find(other.result.policy), std::string::npos) << other.command;
    for (const Metric& metric : other.result.metrics) {
      const bool of_starts = metric.what == metric::Punch().survival;
      EXPECT_EQ(metric.n, of_starts ? 125 : 1000) << metric.what->name;
    }
  }
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
