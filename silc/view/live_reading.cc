// SPDX-License-Identifier: Apache-2.0
#include "silc/view/live_reading.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <chrono>

#include "silc/base/check.h"
#include "silc/base/nan.h"
#include "silc/robot/geometric_stiffness.h"
#include "silc/robot/kinematics.h"
#include "silc/stiffness/task_stiffness.h"

namespace silc {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;

ObserverOptions ReaderOptions(const ReadingSetup& setup) {
  ObserverOptions options;
  options.servo = setup.servo;
  options.budget = setup.budget;
  return options;
}

// (S5) of a point on a body.
Jacobian3 ContactJacobianOf(const RobotModel& robot,
                            const mjData& data,
                            const ContactKinematics& contact,
                            const Vector3d& p_WP,
                            int body) {
  const mjModel* model = robot.model();
  using Full = Eigen::Matrix<double, 3, Eigen::Dynamic, Eigen::RowMajor>;
  Full full(3, model->nv);
  mj_jac(model, &data, full.data(), nullptr, p_WP.data(), body);
  FloatingJacobian3 J_x(3, 6 + robot.num_joints());
  J_x.leftCols<6>() = full.middleCols(robot.base_dof_address(), 6);
  for (int i = 0; i < robot.num_joints(); ++i) J_x.col(6 + i) = full.col(robot.dof_address()[i]);
  Jacobian3 J;
  ThroughBase(contact, J_x, &J);
  return J;
}

// λ_max(Lᵀ sym(K_x) L), L Lᵀ = C_budget
double WorstAgainst(const Matrix3d& C_budget, const Matrix3d& K_x) {
  const Eigen::LLT<Matrix3d> factor(Matrix3d(0.5 * (C_budget + C_budget.transpose())));
  if (factor.info() != Eigen::Success) return kNan;
  const Matrix3d L = factor.matrixL();
  const Matrix3d sym = L.transpose() * (0.5 * (K_x + K_x.transpose())) * L;
  const Eigen::SelfAdjointEigenSolver<Matrix3d> solver(sym, Eigen::EigenvaluesOnly);
  return solver.eigenvalues()[2];
}

}  // namespace

ToldView ShowTold(const BudgetCommand& ranges, const BudgetValues& told) {
  ToldView view;
  for (int i = 0; i < kNumCommanded; ++i) {
    if (!ranges.range[i]) continue;
    view.value[i] = told[i];
    view.low[i] = ranges.range[i]->low;
    view.high[i] = ranges.range[i]->high;
  }
  return view;
}

LiveReader::LiveReader(const RobotModel& robot, std::shared_ptr<const ReadingSetup> setup)
    : robot_(robot), setup_(std::move(setup)), observer_(ReaderOptions(*setup_)) {}

LiveReading LiveReader::Read(ObservedState* state) {
  SILC_CHECK(state->setup == setup_);
  const auto begin = std::chrono::steady_clock::now();
  mjData* data = state->data.get();
  LiveReading out;
  out.setup = setup_->number;
  out.time = state->time;

  // derivatives that are not finite are told by the statuses
  state->policy->Jacobians(&jacobians_);
  ComputeBodyJacobians(robot_, data, &body_);
  const StiffnessReading& reading = observer_.Observe(jacobians_, body_, state->mode);
  const BudgetReading& judged = reading.quasi_static;
  out.view.status = static_cast<std::uint8_t>(judged.status);
  out.view.sigma = judged.status == StiffnessStatus::kOk ? judged.sigma : kNan;
  out.view.worst = judged.status == StiffnessStatus::kOk ? judged.worst : kNan;
  out.view.loop_radius = reading.loop.rho;

  // where the points are, and how they move with the joints
  const ContactKinematics& contact = observer_.contact();
  std::array<const Jacobian3*, kViewPoints> J = {
      &contact.com, &contact.hand_in_world[kLeft], &contact.hand_in_world[kRight], nullptr};
  if (!robot_.has_hands()) J[1] = J[2] = nullptr;
  Jacobian3 held_J;
  if (reading.contact_status == StiffnessStatus::kOk && state->held) {
    const Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>> R(data->xmat +
                                                                           9 * state->held->body);
    const Vector3d p_WP =
        Eigen::Map<const Vector3d>(data->xpos + 3 * state->held->body) + R * state->held->p_BP;
    held_J = ContactJacobianOf(robot_, *data, contact, p_WP, state->held->body);
    J[kHeldPoint] = &held_J;
  }

  // what a lasting force finds: K_s, every channel followed, and gravity's own stiffness; nothing
  // where the action loop does not settle at (S3)
  if (reading.contact_status == StiffnessStatus::kOk) {
    JointMatrix H;
    StiffnessStatus status = reading.static_status;
    if (status == StiffnessStatus::kOk) {
      status = ComputeGeometricStiffness(robot_, *data, state->tau, contact, &H);
    }
    ReducedBudget budget;
    const StiffnessStatus budget_status =
        ComputeReducedBudget(setup_->budget, setup_->servo, contact, &budget);
    const ConstMatrix N(contact.N);
    const ConstMatrix* closed = contact.closed ? &N : nullptr;
    for (int p = 0; p < kViewPoints; ++p) {
      if (J[p] == nullptr) continue;
      PointView& point = out.points[p];
      TaskStiffness task;
      if (status == StiffnessStatus::kOk) {
        const ConstMatrix added(H);
        if (ComputeTaskStiffness(*J[p], reading.K_s, closed, &added, &task) ==
            StiffnessStatus::kOk) {
          point.C_felt = task.C_x;
        }
      }
      if (budget_status != StiffnessStatus::kOk) continue;
      Eigen::MatrixXd J_z = *J[p];
      if (contact.closed) J_z = J_z * contact.N;
      const Eigen::LLT<Eigen::MatrixXd> M{Eigen::MatrixXd(budget.M)};
      if (M.info() != Eigen::Success) continue;
      point.C_budget = J_z * M.solve(J_z.transpose());
      if (judged.status != StiffnessStatus::kOk) continue;
      if (ComputeTaskStiffness(*J[p], reading.K_judged, closed, nullptr, &task) ==
          StiffnessStatus::kOk) {
        point.worst = WorstAgainst(point.C_budget, task.K_x);
      }
    }
  }
  out.view.observe_time =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

}  // namespace silc
