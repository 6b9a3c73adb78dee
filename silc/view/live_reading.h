// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "silc/config/budget_file.h"
#include "silc/observe/closed_loop.h"
#include "silc/stiffness/observer.h"
#include "silc/view/protocol.h"

namespace silc {

/// What a robot is judged by. Constant; a change makes a new one with another number.
struct ReadingSetup {
  std::uint32_t number = 0;
  Servo servo;
  BudgetSpec budget;
};

/// What a commanded policy is told, for the page.
ToldView ShowTold(const BudgetCommand& ranges, const BudgetValues& told);

/// A point fixed to a body, such as the one that the mouse holds.
struct HeldPoint {
  int body = 0;
  Eigen::Vector3d p_BP = Eigen::Vector3d::Zero();  // [m] in the body's frame
};

/// A copy of everything that an observation looks at, so that the simulation can go on meanwhile.
struct ObservedState {
  std::shared_ptr<const ReadingSetup> setup;
  std::optional<Policy> policy;  // after Act() on this state
  MjDataPtr data;
  ContactMode mode = ContactMode::kDoubleSupport;
  double time = 0;      // [s]
  Eigen::VectorXd tau;  // [N·m] robot's order
  std::optional<HeldPoint> held;
};

struct LiveReading {
  std::uint32_t setup = 0;  // number of the setup it was made under
  double time = 0;          // [s] of the state
  ReadingView view;
  std::array<PointView, kViewPoints> points;
};

/// Observes one moment for the viewer: σ, worst direction and spectral radius as `silc observe`
/// gives them, and for each point of kViewPoints
///   - C_felt, what a lasting force would find: (S11) of K_s with weight, every channel followed,
///   as
///     the last prediction of `silc observe --shake`. NaN where the action loop is unstable: (S3)
///     is what that loop settles at;
///   - C_budget = J M⁻¹ Jᵀ, M the budget (S6): the least that a robot inside its budget gives way.
///     At the centre of mass that is the budget's own diagonal; a hand in the world stands on arm
///     and legs;
///   - worst = λ_max(Lᵀ sym(K_x) L), L Lᵀ = C_budget, K_x of what is judged.
class LiveReader {
 public:
  LiveReader(const RobotModel& robot, std::shared_ptr<const ReadingSetup> setup);

  /// @pre state.setup is the one given, state.data has its contacts solved.
  LiveReading Read(ObservedState* state);

 private:
  const RobotModel& robot_;
  std::shared_ptr<const ReadingSetup> setup_;
  StiffnessObserver observer_;
  PolicyJacobians jacobians_;
  BodyJacobians body_;
};

}  // namespace silc
