// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/budget_gains.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/limits.h"
#include "silc/base/rng.h"
#include "silc/robot/kinematics.h"
#include "silc/robot/pose.h"
#include "silc/robot/robot_fit.h"

namespace silc {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// 1/(H⁻¹)_ii of the joint-space inertia H with the robot free in the air: what a servo has to turn
// when nothing else is held. Armature is in it.
VectorXd ReflectedInertia(const RobotModel& robot, mjData* data) {
  const mjModel* m = robot.model();
  VectorXd inertia(robot.num_joints()), unit(m->nv), turned(m->nv);
  for (int j = 0; j < robot.num_joints(); ++j) {
    const int dof = robot.dof_address()[j];
    unit.setZero();
    unit[dof] = 1;
    mj_solveM(m, data, turned.data(), unit.data(), 1);
    inertia[j] = 1 / turned[dof];
  }
  return inertia;
}

// Joints between the base and a foot.
std::vector<bool> LegJoints(const RobotModel& robot) {
  const mjModel* m = robot.model();
  std::vector<bool> leg(robot.num_joints(), false);
  for (int body : robot.foot_body()) {
    for (; body > 0 && body != robot.base_body(); body = m->body_parentid[body]) {
      for (int j = 0; j < robot.num_joints(); ++j) {
        if (m->dof_bodyid[robot.dof_address()[j]] == body) leg[j] = true;
      }
    }
  }
  return leg;
}

// A pose drawn about `pose`; the legs stay where both feet are on the floor, and then only.
Pose DrawnPose(const RobotModel& robot,
               const Pose& pose,
               const std::vector<bool>& held,
               double spread,
               Rng* rng) {
  Pose near = pose;
  for (int j = 0; j < robot.num_joints(); ++j) {
    const double off = rng->Uniform(-spread, spread);
    if (held[j]) continue;
    near.q[j] = std::clamp(near.q[j] + off, robot.q_min()[j], robot.q_max()[j]);
  }
  return near;
}

// Of the pose that `data` holds; `name` says which, in messages.
void AddMoments(const RobotModel& robot,
                const GainsRequest& request,
                ContactMode mode,
                const std::string& name,
                mjData* data,
                BudgetGains* out) {
  const int nv = robot.num_joints();
  out->inertia = out->inertia.cwiseMin(ReflectedInertia(robot, data));
  BodyJacobians body;
  ComputeBodyJacobians(robot, data, &body);
  Servo servo;  // of the null space's weight, which is the identity
  servo.kp = servo.kd = servo.alpha = VectorXd::Ones(nv);
  ContactKinematics contact;
  StiffnessStatus status = ComputeContactKinematics(body, mode, nullptr, &contact);
  for (std::size_t b = 0; b < request.budgets.size(); ++b) {
    ReducedBudget budget;
    if (status == StiffnessStatus::kOk) {
      status = ComputeReducedBudget(request.budgets[b], servo, contact, &budget);
    }
    if (status != StiffnessStatus::kOk) {
      throw ConfigError(robot.spec().file + ": " + name + ", " + Name(mode) +
                        ": no budget there: " + Describe(status));
    }
    GainMoment moment = {static_cast<int>(b), mode, {}};
    moment.ceiling.M = budget.M;
    if (contact.closed) {
      moment.ceiling.N = contact.N;
    } else {
      moment.ceiling.N = MatrixXd::Identity(nv, nv);
    }
    out->moments.push_back(std::move(moment));
  }
}

}  // namespace

BudgetGains GainsFromBudget(const RobotModel& robot, const GainsRequest& request) {
  NeedStiffness(robot);
  for (const BudgetSpec& budget : request.budgets) {
    NeedPointsOf(budget, robot);
    if (budget.weight == NullWeight::kIdentity) continue;
    throw ConfigError(
        "null_space.weight: gains: this budget is measured in the gains that are asked for, and "
        "would move with them; take one with weight: identity");
  }
  const int n = robot.num_joints();
  BudgetGains out;
  const MjDataPtr data = robot.MakeData();
  out.inertia = VectorXd::Constant(n, std::numeric_limits<double>::infinity());
  std::vector<Pose> named;
  if (request.poses.empty()) named = robot.spec().poses;
  for (const std::string& name : request.poses) named.push_back(robot.spec().StandingPose(name));
  const std::vector<bool> legs = LegJoints(robot), none(n, false);
  Rng rng(request.seed);
  for (const Pose& pose : named) {
    for (const ContactMode mode : request.modes) {
      const std::string name = "pose '" + pose.name + "'";
      StandInPose(robot, pose, data.get());
      AddMoments(robot, request, mode, name, data.get(), &out);
      // with both feet down the legs close a chain: drawn at random, the soles would not lie flat
      const bool closed = mode == ContactMode::kDoubleSupport;
      for (int k = 0; k < request.samples; ++k) {
        const Pose near = DrawnPose(robot, pose, closed ? legs : none, request.spread, &rng);
        StandInPose(robot, near, data.get());
        AddMoments(robot, request, mode, name, data.get(), &out);
      }
    }
  }
  for (std::size_t k = 0; k < request.states.size(); ++k) {
    const Eigen::VectorXd& qpos = request.states[k];
    SILC_CHECK(qpos.size() == robot.model()->nq);
    mj_resetData(robot.model(), data.get());
    std::copy(qpos.begin(), qpos.end(), data->qpos);
    mj_forward(robot.model(), data.get());
    const ContactMode mode = ContactsOfPose(robot, *data);
    if (mode == ContactMode::kFlight) {
      ++out.in_flight;
      continue;
    }
    AddMoments(robot, request, mode, "state " + std::to_string(k), data.get(), &out);
  }
  const double speed = 2 * std::numbers::pi * request.max_frequency;  // [rad/s]
  out.limit.resize(n);
  for (int j = 0; j < n; ++j) {
    const double armature = robot.model()->dof_armature[robot.dof_address()[j]];
    out.limit[j] = armature > 0 ? std::min(kMaxKp, armature * speed * speed) : kMaxKp;
  }
  std::vector<GainCeiling> ceilings;
  for (const GainMoment& moment : out.moments) ceilings.push_back(moment.ceiling);
  out.solution = SolveDiagonalGains(ceilings, out.limit);
  if (!out.solution.ok) throw RunError("gains: " + out.solution.why);
  out.set.name = "budget";
  out.set.kp = out.solution.kp;
  out.set.kd = 2 * request.damping_ratio * out.set.kp.cwiseProduct(out.inertia).cwiseSqrt();
  out.set.action_scale = request.effort_share * robot.effort_limit().cwiseQuotient(out.set.kp);
  return out;
}

double WorstOfServo(const std::vector<GainMoment>& moments,
                    ContactMode mode,
                    const Eigen::VectorXd& kp) {
  double worst = std::numeric_limits<double>::quiet_NaN();
  for (const GainMoment& moment : moments) {
    if (moment.mode == mode) worst = std::fmax(worst, WorstOfServo(moment.ceiling, kp));
  }
  return worst;
}

}  // namespace silc
