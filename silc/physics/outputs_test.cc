// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/outputs.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <Eigen/Core>
#include <Eigen/SVD>

#include "silc/physics/robot_buffer.h"
#include "silc/physics/team_plan.h"
#include "silc/physics/test_models.h"

/// The outputs' phases shared out among members as a GPU's kernel shares them out. Inside a phase
/// the members come one after the other, first to last or last to first: one that read what another
/// writes would not get the same bits both ways.
namespace silc {
namespace {

using physics_test::DataPtr;
using physics_test::ModelPtr;
using portable::RobotBuffer;
using portable::RobotData;
using Work = portable::OutputWorkspace<float>;

template <class Body>
void Phase(int members, bool backward, Body body) {
  for (int i = 0; i < members; ++i) body(backward ? members - 1 - i : i);
}

void ComputeByMembers(const StepModel<float>& model,
                      int members,
                      bool backward,
                      RobotBuffer<float>* buffer) {
  const RobotData<float>& robot = buffer->data();
  const auto column = [&](Field f) {
    return portable::FieldColumn(buffer->layout(), buffer->memory(), 1, f);
  };
  const auto work = std::make_unique<Work>();
  const TeamPlan plan = PlanTeam(model, 4);
  portable::PlaceLinks<float>(
      model, robot, [&](int i) { return plan.link[i]; }, plan.num_trunk, *work);
  Phase(plan.size, backward, [&](int chain) {
    const int first = plan.begin[chain] + (chain == 0 ? plan.num_trunk : 0);
    portable::PlaceLinks<float>(
        model,
        robot,
        [&](int i) { return plan.link[first + i]; },
        plan.begin[chain + 1] - first,
        *work);
  });
  Phase(members, backward, [&](int member) {
    portable::LinkMoments<float>(model, robot, {member, members}, *work);
    portable::FramePoses<float>(model,
                                robot,
                                column(Field::kPose),
                                column(Field::kVelocity),
                                {members - 1 - member, members},
                                *work);
  });
  const portable::Chains chains = portable::ChainsOf(model);
  const portable::JacobianColumns<float> out = {column(Field::kComJacobian),
                                                column(Field::kFrameJacobian),
                                                column(Field::kStanceJacobian),
                                                true};
  Phase(members, backward, [&](int member) {
    if (member == 0) {
      portable::CentreOfMass<float>(model, robot, column(Field::kCom), *work);
    } else {
      portable::Jacobians<float>(
          model, chains, 1, 1 + model.num_frames, out, {member - 1, members - 1}, *work);
    }
  });
  Phase(members, backward, [&](int member) {
    portable::Jacobians<float>(model, chains, 0, 1, out, {member, members}, *work);
  });
}

void ExpectSameBits(const std::string& name, const mjModel& m, const BatchModel& model) {
  const StepModel<float> step = ToFloat(model.step);
  const DataPtr d(mj_makeData(&m));
  for (int seed = 0; seed < 10; ++seed) {
    physics_test::RandomState(m, seed % physics_test::kStateKinds, seed, d.get());
    RobotBuffer<float> one(model), threads(model), backward(model);
    for (RobotBuffer<float>* r : {&one, &threads, &backward}) {
      for (int i = 0; i < m.nq; ++i) r->data().qpos[i] = static_cast<float>(d->qpos[i]);
      for (int i = 0; i < m.nv; ++i) r->data().qvel[i] = static_cast<float>(d->qvel[i]);
    }
    const auto work = std::make_unique<Work>();
    portable::ComputeOutputs<float>(
        step, one.layout(), one.memory(), 1, KinematicsLevel::kStance, *work);
    ComputeByMembers(step, 32, false, &threads);
    ComputeByMembers(step, 5, true, &backward);
    const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(one.layout().size);
    EXPECT_EQ(std::memcmp(one.memory(), threads.memory(), bytes), 0) << name << ' ' << seed;
    EXPECT_EQ(std::memcmp(one.memory(), backward.memory(), bytes), 0) << name << ' ' << seed;
  }
}

TEST(Outputs, MembersLeaveTheBitsOfOneThread) {
  for (const auto& [name, m] : physics_test::AllModels()) {
    RemoveSelfCollision(m.get());
    ExpectSameBits(name, *m, CompileBatchModel(*m));
  }
  const ModelPtr g1 = physics_test::G1();
  ExpectSameBits("g1 with feet and frames",
                 *g1,
                 CompileBatchModel(*g1,
                                   {.feet = {"left_ankle_roll_link", "right_ankle_roll_link"},
                                    .frames = {"left_palm", "right_palm"}}));
}

// On every motion of the whole robot that keeps foot f still, the Jacobian of a point with foot f
// at rest and MuJoCo's with the base free say the same velocity. Double precision throughout.
TEST(Outputs, AFootAtRestMovesAPointAsMuJoCoSays) {
  using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const std::string feet[] = {"left_ankle_roll_link", "right_ankle_roll_link"};
  const std::string palms[] = {"left_palm", "right_palm"};
  const ModelPtr m = physics_test::G1();
  const int nv = static_cast<int>(m->nv), points = 3;  // centre of mass, two palms
  const BatchModel model =
      CompileBatchModel(*m, {.feet = {feet[0], feet[1]}, .frames = {palms[0], palms[1]}});
  const DataPtr d(mj_makeData(m.get()));
  const auto work = std::make_unique<portable::OutputWorkspace<double>>();
  for (int seed = 0; seed < 50; ++seed) {
    physics_test::RandomState(*m, seed % 2 ? 1 : 3, seed, d.get());
    mj_kinematics(m.get(), d.get());
    mj_comPos(m.get(), d.get());
    RowMatrix point_J[3] = {RowMatrix(3, nv), RowMatrix(3, nv), RowMatrix(3, nv)};
    mj_jacSubtreeCom(m.get(), d.get(), point_J[0].data(), 1);
    for (int side = 0; side < 2; ++side) {
      const int site = mj_name2id(m.get(), mjOBJ_SITE, palms[side].c_str());
      mj_jacSite(m.get(), d.get(), point_J[1 + side].data(), nullptr, site);
    }
    RobotBuffer<double> robot(model);
    std::copy_n(d->qpos, m->nq, robot.data().qpos.data);
    portable::ComputeOutputs<double>(
        model.step, robot.layout(), robot.memory(), 1, KinematicsLevel::kStance, *work);
    for (int f = 0; f < 2; ++f) {
      RowMatrix foot_J(6, nv);
      const int body = mj_name2id(m.get(), mjOBJ_BODY, feet[f].c_str());
      mj_jacBody(m.get(), d.get(), foot_J.data(), foot_J.data() + 3 * nv, body);
      const Eigen::JacobiSVD<Eigen::MatrixXd> svd(foot_J, Eigen::ComputeFullV);
      const Eigen::MatrixXd still = svd.matrixV().rightCols(nv - 6);
      for (int i = 0; i < points; ++i) {
        const RowMatrix J = Eigen::Map<const RowMatrix>(
            robot.field(Field::kStanceJacobian) + 3 * nv * (points * f + i), 3, nv);
        EXPECT_EQ(J.leftCols(6).norm(), 0);
        // rounding alone: lengths of a metre, motions of length one
        EXPECT_LT(((J - point_J[i]) * still).cwiseAbs().maxCoeff(), 1e-12)
            << "foot " << f << ", point " << i << ", seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace silc
