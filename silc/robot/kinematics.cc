// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/kinematics.h"

#include "silc/base/check.h"

namespace silc {
namespace {

using Vector3 = Eigen::Map<const Eigen::Vector3d>;
using RowMatrix3 = Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>;

// MuJoCo's columns → base then joints, 3 rows into `out` from row `first`.
template <typename Jacobian>
void Reorder(const RobotModel& robot, const FloatingJacobian3& in, int first, Jacobian* out) {
  out->template block<3, 6>(first, 0) = in.middleCols<6>(robot.base_dof_address());
  for (int i = 0; i < robot.num_joints(); ++i) {
    out->template block<3, 1>(first, 6 + i) = in.col(robot.dof_address()[i]);
  }
}

Vector3 Gravity(const RobotModel& robot) { return Vector3(robot.model()->opt.gravity); }

}  // namespace

void ComputeSiteJacobian(const RobotModel& robot,
                         const mjData& data,
                         int site,
                         FloatingJacobian6* J_WS) {
  const int nv = robot.model()->nv;
  FloatingJacobian3 linear(3, nv), angular(3, nv);
  mj_jacSite(robot.model(), &data, linear.data(), angular.data(), site);
  J_WS->resize(6, 6 + robot.num_joints());
  Reorder(robot, linear, 0, J_WS);
  Reorder(robot, angular, 3, J_WS);
}

void ComputeComJacobian(const RobotModel& robot, mjData* data, FloatingJacobian3* J_WC) {
  FloatingJacobian3 linear(3, robot.model()->nv);
  mj_jacSubtreeCom(robot.model(), data, linear.data(), robot.base_body());
  J_WC->resize(3, 6 + robot.num_joints());
  Reorder(robot, linear, 0, J_WC);
}

void ComputeBodyJacobians(const RobotModel& robot, mjData* data, BodyJacobians* out) {
  ComputeComJacobian(robot, data, &out->com);
  for (int side : {kLeft, kRight}) {
    ComputeSiteJacobian(robot, *data, robot.foot_site()[side], &out->foot[side]);
    if (robot.has_hands()) {
      FloatingJacobian6 hand;
      ComputeSiteJacobian(robot, *data, robot.hand_site()[side], &hand);
      out->hand[side] = hand.topRows<3>();
    } else {
      out->hand[side].setZero(3, 6 + robot.num_joints());
    }
  }
  out->g_B = GravityInBase(robot, *data);
}

Eigen::Vector3d ComPosition(const RobotModel& robot, const mjData& data) {
  return Vector3(data.subtree_com + 3 * robot.base_body());
}

Eigen::Matrix3d BaseRotation(const RobotModel& robot, const mjData& data) {
  return RowMatrix3(data.xmat + 9 * robot.base_body());
}

Eigen::Vector3d GravityInBase(const RobotModel& robot, const mjData& data) {
  const Eigen::Vector3d g = Gravity(robot);
  const Eigen::Vector3d down = g.norm() > 0 ? g.normalized().eval() : -Eigen::Vector3d::UnitZ();
  return BaseRotation(robot, data).transpose() * down;
}

double PotentialEnergy(const RobotModel& robot, const mjData& data) {
  return -robot.mass() * Gravity(robot).dot(ComPosition(robot, data));
}

void ComputeGravityVector(const RobotModel& robot, mjData* data, Eigen::Ref<Eigen::VectorXd> out) {
  SILC_CHECK(out.size() == 6 + robot.num_joints());
  FloatingJacobian3 J_WC;
  ComputeComJacobian(robot, data, &J_WC);
  const Eigen::Vector3d weight = robot.mass() * Gravity(robot);
  // three products of a column: no temporary of the result's size
  out = -weight[0] * J_WC.row(0).transpose();
  out -= weight[1] * J_WC.row(1).transpose();
  out -= weight[2] * J_WC.row(2).transpose();
}

namespace {

// Calls visit(side, contact, k) for every contact between a foot and a body that does not move; the
// foot's geom is the contact's k-th.
template <typename Visitor>
void ForEachFootContact(const RobotModel& robot, const mjData& data, const Visitor& visit) {
  const mjModel* m = robot.model();
  for (int c = 0; c < data.ncon; ++c) {
    const mjContact& contact = data.contact[c];
    // flexes have no geom
    if (contact.geom[0] < 0 || contact.geom[1] < 0) continue;
    for (int k : {0, 1}) {
      const int side = robot.FootOfGeom(contact.geom[k]);
      const int other_body = m->geom_bodyid[contact.geom[1 - k]];
      if (side >= 0 && m->body_weldid[other_body] == 0) visit(side, c, k);
    }
  }
}

}  // namespace

std::array<FootForce, 2> ComputeFootForces(const RobotModel& robot, const mjData& data) {
  std::array<FootForce, 2> feet;
  ForEachFootContact(robot, data, [&](int side, int c, int k) {
    mjtNum wrench[6];
    mj_contactForce(robot.model(), &data, c, wrench);
    // the frame's first row, the normal, points from geom 0 to geom 1: the force is on geom 1
    const Eigen::Vector3d force = RowMatrix3(data.contact[c].frame).transpose() * Vector3(wrench);
    feet[side].normal += wrench[0];
    feet[side].force += k == 1 ? force : (-force).eval();
  });
  return feet;
}

ContactMode ContactsOfPose(const RobotModel& robot, const mjData& data) {
  std::array<bool, 2> down = {false, false};
  ForEachFootContact(robot, data, [&](int side, int c, int) {
    if (data.contact[c].dist <= 0) down[side] = true;
  });
  if (down[kLeft] && down[kRight]) return ContactMode::kDoubleSupport;
  if (down[kLeft]) return ContactMode::kLeftSupport;
  return down[kRight] ? ContactMode::kRightSupport : ContactMode::kFlight;
}

}  // namespace silc
