// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/step_contacts.h"

/// (D2) From the state to poses, velocities, forces and rows of every link.
namespace silc::SILC_KERNEL {

/// Turns a frame about its own axis k by the angle with sine s and cosine c; returns the axis. A
/// template: columns picked at run time would have to live in memory.
template <int k, class Real>
SILC_HD Vec3<Real> Turn(Rotation<Real>* R, Real s, Real c) {
  constexpr int i = (k + 1) % 3, j = (k + 2) % 3;
  const Vec3<Real> y = R->col[i], z = R->col[j];
  R->col[i] = y * c + z * s;
  R->col[j] = z * c - y * s;
  return R->col[k];
}

/// (D2) Moves a frame from link b's parent to link b and writes the joint's motion S. On entry the
/// frame is that of link `held`, which is the parent unless the tree branches there.
template <class Real, class Work, class T>
SILC_HD void PlaceLink(const StepModel<T>& model,
                       const RobotData<Real>& robot,
                       int b,
                       int held,
                       Real position,
                       Real qd,
                       Work& work,
                       LinkFrame<Real>* at) {
  const Real zero(0);
  const LinkConstants<T>& link = model.link[b];
  LinkFrame<Real>& frame = *at;
  if (link.parent < 0) {
    // O: the free body's origin, or the root's place at zero joint position
    frame.p = {zero, zero, zero};
    frame.v = {{zero, zero, zero}, {zero, zero, zero}};
    frame.bias = {{zero, zero, zero},
                  {Real(-model.gravity[0]), Real(-model.gravity[1]), Real(-model.gravity[2])}};
  }
  if (link.joint == JointKind::kFree) {
    const int k = link.qpos + 3, v = link.dof + 3;
    Real q0 = robot.qpos[k], q1 = robot.qpos[k + 1], q2 = robot.qpos[k + 2], q3 = robot.qpos[k + 3];
    const Real s = Real(1) / Sqrt(q0 * q0 + q1 * q1 + q2 * q2 + q3 * q3);
    q0 = q0 * s;
    q1 = q1 * s;
    q2 = q2 * s;
    q3 = q3 * s;
    const Real one(1), two(2);
    frame.R.col[0] = {
        one - two * (q2 * q2 + q3 * q3), two * (q1 * q2 + q0 * q3), two * (q1 * q3 - q0 * q2)};
    frame.R.col[1] = {
        two * (q1 * q2 - q0 * q3), one - two * (q1 * q1 + q3 * q3), two * (q2 * q3 + q0 * q1)};
    frame.R.col[2] = {
        two * (q1 * q3 + q0 * q2), two * (q2 * q3 - q0 * q1), one - two * (q1 * q1 + q2 * q2)};
    frame.v.ang = frame.R.col[0] * robot.qvel[v] + frame.R.col[1] * robot.qvel[v + 1] +
                  frame.R.col[2] * robot.qvel[v + 2];
    return;
  }
  if (link.parent < 0) {
    SILC_UNROLL
    for (int k = 0; k < 3; ++k) {
      frame.R.col[k] = {Real(link.R_PL[k]), Real(link.R_PL[3 + k]), Real(link.R_PL[6 + k])};
    }
  } else {
    if (Work::Team::Remote(b)) {
      frame = Work::Team::template Frame<Real>(link.parent);
    } else if (link.parent != held) {
      frame = work.frame[link.parent];
    }
    frame.p = frame.p + Rotate(frame.R, link.p_PL[0], link.p_PL[1], link.p_PL[2]);
    if (link.rotated) {
      const Rotation<Real> R = frame.R;
      SILC_UNROLL
      for (int k = 0; k < 3; ++k) {
        frame.R.col[k] = Rotate(R, link.R_PL[k], link.R_PL[3 + k], link.R_PL[6 + k]);
      }
    }
  }
  auto& w = work.link[b];
  const Real q = position - Real(link.q0);
  if (link.joint == JointKind::kHinge) {
    Real s, c;
    SinCos(q, &s, &c);
    Vec3<Real> axis;
    if (link.axis == 0) {
      axis = Turn<0>(&frame.R, s, c);
    } else if (link.axis == 1) {
      axis = Turn<1>(&frame.R, s, c);
    } else {
      axis = Turn<2>(&frame.R, s, c);
    }
    w.S = {axis, Cross(frame.p, axis)};
  } else {
    const Vec3<Real> axis = frame.R.col[link.axis];
    frame.p = frame.p + axis * q;
    w.S = {{zero, zero, zero}, axis};
  }
  const Spatial<Real> joint_v = w.S * qd;
  frame.v = frame.v + joint_v;
  frame.bias = frame.bias + CrossMotion(frame.v, joint_v);
}

/// What a link reads of the robot's memory. Read at once: on a GPU each read is a wait of hundreds
/// of cycles, and reads that are under way together are one wait.
template <class Real>
struct LinkInputs {
  Real q, qd, armature, target, previous_target, kp, kd, feedforward;
  Real inertia[10];
};
template <class Real, class T>
SILC_HD LinkInputs<Real> ReadLink(const StepModel<T>& model, const RobotData<Real>& robot, int b) {
  const LinkConstants<T>& link = model.link[b];
  LinkInputs<Real> in;
  in.q = robot.qpos[link.qpos];
  in.qd = robot.qvel[link.dof];
  in.armature = robot.armature[b];
  if (link.actuator >= 0) {
    const int u = link.actuator;
    in.target = robot.target[u];
    in.previous_target = robot.previous_target[u];
    in.kp = robot.kp[u];
    in.kd = robot.kd[u];
    in.feedforward = robot.feedforward[u];
  }
  SILC_UNROLL
  for (int i = 0; i < 10; ++i) in.inertia[i] = robot.inertia[10 * b + i];
  return in;
}

/// (D2) Poses, velocities, bias forces, servo torques, limits and contacts, root to leaves.
template <class Real, class Work, class T>
SILC_HD_NOINLINE void Kinematics(const StepModel<T>& model,
                                 const RobotData<Real>& robot,
                                 int substep,
                                 Work& work) {
  using Team = typename Work::Team;
  const Real zero(0);
  const MaskOf<Real> awake = Not(robot.fault[0] > zero);
  const MaskOf<Real> delayed = Real(T(substep)) < robot.delay[0];
  LinkFrame<Real> frame = {};  // carried down a chain
  int held = -1, root = -1;
  Ground<Real> ground = {};
  work.num_limits = 0;
  work.num_active = 0;
  for (auto walk = Team::Down(model); walk.Next(); held = walk.link) {
    const int b = walk.link;
    const LinkConstants<T>& link = model.link[b];
    LinkWork<Real>& w = work.link[b];
    const LinkInputs<Real> in = ReadLink(model, robot, b);
    PlaceLink<Real>(model, robot, b, held, in.q, in.qd, work, &frame);
    Team::PutFrame(b, frame);
    w.tau = zero;
    if (model.implicit_damping) w.damping = Real(link.damping);
    w.diagonal = in.armature;
    bool at_limit = false;
    if (link.joint != JointKind::kFree) {
      // passive forces, and the servo (S1)
      w.tau = Real(link.stiffness) * (Real(link.spring_ref) - in.q) - Real(link.damping) * in.qd;
      if (link.actuator >= 0) {
        const int u = link.actuator;
        const Real low(model.actuator[u].low), high(model.actuator[u].high);
        const Real target = Select(delayed, in.previous_target, in.target);
        const Real wish = in.kp * (target - in.q) - in.kd * in.qd + in.feedforward;
        const Real torque = Clamp(wish, low, high);
        robot.torque[u] = torque;
        w.tau = w.tau + torque;
        // a saturated servo does not answer to velocity
        if (model.implicit_kd) {
          w.damping = w.damping + Select((low < wish) & (wish < high), in.kd, zero);
        }
      }
      at_limit = FindLimit<Real>(model, b, in.q, in.qd, awake, work);
    }
    if (link.keep_frame) work.frame[b] = frame;
    const int first_contact = work.num_active;
    if (link.num_contacts > 0) {
      if (link.root != root) {
        root = link.root;
        ground = ReadGround(model, robot, root);
      }
      FindContacts<Real>(model, b, frame, ground, awake, work);
    }
    work.rows[b] = LinkRows::Make(first_contact, work.num_active, at_limit);

    // inertia about O in world axes, and the force that `bias` takes
    const Real m = in.inertia[0];
    const Vec3<Real> c = frame.p + frame.R.col[0] * in.inertia[1] + frame.R.col[1] * in.inertia[2] +
                         frame.R.col[2] * in.inertia[3];
    const Real Ixx = in.inertia[4], Iyy = in.inertia[5], Izz = in.inertia[6], Ixy = in.inertia[7],
               Ixz = in.inertia[8], Iyz = in.inertia[9];
    const Vec3<Real>&x = frame.R.col[0], &y = frame.R.col[1], &z = frame.R.col[2];
    const Vec3<Real> Rx = x * Ixx + y * Ixy + z * Ixz;  // columns of R I
    const Vec3<Real> Ry = x * Ixy + y * Iyy + z * Iyz;
    const Vec3<Real> Rz = x * Ixz + y * Iyz + z * Izz;
    RigidInertia<Real> G;
    G.m = m;
    G.h = c * m;
    const Real hxx = G.h.x * c.x, hyy = G.h.y * c.y, hzz = G.h.z * c.z;
    G.I.xx = Rx.x * x.x + Ry.x * y.x + Rz.x * z.x + hyy + hzz;
    G.I.yy = Rx.y * x.y + Ry.y * y.y + Rz.y * z.y + hxx + hzz;
    G.I.zz = Rx.z * x.z + Ry.z * y.z + Rz.z * z.z + hxx + hyy;
    G.I.xy = Rx.x * x.y + Ry.x * y.y + Rz.x * z.y - G.h.x * c.y;
    G.I.xz = Rx.x * x.z + Ry.x * y.z + Rz.x * z.z - G.h.x * c.z;
    G.I.yz = Rx.y * x.z + Ry.y * y.z + Rz.y * z.z - G.h.y * c.z;
    w.G = G;
    w.f = G * frame.bias + CrossForce(frame.v, G * frame.v);
    if (link.joint == JointKind::kFree && link.damping > 0) {
      const Vec3<Real> v = {
          robot.qvel[link.dof], robot.qvel[link.dof + 1], robot.qvel[link.dof + 2]};
      w.f = w.f + Spatial<Real>{frame.v.ang, v} * Real(link.damping);
    }
  }
  for (int i = 0; i < model.num_pushes; ++i) {
    const PushConstants<T>& push = model.push[i];
    if (!Team::Owns(push.link)) continue;
    const MaskOf<Real> on = Real(T(substep)) < robot.wrench_steps[i];
    if (!Any(on)) continue;
    const LinkFrame<Real>& at = work.frame[push.link];
    const Vec3<Real> r = at.p + Rotate(at.R, push.p_LC[0], push.p_LC[1], push.p_LC[2]);
    const int k = 6 * i;
    const Vec3<Real> force = {Select(on, robot.wrench[k], zero),
                              Select(on, robot.wrench[k + 1], zero),
                              Select(on, robot.wrench[k + 2], zero)};
    const Vec3<Real> moment = {Select(on, robot.wrench[k + 3], zero),
                               Select(on, robot.wrench[k + 4], zero),
                               Select(on, robot.wrench[k + 5], zero)};
    LinkWork<Real>& w = work.link[push.link];
    w.f = w.f - Spatial<Real>{moment + Cross(r, force), force};
  }
}

}  // namespace silc::SILC_KERNEL
