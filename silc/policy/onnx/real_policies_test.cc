// SPDX-License-Identifier: Apache-2.0
// The released policies of FALCON and holosoma, where the reference data is checked out beside the
// project.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "silc/base/error.h"
#include "silc/base/rng.h"
#include "silc/base/test_paths.h"
#include "silc/policy/layout_file.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/policy.h"
#include "silc/policy/policy_metadata.h"

namespace silc {
namespace {

const std::string kPolicies = ReferencePath("policies/");
const std::string kLayouts = SourcePath("layouts");

struct Real {
  const char* file;
  const char* layout;
};
void PrintTo(const Real& real, std::ostream* out) { *out << real.layout; }

class RealPolicies : public testing::TestWithParam<Real> {
 protected:
  void SetUp() override {
    path_ = kPolicies + GetParam().file;
    if (!std::filesystem::exists(path_))
      GTEST_SKIP() << "reference data is missing: policies/" << GetParam().file;
  }
  std::string path_;
};

// The layout's own joints as the robot's.
Policy Make(const std::string& path, const char* layout_name) {
  const OnnxModel model = ReadOnnx(path);
  const ObservationLayout layout = ChooseLayout(model.metadata, layout_name, kLayouts, path);
  const PolicyRobot robot = {
      layout.joints, Eigen::VectorXd::Zero(static_cast<Eigen::Index>(layout.joints.size()))};
  PolicyOptions options;
  options.place = path;
  return Policy(model.graph, layout, robot, options);
}

ObservationInput Stand(const Policy& policy, Rng* rng) {
  ObservationInput in;
  in.q = in.q_ref = policy.default_pose();
  in.qd = in.tau = Eigen::VectorXd::Zero(policy.num_joints());
  for (double& x : in.q) x += 0.05 * rng->Normal();
  for (double& x : in.qd) x += 0.2 * rng->Normal();
  for (double& x : in.w_WB_B) x += 0.1 * rng->Normal();
  return in;
}

TEST_P(RealPolicies, RunOnTheFastPathAndStayFinite) {
  Policy policy = Make(path_, GetParam().layout);
  EXPECT_TRUE(policy.is_mlp());
  EXPECT_EQ(policy.kp().size(), 29);
  EXPECT_TRUE(policy.kp().allFinite());
  Rng rng(1);
  Eigen::VectorXd target;
  for (int step = 0; step < 20; ++step) {
    ASSERT_EQ(policy.Act(Stand(policy, &rng), &target), PolicyStatus::kOk);
    // near the default pose a policy that was read rightly asks for nothing wild
    EXPECT_LT((target - policy.default_pose()).cwiseAbs().maxCoeff(), 1.5);
  }
}

TEST_P(RealPolicies, FastJacobiansEqualPushedTangents) {
  Policy policy = Make(path_, GetParam().layout);
  Rng rng(2);
  Eigen::VectorXd target;
  for (int step = 0; step < 6; ++step)
    ASSERT_EQ(policy.Act(Stand(policy, &rng), &target), PolicyStatus::kOk);
  PolicyJacobians fast, exact;
  SummedJacobians sums;
  ASSERT_EQ(policy.Jacobians(&fast), PolicyStatus::kOk);
  ASSERT_EQ(policy.Jacobians(&sums), PolicyStatus::kOk);
  ASSERT_EQ(policy.JacobiansByTangents(&exact), PolicyStatus::kOk);
  Eigen::MatrixXd S_q = Eigen::MatrixXd::Zero(29, 29), S_a = S_q;
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < exact.J_q.size(); ++i) {
    worst = std::max({worst,
                      (fast.J_q[i] - exact.J_q[i]).cwiseAbs().maxCoeff(),
                      (fast.J_v[i] - exact.J_v[i]).cwiseAbs().maxCoeff(),
                      (fast.J_a[i] - exact.J_a[i]).cwiseAbs().maxCoeff(),
                      (fast.J_g[i] - exact.J_g[i]).cwiseAbs().maxCoeff(),
                      (fast.J_w[i] - exact.J_w[i]).cwiseAbs().maxCoeff()});
    largest = std::max(largest, exact.J_q[i].cwiseAbs().maxCoeff());
    S_q += exact.J_q[i];
    S_a += exact.J_a[i];
  }
  // float32 through four layers, relative to the largest entry
  EXPECT_LT(worst, 1e-5 * std::max(1.0, largest));
  EXPECT_LT((sums.J_q0 - exact.J_q[0]).cwiseAbs().maxCoeff(), 1e-5 * std::max(1.0, largest));
  EXPECT_LT((sums.S_q - S_q).cwiseAbs().maxCoeff(), 1e-5 * std::max(1.0, largest));
  EXPECT_LT((sums.S_a - S_a).cwiseAbs().maxCoeff(), 1e-5 * std::max(1.0, largest));
  EXPECT_GT(largest, 0.1);
}

TEST_P(RealPolicies, TheOtherLayoutIsRefusedWithBothWidths) {
  const bool falcon = std::string(GetParam().layout) == "falcon";
  try {
    Make(path_, falcon ? "holosoma" : "falcon");
    FAIL();
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("575"), std::string::npos) << text;
    EXPECT_NE(text.find("100"), std::string::npos) << text;
  }
}

TEST_P(RealPolicies, AskForALayoutWhenNoneIsNamed) { EXPECT_THROW(Make(path_, ""), ConfigError); }

INSTANTIATE_TEST_SUITE_P(All,
                         RealPolicies,
                         testing::Values(Real{"falcon_g1_29dof.onnx", "falcon"},
                                         Real{"holosoma_ppo_g1_29dof.onnx", "holosoma"}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace silc
