// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/closed_loop.h"

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <limits>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/robot/gain_file.h"
#include "silc/robot/kinematics.h"
#include "silc/robot/pose.h"

namespace silc {

using Eigen::Matrix3d;
using Eigen::Vector3d;
using Eigen::VectorXd;

const char* Describe(LoopStatus status) {
  switch (status) {
    case LoopStatus::kRunning:
      return "running";
    case LoopStatus::kFallen:
      return "the robot fell: base below half its standing height or tilted by more than 60 "
             "degrees";
    case LoopStatus::kPolicyNotFinite:
      return "the policy's input or output is not a finite number";
    case LoopStatus::kDiverged:
      return "the simulation diverged";
  }
  return "unknown";
}

Servo ServoFor(const RobotModel& robot, const Policy& policy, const std::string& gains_name) {
  Servo servo;
  const bool from_policy = gains_name.empty() && policy.kp().size() > 0;
  const GainSet gains = FindGains(robot.spec(), gains_name);
  servo.kp = gains.kp;
  servo.kd = gains.kd;
  for (int i = 0; from_policy && i < robot.num_joints(); ++i) {
    if (std::isnan(policy.kp()[i])) continue;  // not the policy's joint
    servo.kp[i] = policy.kp()[i];
    servo.kd[i] = policy.kd()[i];
  }
  servo.alpha = policy.action_scale();
  return servo;
}

GainSet GainsOf(const RobotModel& robot, const Policy& policy) {
  const Servo servo = ServoFor(robot, policy, "");
  GainSet set = {
      GainsName(robot.spec(), servo.kp, servo.kd), servo.kp, servo.kd, policy.action_scale()};
  for (int j = 0; j < robot.num_joints(); ++j) {
    if (!(set.action_scale[j] > 0)) set.action_scale[j] = robot.spec().Gains().action_scale[j];
  }
  return set;
}

ContactModeTracker MakeContactTracker(const RobotModel& robot) {
  ContactModeOptions options;
  options.enter_force = robot.spec().foot_force.enter;
  options.leave_force = robot.spec().foot_force.leave;
  return ContactModeTracker(options);
}

ClosedLoop::ClosedLoop(const RobotModel& robot, Policy policy, LoopOptions options)
    : robot_(&robot),
      policy_(std::move(policy)),
      options_(std::move(options)),
      data_(robot.MakeData()),
      period_(policy_.layout().control_dt) {
  const double step = robot.model()->opt.timestep;
  const int n = robot.num_joints();
  SILC_CHECK(options_.servo.nv() == n && options_.servo.kd.size() == n);
  SILC_CHECK(policy_.num_joints() == n);

  // whole numbers of physics steps, or the sampled loop is not the one (S4) describes
  const auto whole_steps = [&](double seconds, const std::string& what) {
    const double steps = seconds / step;
    if (!(seconds >= 0 && std::abs(steps - std::round(steps)) <= 1e-6)) {
      throw ConfigError(what + " of " + std::to_string(seconds) +
                        " s is no multiple of the physics step of " + std::to_string(step) + " s");
    }
    return static_cast<int>(std::round(steps));
  };
  steps_per_period_ = whole_steps(period_, "the policy's control period");
  latency_steps_ = whole_steps(options_.latency, "a latency");
  if (steps_per_period_ < 1) throw ConfigError("the policy's layout gives no control period");

  effort_limit_ = robot.effort_limit().cwiseMin(policy_.effort_limit());
  input_.q.resize(n);
  input_.qd.resize(n);
  input_.tau.resize(n);
  Reset();
}

ClosedLoop::ClosedLoop(const ClosedLoop& other)
    : robot_(other.robot_),
      policy_(other.policy_),
      options_(other.options_),
      data_(other.robot_->MakeData()),
      period_(other.period_),
      steps_per_period_(other.steps_per_period_),
      latency_steps_(other.latency_steps_),
      fallen_height_(other.fallen_height_),
      effort_limit_(other.effort_limit_),
      input_(other.input_),
      shown_(other.shown_),
      target_(other.target_),
      servo_target_(other.servo_target_),
      tau_(other.tau_),
      pending_(other.pending_),
      push_(other.push_),
      saturation_(other.saturation_) {
  mj_copyData(data_.get(), robot_->model(), other.data_.get());
}

void ClosedLoop::Reset() {
  Pose start;
  start.q = policy_.default_pose();
  if (!options_.pose.empty()) start = robot_->spec().StandingPose(options_.pose);
  StandInPose(*robot_, start, data_.get(), kRestingDepth);
  policy_.Reset();
  target_ = servo_target_ = start.q;
  tau_ = VectorXd::Zero(robot_->num_joints());
  pending_.clear();
  push_ = Push();
  saturation_ = 0;
  fallen_height_ = 0.5 * BasePosition().z();
}

void ClosedLoop::Sample() {
  if (shown_) {
    input_ = *shown_;
    return;
  }
  GetJointPositions(*robot_, *data_, input_.q);
  GetJointVelocities(*robot_, *data_, input_.qd);
  input_.tau = tau_;
  // a free joint's velocity: linear in W, angular in B
  const mjtNum* v = data_->qvel + robot_->base_dof_address();
  input_.v_WB_B = BaseRotation().transpose() * Vector3d(v[0], v[1], v[2]);
  input_.w_WB_B = Vector3d(v[3], v[4], v[5]);
  input_.g_B = GravityInBase(*robot_, *data_);
  input_.command = options_.command;
}

LoopStatus ClosedLoop::Decide() {
  Sample();
  if (policy_.Act(input_, &target_) != PolicyStatus::kOk) return LoopStatus::kPolicyNotFinite;
  pending_.push_back({target_, latency_steps_});
  return LoopStatus::kRunning;
}

LoopStatus ClosedLoop::Advance() {
  saturation_ = 0;
  for (int step = 0; step < steps_per_period_; ++step) {
    // targets arrive in the order they were decided
    while (!pending_.empty() && pending_.front().steps_left <= 0) {
      servo_target_ = pending_.front().target;
      pending_.pop_front();
    }
    for (Pending& pending : pending_) --pending.steps_left;
    if (before_step_) before_step_();
    ApplyServo(servo_target_);
    ApplyPush();
    mj_step(robot_->model(), data_.get());
    if (after_step_) after_step_();
  }
  // positions were integrated last: bring kinematics, contacts and forces up to the new state
  mj_forward(robot_->model(), data_.get());
  return Check();
}

LoopStatus ClosedLoop::Step() {
  const LoopStatus status = Decide();
  return status == LoopStatus::kRunning ? Advance() : status;
}

LoopStatus ClosedLoop::SettlePolicy(int max_steps) {
  constexpr double kStill = 1e-9;  // [rad] far under what float32 weights resolve
  VectorXd previous = VectorXd::Constant(target_.size(), std::numeric_limits<double>::infinity());
  for (int k = 0; k < max_steps; ++k) {
    const LoopStatus status = Decide();
    if (status != LoopStatus::kRunning) return status;
    HoldTarget();
    ApplyServo(servo_target_);
    // a full history of this state first, then until nothing changes
    if (k > policy_.layout().history && (target_ - previous).lpNorm<Eigen::Infinity>() < kStill)
      break;
    previous = target_;
  }
  mj_forward(robot_->model(), data_.get());
  return LoopStatus::kRunning;
}

void ClosedLoop::HoldTarget() {
  pending_.clear();
  servo_target_ = target_;
}

void ClosedLoop::SetState(std::span<const double> qpos, std::span<const double> qvel) {
  const mjModel* model = robot_->model();
  SILC_CHECK(static_cast<int>(qpos.size()) == model->nq &&
             static_cast<int>(qvel.size()) == model->nv);
  std::copy(qpos.begin(), qpos.end(), data_->qpos);
  std::copy(qvel.begin(), qvel.end(), data_->qvel);
  ApplyServo(servo_target_);
  mj_forward(model, data_.get());
}

void ClosedLoop::ApplyServo(const VectorXd& target) {
  const int n = robot_->num_joints();
  int limited = 0;
  for (int i = 0; i < n; ++i) {
    const double q = data_->qpos[robot_->qpos_address()[i]];
    const double qd = data_->qvel[robot_->dof_address()[i]];
    const double limit = effort_limit_[i];
    const double wanted =
        options_.servo.kp[i] * (target[i] - q) - options_.servo.kd[i] * qd;  // (S1)
    tau_[i] = std::clamp(wanted, -limit, limit);
    limited += tau_[i] != wanted;
    data_->ctrl[robot_->actuator()[i]] = tau_[i];
  }
  saturation_ += static_cast<double>(limited) / (n * steps_per_period_);
}

void ClosedLoop::ApplyPush() {
  const mjModel* model = robot_->model();
  mju_zero(data_->xfrc_applied, 6 * model->nbody);
  const auto at_body = [&](int body, const Vector3d& f_W, const Vector3d& p_W) {
    // xfrc_applied acts at the body's centre of mass: move the line of action there
    const Vector3d p_WC(
        data_->xipos[3 * body], data_->xipos[3 * body + 1], data_->xipos[3 * body + 2]);
    const Vector3d moment = (p_W - p_WC).cross(f_W);
    for (int k = 0; k < 3; ++k) {
      data_->xfrc_applied[6 * body + k] = f_W[k];
      data_->xfrc_applied[6 * body + 3 + k] = moment[k];
    }
  };
  switch (push_.point) {
    case Push::Point::kNone:
      break;
    case Push::Point::kBase:
      at_body(robot_->base_body(), push_.f_W, BasePosition());
      break;
    case Push::Point::kBody:
      at_body(push_.body, push_.f_W, BodyPoint(push_.body, push_.p_BP));
      break;
    case Push::Point::kLeftHand:
      at_body(robot_->hand_body()[kLeft], push_.f_W, HandPosition(kLeft));
      break;
    case Push::Point::kRightHand:
      at_body(robot_->hand_body()[kRight], push_.f_W, HandPosition(kRight));
      break;
    case Push::Point::kLeftHandOnBase:
    case Push::Point::kRightHandOnBase: {
      const int hand = push_.point == Push::Point::kLeftHandOnBase ? kLeft : kRight;
      at_body(robot_->hand_body()[hand], push_.f_W, HandPosition(hand));
      at_body(robot_->base_body(), -push_.f_W, HandPosition(hand));
      break;
    }
    case Push::Point::kCom:
      // shared out by mass, a force has the generalised components J_comᵀ f and no others
      for (int body = 1; body < model->nbody; ++body) {
        if (model->body_rootid[body] != model->body_rootid[robot_->base_body()]) continue;
        const double share = model->body_mass[body] / robot_->mass();
        for (int k = 0; k < 3; ++k) data_->xfrc_applied[6 * body + k] = share * push_.f_W[k];
      }
      break;
  }
}

LoopStatus ClosedLoop::Check() const {
  for (int i = 0; i < robot_->model()->nq; ++i) {
    if (!std::isfinite(data_->qpos[i])) return LoopStatus::kDiverged;
  }
  // MuJoCo resets a state it finds absurd and counts a warning: the run is over all the same
  if (data_->warning[mjWARN_BADQACC].number + data_->warning[mjWARN_BADQVEL].number +
          data_->warning[mjWARN_BADQPOS].number >
      0) {
    return LoopStatus::kDiverged;
  }
  const bool upright = GravityInBase(*robot_, *data_).z() < -0.5;
  return upright && BasePosition().z() > fallen_height_ ? LoopStatus::kRunning
                                                        : LoopStatus::kFallen;
}

void ClosedLoop::TrackContacts(ContactModeTracker* tracker) const {
  const std::array<FootForce, 2> feet = ComputeFootForces(*robot_, *data_);
  tracker->Update(feet[kLeft].normal, feet[kRight].normal, period_);
}

Vector3d ClosedLoop::ComPosition() const { return silc::ComPosition(*robot_, *data_); }

Vector3d ClosedLoop::HandPosition(int hand) const {
  return Eigen::Map<const Vector3d>(data_->site_xpos + 3 * robot_->hand_site()[hand]);
}

Vector3d ClosedLoop::HandOnBase(int hand) const {
  return BaseRotation().transpose() * (HandPosition(hand) - BasePosition());
}

Vector3d ClosedLoop::BasePosition() const {
  return Eigen::Map<const Vector3d>(data_->xpos + 3 * robot_->base_body());
}

Vector3d ClosedLoop::BodyPoint(int body, const Vector3d& p_BP) const {
  SILC_CHECK(body >= 0 && body < robot_->model()->nbody);
  using RowMajor3 = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;
  const Eigen::Map<const RowMajor3> R_WBody(data_->xmat + 9 * body);
  return Eigen::Map<const Vector3d>(data_->xpos + 3 * body) + R_WBody * p_BP;
}

Matrix3d ClosedLoop::BaseRotation() const { return silc::BaseRotation(*robot_, *data_); }

}  // namespace silc
