// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/step_contacts.h"

/// (D4) The factorisation: joints are eliminated from the leaves to the root, and motions are
/// carried down the eliminated tree.
namespace silc::SILC_KERNEL {

enum class Stage { kIdle, kNewton, kDamped };

/// Marks the links with a row that can push back somewhere in their subtree, per lane.
template <class Real, class Work, class T>
SILC_HD void FindLive(const StepModel<T>& model, const RobotData<Real>& robot, Work& work) {
  const Real zero(0);
  const MaskOf<Real> awake = Not(robot.fault[0] > zero);
  using Team = typename Work::Team;
  for (auto walk = Team::Up(model); walk.Next();) {
    const int b = walk.link;
    const LinkConstants<T>& link = model.link[b];
    MaskOf<Real> live = awake & MaskOf<Real>(link.friction > 0);
    const LinkRows rows = work.rows[b];
    if (rows.at_limit()) live = live | (work.link[b].limit_D > zero);
    if constexpr (Work::kSlots > 0) live = live | work.pair.touched[b];
    for (int k = rows.first(); k < rows.end(); ++k) {
      live = live | (work.contact[k].D > zero);
    }
    for (int child = link.first_child; child >= 0; child = model.link[child].next_sibling) {
      live = live | (Team::Remote(child) ? MaskOf<Real>(Team::Live(child)) : work.live[child]);
    }
    work.live[b] = live;
    Team::PutLive(b, live);
  }
  work.num_live = work.live_trunk = 0;
  work.num_idle = work.idle_trunk = 0;
  for (int own = 0; own < Team::NumOwn(model); ++own) {
    const int b = Team::Own(own);
    const bool trunk = own < Team::NumTrunk();
    work.all_links[own] = static_cast<Index>(b);
    if (Any(work.live[b])) {
      work.live_links[work.num_live++] = static_cast<Index>(b);
      work.live_trunk += trunk;
    } else {
      work.idle_links[work.num_idle++] = static_cast<Index>(b);
      work.idle_trunk += trunk;
    }
  }
}

/// What an elimination reads of a link, and what a pass down the eliminated tree reads: copied at
/// once where Team::kCopies.
template <class Real, bool kCopy>
struct LinkTerms {
  ReadOf<Spatial<Real>, kCopy> S;
  ReadOf<RigidInertia<Real>, kCopy> G;
  ReadOf<Spatial<Real>, kCopy> f;
  ReadOf<Real, kCopy> tau, diagonal, x;
  LinkRows rows;
};
template <class Real, class Work>
SILC_HD LinkTerms<Real, Work::Team::kCopies> ReadTerms(const Work& work, int b) {
  const LinkWork<Real>& w = work.link[b];
  return {w.S, w.G, w.f, w.tau, w.diagonal, w.x, work.rows[b]};
}
template <class Real, bool kCopy>
struct LinkFactor {
  ReadOf<Spatial<Real>, kCopy> S, U;
  ReadOf<Real, kCopy> D, inv_D, u, x;
  ReadOf<MaskOf<Real>, kCopy> live;
  LinkRows rows;
};
template <class Real, class Work>
SILC_HD LinkFactor<Real, Work::Team::kCopies> ReadFactor(const Work& work, int b) {
  const LinkWork<Real>& w = work.link[b];
  return {w.S, w.U, w.D, w.inv_D, w.u, w.x, work.live[b], work.rows[b]};
}

/// (D4) Eliminates joints from the leaves to the root for the links in `list` (parents first, the
/// `trunk` ones before the others, and every child of a listed link is listed or already
/// eliminated). One function for all uses: the same machine code gives the same bits, on which the
/// independence of lanes rests.
template <class Real, class Work, class T>
SILC_HD_NOINLINE void Eliminate(
    const StepModel<T>& model, Stage stage, const Index* list, int count, int trunk, Work& work) {
  using Team = typename Work::Team;
  const Real zero(0), one(1);
  ArticulatedInertia<Real> A;
  Spatial<Real> p;
  int carried = -1;  // the link whose A and p are still at hand
  for (int i = count - 1;; --i) {
    if (i == trunk - 1) Team::Meet();  // the branches are done
    if (i < 0) break;
    const int b = list[i];
    const LinkConstants<T>& link = model.link[b];
    LinkWork<Real>& w = work.link[b];
    const LinkTerms<Real, Team::kCopies> own = ReadTerms<Real>(work, b);
    if (link.num_children == 1 && carried == link.first_child) {
      AddTo(&A, own.G);
      p = p + own.f;
    } else {
      A = Widen(own.G);
      p = own.f;
      for (int child = link.first_child; child >= 0; child = model.link[child].next_sibling) {
        if (Team::Remote(child)) {
          Team::AddPort(child, &A, &p);
        } else {
          AddTo(&A, work.A[child]);
          p = p + work.p[child];
        }
      }
    }

    Real diagonal = own.diagonal, tau = own.tau;
    if (stage == Stage::kNewton) {
      for (int k = own.rows.first(); k < own.rows.end(); ++k) {
        AddContactRows(work.contact[k], &A, &p);
      }
      if (own.rows.at_limit()) {
        const MaskOf<Real> on = w.limit_sign * own.x < w.limit_ref;
        const Real D = Select(on, w.limit_D, zero);
        diagonal += D;
        tau += D * w.limit_ref * w.limit_sign;
      }
      if (link.friction > 0) {
        // quadratic while |jar| < R f, then the force stays at ±f
        const Real D(link.friction_D), f(link.friction);
        const Real jar = own.x - w.friction_ref;
        const MaskOf<Real> inside = Abs(jar) * D < f;
        diagonal += Select(inside, D, zero);
        tau += Select(inside, D * w.friction_ref, Select(jar < zero, f, -f));
      }
    } else if (stage == Stage::kDamped) {
      for (int k = own.rows.first(); k < own.rows.end(); ++k) {
        const ContactWork<Real>& c = work.contact[k];
        p.lin = p.lin - c.force;
        p.ang = p.ang - Cross(c.r, c.force);
      }
      if constexpr (Work::kSlots > 0) {
        if (work.pair.on_chain[b]) p = p - work.pair.force[b];
      }
      diagonal += Real(model.timestep) * w.damping;
      tau += w.constraint_force;
    }

    if (link.joint == JointKind::kFree) {
      A.a.xx += diagonal;
      A.a.yy += diagonal;
      A.a.zz += diagonal;
      A.c.xx += diagonal;
      A.c.yy += diagonal;
      A.c.zz += diagonal;
      work.A[b] = A;
      w.a_new = Solve(A, Spatial<Real>{-p.ang, -p.lin});
      carried = -1;
      continue;
    }
    const Spatial<Real> U = A * own.S;
    const Real D = Dot(own.S, U) + diagonal;
    const Real inv_D = one / D;
    const Real u = (tau - Dot(own.S, p)) * inv_D;
    w.U = U;
    w.D = D;
    w.inv_D = inv_D;
    w.u = u;
    SubtractOuter(&A, U, inv_D);
    p = p + U * u;
    const int next = i > 0 ? list[i - 1] : -1;
    if (next == link.parent && link.parent >= 0 && model.link[next].num_children == 1) {
      carried = b;
    } else if (Team::Remote(b)) {
      Team::PutPort(b, A, p);
      carried = -1;
    } else {
      work.A[b] = A;
      work.p[b] = p;
      carried = -1;
    }
  }
}

template <class Real>
SILC_HD Spatial<Real> ZeroSpatial() {
  const Real zero(0);
  return {{zero, zero, zero}, {zero, zero, zero}};
}

/// Accelerations on the way from the root to the leaves, carried along a chain and put down where
/// the tree branches: at the iterate and at the target of Newton's method.
template <class Real>
struct Motion {
  Spatial<Real> a, a_new;
};

/// The motion of the link that link b hangs on. `last` is that of link `held`.
template <class Real, class Work, class T>
SILC_HD Motion<Real> ParentMotion(
    const StepModel<T>& model, int b, int held, const Motion<Real>& last, const Work& work) {
  using Team = typename Work::Team;
  const int parent = model.link[b].parent;
  if (parent < 0) return {ZeroSpatial<Real>(), ZeroSpatial<Real>()};
  if (parent == held) return last;
  if (Team::Remote(b)) {
    return {Team::template Motion<Real>(parent), Team::template MotionNew<Real>(parent)};
  }
  return {work.link[parent].a, work.link[parent].a_new};
}

template <class Real, class Work, class T>
SILC_HD void KeepMotion(const StepModel<T>& model, int b, const Motion<Real>& motion, Work& work) {
  // pairs of links ask for motions anywhere
  if (model.link[b].num_children > 1 || Work::kSlots > 0) {
    work.link[b].a = motion.a;
    work.link[b].a_new = motion.a_new;
  }
  Work::Team::PutMotion(b, motion.a);
  Work::Team::PutMotionNew(b, motion.a_new);
}

}  // namespace silc::SILC_KERNEL
