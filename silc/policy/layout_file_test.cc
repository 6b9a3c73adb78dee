// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/layout_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/policy/policy_metadata.h"

namespace silc {
namespace {

const std::string kLayouts = SourcePath("layouts");

int FrameBegin(const ObservationLayout& layout, const std::string& name) {
  int at = 0;
  for (const ObservationTerm& term : layout.terms) {
    if (term.name == name) return at;
    at += TermWidth(layout, term);
  }
  return -1;
}

// The silc block of an exported policy says everything, so equal blocks are equal layouts.
TEST(LayoutFile, WrittenAndReadIsTheSame) {
  const auto round_trip = [](const ObservationLayout& layout) {
    const LayoutFile read = ParseLayout(YamlNode::Parse(LayoutYaml(layout), "written"));
    EXPECT_EQ(MetadataFor(read.layout, ""), MetadataFor(layout, "")) << LayoutYaml(layout);
  };
  for (const char* name : {"falcon", "holosoma", "g1_loco"}) {
    round_trip(ReadLayoutFile(FindLayout(name, kLayouts)).layout);
  }
  ObservationLayout odd = ReadLayoutFile(FindLayout("g1_loco", kLayouts)).layout;
  odd.name = "a \"b\"";
  odd.order = FrameOrder::kTermMajor;
  odd.newest_first = true;
  odd.reset = HistoryReset::kZeros;
  odd.input = "x";
  odd.output = "y";
  odd.terms[0].history = 2;
  odd.terms[1].scale = {1.0 / 3, -2e-7, 5};
  odd.terms[2].clip_input = 0.1;
  odd.terms[2].offset = -1.0 / 7;
  odd.terms[3].source = TermSource::kConstant;
  odd.terms[3].constant = {1e-9, -3};
  odd.effort_limit.assign(29, 12.5);
  round_trip(odd);
}

// The offsets are those of the table in FALCON's own frame: 115 numbers, alphabetical.
TEST(LayoutFile, FalconIsFiveFramesOf115) {
  const ObservationLayout layout = ReadLayoutFile(FindLayout("falcon", kLayouts)).layout;
  EXPECT_EQ(ObservationWidth(layout), 575);
  EXPECT_EQ(layout.history, 5);
  EXPECT_FALSE(layout.newest_first);
  EXPECT_EQ(layout.order, FrameOrder::kFrameMajor);
  EXPECT_EQ(FrameBegin(layout, "actions"), 0);
  EXPECT_EQ(FrameBegin(layout, "base_ang_vel"), 29);
  EXPECT_EQ(FrameBegin(layout, "command_ang_vel"), 32);
  EXPECT_EQ(FrameBegin(layout, "command_base_height"), 33);
  EXPECT_EQ(FrameBegin(layout, "command_lin_vel"), 34);
  EXPECT_EQ(FrameBegin(layout, "command_stand"), 36);
  EXPECT_EQ(FrameBegin(layout, "command_waist_dofs"), 37);
  EXPECT_EQ(FrameBegin(layout, "dof_pos"), 40);
  EXPECT_EQ(FrameBegin(layout, "dof_vel"), 69);
  EXPECT_EQ(FrameBegin(layout, "projected_gravity"), 98);
  EXPECT_EQ(FrameBegin(layout, "ref_upper_dof_pos"), 101);
  ASSERT_EQ(layout.joints.size(), 29u);
  EXPECT_EQ(layout.joints[12], "waist_yaw_joint");
  EXPECT_EQ(layout.joints[22], "right_shoulder_pitch_joint");
  EXPECT_EQ(layout.default_pose[3], 0.3);
  EXPECT_EQ(layout.kp[9], 200);
  EXPECT_EQ(layout.kd[11], 0.1);
  EXPECT_EQ(layout.action.residual_joints.size(), 14u);
  EXPECT_EQ(layout.action.scale, std::vector<double>{0.25});
  for (const ObservationTerm& term : layout.terms) EXPECT_EQ(term.clip, 100) << term.name;
}

TEST(LayoutFile, HolosomaIsOneFrameOf100) {
  const ObservationLayout layout = ReadLayoutFile(FindLayout("holosoma", kLayouts)).layout;
  EXPECT_EQ(ObservationWidth(layout), 100);
  EXPECT_EQ(FrameBegin(layout, "base_ang_vel"), 29);
  EXPECT_EQ(FrameBegin(layout, "cos_phase"), 35);
  EXPECT_EQ(FrameBegin(layout, "dof_pos"), 37);
  EXPECT_EQ(FrameBegin(layout, "sin_phase"), 98);
  EXPECT_TRUE(layout.kp.empty());
  EXPECT_EQ(layout.clock.period, 1.0);
  EXPECT_EQ(layout.default_pose[16], 0.2);
  EXPECT_EQ(layout.default_pose[23], -0.2);
}

TEST(LayoutFile, MjlabIsAVocabulary) {
  const LayoutFile file = ReadLayoutFile(FindLayout("mjlab", kLayouts));
  EXPECT_TRUE(file.from_metadata);
  EXPECT_EQ(file.layout.order, FrameOrder::kTermMajor);
  EXPECT_EQ(file.layout.reset, HistoryReset::kFirstFrame);
}

constexpr const char* kSmall = R"(name: small
control_dt: 0.02
joints: [a, b]
default_pose: {b: 0.5}
kp: {a: 10, other: 20}
kd: 1
history: 2
order: term_major
frames: newest_first
reset: first_frame
clip: 10
clock: {period: 0.8, offsets: [0, 3.14], standing_phase: 1}
terms:
  - {name: q, source: joint_pos, joints: [b], minus_default: true, scale: 2, clip: 5, clip_input: 7, history: 4}
  - {name: one, source: constant, value: [1, 2]}
  - {name: s, source: phase_sin}
action: {joints: [b, a], scale: [0.1, 0.2], residual_joints: [a], clip: 3}
input: obs
output: act
)";

ObservationLayout Parse(const std::string& text) {
  return ParseLayout(YamlNode::Parse(text, "t.yaml")).layout;
}

TEST(LayoutFile, EveryKeyIsRead) {
  const ObservationLayout layout = Parse(kSmall);
  EXPECT_EQ(layout.default_pose, (std::vector<double>{0, 0.5}));
  EXPECT_EQ(layout.kp, (std::vector<double>{10, 20}));
  EXPECT_EQ(layout.kd, (std::vector<double>{1, 1}));
  EXPECT_EQ(layout.history, 2);
  EXPECT_EQ(layout.order, FrameOrder::kTermMajor);
  EXPECT_TRUE(layout.newest_first);
  EXPECT_EQ(layout.reset, HistoryReset::kFirstFrame);
  EXPECT_EQ(layout.clock.offsets, (std::vector<double>{0, 3.14}));
  EXPECT_EQ(layout.terms[0].joints, std::vector<std::string>{"b"});
  EXPECT_EQ(layout.terms[0].clip, 5);
  EXPECT_EQ(layout.terms[0].clip_input, 7);
  EXPECT_EQ(layout.terms[0].history, 4);
  EXPECT_TRUE(layout.terms[0].minus_default);
  EXPECT_EQ(layout.terms[1].clip, 10);
  EXPECT_EQ(layout.terms[1].constant, (std::vector<double>{1, 2}));
  EXPECT_EQ(layout.action.joints, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(layout.action.scale, (std::vector<double>{0.1, 0.2}));
  EXPECT_EQ(layout.action.residual_joints, std::vector<std::string>{"a"});
  EXPECT_EQ(layout.action.clip, 3);
  EXPECT_EQ(layout.input, "obs");
  EXPECT_EQ(layout.output, "act");
  EXPECT_EQ(ObservationWidth(layout), 4 + 4 + 4);
}

std::string ErrorAfter(const std::string& from, const std::string& to) {
  std::string text = kSmall;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  try {
    Parse(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

void ExpectMentions(const std::string& error, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << error;
}

TEST(LayoutFile, MistakesNameFileLineAndTheWayOut) {
  ExpectMentions(ErrorAfter("source: phase_sin", "source: phase_sine"), {"t.yaml:16", "phase_sin"});
  ExpectMentions(ErrorAfter("history: 2", "histroy: 2"), {"t.yaml", "histroy", "history"});
  ExpectMentions(ErrorAfter("{b: 0.5}", "{bb: 0.5}"),
                 {"t.yaml:4", "bb", "is not one of the layout's joints"});
  ExpectMentions(ErrorAfter("{a: 10, other: 20}", "{a: 10}"), {"t.yaml:5", "'b' is missing"});
  ExpectMentions(ErrorAfter("value: [1, 2]", "scale: 1"),
                 {"t.yaml:15", "a constant term needs 'value'"});
  ExpectMentions(ErrorAfter("action: {joints: [b, a], ", "action: {joints: [b, d], "),
                 {"t.yaml", "action.joints", "'d'"});
  ExpectMentions(ErrorAfter("joints: [a, b]\n", ""), {"t.yaml", "'joints' is missing"});
}

TEST(LayoutFile, AVocabularyMustNotSayWhatTheFileSays) {
  const std::string text =
      "name: m\ncontrol_dt: 0.02\nfrom_metadata: mjlab\njoints: [a]\nterms: []\n";
  EXPECT_THROW(ParseLayout(YamlNode::Parse(text, "t.yaml")), ConfigError);
}

TEST(FindLayout, PathsPassAndUnknownNamesListTheKnown) {
  EXPECT_EQ(FindLayout("my/own.yaml", kLayouts), "my/own.yaml");
  EXPECT_EQ(FindLayout("own.yaml", kLayouts), "own.yaml");
  try {
    FindLayout("falcn", kLayouts);
    FAIL();
  } catch (const ConfigError& error) {
    ExpectMentions(error.what(), {"'falcn'", "did you mean falcon"});
  }
}

// A layout beside one's work takes the place of the shipped one of its name, and the others stay:
// an edited copy that is passed over would be trained without.
TEST(FindLayout, EveryNameIsTakenFromTheFirstFolderThatHasIt) {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("silc_layouts_" + std::to_string(::getpid()));
  for (const char* file : {"a/own.yaml", "a/both.yaml", "b/both.yaml", "b/shipped.yaml"}) {
    fs::create_directories((root / file).parent_path());
    WriteFileAtomically((root / file).string(), "name: x\n");
  }
  const std::string a = (root / "a").string(), b = (root / "b").string(),
                    folders = (root / "none").string() + ":" + a + ":" + b;
  EXPECT_EQ(FindLayout("own", folders), a + "/own.yaml");
  EXPECT_EQ(FindLayout("both", folders), a + "/both.yaml");
  EXPECT_EQ(FindLayout("shipped", folders), b + "/shipped.yaml");
  for (const char* near : {"owm", "shiped"}) {
    try {
      FindLayout(near, folders);
      FAIL();
    } catch (const ConfigError& error) {
      ExpectMentions(error.what(),
                     {"did you mean", near == std::string("owm") ? "own" : "shipped"});
    }
  }
  fs::remove_all(root);
}

}  // namespace
}  // namespace silc
