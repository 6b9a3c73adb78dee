// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <array>

#include "silc/config/budget_file.h"
#include "silc/deploy/commander.h"
#include "silc/observe/closed_loop.h"
#include "silc/policy/policy.h"
#include "silc/robot/robot_model.h"
#include "silc/stiffness/observer.h"

namespace silc {

/// A state of the robot, and what is asked, as policies see them. `height` is the commanded one.
void FillPolicyInput(const PolicyRequest& request, double height, ObservationInput* input);

/// The policy thread's work.
class PolicyWorker {
 public:
  PolicyWorker(const Policy& policy, double height);
  void Answer(const PolicyRequest& request, PolicyAnswer* answer);

 private:
  Policy policy_;
  double height_;  // [m]
  std::uint32_t session_ = 0;
  ObservationInput input_;
  Eigen::VectorXd target_;
};

/// What the observer thread saw at one control step.
struct DeployMoment {
  std::int64_t time_ns = 0;
  std::uint64_t sequence = 0;
  std::uint32_t session = 0;
  ObservationInput input;
  Eigen::VectorXd qpos, qvel;  // MuJoCo's order; the base where the pose puts it, at rest
  ContactMode mode = ContactMode::kDoubleSupport;
  std::array<double, 2> foot_force{};  // [N] from the joints' torques
  Eigen::VectorXf observation;
  Eigen::VectorXd action, target;  // [1], [rad] robot's order
  bool judged = false;
  double sigma = 0, rho = 0;  // [1]
  Eigen::VectorXd K_s_diag;   // [N·m/rad]
  double observe_s = 0;       // [s] it took
};

/// What the command thread is told of it. A spectral radius that is no number stays none: the fault
/// `action_loop` counts it as above every limit.
StiffnessNote NoteOf(const DeployMoment& moment);

/// The observer thread's work: a twin of the policy sees what the policy sees, and (S2), (S3), (S6)
/// are evaluated there. The robot has no sensors in its feet: contacts come from the torques of the
/// legs, as if the robot stood still (FootForces()).
class StiffnessWorker {
 public:
  StiffnessWorker(const RobotModel& robot,
                  const Policy& policy,
                  const Servo& servo,
                  const UserBudget& budget,
                  double height);

  const DeployMoment& Observe(const PolicyRequest& request);

 private:
  std::array<double, 2> FootForces();

  const RobotModel& robot_;
  Policy policy_;
  double height_;  // [m]
  std::uint32_t session_ = 0;
  MjDataPtr data_;
  StiffnessObserver observer_;
  ContactModeTracker tracker_;
  PolicyJacobians jacobians_;
  BodyJacobians body_;
  std::array<std::array<int, 6>, 2> leg_{};  // joints, −1 when the robot.yaml does not name them
  Eigen::VectorXd gravity_;                  // [N·m]
  DeployMoment moment_;
};

}  // namespace silc
