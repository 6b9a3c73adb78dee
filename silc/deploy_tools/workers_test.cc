// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy_tools/workers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "silc/deploy_tools/test_g1.h"

namespace silc {
namespace {

using test::G1WithPolicy;

// States of a robot that stands and moves its joints a little.
PolicyRequest RequestAt(const G1WithPolicy& g1, int k, std::uint32_t session = 1) {
  PolicyRequest request;
  request.sequence = static_cast<std::uint64_t>(k) + 1;
  request.session = session;
  request.time_ns = 20'000'000LL * k;
  request.state.imu.quat_wxyz[0] = 1;
  for (int j = 0; j < kRobotMotors; ++j) {
    request.state.motor[j].q =
        static_cast<float>(g1.policy.default_pose()[j] + 0.05 * std::sin(0.3 * k + j));
    request.state.motor[j].dq = static_cast<float>(0.75 * std::cos(0.3 * k + j));
  }
  return request;
}

TEST(StiffnessWorker, FollowsForWantOfTimeAndThenSeesTheSame) {
  const G1WithPolicy g1;
  const UserBudget budget = ReadBudget("compliance");
  StiffnessWorker all(g1.robot, g1.policy, g1.servo, budget, 0.75),
      some(g1.robot, g1.policy, g1.servo, budget, 0.75);
  int compared = 0;
  for (int k = 0; k < 40; ++k) {
    const PolicyRequest request = RequestAt(g1, k);
    const DeployMoment whole = all.Observe(request);
    const DeployMoment& m = some.Observe(request, false, k % 4 != 0);
    EXPECT_EQ(m.observed, k % 4 == 0);
    EXPECT_EQ(m.mode, whole.mode);
    if (!m.observed) {
      EXPECT_TRUE(std::isnan(m.sigma) && std::isnan(m.rho) && std::isnan(m.K_s_diag[3]));
      EXPECT_FALSE(m.judged);
      continue;
    }
    // the action loop's radius depends on what the policy remembers, and there always is one
    EXPECT_EQ(m.rho, whole.rho);
    EXPECT_EQ(m.judged, whole.judged);
    if (m.judged) {
      EXPECT_EQ(m.sigma, whole.sigma);
    }
    compared += std::isfinite(m.rho) ? 1 : 0;
  }
  EXPECT_EQ(compared, 10);
}

// A twin that missed a step has another history than the policy: what it would say is not true.
TEST(StiffnessWorker, SaysNothingAfterAGapUntilThePolicyIsEnteredAnew) {
  const G1WithPolicy g1;
  StiffnessWorker worker(g1.robot, g1.policy, g1.servo, ReadBudget("compliance"), 0.75);
  EXPECT_TRUE(worker.Observe(RequestAt(g1, 0)).observed);
  EXPECT_FALSE(worker.Observe(RequestAt(g1, 2), true).observed);
  EXPECT_FALSE(worker.Observe(RequestAt(g1, 3)).observed);
  EXPECT_TRUE(worker.Observe(RequestAt(g1, 4, 2)).observed);
}

// An action loop whose radius could not be computed is not one that is stable.
TEST(StiffnessNote, ARadiusThatIsNoNumberIsNotHidden) {
  DeployMoment moment;
  moment.sequence = 7;
  moment.rho = std::nan("");
  EXPECT_EQ(NoteOf(moment).sequence, 7U);
  EXPECT_TRUE(std::isnan(NoteOf(moment).rho));
  moment.rho = 1.25;
  moment.sigma = 0.5;
  moment.judged = true;
  EXPECT_EQ(NoteOf(moment).rho, 1.25);
  EXPECT_EQ(NoteOf(moment).sigma, 0.5);
  EXPECT_TRUE(NoteOf(moment).judged);
}

}  // namespace
}  // namespace silc
