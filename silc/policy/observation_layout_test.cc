// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/observation_layout.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "silc/base/error.h"
#include "silc/policy/test_networks.h"

namespace silc {
namespace {

TEST(ObservationLayout, WidthsAddUp) {
  const ObservationLayout layout = ThreeJointLayout();
  layout.Validate("test");
  std::vector<int> widths;
  for (const ObservationTerm& term : layout.terms) widths.push_back(TermWidth(layout, term));
  // actions, omega, twist, pos, vel, torque of two joints, gravity, reference of one
  EXPECT_EQ(widths, (std::vector<int>{3, 3, 3, 3, 3, 2, 3, 1}));
  EXPECT_EQ(ObservationWidth(layout), 3 * 21);
}

TEST(ObservationLayout, EverySourceHasAName) {
  EXPECT_EQ(TermSourceNames().size(), static_cast<std::size_t>(TermSource::kConstant) + 1);
  EXPECT_STREQ(TermSourceName(TermSource::kJointPos), "joint_pos");
  EXPECT_STREQ(TermSourceName(TermSource::kConstant), "constant");
}

TEST(ObservationLayout, DescriptionListsTermsWidthsAndPlaces) {
  ObservationLayout layout = ThreeJointLayout();
  layout.terms.resize(2);
  EXPECT_EQ(DescribeTerms(layout),
            "  actions: 3, from 0 of the frame\n"
            "  omega: 3, from 3 of the frame\n"
            "  frame: 6 × 3 frames\n"
            "  together: 18");
  layout.order = FrameOrder::kTermMajor;
  EXPECT_EQ(DescribeTerms(layout),
            "  actions: 3 × 3 frames, from 0\n"
            "  omega: 3 × 3 frames, from 9\n"
            "  together: 18");
}

std::string ErrorOf(const std::function<void(ObservationLayout*)>& spoil) {
  ObservationLayout layout = ThreeJointLayout();
  spoil(&layout);
  try {
    layout.Validate("p");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ObservationLayout, MistakesNameTheKey) {
  EXPECT_EQ(ErrorOf([](auto*) {}), "no error");
  EXPECT_EQ(ErrorOf([](auto* l) { l->control_dt = 0; }),
            "p: control_dt: 0.000000 s must be in (0, 1]");
  EXPECT_EQ(ErrorOf([](auto* l) { l->default_pose.pop_back(); }),
            "p: default_pose: 2 numbers for 3 joints");
  EXPECT_EQ(ErrorOf([](auto* l) { l->joints[1] = "b"; }), "p: joints: 'b' is listed twice");
  EXPECT_EQ(ErrorOf([](auto* l) { l->kd.clear(); }), "p: kp, kd: give both or none");
  EXPECT_EQ(ErrorOf([](auto* l) { l->action.joints[0] = "cc"; }),
            "p: action.joints: 'cc' is not a joint of the layout; did you mean c, b or a?");
  EXPECT_EQ(ErrorOf([](auto* l) {
              l->action.scale = {1, 2};
            }),
            "p: action.scale: 2 numbers for 3 actions; give one, or one per action");
  EXPECT_EQ(ErrorOf([](auto* l) {
              l->terms[3].scale = {1, 2};
            }),
            "p: terms.pos.scale: 2 numbers for 3 elements; give one, or one per element");
  EXPECT_EQ(ErrorOf([](auto* l) { l->terms[1].joints = {"a"}; }),
            "p: terms.omega.joints: base_ang_vel has no joints");
  EXPECT_EQ(ErrorOf([](auto* l) { l->terms[1].name = "actions"; }),
            "p: terms.actions: is listed twice");
  EXPECT_EQ(ErrorOf([](auto* l) { l->terms[1].minus_default = true; }),
            "p: terms.omega.minus_default: is for joint_pos and ref_joint_pos");
  EXPECT_EQ(ErrorOf([](auto* l) { l->terms[3].offset = 1; }),
            "p: terms.pos.offset: this term has one already");
  EXPECT_EQ(ErrorOf([](auto* l) {
              l->terms[1].source = TermSource::kBudgetHands;
              l->terms[1].scale = {0};
            }),
            "p: terms.omega.scale: 0 would hide the command");
  EXPECT_EQ(ErrorOf([](auto* l) { l->terms[1].source = TermSource::kPhaseSin; }),
            "p: terms.omega: needs a clock: with period and offsets");
  EXPECT_EQ(ErrorOf([](auto* l) { l->terms[1].history = 2; }),
            "p: terms.omega.history: frames are kept whole; use order: term_major for different "
            "histories");
  EXPECT_EQ(ErrorOf([](auto* l) { l->history = 0; }), "p: history: 0 must be in [1, 1000]");
}

// Each name is held against all others, and widths are multiplied.
TEST(ObservationLayout, NamesAndWidthsWithoutEndAreRefused) {
  EXPECT_EQ(ErrorOf([](auto* l) {
              for (int k = 0; k < 200'000; ++k) l->joints.push_back("j" + std::to_string(k));
            }),
            "p: joints: 200003 joints; silc reads at most 64");
  EXPECT_EQ(ErrorOf([](auto* l) { l->terms.resize(100'000, l->terms[0]); }),
            "p: terms: 100000 terms; silc reads at most 1000");
  // 1000 × 3'000'000 elements are more than an int holds
  EXPECT_EQ(ErrorOf([](auto* l) {
              ObservationTerm term;
              term.name = "wide";
              term.constant.assign(3'000'000, 0);
              term.history = 1000;
              l->terms.push_back(term);
              l->order = FrameOrder::kTermMajor;
            }),
            "p: terms: the observation is wider than 1000000");
}

// Names go into policies as JSON, which holds text alone: a training must not learn that at its
// end.
TEST(ObservationLayout, NamesThatAreNoTextAreRefused) {
  const std::string what = "'a\\xffb' is no text";
  EXPECT_EQ(ErrorOf([](auto* l) {
              l->name =
                  "a\xff"
                  "b";
            }),
            "p: name: " + what);
  EXPECT_EQ(ErrorOf([](auto* l) {
              l->input =
                  "a\xff"
                  "b";
            }),
            "p: input: " + what);
  EXPECT_EQ(ErrorOf([](auto* l) {
              l->output =
                  "a\xff"
                  "b";
            }),
            "p: output: " + what);
  EXPECT_EQ(ErrorOf([](auto* l) {
              l->joints[1] =
                  "a\xff"
                  "b";
            }),
            "p: joints: " + what);
  EXPECT_EQ(ErrorOf([](auto* l) {
              l->terms[1].name =
                  "a\xff"
                  "b";
            }),
            "p: terms: " + what);
  EXPECT_EQ(ErrorOf([](auto* l) { l->name = "Größe"; }), "no error");
}

// What no robot can mean: a slipped digit is told, not multiplied by.
TEST(ObservationLayout, NumbersBeyondWhatTheyCanMeanNameTheKey) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ErrorOf([](auto* l) { l->action.scale = {1e300}; }),
            "p: action.scale: 1e+300 is outside [-100, 100]");
  EXPECT_EQ(ErrorOf([=](auto* l) { l->action.scale = {nan}; }),
            "p: action.scale: nan is outside [-100, 100]");
  EXPECT_EQ(ErrorOf([](auto* l) { l->terms[1].scale = {-1e300}; }),
            "p: terms.omega.scale: -1e+300 is outside [-1e+06, 1e+06]");
  EXPECT_EQ(ErrorOf([](auto* l) { l->terms[1].offset = 1e300; }),
            "p: terms.omega.offset: 1e+300 is outside [-1e+06, 1e+06]");
  EXPECT_EQ(ErrorOf([](auto* l) {
              l->terms[1].source = TermSource::kConstant;
              l->terms[1].constant = {1, 1e300};
            }),
            "p: terms.omega.value: 1e+300 is outside [-1e+06, 1e+06]");
  const auto clock = [](ObservationLayout* l) { l->clock = {.period = 1, .offsets = {0, 3}}; };
  EXPECT_EQ(ErrorOf(clock), "no error");
  EXPECT_EQ(ErrorOf([&](auto* l) {
              clock(l);
              l->clock.period = 1e-300;
            }),
            "p: clock.period: 1e-300 is outside [0.001, 1000]");
  EXPECT_EQ(ErrorOf([&](auto* l) {
              clock(l);
              l->clock.offsets[1] = 1e300;
            }),
            "p: clock.offsets: 1e+300 is outside [-1e+06, 1e+06]");
  EXPECT_EQ(ErrorOf([&](auto* l) {
              clock(l);
              l->clock.standing_phase = -1e300;
            }),
            "p: clock.standing_phase: -1e+300 is outside [-1e+06, 1e+06]");
  EXPECT_EQ(ErrorOf([&](auto* l) {
              clock(l);
              l->clock.standing_speed = -1;
            }),
            "p: clock.standing_speed: -1 is outside [0, 10]");
}

TEST(MapJoints, FindsByNameAndSuggestsNearOnes) {
  const std::vector<std::string> robot = {"left_knee_joint", "right_knee_joint", "waist_yaw_joint"};
  EXPECT_EQ(MapJoints({"waist_yaw_joint", "left_knee_joint"}, robot, "p"),
            (std::vector<int>{2, 0}));
  try {
    MapJoints({"left_kneee_joint"}, robot, "p");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what())
                  .rfind("p: joint 'left_kneee_joint' is not one of the robot's 3 joints; did you "
                         "mean left_knee_joint",
                         0),
              0u)
        << error.what();
  }
}

}  // namespace
}  // namespace silc
