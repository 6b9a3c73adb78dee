// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/test_models.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "silc/base/rng.h"
#include "silc/base/test_paths.h"
#include "silc/physics/batch_model.h"

namespace silc::physics_test {

ModelPtr FromText(const std::string& mjcf) {
  char error[1000] = "";
  mjSpec* spec = mj_parseXMLString(mjcf.c_str(), nullptr, error, sizeof error);
  mjModel* m = spec ? mj_compile(spec, nullptr) : nullptr;
  if (!m) {
    std::fprintf(stderr, "test model: %s\n", spec ? mjs_getError(spec) : error);
    std::abort();
  }
  mj_deleteSpec(spec);
  return ModelPtr(m);
}

ModelPtr G1() {
  char error[1000] = "";
  mjSpec* spec = mj_parseXML(SourcePath("robots/g1/g1.xml").c_str(), nullptr, error, sizeof error);
  if (!spec) {
    std::fprintf(stderr, "robots/g1/g1.xml: %s\n", error);
    std::abort();
  }
  mjsGeom* floor = mjs_addGeom(mjs_findBody(spec, "world"), nullptr);
  floor->type = mjGEOM_PLANE;
  floor->size[0] = floor->size[1] = 0;
  floor->size[2] = 1;
  mjModel* m = mj_compile(spec, nullptr);
  if (!m) {
    std::fprintf(stderr, "robots/g1/g1.xml: %s\n", mjs_getError(spec));
    std::abort();
  }
  mj_deleteSpec(spec);
  return ModelPtr(m);
}

const char kHumanoid[] = R"(
<mujoco>
  <compiler angle="degree" autolimits="true"/>
  <option timestep="0.004" impratio="2"/>
  <default>
    <geom condim="3" friction="0.9" solref="0.015 1.1" solimp="0.85 0.97 0.004 0.4 3"/>
    <joint armature="0.02" damping="1.5" solreflimit="0.03 0.9" solimplimit="0.8 0.98 0.05"/>
  </default>
  <worldbody>
    <body euler="3 -4 0"><geom name="floor" type="plane" size="0 0 1" euler="0 0 20" friction="0.4" condim="1" solmix="3"/></body>
    <body name="pelvis" pos="0 0 1.05">
      <freejoint/>
      <geom type="box" size="0.08 0.16 0.1" mass="11"/>
      <site name="imu" pos="0.02 0.01 0.05" euler="10 20 30"/>
      <body name="chest" pos="0.01 0 0.15">
        <joint name="abdomen_z" axis="0 0 1" range="-45 45"/>
        <joint name="abdomen_y" axis="0 1 0" pos="0 0 -0.03" range="-40 60"/>
        <geom type="capsule" size="0.11" fromto="0 -0.1 0.15 0 0.1 0.15" mass="18"/>
        <body name="head" pos="0 0 0.42"><geom type="sphere" size="0.1" mass="4.5"/></body>
        <body name="upper_arm_l" pos="0 0.22 0.22" euler="10 0 0">
          <joint name="shoulder_l" axis="1 2 0.5" pos="0 -0.02 0.01" range="-90 60"/>
          <geom type="capsule" size="0.045" fromto="0 0 0 0 0.05 -0.28" mass="2.4"/>
          <body name="forearm_l" pos="0 0.05 -0.28">
            <joint name="elbow_l" axis="0 -1 0" range="-120 10"/>
            <geom type="capsule" size="0.035" fromto="0 0 0 0.05 0 -0.25" mass="1.6"/>
          </body>
        </body>
        <body name="upper_arm_r" pos="0 -0.22 0.22" euler="-10 0 0">
          <joint name="shoulder_r" axis="1 -2 0.5" pos="0 0.02 0.01" range="-90 60"/>
          <geom type="capsule" size="0.045" fromto="0 0 0 0 -0.05 -0.28" mass="2.4"/>
        </body>
      </body>
      <body name="thigh_l" pos="0 0.11 -0.09">
        <joint name="hip_x_l" axis="1 0 0" range="-30 30"/>
        <joint name="hip_z_l" axis="0 0 1" range="-40 40"/>
        <joint name="hip_y_l" axis="0 1 0" range="-110 30"/>
        <geom type="capsule" size="0.07" fromto="0 0 0 0 0 -0.38" mass="7.5"/>
        <body name="shin_l" pos="0 0 -0.42">
          <joint name="knee_l" axis="0 1 0" pos="0 0 0.02" range="-2 140"/>
          <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.36" mass="3.6"/>
          <body name="foot_l" pos="0 0 -0.42" euler="0 5 0">
            <joint name="ankle_y_l" axis="0 1 0.2" range="-50 50"/>
            <joint name="ankle_x_l" axis="1 0 0" range="-30 30" damping="0"/>
            <geom type="box" size="0.12 0.05 0.02" pos="0.05 0 -0.04" mass="1.1" friction="0.7" priority="1"/>
          </body>
        </body>
      </body>
      <body name="thigh_r" pos="0 -0.11 -0.09">
        <joint name="hip_x_r" axis="1 0 0" range="-30 30"/>
        <joint name="hip_y_r" axis="0 1 0" range="-110 30"/>
        <geom type="capsule" size="0.07" fromto="0 0 0 0 0 -0.38" mass="7.5"/>
        <body name="shin_r" pos="0 0 -0.42">
          <joint name="knee_r" axis="0 1 0" range="-2 140"/>
          <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.36" mass="3.6"/>
          <body name="foot_r" pos="0 0 -0.42">
            <joint name="ankle_r" axis="0 1 0" range="-50 50"/>
            <geom type="capsule" size="0.03" fromto="-0.07 0.03 -0.03 0.15 0.04 -0.03" mass="0.6"/>
            <geom type="capsule" size="0.03" fromto="-0.07 -0.03 -0.03 0.15 -0.04 -0.03" mass="0.6"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="hip_y_l" gear="80" ctrlrange="-1 1"/>
    <motor joint="knee_l" gear="60" ctrlrange="-1 1"/>
    <motor joint="hip_y_r" gear="80" ctrlrange="-1 1"/>
    <motor joint="knee_r" gear="60" ctrlrange="-1 1"/>
    <motor joint="abdomen_y" gear="70" ctrlrange="-1 1"/>
    <motor joint="shoulder_l" gear="20" ctrlrange="-1 1"/>
  </actuator>
</mujoco>)";

const char kQuadruped[] = R"(
<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.003" integrator="implicitfast"/>
  <default>
    <joint armature="0.01" damping="0.4" margin="0.02"/>
    <position kp="40" kv="1.2" forcerange="-20 20"/>
    <default class="abad"><joint axis="1 0 0" range="-0.8 0.8"/></default>
    <default class="hip"><joint axis="0 1 0" range="-1.2 2.4"/></default>
    <default class="knee"><joint axis="0 1 0" range="-2.6 -0.6"/></default>
    <default class="foot"><geom type="sphere" size="0.022" mass="0.06" friction="1.1" margin="0.004"/></default>
    <default class="bone"><geom type="capsule" size="0.015" condim="1" contype="0" conaffinity="0"/></default>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="trunk" pos="0 0 0.32">
      <freejoint/>
      <geom name="belly" type="box" size="0.19 0.05 0.055" mass="6.9" condim="1" contype="2" conaffinity="2"/>
      <geom name="keel" type="capsule" size="0.03" fromto="-0.15 0 -0.05 0.15 0 -0.05" mass="0.3" condim="1" priority="1"/>
      <site name="imu" pos="-0.02 0 0.01"/>
      <body name="fl_hip" pos="0.19 0.05 0"><joint name="fl_abad" class="abad"/>
        <geom class="bone" fromto="0 0 0 0 0.06 0" mass="0.6"/>
        <body pos="0 0.06 0"><joint name="fl_hip" class="hip"/>
          <geom class="bone" fromto="0 0 0 0 0 -0.2" mass="0.9"/>
          <body pos="0 0 -0.2"><joint name="fl_knee" class="knee" ref="-1.5"/>
            <geom class="bone" fromto="0 0 0 0.15 0 -0.14" mass="0.2"/>
            <geom class="foot" pos="0.15 0 -0.14"/></body></body></body>
      <body name="fr_hip" pos="0.19 -0.05 0"><joint name="fr_abad" class="abad"/>
        <geom class="bone" fromto="0 0 0 0 -0.06 0" mass="0.6"/>
        <body pos="0 -0.06 0"><joint name="fr_hip" class="hip"/>
          <geom class="bone" fromto="0 0 0 0 0 -0.2" mass="0.9"/>
          <body pos="0 0 -0.2"><joint name="fr_knee" class="knee" ref="-1.5"/>
            <geom class="bone" fromto="0 0 0 0.15 0 -0.14" mass="0.2"/>
            <geom class="foot" pos="0.15 0 -0.14"/></body></body></body>
      <body name="rl_hip" pos="-0.19 0.05 0"><joint name="rl_abad" class="abad"/>
        <geom class="bone" fromto="0 0 0 0 0.06 0" mass="0.6"/>
        <body pos="0 0.06 0"><joint name="rl_hip" class="hip"/>
          <geom class="bone" fromto="0 0 0 0 0 -0.2" mass="0.9"/>
          <body pos="0 0 -0.2"><joint name="rl_knee" class="knee" ref="-1.5"/>
            <geom class="bone" fromto="0 0 0 0.15 0 -0.14" mass="0.2"/>
            <geom class="foot" pos="0.15 0 -0.14"/></body></body></body>
      <body name="rr_hip" pos="-0.19 -0.05 0"><joint name="rr_abad" class="abad"/>
        <geom class="bone" fromto="0 0 0 0 -0.06 0" mass="0.6"/>
        <body pos="0 -0.06 0"><joint name="rr_hip" class="hip"/>
          <geom class="bone" fromto="0 0 0 0 0 -0.2" mass="0.9"/>
          <body pos="0 0 -0.2"><joint name="rr_knee" class="knee" ref="-1.5"/>
            <geom class="bone" fromto="0 0 0 0.15 0 -0.14" mass="0.2"/>
            <geom class="foot" pos="0.15 0 -0.14"/></body></body></body>
    </body>
  </worldbody>
  <actuator>
    <position joint="fl_abad"/><position joint="fl_hip"/><position joint="fl_knee"/>
    <position joint="fr_abad"/><position joint="fr_hip"/><position joint="fr_knee"/>
    <position joint="rl_abad"/><position joint="rl_hip"/><position joint="rl_knee"/>
    <position joint="rr_abad"/><position joint="rr_hip"/><position joint="rr_knee"/>
  </actuator>
</mujoco>)";

const char kCart[] = R"(
<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.002" gravity="0.5 -0.3 -9.6"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" friction="0.8"/>
    <body pos="0 0 0.4" euler="0.1 0 0.2">
      <geom type="box" size="0.05 0.05 0.05" contype="0" conaffinity="0"/>
      <body name="cart" pos="0 0 0.1">
        <joint name="x" type="slide" axis="1 0 0" range="-1 1" stiffness="30" springref="0.2" damping="3" frictionloss="4"/>
        <joint name="z" type="slide" axis="0 0.6 0.8" range="-0.3 0.3" stiffness="800" damping="20"/>
        <geom type="box" size="0.2 0.1 0.05" mass="5" euler="0 0.2 0"/>
        <site name="imu" pos="0.1 0 0" euler="0.3 0 0"/>
        <body name="pole" pos="0.05 0 0.05">
          <joint name="swing" axis="0 1 0" frictionloss="0.3" armature="0.05" range="-2 2" solreffriction="0.03 1"/>
          <geom type="capsule" size="0.03" fromto="0 0 0 0 0 0.5" mass="1"/>
          <body name="rod" pos="0 0 0.5">
            <joint name="extend" type="slide" axis="0.1 0 1" range="-0.1 0.3" stiffness="50" frictionloss="1" solimpfriction="0.95 0.99 0.01"/>
            <joint name="twist" axis="0 0 1" stiffness="2" frictionloss="0.1" damping="0.2"/>
            <geom type="sphere" size="0.06" pos="0.05 0 0.1" mass="0.7" solref="-3000 -60"/>
          </body>
        </body>
        <body name="hook" pos="-0.2 0 0">
          <joint name="hook" axis="0 1 0" damping="0.5" range="-1.5 1.5"/>
          <geom type="capsule" size="0.02" fromto="0 0 0 -0.3 0 -0.2" mass="0.8"/>
        </body>
      </body>
    </body>
    <body name="ball" pos="0.6 0.5 0.1">
      <joint type="free" armature="0.01" damping="0.1"/>
      <geom type="sphere" size="0.1" mass="0.5" pos="0.01 0 0"/>
    </body>
  </worldbody>
  <actuator>
    <motor joint="x" ctrlrange="-40 40"/>
    <position joint="swing" kp="20" kv="1" forcerange="-8 8"/>
  </actuator>
</mujoco>)";

std::vector<NamedModel> AllModels() {
  std::vector<NamedModel> models;
  models.push_back({"g1", G1()});
  ModelPtr rubbing = G1();
  for (int i = 6; i < rubbing->nv; ++i) rubbing->dof_frictionloss[i] = 0.3;
  models.push_back({"g1_friction_loss", std::move(rubbing)});
  models.push_back({"humanoid", FromText(kHumanoid)});
  models.push_back({"quadruped", FromText(kQuadruped)});
  models.push_back({"cart", FromText(kCart)});
  // contacts between two moving bodies are not made by the stepper, and the tests do not ask for
  // them
  for (NamedModel& named : models) RemoveSelfCollision(named.model.get());
  return models;
}

void RandomState(const mjModel& m, int kind, unsigned seed, mjData* d) {
  Rng rng(seed, static_cast<unsigned>(kind));
  mj_resetData(&m, d);
  if (m.nkey > 0 && rng.Uniform() < 0.5) mj_resetDataKeyframe(&m, d, 0);
  for (int j = 0; j < m.njnt; ++j) {
    const int q = m.jnt_qposadr[j];
    if (m.jnt_type[j] == mjJNT_FREE) {
      double quat[4] = {1, 0, 0, 0};
      const double tilt = kind == 1 ? 0.03 : kind == 4 ? 0.3 : 10;
      for (double& x : quat) x += tilt * rng.Normal();
      mju_normalize4(quat);
      mju_copy4(d->qpos + q + 3, quat);
      for (int k = 0; k < 2; ++k) d->qpos[q + k] += rng.Normal();
      if (kind == 0) d->qpos[q + 2] += 1 + rng.Uniform();
      if (kind == 1 || kind == 4) d->qpos[q + 2] -= 0.01 * rng.Uniform();
      if (kind == 2) d->qpos[q + 2] = rng.Uniform(0.02, 0.4);
    } else {
      const bool limited = m.jnt_limited[j];
      const double low = limited ? m.jnt_range[2 * j] : -1,
                   high = limited ? m.jnt_range[2 * j + 1] : 1;
      if (kind == 1 || kind == 4) {
        d->qpos[q] += 0.05 * rng.Normal();
      } else {
        d->qpos[q] = rng.Uniform(low, high);
      }
      if (kind == 3 && limited && rng.Uniform() < 0.3) {
        const double beyond = 0.01 * rng.Uniform(-1, 1) * (high - low);
        d->qpos[q] = rng.Uniform() < 0.5 ? low - beyond : high + beyond;
      }
    }
  }
  const double speed = kind == 1 ? 0.3 : 2;
  for (int i = 0; i < m.nv; ++i) d->qvel[i] = speed * rng.Normal();
  for (int i = 0; i < m.nu; ++i) d->ctrl[i] = 0.5 * rng.Normal();
  for (int i = 0; i < m.nq; ++i) d->qpos[i] = static_cast<float>(d->qpos[i]);
  for (int i = 0; i < m.nv; ++i) d->qvel[i] = static_cast<float>(d->qvel[i]);
  for (int i = 0; i < m.nu; ++i) d->ctrl[i] = static_cast<float>(d->ctrl[i]);
  // some states start from a solver guess as in a rollout, some from nothing
  for (int i = 0; i < m.nv; ++i) {
    d->qacc_warmstart[i] = static_cast<float>(seed % 2 ? 20 * rng.Normal() : 0);
  }
}

}  // namespace silc::physics_test
