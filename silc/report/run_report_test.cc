// SPDX-License-Identifier: Apache-2.0
#include "silc/report/run_report.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/policy/mlp.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/onnx/writer.h"
#include "silc/report/html.h"
#include "silc/report/shelf.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

class ReportTest : public testing::Test {
 protected:
  ReportTest()
      : folder_(fs::temp_directory_path() / ("silc_report_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "policies");
    options_.policies = (folder_ / "policies").string();
    options_.out = (folder_ / "out").string();
    options_.quick = true;
    options_.pictures = false;
    options_.experiments = {"com-impulse"};  // the quickest one
    options_.version = "test";
  }
  ~ReportTest() override { fs::remove_all(folder_); }

  // the shipped policy under another name, saying another method
  void Put(const std::string& name, const std::string& method) {
    OnnxModel model = ReadOnnx(SourcePath("policies/g1_loco_baseline.onnx"));
    model.metadata["silc_method"] = method;
    if (method.empty()) model.metadata.erase("silc_method");
    model.metadata["silc_mode"] = "compliance";
    if (method == "silc") model.metadata["silc_gravity"] = "held";
    WriteOnnx(options_.policies + "/" + name,
              *RecogniseMlp(*model.graph, 0, 0),
              "obs",
              "actions",
              model.metadata,
              OnnxWeights::kHalf);
  }

  fs::path folder_;
  ReportOptions options_;
};

TEST_F(ReportTest, ComputesOnceAndAgainOnlyWhatChanged) {
  Put("a.onnx", "baseline");
  ReportOutcome outcome = WriteReport(options_);
  EXPECT_EQ(outcome.computed, 1);
  const std::string page = ReadFile(outcome.page);
  EXPECT_EQ(FindHtmlFault(page), "");
  EXPECT_NE(page.find("silc eval com-impulse --policy"), page.npos);

  // nothing changed: nothing is computed, and the page is the same
  outcome = WriteReport(options_);
  EXPECT_EQ(outcome.computed, 0);
  EXPECT_EQ(outcome.cached, 1);
  EXPECT_EQ(ReadFile(outcome.page), page);

  // a torn result is no result
  for (const auto& entry : fs::directory_iterator(options_.out + "/cache"))
    WriteFileAtomically(entry.path().string(), ReadFile(entry.path().string()).substr(0, 200));
  EXPECT_EQ(WriteReport(options_).computed, 1);

  // other bytes, another policy
  Put("a.onnx", "scalar-lcp");
  EXPECT_EQ(WriteReport(options_).computed, 1);
}

TEST_F(ReportTest, AFileThatCannotBeUsedSpoilsNothing) {
  WriteFileAtomically(options_.policies + "/broken.onnx", "no ONNX at all");
  Put("silent.onnx", "");
  WriteFileAtomically(options_.policies + "/card.md", "# a card");
  const ReportOutcome outcome = WriteReport(options_);
  EXPECT_EQ(outcome.computed + outcome.cached + outcome.failed, 0);
  const std::string page = ReadFile(outcome.page);
  EXPECT_EQ(FindHtmlFault(page), "");
  EXPECT_NE(page.find("broken.onnx"), page.npos);
  EXPECT_NE(page.find("does not say its method"), page.npos);
  EXPECT_EQ(page.find("card.md"), page.npos);
}

TEST_F(ReportTest, WrongFolderOrExperimentIsSaidAtOnce) {
  options_.experiments = {"com-impuls"};
  EXPECT_THROW(WriteReport(options_), ConfigError);
  options_.experiments = {"stand"};  // an experiment, but none of the page's
  EXPECT_THROW(WriteReport(options_), ConfigError);
  options_.experiments = {};
  options_.seeds = {1, 2, 1};
  EXPECT_THROW(WriteReport(options_), ConfigError);
  options_.seeds = {1};
  options_.policies = (folder_ / "nowhere").string();
  EXPECT_THROW(WriteReport(options_), ConfigError);
}

TEST_F(ReportTest, ShelfReadsMethodAndModeFromTheFile) {
  Put("b.onnx", "silc");
  Put("a.onnx", "baseline");
  const std::vector<ShelfPolicy> shelf = ReadShelf(options_.policies);
  ASSERT_EQ(shelf.size(), 2u);
  EXPECT_EQ(shelf[0].row, (RowKey{"baseline", ""}));  // no budget, whatever the run was given
  EXPECT_EQ(shelf[0].budget(), "compliance");
  EXPECT_EQ(shelf[1].row, (RowKey{"silc", "compliance"}));
  EXPECT_EQ(shelf[1].task, "g1-loco");
  EXPECT_EQ(shelf[1].seed, "1");
  EXPECT_FALSE(shelf[0].gravity_held);
  EXPECT_TRUE(shelf[1].gravity_held);
}

// A policy is held against the budget it was trained under, and the command beside the number says
// so.
TEST_F(ReportTest, ABudgetThatLeavesGravityOutIsObservedWithoutIt) {
  Put("a.onnx", "silc");
  Put("b.onnx", "baseline");
  options_.experiments = {"budget"};
  const std::string page = ReadFile(WriteReport(options_).page);
  EXPECT_NE(page.find("a.onnx --mode compliance --hold-gravity --episodes"), page.npos);
  EXPECT_NE(page.find("b.onnx --mode compliance --episodes"), page.npos);
}

}  // namespace
}  // namespace silc
