// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/shake.h"

#include <gtest/gtest.h>

#include "silc/observe/report_text.h"
#include "silc/observe/test_robot.h"

namespace silc {
namespace {

// By its name, which a page shows beside the numbers that an experiment takes by the model.
ShakePrediction Find(const ShakeResult& result, ShakeModel model) {
  for (const ShakePrediction& prediction : result.predictions) {
    if (prediction.name != Name(model)) continue;
    EXPECT_EQ(PredictedStiffness(result, model, 2), prediction.one_axis[2]);
    return prediction;
  }
  ADD_FAILURE() << "no prediction " << Name(model);
  return {};
}

// The whole chain, from a network's Jacobian to a push in a simulator that knows nothing of it:
// (S3), (S5), (S11) and the geometric term, against displacement under a steady load of 2 N.
TEST(Shake, TheModelPredictsWhatAPushMeasures) {
  LoadOptions firm;
  firm.firm_contacts = true;
  const RobotModel robot = RobotModel::Load("g1", firm);
  const Policy policy = MakeStandPolicy(robot);
  for (const Push::Point point : {Push::Point::kLeftHand,
                                  Push::Point::kCom,
                                  Push::Point::kLeftHandOnBase,
                                  Push::Point::kRightHandOnBase}) {
    ShakeOptions options;
    options.point = point;
    options.forces = {2};
    const ShakeResult result = Shake(MakeLoop(robot, policy), options);
    ASSERT_EQ(result.settled, LoopStatus::kRunning);
    ASSERT_EQ(result.mode, ContactMode::kDoubleSupport);
    const Eigen::Matrix3d measured = result.levels[0].Compliance();
    const ShakePrediction model = Find(result, ShakeModel::kStaticWithWeight);
    ASSERT_EQ(model.status, StiffnessStatus::kOk);
    // what is left is the give of the contacts (a hundredth of MuJoCo's usual) and the curvature
    // over the millimetres travelled: 1 to 3 % when measured
    EXPECT_LT((model.C_x - measured).norm(), 0.04 * measured.norm()) << result.point;

    // and the latest-frame stiffness does not: it never sees the previous action
    const ShakePrediction one_step = Find(result, ShakeModel::kOneStep);
    EXPECT_GT((one_step.C_x - measured).norm(), 0.1 * measured.norm()) << result.point;
  }
}

// A robot that steps on the spot is not the one stance the model speaks of: no ratios are printed.
TEST(Shake, ARobotThatStepsIsNotHeldAgainstTheModel) {
  ShakeResult result;
  result.point = "left hand";
  result.predictions = {{"one-step K₁", StiffnessStatus::kOk, {100, 100, 100}, {}}};
  result.predictions[0].C_x.setIdentity();
  ShakeLevel level;
  level.force = 2;
  level.plus = 0.01 * Eigen::Matrix3d::Identity();
  level.minus = -level.plus;
  for (auto& end : level.end) end.fill(LoopStatus::kRunning);
  result.levels = {level};
  EXPECT_NE(ShakeText(result).find("In K_s torque and gravity are followed\n"), std::string::npos);
  EXPECT_NE(ShakeText(result).find("model / measured"), std::string::npos);
  EXPECT_EQ(ShakeText(result).find("steps"), std::string::npos);
  result.mode_changes = 6;
  result.watched = 4.5;
  EXPECT_EQ(ShakeText(result).find("model / measured"), std::string::npos);
  EXPECT_NE(ShakeText(result).find("its contacts changed 6 times in 4.5 s"), std::string::npos);
  // sway that hides the displacement is told
  result.mode_changes = 0;
  result.sway = 0.004;
  EXPECT_NE(ShakeText(result).find("The sway is 0.4 times the smallest displacement"),
            std::string::npos)
      << ShakeText(result);
  result.friction_loss = 1.5;
  EXPECT_NE(ShakeText(result).find("friction loss of up to 1.5 N·m"), std::string::npos);
}

TEST(Shake, ARobotThatFallsIsNotMeasured) {
  const RobotModel robot = RobotModel::Load("g1");
  const ShakeResult result = Shake(MakeLoop(robot, MakeConstantPolicy(robot, 0)), {});
  EXPECT_EQ(result.settled, LoopStatus::kFallen);
  EXPECT_TRUE(result.levels.empty());
}

}  // namespace
}  // namespace silc
