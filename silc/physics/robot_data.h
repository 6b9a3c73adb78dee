// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/double_support.h"
#include "silc/physics/fields.h"
#include "silc/physics/step.h"

namespace silc::SILC_KERNEL {

/// The columns of one robot (or group of lanes) whose fields lie one after the other from `memory`
/// on, neighbouring values `stride` apart.
template <class Real>
SILC_HD Column<Real> FieldColumn(const FieldLayout& layout, Real* memory, int stride, Field field) {
  return {memory + static_cast<long>(layout.offset[static_cast<int>(field)]) * stride, stride};
}

template <class Real>
SILC_HD RobotData<Real> BindRobot(const FieldLayout& layout, Real* memory, int stride) {
  RobotData<Real> r;
  const auto column = [&](Field f) { return FieldColumn(layout, memory, stride, f); };
  r.qpos = column(Field::kQpos);
  r.qvel = column(Field::kQvel);
  r.qacc = column(Field::kQacc);
  r.fault = column(Field::kFault);
  r.target = column(Field::kTarget);
  r.previous_target = column(Field::kPreviousTarget);
  r.delay = column(Field::kDelay);
  r.feedforward = column(Field::kFeedforward);
  r.kp = column(Field::kKp);
  r.kd = column(Field::kKd);
  r.inertia = column(Field::kInertia);
  r.armature = column(Field::kArmature);
  r.friction_scale = column(Field::kFriction);
  r.wrench = column(Field::kWrench);
  r.wrench_steps = column(Field::kWrenchSteps);
  r.torque = column(Field::kTorque);
  r.foot_force = column(Field::kFootForce);
  r.imu = column(Field::kImu);
  return r;
}

/// Substeps with targets held; then the targets become the previous ones and pushes run on.
template <class Real, class Work, class T>
SILC_HD void AdvanceRobot(const StepModel<T>& model,
                          const RobotData<Real>& robot,
                          const StepOptions& options,
                          int substeps,
                          StepCounts* counts,
                          Work& work) {
  const Real zero(0);
  if (All(robot.fault[0] > zero)) return;
  for (int k = 0; k < substeps; ++k) {
    Step<Real>(model, robot, options, k, k + 1 == substeps, counts, work);
  }
  using Team = typename Work::Team;
  const auto read = [&](int b) {
    const int u = model.link[b].actuator;
    return u >= 0 ? robot.target[u] : zero;
  };
  auto walk = Team::Down(model);
  Reader<Real, Team::kReadAhead> reader(read, walk.Peek());
  while (walk.Next()) {
    const Real target = reader.Take(read, walk.link, walk.Peek());
    const int u = model.link[walk.link].actuator;
    if (u >= 0) robot.previous_target[u] = target;
  }
  if (!Team::Leads()) return;
  for (int i = 0; i < model.num_pushes; ++i) {
    robot.wrench_steps[i] = Max(robot.wrench_steps[i] - Real(T(substeps)), zero);
  }
}

/// Centre of mass, poses, velocities and Jacobians of the present state (fields kCom …
/// kDoubleStanceJacobian). The centre of mass is that of the first tree.
template <class Real, class Work, class T>
SILC_HD_NOINLINE void ComputeOutputs(
    const StepModel<T>& model, const FieldLayout& layout, Real* memory, int stride, Work& work) {
  const Real zero(0), one(1);
  const RobotData<Real> robot = BindRobot(layout, memory, stride);
  const auto column = [&](Field f) { return FieldColumn(layout, memory, stride, f); };
  const Column<Real> com = column(Field::kCom), pose = column(Field::kPose),
                     velocity = column(Field::kVelocity), com_J = column(Field::kComJacobian),
                     frame_J = column(Field::kFrameJacobian),
                     stance_J = column(Field::kStanceJacobian);
  const int nv = model.nv;

  // poses of all links; the mass and first moment of their subtrees in G
  LinkFrame<Real> frame = {};
  for (int b = 0; b < model.num_links; ++b) {
    PlaceLink<Real>(model,
                    robot,
                    b,
                    b - 1,
                    robot.qpos[model.link[b].qpos],
                    robot.qvel[model.link[b].dof],
                    work,
                    &frame);
    work.frame[b] = frame;
    const int k = 10 * b;
    RigidInertia<Real>& G = work.link[b].G;
    G.m = robot.inertia[k];
    G.h = (frame.p + frame.R.col[0] * robot.inertia[k + 1] + frame.R.col[1] * robot.inertia[k + 2] +
           frame.R.col[2] * robot.inertia[k + 3]) *
          G.m;
  }
  Vec3<Real> momentum = {zero, zero, zero};
  for (int b = model.num_links - 1; b >= 0; --b) {
    const LinkConstants<T>& link = model.link[b];
    RigidInertia<Real>& G = work.link[b].G;
    const int k = 10 * b;
    if (link.root == 0) {
      const Vec3<Real> c = work.frame[b].p + work.frame[b].R.col[0] * robot.inertia[k + 1] +
                           work.frame[b].R.col[1] * robot.inertia[k + 2] +
                           work.frame[b].R.col[2] * robot.inertia[k + 3];
      momentum = momentum + AtPoint(work.frame[b].v, c) * robot.inertia[k];
    }
    if (link.parent >= 0) {
      RigidInertia<Real>& P = work.link[link.parent].G;
      P.m = P.m + G.m;
      P.h = P.h + G.h;
    }
  }
  const auto origin = [&](int root, Vec3<Real>* p, Vec3<Real>* v) {
    const LinkConstants<T>& link = model.link[root];
    if (link.joint == JointKind::kFree) {
      *p = {robot.qpos[link.qpos], robot.qpos[link.qpos + 1], robot.qpos[link.qpos + 2]};
      *v = {robot.qvel[link.dof], robot.qvel[link.dof + 1], robot.qvel[link.dof + 2]};
    } else {
      *p = {Real(link.p_PL[0]), Real(link.p_PL[1]), Real(link.p_PL[2])};
      *v = {zero, zero, zero};
    }
  };
  const auto put = [&](const Column<Real>& c, int i, int step, Vec3<Real> v) {
    c[i] = v.x;
    c[i + step] = v.y;
    c[i + 2 * step] = v.z;
  };

  // centre of mass
  Vec3<Real> p_WO, v_WO;
  origin(0, &p_WO, &v_WO);
  const Real inv_mass = one / work.link[0].G.m;
  const Vec3<Real> c_O = work.link[0].G.h * inv_mass;
  put(com, 0, 1, p_WO + c_O);
  put(com, 3, 1, v_WO + momentum * inv_mass);
  for (int b = 0; b < model.num_links; ++b) {
    const LinkConstants<T>& link = model.link[b];
    const LinkWork<Real>& w = work.link[b];
    const Vec3<Real> none = {zero, zero, zero};
    const Real share = link.root == 0 ? inv_mass : zero;
    if (link.joint == JointKind::kFree) {
      SILC_UNROLL
      for (int k = 0; k < 3; ++k) {
        const Real unit = w.G.m * share;
        const Vec3<Real> axis = {k == 0 ? unit : zero, k == 1 ? unit : zero, k == 2 ? unit : zero};
        put(com_J, link.dof + k, nv, axis);
        put(com_J, link.dof + 3 + k, nv, Cross(work.frame[b].R.col[k], w.G.h) * share);
      }
    } else {
      put(com_J,
          link.dof,
          nv,
          link.root == 0 ? (w.S.lin * w.G.m + Cross(w.S.ang, w.G.h)) * share : none);
    }
  }

  // frames
  for (int i = 0; i < model.num_frames; ++i) {
    const SiteConstants<T>& site = model.frame[i];
    const LinkFrame<Real>& at = work.frame[site.link];
    const Vec3<Real> r = at.p + Rotate(at.R, site.p_LS[0], site.p_LS[1], site.p_LS[2]);
    origin(model.link[site.link].root, &p_WO, &v_WO);
    put(pose, 12 * i, 1, p_WO + r);
    SILC_UNROLL
    for (int k = 0; k < 3; ++k) {
      put(pose, 12 * i + 3 + k, 3, Rotate(at.R, site.R_LS[k], site.R_LS[3 + k], site.R_LS[6 + k]));
    }
    put(velocity, 6 * i, 1, v_WO + AtPoint(at.v, r));
    put(velocity, 6 * i + 3, 1, at.v.ang);
    const int start = 6 * nv * i;
    for (int k = 0; k < 6 * nv; ++k) frame_J[start + k] = zero;
    for (int b = site.link; b >= 0; b = model.link[b].parent) {
      const LinkConstants<T>& link = model.link[b];
      if (link.joint == JointKind::kFree) {
        SILC_UNROLL
        for (int k = 0; k < 3; ++k) {
          frame_J[start + nv * k + link.dof + k] = one;
          put(frame_J, start + link.dof + 3 + k, nv, Cross(work.frame[b].R.col[k], r));
          put(frame_J, start + 3 * nv + link.dof + 3 + k, nv, work.frame[b].R.col[k]);
        }
      } else {
        put(frame_J, start + link.dof, nv, AtPoint(work.link[b].S, r));
        put(frame_J, start + 3 * nv + link.dof, nv, work.link[b].S.ang);
      }
    }
  }

  // (S5) with a foot at rest the base moves against the foot's chain: V_base = −Σ S q̇ over that
  // chain
  for (int f = 0; f < model.num_feet; ++f) {
    for (int i = 0; i <= model.num_frames; ++i) {
      Vec3<Real> r = c_O;
      if (i > 0) {
        const SiteConstants<T>& site = model.frame[i - 1];
        const LinkFrame<Real>& at = work.frame[site.link];
        r = at.p + Rotate(at.R, site.p_LS[0], site.p_LS[1], site.p_LS[2]);
      }
      const int start = 3 * nv * (f * (1 + model.num_frames) + i);
      for (int b = 0; b < model.num_links; ++b) {
        const LinkConstants<T>& link = model.link[b];
        for (int k = 0; k < (link.joint == JointKind::kFree ? 6 : 1); ++k) {
          for (int row = 0; row < 3; ++row) {
            const Real free_J = i == 0 ? com_J[nv * row + link.dof + k]
                                       : frame_J[6 * nv * (i - 1) + nv * row + link.dof + k];
            stance_J[start + nv * row + link.dof + k] =
                link.joint == JointKind::kFree ? zero : free_J;
          }
        }
      }
      // a base that is fixed cannot give way to a foot at rest
      const bool floating = model.link[0].joint == JointKind::kFree;
      for (int b = floating ? model.foot_link[f] : -1; b >= 0; b = model.link[b].parent) {
        const LinkConstants<T>& link = model.link[b];
        if (link.joint == JointKind::kFree) continue;
        const Vec3<Real> carried = AtPoint(work.link[b].S, r);
        stance_J[start + link.dof] -= carried.x;
        stance_J[start + nv + link.dof] -= carried.y;
        stance_J[start + 2 * nv + link.dof] -= carried.z;
      }
    }
  }
  if (model.num_feet >= 2) {
    DoubleSupport<Real>(model,
                        stance_J,
                        column(Field::kClosingJacobian),
                        column(Field::kDoubleStanceJacobian),
                        work);
  }
}

}  // namespace silc::SILC_KERNEL
