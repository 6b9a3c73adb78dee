// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <numbers>

#include "silc/base/error.h"
#include "silc/base/limits.h"
#include "silc/npz/npz.h"
#include "silc/observe/report_text.h"
#include "silc/observe/shake.h"
#include "silc/observe/summary.h"
#include "silc/observe/test_robot.h"
#include "silc/robot/tiny_biped.h"

namespace silc {
namespace {

ObservationOptions Options() {
  ObservationOptions options;
  options.budget = ReadBudget("soft-hand");
  return options;
}

class Run : public ::testing::Test {
 protected:
  Run() : robot_(RobotModel::Load("g1")), policy_(MakeStandPolicy(robot_)) {}

  RobotModel robot_;
  Policy policy_;
};

// A policy that answers nothing leaves the springs alone: every stiffness is Kp's.
TEST_F(Run, AConstantPolicyIsPdAlone) {
  const ObservationRun run =
      ObservePose(MakeLoop(robot_, MakeConstantPolicy(robot_, 0)), Options());
  ASSERT_EQ(run.moments.size(), 1u);
  const MomentReading& reading = run.moments[0].reading;
  const JointMatrix Kp = run.servo.kp.asDiagonal();
  EXPECT_TRUE(reading.K_1.isApprox(Kp, 1e-12));
  EXPECT_TRUE(reading.K_s.isApprox(Kp, 1e-12));
  for (std::size_t k = 0; k < kDampingHz.size(); ++k) {
    EXPECT_TRUE(run.moments[0].damping[k].isApprox(Eigen::VectorXd(run.servo.kd), 1e-9));
  }
}

// The regulator is linear, so its weights are its Jacobians: what was observed must be what was
// designed.
TEST_F(Run, TheRegulatorsStiffnessIsItsWeights) {
  const StandPolicy design = DesignStandPolicy(robot_);
  const MlpLayer& layer = design.network.branches[0][0];
  const int n = robot_.num_joints();
  const auto block = [&](int which) {
    Eigen::MatrixXd J(n, n);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j)
        J(i, j) = layer.weight[static_cast<std::size_t>(i) * 3 * n + which * n + j];
    }
    return J;
  };
  const ObservationRun run = ObservePose(MakeLoop(robot_, policy_), Options());
  const Eigen::MatrixXd I = Eigen::MatrixXd::Identity(n, n);
  const Eigen::MatrixXd Kp = run.servo.kp.asDiagonal(), alpha = run.servo.alpha.asDiagonal();
  const Eigen::MatrixXd K_1 = Kp * (I - alpha * block(0));
  const Eigen::MatrixXd K_s = Kp * (I - alpha * (I - block(2)).inverse() * block(0));
  EXPECT_TRUE(run.moments[0].reading.K_1.isApprox(K_1, 1e-6));
  EXPECT_TRUE(run.moments[0].reading.K_s.isApprox(K_s, 1e-5));
}

TEST_F(Run, ARolloutObservesEveryControlStep) {
  const ObservationRun run = ObserveRollout(MakeLoop(robot_, policy_), 1, 0.5, Options());
  EXPECT_EQ(run.end, LoopStatus::kRunning);
  EXPECT_EQ(run.moments.size(), 50u);
  EXPECT_NEAR(run.moments.front().time, 0.5, 1e-9);
  for (const Moment& moment : run.moments) {
    EXPECT_EQ(moment.mode, ContactMode::kDoubleSupport);
    EXPECT_EQ(moment.reading.static_status, StiffnessStatus::kOk);
  }
  ASSERT_FALSE(run.sweep.hz.empty());
  EXPECT_LT(run.sweep.hz.back(), 25);
}

TEST_F(Run, AFallEndsTheRolloutAndKeepsWhatWasSeen) {
  const ObservationRun run =
      ObserveRollout(MakeLoop(robot_, MakeConstantPolicy(robot_, 0)), 10, 0, Options());
  EXPECT_EQ(run.end, LoopStatus::kFallen);
  EXPECT_GT(run.moments.size(), 10u);
  EXPECT_LT(run.moments.size(), 500u);
  EXPECT_NEAR(run.end_time, 0.02 * static_cast<double>(run.moments.size()), 1e-9);
}

// Recorded states observed again give what the rollout gave: the twin of a simulated observation.
TEST_F(Run, StatesFromAFileRepeatTheRollout) {
  const std::string path = ::testing::TempDir() + "states.npz";
  ClosedLoop loop = MakeLoop(robot_, policy_);
  const mjModel* model = robot_.model();
  constexpr int kRows = 30;
  std::vector<double> qpos, qvel;
  for (int i = 0; i < kRows; ++i) {
    qpos.insert(qpos.end(), loop.data()->qpos, loop.data()->qpos + model->nq);
    qvel.insert(qvel.end(), loop.data()->qvel, loop.data()->qvel + model->nv);
    loop.Step();
  }
  WriteNpz(path, {{"qpos", {kRows, model->nq}, qpos}, {"qvel", {kRows, model->nv}, qvel}});

  const ObservationRun again = ObserveStates(MakeLoop(robot_, policy_), path, Options());
  const ObservationRun rollout =
      ObserveRollout(MakeLoop(robot_, policy_), kRows * 0.02, 0, Options());
  ASSERT_EQ(again.moments.size(), rollout.moments.size());
  for (int i = 0; i < kRows; ++i) {
    EXPECT_TRUE(again.moments[i].reading.K_s.isApprox(rollout.moments[i].reading.K_s, 1e-9)) << i;
    EXPECT_NEAR(again.moments[i].reading.quasi_static.sigma,
                rollout.moments[i].reading.quasi_static.sigma,
                1e-6 * rollout.moments[i].reading.quasi_static.sigma);
  }

  // the poses alone, some of them or all
  const std::vector<Eigen::VectorXd> three = RecordedPoses(path, robot_, 3);
  ASSERT_EQ(three.size(), 3u);
  for (const int i : {0, 1, 2}) {
    EXPECT_EQ(three[i], Eigen::Map<const Eigen::VectorXd>(&qpos[10 * i * model->nq], model->nq));
  }
  EXPECT_EQ(RecordedPoses(path, robot_, 100).size(), 30u);
  std::filesystem::remove(path);
}

TEST_F(Run, StatesThatDoNotFitAreRefused) {
  const std::string path = ::testing::TempDir() + "bad_states.npz";
  const mjModel* model = robot_.model();
  const auto message = [&](const std::vector<NpzEntry>& entries) {
    WriteNpz(path, entries);
    try {
      ObserveStates(MakeLoop(robot_, policy_), path, Options());
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto zeros = [](int rows, int cols) {
    return std::vector<double>(static_cast<std::size_t>(rows) * cols);
  };
  EXPECT_NE(message({{"qpos", {2, 7}, zeros(2, 7)}, {"qvel", {2, 6}, zeros(2, 6)}})
                .find("expected (*, 36)"),
            std::string::npos);
  EXPECT_NE(message({{"qpos", {2, model->nq}, zeros(2, model->nq)},
                     {"qvel", {1, model->nv}, zeros(1, model->nv)}})
                .find("must be the same states"),
            std::string::npos);
  EXPECT_NE(message({{"qvel", {1, model->nv}, zeros(1, model->nv)}}).find("qpos"),
            std::string::npos);
  // a state of zeros has a quaternion of zeros, which is no orientation; the row is named
  std::vector<double> second = zeros(2, model->nq);
  second[robot_.base_qpos_address() + 3] = 1;
  EXPECT_NE(
      message({{"qpos", {2, model->nq}, second}, {"qvel", {2, model->nv}, zeros(2, model->nv)}})
          .find("qpos[1]: the base's quaternion (0, 0, 0, 0) has length 0"),
      std::string::npos);
  // the same for a joint, the base and a velocity that no robot has
  std::vector<double> standing = second;
  standing[static_cast<std::size_t>(model->nq) + robot_.base_qpos_address() + 3] = 1;
  const auto with = [&](std::vector<double> qpos, std::vector<double> qvel) {
    return message(
        {{"qpos", {2, model->nq}, std::move(qpos)}, {"qvel", {2, model->nv}, std::move(qvel)}});
  };
  EXPECT_EQ(with(standing, zeros(2, model->nv)), "no error");
  std::vector<double> far = standing;
  far[robot_.qpos_address()[3]] = 1e300;
  EXPECT_NE(with(far, zeros(2, model->nv))
                .find("qpos[0]: " + robot_.spec().joints[3] + " [rad], 1e+300, is outside ±10"),
            std::string::npos);
  far = standing;
  far[robot_.base_qpos_address()] = -1e12;
  EXPECT_NE(with(far, zeros(2, model->nv)).find("qpos[0]: the base's position"), std::string::npos);
  std::vector<double> fast = zeros(2, model->nv);
  fast.back() = 1e9;
  EXPECT_NE(with(standing, fast).find("qvel[1]: a velocity, 1e+09"), std::string::npos);
  std::filesystem::remove(path);
}

// What a log of a robot has beside its states.
// What counts is all chunks together: every moment is kept in part.
TEST_F(Run, ALogWithoutEndIsRefused) {
  const std::string folder = ::testing::TempDir() + "/silc_log_without_end";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const mjModel* model = robot_.model();
  const auto zeros = [](const std::string& name, std::int64_t rows, std::int64_t width) {
    NpzEntry entry{name, {rows, width}, {}, true};
    entry.values.resize(static_cast<std::size_t>(rows * width));
    return entry;
  };
  WriteNpz(folder + "/chunk_0.npz",
           {zeros("qpos", 1, model->nq),
            zeros("qvel", 1, model->nv),
            zeros("tau", 1, robot_.num_joints()),
            zeros("gravity_B", 1, 3),
            zeros("command", 1, 5),
            {"contact_mode", {1}, {0}},
            {"session", {1}, {0}}});
  // not WriteNpz(), which waits for the disk: these are 75 MB
  std::ofstream(folder + "/chunk_1.npz", std::ios::binary)
      << EncodeNpz({zeros("qpos", kMaxStates, model->nq), zeros("qvel", 1, model->nv)});
  try {
    ObserveStates(MakeLoop(robot_, policy_), folder, Options());
    ADD_FAILURE() << "read";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("chunk_1.npz: with it there are more than 524288"),
              std::string::npos)
        << error.what();
  }
  std::filesystem::remove_all(folder);
}

TEST_F(Run, ALogOfNonsenseIsRefused) {
  const std::string folder = ::testing::TempDir() + "bad_log";
  std::filesystem::create_directory(folder);
  const mjModel* model = robot_.model();
  const auto message = [&](const std::string& array, int at, double value) {
    std::map<std::string, std::vector<double>> columns = {
        {"qpos", std::vector<double>(static_cast<std::size_t>(model->nq))},
        {"qvel", std::vector<double>(static_cast<std::size_t>(model->nv))},
        {"tau", std::vector<double>(static_cast<std::size_t>(robot_.num_joints()))},
        {"gravity_B", {0, 0, -1}},
        {"command", {0, 0, 0, 0, 0}},
        {"contact_mode", {0}},
        {"session", {0}}};
    columns["qpos"][static_cast<std::size_t>(robot_.base_qpos_address()) + 3] = 1;
    columns[array][static_cast<std::size_t>(at)] = value;
    std::vector<NpzEntry> entries;
    for (const auto& [name, values] : columns) {
      const auto width = static_cast<std::int64_t>(values.size());
      NpyShape shape = {1, width};
      if (name == "contact_mode" || name == "session") shape = {1};
      entries.push_back({name, shape, values});
    }
    WriteNpz(folder + "/chunk_000000.npz", entries);
    try {
      ObserveStates(MakeLoop(robot_, policy_), folder, Options());
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message("session", 0, 1), "no error");
  EXPECT_THROW(RecordedPoses(folder, robot_, 10), ConfigError) << "where was the floor?";
  const auto refused = [&](const std::string& array, int at, double value) {
    const std::string said = message(array, at, value);
    EXPECT_NE(said.find(folder + ": " + array + "[0]: "), std::string::npos) << value << said;
  };
  refused("gravity_B", 2, -1e300);
  refused("gravity_B", 2, 0);
  for (const double mode : {99.0, -1.0, 0.5}) refused("contact_mode", 0, mode);
  refused("tau", 1, 1e6);
  refused("command", 4, -1e5);
  std::filesystem::remove_all(folder);
}

// A biped without hip yaw and ankle roll: its feet on the ground cannot be closed over by its legs,
// so double support has no contact kinematics.
std::string PlanarLeg(const std::string& side, const std::string& y) {
  const std::string joint = "range=\"-1.5 1.5\" actuatorfrcrange=\"-40 40\" armature=\"0.01\"/>";
  return "<body name=\"" + side + "_hip\" pos=\"0 " + y + " -0.05\"><joint name=\"" + side +
         "_roll\" axis=\"1 0 0\" " + joint + "<geom size=\"0.03\" mass=\"0.6\"/><body name=\"" +
         side + "_thigh\"><joint name=\"" + side + "_pitch\" axis=\"0 1 0\" " + joint +
         "<geom type=\"capsule\" size=\"0.03\" fromto=\"0 0 -0.05 0 0 -0.2\" mass=\"1\"/><body "
         "name=\"" +
         side + "_shank\" pos=\"0 0 -0.25\"><joint name=\"" + side + "_knee\" axis=\"0 1 0\" " +
         joint +
         "<geom type=\"capsule\" size=\"0.03\" fromto=\"0 0 -0.05 0 0 -0.18\" mass=\"0.7\"/><body "
         "name=\"" +
         side + "_foot\" pos=\"0 0 -0.25\"><joint name=\"" + side + "_ankle\" axis=\"0 1 0\" " +
         joint + "<geom name=\"" + side +
         "_sole\" type=\"box\" size=\"0.08 0.03 0.01\" mass=\"0.4\"/><site name=\"" + side +
         "_site\" pos=\"0 0 -0.01\"/></body></body></body></body>";
}

TEST(ObserveRun, ARobotWhoseLegsCannotCloseIsNotJudgedAndNotFatal) {
  std::string yaml = "version: 1\nname: planar\ntitle: no yaw\nmodel: tiny.xml\njoints: [";
  for (const char* side : {"l", "r"}) {
    for (const char* joint : {"_roll", "_pitch", "_knee", "_ankle"}) {
      yaml += (yaml.back() == '[' ? "" : ", ") + std::string(side) + joint;
    }
  }
  yaml +=
      "]\ngroups: {all: [\"*\"]}\nactors: {lower: [all]}\nbase: trunk\nfeet:\n  collision: box\n"
      "  left: {body: l_foot, site: l_site, geoms: {box: [l_sole]}}\n"
      "  right: {body: r_foot, site: r_site, geoms: {box: [r_sole]}}\n"
      "  force: {enter: 15, leave: 6}\ngains: {g: {kp: 60, kd: 2, action_scale: 0.25}}\n"
      "default_gains: g\nposes: {p: {base_height: 0.5, joints: {}}}\ndefault_pose: p\n"
      "control_period: 0.02\nphysics_period: 0.005\n";
  const TinyBipedFolder files(
      yaml,
      "<mujoco><compiler angle=\"radian\"/><worldbody><body name=\"trunk\" pos=\"0 0 "
      "1\"><freejoint/>"
      "<geom type=\"box\" size=\"0.07 0.1 0.1\" pos=\"0 0 0.1\" mass=\"5\"/>" +
          PlanarLeg("l", "0.07") + PlanarLeg("r", "-0.07") + "</body></worldbody></mujoco>");
  const RobotModel robot = RobotModel::Load(files.robot_yaml());
  ObservationLayout layout;
  layout.name = "positions";
  layout.control_dt = 0.02;
  layout.joints = robot.spec().joints;
  layout.default_pose.assign(8, 0.0);
  ObservationTerm term;
  term.name = "q";
  term.source = TermSource::kJointPos;
  layout.terms = {term};
  layout.action.joints = layout.joints;
  layout.action.scale = {0.25};
  layout.action.clip = 100;
  MlpNetwork network;
  network.inputs = 8;
  network.branches = {{{.inputs = 8,
                        .outputs = 8,
                        .weight = std::vector<float>(64, 0.0f),
                        .bias = std::vector<float>(8, 0.0f)}}};
  const Policy policy(std::make_shared<const Graph>(MlpGraph(network, "obs", "actions")),
                      layout,
                      {robot.spec().joints, robot.spec().StandingPose().q});
  ObservationOptions options;
  options.budget = ReadBudget("compliance");
  const ObservationRun run = ObserveRollout(MakeLoop(robot, policy), 0.1, 0, options);
  ASSERT_FALSE(run.moments.empty());
  const Moment& first = run.moments.front();
  ASSERT_EQ(first.mode, ContactMode::kDoubleSupport);
  EXPECT_NE(first.reading.contact_status, StiffnessStatus::kOk);
  EXPECT_NE(first.reading.quasi_static.status, StiffnessStatus::kOk);
  EXPECT_FALSE(BudgetHolds(Summarize(run)));
}

// An answer with an infinite slope, the root of |q| at q = 0: the moment is not judged, the run
// goes on, and nothing of it is fatal.
TEST(ObserveRun, AMomentWithoutDerivativesIsNotJudged) {
  const RobotModel robot = RobotModel::Load("g1");
  const StandPolicy stand = DesignStandPolicy(robot);
  GraphBuilder builder;
  const int width = stand.network.inputs, joints = stand.network.outputs();
  const ValueId x = builder.AddInput("obs", {1, width});
  // 0.001 √|x| of the first inputs, one per joint
  const ValueId some = builder.AddSlice("slice", x, {0, 0}, {1, 1}, {1, joints});
  const ValueId away = builder.AddBinary(Op::kSub, "zero", some, some);
  const ValueId root = builder.AddUnary(Op::kSqrt, "root", away);
  builder.AddOutput("actions", root);
  const Policy policy(std::make_shared<const Graph>(builder.Finish()),
                      stand.layout,
                      {robot.spec().joints, robot.spec().StandingPose().q});
  ObservationOptions options;
  options.budget = ReadBudget("compliance");
  const ObservationRun run = ObservePose(MakeLoop(robot, policy), options);
  ASSERT_EQ(run.moments.size(), 1u);
  EXPECT_EQ(run.moments[0].reading.static_status, StiffnessStatus::kNotFinite);
  EXPECT_EQ(run.moments[0].reading.one_step_status, StiffnessStatus::kNotFinite);
  EXPECT_EQ(Summarize(run).modes.back().judged, 0);

  ShakeOptions shake;
  shake.forces = {2};
  shake.settle = 0.02;
  const ShakeResult result = Shake(MakeLoop(robot, policy), shake);
  for (const ShakePrediction& prediction : result.predictions) {
    if (prediction.name != "PD alone") {
      EXPECT_EQ(prediction.status, StiffnessStatus::kNotFinite) << prediction.name;
    }
  }
}

// Files get every moment whole; what stays behind is what the summary needs.
TEST(ObserveRun, LongRunsDoNotKeepTheirMatrices) {
  const RobotModel robot = RobotModel::Load("g1");
  const ClosedLoop loop = MakeLoop(robot, MakeStandPolicy(robot));
  ObservationOptions options;
  options.budget = ReadBudget("compliance");
  const ObservationRun whole = ObserveRollout(loop, 0.2, 0, options);
  int given = 0;
  options.whole_moments = 3;
  options.on_moment = [&](const Moment& moment) {
    EXPECT_EQ(moment.reading.K_s.rows(), robot.num_joints());
    EXPECT_TRUE(moment.reading.K_s == whole.moments[given].reading.K_s);
    EXPECT_GT(moment.observation.size(), 0);
    ++given;
  };
  const ObservationRun run = ObserveRollout(loop, 0.2, 0, options);
  EXPECT_EQ(given, 10);
  ASSERT_EQ(run.moments.size(), 10u);
  EXPECT_EQ(run.moments[2].reading.K_s.rows(), robot.num_joints());
  EXPECT_EQ(run.moments[3].reading.K_s.size(), 0);
  const RunSummary a = Summarize(run), b = Summarize(whole);
  EXPECT_EQ(a.joints[5].quasi_static, b.joints[5].quasi_static);
  EXPECT_EQ(a.modes.back().sigma_median, b.modes.back().sigma_median);
}

// What is in the JSON is enough to build the moment again: state in, observation and action out.
TEST(ObserveRun, AMomentCarriesItsState) {
  const RobotModel robot = RobotModel::Load("g1");
  ClosedLoop loop = MakeLoop(robot, MakeStandPolicy(robot));
  ObservationOptions options;
  options.budget = ReadBudget("compliance");
  const Moment moment = ObserveRollout(loop, 0.1, 0.3, options).moments.back();
  std::vector<double> qpos(loop.data()->qpos, loop.data()->qpos + robot.model()->nq);
  std::vector<double> qvel(robot.model()->nv, 0.0);
  const int p = robot.base_qpos_address(), v = robot.base_dof_address();
  for (int k = 0; k < 3; ++k) {
    qpos[p + k] = moment.p_WB[k];
    qvel[v + k] = moment.v_WB[k];
    qvel[v + 3 + k] = moment.w_WB_B[k];
  }
  for (int k = 0; k < 4; ++k) qpos[p + 3 + k] = moment.quat_wxyz[k];
  for (int i = 0; i < robot.num_joints(); ++i) {
    qpos[robot.qpos_address()[i]] = moment.q[i];
    qvel[robot.dof_address()[i]] = moment.qd[i];
  }
  loop.SetState(qpos, qvel);
  ASSERT_EQ(loop.Decide(), LoopStatus::kRunning);
  // positions and velocities come from the state; the previous action, behind them, does not
  const int seen = 2 * robot.num_joints();
  EXPECT_TRUE(
      loop.policy().observation().head(seen).isApprox(moment.observation.head(seen), 1e-5f));
  // and the network answers what was seen with the action
  MlpEngine network(DesignStandPolicy(robot).network);
  std::vector<float> answer(moment.action.size());
  network.Forward({moment.observation.data(), static_cast<std::size_t>(moment.observation.size())},
                  answer);
  for (int i = 0; i < robot.num_joints(); ++i) EXPECT_NEAR(answer[i], moment.action[i], 1e-5);
}

// A joint's own damping is felt as the servo's is; friction loss is told beside it.
TEST_F(Run, TheModelsOwnDampingIsInWhatIsPrinted) {
  LoadOptions load;
  load.extend = [](mjSpec* mjcf) {
    mjsJoint* knee = mjs_asJoint(mjs_findElement(mjcf, mjOBJ_JOINT, "left_knee_joint"));
    knee->damping[0] = 0.7;
    knee->frictionloss = 0.3;
  };
  const RobotModel rough = RobotModel::Load("g1", load);
  ObservationRun run = ObservePose(MakeLoop(rough, MakeConstantPolicy(rough, 0)), Options());
  const int knee = rough.spec().Joint("left_knee_joint");
  for (std::size_t k = 0; k < kDampingHz.size(); ++k) {
    for (int i = 0; i < rough.num_joints(); ++i) {
      EXPECT_NEAR(run.moments[0].damping[k][i], run.servo.kd[i] + (i == knee ? 0.7 : 0), 1e-9);
    }
  }
  const std::string text = ObservationText(run, Summarize(run));
  EXPECT_NE(text.find("friction loss"), std::string::npos) << text;
  run = ObservePose(MakeLoop(robot_, MakeConstantPolicy(robot_, 0)), Options());
  EXPECT_EQ(ObservationText(run, Summarize(run)).find("friction loss"), std::string::npos);
}

}  // namespace
}  // namespace silc
