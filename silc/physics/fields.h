// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/step_model.h"

namespace silc {

/// What a batch holds for each robot, one row of numbers per field. Inputs may be written between
/// two Advance() calls; results are those of the last substep (forces, torques, IMU) or of the
/// state after it (poses, velocities, Jacobians: see PhysicsBatch::UpdateKinematics).
enum class Field : int {
  // state
  kQpos,   // nq                  MuJoCo's order; free joint: position, quaternion wxyz
  kQvel,   // nv                  free joint: velocity in W, angular velocity in the body
  kQacc,   // nv                  acceleration of the last substep; the solver's warm start
  kFault,  // 1                   Fault; a faulty robot stands still until it is reset
  // control
  kTarget,          // nu                  q*                                         [rad or m]
  kPreviousTarget,  // nu                  target of the last Advance()
  kDelay,           // 1                   substeps for which the previous target stays in force
  kFeedforward,     // nu                  added to the servo inside its limits       [N·m or N]
  kKp,
  kKd,  // nu                  [N·m/rad, N·m·s/rad]
  // parameters
  kInertia,   // 10 per link         see LinkInertias()
  kArmature,  // links               [kg·m² or kg]
  kFriction,  // 1                   factor on every contact's friction         [1]
  // pushes, in the order of BatchModelOptions::pushes
  kWrench,       // 6 per push          force, moment about the body's nominal com, in W
  kWrenchSteps,  // 1 per push          substeps it still lasts
  // results of the last substep
  kTorque,     // nu                  applied by the servos                      [N·m or N]
  kFootForce,  // 3 per foot          of the ground on the robot, in W           [N]
  kImu,        // 6 per imu           gyro [rad/s], accelerometer [m/s²], site frame
  // kinematics of the present state, on request
  kCom,             // 6                   centre of mass in W and its velocity       [m, m/s]
  kPose,            // 12 per frame        position of a site in W and its rotation, row-major
  kVelocity,        // 6 per frame         linear and angular velocity of it, in W
  kComJacobian,     // 3 nv                ∂(com velocity)/∂qvel, row-major
  kFrameJacobian,   // 6 nv per frame      linear rows, then angular rows
  kStanceJacobian,  // 3 nv per foot and   J of (S5) with that foot at rest: com first, then the
                    //   point             frames, linear rows; columns of the free joint are zero
  kCount
};
inline constexpr int kNumFields = static_cast<int>(Field::kCount);

/// How much of the kinematics is asked for. The second includes the first.
enum class KinematicsLevel : int {
  kFrames,  // kCom, kPose, kVelocity, kComJacobian, kFrameJacobian
  kStance,  // kStanceJacobian
};

/// Numbers per robot.
template <class T>
int FieldWidth(const StepModel<T>& m, Field field) {
  const int nu = m.num_actuators;
  switch (field) {
    case Field::kQpos:
      return m.nq;
    case Field::kQvel:
    case Field::kQacc:
      return m.nv;
    case Field::kFault:
    case Field::kDelay:
    case Field::kFriction:
      return 1;
    case Field::kTarget:
    case Field::kPreviousTarget:
    case Field::kFeedforward:
    case Field::kKp:
    case Field::kKd:
    case Field::kTorque:
      return nu;
    case Field::kInertia:
      return 10 * m.num_links;
    case Field::kArmature:
      return m.num_links;
    case Field::kWrench:
      return 6 * m.num_pushes;
    case Field::kWrenchSteps:
      return m.num_pushes;
    case Field::kFootForce:
      return 3 * m.num_feet;
    case Field::kImu:
      return 6 * m.num_imus;
    case Field::kCom:
      return 6;
    case Field::kPose:
      return 12 * m.num_frames;
    case Field::kVelocity:
      return 6 * m.num_frames;
    case Field::kComJacobian:
      return 3 * m.nv;
    case Field::kFrameJacobian:
      return 6 * m.nv * m.num_frames;
    case Field::kStanceJacobian:
      return 3 * m.nv * m.num_feet * (1 + m.num_frames);
    case Field::kCount:
      break;
  }
  return 0;
}

/// Where each field starts in a robot's (or a group's) row, in numbers per robot.
struct FieldLayout {
  int offset[kNumFields];
  int size;
};

template <class T>
FieldLayout MakeLayout(const StepModel<T>& m) {
  FieldLayout layout = {};
  for (int f = 0; f < kNumFields; ++f) {
    layout.offset[f] = layout.size;
    layout.size += FieldWidth(m, static_cast<Field>(f));
  }
  return layout;
}

}  // namespace silc
