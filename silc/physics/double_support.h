// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/step.h"

/// (S5) for a robot on both feet, foot 0 and foot 1 of the model. A header of its own beside
/// robot_data.h: the only place where a chain closes.
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

/// Closing constraint and the Jacobians it leaves.
///
///     J_c q̇ = motion of foot 1 (its body's origin) with foot 0 at rest = Σ S q̇ over the chain
///             of foot 1 − Σ S q̇ over the chain of foot 0;   joints above the fork cancel
///     J     = J_stance,0 (I − J_c⁺ J_c)                                                  (S5)
///
/// The projection is by orthonormal rows of J_c (Gram–Schmidt, twice, on rows of length one), not
/// by (J_c J_cᵀ)⁻¹, which would square the condition of J_c. A row that is the others' within 1e-4
/// of its length is left out. Links of the two legs alone take part.
///
/// @param stance    3 nv per point, foot 0 at rest; read
/// @param closing   6 nv, written
/// @param projected 3 nv per point, written
template <class Real, class Work, class T>
SILC_HD void DoubleSupport(const StepModel<T>& model,
                           const Column<Real>& stance,
                           const Column<Real>& closing,
                           const Column<Real>& projected,
                           Work& work) {
  const Real zero(0), one(1);
  const int nv = model.nv, points = 1 + model.num_frames;
  for (int i = 0; i < 6 * nv; ++i) closing[i] = zero;

  // both chains down to the fork; a link's number is larger than its parent's
  int leg[kMaxLinks], count = 0;
  const LinkFrame<Real>& at = work.frame[model.foot_link[1]];
  const T* p_LB = model.foot_point[1];
  const Vec3<Real> r = at.p + Rotate(at.R, p_LB[0], p_LB[1], p_LB[2]);
  int still = model.foot_link[0], moving = model.foot_link[1];
  while (still != moving) {
    const bool of_moving = moving > still;
    const int b = of_moving ? moving : still;
    (of_moving ? moving : still) = model.link[b].parent;
    // a free joint is the trunk of both; feet of two trees are refused by the compiler
    const Spatial<Real>& S = work.link[b].S;
    const Spatial<Real> motion = {S.ang, AtPoint(S, r)};
    Spatial<Real> column = of_moving ? motion : Spatial<Real>{-motion.ang, -motion.lin};
    SILC_UNROLL
    for (int row = 0; row < 6; ++row) {
      closing[nv * row + model.link[b].dof] = MotionRow(column, row);
    }
    work.p[b] = column;
    leg[count++] = b;
  }

  // rows of work.p become orthonormal
  const Real least(T(1e-4)), tiny(T(1e-30));
  SILC_UNROLL
  for (int row = 0; row < 6; ++row) {
    const auto rescale = [&](Real threshold) {
      Real length2 = zero;
      for (int i = 0; i < count; ++i) {
        const Real x = MotionRow(work.p[leg[i]], row);
        length2 += x * x;
      }
      const Real length = Sqrt(length2);
      const Real scale = Select(length > threshold, one / Max(length, tiny), zero);
      for (int i = 0; i < count; ++i) {
        Real& x = MotionRow(work.p[leg[i]], row);
        x = x * scale;
      }
    };
    rescale(tiny);
    for (int pass = 0; pass < 2; ++pass) {
      SILC_UNROLL
      for (int other = 0; other < row; ++other) {
        Real share = zero;
        for (int i = 0; i < count; ++i) {
          Spatial<Real>& q = work.p[leg[i]];
          share += MotionRow(q, other) * MotionRow(q, row);
        }
        for (int i = 0; i < count; ++i) {
          Spatial<Real>& q = work.p[leg[i]];
          Real& x = MotionRow(q, row);
          x = x - share * MotionRow(q, other);
        }
      }
      rescale(pass == 0 ? least : tiny);
    }
  }

  for (int k = 0; k < 3 * points; ++k) {
    const int start = nv * k;
    Real share[6] = {zero, zero, zero, zero, zero, zero};
    for (int j = 0; j < nv; ++j) projected[start + j] = stance[start + j];
    for (int i = 0; i < count; ++i) {
      const Real x = stance[start + model.link[leg[i]].dof];
      SILC_UNROLL
      for (int row = 0; row < 6; ++row) share[row] += x * MotionRow(work.p[leg[i]], row);
    }
    for (int i = 0; i < count; ++i) {
      Real x = projected[start + model.link[leg[i]].dof];
      SILC_UNROLL
      for (int row = 0; row < 6; ++row) x = x - share[row] * MotionRow(work.p[leg[i]], row);
      projected[start + model.link[leg[i]].dof] = x;
    }
  }
}

}  // namespace silc::SILC_KERNEL
