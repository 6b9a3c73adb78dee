// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/step_factor.h"

/// Accelerations of all links once Newton's method has settled the rows, and their refinement
/// (D11).
namespace silc::SILC_KERNEL {

/// Acceleration of the links from root to leaves, all joints: in lanes where a link is live the
/// iterate of Newton's method, elsewhere the joint's answer to its parent. With the forces of the
/// rows and, if `balance`, what is missing to the balance of forces.
template <class Real, class Work, class T>
SILC_HD_NOINLINE void Accelerate(const StepModel<T>& model, bool balance, Work& work) {
  using Team = typename Work::Team;
  Motion<Real> motion = {ZeroSpatial<Real>(), ZeroSpatial<Real>()};
  int held = -1;
  for (auto walk = Team::Down(model); walk.Next(); held = walk.link) {
    const int b = walk.link;
    LinkWork<Real>& w = work.link[b];
    const LinkFactor<Real, Team::kCopies> factor = ReadFactor<Real>(work, b);
    const MaskOf<Real> live = factor.live;
    const bool is_free = model.link[b].joint == JointKind::kFree;
    if (is_free) {
      motion.a = Select<Real>(live, w.a, w.a_new);
    } else {
      motion = ParentMotion<Real>(model, b, held, motion, work);
      const Real x = Select(live, factor.x, factor.u - factor.inv_D * Dot(factor.U, motion.a));
      motion.a = motion.a + factor.S * x;
      const Real force = JointForce<Real>(model, b, factor.rows, x, work);
      if (model.implicit_damping) w.constraint_force = force;
      w.x = x;
      if (balance) JointBalanceOf(model, w) = w.tau + force - w.diagonal * x;
    }
    if (KeepsMotion(model.link[b])) w.a = motion.a;
    Team::PutMotion(b, motion.a);
    for (int k = factor.rows.first(); k < factor.rows.end(); ++k) {
      ContactForce(&work.contact[k]);
    }
    if (!balance) continue;
    Spatial<Real> missing = w.f + w.G * motion.a;
    if (is_free) missing = missing + motion.a * w.diagonal;
    for (int k = factor.rows.first(); k < factor.rows.end(); ++k) {
      const ContactWork<Real>& c = work.contact[k];
      missing.lin = missing.lin - c.force;
      missing.ang = missing.ang - Cross(c.r, c.force);
    }
    if constexpr (Work::kSlots > 0) {
      if (work.pair.on_chain[b]) missing = missing - work.pair.force[b];
    }
    BalanceOf(model, w) = missing;
  }
}

/// The same after an elimination of all links (Stage::kDamped).
template <class Real, class Work, class T>
SILC_HD_NOINLINE void AccelerateDamped(const StepModel<T>& model, Work& work) {
  using Team = typename Work::Team;
  Motion<Real> motion = {ZeroSpatial<Real>(), ZeroSpatial<Real>()};
  int held = -1;
  for (auto walk = Team::Down(model); walk.Next(); held = walk.link) {
    const int b = walk.link;
    LinkWork<Real>& w = work.link[b];
    if (model.link[b].joint == JointKind::kFree) {
      motion.a = w.a_new;
    } else {
      motion = ParentMotion<Real>(model, b, held, motion, work);
      w.x = w.u - w.inv_D * Dot(w.U, motion.a);
      motion.a = motion.a + w.S * w.x;
    }
    w.a = motion.a;
    Team::PutMotion(b, motion.a);
  }
}

/// (D11) One step of iterative refinement with the factors at hand. Eliminating a stiff contact
/// from a soft leg cancels most of the digits of a float; the residual of (D1) at the solution,
/// small and computed afresh, gives them back.
template <class Real, class Work, class T>
SILC_HD_NOINLINE void Refine(const StepModel<T>& model, Work& work) {
  using Team = typename Work::Team;
  struct Terms {
    ReadOf<Spatial<Real>, Team::kCopies> missing, S, U;
    ReadOf<Real, Team::kCopies> joint_missing, inv_D;
  };
  const auto read_terms = [&](int b) {
    LinkWork<Real>& w = work.link[b];
    return Terms{BalanceOf(model, w), w.S, w.U, JointBalanceOf(model, w), w.inv_D};
  };
  Spatial<Real> p = ZeroSpatial<Real>();
  int carried = -1;  // the link whose p is still at hand
  for (auto walk = Team::Up(model); walk.Next();) {
    const int b = walk.link;
    const LinkConstants<T>& link = model.link[b];
    LinkWork<Real>& w = work.link[b];
    const Terms terms = read_terms(b);
    // of the link and of all it carries
    Spatial<Real> missing = terms.missing;
    if (link.num_children == 1 && carried == link.first_child) {
      missing = missing + p;
    } else {
      for (int child = link.first_child; child >= 0; child = model.link[child].next_sibling) {
        missing =
            missing + (Team::Remote(child) ? Team::template Force<Real>(child) : work.p[child]);
      }
    }
    carried = b;
    if (link.joint == JointKind::kFree) {
      w.a_new = Solve(work.A[b], Spatial<Real>{-missing.ang, -missing.lin});
      continue;
    }
    const Real u = (terms.joint_missing - Dot(terms.S, missing)) * terms.inv_D;
    w.u = u;
    p = missing + terms.U * u;
    if (link.parent < 0) continue;
    if (Team::Remote(b)) {
      Team::PutForce(b, p);
    } else if (model.link[link.parent].num_children > 1) {
      work.p[b] = p;
    }
  }
  Motion<Real> motion = {ZeroSpatial<Real>(), ZeroSpatial<Real>()};
  int held = -1;
  for (auto walk = Team::Down(model); walk.Next(); held = walk.link) {
    const int b = walk.link;
    LinkWork<Real>& w = work.link[b];
    const LinkFactor<Real, Team::kCopies> factor = ReadFactor<Real>(work, b);
    if (model.link[b].joint == JointKind::kFree) {
      motion = {Select<Real>(work.solved, w.a + w.a_new, w.a), w.a_new};
    } else {
      motion = ParentMotion<Real>(model, b, held, motion, work);
      const Real dx = factor.u - factor.inv_D * Dot(factor.U, motion.a_new);
      const Real x = Select(work.solved, factor.x + dx, factor.x);
      motion.a_new = motion.a_new + factor.S * dx;
      motion.a = motion.a + factor.S * x;
      w.x = x;
      if (model.implicit_damping)
        w.constraint_force = JointForce<Real>(model, b, factor.rows, x, work);
    }
    if (KeepsMotion(model.link[b])) w.a = motion.a;
    KeepMotion<Real>(model, b, motion, work);
    for (int k = factor.rows.first(); k < factor.rows.end(); ++k) {
      ContactRows(work.contact[k], motion.a, work.contact[k].e);
      ContactForce(&work.contact[k]);
    }
  }
  if constexpr (Work::kSlots > 0) {
    if (work.pair.num_slots > 0) RefinePairs<Real>(model, work);
  }
}

}  // namespace silc::SILC_KERNEL
