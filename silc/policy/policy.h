// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "silc/policy/graph.h"
#include "silc/policy/observation_layout.h"
#include "silc/stiffness/policy_jacobians.h"

namespace silc {

struct MlpNetwork;

/// What the policy needs to know of the robot: its joints' names, in its order, and the pose that
/// joints the policy does not command are held at.
struct PolicyRobot {
  std::vector<std::string> joints;
  Eigen::VectorXd default_pose;  // [rad]
};

enum class PolicyStatus {
  kOk,
  kInputNotFinite,   ///< a NaN or infinity in what the policy was to see; it was not asked
  kOutputNotFinite,  ///< the network answered with a NaN or infinity; targets are left as they were
};
const char* Describe(PolicyStatus status);

struct PolicyOptions {
  /// kAuto runs plain MLPs on the fast float path and everything else as a graph in float.
  enum class Engine { kAuto, kGraphFloat, kGraphDouble } engine = Engine::kAuto;
  std::string place = "policy";  ///< the file, for error messages
};

/// A network, the layout around it, and the history between its steps.
///
/// One control step:  Act(state, &q_target)  →  send q_target to the servo (S1)  →  at will,
/// Jacobians(). Construction throws ConfigError when network, layout and robot do not fit together
/// (widths, joints). Act() does not throw and, after construction, does not allocate. Copies share
/// the weights and have a history of their own.
class Policy {
 public:
  Policy(std::shared_ptr<const Graph> graph,
         ObservationLayout layout,
         PolicyRobot robot,
         PolicyOptions options = {});
  Policy(const Policy& other);
  Policy& operator=(const Policy& other);
  Policy(Policy&&) noexcept;
  Policy& operator=(Policy&&) noexcept;
  ~Policy();

  /// Forgets history, previous action and gait phase.
  void Reset();

  /// Observes, asks the network and writes the joint targets q* [rad], in the robot's order. Joints
  /// the policy does not command are held at the robot's default pose.
  PolicyStatus Act(const ObservationInput& input, Eigen::VectorXd* q_target);

  /// Exact derivatives of the raw action with respect to what was last observed, per frame, in the
  /// robot's joint order with all scales included. nu = nv: rows of joints that are not commanded
  /// are zero, and so are columns of joints that are not observed.
  /// @pre an Act() with kOk since the last Reset().
  PolicyStatus Jacobians(PolicyJacobians* jacobians);
  /// The same without J_v and J_w, which are empty: what matters to a robot at rest. The others are
  /// those of Jacobians(), bit for bit.
  PolicyStatus RestingJacobians(PolicyJacobians* jacobians);
  /// What (S2), (S3) and the test of the action loop need, at two thirds of the cost: J_q as
  /// {newest, sum of the older}, J_g as {sum}, J_a and J_tau per frame, J_v and J_w empty.
  PolicyStatus StaticJacobians(PolicyJacobians* jacobians);
  /// The newest frame's J_q and the sums over frames: (S2) and (S3) alone, cheaper still.
  PolicyStatus Jacobians(SummedJacobians* jacobians);
  /// The same as the first one, by tangents pushed through the graph in double precision: slow,
  /// general, and the reference the fast path is held to.
  PolicyStatus JacobiansByTangents(PolicyJacobians* jacobians);

  /// What a commanded policy is told from the next Act() on, where its input does not say another
  /// (PolicyCommand::budget). Before, it is the middle of its ranges. One that is told nothing does
  /// not listen.
  /// @pre finite and above 0 where it is told
  void SetBudget(const BudgetValues& budget);
  /// Whether the network sees its budget.
  bool sees_budget() const;

  int num_joints() const;  ///< nv = nu
  const ObservationLayout& layout() const;
  const PolicyRobot& robot() const;
  bool is_mlp() const;  ///< runs on the fast path
  /// The network as an MLP; null when it has another shape, and graph() says which.
  const MlpNetwork* mlp() const;
  const Graph& graph() const;
  const Eigen::VectorXd& raw_action() const;  ///< a of the last Act(), robot's order           [1]
  const Eigen::VectorXd& action_scale() const;  ///< α, robot's order, 0 where not commanded [rad]
  const Eigen::VectorXd& default_pose() const;  ///< the policy's, robot's for other joints [rad]
  const std::vector<bool>& commanded() const;   ///< robot's order
  const std::vector<bool>& residual() const;    ///< adds to the reference; robot's order
  /// kp, kd the policy was trained with, robot's order; empty when the layout does not say, NaN for
  /// joints it does not name: those are the robot's to hold.
  const Eigen::VectorXd& kp() const;  ///< [N·m/rad]
  const Eigen::VectorXd& kd() const;  ///< [N·m·s/rad]
  /// What the layout lets act on each joint, robot's order; infinite where it does not say. [N·m]
  const Eigen::VectorXd& effort_limit() const;
  const Eigen::VectorXf& observation() const;  ///< what the network last saw
  const Eigen::VectorXd& phase() const;  ///< gait phase last observed [rad], per foot; may be empty

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace silc
