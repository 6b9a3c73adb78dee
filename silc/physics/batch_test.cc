// SPDX-License-Identifier: Apache-2.0
// Batches: three implementations of one interface, and robots that do not notice each other.
#include "silc/physics/batch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "silc/physics/group_kernel.h"
#include "silc/physics/test_crowd.h"
#include "silc/physics/test_models.h"

namespace silc {
namespace {

using physics_test::All;
using physics_test::DataPtr;
using physics_test::Equip;
using physics_test::G1;
using physics_test::ModelPtr;
using physics_test::Range;

BatchModelOptions G1Options() { return physics_test::G1Outputs({"pelvis", "left_wrist_yaw_link"}); }

class BatchTest : public testing::Test {
 protected:
  BatchTest() : mujoco_(G1()), data_(mj_makeData(mujoco_.get())) {
    model_ = CompileBatchModel(*mujoco_, G1Options());
  }
  std::unique_ptr<CpuBatch> Cpu(int n, const CpuBatchOptions& options = {}) {
    return std::make_unique<CpuBatch>(model_, n, options);
  }
  ModelPtr mujoco_;
  DataPtr data_;
  BatchModel model_;
};

constexpr Field kEverything[] = {Field::kQpos,
                                 Field::kQvel,
                                 Field::kQacc,
                                 Field::kFault,
                                 Field::kTorque,
                                 Field::kFootForce,
                                 Field::kImu};

/// Robots `identities`, advanced together; then the rows of one of them.
std::vector<std::vector<float>> RowsOf(
    CpuBatch* batch, const std::vector<int>& identities, int wanted, const mjModel& m, mjData* d) {
  for (int env = 0; env < batch->num_envs(); ++env) Equip(batch, env, identities[env], m, d);
  for (int k = 0; k < 6; ++k) batch->Advance(4);
  std::vector<std::vector<float>> rows;
  for (const Field field : kEverything) {
    const std::vector<float> values = All(batch, field);
    const int w = batch->width(field);
    const auto begin = values.begin() + static_cast<long>(wanted) * w;
    rows.emplace_back(begin, begin + w);
  }
  return rows;
}

// bitwise, on every instruction set: alone, in a crowd, in another crowd, in another lane, on two
// threads
TEST_F(BatchTest, ARobotDoesNotNoticeItsNeighbours) {
  for (const GroupKernel& kernel : AvailableGroupKernels()) {
    const CpuBatchOptions options{.threads = 1, .kernel = kernel.name};
    for (const int identity : {5, 12, 30, 31}) {
      const auto alone = RowsOf(Cpu(1, options).get(), {identity}, 0, *mujoco_, data_.get());
      for (const int place : {0, 3, 17, 32}) {
        std::vector<int> crowd = Range(37);
        for (int& other : crowd) other += 50 * place;
        crowd[place] = identity;
        CpuBatchOptions threaded = options;
        threaded.threads = place % 2 + 1;
        const auto together = RowsOf(Cpu(37, threaded).get(), crowd, place, *mujoco_, data_.get());
        EXPECT_EQ(together, alone) << kernel.name << " robot " << identity << " place " << place;
      }
    }
  }
}

// a robot that goes mad is frozen with a code; those beside it end in the same bits as without it
TEST_F(BatchTest, PoisonStaysInItsLane) {
  for (const GroupKernel& kernel : AvailableGroupKernels()) {
    const int n = 2 * kernel.lanes;
    const CpuBatchOptions options{.threads = 1, .kernel = kernel.name};
    auto clean = Cpu(n, options), poisoned = Cpu(n, options);
    for (int env = 0; env < n; ++env) {
      Equip(clean.get(), env, env, *mujoco_, data_.get());
      Equip(poisoned.get(), env, env, *mujoco_, data_.get());
    }
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float inf = std::numeric_limits<float>::infinity();
    poisoned->view(Field::kQpos)(1, 9) = nan;
    poisoned->view(Field::kQvel)(2, 4) = inf;
    poisoned->view(Field::kQvel)(kernel.lanes, 20) = 1e7f;
    poisoned->view(Field::kTarget)(kernel.lanes + 1, 3) = nan;
    for (int k = 0; k < 5; ++k) {
      clean->Advance(4);
      poisoned->Advance(4);
    }
    const FieldView fault = poisoned->view(Field::kFault);
    EXPECT_EQ(fault(1, 0), kFaultNotFinite);
    EXPECT_EQ(fault(2, 0), kFaultNotFinite);
    EXPECT_NE(fault(kernel.lanes, 0), kFaultNone);
    EXPECT_EQ(fault(kernel.lanes + 1, 0), kFaultNotFinite);
    EXPECT_EQ(poisoned->view(Field::kQvel)(kernel.lanes, 20), 1e7f) << "frozen, not changed";
    for (int env = 0; env < n; ++env) {
      if (fault(env, 0) != 0) continue;
      for (const Field field : kEverything) {
        for (int i = 0; i < clean->width(field); ++i) {
          ASSERT_EQ(poisoned->view(field)(env, i), clean->view(field)(env, i))
              << kernel.name << " robot " << env;
        }
      }
    }
    // reset brings them back
    for (const int env : {1, 2}) Equip(poisoned.get(), env, env, *mujoco_, data_.get());
    poisoned->Advance(4);
    EXPECT_EQ(poisoned->view(Field::kFault)(1, 0), kFaultNone);
    EXPECT_EQ(poisoned->view(Field::kFault)(2, 0), kFaultNone);
  }
}

// resetting some robots leaves the others' bits alone
TEST_F(BatchTest, PartialResetTouchesOnlyThoseRobots) {
  auto a = Cpu(20), b = Cpu(20);
  for (int env = 0; env < 20; ++env) {
    Equip(a.get(), env, env, *mujoco_, data_.get());
    Equip(b.get(), env, env, *mujoco_, data_.get());
  }
  a->Advance(4);
  b->Advance(4);
  Equip(b.get(), 7, 99, *mujoco_, data_.get());
  a->Advance(4);
  b->Advance(4);
  const FieldView qa = a->view(Field::kQpos), qb = b->view(Field::kQpos);
  for (int env = 0; env < 20; ++env) {
    bool same = true;
    for (int i = 0; i < qa.width; ++i) same &= qa(env, i) == qb(env, i);
    EXPECT_EQ(same, env != 7) << env;
  }
}

// some robots after others, in any order and by several threads: the bits of all at once
TEST_F(BatchTest, RangesMakeTheStepOfAll) {
  const int n = 40;
  const auto hold = [&](HostBatch* whole, HostBatch* parts, ThreadPool* pool, int grain) {
    ASSERT_EQ(grain % parts->lanes(), 0);
    for (int env = 0; env < n; ++env) {
      Equip(whole, env, env, *mujoco_, data_.get());
      Equip(parts, env, env, *mujoco_, data_.get());
    }
    for (int k = 0; k < 3; ++k) {
      whole->Advance(4);
      whole->UpdateKinematics(KinematicsLevel::kStance);
      pool->ParallelForRanges(n, grain, [&](int worker, int begin, int end) {
        parts->AdvanceRange(worker, begin, end, 4, KinematicsLevel::kStance);
      });
    }
    for (int field = 0; field < kNumFields; ++field) {
      EXPECT_EQ(All(whole, Field(field)), All(parts, Field(field))) << field;
    }
  };
  const auto pool = std::make_shared<ThreadPool>(2);
  for (const GroupKernel& kernel : AvailableGroupKernels()) {
    const auto parts = Cpu(n, {.pool = pool, .kernel = kernel.name});
    hold(Cpu(n, {.kernel = kernel.name}).get(), parts.get(), pool.get(), 16);
  }
  MujocoBatch whole(*mujoco_, model_, n), parts(*mujoco_, model_, n, pool);
  hold(&whole, &parts, pool.get(), 7);
}

// every input and every result of the two implementations, over one control step of four substeps
TEST_F(BatchTest, CpuAndMujocoAgree) {
  const int n = 64;
  auto cpu = Cpu(n);
  MujocoBatch reference(*mujoco_, model_, n);
  for (int env = 0; env < n; ++env) {
    // standing and falling robots; other kinds are so violent that 20 ms amplify rounding beyond
    // use
    Equip(cpu.get(), env, 4 * env, *mujoco_, data_.get());
    Equip(&reference, env, 4 * env, *mujoco_, data_.get());
  }
  cpu->Advance(4);
  reference.Advance(4);
  cpu->UpdateKinematics();
  reference.UpdateKinematics();
  const struct {
    Field field;
    double floor, tolerance;
  } checks[] = {// relative to the robot's largest value in the field, at least `floor`.
                // Accelerations are right to
                // 1e-5 in float; four steps and the stiff contact make 1e-4 to 1e-3 of it
                {Field::kQpos, 1, 2e-5},
                {Field::kQvel, 10, 5e-4},
                {Field::kTorque, 50, 5e-4},
                {Field::kFootForce, 500, 2e-3},
                {Field::kImu, 100, 2e-3},
                {Field::kCom, 1, 1e-4},
                {Field::kPose, 1, 2e-5},
                {Field::kVelocity, 10, 5e-4},
                {Field::kComJacobian, 1, 2e-5},
                {Field::kFrameJacobian, 1, 2e-5},
                {Field::kStanceJacobian, 1, 2e-5},
                {Field::kWrenchSteps, 1, 1e-9},
                {Field::kPreviousTarget, 1, 1e-9},
                {Field::kFault, 1, 1e-9}};
  for (const auto& check : checks) {
    const FieldView a = cpu->view(check.field), b = reference.view(check.field);
    ASSERT_GT(a.width, 0);
    std::vector<double> errors;
    for (int env = 0; env < n; ++env) {
      double worst = 0, largest = check.floor;
      for (int i = 0; i < a.width; ++i) {
        worst = std::max<double>(worst, std::abs(a(env, i) - b(env, i)));
        largest = std::max<double>(largest, std::abs(b(env, i)));
      }
      errors.push_back(worst / largest);
    }
    // the 90th percentile: a contact at zero distance may exist for one and not for the other
    std::sort(errors.begin(), errors.end());
    EXPECT_LT(errors[n * 9 / 10], check.tolerance)
        << "field " << static_cast<int>(check.field) << ", median " << errors[n / 2] << ", worst "
        << errors.back();
  }
}

// a target given now acts after `delay` substeps, the one before until then
TEST_F(BatchTest, DelayHoldsThePreviousTarget) {
  auto late = Cpu(1), prompt = Cpu(1);
  const std::vector<int> one = {0};
  for (CpuBatch* batch : {late.get(), prompt.get()}) {
    Equip(batch, 0, 4, *mujoco_, data_.get());
    batch->Write(Field::kDelay, one, std::vector<float>{0});
    batch->Write(Field::kWrenchSteps, one, std::vector<float>{0, 0});
  }
  const int nu = late->width(Field::kTarget);
  const std::vector<float> before(nu, 0.1f), after(nu, -0.2f);
  late->Write(Field::kTarget, one, before);
  prompt->Write(Field::kTarget, one, before);
  late->Advance(4);
  prompt->Advance(4);
  // three substeps late is: three of the old target, one of the new
  late->Write(Field::kDelay, one, std::vector<float>{3});
  late->Write(Field::kTarget, one, after);
  late->Advance(4);
  prompt->Advance(3);
  prompt->Write(Field::kTarget, one, after);
  prompt->Advance(1);
  EXPECT_EQ(All(late.get(), Field::kQpos), All(prompt.get(), Field::kQpos));
  EXPECT_EQ(All(late.get(), Field::kTorque), All(prompt.get(), Field::kTorque));
}

}  // namespace
}  // namespace silc
