// SPDX-License-Identifier: Apache-2.0
// robots/g1 against numbers worked out elsewhere, always, and against a published model of the same
// robot where the reference data is at hand.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/robot/kinematics.h"
#include "silc/robot/pose.h"
#include "silc/robot/robot_model.h"

namespace silc {
namespace {

const std::string kG1 = SourcePath("robots/g1");
const std::string kReference = ReferencePath("g1/g1.xml");

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Vector3d V3(const mjtNum* p) { return Eigen::Map<const Eigen::Vector3d>(p); }
Eigen::Matrix3d M3(const mjtNum* p) {
  return Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(p);
}

class G1 : public ::testing::Test {
 protected:
  void SetUp() override {
    // joints zero, pelvis at the origin
    for (int i = 0; i < m_->nq; ++i) data_->qpos[i] = 0;
    data_->qpos[3] = 1;
    mj_forward(m_, data_.get());
  }
  Eigen::Vector3d BodyOrigin(const char* name) const {
    return V3(data_->xpos + 3 * mj_name2id(m_, mjOBJ_BODY, name));
  }

  const RobotModel robot_ = RobotModel::Load(kG1);
  const mjModel* m_ = robot_.model();
  const MjDataPtr data_ = robot_.MakeData();
};

TEST_F(G1, WeighsWhatItsLinksWeigh) {
  EXPECT_EQ(m_->nbody, 31);
  EXPECT_EQ(m_->nv, 35);
  EXPECT_NEAR(robot_.mass(), 33.341142, 1e-9);
  const auto subtree = [&](const char* body) {
    return m_->body_subtreemass[mj_name2id(m_, mjOBJ_BODY, body)];
  };
  EXPECT_NEAR(subtree("left_hip_pitch_link"), 7.186, 1e-9);
  EXPECT_NEAR(subtree("right_hip_pitch_link"), 7.186, 1e-9);
  EXPECT_NEAR(subtree("left_shoulder_pitch_link"), 3.519071, 1e-9);
  EXPECT_NEAR(subtree("right_shoulder_pitch_link"), 3.519071, 1e-9);
  EXPECT_NEAR(subtree("torso_link"), 14.856142, 1e-9);
}

// Tolerances below are half a unit of the last recorded digit, rounded up.
TEST_F(G1, CentreOfMassAndCompositeInertiaAtZeroPose) {
  const Eigen::Vector3d com = ComPosition(robot_, *data_);
  EXPECT_LT((com - Eigen::Vector3d(0.020332, 0.000082, -0.088666)).lpNorm<Eigen::Infinity>(), 6e-7);

  Eigen::Matrix3d inertia = Eigen::Matrix3d::Zero();  // about com, pelvis axes
  for (int b = 1; b < m_->nbody; ++b) {
    const Eigen::Matrix3d R = M3(data_->ximat + 9 * b);
    const Eigen::Vector3d r = V3(data_->xipos + 3 * b) - com;
    inertia += R * V3(m_->body_inertia + 3 * b).asDiagonal() * R.transpose();
    inertia +=
        m_->body_mass[b] * (r.squaredNorm() * Eigen::Matrix3d::Identity() - r * r.transpose());
  }
  EXPECT_NEAR(inertia(0, 0), 3.694815, 6e-7);
  EXPECT_NEAR(inertia(1, 1), 3.421389, 6e-7);
  EXPECT_NEAR(inertia(2, 2), 0.469595, 6e-7);
  EXPECT_NEAR(inertia(0, 1), 9.22e-5, 6e-8);
  EXPECT_NEAR(inertia(0, 2), -0.018778, 6e-7);
  EXPECT_NEAR(inertia(1, 2), -8.73e-4, 6e-7);
}

TEST_F(G1, FrameOriginsAtZeroPose) {
  const struct {
    const char* body;
    double x, y, z;
  } rows[] = {{"left_hip_roll_link", 0, 0.11645, -0.13317},
              {"left_hip_yaw_link", 0.04622, 0.11645, -0.25104},
              {"left_knee_link", 0, 0.11860, -0.43930},
              {"left_ankle_pitch_link", 0, 0.11851, -0.73931},
              {"left_ankle_roll_link", 0, 0.11851, -0.75686},
              {"torso_link", -0.0039635, 0, 0.044},
              {"left_shoulder_pitch_link", -0.00001, 0.10022, 0.29178},
              {"left_shoulder_yaw_link", 0, 0.14681, 0.18576},
              {"left_elbow_link", 0.01577, 0.14681, 0.10524},
              {"left_wrist_yaw_link", 0.19977, 0.14866, 0.09523}};
  for (const auto& row : rows) {
    const Eigen::Vector3d expected(row.x, row.y, row.z);
    EXPECT_LT((BodyOrigin(row.body) - expected).lpNorm<Eigen::Infinity>(), 6e-6) << row.body;
  }
  const Eigen::Vector3d palm = V3(data_->site_xpos + 3 * robot_.hand_site()[kLeft]);
  EXPECT_LT((palm - Eigen::Vector3d(0.27977, 0.14865, 0.09523)).lpNorm<Eigen::Infinity>(), 6e-6);
  // the sole's centre lies on the plane the spheres stand on
  const Eigen::Vector3d sole = V3(data_->site_xpos + 3 * robot_.foot_site()[kLeft]);
  EXPECT_NEAR(sole.z() - BodyOrigin("left_ankle_roll_link").z(), -0.035, 1e-12);
}

TEST_F(G1, ComAndPalmAtHome) {
  StandInPose(robot_, robot_.spec().StandingPose("home"), data_.get());
  const Eigen::Vector3d pelvis = BodyOrigin("pelvis");
  const Eigen::Vector3d com = ComPosition(robot_, *data_) - pelvis;
  EXPECT_LT((com - Eigen::Vector3d(0.00765, 0.00008, -0.09668)).lpNorm<Eigen::Infinity>(), 6e-6);
  const Eigen::Vector3d palm = V3(data_->site_xpos + 3 * robot_.hand_site()[kLeft]) - pelvis;
  EXPECT_LT((palm - Eigen::Vector3d(-0.00966, 0.23787, -0.14713)).lpNorm<Eigen::Infinity>(), 6e-6);
}

TEST_F(G1, MotorsByJoint) {
  struct Motor {
    std::vector<std::string> joints;
    double effort, armature;
  };
  const Motor motors[] = {
      {{"hip_pitch", "hip_yaw", "waist_yaw"}, 88, 0.01017752},
      {{"hip_roll", "knee"}, 139, 0.025101925},
      {{"ankle_pitch", "ankle_roll", "waist_roll", "waist_pitch"}, 50, 0.00721945},
      {{"shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll"}, 25, 0.003609725},
      {{"wrist_pitch", "wrist_yaw"}, 5, 0.00425}};
  for (int i = 0; i < robot_.num_joints(); ++i) {
    std::string name = robot_.spec().joints[i];
    name = name.substr(0, name.size() - std::string("_joint").size());
    for (const char* side : {"left_", "right_"}) {
      if (name.starts_with(side)) name = name.substr(std::string(side).size());
    }
    int matches = 0;
    for (const Motor& motor : motors) {
      if (std::find(motor.joints.begin(), motor.joints.end(), name) == motor.joints.end()) continue;
      ++matches;
      EXPECT_EQ(robot_.effort_limit()[i], motor.effort) << name;
      const int dof = robot_.dof_address()[i];
      EXPECT_EQ(m_->dof_armature[dof], motor.armature) << name;
      EXPECT_EQ(m_->dof_damping[dof], 0);
      EXPECT_EQ(m_->dof_frictionloss[dof], 0);
      // the derived gains follow their rule: 10 Hz, damping ratio 2, on the armature alone
      const GainSet& derived = robot_.spec().Gains("mjlab");
      const double w = 2 * mjPI * 10;
      EXPECT_NEAR(derived.kp[i], motor.armature * w * w, 1e-9 * derived.kp[i]) << name;
      EXPECT_NEAR(derived.kd[i], 4 * motor.armature * w, 1e-9 * derived.kd[i]) << name;
      EXPECT_NEAR(derived.action_scale[i], 0.25 * motor.effort / derived.kp[i], 1e-9) << name;
    }
    EXPECT_EQ(matches, 1) << name;
    // the robot's order is the file's order is the motors' order
    EXPECT_EQ(robot_.dof_address()[i], 6 + i);
    EXPECT_STREQ(mj_id2name(m_, mjOBJ_ACTUATOR, i), robot_.spec().joints[i].c_str());
  }
}

TEST_F(G1, ShapesAreMirrorImages) {
  const RobotModel all = RobotModel::Load(kG1, {.visuals = true});
  const mjModel* m = all.model();
  int pairs = 0;
  for (int b = 1; b < m->nbody; ++b) {
    const std::string left = mj_id2name(m, mjOBJ_BODY, b);
    if (!left.starts_with("left")) continue;
    const int r = mj_name2id(m, mjOBJ_BODY, ("right" + left.substr(4)).c_str());
    ASSERT_GE(r, 0);
    ASSERT_EQ(m->body_geomnum[b], m->body_geomnum[r]) << left;
    for (int k = 0; k < m->body_geomnum[b]; ++k, ++pairs) {
      const int g = m->body_geomadr[b] + k, h = m->body_geomadr[r] + k;
      EXPECT_EQ(m->geom_type[g], m->geom_type[h]);
      EXPECT_TRUE(V3(m->geom_size + 3 * g).isApprox(V3(m->geom_size + 3 * h)));
      const Eigen::Vector3d p = V3(m->geom_pos + 3 * g), q = V3(m->geom_pos + 3 * h);
      EXPECT_LT((p - Eigen::Vector3d(q.x(), -q.y(), q.z())).norm(), 1e-12) << left << " geom " << k;
    }
  }
  EXPECT_GT(pairs, 80);
}

TEST(G1Files, NeedNoMeshAndNoOtherFile) {
  const std::string text = ReadFile(kG1 + "/g1.xml");
  EXPECT_EQ(text.find("<mesh"), std::string::npos);
  EXPECT_EQ(text.find("file="), std::string::npos);
  EXPECT_EQ(text.find("<include"), std::string::npos);
  EXPECT_EQ(RobotModel::Load(kG1, {.visuals = true}).model()->nmesh, 0);
}

// Keyframes are for people who open the MJCF elsewhere; robot.yaml's poses are what silc uses.
TEST(G1Files, KeyframesAgreeWithThePoses) {
  const RobotModel robot = RobotModel::Load(kG1);
  const mjModel* m = robot.model();
  for (const char* name : {"home", "knees_bent"}) {
    const int key = mj_name2id(m, mjOBJ_KEY, name);
    ASSERT_GE(key, 0);
    const Pose& pose = robot.spec().StandingPose(name);
    EXPECT_EQ(m->key_qpos[m->nq * key + 2], pose.base_height);
    for (int i = 0; i < robot.num_joints(); ++i) {
      EXPECT_EQ(m->key_qpos[m->nq * key + robot.qpos_address()[i]], pose.q[i])
          << robot.spec().joints[i];
    }
  }
}

class G1AgainstReference : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kReference)) {
      GTEST_SKIP() << "reference data g1/g1.xml (MuJoCo Menagerie's model) is not here";
    }
    InstallMujocoHandlers();
    char error[1024] = "";
    reference_.reset(mj_loadXML(kReference.c_str(), nullptr, error, sizeof(error)));
    ASSERT_NE(reference_, nullptr) << error;
    reference_data_.reset(mj_makeData(reference_.get()));
    ASSERT_EQ(reference_->nq, robot_.model()->nq);
    ASSERT_EQ(reference_->nbody, robot_.model()->nbody);
  }

  // the same random pose in both: any base, joints in their ranges
  void SetRandomPose() {
    std::uniform_real_distribution<double> unit(-1, 1);
    for (int k = 0; k < 7; ++k) data_->qpos[k] = unit(rng_);
    mju_normalize4(data_->qpos + 3);
    for (int i = 0; i < robot_.num_joints(); ++i) {
      const double middle = (robot_.q_max()[i] + robot_.q_min()[i]) / 2;
      data_->qpos[7 + i] = middle + (robot_.q_max()[i] - middle) * unit(rng_);
    }
    mju_copy(reference_data_->qpos, data_->qpos, robot_.model()->nq);
    mj_forward(robot_.model(), data_.get());
    mj_forward(reference_.get(), reference_data_.get());
  }

  static RowMajor MassMatrix(const mjModel* m, mjData* d) {
    RowMajor M(m->nv, m->nv);
    mj_fullM(m, d, M.data());
    M.diagonal() -= Eigen::Map<const Eigen::VectorXd>(m->dof_armature, m->nv);
    return M;
  }

  const RobotModel robot_ = RobotModel::Load(kG1);
  const MjDataPtr data_ = robot_.MakeData();
  MjModelPtr reference_;
  MjDataPtr reference_data_;
  std::mt19937 rng_{11};
};

TEST_F(G1AgainstReference, NamesRangesAndEffortLimits) {
  const mjModel *m = robot_.model(), *r = reference_.get();
  for (int b = 0; b < m->nbody; ++b) {
    EXPECT_STREQ(mj_id2name(m, mjOBJ_BODY, b), mj_id2name(r, mjOBJ_BODY, b));
  }
  ASSERT_EQ(m->njnt, r->njnt);
  for (int j = 1; j < m->njnt; ++j) {
    EXPECT_STREQ(mj_id2name(m, mjOBJ_JOINT, j), mj_id2name(r, mjOBJ_JOINT, j));
    for (int k : {2 * j, 2 * j + 1}) {
      EXPECT_EQ(m->jnt_range[k], r->jnt_range[k]) << mj_id2name(m, mjOBJ_JOINT, j);
      EXPECT_EQ(m->jnt_actfrcrange[k], r->jnt_actfrcrange[k]) << mj_id2name(m, mjOBJ_JOINT, j);
    }
  }
}

TEST_F(G1AgainstReference, MassMatrixArmatureAside) {
  for (int trial = 0; trial < 20; ++trial) {
    SetRandomPose();
    const RowMajor ours = MassMatrix(robot_.model(), data_.get());
    const RowMajor theirs = MassMatrix(reference_.get(), reference_data_.get());
    // both come from the same printed digits: rounding in the two armatures taken off is all that
    // may differ; entry by entry on the scale of its row and column
    for (int i = 0; i < ours.rows(); ++i) {
      for (int j = 0; j < ours.cols(); ++j) {
        const double scale = std::sqrt(theirs(i, i) * theirs(j, j));
        ASSERT_LT(std::abs(ours(i, j) - theirs(i, j)), 1e-6 * scale) << i << ", " << j;
      }
    }
  }
}

TEST_F(G1AgainstReference, BodyAndImuJacobians) {
  const mjModel *m = robot_.model(), *r = reference_.get();
  RowMajor ours(6, m->nv), theirs(6, m->nv);
  for (int trial = 0; trial < 20; ++trial) {
    SetRandomPose();
    for (int b = 1; b < m->nbody; ++b) {
      mj_jacBody(m, data_.get(), ours.data(), ours.data() + 3 * m->nv, b);
      mj_jacBody(r, reference_data_.get(), theirs.data(), theirs.data() + 3 * m->nv, b);
      ASSERT_LT((ours - theirs).lpNorm<Eigen::Infinity>(), 1e-9) << mj_id2name(m, mjOBJ_BODY, b);
    }
    for (int site : robot_.imu_site()) {
      const int twin = mj_name2id(r, mjOBJ_SITE, mj_id2name(m, mjOBJ_SITE, site));
      ASSERT_GE(twin, 0);
      FloatingJacobian6 J;
      ComputeSiteJacobian(robot_, *data_, site, &J);
      mj_jacSite(r, reference_data_.get(), theirs.data(), theirs.data() + 3 * m->nv, twin);
      ASSERT_LT((J - theirs).lpNorm<Eigen::Infinity>(), 1e-9);
    }
  }
}

}  // namespace
}  // namespace silc
