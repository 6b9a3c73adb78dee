// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/shake.h"

#include <gtest/gtest.h>

#include "silc/observe/test_robot.h"

namespace silc {
namespace {

ShakePrediction Find(const ShakeResult& result, const std::string& name) {
  for (const ShakePrediction& prediction : result.predictions) {
    if (prediction.name == name) return prediction;
  }
  ADD_FAILURE() << "no prediction " << name;
  return {};
}

// The whole chain, from a network's Jacobian to a push in a simulator that knows nothing of it:
// (S3), (S5), (S11) and the geometric term, against displacement under a steady load of 2 N.
TEST(Shake, TheModelPredictsWhatAPushMeasures) {
  LoadOptions firm;
  firm.firm_contacts = true;
  const RobotModel robot = RobotModel::Load("g1", firm);
  const Policy policy = MakeStandPolicy(robot);
  for (const Push::Point point : {Push::Point::kLeftHand, Push::Point::kCom}) {
    ShakeOptions options;
    options.point = point;
    options.forces = {2};
    const ShakeResult result = Shake(MakeLoop(robot, policy), options);
    ASSERT_EQ(result.settled, LoopStatus::kRunning);
    ASSERT_EQ(result.mode, ContactMode::kDoubleSupport);
    const Eigen::Matrix3d measured = result.levels[0].Compliance();
    const ShakePrediction model = Find(result, "K_s with gravity");
    ASSERT_EQ(model.status, StiffnessStatus::kOk);
    // what is left is the give of the contacts (a hundredth of MuJoCo's usual) and the curvature
    // over the millimetres travelled: 1 to 3 % when measured
    EXPECT_LT((model.C_x - measured).norm(), 0.04 * measured.norm()) << result.point;

    // and the latest-frame stiffness does not: it never sees the previous action
    const ShakePrediction one_step = Find(result, "one-step K₁");
    EXPECT_GT((one_step.C_x - measured).norm(), 0.1 * measured.norm()) << result.point;
  }
}

TEST(Shake, ARobotThatFallsIsNotMeasured) {
  const RobotModel robot = RobotModel::Load("g1");
  const ShakeResult result = Shake(MakeLoop(robot, MakeConstantPolicy(robot, 0)), {});
  EXPECT_EQ(result.settled, LoopStatus::kFallen);
  EXPECT_TRUE(result.levels.empty());
}

}  // namespace
}  // namespace silc
