// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy_tools/workers.h"

#include <Eigen/Geometry>
#include <chrono>
#include <cmath>

#include "silc/base/nan.h"
#include "silc/robot/kinematics.h"
#include "silc/robot/pose.h"

namespace silc {

void FillPolicyInput(const PolicyRequest& request, double height, ObservationInput* input) {
  const LowState& state = request.state;
  input->q.resize(kRobotMotors);
  input->qd.resize(kRobotMotors);
  input->tau.resize(kRobotMotors);
  for (int j = 0; j < kRobotMotors; ++j) {
    input->q[j] = state.motor[j].q;
    input->qd[j] = state.motor[j].dq;
    input->tau[j] = state.motor[j].tau_est;
  }
  const float* quat = state.imu.quat_wxyz;
  const Eigen::Quaterniond R_WB =
      Eigen::Quaterniond(quat[0], quat[1], quat[2], quat[3]).normalized();
  input->g_B = R_WB.conjugate() * -Eigen::Vector3d::UnitZ();
  input->w_WB_B = {state.imu.gyro[0], state.imu.gyro[1], state.imu.gyro[2]};
  input->command.lin_vel = {request.vx, request.vy};
  input->command.yaw_rate = request.yaw_rate;
  input->command.height = height;
  const bool moves = request.vx != 0 || request.vy != 0 || request.yaw_rate != 0;
  input->command.walk = moves ? 1 : 0;
}

namespace {

// The robot's posture; where it stands in the world does not matter.
void FillPosture(const RobotModel& robot,
                 const PolicyRequest& request,
                 const ObservationInput& input,
                 Eigen::VectorXd* qpos,
                 Eigen::VectorXd* qvel) {
  const int base = robot.base_qpos_address(), base_dof = robot.base_dof_address();
  qpos->setZero(robot.model()->nq);
  qvel->setZero(robot.model()->nv);
  (*qpos)[base + 2] = robot.spec().StandingPose().base_height;
  for (int k = 0; k < 4; ++k) (*qpos)[base + 3 + k] = request.state.imu.quat_wxyz[k];
  for (int k = 0; k < 3; ++k) (*qvel)[base_dof + 3 + k] = request.state.imu.gyro[k];
  for (int j = 0; j < robot.num_joints(); ++j) {
    (*qpos)[robot.qpos_address()[static_cast<std::size_t>(j)]] = input.q[j];
    (*qvel)[robot.dof_address()[static_cast<std::size_t>(j)]] = input.qd[j];
  }
}

}  // namespace

PolicyWorker::PolicyWorker(const RobotModel& robot, const Policy& policy, double height)
    : robot_(robot), policy_(policy), height_(height), target_(policy.default_pose()) {}

void PolicyWorker::Answer(const PolicyRequest& request, PolicyAnswer* answer) {
  if (request.session != step_.session) policy_.Reset();
  step_.time_ns = request.time_ns;
  step_.sequence = request.sequence;
  step_.session = request.session;
  FillPolicyInput(request, height_, &step_.input);
  answer->finite = policy_.Act(step_.input, &target_) == PolicyStatus::kOk;
  answer->width = static_cast<int>(target_.size());
  for (int j = 0; j < std::min(answer->width, kRobotMotors); ++j) {
    answer->target[static_cast<std::size_t>(j)] = target_[j];
  }
  // for the log
  FillPosture(robot_, request, step_.input, &step_.qpos, &step_.qvel);
  step_.observation = policy_.observation();
  step_.action = policy_.raw_action();
  step_.target = target_;
  if (!answer->finite) {
    step_.observation.setConstant(static_cast<float>(kNan));
    step_.action.setConstant(kNan);
    step_.target.setConstant(kNan);
  }
}

StiffnessNote NoteOf(const DeployMoment& moment) {
  StiffnessNote note;
  note.sequence = moment.sequence;
  note.judged = moment.judged;
  note.sigma = moment.sigma;
  note.rho = moment.rho;
  note.observe_s = moment.observe_s;
  return note;
}

namespace {

ObserverOptions OnlineOptions(const Servo& servo, const UserBudget& budget) {
  ObserverOptions options;
  options.servo = servo;
  options.budget = budget.spec;
  return options;
}

}  // namespace

StiffnessWorker::StiffnessWorker(const RobotModel& robot,
                                 const Policy& policy,
                                 const Servo& servo,
                                 const UserBudget& budget,
                                 double height)
    : robot_(robot),
      policy_(policy),
      height_(height),
      data_(robot.MakeData()),
      observer_(OnlineOptions(servo, budget)),
      contacts_(robot),
      target_(policy.default_pose()) {
  moment_.K_s_diag = Eigen::VectorXd::Constant(robot.num_joints(), kNan);
}

const DeployMoment& StiffnessWorker::Observe(const PolicyRequest& request,
                                             bool after_gap,
                                             bool only_follow) {
  const auto begin = std::chrono::steady_clock::now();
  if (request.session != session_) {
    policy_.Reset();
    contacts_.Reset();
    whole_ = true;
  } else if (after_gap) {
    whole_ = false;
  }
  session_ = request.session;
  FillPolicyInput(request, height_, &input_);
  FillPosture(robot_, request, input_, &qpos_, &qvel_);
  mjData* data = data_.get();
  mju_copy(data->qpos, qpos_.data(), robot_.model()->nq);
  mju_copy(data->qvel, qvel_.data(), robot_.model()->nv);
  mj_kinematics(robot_.model(), data);
  mj_comPos(robot_.model(), data);
  ComputeBodyJacobians(robot_, data, &body_);

  DeployMoment& m = moment_;
  m.sequence = request.sequence;
  m.mode = contacts_.Update(data, body_, input_.tau, policy_.layout().control_dt);
  m.foot_force = contacts_.force();
  m.observed = whole_ && !only_follow;
  m.judged = false;
  m.sigma = m.rho = m.observe_s = kNan;
  m.K_s_diag.setConstant(kNan);
  const bool acted = policy_.Act(input_, &target_) == PolicyStatus::kOk;
  if (!m.observed) return m;
  if (acted) {
    // frame by frame, as `silc observe` does: sums of frames round differently in float, by 4e-6 of
    // σ
    policy_.RestingJacobians(&jacobians_);
    const StiffnessReading& reading = observer_.Observe(jacobians_, body_, m.mode);
    m.judged = reading.quasi_static.status == StiffnessStatus::kOk;
    m.sigma = reading.quasi_static.sigma;
    m.rho = reading.loop.rho;
    m.K_s_diag = reading.K_s.diagonal();
  }
  m.observe_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return m;
}

}  // namespace silc
