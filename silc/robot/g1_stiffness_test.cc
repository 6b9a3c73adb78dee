// SPDX-License-Identifier: Apache-2.0
// What the mathematics of silc/stiffness says about the G1: the claims of docs/math/stiffness.md
// and docs/paper_errata.md that need the robot itself. Servo alone unless a test says otherwise,
// FALCON's gains, its standing pose. Figures of the robot are given as ranges: they are facts about
// this model, recorded so that a change of the model or of the code that moves them is noticed.
#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "silc/base/rng.h"
#include "silc/base/test_paths.h"
#include "silc/robot/geometric_stiffness.h"
#include "silc/robot/kinematics.h"
#include "silc/robot/pose.h"
#include "silc/robot/robot_model.h"
#include "silc/stiffness/budget.h"
#include "silc/stiffness/condition_reference.h"
#include "silc/stiffness/task_stiffness_reference.h"
#include "silc/stiffness/test_support.h"

namespace silc {
namespace {

using namespace test::eager;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;

constexpr ContactMode kSupports[] = {
    ContactMode::kDoubleSupport, ContactMode::kLeftSupport, ContactMode::kRightSupport};

class G1Stiffness : public ::testing::Test {
 protected:
  void SetUp() override {
    const GainSet& gains = robot_.spec().Gains("falcon");
    servo_.kp = gains.kp;
    servo_.kd = gains.kd;
    servo_.alpha = gains.action_scale;
    Kp_ = gains.kp.asDiagonal();
    // arms at zero: on this robot that is forearms forward, the L shape of the paper's hand
    // experiment
    StandInPose(robot_, robot_.spec().StandingPose("falcon"), data_.get());
    ComputeBodyJacobians(robot_, data_.get(), &body_);
  }

  ContactKinematics Contact(ContactMode mode) const {
    ContactKinematics contact;
    EXPECT_EQ(ComputeContactKinematics(body_, mode, nullptr, &contact), StiffnessStatus::kOk);
    return contact;
  }
  TaskStiffness Task(const Jacobian3& J,
                     const MatrixXd& K,
                     const ContactKinematics& contact) const {
    TaskStiffness task;
    const ConstMatrix N = contact.N;
    EXPECT_EQ(ComputeTaskStiffness(J, K, contact.closed ? &N : nullptr, nullptr, &task),
              StiffnessStatus::kOk);
    return task;
  }
  // The compliance a push on the floating robot meets, with the feet as constraints: no base map,
  // no null space.
  //     [ blockdiag(0, K)  J_footᵀ ] [v]   [J_xᵀ f]
  //     [ J_foot           0       ] [λ] = [  0   ]
  MatrixXd PushedCompliance(const FloatingJacobian3& J, const MatrixXd& K, ContactMode mode) const {
    const int nv = robot_.num_joints();
    MatrixXd feet(0, nv + 6);
    for (int s = 0; s < 2; ++s) {
      if (mode == ContactMode::kDoubleSupport ||
          (mode == ContactMode::kLeftSupport) == (s == kLeft)) {
        feet.conservativeResize(feet.rows() + 6, nv + 6);
        feet.bottomRows(6) = body_.foot[s];
      }
    }
    MatrixXd kkt = MatrixXd::Zero(nv + 6 + feet.rows(), nv + 6 + feet.rows());
    kkt.block(6, 6, nv, nv) = K;
    kkt.topRightCorner(nv + 6, feet.rows()) = feet.transpose();
    kkt.bottomLeftCorner(feet.rows(), nv + 6) = feet;
    MatrixXd rhs = MatrixXd::Zero(kkt.rows(), 3);
    rhs.topRows(nv + 6) = J.transpose();
    return J * test::Solve(kkt, rhs).topRows(nv + 6);
  }
  double ComAboveAnkle() const {  // [m]
    const int ankle = mj_name2id(robot_.model(), mjOBJ_BODY, "left_ankle_pitch_link");
    return ComPosition(robot_, *data_).z() - data_->xpos[3 * ankle + 2];
  }

  const RobotModel robot_ = RobotModel::Load(SourcePath("robots/g1"));
  const MjDataPtr data_ = robot_.MakeData();
  Servo servo_;
  MatrixXd Kp_;
  BodyJacobians body_;
};

// The three modes of the paper's Table I.
std::span<const test::NamedBudget> TableOne() {
  return std::span(test::PaperModes()).subspan(0, 3);
}

// (S5) on the robot: along B and N MuJoCo's own kinematics keeps the feet, and gravity turns as E
// says.
TEST_F(G1Stiffness, MuJoCoKeepsTheFeetAlongTheAllowedMotions) {
  const mjModel* m = robot_.model();
  const MjDataPtr probe = robot_.MakeData();
  constexpr double h = 1e-5;
  struct State {
    Vector3d foot[2], com, hand, gravity;
  };
  const auto moved = [&](const VectorXd& v) {  // positions after v [m, rad] from the stance
    mju_copy(probe->qpos, data_->qpos, m->nq);
    VectorXd qvel(m->nv);
    qvel.head<6>() = v.head<6>();
    for (int j = 0; j < robot_.num_joints(); ++j) qvel[robot_.dof_address()[j]] = v[6 + j];
    mj_integratePos(m, probe->qpos, qvel.data(), 1);
    mj_kinematics(m, probe.get());
    mj_comPos(m, probe.get());
    State state;
    for (int s = 0; s < 2; ++s) {
      state.foot[s] = Eigen::Map<Vector3d>(probe->site_xpos + 3 * robot_.foot_site()[s]);
    }
    state.com = ComPosition(robot_, *probe);
    state.hand = Eigen::Map<Vector3d>(probe->site_xpos + 3 * robot_.hand_site()[kLeft]);
    state.gravity = GravityInBase(robot_, *probe);
    return state;
  };
  for (ContactMode mode : kSupports) {
    const ContactKinematics contact = Contact(mode);
    const int nv = robot_.num_joints();
    const MatrixXd motions = contact.closed ? MatrixXd(contact.N) : MatrixXd::Identity(nv, nv);
    for (int k = 0; k < motions.cols(); ++k) {
      VectorXd v(nv + 6);
      v << contact.B * motions.col(k), motions.col(k);
      const State up = moved(h * v), down = moved(-h * v);
      const auto slope = [&](auto State::*member) {
        return Vector3d((up.*member - down.*member) / (2 * h));
      };
      // central differences over 1e-5: 1e-10 of curvature, 1e-11 of rounding
      EXPECT_LT((slope(&State::com) - contact.com * motions.col(k)).norm(), 1e-8);
      EXPECT_LT((slope(&State::hand) - contact.hand_in_world[kLeft] * motions.col(k)).norm(), 1e-8);
      EXPECT_LT((slope(&State::gravity) - contact.E * motions.col(k)).norm(), 1e-8);
      for (int s = 0; s < 2; ++s) {
        const bool stands = contact.closed || (mode == ContactMode::kLeftSupport) == (s == kLeft);
        if (stands) {
          EXPECT_LT((up.foot[s] - down.foot[s]).norm() / (2 * h), 1e-8);
        }
      }
    }
    // in single support the base turns with the stance leg alone
    if (!contact.closed) {
      const int other = mode == ContactMode::kLeftSupport ? 6 : 0;
      EXPECT_LT(contact.E.middleCols(other, 6).norm() + contact.E.rightCols(17).norm(), 1e-12);
    }
  }
}

// (S11) against statics on the floating robot.
TEST_F(G1Stiffness, APushOnTheFloatingRobotGivesTheSameCompliance) {
  for (ContactMode mode : kSupports) {
    const ContactKinematics contact = Contact(mode);
    const MatrixXd com = PushedCompliance(body_.com, Kp_, mode);
    const MatrixXd hand = PushedCompliance(body_.hand[kRight], Kp_, mode);
    EXPECT_LT((Task(contact.com, Kp_, contact).C_x - com).norm(), 1e-9 * com.norm()) << Name(mode);
    EXPECT_LT((Task(contact.hand_in_world[kRight], Kp_, contact).C_x - hand).norm(),
              1e-9 * hand.norm());
  }
}

// The servo's own springs, felt at the centre of mass and at the hand.
TEST_F(G1Stiffness, ServoAloneIsSoftAtTheCenterOfMass) {
  const ContactKinematics ds = Contact(ContactMode::kDoubleSupport);
  const ContactKinematics ss = Contact(ContactMode::kLeftSupport);
  const TaskStiffness com_ds = Task(ds.com, Kp_, ds), com_ss = Task(ss.com, Kp_, ss);
  // by hand: pushed forward, the robot turns about two ankles of 20 N·m/rad
  const double h = ComAboveAnkle();
  EXPECT_NEAR(com_ds.one_axis[0] / (2 * 20 / (h * h)), 1, 0.1);
  EXPECT_NEAR(com_ss.one_axis[0] / com_ds.one_axis[0], 0.5, 0.05);
  // pushed sideways, two legs make a frame
  EXPECT_GT(com_ds.one_axis[1], 10 * com_ss.one_axis[1]);
  // a push along one axis reads far less than the diagonal of K_x
  EXPECT_GT(com_ds.K_x(0, 0), 4 * com_ds.one_axis[0]);
  // the hand through the whole body, and with the pelvis held
  const TaskStiffness hand = Task(ds.hand_in_world[kLeft], Kp_, ds);
  const ContactKinematics flight = Contact(ContactMode::kFlight);
  const TaskStiffness held = Task(flight.hand_in_world[kLeft], Kp_, flight);
  for (int axis = 0; axis < 3; ++axis) EXPECT_LT(hand.one_axis[axis], held.one_axis[axis]);
  // the paper's hands, soft 400 and hard 1000 N/m along z, are both stiffer than these springs
  EXPECT_GT(hand.one_axis[2], 100);
  EXPECT_LT(hand.one_axis[2], 400);
  const auto expect = [](const char* what, const TaskVector& k, const Vector3d& figures) {
    std::printf("[ figures  ] %-28s %6.0f %6.0f %6.0f N/m\n", what, k[0], k[1], k[2]);
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(k[i] / figures[i], 1, 0.02) << what << " " << i;
  };
  const TaskStiffness hand_ss = Task(ss.hand_in_world[kLeft], Kp_, ss);
  expect("com, single support, 1/C_ii", com_ss.one_axis, {46, 45, 1031});
  expect("com, single support, K_ii", com_ss.K_x.diagonal(), {95, 340, 8850});
  expect("com, double support, 1/C_ii", com_ds.one_axis, {92, 836, 15083});
  expect("com, double support, K_ii", com_ds.K_x.diagonal(), {965, 836, 158519});
  expect("hand, single support, 1/C_ii", hand_ss.one_axis, {27, 23, 83});
  expect("hand, double support, 1/C_ii", hand.one_axis, {54, 118, 109});
  expect("hand, pelvis held, 1/C_ii", held.one_axis, {1856, 154, 159});
}

// C8: a joint stiffness that meets a single-support budget exactly leaks when the other foot comes
// down, most where the null space is stiff. The reduced budget finds it out and recovers the spec.
TEST_F(G1Stiffness, SingleSupportBudgetLeaksInDoubleSupport) {
  const ContactKinematics ss = Contact(ContactMode::kLeftSupport);
  const ContactKinematics ds = Contact(ContactMode::kDoubleSupport);
  double leak[3];
  const double figures[] = {7.7, 5.4, 44.7};  // this model's
  for (int k = 0; k < 3; ++k) {
    const BudgetSpec& spec = TableOne()[k].spec;
    ReducedBudget open, closed;
    ASSERT_EQ(ComputeReducedBudget(spec, servo_, ss, &open), StiffnessStatus::kOk);
    ASSERT_EQ(ComputeReducedBudget(spec, servo_, ds, &closed), StiffnessStatus::kOk);
    const MatrixXd K_x = spec.com->asDiagonal();
    double worst = 0;
    ASSERT_EQ(WorstTaskEigenvalue(Task(ss.com, open.M, ss).K_x, K_x, &worst), StiffnessStatus::kOk);
    EXPECT_NEAR(worst, 1, 1e-6) << TableOne()[k].name;
    ASSERT_EQ(WorstTaskEigenvalue(Task(ds.com, open.M, ds).K_x, K_x, &leak[k]),
              StiffnessStatus::kOk);
    EXPECT_NEAR(leak[k] / figures[k], 1, 0.02) << TableOne()[k].name;
    // the same from statics alone: what a push meets when the joints have that stiffness
    const MatrixXd pushed = PushedCompliance(body_.com, open.M, ContactMode::kDoubleSupport);
    const MatrixXd K_ds = test::Inverse(pushed);
    EXPECT_NEAR(leak[k] / test::Eigenvalues(test::Sym(K_ds), K_x).maxCoeff(), 1, 1e-6)
        << TableOne()[k].name;
    // the right budget: sees the leak, and its own task stiffness is the spec
    double against = 0;
    ASSERT_EQ(WorstEigenvalue(ds.N.transpose() * open.M * ds.N, closed.M, &against),
              StiffnessStatus::kOk);
    EXPECT_GE(against, leak[k] * (1 - 1e-9));
    const MatrixXd recovered =
        test::Inverse(closed.J * test::Inverse(closed.M) * closed.J.transpose());
    EXPECT_LT((recovered - K_x).norm(), 1e-6 * K_x.norm());
    std::printf(
        "[ figures  ] %-14s leaks %.1f times in double support\n", TableOne()[k].name, leak[k]);
  }
  EXPECT_GT(leak[2], 3 * leak[1]);
}

// C10: the paper's general solution with Y = (b Kp)⁻¹ is indefinite in every mode; with Y = I/k it
// is not.
TEST_F(G1Stiffness, ThePapersGeneralSolutionIsIndefinite) {
  const MatrixXd J = Contact(ContactMode::kLeftSupport).com;
  const MatrixXd J_plus = test::PseudoInverse(J), P = J_plus * J;
  const auto smallest = [&](const BudgetSpec& spec, const MatrixXd& Y) {
    const MatrixXd C_x = spec.com->cwiseInverse().asDiagonal();
    const MatrixXd C_q = J_plus * C_x * J_plus.transpose() + Y - P * Y * P.transpose();
    return test::MinEigenvalue(test::Sym(C_q));
  };
  const auto n = J.cols();
  double least = 0, most = -HUGE_VAL;
  for (const test::NamedBudget& mode : TableOne()) {
    for (double b : {0.25, 0.5, 1.0}) {
      const double lambda = smallest(mode.spec, test::Inverse(Kp_) / b);
      least = std::min(least, lambda);
      most = std::max(most, lambda);
    }
    EXPECT_GT(smallest(mode.spec, MatrixXd::Identity(n, n) / mode.spec.null_stiffness), 0);
  }
  std::printf("[ figures  ] smallest eigenvalue of C_q: %.4f to %.4f rad/(N·m)\n", least, most);
  EXPECT_NEAR(least / -0.049, 1, 0.05);
  EXPECT_NEAR(most / -0.008, 1, 0.1);
}

// How much softer than its servo the robot must become: many times more for the printed form (S7a)
// than for the two-sided one, since it caps the null space at the square root of the budget.
TEST_F(G1Stiffness, ThePrintedFormIsFarStricterThanItSays) {
  const ContactKinematics ss = Contact(ContactMode::kLeftSupport);
  const double figures[][2] = {{30.0, 3.0}, {42.8, 6.1}, {20.7, 2.8}};  // this model's
  const auto slack = [](const MatrixXd& S) { return test::MinEigenvalue(test::Sym(S)); };
  for (int k = 0; k < 3; ++k) {
    const test::NamedBudget& mode = TableOne()[k];
    ReducedBudget budget;
    ASSERT_EQ(ComputeReducedBudget(mode.spec, servo_, ss, &budget), StiffnessStatus::kOk);
    double one = 0, two = 0;
    ASSERT_EQ(LargestSigma(Condition::kOneSided, Kp_, budget.M, &one), StiffnessStatus::kOk);
    ASSERT_EQ(LargestSigma(Condition::kTwoSided, Kp_, budget.M, &two), StiffnessStatus::kOk);
    std::printf(
        "[ figures  ] %-14s needs the servo softened %.1f times (printed), %.1f (two-sided)\n",
        mode.name,
        one,
        two);
    EXPECT_NEAR(one / figures[k][0], 1, 0.02) << mode.name;
    EXPECT_NEAR(two / figures[k][1], 1, 0.03) << mode.name;
    // so softened the servo is just inside, by the orders themselves: K Kᵀ ≤ M, and K ≤ M
    const MatrixXd M = budget.M;
    for (const double more : {1 - 1e-6, 1 + 1e-6}) {
      const MatrixXd K_one = Kp_ / (one * more), K_two = Kp_ / (two * more);
      EXPECT_EQ(slack(M - K_one * K_one.transpose()) > 0, more > 1) << mode.name;
      EXPECT_EQ(slack(M - K_two) > 0, more > 1) << mode.name;
    }
  }
}

// eta, the factor by which the gains would have to go
// down (or might go up) for a task bound. Two ways to the same number: eta is the smallest over all
// force directions of the servo's compliance against the bound's, which a search finds too.
TEST_F(G1Stiffness, DoubleSupportAllowsLessOfTheServo) {
  struct Case {
    const char* name;
    bool hand;
    Vector3d K_x;          // [N/m]
    double single, twice;  // eta of this model, three digits
  };
  const Case cases[] = {
      {"com 200, 200, 20000", false, {200, 200, 20000}, 0.426, 0.080},
      {"com 1000, 1000, 20000", false, {1000, 1000, 20000}, 1.239, 0.114},
      {"hand 200", true, {200, 200, 200}, 1.244, 1.183},
      {"hand 1000", true, {1000, 1000, 1000}, 6.220, 5.917},
  };
  Rng rng(3);
  for (const Case& c : cases) {
    double eta[2];
    for (int k = 0; k < 2; ++k) {
      const ContactKinematics contact =
          Contact(k == 0 ? ContactMode::kLeftSupport : ContactMode::kDoubleSupport);
      const Jacobian3& J_q = c.hand ? contact.hand_in_world[kLeft] : contact.com;
      const MatrixXd J = contact.closed ? MatrixXd(J_q * contact.N) : MatrixXd(J_q);
      const MatrixXd B_0 = contact.closed ? MatrixXd(contact.N.transpose() * Kp_ * contact.N) : Kp_;
      const MatrixXd root = c.K_x.cwiseSqrt().asDiagonal();
      const MatrixXd servo_over_bound = root * J * test::Inverse(B_0) * J.transpose() * root;
      eta[k] = test::MinEigenvalue(servo_over_bound);

      // no force finds the servo stiffer against the bound than 1/eta, and one comes near
      const MatrixXd C = Task(J_q, Kp_, contact).C_x;
      double found = HUGE_VAL;
      for (int trial = 0; trial < 20000; ++trial) {
        const Vector3d y = Vector3d(rng.Normal(), rng.Normal(), rng.Normal()).normalized();
        const Vector3d f = c.K_x.cwiseSqrt().cwiseProduct(y);
        found = std::min(found, f.dot(C * f));
      }
      EXPECT_GE(found, eta[k] * (1 - 1e-9)) << c.name;
      EXPECT_LE(found, eta[k] * 1.05 + 1e-3) << c.name;
    }
    std::printf(
        "[ figures  ] eta for %-22s %.3f single, %.3f double support\n", c.name, eta[0], eta[1]);
    EXPECT_NEAR(eta[0] / c.single, 1, 0.01) << c.name;
    EXPECT_NEAR(eta[1] / c.twice, 1, 0.01) << c.name;
  }
}

// C9 on the robot: in flight a force on the centre of mass has a part on the base that no joint can
// balance.
TEST_F(G1Stiffness, InFlightNothingHoldsTheCenterOfMass) {
  const int nv = robot_.num_joints();
  MatrixXd K = MatrixXd::Zero(nv + 6, nv + 6);
  K.bottomRightCorner(nv, nv) = Kp_;
  const VectorXd force = MatrixXd(body_.com).transpose() * Vector3d(10, 0, 0);
  const VectorXd dq = test::PseudoInverse(K) * force;
  EXPECT_NEAR((force - K * dq).norm() / force.head<6>().norm(), 1, 1e-9);
}

// Gravity: the servo alone does not hold the robot up in single support; m g h at the ankle is ten
// times its gain. A horizontal budget below m g/h cannot be met by a total stiffness that stands.
TEST_F(G1Stiffness, GravityIsStifferThanTheAnkle) {
  const double h = ComAboveAnkle(), weight = robot_.mass() * 9.81;
  const ContactKinematics ss = Contact(ContactMode::kLeftSupport);
  JointMatrix H;
  const VectorXd tau = VectorXd::Zero(robot_.num_joints());  // no part of an open chain's Hessian
  ASSERT_EQ(ComputeGeometricStiffness(robot_, *data_, tau, ss, &H), StiffnessStatus::kOk);
  const int ankle = robot_.spec().Joint("left_ankle_pitch_joint");
  std::printf("[ figures  ] m g h = %.0f N·m/rad, m g/h = %.0f N/m, H at the ankle %.0f N·m/rad\n",
              weight * h,
              weight / h,
              H(ankle, ankle));
  EXPECT_NEAR(-H(ankle, ankle) / (weight * h), 1, 0.15);
  EXPECT_GT(-H(ankle, ankle), 5 * servo_.kp[ankle]);
  const MatrixXd total = Kp_ + MatrixXd(0.5 * (H + H.transpose()));
  const VectorXd eigenvalues = test::Eigenvalues(total);
  EXPECT_LT(eigenvalues[1], 0);  // it falls forward and sideways
  EXPECT_GT(eigenvalues[2], 0);
  EXPECT_GT(weight / h, test::PaperModes()[1].spec.com->x());
  // what the compliance mode allows the ankle is less than gravity takes from it
  ReducedBudget budget;
  ASSERT_EQ(ComputeReducedBudget(test::PaperModes()[1].spec, servo_, ss, &budget),
            StiffnessStatus::kOk);
  std::printf("[ figures  ] compliance allows the ankle %.0f N·m/rad; Kp + H has %.0f and %.0f\n",
              budget.M(ankle, ankle),
              eigenvalues[0],
              eigenvalues[1]);
  EXPECT_LT(budget.M(ankle, ankle), -H(ankle, ankle));
  EXPECT_NEAR(budget.M(ankle, ankle) / 147, 1, 0.02);
}

// Why a hand's budget is held against the base. Stacked with hands in the world, the nine rows of
// centre of mass and hands are nearly dependent with both feet down: arms, hips and waist have a
// motion that hardly moves any of the three, and (S6) holds it to a fraction of the null space's
// stiffness. On the base the hands' rows know nothing of the legs.
TEST_F(G1Stiffness, HandsAreBoundedOnTheBase) {
  for (int mode : {3, 4}) {
    const test::NamedBudget& named = test::PaperModes()[mode];
    for (ContactMode support : kSupports) {
      SCOPED_TRACE(testing::Message() << named.name << " " << Name(support));
      const ContactKinematics contact = Contact(support);
      ContactKinematics in_world = contact;
      for (int side = 0; side < 2; ++side)
        in_world.hand_on_base[side] = contact.hand_in_world[side];
      ReducedBudget budget, stacked;
      ASSERT_EQ(ComputeReducedBudget(named.spec, servo_, contact, &budget), StiffnessStatus::kOk);
      ASSERT_EQ(ComputeReducedBudget(named.spec, servo_, in_world, &stacked), StiffnessStatus::kOk);
      const auto smallest = [](const MatrixXd& M) { return test::MinEigenvalue(M); };
      const auto weakest = [](const MatrixXd& J) { return test::SingularValues(J)[8]; };
      const MatrixXd K_z = contact.closed ? MatrixXd(contact.N.transpose() * Kp_ * contact.N) : Kp_;
      double servo_stacked = 0, servo = 0;
      ASSERT_EQ(WorstEigenvalue(K_z, stacked.M, &servo_stacked), StiffnessStatus::kOk);
      ASSERT_EQ(WorstEigenvalue(K_z, budget.M, &servo), StiffnessStatus::kOk);
      // what the budget allows centre of mass and hands in the world
      const MatrixXd C = stacked.J * test::Inverse(budget.M) * stacked.J.transpose();
      std::printf(
          "[ figures  ] %s, %s: weakest of nine rows %.3f m/rad in the world, %.3f on the base; "
          "smallest of M %.2f, %.2f N·m/rad; servo over budget %.0f, %.1f\n",
          named.name,
          Name(support),
          weakest(stacked.J),
          weakest(budget.J),
          smallest(stacked.M),
          smallest(budget.M),
          servo_stacked,
          servo);
      std::printf("[ figures  ]   allowed in the world, 1/C_ii");
      for (int i = 0; i < 9; ++i) std::printf(" %.0f", 1 / C(i, i));
      double worst = 0;
      for (int i = 0; i < 9; i += 3) {
        const MatrixXd root = budget.K_x.segment<3>(i).cwiseSqrt().asDiagonal();
        worst = std::max(worst, 1 / smallest(root * C.block<3, 3>(i, i) * root));
      }
      std::printf(" N/m, at most %.3f of what is asked in any direction\n", worst);
      // a hand in the world is arm and legs in series: no stiffer than asked, but for what the arm
      // moves the centre of mass
      EXPECT_LT(worst, 1.02);
      if (support == ContactMode::kDoubleSupport) {
        EXPECT_LT(smallest(stacked.M), 0.15 * smallest(budget.M));
        EXPECT_LT(servo, 0.2 * servo_stacked);
      }
    }
  }
}

}  // namespace
}  // namespace silc
