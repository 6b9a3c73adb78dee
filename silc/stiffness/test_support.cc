// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/test_support.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace silc::test {

using namespace eager;

MatrixXd RandomMatrix(int rows, int cols, Rng* rng, double scale) {
  MatrixXd m(rows, cols);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < cols; ++j) m(i, j) = scale * rng->Normal();
  }
  return m;
}

MatrixXd RandomSpd(int n, Rng* rng, double low, double high) {
  const MatrixXd Q = OrthonormalColumns(RandomMatrix(n, n, rng));
  VectorXd values(n);
  for (int i = 0; i < n; ++i) values[i] = low * std::pow(high / low, rng->Uniform());
  const MatrixXd S = Q * values.asDiagonal() * Q.transpose();
  return 0.5 * (S + S.transpose());
}

MatrixXd Sym(const MatrixXd& A) { return 0.5 * (A + A.transpose()); }

MatrixXd Skew(const MatrixXd& A) { return 0.5 * (A - A.transpose()); }

VectorXd SingularValues(const MatrixXd& A) {
  return Eigen::JacobiSVD<MatrixXd>(A).singularValues();
}

double SpectralNorm(const MatrixXd& A) { return SingularValues(A)[0]; }

VectorXd Eigenvalues(const MatrixXd& S) {
  return Eigen::SelfAdjointEigenSolver<MatrixXd>(S, Eigen::EigenvaluesOnly).eigenvalues();
}

VectorXd Eigenvalues(const Eigen::MatrixXcd& S) {
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXcd>(S, Eigen::EigenvaluesOnly).eigenvalues();
}

VectorXd Eigenvalues(const MatrixXd& S, const MatrixXd& M) {
  return Eigen::GeneralizedSelfAdjointEigenSolver<MatrixXd>(S, M, Eigen::EigenvaluesOnly)
      .eigenvalues();
}

double MaxEigenvalue(const MatrixXd& S) { return Eigenvalues(S)[S.rows() - 1]; }

double MinEigenvalue(const MatrixXd& S) { return Eigenvalues(S)[0]; }

bool LoewnerLessEqual(const MatrixXd& A, const MatrixXd& B, double tolerance) {
  return MinEigenvalue(Sym(B - A)) >= -tolerance * std::max(A.norm(), B.norm());
}

MatrixXd Inverse(const MatrixXd& A) { return A.inverse(); }

MatrixXd SolveSpd(const MatrixXd& M, const MatrixXd& B) { return M.ldlt().solve(B); }

MatrixXd Solve(const MatrixXd& A, const MatrixXd& B) { return A.fullPivLu().solve(B); }

MatrixXd PseudoInverse(const MatrixXd& A) {
  return A.completeOrthogonalDecomposition().pseudoInverse();
}

MatrixXd LowerCholesky(const MatrixXd& M) { return M.llt().matrixL(); }

MatrixXd SqrtSpd(const MatrixXd& M) {
  return Eigen::SelfAdjointEigenSolver<MatrixXd>(M).operatorSqrt();
}

MatrixXd OrthonormalColumns(const MatrixXd& A) {
  return Eigen::HouseholderQR<MatrixXd>(A).householderQ() * MatrixXd::Identity(A.rows(), A.cols());
}

MatrixXd Kernel(const MatrixXd& A) {
  const Eigen::JacobiSVD<MatrixXd> svd(A, Eigen::ComputeFullV);
  return svd.matrixV().rightCols(A.cols() - A.rows());
}

Servo RandomServo(int n, Rng* rng) {
  Servo servo;
  servo.kp.resize(n);
  servo.kd.resize(n);
  servo.alpha.resize(n);
  for (int i = 0; i < n; ++i) {
    servo.kp[i] = rng->Uniform(4, 300);
    servo.kd[i] = rng->Uniform(0.2, 5);
    servo.alpha[i] =
        rng->Uniform(0.1, 0.4);  // different on every joint: a scalar α would hide slips
  }
  return servo;
}

PolicyJacobians RandomPolicy(int n, int frames, Rng* rng, bool torque, bool base) {
  PolicyJacobians policy;
  const double root = std::sqrt(double(n));
  for (int i = 0; i < frames; ++i) {
    policy.J_q.push_back(RandomMatrix(n, n, rng, 0.8 / root));
    policy.J_v.push_back(RandomMatrix(n, n, rng, 0.03 / root));
    policy.J_a.push_back(RandomMatrix(n, n, rng, 0.3 / (root * frames)));
    if (torque) policy.J_tau.push_back(RandomMatrix(n, n, rng, 0.003 / (root * frames)));
    if (base) policy.J_g.push_back(RandomMatrix(n, 3, rng, 0.3));
    if (base) policy.J_w.push_back(RandomMatrix(n, 3, rng, 0.03));
  }
  return policy;
}

MatrixXd Difference(const std::function<double(const MatrixXd&)>& f, const MatrixXd& x, double h) {
  MatrixXd gradient(x.rows(), x.cols());
  for (Index i = 0; i < x.rows(); ++i) {
    for (Index j = 0; j < x.cols(); ++j) {
      MatrixXd up = x, down = x;
      up(i, j) += h;
      down(i, j) -= h;
      gradient(i, j) = (f(up) - f(down)) / (2 * h);
    }
  }
  return gradient;
}

StickHumanoid::Frames StickHumanoid::Forward(const Pose& pose) {
  using Eigen::Vector3d;
  const Vector3d X = Vector3d::UnitX(), Y = Vector3d::UnitY(), Z = Vector3d::UnitZ();
  Frames frames;
  Vector3d moment = 12 * (pose.T_WB * Vector3d(0.01, 0, 0.2));
  double mass = 12;
  int joint = 0;
  const auto turn = [&](Eigen::Isometry3d* T, const Vector3d& axis) {
    T->rotate(Eigen::AngleAxisd(pose.q[joint++], axis));
  };
  const auto weigh = [&](const Eigen::Isometry3d& T, const Vector3d& at, double m) {
    moment += m * (T * at);
    mass += m;
  };
  for (int side = 0; side < 2; ++side) {
    const double y = side == 0 ? 1 : -1;
    Eigen::Isometry3d T = pose.T_WB;
    T.translate(Vector3d(0, 0.09 * y, -0.1));
    turn(&T, Y), turn(&T, X), turn(&T, Z);
    weigh(T, Vector3d(0.02, 0.01 * y, -0.13), 3);
    T.translate(Vector3d(0, 0.01 * y, -0.3));
    turn(&T, Y);
    weigh(T, Vector3d(0.01, 0, -0.14), 2);
    T.translate(Vector3d(0, 0, -0.3));
    turn(&T, Y), turn(&T, X);
    weigh(T, Vector3d(0.03, 0, -0.03), 0.7);
    T.translate(Vector3d(0.03, 0, -0.05));
    frames.foot[side] = T;
  }
  for (int side = 0; side < 2; ++side) {
    const double y = side == 0 ? 1 : -1;
    Eigen::Isometry3d T = pose.T_WB;
    T.translate(Vector3d(0, 0.15 * y, 0.35));
    turn(&T, Y), turn(&T, X), turn(&T, Z);
    weigh(T, Vector3d(0, 0, -0.1), 1.5);
    T.translate(Vector3d(0, 0, -0.2));
    turn(&T, Y);
    weigh(T, Vector3d(0.1, 0, 0), 1);
    T.translate(Vector3d(0.25, 0, 0.02));
    frames.hand[side] = T;
  }
  frames.com = moment / mass;
  return frames;
}

StickHumanoid::Pose StickHumanoid::Stance(Rng* rng, double knee) {
  Pose pose;
  pose.T_WB.translate(Eigen::Vector3d(0.1, -0.2, 0.7));
  pose.T_WB.rotate(Eigen::AngleAxisd(0.2, Eigen::Vector3d(0.3, 0.5, 1).normalized()));
  for (int side = 0; side < 2; ++side) {
    VectorXd leg(6), arm(4);
    leg << -knee / 2, 0.05, 0.1, knee, -knee / 2, -0.05;
    arm << 0.2, 0.1, 0.05, -0.3;
    for (int k = 0; k < 6; ++k) leg[k] += 0.1 * rng->Uniform(-1, 1) * (knee != 0);
    for (int k = 0; k < 4; ++k) arm[k] += 0.1 * rng->Uniform(-1, 1);
    pose.q.segment(6 * side, 6) = leg;
    pose.q.segment(12 + 4 * side, 4) = arm;
  }
  return pose;
}

StickHumanoid::Pose StickHumanoid::Moved(const Pose& pose, const VectorXd& v) {
  Pose moved = pose;
  moved.T_WB.translation() += v.head<3>();
  const double angle = v.segment<3>(3).norm();
  if (angle > 0) {
    moved.T_WB.rotate(Eigen::AngleAxisd(angle, v.segment<3>(3) / angle));
  }
  moved.q += v.tail(kJoints);
  return moved;
}

Eigen::Vector3d StickHumanoid::RotationVector(const Eigen::Matrix3d& R) {
  const Eigen::AngleAxisd a(R);
  return a.angle() * a.axis();
}

BodyJacobians StickHumanoid::Jacobians(const Pose& pose) {
  constexpr double h = 1e-5;
  BodyJacobians body;
  body.com.resize(3, kJoints + 6);
  for (int side = 0; side < 2; ++side) {
    body.foot[side].resize(6, kJoints + 6);
    body.hand[side].resize(3, kJoints + 6);
  }
  for (int k = 0; k < kJoints + 6; ++k) {
    const VectorXd e = h * VectorXd::Unit(kJoints + 6, k);
    const Frames up = Forward(Moved(pose, e)), down = Forward(Moved(pose, -e));
    body.com.col(k) = (up.com - down.com) / (2 * h);
    for (int side = 0; side < 2; ++side) {
      const auto linear = [&](const Eigen::Isometry3d& a, const Eigen::Isometry3d& b) {
        return Eigen::Vector3d((a.translation() - b.translation()) / (2 * h));
      };
      body.hand[side].col(k) = linear(up.hand[side], down.hand[side]);
      body.foot[side].col(k).head<3>() = linear(up.foot[side], down.foot[side]);
      body.foot[side].col(k).tail<3>() =
          RotationVector(up.foot[side].linear() * down.foot[side].linear().transpose()) / (2 * h);
    }
  }
  body.g_B = pose.T_WB.linear().transpose() * -Eigen::Vector3d::UnitZ();
  return body;
}

const std::vector<NamedBudget>& PaperModes() {
  const auto mode = [](const char* name, double k_xy, double null, double hand = 0) {
    NamedBudget named{name, {}};
    named.spec.com = Eigen::Vector3d(k_xy, k_xy, 20000);
    named.spec.null_stiffness = null;
    if (hand > 0) named.spec.hand[0] = named.spec.hand[1] = Eigen::Vector3d::Constant(hand);
    return named;
  };
  static const std::vector<NamedBudget> modes = {mode("high-stiff", 1000, 100),
                                                 mode("compliance", 200, 50),
                                                 mode("hard-nullspace", 200, 500),
                                                 mode("soft-hand", 200, 50, 200),
                                                 mode("hard-hand", 200, 50, 1000)};
  return modes;
}

StiffnessStatus QuasiStaticStiffness(const Servo& servo,
                                     const PolicyJacobians& jacobians,
                                     const StaticChannels& channels,
                                     StaticStiffness* out,
                                     ActionLoopRadius* radius) {
  PolicySums sums;
  SumPolicy(jacobians, servo.nv(), &sums);
  const StiffnessStatus solved = SolveQuasiStatic(servo, sums, channels, out);
  ActionLoop loop(
      servo.nv(),
      static_cast<int>(std::max({jacobians.J_a.size(), jacobians.J_tau.size(), std::size_t{1}})));
  const ActionLoopRadius found = loop.Exact(servo, jacobians, channels.torque);
  if (radius != nullptr) *radius = found;
  return solved != StiffnessStatus::kOk ? solved : found.status;
}

}  // namespace silc::test
