// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/robot_data.h"
#include "silc/physics/step.h"

/// Centre of mass, poses, velocities and Jacobians of the present state (fields kCom …
/// kStanceJacobian), by one thread or by several.
///
/// The work is cut into phases. Inside a phase the threads of a group do not read what another
/// writes; between two phases they meet. One thread (ComputeOutputs()) runs the phases one after
/// the other as the only member. The centre of mass is that of the first tree.
namespace silc::SILC_KERNEL {

/// A thread's part of what several share: items first, first + step, …
struct Share {
  int first, step;
};
inline constexpr Share kWhole = {0, 1};

template <class Real>
struct OutputLink {
  Spatial<Real> S;  // joint motion
  Real mass;        // [kg]
  Vec3<Real> c;     // centre of mass from O
  struct {
    Real m;        // mass of the subtree
    Vec3<Real> h;  // first moment of the subtree about O
  } G;
};

/// What the phases leave for each other. On a GPU it is the shared memory of a group.
template <class Real, int kLinks = kMaxLinks>
struct OutputWorkspace {
  using Team = Solo;  // all members see all links
  OutputLink<Real> link[kLinks];
  LinkFrame<Real> frame[kLinks];
  Vec3<Real> point[1 + kMaxFrames];  // from O: centre of mass, frames
  Real inv_mass;                     // of the first tree [1/kg]
};

/// Links on the way from a frame or a foot to the root, one bit each.
struct Chains {
  unsigned long long frame[kMaxFrames], foot[kMaxFeet];
};
static_assert(kMaxLinks <= 64);
template <class T>
SILC_HD Chains ChainsOf(const StepModel<T>& model) {
  Chains chains;
  const auto chain = [&](int b) {
    unsigned long long bits = 0;
    for (; b >= 0; b = model.link[b].parent) bits |= 1ull << b;
    return bits;
  };
  for (int i = 0; i < model.num_frames; ++i) chains.frame[i] = chain(model.frame[i].link);
  for (int i = 0; i < model.num_feet; ++i) chains.foot[i] = chain(model.foot_link[i]);
  return chains;
}

template <class Real>
SILC_HD void PutVec(const Column<Real>& c, int i, int step, Vec3<Real> v) {
  c[i] = v.x;
  c[i + step] = v.y;
  c[i + 2 * step] = v.z;
}

/// Where O of a tree is, and how it moves.
template <class Real, class T>
SILC_HD void OriginOf(const StepModel<T>& model,
                      const RobotData<Real>& robot,
                      int root,
                      Vec3<Real>* p,
                      Vec3<Real>* v) {
  const LinkConstants<T>& link = model.link[root];
  if (link.joint == JointKind::kFree) {
    *p = {robot.qpos[link.qpos], robot.qpos[link.qpos + 1], robot.qpos[link.qpos + 2]};
    *v = {robot.qvel[link.dof], robot.qvel[link.dof + 1], robot.qvel[link.dof + 2]};
  } else {
    const Real zero(0);
    *p = {Real(link.p_PL[0]), Real(link.p_PL[1]), Real(link.p_PL[2])};
    *v = {zero, zero, zero};
  }
}

/// First phases: poses, velocities and joint motions of a run of links, parents first. The parent
/// of a run's first link is of an earlier phase.
/// @param links  link(i), i < count
template <class Real, class Work, class T, class Links>
SILC_HD void PlaceLinks(const StepModel<T>& model,
                        const RobotData<Real>& robot,
                        const Links& links,
                        int count,
                        Work& work) {
  LinkFrame<Real> frame = {};
  int held = -1;
  for (int i = 0; i < count; ++i) {
    const int b = links(i);
    PlaceLink<Real>(model,
                    robot,
                    b,
                    held,
                    robot.qpos[model.link[b].qpos],
                    robot.qvel[model.link[b].dof],
                    work,
                    &frame);
    work.frame[b] = frame;
    held = b;
  }
}

/// Next phase: mass and first moment of every link by itself.
template <class Real, class Work, class T>
SILC_HD void LinkMoments(const StepModel<T>& model,
                         const RobotData<Real>& robot,
                         Share share,
                         Work& work) {
  for (int b = share.first; b < model.num_links; b += share.step) {
    const LinkFrame<Real>& frame = work.frame[b];
    OutputLink<Real>& w = work.link[b];
    const int k = 10 * b;
    w.mass = w.G.m = robot.inertia[k];
    w.c = frame.p + frame.R.col[0] * robot.inertia[k + 1] + frame.R.col[1] * robot.inertia[k + 2] +
          frame.R.col[2] * robot.inertia[k + 3];
    w.G.h = w.c * w.G.m;
  }
}

/// In the same phase as LinkMoments(): pose and velocity of the frames.
template <class Real, class Work, class T>
SILC_HD void FramePoses(const StepModel<T>& model,
                        const RobotData<Real>& robot,
                        const Column<Real>& pose,
                        const Column<Real>& velocity,
                        Share share,
                        Work& work) {
  for (int i = share.first; i < model.num_frames; i += share.step) {
    const SiteConstants<T>& site = model.frame[i];
    const LinkFrame<Real>& at = work.frame[site.link];
    const Vec3<Real> r = at.p + Rotate(at.R, site.p_LS[0], site.p_LS[1], site.p_LS[2]);
    work.point[1 + i] = r;
    Vec3<Real> p_WO, v_WO;
    OriginOf(model, robot, model.link[site.link].root, &p_WO, &v_WO);
    PutVec(pose, 12 * i, 1, p_WO + r);
    SILC_UNROLL
    for (int k = 0; k < 3; ++k) {
      PutVec(
          pose, 12 * i + 3 + k, 3, Rotate(at.R, site.R_LS[k], site.R_LS[3 + k], site.R_LS[6 + k]));
    }
    PutVec(velocity, 6 * i, 1, v_WO + AtPoint(at.v, r));
    PutVec(velocity, 6 * i + 3, 1, at.v.ang);
  }
}

/// Next phase, one member alone: moments of the subtrees and the centre of mass.
template <class Real, class Work, class T>
SILC_HD void CentreOfMass(const StepModel<T>& model,
                          const RobotData<Real>& robot,
                          const Column<Real>& com,
                          Work& work) {
  const Real zero(0), one(1);
  Vec3<Real> momentum = {zero, zero, zero};
  for (int b = model.num_links - 1; b >= 0; --b) {
    const LinkConstants<T>& link = model.link[b];
    const OutputLink<Real>& w = work.link[b];
    if (link.root == 0) momentum = momentum + AtPoint(work.frame[b].v, w.c) * w.mass;
    if (link.parent >= 0) {
      auto& P = work.link[link.parent].G;
      P.m = P.m + w.G.m;
      P.h = P.h + w.G.h;
    }
  }
  Vec3<Real> p_WO, v_WO;
  OriginOf(model, robot, 0, &p_WO, &v_WO);
  const Real inv_mass = one / work.link[0].G.m;
  work.inv_mass = inv_mass;
  const Vec3<Real> c_O = work.link[0].G.h * inv_mass;
  work.point[0] = c_O;
  PutVec(com, 0, 1, p_WO + c_O);
  PutVec(com, 3, 1, v_WO + momentum * inv_mass);
}

/// Where the columns of Jacobians go. `stance` is left alone where nobody asks for it.
template <class Real>
struct JacobianColumns {
  Column<Real> com, frame, stance;
  bool wants_stance;
};

/// J of (S5) for FillSample() (silc/task/stiffness_sample.h): with a foot at rest the base moves
/// against the foot's chain, V_base = −Σ S q̇ over that chain. The linear rows of column `dof` for a
/// point.
/// @param free_J  the column with the base at rest, of a joint that is not free
template <class Real, class Work, class T>
SILC_HD void StanceColumns(const StepModel<T>& model,
                           const Chains& chains,
                           int point,
                           int b,
                           int dof,
                           Vec3<Real> free_J,
                           const Column<Real>& stance_J,
                           const Work& work) {
  const int nv = model.nv;
  for (int f = 0; f < model.num_feet; ++f) {
    Vec3<Real> J = free_J;
    // a base that is fixed cannot give way to a foot at rest
    if (model.link[0].joint == JointKind::kFree && model.link[b].joint != JointKind::kFree &&
        (chains.foot[f] >> b & 1) != 0) {
      J = J - AtPoint(work.link[b].S, work.point[point]);
    }
    PutVec(stance_J, 3 * nv * (f * (1 + model.num_frames) + point) + dof, nv, J);
  }
}

/// Last phase: the columns of link b for a point, 0 the centre of mass, i
/// frame i − 1.
template <class Real, class Work, class T>
SILC_HD void JacobianColumn(const StepModel<T>& model,
                            const Chains& chains,
                            int point,
                            int b,
                            const JacobianColumns<Real>& out,
                            const Work& work) {
  const Real zero(0), one(1);
  const Vec3<Real> none = {zero, zero, zero};
  const int nv = model.nv, start = 6 * nv * (point - 1);
  const LinkConstants<T>& link = model.link[b];
  const OutputLink<Real>& w = work.link[b];
  const bool of_com = point == 0;
  const bool moves = of_com ? link.root == 0 : (chains.frame[of_com ? 0 : point - 1] >> b & 1) != 0;
  if (link.joint == JointKind::kFree) {
    const Real unit = !moves ? zero : of_com ? w.G.m * work.inv_mass : one;
    SILC_UNROLL
    for (int k = 0; k < 3; ++k) {
      const Vec3<Real> axis = work.frame[b].R.col[k];
      const Vec3<Real> shift = {k == 0 ? unit : zero, k == 1 ? unit : zero, k == 2 ? unit : zero};
      const int dof = link.dof + k;
      if (of_com) {
        const Real share = moves ? work.inv_mass : zero;
        PutVec(out.com, dof, nv, shift);
        PutVec(out.com, dof + 3, nv, Cross(axis, w.G.h) * share);
      } else {
        PutVec(out.frame, start + dof, nv, shift);
        PutVec(out.frame, start + 3 * nv + dof, nv, none);
        PutVec(out.frame, start + dof + 3, nv, moves ? Cross(axis, work.point[point]) : none);
        PutVec(out.frame, start + 3 * nv + dof + 3, nv, moves ? axis : none);
      }
      if (!out.wants_stance) continue;
      StanceColumns(model, chains, point, b, dof, none, out.stance, work);
      StanceColumns(model, chains, point, b, dof + 3, none, out.stance, work);
    }
    return;
  }
  Vec3<Real> J = none;
  if (of_com) {
    if (moves) J = (w.S.lin * w.G.m + Cross(w.S.ang, w.G.h)) * work.inv_mass;
    PutVec(out.com, link.dof, nv, J);
  } else {
    if (moves) J = AtPoint(w.S, work.point[point]);
    PutVec(out.frame, start + link.dof, nv, J);
    PutVec(out.frame, start + 3 * nv + link.dof, nv, moves ? w.S.ang : none);
  }
  if (out.wants_stance) StanceColumns(model, chains, point, b, link.dof, J, out.stance, work);
}

/// All columns of the points [first_point, end_point), shared out.
template <class Real, class Work, class T>
SILC_HD void Jacobians(const StepModel<T>& model,
                       const Chains& chains,
                       int first_point,
                       int end_point,
                       const JacobianColumns<Real>& out,
                       Share share,
                       const Work& work) {
  int point = first_point, b = share.first;
  while (true) {
    while (b >= model.num_links) {
      b -= model.num_links;
      ++point;
    }
    if (point >= end_point) return;
    JacobianColumn<Real>(model, chains, point, b, out, work);
    b += share.step;
  }
}

/// The phases by one thread.
template <class Real, class Work, class T>
SILC_HD_NOINLINE void ComputeOutputs(const StepModel<T>& model,
                                     const FieldLayout& layout,
                                     Real* memory,
                                     int stride,
                                     KinematicsLevel wanted,
                                     Work& work) {
  const RobotData<Real> robot = BindRobot(layout, memory, stride);
  const auto column = [&](Field f) { return FieldColumn(layout, memory, stride, f); };
  PlaceLinks<Real>(
      model, robot, [](int i) { return i; }, model.num_links, work);
  LinkMoments<Real>(model, robot, kWhole, work);
  FramePoses<Real>(model, robot, column(Field::kPose), column(Field::kVelocity), kWhole, work);
  CentreOfMass<Real>(model, robot, column(Field::kCom), work);
  const JacobianColumns<Real> out = {column(Field::kComJacobian),
                                     column(Field::kFrameJacobian),
                                     column(Field::kStanceJacobian),
                                     wanted != KinematicsLevel::kFrames};
  Jacobians<Real>(model, ChainsOf(model), 0, 1 + model.num_frames, out, kWhole, work);
}

}  // namespace silc::SILC_KERNEL
