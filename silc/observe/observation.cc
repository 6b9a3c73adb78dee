// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/observation.h"

#include <cmath>
#include <numbers>

#include "silc/base/nan.h"
#include "silc/robot/kinematics.h"
#include "silc/robot/pose.h"

namespace silc {
namespace {

ObserverOptions MakeObserverOptions(const Servo& servo, const BudgetSpec& budget) {
  ObserverOptions observer;
  observer.servo = servo;
  observer.budget = budget;
  observer.one_step_sigma = true;
  observer.exact_action_loop = true;  // some 6 ms, which a tool has
  return observer;
}

}  // namespace

MomentReading::MomentReading(const StiffnessReading& reading)
    : contact_status(reading.contact_status),
      one_step_status(reading.one_step_status),
      static_status(reading.static_status),
      K_1(reading.K_1),
      K_s(reading.K_s),
      K_1_diag(reading.K_1.diagonal()),
      K_s_diag(reading.K_s.diagonal()),
      loop(reading.loop),
      loop_condition(reading.loop_condition),
      one_step(reading.one_step),
      quasi_static(reading.quasi_static),
      com(reading.com),
      hand_in_world{reading.hand_in_world[0], reading.hand_in_world[1]},
      hand_on_base{reading.hand_on_base[0], reading.hand_on_base[1]} {}

void Moment::DropMatrices() {
  reading.K_1.resize(0, 0);
  reading.K_s.resize(0, 0);
  for (Eigen::VectorXd* vector : {&q, &qd, &tau, &action}) vector->resize(0);
  observation.resize(0);
}

MomentObserver::MomentObserver(const RobotModel& robot,
                               const Servo& servo,
                               const LoopTiming& timing,
                               const ObservationOptions& options)
    : robot_(robot),
      servo_(servo),
      timing_(timing),
      options_(options),
      observer_(MakeObserverOptions(servo, options.budget.spec)) {}

Moment MomentObserver::Observe(Policy* policy, mjData* data, ContactMode mode, double time) {
  // derivatives may be infinite where the answer is not (a square root at zero): such a moment is
  // not judged, and each reading says so
  policy->Jacobians(&jacobians_);
  ComputeBodyJacobians(robot_, data, &body_);
  time_ = time;

  Moment moment;
  moment.time = time;
  moment.mode = mode;
  const StiffnessReading& reading = observer_.Observe(jacobians_, body_, mode);
  moment.reading = MomentReading(reading);
  moment.p_WB = Eigen::Map<const Eigen::Vector3d>(data->xpos + 3 * robot_.base_body());
  const Eigen::Matrix3d R_WB = BaseRotation(robot_, *data);
  moment.yaw = std::atan2(R_WB(1, 0), R_WB(0, 0));
  const std::array<FootForce, 2> feet = ComputeFootForces(robot_, *data);
  moment.foot_force = {feet[kLeft].normal, feet[kRight].normal};
  moment.q.resize(robot_.num_joints());
  GetJointPositions(robot_, *data, moment.q);
  moment.qd.resize(robot_.num_joints());
  GetJointVelocities(robot_, *data, moment.qd);
  moment.quat_wxyz = Eigen::Map<const Eigen::Vector4d>(data->qpos + robot_.base_qpos_address() + 3);
  // a free joint's velocity: linear in W, angular in B
  const mjtNum* v = data->qvel + robot_.base_dof_address();
  moment.v_WB = {v[0], v[1], v[2]};
  moment.w_WB_B = {v[3], v[4], v[5]};
  moment.observation = policy->observation();
  moment.action = policy->raw_action();

  // the paper's test, in the same coordinates as the budget
  if (options_.random_directions > 0 && reading.judged_status == StiffnessStatus::kOk &&
      reading.contact_status == StiffnessStatus::kOk) {
    ReducedBudget budget;
    const ContactKinematics& contact = observer_.contact();
    if (ComputeReducedBudget(options_.budget.spec, servo_, contact, &budget) ==
        StiffnessStatus::kOk) {
      JointMatrix K_z = reading.K_judged;
      if (contact.closed) K_z = contact.N.transpose() * reading.K_judged * contact.N;
      Rng rng(options_.seed, 0, count_);
      moment.random_directions = TestQuadraticForm(K_z, budget.M, options_.random_directions, &rng);
    }
  }
  ++count_;

  const std::vector<double> hz(kDampingHz.begin(), kDampingHz.end());
  const FrequencySweep sweep = Sweep(hz);
  for (std::size_t k = 0; k < hz.size(); ++k) {
    moment.damping[k] = ApparentDamping(sweep.K[k], 2 * std::numbers::pi * hz[k]).diagonal();
  }
  if (options_.on_contact) options_.on_contact(moment, observer_.contact());
  return moment;
}

FrequencySweep MomentObserver::Sweep(const std::vector<double>& hz) const {
  FrequencySweep sweep;
  sweep.time = time_;
  sweep.hz = hz;
  sweep.K = SweepDynamicStiffness(servo_, jacobians_, timing_, observer_.contact(), hz);
  for (std::size_t k = 0; k < hz.size(); ++k) {
    const double omega = 2 * std::numbers::pi * hz[k];
    for (int i = 0; i < robot_.num_joints(); ++i) {
      const double own = robot_.model()->dof_damping[robot_.dof_address()[i]];  // [N·m·s/rad]
      sweep.K[k](i, i) += std::complex<double>(0, omega * own);
    }
  }
  return sweep;
}

}  // namespace silc
