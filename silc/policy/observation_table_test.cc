// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/observation_table.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "silc/base/error.h"
#include "silc/policy/observation_layout.h"
#include "silc/policy/test_networks.h"

namespace silc {
namespace {

TEST(ObservationSources, EveryValueHasAPlaceOfItsOwn) {
  const ObservationSources sources = {.joints = 3, .actions = 2, .feet = 2};
  const std::vector<std::pair<TermSource, int>> widths = {{TermSource::kJointPos, 3},
                                                          {TermSource::kJointVel, 3},
                                                          {TermSource::kJointTorque, 3},
                                                          {TermSource::kRefJointPos, 3},
                                                          {TermSource::kPrevAction, 2},
                                                          {TermSource::kBaseAngVel, 3},
                                                          {TermSource::kBaseLinVel, 3},
                                                          {TermSource::kProjectedGravity, 3},
                                                          {TermSource::kCommandLinVel, 2},
                                                          {TermSource::kCommandAngVel, 1},
                                                          {TermSource::kCommandHeight, 1},
                                                          {TermSource::kCommandWalk, 1},
                                                          {TermSource::kCommandWaist, 3},
                                                          {TermSource::kConstant, 1},
                                                          {TermSource::kBudgetCom, 1},
                                                          {TermSource::kBudgetHands, 1},
                                                          {TermSource::kBudgetNull, 1},
                                                          {TermSource::kPhaseSin, 2},
                                                          {TermSource::kPhaseCos, 2}};
  std::set<int> taken;
  for (const auto& [source, width] : widths) {
    for (int i = 0; i < width; ++i) {
      EXPECT_TRUE(taken.insert(sources.At(source) + i).second) << TermSourceName(source);
    }
  }
  EXPECT_EQ(*taken.begin(), 0);
  EXPECT_EQ(*taken.rbegin(), sources.size() - 1);
  EXPECT_EQ(std::ssize(taken), sources.size());
  // the one source that reads others' places: vx, vy, then the yaw rate
  EXPECT_EQ(sources.At(TermSource::kCommandTwist), sources.At(TermSource::kCommandLinVel));
  EXPECT_EQ(sources.At(TermSource::kCommandTwist) + 2, sources.At(TermSource::kCommandAngVel));
}

// Joints b, a, c in the layout, c, b, a in the action, a, b, c in the robot.
TEST(ObservationTable, ReadsJointsInTheRobotsOrderAndActionsInThePolicys) {
  const ObservationLayout layout = ThreeJointLayout();
  const ObservationTable table = CompileObservation(layout, {"a", "b", "c"}, "test");
  ASSERT_EQ(table.frame_width(), 3 + 3 + 3 + 3 + 3 + 2 + 3 + 1);
  ASSERT_EQ(table.width(), 3 * table.frame_width());
  EXPECT_EQ(table.action_joint, (std::vector<int>{2, 1, 0}));
  // prev_action: the first is that of joint c
  EXPECT_EQ(table.entries[0].value, table.sources.At(TermSource::kPrevAction));
  EXPECT_EQ(table.Column(table.entries[0]), 2);
  // "pos" from 9: joints b, a, c, about the pose, with scales of their own
  const int joint[] = {1, 0, 2};
  const double pose[] = {0.2, 0.1, 0.3};
  for (int i = 0; i < 3; ++i) {
    const ObservationEntry<double>& pos = table.entries[9 + i];
    EXPECT_EQ(pos.source, TermSource::kJointPos);
    EXPECT_EQ(pos.value, joint[i]);
    EXPECT_EQ(table.Column(pos), joint[i]);
    EXPECT_EQ(pos.offset, pose[i]);
    EXPECT_EQ(pos.scale, 1 + i);
    EXPECT_EQ(EncodeTerm(pos, 0.7), (0.7 - pose[i]) * (1 + i));
  }
  // oldest first, three whole frames
  EXPECT_EQ(table.entries[9].newest, 2 * table.frame_width() + 9);
  EXPECT_EQ(table.entries[9].newest + 2 * table.entries[9].stride, 9);
  EXPECT_THROW(CompileObservation(layout, {"a", "b"}, "test"), ConfigError);
}

TEST(ObservationTable, ClipsBeforeAndAfterTheScale) {
  ObservationEntry<float> entry = {};
  entry.offset = 1;
  entry.scale = 4;
  entry.clip_input = 2;
  entry.clip = 6;
  EXPECT_EQ(EncodeTerm(entry, 1.5f), 2);
  EXPECT_EQ(EncodeTerm(entry, 0.0f), -4);
  EXPECT_EQ(EncodeTerm(entry, 2.75f), 6);   // 7 after the scale
  EXPECT_EQ(EncodeTerm(entry, -9.0f), -6);  // −2, then −8
  entry.clip = 100;
  EXPECT_EQ(EncodeTerm(entry, 9.0f), 8);  // 2, then 8
  EXPECT_TRUE(IsClipped(entry, 9.0f));
  EXPECT_FALSE(IsClipped(entry, 2.75f));
  entry.clip = 6;
  EXPECT_TRUE(IsClipped(entry, 2.75f));
}

}  // namespace
}  // namespace silc
