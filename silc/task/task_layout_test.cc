// SPDX-License-Identifier: Apache-2.0
#include "silc/task/task_layout.h"

#include <gtest/gtest.h>

#include <functional>

#include "silc/base/error.h"
#include "silc/robot/robot_model.h"
#include "silc/task/test_layouts.h"

namespace silc {
namespace {

class TaskLayoutTest : public ::testing::Test {
 protected:
  // What MakeTaskLayout() says to the shipped layout, changed.
  std::string ErrorOf(const std::function<void(ObservationLayout*)>& change) {
    ObservationLayout layout = ShippedLayout();
    layout.file = "mine.yaml";
    change(&layout);
    try {
      MakeTaskLayout(layout, robot_.spec(), &config_);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  }
  static ObservationTerm& Term(ObservationLayout* layout, const std::string& name) {
    for (ObservationTerm& term : layout->terms) {
      if (term.name == name) return term;
    }
    throw ConfigError("no term " + name);
  }

  RobotModel robot_ = RobotModel::Load("g1");
  TaskConfig config_;
};

TEST_F(TaskLayoutTest, WhatTheTaskCannotTrainIsNamed) {
  EXPECT_EQ(ErrorOf([](ObservationLayout*) {}), "");
  const auto expect = [&](const char* start,
                          const std::function<void(ObservationLayout*)>& change) {
    const std::string error = ErrorOf(change);
    EXPECT_TRUE(error.starts_with(start)) << "'" << error << "' for " << start;
  };
  expect("mine.yaml: terms.speed: the task gives its actors no base_lin_vel", [](auto* l) {
    ObservationTerm term;
    term.name = "speed";
    term.source = TermSource::kBaseLinVel;
    l->terms.push_back(term);
  });
  expect("mine.yaml: terms.ref_upper_dof_pos: the task has references for the arms", [](auto* l) {
    Term(l, "ref_upper_dof_pos").joints = {"left_elbow_joint", "left_knee_joint"};
  });
  expect("mine.yaml: action.joints: the task's actions are",
         [](auto* l) { std::swap(l->action.joints[3], l->action.joints[7]); });
  expect("mine.yaml: action.residual_joints: ",
         [](auto* l) { l->action.residual_joints.pop_back(); });
  expect("mine.yaml: terms.sin_phase: the gait clock stands and runs by command_walk", [](auto* l) {
    std::erase_if(l->terms, [](auto& t) { return t.name == "command_stand"; });
  });
  expect("mine.yaml: clock.offsets: 3 phases, the task has 2 feet", [](auto* l) {
    l->clock.offsets = {0, 1, 2};
  });
  expect("mine.yaml: clock.standing_phase: 'zero' is not what the task shows",
         [](auto* l) { l->clock.standing_zero = true; });
  // the physics runs the robot's servo: a layout cannot change it
  expect("mine.yaml: kp: 150 for left_knee_joint, but ", [](auto* l) { l->kp[3] = 150; });
  expect("mine.yaml: kd: 7 for ", [](auto* l) { l->kd[3] = 7; });
  expect("mine.yaml: default_pose: 0.5 for left_knee_joint, but ",
         [](auto* l) { l->default_pose[3] = 0.5; });
  expect("mine.yaml: action.scale: 0.5 for ", [](auto* l) { l->action.scale = {0.5}; });
  expect("mine.yaml: control_dt: 0.01 for ", [](auto* l) { l->control_dt = 0.01; });
}

TEST_F(TaskLayoutTest, WhatTheConfigLeavesOpenIsTheLayouts) {
  ObservationLayout layout = ShippedLayout();
  layout.history = 4;
  layout.clock.period = 0.9;
  layout.action.clip = 30;
  TaskConfig open;
  EXPECT_EQ(MakeTaskLayout(layout, robot_.spec(), &open).layout.history, 4);
  EXPECT_EQ(open.observation.history, 4);
  EXPECT_EQ(open.gait.period, 0.9f);
  EXPECT_EQ(open.action.clip, 30);

  TaskConfig given;
  given.observation.history = 2;
  given.gait.period = 0.7f;
  given.action.clip = 50;
  const TaskLayout made = MakeTaskLayout(layout, robot_.spec(), &given);
  EXPECT_EQ(made.layout.history, 2);
  EXPECT_EQ(made.layout.clock.period, 0.7);
  EXPECT_EQ(made.layout.action.clip, 50);
  EXPECT_EQ(made.view().width, 2 * made.view().frame_width);
}

TEST_F(TaskLayoutTest, AVocabularyIsNoLayout) {
  try {
    ReadTaskLayout("mjlab");
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("mjlab.yaml: from_metadata: "), std::string::npos);
  }
}

}  // namespace
}  // namespace silc
