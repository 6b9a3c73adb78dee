// SPDX-License-Identifier: Apache-2.0
#include "silc/lqr/stand_policy.h"

#include <Eigen/Cholesky>
#include <vector>

#include "silc/base/error.h"
#include "silc/lqr/riccati.h"
#include "silc/robot/geometric_stiffness.h"
#include "silc/robot/kinematics.h"
#include "silc/robot/pose.h"

namespace silc {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// The robot standing still, reduced to the motions its two feet leave it.
struct Stance {
  MatrixXd N;      // nv × nz         joint velocity per ż, orthonormal columns
  MatrixXd M_z;    // nz × nz         [kg·m²]
  MatrixXd H_z;    // nz × nz         [N·m/rad] gravity and standing torques
  MatrixXd com_z;  // 3 × nz          [m/rad]
  VectorXd tau_0;  // nv              [N·m] that hold it there
};

MatrixXd FullMassMatrix(const RobotModel& robot, const mjData& data) {
  const mjModel* model = robot.model();
  std::vector<mjtNum> dense(static_cast<std::size_t>(model->nv) * model->nv);
  mj_fullM(model, &data, dense.data());
  const Eigen::Map<Eigen::Matrix<mjtNum, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> M(
      dense.data(), model->nv, model->nv);
  // base dofs, then joints in robot order: the columns of every floating-base Jacobian
  std::vector<int> order;
  for (int i = 0; i < 6; ++i) order.push_back(robot.base_dof_address() + i);
  order.insert(order.end(), robot.dof_address().begin(), robot.dof_address().end());
  return M(order, order);
}

Stance ComputeStance(const RobotModel& robot, const Servo& servo, const Pose& pose) {
  const MjDataPtr data = robot.MakeData();
  StandInPose(robot, pose, data.get());
  BodyJacobians body;
  ComputeBodyJacobians(robot, data.get(), &body);
  ContactKinematics contact;
  const auto require = [&](StiffnessStatus status) {
    if (status != StiffnessStatus::kOk) {
      throw ConfigError("pose '" + pose.name + "' of " + robot.spec().file +
                        " is no stance to regulate: " + Describe(status));
    }
  };
  require(ComputeContactKinematics(body, ContactMode::kDoubleSupport, nullptr, &contact));

  Stance stance;
  stance.N = contact.N;
  const int n = robot.num_joints();
  MatrixXd motion(6 + n, contact.N.cols());  // base and joints per ż
  motion.topRows(6) = contact.B * contact.N;
  motion.bottomRows(n) = contact.N;
  stance.M_z = motion.transpose() * FullMassMatrix(robot, *data) * motion;
  stance.com_z = contact.com * contact.N;

  // of all torques that hold the pose, those that move the targets least: τ₀ = Kp N v₀
  VectorXd gravity(6 + n);
  ComputeGravityVector(robot, data.get(), gravity);
  const MatrixXd KpN = servo.kp.asDiagonal() * stance.N;
  stance.tau_0 = KpN * (stance.N.transpose() * KpN).ldlt().solve(motion.transpose() * gravity);
  JointMatrix H;
  require(ComputeGeometricStiffness(robot, *data, stance.tau_0, contact, &H));
  stance.H_z = stance.N.transpose() * H * stance.N;
  return stance;
}

// F of v_t = −F (z, ż, v_{t−1}), nz × 3 nz.
MatrixXd Regulate(const Stance& stance,
                  const Servo& servo,
                  double period,
                  const StandOptions& options) {
  const Eigen::Index nz = stance.N.cols();
  const MatrixXd identity = MatrixXd::Identity(nz, nz), zero = MatrixXd::Zero(nz, nz);
  const MatrixXd Kp_z = stance.N.transpose() * servo.kp.asDiagonal() * stance.N;
  const MatrixXd Kd_z = stance.N.transpose() * servo.kd.asDiagonal() * stance.N;
  const Eigen::LLT<MatrixXd> M_z(stance.M_z);

  MatrixXd A_c(2 * nz, 2 * nz), B_c(2 * nz, nz);
  A_c << zero, identity, -M_z.solve(Kp_z + stance.H_z), -M_z.solve(Kd_z);
  B_c << zero, M_z.solve(Kp_z);
  const SampledSystem sampled = SampleSystem(A_c, B_c, period);

  // the input is the change of target, the target itself a state: v = v_{t−1} + Δv
  SampledSystem augmented{MatrixXd::Zero(3 * nz, 3 * nz), MatrixXd::Zero(3 * nz, nz)};
  augmented.A.topLeftCorner(2 * nz, 2 * nz) = sampled.A;
  augmented.A.topRightCorner(2 * nz, nz) = sampled.B;
  augmented.A.bottomRightCorner(nz, nz) = identity;
  augmented.B.topRows(2 * nz) = sampled.B;
  augmented.B.bottomRows(nz) = identity;

  MatrixXd Q = MatrixXd::Zero(3 * nz, 3 * nz);
  Q.topLeftCorner(nz, nz) = options.com_weight * stance.com_z.transpose() * stance.com_z +
                            options.posture_weight * identity;
  Q.block(nz, nz, nz, nz) = options.velocity_weight * identity;
  Q.bottomRightCorner(nz, nz) = options.target_weight * identity;
  MatrixXd F = RegulatorGain(augmented, Q, options.smoothness * identity);
  F.rightCols(nz) -= identity;  // Δv = −F x  ⇒  v = −(F x − v_{t−1})
  return F;
}

}  // namespace

StandPolicy DesignStandPolicy(const RobotModel& robot, const StandOptions& options) {
  const RobotSpec& spec = robot.spec();
  const GainSet& gains = spec.Gains(options.gains);
  const Pose& pose = spec.StandingPose(options.pose);
  const int n = robot.num_joints();
  Servo servo;
  servo.kp = gains.kp;
  servo.kd = gains.kd;
  servo.alpha = gains.action_scale;
  const VectorXd alpha = gains.action_scale;

  const Stance stance = ComputeStance(robot, servo, pose);
  const MatrixXd F = Regulate(stance, servo, spec.control_period, options);
  const Eigen::Index nz = stance.N.cols();

  // a = α⁻¹ (q* − q_pose):  targets at rest, plus N v with z = Nᵀ δq and v_{t−1} = Nᵀ (α a_{t−1} −
  // rest)
  const VectorXd rest = stance.tau_0.cwiseQuotient(gains.kp);  // [rad]
  const MatrixXd per_alpha = alpha.cwiseInverse().asDiagonal();
  const MatrixXd Nt = stance.N.transpose();
  const MatrixXd from_q = -per_alpha * stance.N * F.leftCols(nz) * Nt;
  const MatrixXd from_qd = -per_alpha * stance.N * F.middleCols(nz, nz) * Nt;
  const MatrixXd from_action = -per_alpha * stance.N * F.rightCols(nz) * Nt * alpha.asDiagonal();
  const VectorXd bias = per_alpha * rest - from_action * per_alpha * rest;

  MlpLayer layer;
  layer.inputs = 3 * n;
  layer.outputs = n;
  for (int i = 0; i < n; ++i) {
    for (const MatrixXd* block : {&from_q, &from_qd, &from_action}) {
      for (int j = 0; j < n; ++j) layer.weight.push_back(static_cast<float>((*block)(i, j)));
    }
    layer.bias.push_back(static_cast<float>(bias[i]));
  }
  StandPolicy policy;
  policy.network.inputs = layer.inputs;
  policy.network.branches = {{layer}};
  ObservationLayout& layout = policy.layout;
  const auto to_list = [](const VectorXd& v) { return std::vector<double>(v.begin(), v.end()); };
  layout.name = spec.name + "-lqr-stand";
  layout.control_dt = spec.control_period;
  layout.joints = spec.joints;
  layout.default_pose = to_list(pose.q);
  layout.kp = to_list(gains.kp);
  layout.kd = to_list(gains.kd);
  layout.terms = {{.name = "joint_pos", .source = TermSource::kJointPos, .minus_default = true},
                  {.name = "joint_vel", .source = TermSource::kJointVel},
                  {.name = "actions", .source = TermSource::kPrevAction}};
  layout.action.joints = spec.joints;
  layout.action.scale = to_list(alpha);
  return policy;
}

}  // namespace silc
