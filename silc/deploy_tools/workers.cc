// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy_tools/workers.h"

#include <Eigen/Cholesky>
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

PolicyWorker::PolicyWorker(const Policy& policy, double height)
    : policy_(policy), height_(height), target_(policy.default_pose()) {}

void PolicyWorker::Answer(const PolicyRequest& request, PolicyAnswer* answer) {
  if (request.session != session_) policy_.Reset();
  session_ = request.session;
  FillPolicyInput(request, height_, &input_);
  answer->finite = policy_.Act(input_, &target_) == PolicyStatus::kOk;
  answer->width = static_cast<int>(target_.size());
  for (int j = 0; j < std::min(answer->width, kRobotMotors); ++j) {
    answer->target[static_cast<std::size_t>(j)] = target_[j];
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
      tracker_(MakeContactTracker(robot)),
      gravity_(6 + robot.num_joints()) {
  moment_.action = Eigen::VectorXd::Zero(robot.num_joints());
  moment_.target = policy.default_pose();
  moment_.observation = Eigen::VectorXf::Zero(ObservationWidth(policy.layout()));
  const JointRoles& roles = robot.spec().roles;
  for (std::size_t side = 0; side < 2; ++side) {
    leg_[side] = {roles.hip_pitch[side],
                  roles.hip_roll[side],
                  roles.hip_yaw[side],
                  roles.knee[side],
                  roles.ankle_pitch[side],
                  roles.ankle_roll[side]};
  }
}

// At rest the torques of a leg carry its weight and what the floor does to its foot:
// τ = g_leg − J_legᵀ F. J_leg is square; the small λ keeps a stretched knee from exploding.
std::array<double, 2> StiffnessWorker::FootForces() {
  constexpr double kLambda = 1e-3;  // [m]
  ComputeGravityVector(robot_, data_.get(), gravity_);
  std::array<double, 2> normal{};
  for (std::size_t side = 0; side < 2; ++side) {
    Eigen::Matrix<double, 6, 6> J;
    Eigen::Matrix<double, 6, 1> carried;
    for (int k = 0; k < 6; ++k) {
      const int joint = leg_[side][static_cast<std::size_t>(k)];
      if (joint < 0) return {kNan, kNan};  // the mode then stays as it is
      J.col(k) = body_.foot[side].col(6 + joint);
      carried[k] = gravity_[6 + joint] - moment_.input.tau[joint];
    }
    const Eigen::Matrix<double, 6, 6> JJt =
        J * J.transpose() + kLambda * kLambda * Eigen::Matrix<double, 6, 6>::Identity();
    normal[side] = JJt.ldlt().solve(J * carried)[2];
  }
  return normal;
}

const DeployMoment& StiffnessWorker::Observe(const PolicyRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  if (request.session != session_) {
    policy_.Reset();
    tracker_ = MakeContactTracker(robot_);
  }
  session_ = request.session;
  DeployMoment& m = moment_;
  m.time_ns = request.time_ns;
  m.sequence = request.sequence;
  m.session = request.session;
  FillPolicyInput(request, height_, &m.input);

  // the robot's posture; where it stands in the world does not matter
  const mjModel* model = robot_.model();
  mjData* data = data_.get();
  const int base = robot_.base_qpos_address(), base_dof = robot_.base_dof_address();
  mju_zero(data->qvel, model->nv);
  data->qpos[base] = data->qpos[base + 1] = 0;
  data->qpos[base + 2] = robot_.spec().StandingPose().base_height;
  for (int k = 0; k < 4; ++k) data->qpos[base + 3 + k] = request.state.imu.quat_wxyz[k];
  for (int k = 0; k < 3; ++k) data->qvel[base_dof + 3 + k] = request.state.imu.gyro[k];
  for (int j = 0; j < robot_.num_joints(); ++j) {
    data->qpos[robot_.qpos_address()[static_cast<std::size_t>(j)]] = m.input.q[j];
    data->qvel[robot_.dof_address()[static_cast<std::size_t>(j)]] = m.input.qd[j];
  }
  m.qpos = Eigen::Map<const Eigen::VectorXd>(data->qpos, model->nq);
  m.qvel = Eigen::Map<const Eigen::VectorXd>(data->qvel, model->nv);
  mj_kinematics(model, data);
  mj_comPos(model, data);
  ComputeBodyJacobians(robot_, data, &body_);
  m.foot_force = FootForces();
  tracker_.Update(m.foot_force[0], m.foot_force[1], policy_.layout().control_dt);
  m.mode = tracker_.mode();

  m.judged = false;
  m.sigma = m.rho = kNan;
  m.K_s_diag = Eigen::VectorXd::Constant(robot_.num_joints(), kNan);
  if (policy_.Act(m.input, &m.target) == PolicyStatus::kOk) {
    m.observation = policy_.observation();
    m.action = policy_.raw_action();
    // frame by frame, as `silc observe` does: sums of frames round differently in float, by 4e-6 of
    // σ
    policy_.Jacobians(&jacobians_);
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
