// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/robot_model.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "silc/base/error.h"
#include "silc/base/test_paths.h"
#include "silc/robot/tiny_biped.h"

namespace silc {
namespace {

// The message of loading a robot, with the temporary folder's path cut out of it.
std::string ModelError(const std::string& yaml,
                       const std::string& mjcf,
                       const LoadOptions& options = {}) {
  const TinyBipedFolder files(yaml, mjcf);
  try {
    RobotModel::Load(files.robot_yaml(), options);
  } catch (const ConfigError& error) {
    std::string text = error.what();
    const std::string folder = files.folder() + "/";
    for (std::size_t at; (at = text.find(folder)) != std::string::npos;) {
      text.erase(at, folder.size());
    }
    return text;
  }
  return "no error";
}

TEST(RobotModel, AnyBipedLoadsFromAnMjcfAndARobotYaml) {
  const TinyBipedFolder files;
  const RobotModel robot = RobotModel::Load(files.folder());
  const mjModel* m = robot.model();
  EXPECT_EQ(robot.num_joints(), 4);
  EXPECT_EQ(robot.mass(), 17);  // the crate is no part of it
  EXPECT_EQ(m->opt.timestep, 0.002);
  // robot order is the file's, r_knee first; MuJoCo numbers l_hip, l_knee, r_hip, r_knee after the
  // base
  EXPECT_EQ(robot.qpos_address(), (std::vector<int>{10, 8, 9, 7}));
  EXPECT_EQ(robot.dof_address(), (std::vector<int>{9, 7, 8, 6}));
  EXPECT_EQ(robot.base_dof_address(), 0);
  EXPECT_STREQ(mj_id2name(m, mjOBJ_BODY, robot.base_body()), "trunk");
  EXPECT_STREQ(mj_id2name(m, mjOBJ_SITE, robot.foot_site()[kRight]), "r_foot");
  EXPECT_STREQ(mj_id2name(m, mjOBJ_SITE, robot.imu_site()[0]), "gyro");
  EXPECT_FALSE(robot.has_hands());
  // degrees in the file
  EXPECT_NEAR(robot.q_max()[0], 120 * mjPI / 180, 1e-15);
  EXPECT_EQ(m->geom_type[robot.floor_geom()], mjGEOM_PLANE);
}

// What is added to the scene has its own joints after the robot's and changes nothing of it.
TEST(RobotModel, AnExtendedSceneKeepsTheRobotAsItWas) {
  const TinyBipedFolder files;
  const RobotModel bare = RobotModel::Load(files.folder());
  LoadOptions options;
  options.physics_period = 0.001;
  options.extend = [](mjSpec* spec) {
    mjsBody* ball = mjs_addBody(mjs_findBody(spec, "world"), nullptr);
    mjs_setName(ball->element, "ball");
    ball->mass = 3;
    for (int i = 0; i < 3; ++i) {
      ball->ipos[i] = 0;
      ball->inertia[i] = 0.01;
    }
    ball->explicitinertial = true;
    mjs_addFreeJoint(ball);
  };
  const RobotModel robot = RobotModel::Load(files.folder(), options);
  EXPECT_EQ(robot.model()->nv, bare.model()->nv + 6);
  EXPECT_EQ(robot.mass(), bare.mass());
  EXPECT_EQ(robot.dof_address(), bare.dof_address());
  EXPECT_EQ(robot.effort_limit(), bare.effort_limit());
  EXPECT_EQ(robot.model()->opt.timestep, 0.001);
  EXPECT_GE(mj_name2id(robot.model(), mjOBJ_BODY, "ball"), 0);
}

// Position servos in the file become torque motors in robot order; the joint's range, the
// actuator's force range with its gear, and the smaller side of a lopsided one decide the limit.
TEST(RobotModel, ActuatorsBecomeTorqueMotorsWithTheModelsEffortLimits) {
  const TinyBipedFolder files;
  const RobotModel robot = RobotModel::Load(files.robot_yaml());
  const mjModel* m = robot.model();
  EXPECT_EQ(robot.effort_limit(), Eigen::Vector4d(40, 40, 60, 60));
  ASSERT_EQ(m->nu, 4);
  const MjDataPtr data = robot.MakeData();
  for (int i = 0; i < 4; ++i) data->ctrl[robot.actuator()[i]] = 1 + i;
  mj_forward(m, data.get());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(data->qfrc_actuator[robot.dof_address()[i]], 1 + i);
    EXPECT_EQ(m->actuator_ctrlrange[2 * i + 1], robot.effort_limit()[i]);
  }
}

TEST(RobotModel, FeetStandOnTheChosenGeoms) {
  const TinyBipedFolder files;
  const RobotModel capsule = RobotModel::Load(files.robot_yaml());
  const RobotModel plate = RobotModel::Load(files.robot_yaml(), {.foot_collision = "plate"});
  EXPECT_EQ(mj_name2id(capsule.model(), mjOBJ_GEOM, "l_plate"), -1);
  EXPECT_EQ(mj_name2id(plate.model(), mjOBJ_GEOM, "l_sole"), -1);
  ASSERT_EQ(plate.foot_geoms()[kLeft].size(), 1u);
  const int geom = plate.foot_geoms()[kLeft][0];
  EXPECT_STREQ(mj_id2name(plate.model(), mjOBJ_GEOM, geom), "l_plate");
  EXPECT_EQ(plate.model()->geom_contype[geom], 1);  // it is switched off in the file
  EXPECT_EQ(plate.FootOfGeom(geom), kLeft);
  EXPECT_EQ(plate.FootOfGeom(plate.floor_geom()), -1);
  EXPECT_EQ(
      ModelError(kTinyBipedYaml, kTinyBipedMjcf, {.foot_collision = "plates"}),
      "robot.yaml: feet.collision: 'plates' is not among feet.left.geoms; did you mean plate?");
}

// Number of contacts with the trunk 5 m up and the legs folded through each other.
int SelfContacts(const LoadOptions& options) {
  const std::string crossed = Changed(kTinyBipedMjcf, "pos=\"0 -0.1 -0.2\"", "pos=\"0 0.08 -0.2\"");
  const TinyBipedFolder files(kTinyBipedYaml, crossed);
  const RobotModel robot = RobotModel::Load(files.robot_yaml(), options);
  const MjDataPtr data = robot.MakeData();
  data->qpos[2] = 5;
  mj_forward(robot.model(), data.get());
  return data->ncon;
}

TEST(RobotModel, SelfCollisionIsAChoice) {
  EXPECT_GT(SelfContacts({.self_collision = true}), 0);
  EXPECT_EQ(SelfContacts({.self_collision = false}), 0);
}

TEST(RobotModel, WithoutSelfCollisionItStillTouchesTheFloor) {
  const TinyBipedFolder files;
  const RobotModel robot = RobotModel::Load(files.robot_yaml(), {.self_collision = false});
  const MjDataPtr data = robot.MakeData();
  data->qpos[2] = 0.89;  // the soles end 0.9 m below the trunk
  mj_forward(robot.model(), data.get());
  EXPECT_EQ(data->ncon, 4);  // two per capsule
}

TEST(RobotModel, AFloorInTheFileIsKept) {
  const std::string mjcf =
      Changed(kTinyBipedMjcf,
              "<body name=\"crate\"",
              "<geom name=\"ground\" type=\"plane\" size=\"9 9 1\" friction=\"0.3\"/>"
              "<body name=\"crate\"");
  const TinyBipedFolder files(kTinyBipedYaml, mjcf);
  const RobotModel robot = RobotModel::Load(files.robot_yaml());
  EXPECT_STREQ(mj_id2name(robot.model(), mjOBJ_GEOM, robot.floor_geom()), "ground");
  EXPECT_EQ(mj_name2id(robot.model(), mjOBJ_GEOM, "floor"), -1);
}

TEST(RobotModel, VisualShapesAreKeptForViewersAlone) {
  const RobotModel plain = RobotModel::Load(SourcePath("robots/g1"));
  const RobotModel pretty = RobotModel::Load(SourcePath("robots/g1"), {.visuals = true});
  EXPECT_GT(pretty.model()->ngeom, plain.model()->ngeom + 100);
  EXPECT_GT(pretty.model()->nlight, 0);
  EXPECT_EQ(pretty.mass(), plain.mass());
  for (int g = 0; g < plain.model()->ngeom; ++g) {
    EXPECT_TRUE(plain.model()->geom_contype[g] || plain.model()->geom_conaffinity[g]);
  }
}

TEST(RobotModel, NamesTheModelDoesNotHaveAreErrorsWithNearMisses) {
  struct Case {
    const char *from, *to, *message;
  };
  const Case cases[] = {
      {"site: l_foot",
       "site: l_fot",
       "robot.yaml: feet.left.site: 'l_fot' is not a site of tiny.xml; did you mean l_foot"},
      {"body: r_shin",
       "body: r_chin",
       "robot.yaml: feet.right.body: 'r_chin' is not a body of tiny.xml; did you mean r_shin"},
      {"[l_sole]",
       "[l_soul]",
       "robot.yaml: feet.left.geoms.capsule: 'l_soul' is not a geom of tiny.xml; did you mean "
       "l_sole"},
      {"[r_plate]",
       "[r_plait]",
       "robot.yaml: feet.right.geoms.plate: 'r_plait' is not a geom of tiny.xml"},
      {"[r_sole]",
       "[crate]",
       "robot.yaml: feet.right.geoms.capsule: 'crate' belongs to body crate, not to r_shin"},
      // MuJoCo finds the first geom without a name by ""; it has many
      {"[l_sole]", "['']", "robot.yaml: feet.left.geoms.capsule: '' is not a geom of tiny.xml"},
      {"site: l_foot",
       "site: gyro",
       "robot.yaml: feet.left.site: 'gyro' sits on body trunk, not on l_shin"},
      {"{trunk: gyro}",
       "{trunk: gyros}",
       "robot.yaml: imus.trunk: 'gyros' is not a site of tiny.xml"},
      {"base: trunk",
       "base: trnuk",
       "robot.yaml: base: 'trnuk' is not a body of tiny.xml; did you mean trunk?"},
      {"base: trunk", "base: l_shin", "robot.yaml: base: 'l_shin' has no free joint in tiny.xml"},
      {"base: trunk",
       "base: trunk\nhands: {left: {body: palm, site: gyro}, right: {body: trunk, site: gyro}}",
       "robot.yaml: hands.left.body: 'palm' is not a body of tiny.xml"},
      {"model: tiny.xml", "model: tini.xml", "robot.yaml: model: there is no file tini.xml"},
  };
  for (const Case& c : cases) {
    const std::string yaml = Changed(kTinyBipedYaml, c.from, c.to);
    ASSERT_FALSE(yaml.starts_with("BAD")) << yaml;
    const std::string text = ModelError(yaml, kTinyBipedMjcf);
    EXPECT_TRUE(text.starts_with(c.message)) << "wanted: " << c.message << "\n   got: " << text;
  }
}

TEST(RobotModel, ModelsItCannotTreatAreRefused) {
  struct Case {
    const char *from, *to, *message;
  };
  const Case cases[] = {
      {"name=\"l_knee\" axis",
       "name=\"l_kne\" axis",
       "robot.yaml: joints: 'l_knee' is not a joint of tiny.xml; did you mean l_kne"},
      {"name=\"l_knee\" axis",
       "name=\"l_knee\" type=\"slide\" axis",
       "robot.yaml: joints: 'l_knee' is not a hinge in tiny.xml"},
      {"<freejoint/>",
       "<joint name=\"lift\" type=\"slide\" axis=\"0 0 1\"/>",
       "robot.yaml: base: 'trunk' has no free joint in tiny.xml"},
      {"<site name=\"gyro\"/>",
       "<site name=\"gyro\"/><body><joint name=\"neck\"/><geom size=\"0.1\"/></body>",
       "robot.yaml: joints: joint 'neck' of tiny.xml is not listed"},
      {"kp=\"50\" forcerange=\"-40 40\"",
       "kp=\"50\"",
       "robot.yaml: joints: 'l_knee' has no effort limit in tiny.xml\n  Give the joint an "
       "actuatorfrcrange."},
  };
  for (const Case& c : cases) {
    std::string mjcf = Changed(kTinyBipedMjcf, c.from, c.to);
    ASSERT_FALSE(mjcf.starts_with("BAD")) << mjcf;
    if (std::string(c.to).find("l_kne\"") != std::string::npos) {
      mjcf = Changed(mjcf, "joint=\"l_knee\"", "joint=\"l_kne\"");
    }
    const std::string text = ModelError(kTinyBipedYaml, mjcf);
    EXPECT_TRUE(text.starts_with(c.message)) << "wanted: " << c.message << "\n   got: " << text;
  }
}

TEST(RobotModel, MujocoComplaintsArePassedOnWithTheFile) {
  const std::string unknown =
      ModelError(kTinyBipedYaml, Changed(kTinyBipedMjcf, "<freejoint/>", "<freejoint/><wheel/>"));
  EXPECT_TRUE(unknown.starts_with("tiny.xml: ")) << unknown;
  EXPECT_NE(unknown.find("wheel"), std::string::npos) << unknown;
  const std::string broken = ModelError(kTinyBipedYaml, "<mujoco><worldbody>");
  EXPECT_TRUE(broken.starts_with("tiny.xml: ")) << broken;
  // parsed, but refused by the compiler
  const std::string massless = ModelError(
      kTinyBipedYaml,
      Changed(
          kTinyBipedMjcf, "<site name=\"gyro\"/>", "<site name=\"gyro\"/><body><joint/></body>"));
  EXPECT_TRUE(massless.starts_with("tiny.xml: ")) << massless;
}

// By default MuJoCo would end the process here and leave MUJOCO_LOG.TXT behind.
TEST(MujocoHandlers, ErrorsAreThrownThroughTheEngineAndLeaveNoFile) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "silc_mujoco_handlers_test";
  std::filesystem::create_directory(folder);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);

  const TinyBipedFolder files;
  const RobotModel robot = RobotModel::Load(files.robot_yaml());
  try {
    mj_stateSize(robot.model(), 1 << 30);  // no such part of the state
    ADD_FAILURE() << "MuJoCo took an impossible signature";
  } catch (const RunError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("MuJoCo: ")) << error.what();
  }
  ::testing::internal::CaptureStdout();
  mju_warning("a warning from the handlers' test\x1b[2J");  // names of a file's may be in it
  const std::string said = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(said.find("handlers' test\\x1b[2J"), std::string::npos) << said;

  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace silc
