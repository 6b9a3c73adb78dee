// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/robot_fit.h"

#include <gtest/gtest.h>

#include <string>

#include "silc/base/error.h"
#include "silc/robot/tiny_biped.h"

namespace silc {
namespace {

TEST(RobotFit, FourJointsHaveNoStiffnessOnTwoFeet) {
  const TinyBipedFolder tiny;
  EXPECT_THROW(NeedStiffness(RobotModel::Load(tiny.robot_yaml())), ConfigError);
  EXPECT_NO_THROW(NeedStiffness(RobotModel::Load("berkeley")));
}

TEST(RobotFit, ABudgetOfHandsNeedsHands) {
  const RobotModel handless = RobotModel::Load("berkeley"), g1 = RobotModel::Load("g1");
  BudgetSpec budget;
  budget.com = Eigen::Vector3d(200, 200, 20000);
  EXPECT_NO_THROW(NeedPointsOf(budget, handless));
  budget.hand[1] = Eigen::Vector3d(200, 200, 200);
  EXPECT_NO_THROW(NeedPointsOf(budget, g1));
  try {
    NeedPointsOf(budget, handless);
    ADD_FAILURE() << "took hands that are not there";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("does not have"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace silc
