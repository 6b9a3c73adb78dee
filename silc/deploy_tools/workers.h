// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <array>

#include "silc/config/budget_file.h"
#include "silc/deploy/commander.h"
#include "silc/observe/closed_loop.h"
#include "silc/observe/leg_contacts.h"
#include "silc/policy/policy.h"
#include "silc/robot/robot_model.h"
#include "silc/stiffness/observer.h"

namespace silc {

/// A state of the robot, and what is asked, as policies see them. `height` is the commanded one.
void FillPolicyInput(const PolicyRequest& request, double height, ObservationInput* input);

/// What the policy was shown at one control step, and what it said.
struct PolicyStep {
  std::int64_t time_ns = 0;
  std::uint64_t sequence = 0;
  std::uint32_t session = 0;
  ObservationInput input;
  Eigen::VectorXd qpos, qvel;      // MuJoCo's order; the base where the pose puts it, at rest
  Eigen::VectorXf observation;     // the network's input; NaN, as the two below, unless finite
  Eigen::VectorXd action, target;  // [1], [rad] robot's order
};

/// The policy thread's work.
class PolicyWorker {
 public:
  PolicyWorker(const RobotModel& robot, const Policy& policy, double height);
  void Answer(const PolicyRequest& request, PolicyAnswer* answer);
  /// Of the last answer.
  const PolicyStep& step() const { return step_; }

 private:
  const RobotModel& robot_;
  Policy policy_;
  double height_;  // [m]
  PolicyStep step_;
  Eigen::VectorXd target_;
};

/// What the observer thread saw at one control step. NaN what could not be computed.
struct DeployMoment {
  std::uint64_t sequence = 0;
  ContactMode mode = ContactMode::kDoubleSupport;
  std::array<double, 2> foot_force{};  // [N] from the joints' torques
  bool observed = false;               ///< false: all below is NaN for want of time
  bool judged = false;
  double sigma = 0, rho = 0;  // [1]
  Eigen::VectorXd K_s_diag;   // [N·m/rad]
  double observe_s = 0;       // [s] it took
};

/// What the command thread is told of it. A spectral radius that is no number stays none: the fault
/// `action_loop` counts it as above every limit.
StiffnessNote NoteOf(const DeployMoment& moment);

/// The observer thread's work: a twin of the policy sees what the policy sees, and (S2), (S3), (S6)
/// are evaluated there. Contacts come from the torques of the legs (LegContacts).
class StiffnessWorker {
 public:
  StiffnessWorker(const RobotModel& robot,
                  const Policy& policy,
                  const Servo& servo,
                  const UserBudget& budget,
                  double height);

  /// @param after_gap    requests before this one were lost. The twin's history, and its own
  ///                     previous actions in it, then are others than the policy's: nothing is
  ///                     observed until the policy is entered anew.
  /// @param only_follow  keeps up history and contacts, for want of time
  const DeployMoment& Observe(const PolicyRequest& request,
                              bool after_gap = false,
                              bool only_follow = false);

 private:
  const RobotModel& robot_;
  Policy policy_;
  double height_;  // [m]
  std::uint32_t session_ = 0;
  bool whole_ = true;  // the twin has seen all that the policy saw
  MjDataPtr data_;
  StiffnessObserver observer_;
  LegContacts contacts_;
  ObservationInput input_;
  Eigen::VectorXd qpos_, qvel_, target_;
  PolicyJacobians jacobians_;
  BodyJacobians body_;
  DeployMoment moment_;
};

}  // namespace silc
