// SPDX-License-Identifier: Apache-2.0
// Makes a policy that stands, without training, and writes it as ONNX:
//
//     stand_policy OUT.onnx [ROBOT]
//     silc observe OUT.onnx --robot ROBOT --rollout 5
#include <cstdio>
#include <exception>
#include <string>

#include "silc/lqr/stand_policy.h"
#include "silc/policy/onnx/writer.h"
#include "silc/policy/policy_metadata.h"

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: stand_policy OUT.onnx [ROBOT]\n");
    return 2;
  }
  try {
    // the robot: its joints, its gains, how its contacts let it move
    const silc::RobotModel robot =
        silc::RobotModel::Load(argc == 3 ? argv[2] : silc::kDefaultRobot);
    // the policy: a regulator around the standing pose, one layer
    const silc::StandPolicy policy = silc::DesignStandPolicy(robot);
    // the file: the network, and everything needed to run it on the robot
    silc::WriteOnnx(argv[1],
                    policy.network,
                    "obs",
                    "actions",
                    silc::MetadataFor(policy.layout, "examples/stand_policy"));
    std::printf("wrote %s: %d joints, every %g ms\n",
                argv[1],
                robot.num_joints(),
                1e3 * policy.layout.control_dt);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stand_policy: %s\n", error.what());
    return 1;
  }
}
