// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "silc/policy/policy.h"
#include "silc/robot/robot_model.h"
#include "silc/stiffness/contact_mode.h"
#include "silc/stiffness/types.h"

namespace silc {

/// A force on the robot from outside, constant in W while it lasts.
struct Push {
  /// kLeftHand, kRightHand: the hand in the world. The force finds arm and legs in series.
  /// kLeftHandOnBase, kRightHandOnBase: a spring balance between the base and the hand. Its other
  /// end pulls the base the opposite way, along the same line, so that nothing acts on the robot as
  /// a whole and the generalised force is J_handᵀ f with the base at rest: what a budget's hands
  /// are about.
  enum class Point {
    kNone,
    kCom,
    kLeftHand,
    kRightHand,
    kBase,
    kBody,
    kLeftHandOnBase,
    kRightHandOnBase
  };
  Point point = Point::kNone;
  Eigen::Vector3d f_W = Eigen::Vector3d::Zero();  // [N] what the world applies to the robot
  // with kBody alone: a point fixed to any body
  int body = 0;                                    // of the MuJoCo model
  Eigen::Vector3d p_BP = Eigen::Vector3d::Zero();  // [m] the point, in the body's frame
};

struct LoopOptions {
  Servo servo;            // kp, kd of the joint servo (S1), robot's order; alpha is the policy's
  PolicyCommand command;  // what the policy is asked to do
  std::string pose;  // of the robot.yaml, to start from; "" for the pose the policy is centred on
  double latency =
      0;  // [s] from sampling to the new target reaching the servo; whole physics steps
};

enum class LoopStatus {
  kRunning,
  kFallen,           ///< base below half its standing height, or tilted by more than 60 degrees
  kPolicyNotFinite,  ///< the policy answered, or was asked, with a NaN
  kDiverged,         ///< the simulation itself went non-finite
};
const char* Describe(LoopStatus status);

/// The gains a policy was trained with where its file says so, else, and for joints its layout does
/// not name, the robot's set `gains_name` ("" for its default), with the policy's action scale.
/// Throws ConfigError when a set is asked for by name that does not exist.
Servo ServoFor(const RobotModel& robot, const Policy& policy, const std::string& gains_name);

/// The gain set a policy runs with: ServoFor() its own gains, and the robot's action scale for
/// joints that the policy does not command. Named as the robot's set with these gains, or "own".
GainSet GainsOf(const RobotModel& robot, const Policy& policy);

/// A tracker with the force thresholds of the robot's feet, both of them down to begin with.
ContactModeTracker MakeContactTracker(const RobotModel& robot);

/// Policy, joint servo and MuJoCo in a loop: the policy every control period, the servo at every
/// physics step (S1) with torques limited to the joints' effort, or the layout's where that is
/// less. Deterministic; a copy is an independent twin in the same state, so that "the same moment
/// with and without a push" means what it says.
class ClosedLoop {
 public:
  /// Stands the robot in the starting pose, feet on the floor. Throws ConfigError when the latency
  /// is negative or the policy's control period is no multiple of the physics step.
  ClosedLoop(const RobotModel& robot, Policy policy, LoopOptions options);
  ClosedLoop(const ClosedLoop& other);
  ClosedLoop& operator=(const ClosedLoop&) = delete;

  void Reset();

  /// Samples the state and asks the policy. Split from Advance() so that the moment the policy saw
  /// can be looked at (Jacobians, kinematics) before the physics moves on.
  LoopStatus Decide();
  /// Carries out the last decision for one control period.
  LoopStatus Advance();
  /// Decide() and Advance().
  LoopStatus Step();

  /// Asks the policy again and again about the state as it is, nothing moving, until its history
  /// and its own previous actions have settled; at most `max_steps` times. The servo then holds the
  /// last target.
  LoopStatus SettlePolicy(int max_steps = 500);

  /// Puts the robot into a recorded state and solves contacts there under the servo's present
  /// target.
  /// @pre as many entries as the model has, in MuJoCo's order.
  void SetState(std::span<const double> qpos, std::span<const double> qvel);

  /// From now on Decide() shows the policy this instead of the simulation's state: what a robot
  /// measured.
  void ShowPolicy(const ObservationInput& input) { shown_ = input; }

  /// Hands the last decision to the servo at once, without physics.
  void HoldTarget();

  void SetPush(const Push& push) { push_ = push; }
  void SetCommand(const PolicyCommand& command) { options_.command = command; }
  /// [rad] Joint positions the policy is asked to follow where it takes a reference (FALCON's
  /// arms), robot's order; empty for the default pose.
  void SetReference(const Eigen::VectorXd& q_ref) { input_.q_ref = q_ref; }
  /// Called around every physics step: `before` may still change the push, the state of bodies
  /// that are not the robot's, or forces on them; `after` sees what mj_step left. Copies of the
  /// loop have none.
  void SetHooks(std::function<void()> before, std::function<void()> after) {
    before_step_ = std::move(before);
    after_step_ = std::move(after);
  }

  const RobotModel& robot() const { return *robot_; }
  mjData* data() { return data_.get(); }
  Policy& policy() { return policy_; }
  const LoopOptions& options() const { return options_; }
  double time() const { return data_->time; }            ///< [s]
  double period() const { return period_; }              ///< [s] of the policy
  const Eigen::VectorXd& q() const { return input_.q; }  ///< [rad] as last sampled, robot's order
  const Eigen::VectorXd& target() const { return target_; }  ///< [rad] last decided
  const Eigen::VectorXd& tau() const { return tau_; }  ///< [N·m] applied in the last physics step
  /// Share of joints and physics steps of the last Advance() in which the effort limit was met. [1]
  double saturation() const { return saturation_; }

  /// One control period of the tracker with the forces that are on the feet now.
  void TrackContacts(ContactModeTracker* tracker) const;

  Eigen::Vector3d ComPosition() const;           ///< p_WC [m]
  Eigen::Vector3d HandPosition(int hand) const;  ///< p_WH [m], kLeft or kRight
  Eigen::Vector3d HandOnBase(int hand) const;    ///< p_BH_B [m], where the base sees its hand
  Eigen::Vector3d BasePosition() const;          ///< p_WB [m]
  Eigen::Matrix3d BaseRotation() const;          ///< R_WB
  /// [m] Where a point fixed to a body is: p_WP. @pre body of the MuJoCo model.
  Eigen::Vector3d BodyPoint(int body, const Eigen::Vector3d& p_BP) const;

 private:
  void Sample();
  void ApplyServo(const Eigen::VectorXd& target);
  void ApplyPush();
  LoopStatus Check() const;

  const RobotModel* robot_;
  Policy policy_;
  LoopOptions options_;
  MjDataPtr data_;
  double period_;
  int steps_per_period_ = 0, latency_steps_ = 0;
  double fallen_height_ = 0;      // [m]
  Eigen::VectorXd effort_limit_;  // [N·m] the smaller of the robot's and the layout's
  ObservationInput input_;
  std::optional<ObservationInput> shown_;  // in the place of the simulation's
  Eigen::VectorXd target_;                 // decided now
  Eigen::VectorXd servo_target_;           // what the servo holds until the latency has passed
  Eigen::VectorXd tau_;
  struct Pending {
    Eigen::VectorXd target;  // [rad]
    int steps_left;          // physics steps until it reaches the servo
  };
  std::deque<Pending> pending_;  // oldest first
  Push push_;
  std::function<void()> before_step_, after_step_;
  double saturation_ = 0;
};

}  // namespace silc
