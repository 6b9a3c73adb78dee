// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "silc/robot/mujoco_handles.h"
#include "silc/robot/robot_spec.h"

namespace silc {

/// Left is 0 and right is 1 in every pair of this module.
inline constexpr int kLeft = 0;
inline constexpr int kRight = 1;

struct LoadOptions {
  /// Keep shapes that touch nothing, and add sky and lights: for viewers. They cost time in every
  /// step.
  bool visuals = false;
  /// Contacts between the robot's own bodies. Without, it touches the world alone.
  bool self_collision = true;
  /// Contacts that neither creep nor give. MuJoCo's friction is a damper: under a steady sideways
  /// load a sole slides on slowly, millimetres per second, and a static stiffness measured there is
  /// a mixture of robot and floor. With impratio 100 that flow and the give of the sole are a
  /// hundredth.
  bool firm_contacts = false;
  /// Geom set the feet stand on; "" for the file's choice.
  std::string foot_collision;
  /// Servo gains that become the spec's default; none: the file's choice.
  std::optional<GainSet> gains;
  /// [s] of a physics step; 0 for the robot's own.
  double physics_period = 0;
  /// Adds to the scene around the robot (a pad, a weight on a rope) before it is compiled. Bodies
  /// it adds may have joints of their own; they are no part of the robot.
  std::function<void(mjSpec*)> extend;
};

/// A robot compiled by MuJoCo, on a floor, with every name of its RobotSpec resolved.
///
/// The MJCF holds the robot alone; loading it
///   - adds a floor at z = 0 (and light and sky for viewers) unless the file brings a plane of its
///   own,
///   - keeps the chosen set of foot geoms, switched on, and removes the other sets,
///   - gives every joint one torque motor, in robot order, limited by the joint's effort, unless
///   the
///     file has exactly that: ctrl is a vector of joint torques [N·m] in every RobotModel,
///   - sets the time step to RobotSpec::physics_period.
///
/// Constant after loading; one RobotModel serves any number of mjData.
class RobotModel {
 public:
  /// "g1", or the path of a robot.yaml (see FindRobotFile). Throws ConfigError: a name that the
  /// model does not have, with its near misses; a joint that is no hinge; a base that is not free;
  /// a joint without effort limit; and MuJoCo's own complaints about the MJCF.
  static RobotModel Load(const std::string& name_or_path, const LoadOptions& options = {});
  static RobotModel FromSpec(RobotSpec spec, const LoadOptions& options = {});

  const RobotSpec& spec() const { return spec_; }
  const mjModel* model() const { return model_.get(); }
  /// Fresh state at the model's reference pose.
  MjDataPtr MakeData() const;

  int num_joints() const { return spec_.num_joints(); }
  double mass() const { return mass_; }  ///< [kg]

  // Addresses and ids in mjModel, in robot order where there is one per joint.
  const std::vector<int>& qpos_address() const { return qpos_address_; }
  const std::vector<int>& dof_address() const { return dof_address_; }
  const std::vector<int>& actuator() const { return actuator_; }
  int base_body() const { return base_body_; }
  int base_qpos_address() const { return base_qpos_address_; }
  int base_dof_address() const { return base_dof_address_; }
  const std::array<int, 2>& foot_body() const { return foot_body_; }
  const std::array<int, 2>& foot_site() const { return foot_site_; }
  const std::array<std::vector<int>, 2>& foot_geoms() const { return foot_geoms_; }
  /// kLeft, kRight, or -1 for a geom that is no sole.
  int FootOfGeom(int geom) const { return foot_of_geom_[geom]; }
  bool has_hands() const { return !spec_.hands.empty(); }
  const std::array<int, 2>& hand_body() const { return hand_body_; }  ///< -1 without hands
  const std::array<int, 2>& hand_site() const { return hand_site_; }
  const std::vector<int>& imu_site() const { return imu_site_; }
  int floor_geom() const { return floor_geom_; }

  // Limits from the model, in robot order. Joints without a range have ±infinity.
  const Eigen::VectorXd& effort_limit() const { return effort_limit_; }  ///< [N·m]
  const Eigen::VectorXd& q_min() const { return q_min_; }                ///< [rad]
  const Eigen::VectorXd& q_max() const { return q_max_; }                ///< [rad]

 private:
  RobotModel() = default;
  void ResolveNames(bool extended);

  RobotSpec spec_;
  MjModelPtr model_;
  double mass_ = 0;
  std::vector<int> qpos_address_, dof_address_, actuator_, imu_site_, foot_of_geom_;
  int base_body_ = -1, base_qpos_address_ = -1, base_dof_address_ = -1, floor_geom_ = -1;
  std::array<int, 2> foot_body_{-1, -1}, foot_site_{-1, -1};
  std::array<int, 2> hand_body_{-1, -1}, hand_site_{-1, -1};
  std::array<std::vector<int>, 2> foot_geoms_;
  Eigen::VectorXd effort_limit_, q_min_, q_max_;
};

}  // namespace silc
