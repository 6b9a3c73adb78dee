// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/policy_metadata.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "silc/base/error.h"
#include "silc/base/rng.h"
#include "silc/base/test_paths.h"
#include "silc/policy/layout_file.h"
#include "silc/policy/test_networks.h"

namespace silc {
namespace {

const std::string kLayouts = SourcePath("layouts");

// As mjlab's exporter writes it: commas, three decimals, semicolons inside an entry.
Metadata Mjlab() {
  return {{"run_path", "run"},
          {"joint_names", "hip,knee"},
          {"joint_stiffness", "40.179,99.098"},
          {"joint_damping", "2.558,6.309"},
          {"default_joint_pos", "-0.312,0.669"},
          {"command_names", "twist"},
          {"observation_names",
           "base_lin_vel,base_ang_vel,projected_gravity,joint_pos,joint_vel,actions,command"},
          {"observation_terms_scale", "1.000,1.000,1.000,0.500;0.250,1.000,1.000,2.000"},
          {"observation_terms_flatten_history_dim", "1.000,1.000,1.000,1.000,1.000,1.000,1.000"},
          {"observation_terms_history_length", "0.000,3.000,0.000,3.000,3.000,3.000,0.000"},
          {"observation_terms_clip",
           "-inf;inf,-inf;inf,-inf;inf,-100.000;100.000,-inf;inf,-inf;inf,-inf;inf"},
          {"action_scale", "0.548,0.351"}};
}

ObservationLayout Vocabulary() { return ReadLayoutFile(FindLayout("mjlab", kLayouts)).layout; }

TEST(PolicyMetadata, MjlabsKeysBecomeALayout) {
  const ObservationLayout layout = ChooseLayout(Mjlab(), "", kLayouts, "p.onnx");
  EXPECT_EQ(layout.name, "mjlab");
  EXPECT_EQ(layout.joints, (std::vector<std::string>{"hip", "knee"}));
  EXPECT_EQ(layout.kp, (std::vector<double>{40.179, 99.098}));
  EXPECT_EQ(layout.action.scale, (std::vector<double>{0.548, 0.351}));
  EXPECT_EQ(ObservationWidth(layout), 3 + 9 + 3 + 6 + 6 + 6 + 3);
  EXPECT_EQ(layout.terms[3].scale, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(layout.terms[3].clip_input, 100);
  EXPECT_TRUE(layout.terms[3].minus_default);
  EXPECT_EQ(layout.terms[3].history, 3);
  EXPECT_EQ(layout.terms[0].history, 1);
  EXPECT_EQ(layout.order, FrameOrder::kTermMajor);
}

std::string MjlabError(const std::string& key, const char* value) {
  Metadata metadata = Mjlab();
  if (value == nullptr) {
    metadata.erase(key);
  } else {
    metadata[key] = value;
  }
  try {
    LayoutFromMjlab(metadata, Vocabulary(), "p.onnx");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

void ExpectMentions(const std::string& error, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << error;
}

TEST(PolicyMetadata, WhatMjlabDoesNotSayIsNotGuessed) {
  for (const auto& [key, value] : Mjlab()) {
    if (key == "run_path" || key.starts_with("observation_")) continue;
    ExpectMentions(MjlabError(key, nullptr),
                   {"p.onnx: metadata '" + key + "' is missing", "--layout"});
  }
  ExpectMentions(
      MjlabError(
          "observation_names",
          "base_lin_vel,base_ang_vel,projected_gravity,joint_pos,joint_vel,actions,height_scan"),
      {"p.onnx: metadata 'observation_names': term 'height_scan' is not known to ", "mjlab.yaml"});
  ExpectMentions(MjlabError("observation_terms_scale", "1,1"),
                 {"2 entries for 7 observation terms"});
  ExpectMentions(MjlabError("joint_stiffness", "40.1"), {"1 numbers for the 2 names"});
  ExpectMentions(MjlabError("joint_damping", "40.1,x"), {"'x' is no number"});
  ExpectMentions(MjlabError("command_names", "motion"),
                 {"'motion' is not a single velocity command"});
  ExpectMentions(MjlabError("observation_terms_clip",
                            "0;1,-inf;inf,-inf;inf,-inf;inf,-inf;inf,-inf;inf,-inf;inf"),
                 {"not symmetric"});
  ExpectMentions(MjlabError("observation_terms_flatten_history_dim", "1,0,1,1,1,1,1"),
                 {"'base_ang_vel' keeps its history as an axis"});
  ExpectMentions(MjlabError("observation_terms_history_length", "0,2.5,0,0,0,0,0"),
                 {"2.5 is no history length"});
}

// Older exports: joints, gains, pose and action scale are the file's, the terms somebody's who
// knows them. Nobody's guess, unless he says so.
TEST(PolicyMetadata, WithoutTermsOnlyTheTermsAreAskedFor) {
  Metadata metadata = Mjlab();
  for (const char* key : {"observation_terms_scale",
                          "observation_terms_flatten_history_dim",
                          "observation_terms_history_length",
                          "observation_terms_clip"}) {
    metadata.erase(key);
  }
  try {
    ChooseLayout(metadata, "", kLayouts, "p.onnx");
    FAIL() << "terms were guessed";
  } catch (const ConfigError& error) {
    ExpectMentions(error.what(),
                   {"p.onnx: has mjlab's joints, gains, pose and action scale",
                    "'observation_terms_scale'",
                    "from_metadata: mjlab"});
  }
  const ObservationLayout plain = ChooseLayout(metadata, "mjlab", kLayouts, "p.onnx");
  EXPECT_EQ(plain.kp, (std::vector<double>{40.179, 99.098}));
  EXPECT_EQ(plain.default_pose, (std::vector<double>{-0.312, 0.669}));
  EXPECT_EQ(plain.action.scale, (std::vector<double>{0.548, 0.351}));
  EXPECT_EQ(ObservationWidth(plain), 3 + 3 + 3 + 2 + 2 + 2 + 3);

  // a layout of one's own: its terms as they stand, in its order where the file names none
  metadata.erase("observation_names");
  ObservationLayout own = Vocabulary();
  own.terms = {own.terms[4], own.terms[3]};
  own.terms[0].scale = {0.05};
  own.terms[1].history = 4;
  const ObservationLayout read = LayoutFromMjlab(metadata, own, "p.onnx");
  EXPECT_EQ(ObservationWidth(read), 2 + 4 * 2);
  EXPECT_EQ(read.terms[0].scale, (std::vector<double>{0.05}));
  EXPECT_EQ(read.kd, (std::vector<double>{2.558, 6.309}));
}

// Layouts written and read again: every field, every digit.
void ExpectSame(const ObservationLayout& a, const ObservationLayout& b) {
  EXPECT_EQ(MetadataFor(a, "r"), MetadataFor(b, "r"));
  EXPECT_EQ(a.default_pose, b.default_pose);
  EXPECT_EQ(a.kp, b.kp);
  EXPECT_EQ(a.kd, b.kd);
  EXPECT_EQ(a.effort_limit, b.effort_limit);
  EXPECT_EQ(a.action.scale, b.action.scale);
  EXPECT_EQ(a.control_dt, b.control_dt);
  ASSERT_EQ(a.terms.size(), b.terms.size());
  for (std::size_t i = 0; i < a.terms.size(); ++i) {
    EXPECT_EQ(a.terms[i].source, b.terms[i].source);
    EXPECT_EQ(a.terms[i].scale, b.terms[i].scale);
    EXPECT_EQ(a.terms[i].offset, b.terms[i].offset);
    EXPECT_EQ(a.terms[i].clip, b.terms[i].clip);
    EXPECT_EQ(a.terms[i].clip_input, b.terms[i].clip_input);
    EXPECT_EQ(a.terms[i].joints, b.terms[i].joints);
    EXPECT_EQ(a.terms[i].minus_default, b.terms[i].minus_default);
    EXPECT_EQ(a.terms[i].constant, b.terms[i].constant);
    EXPECT_EQ(TermFrames(a, a.terms[i]), TermFrames(b, b.terms[i]));
  }
  EXPECT_EQ(a.clock.offsets, b.clock.offsets);
  EXPECT_EQ(a.newest_first, b.newest_first);
  EXPECT_EQ(a.order, b.order);
  EXPECT_EQ(a.reset, b.reset);
}

TEST(PolicyMetadata, TheSilcBlockBringsTheLayoutBack) {
  ObservationLayout three = ThreeJointLayout();
  Rng rng(1);
  // numbers with all their digits
  for (double& x : three.default_pose) x = rng.Normal();
  for (double& x : three.kp) x = 100 * rng.Uniform();
  three.effort_limit = {88, 1.0 / 3.0, 7e-3};
  three.terms[1].clip = rng.Uniform();
  three.terms[1].clip_input = rng.Uniform();
  three.terms[1].offset = rng.Normal();
  BudgetCommand command;
  command.range[kCommandHands] = {100, 1000};
  AddBudgetTerms(command, &three);
  three.newest_first = true;
  three.reset = HistoryReset::kFirstFrame;
  three.input = "obs";
  ExpectSame(three, ChooseLayout(MetadataFor(three, "run"), "", kLayouts, "p"));
  for (const char* name : {"falcon", "holosoma"}) {
    const ObservationLayout layout = ReadLayoutFile(FindLayout(name, kLayouts)).layout;
    ExpectSame(layout, LayoutFromSilcBlock(MetadataFor(layout, "run"), "p"));
  }
}

TEST(PolicyMetadata, MjlabsKeysBringTheSameLayoutBackWhereTheyCanSayIt) {
  const ObservationLayout layout = LayoutFromMjlab(Mjlab(), Vocabulary(), "p");
  Metadata written = MetadataFor(layout, "run");
  written.erase("silc");
  for (const auto& [key, value] : Mjlab()) EXPECT_EQ(written.count(key), 1u) << key;
  ExpectSame(layout, LayoutFromMjlab(written, Vocabulary(), "p"));
  EXPECT_EQ(written["observation_terms_clip"],
            "-inf;inf,-inf;inf,-inf;inf,-100;100,-inf;inf,-inf;inf,-inf;inf");
  // FALCON's frames and residual arms are beyond mjlab's rules: no key that would be read wrongly
  // nor do they know of offsets
  ObservationLayout shifted = layout;
  shifted.terms[0].offset = 0.5;
  EXPECT_EQ(MetadataFor(shifted, "run").count("observation_names"), 0u);
  const Metadata falcon = MetadataFor(ReadLayoutFile(FindLayout("falcon", kLayouts)).layout, "run");
  EXPECT_EQ(falcon.count("observation_names"), 0u);
  EXPECT_EQ(falcon.count("joint_stiffness"), 1u);
}

TEST(PolicyMetadata, ADamagedBlockIsToldWhere) {
  const std::string block = MetadataFor(ThreeJointLayout(), "run")["silc"];
  const auto error = [&](const std::string& from, const std::string& to) -> std::string {
    std::string text = block;
    if (!from.empty()) {
      EXPECT_NE(text.find(from), std::string::npos) << from;
      text.replace(text.find(from), from.size(), to);
    }
    try {
      LayoutFromSilcBlock({{"silc", text}}, "p");
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("", ""), "no error");
  ExpectMentions(error("\"schema\":1", "\"schema\":2"),
                 {"p: metadata 'silc'", "schema 2 is newer"});
  ExpectMentions(error("\"control_dt\"", "\"control_td\""), {"'control_dt' is missing"});
  ExpectMentions(error("\"history\":3", "\"history\":3,\"histry\":1"),
                 {"unknown key 'histry'", "history"});
  ExpectMentions(error("joint_vel", "joint_veloc"), {"terms[4]", "joint_veloc", "joint_vel"});
  ExpectMentions(error("{", "["), {"is no JSON"});
  // whatever is cut off, it is an error and no crash
  for (std::size_t n = 0; n < block.size(); ++n) {
    EXPECT_THROW(LayoutFromSilcBlock({{"silc", block.substr(0, n)}}, "p"), ConfigError);
  }
}

// Two readers might take one each.
TEST(PolicyMetadata, AKeyGivenTwiceIsRefused) {
  Rng rng(3);
  const auto error_of = [](const Metadata& metadata) {
    try {
      ChooseLayout(metadata, "", kLayouts, "p.onnx");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  Metadata metadata = MetadataFor(ChooseLayout(Mjlab(), "", kLayouts, "p.onnx"), "run");
  EXPECT_EQ(error_of(metadata), "no error");
  const std::string sound = metadata["silc"];
  metadata["silc"].insert(metadata["silc"].size() - 1, ",\"kp\":[999,999]");
  EXPECT_EQ(error_of(metadata), "p.onnx: metadata 'silc': 'kp' is given twice");
  metadata["silc"] = sound;
  const std::size_t at = metadata["silc"].find("\"action\":{") + 10;
  metadata["silc"].insert(at, "\"joints\":[],");
  EXPECT_EQ(error_of(metadata), "p.onnx: metadata 'silc': 'joints' is given twice");
}

TEST(PolicyMetadata, HolosomasGainsAreTakenByName) {
  ObservationLayout layout = ThreeJointLayout();
  layout.kp.clear();
  layout.kd.clear();
  const Metadata metadata = {
      {"dof_names", R"(["a","b","c"])"}, {"kp", "[1.5,2,3]"}, {"kd", "[0.1,0.2,0.3]"}};
  ObservationLayout filled = layout;
  TakeHolosomaGains(metadata, "p", &filled);
  EXPECT_EQ(filled.kp, (std::vector<double>{2, 1.5, 3}));
  EXPECT_EQ(filled.kd, (std::vector<double>{0.2, 0.1, 0.3}));
  // gains of the layout itself stay
  filled = ThreeJointLayout();
  TakeHolosomaGains(metadata, "p", &filled);
  EXPECT_EQ(filled.kp, ThreeJointLayout().kp);

  Metadata wrong = metadata;
  wrong["dof_names"] = R"(["a","b","d"])";
  EXPECT_THROW(TakeHolosomaGains(wrong, "p", &layout), ConfigError);
  // the layout's joint is not one of the policy's: mended where the layout is written
  wrong["dof_names"] = R"(["a","b","cc"])";
  layout.file = "my.yaml";
  try {
    TakeHolosomaGains(wrong, "p.onnx", &layout);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "my.yaml: joints: 'c' is not one of the 3 'dof_names' in the metadata of p.onnx; "
                 "did you mean a, b or cc?");
  }
  wrong = metadata;
  wrong["kp"] = "[1,2]";
  EXPECT_THROW(TakeHolosomaGains(wrong, "p", &layout), ConfigError);
}

TEST(PolicyMetadata, AFileThatSaysNothingAsksForALayout) {
  try {
    ChooseLayout({}, "", kLayouts, "p.onnx");
    FAIL();
  } catch (const ConfigError& error) {
    ExpectMentions(error.what(),
                   {"p.onnx: the file does not say what it observes", "--layout falcon"});
  }
  EXPECT_EQ(ChooseLayout({}, "falcon", kLayouts, "p.onnx").name, "falcon");
}

TEST(ShortestNumber, ReadsBackAsTheSameDouble) {
  EXPECT_EQ(ShortestNumber(0.25), "0.25");
  EXPECT_EQ(ShortestNumber(40.179238471), "40.179238471");
  EXPECT_EQ(ShortestNumber(1.0), "1");
  Rng rng(2);
  for (int i = 0; i < 1000; ++i) {
    const double x = rng.Normal() * std::pow(10.0, rng.Uniform(-20, 20));
    EXPECT_EQ(std::stod(ShortestNumber(x)), x);
  }
}

}  // namespace
}  // namespace silc
