// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/batch_model.h"

#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "silc/base/error.h"
#include "silc/physics/test_models.h"

namespace silc {
namespace {

using physics_test::FromText;
using physics_test::G1;

std::string Refusal(const std::string& mjcf, const BatchModelOptions& options = {}) {
  try {
    CompileBatchModel(*FromText(mjcf), options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// all offenders at once, each with its name and the reason
TEST(BatchModel, RefusesByName) {
  const std::string text = Refusal(R"(
    <mujoco>
      <option integrator="RK4" cone="elliptic" density="1"/>
      <worldbody>
        <geom name="floor" type="plane" size="0 0 1"/>
        <geom name="step" type="box" size="1 1 0.1"/>
        <body name="a">
          <freejoint/>
          <geom name="drum" type="cylinder" size="0.1 0.1"/>
          <geom name="peg" type="sphere" size="0.1" condim="6"/>
          <body name="b" gravcomp="1">
            <joint name="neck" type="ball"/>
            <geom size="0.1"/>
            <body><joint name="nod" axis="0 1 0"/><geom size="0.1"/></body>
          </body>
        </body>
      </worldbody>
      <equality><joint name="lock" joint1="nod"/></equality>
      <tendon><fixed name="string"><joint joint="nod" coef="1"/></fixed></tendon>
    </mujoco>)");
  for (const char* part : {"option integrator: only Euler and implicitfast",
                           "option cone: only pyramidal",
                           "density",
                           "body 'b': gravity compensation",
                           "joint 'neck': ball joints",
                           "equality 'lock'",
                           "tendon 'string'",
                           "--backend mujoco"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

TEST(BatchModel, RefusesShapesThatCannotTouchTheGround) {
  const std::string text = Refusal(R"(
    <mujoco><worldbody>
      <geom name="floor" type="plane" size="0 0 1"/>
      <geom name="step" type="box" size="1 1 0.1"/>
      <body><freejoint/>
        <geom name="drum" type="cylinder" size="0.1 0.1"/>
        <geom name="peg" type="sphere" size="0.1" condim="6"/>
      </body>
    </worldbody></mujoco>)");
  for (const char* part : {"geom 'drum': only spheres, capsules and boxes",
                           "geom 'peg': contacts with condim 6",
                           "static geom 'step'"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

TEST(BatchModel, SuggestsNamesOfSitesAndBodies) {
  try {
    CompileBatchModel(*G1(), {.feet = {"left_ankle_rol_link"}, .imus = {"imu_in_pelvic"}});
    FAIL();
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("left_ankle_roll_link"), std::string::npos) << text;
    EXPECT_NE(text.find("imu_in_pelvis"), std::string::npos) << text;
  }
}

// welded bodies share a link, and the link has their mass
TEST(BatchModel, LinksCarryTheWholeMass) {
  const auto m = G1();
  const BatchModel model = CompileBatchModel(*m);
  EXPECT_EQ(model.step.num_links, 30);
  EXPECT_EQ(model.step.num_actuators, 29);
  const std::vector<double> inertia = LinkInertias(model);
  double sum = 0;
  for (int l = 0; l < model.step.num_links; ++l) sum += inertia[10 * l];
  EXPECT_NEAR(sum, m->body_subtreemass[0], 1e-12);

  // twice the mass everywhere: twice the inertia, same centres
  std::vector<double> mass;
  for (const BatchBody& body : model.bodies) mass.push_back(2 * body.mass);
  const std::vector<double> heavy = LinkInertias(model, mass);
  for (int l = 0; l < model.step.num_links; ++l) {
    for (int k = 0; k < 10; ++k) {
      const bool centre = k >= 1 && k <= 3;
      EXPECT_NEAR(heavy[10 * l + k], (centre ? 1 : 2) * inertia[10 * l + k], 1e-12);
    }
  }
}

// depth first: the subtree of a link is the run of numbers after it, on which chains rely
TEST(BatchModel, NumbersLinksDepthFirst) {
  for (const auto& named : physics_test::AllModels()) {
    const BatchModel model = CompileBatchModel(*named.model);
    for (int b = 0; b < model.step.num_links; ++b) {
      const LinkConstants<double>& link = model.step.link[b];
      EXPECT_LT(link.parent, b);
      if (link.num_children == 1) {
        EXPECT_EQ(link.first_child, b + 1) << named.name;
      }
      int children = 0;
      for (int c = link.first_child; c >= 0; c = model.step.link[c].next_sibling) {
        EXPECT_EQ(model.step.link[c].parent, b);
        ++children;
      }
      EXPECT_EQ(children, link.num_children);
    }
  }
}

// Places at the ends of the arrays; that no field is left out is for the compiler (float_model.cc).
TEST(ToFloat, RoundsNumbersAndKeepsCounts) {
  StepModel<double> step = {};
  step.num_links = 3;
  step.frame[kMaxFrames - 1].p_LS[2] = 0.1;
  step.link[kMaxLinks - 1].joint = JointKind::kSlide;
  step.link[kMaxLinks - 1].limit.margin = 1.0 / 3;
  step.contact[kMaxContacts - 1].row.power = 5;
  const StepModel<float> single = ToFloat(step);
  EXPECT_EQ(single.num_links, 3);
  EXPECT_EQ(single.frame[kMaxFrames - 1].p_LS[2], 0.1f);
  EXPECT_EQ(single.link[kMaxLinks - 1].joint, JointKind::kSlide);
  EXPECT_EQ(single.link[kMaxLinks - 1].limit.margin, 1.0f / 3);
  EXPECT_EQ(single.contact[kMaxContacts - 1].row.power, 5);

  PairModel<double> pairs = {};
  pairs.pair[kMaxPairs - 1].kind = 7;
  pairs.kind[kMaxPairKinds - 1].row.fall = 0.1;
  EXPECT_EQ(ToFloat(pairs).pair[kMaxPairs - 1].kind, 7);
  EXPECT_EQ(ToFloat(pairs).kind[kMaxPairKinds - 1].row.fall, 0.1f);
}

}  // namespace
}  // namespace silc
