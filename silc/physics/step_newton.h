// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/step_factor.h"

/// (D3) The rows that push back, and the accelerations of the links they hold.
namespace silc::SILC_KERNEL {

/// The last step's accelerations as the first iterate: links' motions, contacts' rows. Returns the
/// lanes with a link that moves.
template <class Real, class Work, class T>
SILC_HD MaskOf<Real> StartNewton(const StepModel<T>& model,
                                 const RobotData<Real>& robot,
                                 Work& work) {
  using Team = typename Work::Team;
  const Index* live = work.live_links;
  const int num_live = work.num_live;
  MaskOf<Real> any_live = MaskOf<Real>(false);
  Motion<Real> motion = {ZeroSpatial<Real>(), ZeroSpatial<Real>()};
  int held = -1;
  for (auto walk = Team::Down(live, num_live, work.live_trunk); walk.Next(); held = walk.link) {
    const int b = walk.link;
    const LinkConstants<T>& link = model.link[b];
    LinkWork<Real>& w = work.link[b];
    if (link.parent < 0) any_live = any_live | work.live[b];
    if (link.joint == JointKind::kFree) {
      const Rotation<Real>& R = work.frame[b].R;
      const int k = link.dof;
      motion.a = {R.col[0] * robot.qacc[k + 3] + R.col[1] * robot.qacc[k + 4] +
                      R.col[2] * robot.qacc[k + 5],
                  {robot.qacc[k], robot.qacc[k + 1], robot.qacc[k + 2]}};
      w.a = motion.a;
    } else {
      w.x = robot.qacc[link.dof];
      motion = ParentMotion<Real>(model, b, held, motion, work);
      motion.a = motion.a + w.S * w.x;
    }
    KeepMotion<Real>(model, b, motion, work);
    const LinkRows rows = work.rows[b];
    for (int k = rows.first(); k < rows.end(); ++k) {
      ContactRows(work.contact[k], motion.a, work.contact[k].e);
    }
  }
  Team::AnyMember(&any_live);
  if constexpr (Work::kSlots > 0) PairRows<Real>(work, false);
  return any_live;
}

/// The target of an iteration from the factor, link by link: what the minimum would be if the
/// active rows stayed as they are. Adds to dHd = (target − iterate)ᵀ H (target − iterate) and to
/// the sums over the contacts' rows.
template <class Real, class Work, class T>
SILC_HD void FindTarget(const StepModel<T>& model, Real* dHd, RowSums<Real>* sums, Work& work) {
  using Team = typename Work::Team;
  const Real zero(0);
  const Index* live = work.live_links;
  const int num_live = work.num_live;
  Motion<Real> motion = {ZeroSpatial<Real>(), ZeroSpatial<Real>()};
  int held = -1;
  for (auto walk = Team::Down(live, num_live, work.live_trunk); walk.Next(); held = walk.link) {
    const int b = walk.link;
    LinkWork<Real>& w = work.link[b];
    const LinkFactor<Real, Team::kCopies> factor = ReadFactor<Real>(work, b);
    if (model.link[b].joint == JointKind::kFree) {
      motion = {w.a, w.a_new};
      const Spatial<Real> d = w.a_new - w.a;
      *dHd += Select(factor.live, Dot(d, work.A[b] * d), zero);
    } else {
      motion = ParentMotion<Real>(model, b, held, motion, work);
      const Real answer = factor.u - factor.inv_D * Dot(factor.U, motion.a);
      const Real x_new = factor.u - factor.inv_D * Dot(factor.U, motion.a_new);
      const Real miss = answer - factor.x;
      *dHd += Select(factor.live, miss * miss * factor.D, zero);
      motion.a = motion.a + factor.S * factor.x;
      motion.a_new = motion.a_new + factor.S * x_new;
      w.x_new = x_new;
    }
    KeepMotion<Real>(model, b, motion, work);
    for (int k = factor.rows.first(); k < factor.rows.end(); ++k) {
      ContactWork<Real>& c = work.contact[k];
      ContactRows(c, motion.a_new, c.e_new);
      sums->Add(c.D, c.e[0] + c.e[1], c.e_new[0] + c.e_new[1]);
      sums->Add(c.D, c.e[0] - c.e[1], c.e_new[0] - c.e_new[1]);
      sums->Add(c.D, c.e[0] + c.e[2], c.e_new[0] + c.e_new[2]);
      sums->Add(c.D, c.e[0] - c.e[2], c.e_new[0] - c.e_new[2]);
    }
  }
}

/// Sums over the rows of joints: limits and friction.
template <class Real, class Work, class T>
SILC_HD void AddJointRows(const StepModel<T>& model, RowSums<Real>* sums, const Work& work) {
  const Real zero(0);
  const Index* live = work.live_links;
  const int num_live = work.num_live;
  for (int i = 0; i < work.num_limits; ++i) {
    const LinkWork<Real>& w = work.link[work.limit_links[i]];
    sums->Add(w.limit_D, w.limit_sign * w.x - w.limit_ref, w.limit_sign * w.x_new - w.limit_ref);
  }
  if (model.has_friction) {
    for (int i = 0; i < num_live; ++i) {
      const LinkConstants<T>& link = model.link[live[i]];
      if (!(link.friction > 0)) continue;
      const LinkWork<Real>& w = work.link[live[i]];
      const Real D(link.friction_D), f(link.friction);
      const Real r = w.x - w.friction_ref, s = w.x_new - w.friction_ref, delta = s - r;
      const Real fr = Clamp(D * r, -f, f), fs = Clamp(D * s, -f, f);
      const MaskOf<Real> in0 = Abs(D * r) < f, in1 = Abs(D * s) < f;
      sums->curvature0 += Select(in0, D * delta * delta, zero);
      sums->slope0 += fr * delta;
      sums->curvature1 += Select(in1, D * delta * delta, zero);
      sums->slope1 += fs * delta;
      sums->changed = sums->changed | (in0 != in1) | (Not(in0) & ((fr > zero) != (fs > zero)));
    }
  }
}

/// (D9) How far to go towards the target; 1 where it is settled already.
template <class Real, class Work, class T>
SILC_HD Real SearchLine(const StepModel<T>& model,
                        const StepOptions& options,
                        Real dHd,
                        const RowSums<Real>& sums,
                        MaskOf<Real> settled,
                        Work& work) {
  using Team = typename Work::Team;
  const Real zero(0), one(1), tiny(T(1e-30));
  const Index* live = work.live_links;
  const int num_live = work.num_live;
  // (D9) slope of (D1) along the line: g0 + α dMd + rows(α), piecewise linear and rising
  const Real dMd = dHd - sums.curvature0, g0 = -dHd - sums.slope0;
  Real alpha = one;
  if (!All(settled)) {
    Real slope = g0 + dMd + sums.slope1, curvature = dMd + sums.curvature1;
    // flat enough: a closer minimum along this line saves no iteration
    const Real flat = Real(T(0.15)) * dHd;
    settled = settled | Not(Abs(slope) > flat);
    // bracket: slope below zero at `low`, above it at `high`; high = 1e6 means not yet seen
    MaskOf<Real> short_of = slope < zero;
    Real low = Select(short_of, one, zero), high = Select(short_of, Real(T(1e6)), one);
    Real slope_low = Select(short_of, slope, -dHd), slope_high = Select(short_of, zero, slope);
    for (int evaluation = 1; evaluation < options.line_search && !All(settled); ++evaluation) {
      // Newton where it stays in the bracket, a secant through its ends where not
      const Real newton = alpha - slope / Max(curvature, tiny);
      const Real secant = Select(slope_high > zero,
                                 low - slope_low * (high - low) / Max(slope_high - slope_low, tiny),
                                 low + low + one);
      const Real next = Select((newton > low) & (newton < high), newton, secant);
      alpha = Select(settled, alpha, next);
      slope = zero;
      curvature = zero;
      const auto add = [&](Real D, Real r, Real s) {
        const Real delta = s - r, value = r + alpha * delta;
        const Real q = Select(value < zero, D * delta, zero);
        slope += q * value;
        curvature += q * delta;
      };
      for (int k = 0; k < work.num_active; ++k) {
        const ContactWork<Real>& c = work.contact[k];
        add(c.D, c.e[0] + c.e[1], c.e_new[0] + c.e_new[1]);
        add(c.D, c.e[0] - c.e[1], c.e_new[0] - c.e_new[1]);
        add(c.D, c.e[0] + c.e[2], c.e_new[0] + c.e_new[2]);
        add(c.D, c.e[0] - c.e[2], c.e_new[0] - c.e_new[2]);
      }
      if constexpr (Work::kSlots > 0) ForPairEdges<Real>(work, add);
      for (int i = 0; i < work.num_limits; ++i) {
        const LinkWork<Real>& w = work.link[work.limit_links[i]];
        add(w.limit_D, w.limit_sign * w.x - w.limit_ref, w.limit_sign * w.x_new - w.limit_ref);
      }
      if (model.has_friction) {
        for (int i = 0; i < num_live; ++i) {
          const LinkConstants<T>& link = model.link[live[i]];
          if (!(link.friction > 0)) continue;
          const LinkWork<Real>& w = work.link[live[i]];
          const Real D(link.friction_D), f(link.friction);
          const Real delta = w.x_new - w.x, jar = w.x + alpha * delta - w.friction_ref;
          slope += Clamp(D * jar, -f, f) * delta;
          curvature += Select(Abs(D * jar) < f, D * delta * delta, zero);
        }
      }
      Team::Sum(evaluation & 1, &slope, &curvature);
      slope += g0 + alpha * dMd;
      curvature += dMd;
      settled = settled | Not(Abs(slope) > flat);
      short_of = slope < zero;
      low = Select(settled, low, Select(short_of, alpha, low));
      slope_low = Select(settled, slope_low, Select(short_of, slope, slope_low));
      high = Select(settled, high, Select(short_of, high, alpha));
      slope_high = Select(settled, slope_high, Select(short_of, slope_high, slope));
    }
  }
  return alpha;
}

/// Moves the iterate; a lane that is done keeps its bits.
template <class Real, class Work, class T>
SILC_HD void MoveIterate(
    const StepModel<T>& model, MaskOf<Real> done, MaskOf<Real> at_target, Real alpha, Work& work) {
  const Index* live = work.live_links;
  const int num_live = work.num_live;
  const auto move = [&](Real from, Real to) {
    return Select(done, from, Select(at_target, to, from + alpha * (to - from)));
  };
  for (int i = 0; i < num_live; ++i) {
    LinkWork<Real>& w = work.link[live[i]];
    if (model.link[live[i]].joint == JointKind::kFree) {
      w.a = {{move(w.a.ang.x, w.a_new.ang.x),
              move(w.a.ang.y, w.a_new.ang.y),
              move(w.a.ang.z, w.a_new.ang.z)},
             {move(w.a.lin.x, w.a_new.lin.x),
              move(w.a.lin.y, w.a_new.lin.y),
              move(w.a.lin.z, w.a_new.lin.z)}};
    } else {
      w.x = move(w.x, w.x_new);
    }
  }
  for (int k = 0; k < work.num_active; ++k) {
    ContactWork<Real>& c = work.contact[k];
    SILC_UNROLL
    for (int j = 0; j < 3; ++j) c.e[j] = move(c.e[j], c.e_new[j]);
  }
  if constexpr (Work::kSlots > 0) {
    for (int k = 0; k < work.pair.num_slots; ++k) {
      PairSlot<Real>& s = work.pair.slot[k];
      SILC_UNROLL
      for (int j = 0; j < 3; ++j) s.e[j] = move(s.e[j], s.e_new[j]);
    }
  }
}

/// (D3) Newton's method over the live links. Leaves the iterate in link.x, root link.a and
/// contact.e.
template <class Real, class Work, class T>
SILC_HD_NOINLINE void Newton(const StepModel<T>& model,
                             const RobotData<Real>& robot,
                             const StepOptions& options,
                             MaskOf<Real> frozen,
                             StepCounts* counts,
                             Work& work) {
  using Mask = MaskOf<Real>;
  using Team = typename Work::Team;
  const Real zero(0);
  const Index* live = work.live_links;
  const int num_live = work.num_live;

  const Mask any_live = StartNewton<Real>(model, robot, work);
  Mask done = frozen | Not(any_live);
  work.solved = done;
  for (int iteration = 0; iteration < options.max_iterations; ++iteration) {
    // target: the minimum if the active rows stayed as they are
    Eliminate<Real>(model, Stage::kNewton, live, num_live, work.live_trunk, work);
    Real dHd = zero;  // (target − iterate)ᵀ H (target − iterate), from the factor
    RowSums<Real> sums = {zero, zero, zero, zero, Mask(false)};
    FindTarget<Real>(model, &dHd, &sums, work);
    if constexpr (Work::kSlots > 0) {
      // a robot that is done keeps its factors: computed again they would be the same
      if (Any(work.pair.lanes & Not(done))) {
        AddPairs<Real>(model, live, num_live, &dHd, &sums, work);
      }
    }
    AddJointRows<Real>(model, &sums, work);
    Team::Sum(&dHd, &sums);

    // the same rows at both ends: the target is the minimum itself
    const Mask small = Not(dHd * Real(model.inertia_scale) > Real(T(options.tolerance)));
    const Mask at_target = Not(sums.changed) | small;
    if (counts) {
      ++counts->group_iterations;
      counts->iterations += Count(Not(done));
    }

    const Real alpha = SearchLine<Real>(model, options, dHd, sums, done | at_target, work);
    MoveIterate<Real>(model, done, at_target, alpha, work);
    // one that stopped with its rows still changing has the factor of other rows, here or, where a
    // neighbour goes on, after the next elimination
    // NOLINTNEXTLINE(clang-diagnostic-bitwise-instead-of-logical): masks, where Real has lanes
    work.solved = work.solved | (Not(done) & Not(sums.changed));
    done = done | at_target;
    if (All(done)) break;
  }
  if (counts) {
    counts->unconverged += Count(Not(done));
    counts->live_links += num_live;
  }
}

}  // namespace silc::SILC_KERNEL
