// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/step.h"

/// (S5) for a robot on both feet, foot 0 and foot 1 of the model. A header of its own beside
/// outputs.h: the only place where a chain closes.
namespace silc::SILC_KERNEL {

/// The six numbers of a motion as rows: linear x, y, z, then angular x, y, z.
template <class Real>
SILC_HD Real& MotionRow(Spatial<Real>& s, int row) {
  switch (row) {
    case 0:
      return s.lin.x;
    case 1:
      return s.lin.y;
    case 2:
      return s.lin.z;
    case 3:
      return s.ang.x;
    case 4:
      return s.ang.y;
    default:
      return s.ang.z;
  }
}

/// Links of the two legs, from both feet to the fork.
struct Legs {
  unsigned char link[kMaxLinks];
  bool of_moving[kMaxLinks];  // on the way to foot 1
  int count;
};
template <class T>
SILC_HD Legs FindLegs(const StepModel<T>& model) {
  Legs legs;
  legs.count = 0;
  // a link's number is larger than its parent's; a free joint is the trunk of both; feet of two
  // trees are refused by the compiler
  int still = model.foot_link[0], moving = model.foot_link[1];
  while (still != moving) {
    const bool of_moving = moving > still;
    const int b = of_moving ? moving : still;
    (of_moving ? moving : still) = model.link[b].parent;
    legs.link[legs.count] = static_cast<unsigned char>(b);
    legs.of_moving[legs.count++] = of_moving;
  }
  return legs;
}

/// Closing constraint, and its orthonormal rows in work.closing().
///
///     J_c q̇ = motion of foot 1 (its body's origin) with foot 0 at rest = Σ S q̇ over the chain
///             of foot 1 − Σ S q̇ over the chain of foot 0;   joints above the fork cancel
///
/// Gram–Schmidt, twice, on rows of length one. A row that is the others' within 1e-4 of its length
/// is left out. Links of the two legs alone take part.
///
/// @param closing   6 nv, written
template <class Real, class Work, class T>
SILC_HD void ClosingRows(const StepModel<T>& model, const Column<Real>& closing, Work& work) {
  const Real zero(0), one(1);
  const int nv = model.nv;
  const auto q = work.closing();
  for (int i = 0; i < 6 * nv; ++i) closing[i] = zero;

  const Legs legs = FindLegs(model);
  const LinkFrame<Real>& at = work.frame[model.foot_link[1]];
  const T* p_LB = model.foot_point[1];
  const Vec3<Real> r = at.p + Rotate(at.R, p_LB[0], p_LB[1], p_LB[2]);
  for (int i = 0; i < legs.count; ++i) {
    const int b = legs.link[i];
    const Spatial<Real>& S = work.link[b].S;
    const Spatial<Real> motion = {S.ang, AtPoint(S, r)};
    Spatial<Real> column = legs.of_moving[i] ? motion : Spatial<Real>{-motion.ang, -motion.lin};
    SILC_UNROLL
    for (int row = 0; row < 6; ++row) {
      closing[nv * row + model.link[b].dof] = MotionRow(column, row);
    }
    q[b] = column;
  }

  const Real least(T(1e-4)), tiny(T(1e-30));
  SILC_UNROLL
  for (int row = 0; row < 6; ++row) {
    const auto rescale = [&](Real threshold) {
      Real length2 = zero;
      for (int i = 0; i < legs.count; ++i) {
        const Real x = MotionRow(q[legs.link[i]], row);
        length2 += x * x;
      }
      const Real length = Sqrt(length2);
      const Real scale = Select(length > threshold, one / Max(length, tiny), zero);
      for (int i = 0; i < legs.count; ++i) {
        Real& x = MotionRow(q[legs.link[i]], row);
        x = x * scale;
      }
    };
    rescale(tiny);
    for (int pass = 0; pass < 2; ++pass) {
      SILC_UNROLL
      for (int other = 0; other < row; ++other) {
        Real share = zero;
        for (int i = 0; i < legs.count; ++i) {
          Spatial<Real>& c = q[legs.link[i]];
          share += MotionRow(c, other) * MotionRow(c, row);
        }
        for (int i = 0; i < legs.count; ++i) {
          Spatial<Real>& c = q[legs.link[i]];
          Real& x = MotionRow(c, row);
          x = x - share * MotionRow(c, other);
        }
      }
      rescale(pass == 0 ? least : tiny);
    }
  }
}

/// The Jacobians that the closing constraint leaves, after ClosingRows().
///
///     J = J_stance,0 (I − J_c⁺ J_c)                                                      (S5)
///
/// By orthonormal rows of J_c and not by (J_c J_cᵀ)⁻¹, which would square the condition of J_c.
///
/// @param stance      3 nv per point, foot 0 at rest; read
/// @param projected   3 nv per point, written
/// @param first, step rows that this thread does: first, first + step, …
template <class Real, class Work, class T>
SILC_HD void ProjectRows(const StepModel<T>& model,
                         const Column<Real>& stance,
                         const Column<Real>& projected,
                         int first,
                         int step,
                         Work& work) {
  const Real zero(0);
  const int nv = model.nv, points = 1 + model.num_frames;
  const auto q = work.closing();
  const Legs legs = FindLegs(model);
  for (int k = first; k < 3 * points; k += step) {
    const int start = nv * k;
    Real share[6] = {zero, zero, zero, zero, zero, zero};
    for (int j = 0; j < nv; ++j) projected[start + j] = stance[start + j];
    for (int i = 0; i < legs.count; ++i) {
      const Real x = stance[start + model.link[legs.link[i]].dof];
      SILC_UNROLL
      for (int row = 0; row < 6; ++row) share[row] += x * MotionRow(q[legs.link[i]], row);
    }
    for (int i = 0; i < legs.count; ++i) {
      Real x = projected[start + model.link[legs.link[i]].dof];
      SILC_UNROLL
      for (int row = 0; row < 6; ++row) x = x - share[row] * MotionRow(q[legs.link[i]], row);
      projected[start + model.link[legs.link[i]].dof] = x;
    }
  }
}

}  // namespace silc::SILC_KERNEL
