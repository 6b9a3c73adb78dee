// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <vector>

#include "silc/base/rng.h"
#include "silc/certify/matrix_bounds.h"
#include "silc/certify/mlp_relaxation.h"
#include "silc/policy/observation_table.h"
#include "silc/stiffness/budget.h"
#include "silc/stiffness/contact_jacobian.h"
#include "silc/stiffness/types.h"

namespace silc {

/// One moment's condition as a function of what the network is given, everything else held:
///
///     A(x) = κ (F K_s(x) Fᵀ − m) − ι I,    σ(x) = ‖A(x)‖                                    (C1)
///     K_s  = Kp (I − α X),  (I − J E_A) X = J E_G,   J = J(x)                               (S3)
///
/// F = L⁻¹ Pᵀ with q̇ = P ż. Disc (S7c): κ = 2, ι = 1, m the floor of the band; two-sided (S7b): κ =
/// 1, ι = 0. E_A is what a previous action moves of the observation, and, through the torque it
/// makes, what is sensed of it; E_G what the joints move. Rows of E_A by the age of their frame are
/// the feedback of the action loop, A_i = J E_A^(i), whose radius ρ has to be below one for K_s to
/// be where the actions settle.
struct SigmaFunction {
  Eigen::MatrixXd F;         // nz × nv
  Eigen::MatrixXd floor;     // nz × nz  m
  double gain = 2;           // κ
  double identity = 1;       // ι
  Servo servo;               // kp and alpha
  Eigen::MatrixXd E_A, E_G;  // inputs × nv
  std::vector<int> age;      // of each input: control steps before the newest frame
  std::vector<int> action_joint;
};

/// (C1) of one moment. @return kOk, or the status of the budget's factor.
/// @pre spec.condition is kDisc or kTwoSided.
StiffnessStatus MakeSigmaFunction(const BudgetSpec& spec,
                                  const Servo& servo,
                                  const ContactKinematics& contact,
                                  const ObservationTable& table,
                                  SigmaFunction* out);

/// What is known of σ over one box.
struct SigmaBound {
  double upper = 0;        // [1] no observation of the box has a larger σ; infinite: not bounded
  double loop_change = 0;  // [1] β of (C8): how far the action loop may change, < 1 or not bounded
  bool clipped = false;    // an action may reach its clip in the box, where J is another
};

/// The largest σ that was met at observations of a box: a lower bound of its maximum.
struct SigmaFound {
  double sampled = 0;  // [1] at random observations
  double sought = 0;   // [1] at corners where a linear model says σ is large
  double radius = 0;   // [1] ρ of the action loop, at some of the random ones and at the corners
};

/// σ and ρ around one observation. Everything that does not depend on the size of the box is made
/// once.
class SigmaProblem {
 public:
  SigmaProblem(const DenseNetwork& network, SigmaFunction function, const Eigen::VectorXd& centre);

  /// σ at the centre and anywhere else; NaN where the action loop is singular.
  double at_centre() const { return at_centre_; }
  double At(const Eigen::VectorXd& x) const;
  /// [1] ρ of the action loop there.
  double RadiusAt(const Eigen::VectorXd& x) const;

  /// (C6) and (C8) over the box, in coordinates T of several kinds, of which the one with the least
  /// bound counts.
  /// @param enough  the search ends at the first coordinates with a bound of at most this
  /// @pre box.centre is the centre given to the constructor.
  SigmaBound Bound(const ObservationBox& box, double action_clip, double enough = 0);

  /// (C9) over the box: no observation of it has a larger ρ. At most 1; infinite: not bounded, or
  /// an action may reach its clip.
  /// @param steps  of LoopRadiusBound(); 0 answers only whether ρ < 1
  /// @pre as Bound()
  double BoundRadius(const ObservationBox& box, double action_clip, int steps) const;

  /// Looks for large σ in the box: `samples` random observations, half of them corners, and corners
  /// by alternating maximisation of the linear model that the last Bound() of this box made.
  SigmaFound Seek(const ObservationBox& box, int samples, Rng* rng) const;

 private:
  // where the loop's change is measured: U = O T, T invertible, ‖O‖ ≤ 1
  struct Coordinates {
    Eigen::MatrixXd T, T_inverse, O;
  };
  // J is looked at along these: W_1 of each branch times them, and the same of moduli
  struct Columns {
    Eigen::Index leading = 0;  // those that (C5) is weighed for
    std::vector<Eigen::MatrixXd> first, first_abs;
  };
  struct BranchOnBox;
  struct BoxOfJ;     // what is known of J over one box, before any coordinates
  struct Deviation;  // of T J V R from its middle, as sets
  Columns MakeColumns(const Eigen::MatrixXd& V,
                      const Eigen::MatrixXd& V_abs,
                      Eigen::Index leading) const;
  BoxOfJ RelaxOn(const ObservationBox& box, double action_clip, const Columns& columns) const;
  void Multiply(int branch, const Columns& columns, BranchOnBox* out) const;
  void ChainDeviations(int branch, int first_output, Eigen::Index leading, BranchOnBox* out) const;
  // the columns of T of the joints that a branch drives
  Eigen::MatrixXd LeftOf(const Eigen::MatrixXd& T, int first_output, Eigen::Index outputs) const;
  Deviation DeviationIn(const Eigen::MatrixXd& T,
                        const BoxOfJ& box,
                        Eigen::Index begin,
                        Eigen::Index count,
                        const Eigen::MatrixXd& R) const;
  SigmaBound BoundIn(const Coordinates& coordinates, const BoxOfJ& box) const;
  Eigen::MatrixXd JacobianTimes(const Eigen::VectorXd& x, const Eigen::MatrixXd& columns) const;

  const DenseNetwork& network_;
  SigmaFunction function_;
  Eigen::VectorXd centre_;
  double at_centre_ = 0;
  bool solvable_ = false;  // I − J E_A can be inverted at the centre
  Eigen::MatrixXd N_, X_;  // nv × nv   (I − J E_A)⁻¹ and X at the centre, as computed
  Eigen::MatrixXd U_;      // nz × nv   −F Kp α N
  Eigen::MatrixXd A_;      // nz × nz   A at the centre, of N_ and X_
  double A_room_ = 0;      // what rounding may have done to it
  std::vector<Coordinates> coordinates_;
  Columns to_stiffness_;                   // [V, V_A]
  Columns to_loop_;                        // E_A of frame 0, of frame 1, …
  Eigen::MatrixXd E_loop_;                 // the same, inputs × nv·H
  std::vector<Eigen::MatrixXd> segments_;  // of the last Bound(): κ U B_j
};

}  // namespace silc
