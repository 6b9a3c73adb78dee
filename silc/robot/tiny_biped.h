// SPDX-License-Identifier: Apache-2.0
#pragma once

// A second humanoid for tests, as unlike the G1 as this module allows: four joints listed in
// another order than the MJCF's, position actuators, capsule feet, no hands, an extra body before
// the base.

#include <filesystem>
#include <random>
#include <string>

#include "silc/base/file.h"

namespace silc {

inline const std::string kTinyBipedMjcf = R"(
<mujoco>
  <worldbody>
    <body name="crate" pos="3 0 0.1">
      <geom name="crate" type="box" size="0.1 0.1 0.1"/>
    </body>
    <body name="trunk" pos="0 0 1">
      <freejoint/>
      <geom type="box" size="0.1 0.15 0.2" mass="10"/>
      <site name="gyro"/>
      <body name="l_thigh" pos="0 0.1 -0.2">
        <joint name="l_hip" axis="0 1 0" range="-90 90" actuatorfrcrange="-60 60"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.04" mass="2"/>
        <body name="l_shin" pos="0 0 -0.35">
          <joint name="l_knee" axis="0 1 0" range="0 120"/>
          <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03" mass="1"/>
          <geom name="l_sole" type="capsule" fromto="-0.05 0 -0.33 0.1 0 -0.33" size="0.02" mass="0.5"/>
          <geom name="l_plate" type="box" pos="0.025 0 -0.34" size="0.1 0.03 0.01" mass="0"
                contype="0" conaffinity="0"/>
          <site name="l_foot" pos="0.02 0 -0.35"/>
        </body>
      </body>
      <body name="r_thigh" pos="0 -0.1 -0.2">
        <joint name="r_hip" axis="0 1 0" range="-90 90"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.04" mass="2"/>
        <body name="r_shin" pos="0 0 -0.35">
          <joint name="r_knee" axis="0 1 0" range="0 120"/>
          <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03" mass="1"/>
          <geom name="r_sole" type="capsule" fromto="-0.05 0 -0.33 0.1 0 -0.33" size="0.02" mass="0.5"/>
          <geom name="r_plate" type="box" pos="0.025 0 -0.34" size="0.1 0.03 0.01" mass="0"
                contype="0" conaffinity="0"/>
          <site name="r_foot" pos="0.02 0 -0.35"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position joint="l_hip" kp="50" forcerange="-70 70"/>
    <position joint="l_knee" kp="50" forcerange="-40 40"/>
    <position joint="r_hip" kp="50" forcerange="-60 80"/>
    <position joint="r_knee" kp="50" forcerange="-20 20" gear="2"/>
  </actuator>
  <keyframe>
    <key name="stand" ctrl="0.1 0.2 0.3 0.4"/>
  </keyframe>
</mujoco>
)";

inline const std::string kTinyBipedYaml = R"(
version: 1
name: tiny
title: a biped made up for tests
model: tiny.xml
joints: [r_knee, l_knee, r_hip, l_hip]
groups:
  hips: ["*_hip"]
  knees: [l_knee, r_knee]
  all: [hips, knees]
actors:
  body: [all]
base: trunk
imus: {trunk: gyro}
feet:
  collision: capsule
  left:
    body: l_shin
    site: l_foot
    geoms: {capsule: [l_sole], plate: [l_plate]}
  right:
    body: r_shin
    site: r_foot
    geoms: {capsule: [r_sole], plate: [r_plate]}
  force: {enter: 20, leave: 10}
gains:
  soft:
    kp: {hips: 100, knees: 80}
    kd: 2
    action_scale: {"*": 0.5}
default_gains: soft
poses:
  bent:
    base_height: 0.85
    joints: {hips: -0.3, knees: 0.6}
default_pose: bent
control_period: 0.01
physics_period: 0.002
)";

/// Replaces the one occurrence of `from`.
inline std::string Changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos || text.find(from, at + 1) != std::string::npos)
    return "BAD: " + from;
  return text.replace(at, from.size(), to);
}

/// A folder with tiny.xml and robot.yaml, removed at the end of the test.
class TinyBipedFolder {
 public:
  explicit TinyBipedFolder(const std::string& yaml = kTinyBipedYaml,
                           const std::string& mjcf = kTinyBipedMjcf)
      : path_(std::filesystem::temp_directory_path() /
              ("silc_tiny_" + std::to_string(std::random_device{}()))) {
    std::filesystem::create_directory(path_);
    WriteFileAtomically(robot_yaml(), yaml);
    WriteFileAtomically((path_ / "tiny.xml").string(), mjcf);
  }
  ~TinyBipedFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TinyBipedFolder(const TinyBipedFolder&) = delete;
  TinyBipedFolder& operator=(const TinyBipedFolder&) = delete;

  std::string robot_yaml() const { return (path_ / "robot.yaml").string(); }
  std::string folder() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace silc
