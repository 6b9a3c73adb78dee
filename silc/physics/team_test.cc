// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "silc/physics/robot_buffer.h"
#include "silc/physics/test_models.h"

/// A team of CPU threads steps one robot, as a team of GPU warps steps 32: the same source with
/// another meeting place. What is tested here without a GPU is the sharing out.
namespace silc {
namespace {

using physics_test::DataPtr;
using physics_test::ModelPtr;
using portable::RobotBuffer;

struct Threads {
  static constexpr int kLanes = 1;
  static thread_local int member;
  static float* memory;
  static std::barrier<>* barrier;
  static std::atomic<int> votes[2];
  static thread_local int round;
  static int Member() { return member; }
  static int Lane() { return 0; }
  static float* Memory() { return memory; }
  static void Meet() { barrier->arrive_and_wait(); }
  static bool MeetAny(bool flag) {
    std::atomic<int>& count = votes[round ^= 1];
    votes[round ^ 1] = 0;
    if (flag) ++count;
    Meet();
    const bool any = count > 0;
    Meet();
    return any;
  }
};
thread_local int Threads::member = 0;
float* Threads::memory = nullptr;
std::barrier<>* Threads::barrier = nullptr;
std::atomic<int> Threads::votes[2];
thread_local int Threads::round = 0;

using SoloWork = portable::Workspace<float>;
using TeamWork = portable::Workspace<float, kMaxLinks, kMaxContacts, portable::Team<Threads>>;

TEST(PlanTeam, SharesOutTheG1) {
  const ModelPtr m = physics_test::G1();
  const StepModel<float> model = ToFloat(CompileBatchModel(*m).step);
  const TeamPlan plan = PlanTeam(model, 4);
  // pelvis and waist carry two legs of six links and two arms of seven
  EXPECT_EQ(plan.size, 4);
  EXPECT_EQ(plan.num_trunk, 4);
  EXPECT_EQ(plan.begin[1], 11);
  for (int i = 1; i < 4; ++i) EXPECT_LE(plan.begin[i + 1] - plan.begin[i], 7);
  EXPECT_EQ(plan.num_ports, 3);
  EXPECT_EQ(plan.num_hubs, 2);
  EXPECT_EQ(PlanTeam(model, 1).num_trunk, 0);
}

class TeamTest : public testing::TestWithParam<int> {};

// One step from each of 200 states of all kinds. The members' sums over rows are added in another
// order, which may change how far a line search goes and not where Newton's method ends: on x86-64
// all differences are zero. Bounds are those of single precision (accuracy_test), for compilers
// that fuse multiply-adds differently in the two instantiations.
TEST_P(TeamTest, StepsLikeOneThread) {
  for (const auto& [name, m] : physics_test::AllModels()) {
    RemoveSelfCollision(m.get());
    const BatchModel model = CompileBatchModel(*m);
    const StepModel<float> step = ToFloat(model.step);
    const TeamPlan plan = PlanTeam(step, GetParam());
    std::vector<float> memory(kTeamPlanFloats + plan.memory);
    *reinterpret_cast<TeamPlan*>(memory.data()) = plan;
    Threads::memory = memory.data();
    std::barrier<> barrier(plan.size);
    Threads::barrier = &barrier;

    const DataPtr d(mj_makeData(m.get()));
    const auto solo = std::make_unique<SoloWork>();
    std::vector<std::unique_ptr<TeamWork>> work;
    for (int i = 0; i < plan.size; ++i) work.push_back(std::make_unique<TeamWork>());
    const StepOptions options = {.max_iterations = 30, .line_search = 10, .tolerance = 1e-8};
    std::vector<double> errors;
    for (int seed = 0; seed < 200; ++seed) {
      physics_test::RandomState(*m, seed % physics_test::kStateKinds, seed, d.get());
      RobotBuffer<float> a(model), b(model);
      for (RobotBuffer<float>* r : {&a, &b}) {
        for (int i = 0; i < m->nq; ++i) r->data().qpos[i] = static_cast<float>(d->qpos[i]);
        for (int i = 0; i < m->nv; ++i) r->data().qvel[i] = static_cast<float>(d->qvel[i]);
      }
      portable::AdvanceRobot<float>(step, a.data(), options, 1, nullptr, *solo);
      Threads::votes[0] = Threads::votes[1] = 0;
      std::vector<std::thread> threads;
      for (int i = 0; i < plan.size; ++i) {
        threads.emplace_back([&, i] {
          Threads::member = i;
          portable::AdvanceRobot<float>(step, b.data(), options, 1, nullptr, *work[i]);
        });
      }
      for (std::thread& t : threads) t.join();
      EXPECT_EQ(a.data().fault[0], b.data().fault[0]);
      double worst = 0, largest = 1;
      for (int i = 0; i < m->nv; ++i) {
        worst = std::max<double>(worst, std::abs(a.data().qacc[i] - b.data().qacc[i]));
        largest = std::max<double>(largest, std::abs(a.data().qacc[i]));
        worst = std::max<double>(worst, std::abs(a.data().qvel[i] - b.data().qvel[i]));
        EXPECT_TRUE(std::isfinite(b.data().qvel[i]));
      }
      errors.push_back(worst / largest);
    }
    std::sort(errors.begin(), errors.end());
    EXPECT_LT(errors[100], 1e-5) << name;
    EXPECT_LT(errors[198], 2e-4) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, TeamTest, testing::Values(1, 2, 3, 4, 8));

}  // namespace
}  // namespace silc
