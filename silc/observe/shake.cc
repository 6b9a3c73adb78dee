// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/shake.h"

#include <algorithm>
#include <cmath>

#include "silc/base/check.h"
#include "silc/base/nan.h"
#include "silc/robot/geometric_stiffness.h"
#include "silc/robot/kinematics.h"
#include "silc/robot/pose.h"

namespace silc {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;
using Eigen::VectorXd;

const char* PointName(Push::Point point) {
  switch (point) {
    case Push::Point::kCom:
      return "centre of mass";
    case Push::Point::kLeftHand:
      return "left hand in the world";
    case Push::Point::kRightHand:
      return "right hand in the world";
    case Push::Point::kLeftHandOnBase:
      return "left hand on the base";
    case Push::Point::kRightHandOnBase:
      return "right hand on the base";
    default:
      return "base";
  }
}

// @param R_WB  of the base when all pushes began: a hand that is seen from the base is shown in W
Vector3d PointPosition(const ClosedLoop& loop, Push::Point point, const Matrix3d& R_WB) {
  switch (point) {
    case Push::Point::kCom:
      return loop.ComPosition();
    case Push::Point::kLeftHand:
      return loop.HandPosition(kLeft);
    case Push::Point::kRightHand:
      return loop.HandPosition(kRight);
    case Push::Point::kLeftHandOnBase:
      return R_WB * loop.HandOnBase(kLeft);
    case Push::Point::kRightHandOnBase:
      return R_WB * loop.HandOnBase(kRight);
    default:
      return loop.BasePosition();
  }
}

const Jacobian3& PointJacobian(const ContactKinematics& contact, Push::Point point) {
  switch (point) {
    case Push::Point::kLeftHand:
      return contact.hand_in_world[kLeft];
    case Push::Point::kRightHand:
      return contact.hand_in_world[kRight];
    case Push::Point::kLeftHandOnBase:
      return contact.hand_on_base[kLeft];
    case Push::Point::kRightHandOnBase:
      return contact.hand_on_base[kRight];
    default:
      return contact.com;
  }
}

struct Hold {
  LoopStatus end = LoopStatus::kRunning;
  Vector3d mean = Vector3d::Constant(kNan);  // [m] of the point over the window
  Vector3d sway = Vector3d::Constant(kNan);  // [m] along each axis
  int mode_changes = 0;
};

// Ramp up, hold, average: from a copy of the settled loop.
Hold PushAndHold(ClosedLoop loop,
                 ContactModeTracker tracker,
                 const Vector3d& f_W,
                 const ShakeOptions& options) {
  const auto steps = [&](double seconds) {
    return static_cast<int>(std::lround(seconds / loop.period()));
  };
  const int ramp = steps(options.ramp), total = ramp + steps(options.hold);
  const int window = steps(options.window);
  const Matrix3d R_WB = loop.BaseRotation();
  Vector3d sum = Vector3d::Zero(), low = Vector3d::Constant(HUGE_VAL), high = -low;
  Hold result;
  for (int step = 0; step < total; ++step) {
    const double share = std::min(1.0, (step + 1.0) / ramp);
    loop.SetPush({options.point, share * f_W});
    result.end = loop.Step();
    if (result.end != LoopStatus::kRunning) return result;
    const ContactMode before = tracker.mode();
    loop.TrackContacts(&tracker);
    result.mode_changes += tracker.mode() != before;
    if (step >= total - window) {
      const Vector3d p = PointPosition(loop, options.point, R_WB);
      sum += p;
      low = low.cwiseMin(p);
      high = high.cwiseMax(p);
    }
  }
  result.mean = sum / window;
  result.sway = high - low;
  return result;
}

}  // namespace

double RestingStiffness(const ShakeResult& result, std::size_t level, int axis) {
  if (level >= result.levels.size()) return kNan;
  const ShakeLevel& l = result.levels[level];
  if (result.mode_changes > 0 || l.stepped[axis]) return kNan;
  const double moved = std::abs(l.plus(axis, axis) - l.minus(axis, axis)) / 2;
  const bool rests = std::max(result.sway_W[axis], l.sway[axis]) <= moved;
  return rests ? l.OneAxis()[axis] : kNan;  // NaN too where one of the two fell
}

Vector3d ShakeLevel::OneAxis() const { return Compliance().diagonal().cwiseInverse(); }

std::vector<ShakePrediction> PredictStiffness(ClosedLoop loop,
                                              Push::Point point,
                                              ContactMode mode,
                                              ActionLoopRadius* radius) {
  std::vector<ShakePrediction> predictions;
  const RobotModel& robot = loop.robot();
  const Servo& servo = loop.options().servo;
  const int n = robot.num_joints();
  if (loop.Decide() != LoopStatus::kRunning) return predictions;

  BodyJacobians body;
  ComputeBodyJacobians(robot, loop.data(), &body);
  ContactKinematics contact;
  const StiffnessStatus contact_status = ComputeContactKinematics(body, mode, nullptr, &contact);
  const Jacobian3& J = PointJacobian(contact, point);

  PolicyJacobians jacobians;
  loop.policy().Jacobians(&jacobians);  // what is not finite in them is told by the statuses below
  if (radius != nullptr) {
    *radius = ActionLoop(n, static_cast<int>(std::max<std::size_t>(1, jacobians.J_a.size())))
                  .Exact(servo, jacobians, true);
  }

  const auto add =
      [&](ShakeModel model, StiffnessStatus status, const JointMatrix& K, const JointMatrix* H) {
        SILC_CHECK(predictions.size() == static_cast<std::size_t>(model));
        ShakePrediction prediction{
            Name(model), status, Vector3d::Constant(kNan), Matrix3d::Constant(kNan)};
        if (status == StiffnessStatus::kOk) prediction.status = contact_status;
        if (prediction.status == StiffnessStatus::kOk) {
          TaskStiffness task;
          const ConstMatrix N(contact.N);
          const ConstMatrix added(H != nullptr ? *H : K);
          prediction.status = ComputeTaskStiffness(
              J, K, contact.closed ? &N : nullptr, H != nullptr ? &added : nullptr, &task);
          if (prediction.status == StiffnessStatus::kOk) {
            prediction.one_axis = task.one_axis;
            prediction.C_x = task.C_x;
          }
        }
        predictions.push_back(prediction);
      };

  add(ShakeModel::kServo, StiffnessStatus::kOk, JointMatrix(servo.kp.asDiagonal()), nullptr);
  JointMatrix K_1 = JointMatrix::Zero(n, n);
  const StiffnessStatus one_step = jacobians.J_q.empty()
                                       ? OneStepStiffness(servo, Eigen::MatrixXd::Zero(n, n), &K_1)
                                       : OneStepStiffness(servo, jacobians.J_q[0], &K_1);
  add(ShakeModel::kOneStep, one_step, K_1, nullptr);

  // a push that lasts finds the loop at its equilibrium, which (S3) describes whether or not the
  // action loop alone would be stable with the joints held; the radius is reported beside it
  PolicySums sums;
  SumPolicy(jacobians, n, &sums);
  StaticStiffness quasi_static;
  const StiffnessStatus static_status =
      SolveQuasiStatic(servo, sums, {.torque = true, .E = &contact.E}, &quasi_static);
  add(ShakeModel::kStatic, static_status, quasi_static.K, nullptr);

  JointMatrix H;
  const StiffnessStatus geometric =
      contact_status == StiffnessStatus::kOk
          ? ComputeGeometricStiffness(robot, *loop.data(), loop.tau(), contact, &H)
          : contact_status;
  add(ShakeModel::kStaticWithWeight,
      static_status == StiffnessStatus::kOk ? geometric : static_status,
      quasi_static.K,
      &H);
  return predictions;
}

const char* Name(ShakeModel model) {
  switch (model) {
    case ShakeModel::kServo:
      return "PD alone";
    case ShakeModel::kOneStep:
      return "one-step K₁";
    case ShakeModel::kStatic:
      return "static K_s";
    case ShakeModel::kStaticWithWeight:
      return "K_s with weight";
  }
  return "unknown model";
}

const ShakePrediction* PredictionOf(const std::vector<ShakePrediction>& predictions,
                                    ShakeModel model) {
  const auto place = static_cast<std::size_t>(model);
  return place < predictions.size() ? &predictions[place] : nullptr;
}

double PredictedStiffness(const ShakeResult& result, ShakeModel model, int axis) {
  const ShakePrediction* prediction = PredictionOf(result.predictions, model);
  return prediction != nullptr ? prediction->one_axis[axis] : kNan;
}

ShakeResult Shake(const ClosedLoop& start, const ShakeOptions& options, const Progress& progress) {
  ShakeResult result;
  result.point = PointName(options.point);

  ClosedLoop loop(start);
  ContactModeTracker tracker = MakeContactTracker(loop.robot());
  const int settle_steps = static_cast<int>(std::lround(options.settle / loop.period()));
  for (int step = 0; step < settle_steps; ++step) {
    result.settled = loop.Step();
    if (result.settled != LoopStatus::kRunning) return result;
    loop.TrackContacts(&tracker);
  }
  result.mode = tracker.mode();
  result.predictions = PredictStiffness(loop, options.point, result.mode, &result.loop);

  const int runs = static_cast<int>(options.forces.size()) * 6 + 1;
  int done = 0;
  const auto report = [&] {
    ++done;
    if (progress) progress(static_cast<double>(done) / runs);
  };
  const Hold still = PushAndHold(loop, tracker, Vector3d::Zero(), options);
  result.settled = still.end;
  result.sway = still.end == LoopStatus::kRunning ? still.sway.maxCoeff() : 0;
  result.sway_W = still.sway;
  result.mode_changes = still.mode_changes;
  result.watched = options.ramp + options.hold;
  const mjModel* model = loop.robot().model();
  for (const int dof : loop.robot().dof_address()) {
    result.friction_loss = std::max(result.friction_loss, double(model->dof_frictionloss[dof]));
  }
  report();
  if (still.end != LoopStatus::kRunning) return result;

  for (const double force : options.forces) {
    ShakeLevel level;
    level.force = force;
    level.sway.setZero();
    for (int axis = 0; axis < 3; ++axis) {
      for (const int sign : {0, 1}) {
        const Vector3d f_W = (sign == 0 ? force : -force) * Vector3d::Unit(axis);
        const Hold pushed = PushAndHold(loop, tracker, f_W, options);
        (sign == 0 ? level.plus : level.minus).col(axis) = pushed.mean - still.mean;
        level.end[axis][sign] = pushed.end;
        level.stepped[axis] = level.stepped[axis] || pushed.mode_changes > 0;
        level.sway[axis] = std::max(level.sway[axis], pushed.sway[axis]);
        report();
      }
    }
    result.levels.push_back(level);
  }
  return result;
}

}  // namespace silc
