// SPDX-License-Identifier: Apache-2.0
// Policies and options of strangers: told by name, ended with 1 or 2, whatever their numbers are.
#include <gtest/gtest.h>

#include <filesystem>

#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/cli/run_silc.h"
#include "silc/policy/mlp.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/onnx/writer.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

class StrangeInput : public ::testing::Test {
 protected:
  StrangeInput()
      : folder_(fs::path(::testing::TempDir()) / "silc_strange_input"),
        model_(ReadOnnx(SourcePath("policies/quick/g1_stand_silc.onnx"))),
        network_(RecogniseMlp(*model_.graph, 0, 0).value()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~StrangeInput() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Write(const std::string& name) const {
    WriteOnnx(Path(name), network_, "obs", "actions", model_.metadata, OnnxWeights::kFloat);
    return "'" + Path(name) + "'";
  }
  // finite weights, and every answer is infinite
  std::string WriteOverflowing() {
    for (std::vector<MlpLayer>& branch : network_.branches) {
      for (float& bias : branch.front().bias) bias = 1e38f;
      for (float& weight : branch.back().weight) weight = 1e38f;
    }
    return Write("overflow.onnx");
  }

  fs::path folder_;
  OnnxModel model_;
  MlpNetwork network_;
};

void Expect(const std::string& command, int code, const std::string& part) {
  const Outcome outcome = Silc(command);
  EXPECT_EQ(outcome.code, code) << command << "\n" << outcome.text;
  EXPECT_NE(outcome.text.find(part), std::string::npos) << command << "\n" << outcome.text;
  EXPECT_EQ(outcome.text.find('\x1b'), std::string::npos) << command;
}

// One action of its own branch: twelve units in a row whose weights lift it beyond a double, and a
// last ELU that ends at −1. The policy acts; no bound of it can be computed.
TEST_F(StrangeInput, ABoundThatOverflowsIsNone) {
  MlpLayer& last = network_.branches.back().back();
  --last.outputs;
  last.bias.pop_back();
  last.weight.resize(last.weight.size() - static_cast<std::size_t>(last.inputs));
  std::vector<MlpLayer> chain;
  for (int l = 0; l < 13; ++l) {
    MlpLayer layer;
    layer.inputs = l == 0 ? network_.inputs : 1;
    layer.outputs = 1;
    layer.weight.assign(static_cast<std::size_t>(layer.inputs),
                        l == 0    ? 0.0f
                        : l < 11  ? 1e38f
                        : l == 11 ? -1e38f
                                  : 1e-3f);
    layer.bias = {l == 0 ? 1.0f : 0.0f};
    layer.activation = l == 12 ? Activation::kNone : Activation::kElu;
    chain.push_back(layer);
  }
  network_.branches.push_back(chain);
  const std::string policy = Write("deep.onnx");
  Expect("certify " + policy + " --rollout 0.1 --settle 0 --moments 2 --samples 4",
         0,
         "0.0 % are certified");
}

TEST_F(StrangeInput, AnActionThatIsNotFiniteIsToldByPolicyAndStep) {
  const std::string policy = WriteOverflowing();
  Expect("bench observe --seconds 0.01 --policy " + policy,
         1,
         "overflow.onnx: the policy's input or output is not a finite number");
  const std::string plain = SourcePath("policies/quick/g1_stand_silc.onnx");
  for (const std::string experiment : {"punch", "com-impulse"}) {
    Expect("eval " + experiment + " --episodes 1 --threads 1 --policy " + policy,
           1,
           "overflow.onnx: control step 1 (0.00 s): ");
  }
  // the others are measured
  Expect("eval com-impulse --episodes 1 --threads 1 --policy " + policy + " " + plain,
         1,
         "1 of 2 policies could not be measured: ");
}

TEST_F(StrangeInput, NamesAreNotHandedToTheTerminal) {
  model_.metadata.erase("silc_budget");
  const std::string policy = Write("x\x1b[31mRED.onnx");
  Expect("observe " + policy + " --json '" + Path("j\x1b[31m.json") + "'", 0, "wrote ");
  Expect("export " + policy + " '" + Path("y\x1b[31m.onnx") + "'", 0, "wrote ");
}

TEST_F(StrangeInput, ANameLongerThanFilesHaveIsAskedWrongly) {
  const std::string name(5000, 'a');
  const std::string policy = SourcePath("policies/quick/g1_stand_silc.onnx");
  Expect("observe " + policy + " --mode " + name, 2, "no such budget");
  Expect("observe " + policy + " --mode ./" + name, 2, name.substr(0, 100));
  Expect("report --policies " + name + " --out " + Path("out"), 2, name.substr(0, 100));
}

TEST_F(StrangeInput, MoreTrialsThanCanBeCountedAreAskedWrongly) {
  std::string seeds = "1";
  for (int k = 2; k <= 22'000; ++k) seeds += "," + std::to_string(k);
  // 2,200,000,000 are more than an int holds
  Expect("eval punch --episodes 100000 --seeds " + seeds + " --policy " +
             SourcePath("policies/quick/g1_stand_silc.onnx"),
         2,
         "2200000000 trials; at most 1000000");
}

TEST_F(StrangeInput, APolicyWithABudgetThatNobodyCouldReadIsNotExported) {
  model_.metadata["silc_budget"] = "com: nonsense\n";
  const std::string policy = Write("bad.onnx");
  Expect("export " + policy + " " + Path("out.onnx"), 2, "bad.onnx, silc_budget");
  EXPECT_FALSE(fs::exists(Path("out.onnx")));
  // a new one takes its place
  Expect("export " + policy + " " + Path("out.onnx") + " --mode compliance", 0, "wrote ");
}

// A result in the place of the policy it is of, or of another result, would be the only one left.
TEST_F(StrangeInput, AResultDoesNotTakeThePlaceOfWhatIsRead) {
  const std::string policy = Write("p.onnx"), before = ReadFile(Path("p.onnx"));
  const std::string read = ": is a file that is read here; name another";
  Expect("observe " + policy + " --json " + policy, 2, "--json " + Path("p.onnx") + read);
  Expect("observe " + policy + " --plot " + Path("./q/../p.onnx"), 2, "there is no folder");
  Expect("observe " + policy + " --plot " + Path("./p.onnx"), 2, read);
  Expect("certify " + policy + " --json " + policy, 2, read);
  Expect("eval stand --policy " + policy + " --json " + policy, 2, read);
  fs::create_symlink(Path("p.onnx"), Path("link"));
  Expect("observe " + policy + " --csv " + Path("link"), 2, read);
  const std::string o = Path("o");
  Expect("observe " + policy + " --json " + o + " --csv " + o,
         2,
         "--csv " + o + ": is where --json is written; name another");
  EXPECT_FALSE(fs::exists(o));
  EXPECT_EQ(ReadFile(Path("p.onnx")), before);
}

TEST_F(StrangeInput, GainsThatNobodyCouldReadAreNotWritten) {
  const std::string file = Path("g.yaml");
  Expect("gains --mode compliance --effort-share 100 --max-frequency 0.1 --write " + file,
         2,
         "nothing was written");
  EXPECT_FALSE(fs::exists(file));
  Expect("gains --mode compliance --name ../x --write " + file, 2, "--name: '../x' is no name");
  Expect("gains --mode compliance --write " + Path("g+.yaml"), 2, "--write: 'g+' is no name");
}

TEST_F(StrangeInput, WhatIsSaidTwiceOrForAnotherTimeIsRefused) {
  const std::string policy = SourcePath("policies/quick/g1_stand_silc.onnx");
  Expect("observe " + policy + " --mode compliance,com=400,com=300", 2, "com: is there twice");
  const std::string frequency = "eval frequency --episodes 1 --policy " + policy;
  Expect(frequency + " --frequencies 1,2,1", 2, "1 Hz is there twice");
  Expect(frequency + " --frequencies 1 --points hand_in_world_x,hand_in_world_x",
         2,
         "'hand_in_world_x' is there twice");
  for (const std::string time : {"-1", "99"}) {
    Expect("sim --seconds 0.1 --push 50,0,0@" + time, 2, "is outside the simulation");
  }
}

}  // namespace
}  // namespace silc
