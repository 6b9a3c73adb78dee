// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/robot_spec.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "silc/base/error.h"
#include "silc/base/test_paths.h"
#include "silc/robot/tiny_biped.h"

namespace silc {
namespace {

std::string ErrorOf(const std::string& yaml) {
  try {
    ParseRobotSpec(yaml, "some/robot.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RobotSpec, ReadsEveryKey) {
  const RobotSpec spec = ParseRobotSpec(kTinyBipedYaml, "some/robot.yaml");
  EXPECT_EQ(spec.name, "tiny");
  EXPECT_EQ(spec.model_file, "some/tiny.xml");
  EXPECT_EQ(spec.joints, (std::vector<std::string>{"r_knee", "l_knee", "r_hip", "l_hip"}));
  // patterns expand in robot order, lists keep their own
  EXPECT_EQ(spec.Group("hips").joints, (std::vector<int>{2, 3}));
  EXPECT_EQ(spec.Group("knees").joints, (std::vector<int>{1, 0}));
  EXPECT_EQ(spec.Actor("body").joints, (std::vector<int>{2, 3, 1, 0}));
  EXPECT_EQ(spec.base, "trunk");
  EXPECT_EQ(spec.left_foot.geom_sets.size(), 2u);
  EXPECT_EQ(spec.left_foot.geom_sets[1].geoms, (std::vector<std::string>{"l_plate"}));
  EXPECT_EQ(spec.foot_force.enter, 20);
  EXPECT_TRUE(spec.hands.empty());
  EXPECT_EQ(spec.Gains().kp, Eigen::Vector4d(80, 80, 100, 100));
  EXPECT_EQ(spec.Gains("soft").action_scale, Eigen::Vector4d::Constant(0.5));
  EXPECT_EQ(spec.StandingPose().q, Eigen::Vector4d(0.6, 0.6, -0.3, -0.3));
  EXPECT_EQ(spec.physics_steps_per_control(), 5);
  EXPECT_EQ(spec.velocity_limit.size(), 0);
  EXPECT_EQ(spec.Joint("l_hip"), 3);
}

TEST(RobotSpec, WrongFilesAreRefusedWithPlaceRuleAndWayOut) {
  struct Case {
    const char *from, *to, *message;
  };
  const Case cases[] = {
      {"base: trunk", "bass: trunk", "some/robot.yaml:13: bass: unknown key; did you mean base?"},
      {"version: 1", "version: 7", "version: 7 is not a version this program reads; known: 1"},
      {"[r_knee, l_knee, r_hip", "[r_knee, l_knee, l_knee", "joints[2]: 'l_knee' is listed twice"},
      {"[r_knee, l_knee, r_hip, l_hip]", "[\"*\"]", "joints[0]: '*' is not a joint name"},
      {"hips: [\"*_hip\"]", "hips: [\"*_hop\"]", "groups.hips[0]: '*_hop' matches no joint"},
      {"knees: [l_knee, r_knee]",
       "knees: [l_knee, r_kneee]",
       "groups.knees[1]: 'r_kneee' is neither a joint nor a group defined above; did you mean "
       "r_knee"},
      {"all: [hips, knees]",
       "all: [hips, l_hip]",
       "groups.all[1]: 'l_hip' names l_hip a second time"},
      {"hips: [\"*_hip\"]", "l_hip: [\"*_hip\"]", "groups.l_hip: is the name of a joint"},
      {"body: [all]", "body: [hips]", "actors: r_knee belongs to no actor"},
      {"body: [all]",
       "body: [all]\n  legs: [hips]",
       "actors.legs: r_hip already belongs to actor 'body'"},
      {"collision: capsule",
       "collision: capsul",
       "feet.collision: 'capsul' is not among feet.left.geoms; did you mean capsule?"},
      {"[l_plate]",
       "[l_plate, l_plate]",
       "feet.left.geoms.plate: 'l_plate' is listed twice; a geom belongs to one set of one foot"},
      {"[l_plate]", "[l_sole]", "feet.left.geoms.plate: 'l_sole' is listed twice"},
      {"[r_sole]", "[l_sole]", "feet.right.geoms.capsule: 'l_sole' is listed twice"},
      {"body: r_shin", "body: l_shin", "feet.right.body: 'l_shin' is the left foot's body too"},
      {"leave: 10", "leave: 30", "feet.force: leave must be below enter"},
      {"{hips: 100, knees: 80}",
       "{hips: 100}",
       "gains.soft.kp: gives no number for r_knee, l_knee"},
      {"{hips: 100, knees: 80}",
       "{hips: 100, \"*\": 80}",
       "gains.soft.kp.*: r_hip is also named by 'hips'"},
      {"{hips: 100, knees: 80}", "{hips: 100, knees: -1}", "gains.soft.kp.knees: -1 is outside"},
      {"{hips: 100, knees: 80}",
       "[1, 2, 3, 4]",
       "gains.soft.kp: must be one number for all joints"},
      {"kd: 2", "kv: 2", "gains.soft.kv: unknown key"},
      {"default_gains: soft", "default_gains: sofd", "did you mean soft?"},
      {"default_pose: bent", "default_pose: stand", "default_pose: 'stand' is not a choice here"},
      {"joints: {hips: -0.3", "joints: {hip: -0.3", "'hip' is neither a joint nor a group"},
      {"control_period: 0.01",
       "control_period: 0.003",
       "must be a whole multiple of physics_period"},
  };
  for (const Case& c : cases) {
    const std::string yaml = Changed(kTinyBipedYaml, c.from, c.to);
    ASSERT_FALSE(yaml.starts_with("BAD")) << yaml;
    EXPECT_NE(ErrorOf(yaml).find(c.message), std::string::npos)
        << "wanted: " << c.message << "\n   got: " << ErrorOf(yaml);
  }
}

TEST(RobotSpec, UnknownNamesSuggestNearOnes) {
  const RobotSpec spec = ParseRobotSpec(kTinyBipedYaml, "some/robot.yaml");
  const auto message = [](const auto& look_up) -> std::string {
    try {
      look_up();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { spec.Gains("sotf"); }),
            "some/robot.yaml: the robot has no set of gains 'sotf'; did you mean soft?");
  EXPECT_EQ(message([&] { spec.StandingPose("home"); }),
            "some/robot.yaml: the robot has no pose 'home'; known: bent");
  EXPECT_EQ(message([&] { spec.Joint("l_hipp"); }),
            "some/robot.yaml: the robot has no joint 'l_hipp'; did you mean l_hip or r_hip?");
  EXPECT_EQ(message([&] { spec.Hand("left"); }), "some/robot.yaml: the robot has no hand 'left'");
}

TEST(FindRobotFile, SearchesFoldersForNamesAndNothingForPaths) {
  EXPECT_EQ(FindRobotFile(SourcePath("robots/g1")), SourcePath("robots/g1/robot.yaml"));
  EXPECT_TRUE(FindRobotFile("g1").ends_with("robots/g1/robot.yaml"));
  try {
    FindRobotFile("gg1");
    FAIL();
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("robot 'gg1': no such robot in "), std::string::npos) << text;
    EXPECT_NE(text.find("did you mean g1"), std::string::npos) << text;
    EXPECT_NE(text.find("SILC_ROBOTS"), std::string::npos) << text;
  }
  EXPECT_THROW(FindRobotFile("./g1"), ConfigError);
  EXPECT_THROW(FindRobotFile(""), ConfigError);

  // the variable comes first: a folder's name becomes a robot's
  const TinyBipedFolder tiny;
  const std::filesystem::path folder(tiny.folder());
  setenv("SILC_ROBOTS", (":/nowhere:" + folder.parent_path().string()).c_str(), 1);
  EXPECT_EQ(FindRobotFile(folder.filename().string()), tiny.robot_yaml());
  unsetenv("SILC_ROBOTS");
}

class G1Spec : public ::testing::Test {
 protected:
  const RobotSpec spec_ = ReadRobotSpec(SourcePath("robots/g1/robot.yaml"));
};

TEST_F(G1Spec, GroupsAndActorsCoverTheRobot) {
  EXPECT_EQ(spec_.num_joints(), 29);
  EXPECT_EQ(spec_.Group("left_leg").joints, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(spec_.Group("waist").joints, (std::vector<int>{12, 13, 14}));
  EXPECT_EQ(spec_.Group("right_arm").joints, (std::vector<int>{22, 23, 24, 25, 26, 27, 28}));
  EXPECT_EQ(spec_.Group("legs").joints.size(), 12u);
  EXPECT_EQ(spec_.Actor("lower").joints.size(), 15u);
  EXPECT_EQ(spec_.Actor("upper").joints.size(), 14u);
  EXPECT_EQ(spec_.physics_steps_per_control(), 4);
}

TEST_F(G1Spec, FalconGainsByJoint) {
  const GainSet& gains = spec_.Gains("falcon");
  EXPECT_EQ(&gains, &spec_.Gains());
  const struct {
    const char* joint;
    double kp, kd;
  } rows[] = {{"hip_pitch", 100, 2.5},
              {"hip_roll", 100, 2.5},
              {"hip_yaw", 100, 2.5},
              {"knee", 200, 5},
              {"ankle_pitch", 20, 0.2},
              {"ankle_roll", 20, 0.1},
              {"shoulder_pitch", 90, 2},
              {"shoulder_roll", 60, 1},
              {"shoulder_yaw", 20, 0.4},
              {"elbow", 60, 1},
              {"wrist_roll", 4, 0.2},
              {"wrist_pitch", 4, 0.2},
              {"wrist_yaw", 4, 0.2}};
  for (const auto& row : rows) {
    for (const char* side : {"left_", "right_"}) {
      const int i = spec_.Joint(std::string(side) + row.joint + "_joint");
      EXPECT_EQ(gains.kp[i], row.kp) << row.joint;
      EXPECT_EQ(gains.kd[i], row.kd) << row.joint;
    }
  }
  for (const char* joint : {"waist_yaw_joint", "waist_roll_joint", "waist_pitch_joint"}) {
    EXPECT_EQ(gains.kp[spec_.Joint(joint)], 300);
    EXPECT_EQ(gains.kd[spec_.Joint(joint)], 5);
  }
  EXPECT_TRUE((gains.action_scale.array() == 0.25).all());
}

TEST_F(G1Spec, PosesAreMirrorSymmetric) {
  for (const Pose& pose : spec_.poses) {
    for (const char* limb : {"left_leg", "left_arm"}) {
      for (int i : spec_.Group(limb).joints) {
        const std::string& left = spec_.joints[i];
        // x and z axes turn the other way in a mirror
        const bool flips =
            left.find("roll") != std::string::npos || left.find("yaw") != std::string::npos;
        const int j = spec_.Joint("right" + left.substr(4));
        EXPECT_EQ(pose.q[i], flips ? -pose.q[j] : pose.q[j]) << pose.name << " " << left;
      }
    }
  }
}

// Each name is looked for among the others.
TEST(RobotSpec, NamesWithoutEndAreRefused) {
  std::string joints, groups;
  for (int k = 0; k < 65; ++k) joints += "j" + std::to_string(k) + ", ";
  for (int k = 0; k < 20'000; ++k) groups += "\n  g" + std::to_string(k) + ": [\"*_hip\"]";
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string yaml = kTinyBipedYaml;
    return yaml.replace(yaml.find(from), from.size(), to);
  };
  EXPECT_NE(ErrorOf(changed("[r_knee, l_knee", "[" + joints + "r_knee, l_knee"))
                .find("joints: 69 joints are more than 64"),
            std::string::npos);
  const std::string hips = "hips: [\"*_hip\"]";
  const std::string error = ErrorOf(changed(hips, hips + groups));
  EXPECT_NE(error.find("groups: 20003 names are more than 1000"), std::string::npos) << error;
}

// Tried one start after the other, 24 stars against a name of 60 letters take years.
TEST(RobotSpec, APatternOfManyStarsIsMatchedAtOnce) {
  std::string yaml = kTinyBipedYaml, stars;
  for (int k = 0; k < 24; ++k) stars += "*_";
  const std::string from = "hips: [\"*_hip\"]", to = "hips: [\"" + stars + "*_hip\"]";
  yaml.replace(yaml.find(from), from.size(), to);
  EXPECT_NE(ErrorOf(yaml).find("matches no joint"), std::string::npos);
  // long names of the pattern's letters are the worst case
  std::string name;
  for (int k = 0; k < 200; ++k) name += "_a";
  for (std::size_t at = 0; (at = yaml.find("l_knee", at)) != std::string::npos;) {
    yaml.replace(at, 6, name);
    at += name.size();
  }
  EXPECT_NE(ErrorOf(yaml).find("matches no joint"), std::string::npos);
  // and what stars mean has not changed
  yaml = kTinyBipedYaml;
  yaml.replace(yaml.find(from), from.size(), "hips: [\"*_**hi*\"]");
  EXPECT_EQ(ParseRobotSpec(yaml, "r.yaml").Group("hips").joints, (std::vector<int>{2, 3}));
}

}  // namespace
}  // namespace silc
