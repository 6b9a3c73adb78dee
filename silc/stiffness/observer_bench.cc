// SPDX-License-Identifier: Apache-2.0
#include "silc/stiffness/observer_bench.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "silc/base/rng.h"
#include "silc/stiffness/observer.h"

namespace silc {
namespace {

template <typename Matrix>
void FillNormal(double scale, Rng* rng, Matrix* m) {
  for (Eigen::Index i = 0; i < m->rows(); ++i) {
    for (Eigen::Index j = 0; j < m->cols(); ++j) (*m)(i, j) = scale * rng->Normal();
  }
}

// A body on a floating base: its base block is that of a rigid offset, its joint block is random.
template <typename Jacobian>
void FillBody(int nv, Rng* rng, Jacobian* J) {
  J->resize(J->rows(), nv + 6);
  FillNormal(0.3, rng, J);
  J->template leftCols<6>().setZero();
  J->template topLeftCorner<3, 3>().setIdentity();
  J->template block<3, 3>(0, 3) << 0, -0.7, 0.1, 0.7, 0, 0.05, -0.1, -0.05, 0;
  if (J->rows() == 6) J->template block<3, 3>(3, 3).setIdentity();
}

}  // namespace

ObserverTimes BenchObserver(ContactMode mode, int frames, double seconds) {
  constexpr int kJoints = 29;
  Rng rng(29);
  ObserverOptions options;
  options.servo.kp.setConstant(kJoints, 100);
  options.servo.kd.setConstant(kJoints, 2.5);
  options.servo.alpha.setConstant(kJoints, 0.25);
  options.budget = PaperModes()[1].spec;
  options.frames = std::max(1, frames);
  StiffnessObserver observer(options);

  // Gains of the order of a trained policy's: some 1/rad in all, spread over the frames, and an
  // action loop with slow modes that no cheap bound proves stable (released G1 policies have ρ of
  // 0.93 to 0.99).
  const Eigen::VectorXd slow = Eigen::VectorXd::LinSpaced(kJoints, 0.97, -0.6);
  PolicyJacobians policy;
  for (int i = 0; i < frames; ++i) {
    Eigen::MatrixXd J_q(kJoints, kJoints), J_a(kJoints, kJoints), J_g(kJoints, 3);
    FillNormal(0.1, &rng, &J_q);
    FillNormal(0.01, &rng, &J_a);
    if (i == 0) J_a.diagonal() += 0.95 * slow;
    FillNormal(0.1, &rng, &J_g);
    policy.J_q.push_back(J_q);
    policy.J_a.push_back(J_a);
    policy.J_g.push_back(J_g);
  }
  BodyJacobians body;
  FillBody(kJoints, &rng, &body.com);
  for (int side = 0; side < 2; ++side) {
    FillBody(kJoints, &rng, &body.foot[side]);
    FillBody(kJoints, &rng, &body.hand[side]);
    body.foot[side].rightCols(kJoints - 12).setZero();  // a foot hangs on its own leg
    body.foot[side].middleCols(side == 0 ? 12 : 6, 6).setZero();
  }

  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  times.reserve(1 << 16);
  const Clock::time_point begin = Clock::now();
  while (times.size() < times.capacity()) {
    const Clock::time_point start = Clock::now();
    observer.Observe(policy, body, mode);
    const Clock::time_point stop = Clock::now();
    times.push_back(std::chrono::duration<double, std::micro>(stop - start).count());
    if (std::chrono::duration<double>(stop - begin).count() > seconds) break;
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), static_cast<int>(times.size())};
}

}  // namespace silc
