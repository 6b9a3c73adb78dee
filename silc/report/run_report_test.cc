// SPDX-License-Identifier: Apache-2.0
#include "silc/report/run_report.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/sha256.h"
#include "silc/base/test_paths.h"
#include "silc/config/policy_budget.h"
#include "silc/eval/experiment.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/observe/load_policy.h"
#include "silc/policy/mlp.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/onnx/writer.h"
#include "silc/report/certificate_summary.h"
#include "silc/report/html.h"
#include "silc/report/policy_folder.h"
#include "silc_onnx_schema.pb.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

const RobotModel& G1() {
  static const RobotModel robot = RobotModel::Load("g1");
  return robot;
}

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

  // the shipped policy under another name, saying another method; `mode`: with a budget's numbers,
  // under the budget's name unless `label` is another
  void Put(const std::string& name,
           const std::string& method,
           const std::string& mode = "",
           const std::string& label = "") {
    OnnxModel model = ReadOnnx(SourcePath("policies/g1_loco_baseline.onnx"));
    model.metadata["silc_method"] = method;
    if (method.empty()) model.metadata.erase("silc_method");
    model.metadata["silc_mode"] = "compliance";
    if (!mode.empty()) {
      TrainingNotes notes;
      PutBudget(ReadBudget(mode), &notes);
      WriteNotes(notes, &model.metadata);
    }
    if (!label.empty()) model.metadata["silc_mode"] = label;
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

  // one that silc did not write is not even read
  for (const auto& entry : fs::directory_iterator(options_.out + "/cache"))
    fs::resize_file(entry.path(), kMaxResultBytes + 1);
  EXPECT_EQ(WriteReport(options_).computed, 1);

  // other bytes, another policy
  Put("a.onnx", "scalar-lcp");
  EXPECT_EQ(WriteReport(options_).computed, 1);
}

// The file is the same; its weights, which lie beside it, are not.
TEST_F(ReportTest, OtherWeightsBesideAPolicyAreAnotherPolicy) {
  Put("a.onnx", "baseline");
  const std::string path = options_.policies + "/a.onnx";
  EXPECT_EQ(PolicyHash(path), Sha256(ReadFile(path)));
  onnx_schema::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(ReadFile(path)));
  std::string weights;
  for (onnx_schema::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.raw_data().size() < 1000) continue;
    const auto add = [&](const char* key, const std::string& value) {
      onnx_schema::StringStringEntryProto* entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    };
    add("location", "a.onnx.data");
    add("offset", std::to_string(weights.size()));
    add("length", std::to_string(tensor.raw_data().size()));
    weights += tensor.raw_data();
    tensor.clear_raw_data();
    tensor.set_data_location(onnx_schema::TensorProto::EXTERNAL);
  }
  ASSERT_FALSE(weights.empty());
  WriteFileAtomically(path, model.SerializeAsString());
  WriteFileAtomically(path + ".data", weights);
  EXPECT_EQ(WriteReport(options_).computed, 1);
  EXPECT_EQ(WriteReport(options_).cached, 1);
  const std::string hash = PolicyHash(path);
  weights[1] = static_cast<char>(weights[1] ^ 1);
  WriteFileAtomically(path + ".data", weights);
  EXPECT_NE(PolicyHash(path), hash);
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

TEST_F(ReportTest, ReadsMethodAndBudgetFromTheFile) {
  Put("b.onnx", "silc");
  Put("a.onnx", "baseline");
  const std::vector<FolderPolicy> policies = ReadPolicyFolder(options_.policies, G1());
  ASSERT_EQ(policies.size(), 2u);
  EXPECT_EQ(policies[0].row, (RowKey{"baseline", ""}));  // no budget, whatever the run was given
  EXPECT_EQ(policies[0].budget.spec, ReadBudget(kDefaultMode).spec);
  EXPECT_EQ(policies[0].warning, "");
  EXPECT_EQ(policies[1].row, (RowKey{"silc", "compliance"}));
  EXPECT_EQ(policies[1].task, "g1-loco");
  EXPECT_EQ(policies[1].seed, "1");
  EXPECT_NE(policies[1].warning.find("not its numbers"), std::string::npos) << policies[1].warning;
}

// A policy on another servo has a row of its own, whatever its method and budget.
TEST_F(ReportTest, ReadsTheServoFromTheFile) {
  Put("a.onnx", "silc", "compliance");
  OnnxModel model = ReadOnnx(options_.policies + "/a.onnx");
  // every stiffness of the layout inside halved: no set of the robot's
  const auto entry = std::find_if(model.metadata.begin(), model.metadata.end(), [](const auto& e) {
    return e.second.find("\"kp\":[") != std::string::npos;
  });
  ASSERT_NE(entry, model.metadata.end());
  std::string& layout = entry->second;
  const auto begin = layout.find("\"kp\":[") + 6;
  const auto end = layout.find(']', begin);
  std::string halved;
  for (std::size_t at = begin; at < end;) {
    const std::size_t comma = std::min(layout.find(',', at), end);
    halved += fmt::format(
        "{}{}", halved.empty() ? "" : ",", std::stod(layout.substr(at, comma - at)) / 2);
    at = comma + 1;
  }
  layout.replace(begin, end - begin, halved);
  WriteOnnx(options_.policies + "/b.onnx",
            *RecogniseMlp(*model.graph, 0, 0),
            "obs",
            "actions",
            model.metadata,
            OnnxWeights::kHalf);
  const std::vector<FolderPolicy> policies = ReadPolicyFolder(options_.policies, G1());
  ASSERT_EQ(policies.size(), 2u);
  EXPECT_EQ(policies[0].gains, "falcon");
  EXPECT_EQ(Name(policies[0].row), "silc/compliance");
  EXPECT_EQ(policies[1].gains, "own");
  EXPECT_EQ(Name(policies[1].row), "silc/compliance@own");
}

// What ships is judged by numbers inside the files; the hands' floor among them.
TEST(PolicyFolder, TheShippedPoliciesCarryTheirBudgets) {
  for (const char* folder : {"policies", "policies/quick"}) {
    for (const FolderPolicy& policy : ReadPolicyFolder(SourcePath(folder), G1())) {
      EXPECT_EQ(policy.fault, "");
      EXPECT_EQ(policy.warning, "");
      if (policy.row.mode.empty()) continue;
      EXPECT_EQ(policy.budget.name, policy.row.mode);
      EXPECT_EQ(policy.budget.spec.gravity, Channel::kHeld) << policy.path;
      EXPECT_EQ(policy.budget.spec.HasFloor(), policy.row.mode.ends_with("-hand")) << policy.path;
    }
  }
}

// A figure on a card holds under one budget's channels, condition and floor: the card names them.
TEST(PolicyFolder, EveryShippedCardSaysWhatItsPolicyIsJudgedWith) {
  for (const FolderPolicy& policy : ReadPolicyFolder(SourcePath("policies"), G1())) {
    std::string card = ReadFile(fs::path(policy.path).replace_extension(".md").string());
    std::replace(card.begin(), card.end(), '\n', ' ');  // lines are wrapped anywhere
    EXPECT_NE(card.find("judged with " + BudgetTerms(policy.budget.spec)), std::string::npos)
        << policy.path;
  }
}

// A budget nobody here knows spoils one policy and no report: it is told by name and left out.
TEST_F(ReportTest, AnUnknownBudgetIsAFaultOfItsPolicyAlone) {
  Put("a.onnx", "silc", "compliance");
  OnnxModel model = ReadOnnx(options_.policies + "/a.onnx");
  model.metadata.erase("silc_budget");
  model.metadata["silc_mode"] = "my-own";
  WriteOnnx(options_.policies + "/b.onnx",
            *RecogniseMlp(*model.graph, 0, 0),
            "obs",
            "actions",
            model.metadata,
            OnnxWeights::kHalf);
  const std::vector<FolderPolicy> policies = ReadPolicyFolder(options_.policies, G1());
  ASSERT_EQ(policies.size(), 2u);
  EXPECT_EQ(policies[0].fault, "");
  EXPECT_NE(policies[1].fault.find("b.onnx: was trained under a budget 'my-own'"),
            std::string::npos)
      << policies[1].fault;
}

// Two budgets under one name would share a row, whose mean is then of neither: the later file is
// told with both budgets' numbers and left out. The same policy alone in its folder is used.
TEST_F(ReportTest, ABudgetUnderAnothersNameIsToldAndLeftOut) {
  Put("b.onnx", "silc", "compliance,com=123", "compliance");
  EXPECT_EQ(ReadPolicyFolder(options_.policies, G1())[0].fault, "");
  Put("a.onnx", "silc", "compliance");
  Put("c.onnx", "silc", "compliance,gravity=followed", "compliance");
  Put("d.onnx", "silc", "compliance");          // a training seed: shares the row
  Put("e.onnx", "silc", "compliance,com=123");  // another name, another row
  const std::vector<FolderPolicy> policies = ReadPolicyFolder(options_.policies, G1());
  ASSERT_EQ(policies.size(), 5u);
  for (const int k : {0, 3, 4}) EXPECT_EQ(policies[k].fault, "");
  EXPECT_NE(policies[1].fault.find("is not that of a"), std::string::npos) << policies[1].fault;
  EXPECT_NE(policies[1].fault.find("here: CoM 123/123/123 N/m"), std::string::npos)
      << policies[1].fault;
  EXPECT_NE(policies[1].fault.find("there: CoM 200/200/20000 N/m"), std::string::npos)
      << policies[1].fault;
  EXPECT_NE(policies[2].fault.find("gravity followed"), std::string::npos) << policies[2].fault;

  // on the terminal and on the page; the experiment runs with the other three
  std::string said;
  options_.say = [&](const std::string& line) { said += line + "\n"; };
  const ReportOutcome outcome = WriteReport(options_);
  EXPECT_EQ(outcome.computed + outcome.cached, 3);
  EXPECT_EQ(outcome.left_out.size(), 2u);
  EXPECT_NE(said.find("b.onnx: left out: its budget is not that of a"), std::string::npos) << said;
  EXPECT_NE(said.find("c.onnx: left out: "), std::string::npos) << said;
  const std::string page = ReadFile(outcome.page);
  EXPECT_EQ(FindHtmlFault(page), "");
  EXPECT_NE(page.find("its budget is not that of a"), page.npos);
  EXPECT_EQ(page.find("b.onnx --episodes"), page.npos);
  // what each row is judged by, in numbers
  EXPECT_NE(page.find("<td>CoM 123/123/123 N/m, null space 50 N·m/rad</td>"), page.npos);
  EXPECT_NE(page.find("<td>CoM 200/200/20000 N/m, null space 50 N·m/rad</td>"), page.npos);
}

// A policy is judged by the budget inside its file; the command beside the number needs no --mode.
TEST_F(ReportTest, JudgesByTheBudgetInsideThePolicy) {
  Put("a.onnx", "silc", "compliance,com=123,gravity=followed");
  Put("b.onnx", "baseline");
  options_.experiments = {"budget"};
  const std::string page = ReadFile(WriteReport(options_).page);
  EXPECT_NE(page.find("a.onnx --episodes"), page.npos);
  EXPECT_NE(page.find("b.onnx --episodes"), page.npos);
  EXPECT_NE(page.find("gravity followed, torque followed, disc"), page.npos);
  int found = 0;
  for (const auto& entry : fs::directory_iterator(options_.out + "/cache")) {
    if (entry.path().extension() != ".json") continue;
    const ExperimentResult result = FromJson(ReadFile(entry.path().string()), "cache");
    const bool own = result.policy.ends_with("a.onnx");
    EXPECT_EQ(result.budget,
              ReadBudget(own ? "compliance,com=123,gravity=followed" : kDefaultMode).spec);
    ++found;
  }
  EXPECT_EQ(found, 2);
}

// A field of a protobuf message: number, length, bytes; all short here.
std::string Field(int number, const std::string& bytes) {
  EXPECT_LT(bytes.size(), 128u);
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string Node(const std::string& op,
                 const std::vector<std::string>& in,
                 const std::string& out) {
  std::string node;
  for (const std::string& name : in) node += Field(1, name);
  return Field(1, node + Field(2, out) + Field(3, out) + Field(4, op));
}

// 0.001 √|x − x| beside the network's answer: it acts as before, and its slope is infinite
// everywhere. The moments are not judged; the page, and the policy beside it, are made all the
// same.
TEST_F(ReportTest, APolicyWithAnInfiniteSlopeIsNotJudgedAndStopsNothing) {
  const std::string small_policy = SourcePath("policies/quick/g1_stand_silc.onnx");
  fs::copy(small_policy, options_.policies + "/b.onnx");
  const OnnxModel model = ReadOnnx(small_policy);
  std::string plain = SerializeOnnx(
      *RecogniseMlp(*model.graph, 0, 0), "obs", "network", model.metadata, OnnxWeights::kFloat);
  // the output of the graph, which stands behind its nodes, is not the network's any more
  plain.replace(plain.rfind("network"), 7, "actions");
  // messages that stand one behind the other are merged: nodes and a constant more
  const std::string small = {'\x6f', '\x12', '\x83', '\x3a'};  // 0.001 as a float
  const std::string constant =
      Field(5, std::string("\x08\x01\x10\x01", 4) + Field(8, "small") + Field(9, small));
  std::string rooted = plain + Field(7, constant);
  for (const std::string& node : {Node("Sub", {"network", "network"}, "zero"),
                                  Node("Abs", {"zero"}, "abs"),
                                  Node("Sqrt", {"abs"}, "root"),
                                  Node("Mul", {"root", "small"}, "little"),
                                  Node("Add", {"network", "little"}, "actions")}) {
    rooted += Field(7, node);
  }
  WriteFileAtomically(options_.policies + "/a.onnx", rooted);
  options_.experiments = {"budget"};
  const ReportOutcome outcome = WriteReport(options_);
  EXPECT_EQ(outcome.computed, 2);
  EXPECT_EQ(outcome.failed, 0);
  EXPECT_EQ(FindHtmlFault(ReadFile(outcome.page)), "");
  for (const auto& entry : fs::directory_iterator(options_.out + "/cache")) {
    const ExperimentResult result = FromJson(ReadFile(entry.path().string()), "cache");
    const double judged = result.Value(metric::Budget().judged_share);
    EXPECT_EQ(judged > 0, result.policy.ends_with("b.onnx")) << result.policy << ": " << judged;
  }
}

// The knob is for policies that are told their budget: others are not asked.
TEST_F(ReportTest, TheKnobIsTurnedOnCommandedPoliciesAlone) {
  Put("a.onnx", "silc", "compliance");
  options_.experiments = {"knob"};
  ReportOutcome outcome = WriteReport(options_);
  EXPECT_EQ(outcome.computed + outcome.cached + outcome.failed, 0);
  EXPECT_NE(ReadFile(outcome.page).find("id=\"knob\""), std::string::npos);

  // it says that it is commanded, and its network sees nothing of it: asked, and refused
  Put("b.onnx", "silc", "command");
  const std::vector<FolderPolicy> policies = ReadPolicyFolder(options_.policies, G1());
  EXPECT_FALSE(policies[0].command.any());
  EXPECT_TRUE(policies[1].command.any());
  outcome = WriteReport(options_);
  EXPECT_EQ(outcome.failed, 1);
  EXPECT_NE(ReadFile(outcome.page).find("b failed: "), std::string::npos);
}

TEST_F(ReportTest, CertifiesOnceWhatIsBoundedBySilc) {
  Put("a.onnx", "baseline");
  fs::copy(SourcePath("policies/quick/g1_stand_silc.onnx"), options_.policies + "/b.onnx");
  options_.experiments = {"certify"};
  ReportOutcome outcome = WriteReport(options_);
  EXPECT_EQ(outcome.computed, 1);
  EXPECT_EQ(outcome.failed, 0);
  const std::string page = ReadFile(outcome.page);
  EXPECT_EQ(FindHtmlFault(page), "");
  EXPECT_NE(page.find("b.onnx --moments 2"), page.npos);
  EXPECT_EQ(page.find("a.onnx --moments"), page.npos);

  outcome = WriteReport(options_);
  EXPECT_EQ(outcome.computed, 0);
  EXPECT_EQ(outcome.cached, 1);
  EXPECT_EQ(ReadFile(outcome.page), page);

  // a torn file is no certificate
  for (const auto& entry : fs::directory_iterator(options_.out + "/cache")) {
    const std::string text = ReadFile(entry.path().string());
    const std::optional<CertificateSummary> summary = CertificateFromText(text);
    ASSERT_TRUE(summary);
    EXPECT_EQ(summary->moments, 2);
    // what is proven is not under what was found, and that not under where it began
    EXPECT_GE(summary->upper, summary->seen);
    EXPECT_GE(summary->seen, summary->sigma - 1e-9);
    WriteFileAtomically(entry.path().string(), text.substr(0, text.size() - 5));
  }
  EXPECT_EQ(WriteReport(options_).computed, 1);
}

TEST(CertificateSummary, ABoundThatIsNoneComesBackFromTheCache) {
  CertificateSummary summary;
  summary.moments = 3;
  summary.sigma = 0.1 + 0.2;
  summary.upper = HUGE_VAL;
  const std::optional<CertificateSummary> back = CertificateFromText(ToText(summary));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->sigma, summary.sigma);
  EXPECT_EQ(back->upper, HUGE_VAL);
  EXPECT_FALSE(CertificateFromText("{}"));
}

}  // namespace
}  // namespace silc
