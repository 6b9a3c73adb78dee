// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include <mujoco/mujoco.h>

#include "silc/physics/pair_model.h"
#include "silc/physics/step_model.h"

namespace silc {

struct BatchModelOptions {
  std::vector<std::string> feet;    // bodies whose contact force is reported
  std::vector<std::string> imus;    // sites with gyro and accelerometer
  std::vector<std::string> frames;  // sites whose pose, velocity and Jacobian may be asked for
  std::vector<std::string> pushes;  // bodies that may be pushed
  bool self_collision = false;      // make the contacts between two moving bodies
  double max_speed = 1000;          // |q̇| of a robot that has lost its mind     [rad/s or m/s]
  double max_distance = 10000;      // the same for the base's position            [m]
};

/// A body and the link it is part of.
struct BatchBody {
  std::string name;
  int link;                       // −1: does not move
  std::array<double, 3> p_LB;     // body frame in the link's frame
  std::array<double, 9> R_LB;     // row-major
  double mass;                    // [kg]
  std::array<double, 3> com;      // in the body's frame [m]
  std::array<double, 6> inertia;  // about the com, body axes: xx yy zz xy xz yz [kg·m²]
};

/// What the batch stepper knows of a model. Made once, shared by all robots, never changed.
struct BatchModel {
  StepModel<double> step;
  std::vector<BatchBody> bodies;               // MuJoCo's numbering
  std::vector<std::string> actuators;          // names, in MuJoCo's order
  std::vector<double> default_kp, default_kd;  // nu; from position actuators, 0 for motors
  std::vector<double> qpos0;                   // nq
  std::vector<std::string> feet, imus, frames, pushes;
  bool self_collision;
  PairModel<double> pairs;  // none without self_collision
};

/// Compiles an mjModel. Throws ConfigError that lists everything the stepper cannot do, each with
/// the element's name and the reason; nothing is left out of the physics in silence, with one
/// exception that has a name: contacts between two moving bodies are made only with
/// options.self_collision.
BatchModel CompileBatchModel(const mjModel& model, const BatchModelOptions& options = {});

/// Makes MuJoCo leave out the contacts the batch stepper leaves out without self-collision: those
/// between two moving bodies. Contacts of moving bodies with the static world stay as they were.
void RemoveSelfCollision(mjModel* model);

/// Ten numbers per link (mass, centre of mass in L, inertia about it: xx yy zz xy xz yz) for bodies
/// whose mass and centre of mass may differ from the model's. A changed mass scales the rotational
/// inertia with it, as if the density had changed.
///
/// @param mass  per body [kg];           empty: the model's
/// @param com   3 per body, body frame;  empty: the model's
std::vector<double> LinkInertias(const BatchModel& model,
                                 const std::vector<double>& mass = {},
                                 const std::vector<double>& com = {});

/// One robot's fields (fields.h) as the model has them: qpos0, at rest, nominal parameters and
/// gains.
std::vector<double> DefaultRow(const BatchModel& model);

/// The same constants in single precision.
StepModel<float> ToFloat(const StepModel<double>& model);
PairModel<float> ToFloat(const PairModel<double>& model);

}  // namespace silc
