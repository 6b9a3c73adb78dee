// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/lanes.h"

/// Spatial algebra after Featherstone (2008), in world axes about one point O per kinematic tree.
/// With a common point and common axes there are no 6 × 6 transforms between links: inertias and
/// forces add.
namespace silc::SILC_KERNEL {

template <class Real>
struct Vec3 {
  Real x, y, z;
};

template <class Real>
SILC_HD Vec3<Real> operator+(Vec3<Real> a, Vec3<Real> b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class Real>
SILC_HD Vec3<Real> operator-(Vec3<Real> a, Vec3<Real> b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <class Real>
SILC_HD Vec3<Real> operator-(Vec3<Real> a) {
  return {-a.x, -a.y, -a.z};
}
template <class Real>
SILC_HD Vec3<Real> operator*(Vec3<Real> a, Real s) {
  return {a.x * s, a.y * s, a.z * s};
}
template <class Real>
SILC_HD Real Dot(Vec3<Real> a, Vec3<Real> b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class Real>
SILC_HD Vec3<Real> Cross(Vec3<Real> a, Vec3<Real> b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <class Real>
SILC_HD Vec3<Real> Select(MaskOf<Real> m, Vec3<Real> a, Vec3<Real> b) {
  return {Select(m, a.x, b.x), Select(m, a.y, b.y), Select(m, a.z, b.z)};
}

/// Rotation by columns: col[k] is the k-th axis of the rotated frame, in world axes.
template <class Real>
struct Rotation {
  Vec3<Real> col[3];
};

template <class Real, class T>
SILC_HD Vec3<Real> Rotate(const Rotation<Real>& R, T x, T y, T z) {
  return R.col[0] * Real(x) + R.col[1] * Real(y) + R.col[2] * Real(z);
}
template <class Real>
SILC_HD Vec3<Real> RotateInverse(const Rotation<Real>& R, Vec3<Real> a) {
  return {Dot(R.col[0], a), Dot(R.col[1], a), Dot(R.col[2], a)};
}

/// Motion (ω, v of the body-fixed point at O) or force (moment about O, force).
template <class Real>
struct Spatial {
  Vec3<Real> ang, lin;
};

template <class Real>
SILC_HD Spatial<Real> operator+(const Spatial<Real>& a, const Spatial<Real>& b) {
  return {a.ang + b.ang, a.lin + b.lin};
}
template <class Real>
SILC_HD Spatial<Real> operator-(const Spatial<Real>& a, const Spatial<Real>& b) {
  return {a.ang - b.ang, a.lin - b.lin};
}
template <class Real>
SILC_HD Spatial<Real> operator*(const Spatial<Real>& a, Real s) {
  return {a.ang * s, a.lin * s};
}
template <class Real>
SILC_HD Real Dot(const Spatial<Real>& a, const Spatial<Real>& b) {
  return Dot(a.ang, b.ang) + Dot(a.lin, b.lin);
}
template <class Real>
SILC_HD Spatial<Real> Select(MaskOf<Real> m, const Spatial<Real>& a, const Spatial<Real>& b) {
  return {Select<Real>(m, a.ang, b.ang), Select<Real>(m, a.lin, b.lin)};
}
/// Velocity of the body-fixed point at r (from O).
template <class Real>
SILC_HD Vec3<Real> AtPoint(const Spatial<Real>& v, Vec3<Real> r) {
  return v.lin + Cross(v.ang, r);
}
/// v × u, the rate at which a motion u fixed in a body that moves with v changes.
template <class Real>
SILC_HD Spatial<Real> CrossMotion(const Spatial<Real>& v, const Spatial<Real>& u) {
  return {Cross(v.ang, u.ang), Cross(v.ang, u.lin) + Cross(v.lin, u.ang)};
}
/// v ×* f, the same for a force.
template <class Real>
SILC_HD Spatial<Real> CrossForce(const Spatial<Real>& v, const Spatial<Real>& f) {
  return {Cross(v.ang, f.ang) + Cross(v.lin, f.lin), Cross(v.ang, f.lin)};
}

/// Symmetric 3 × 3.
template <class Real>
struct Sym3 {
  Real xx, yy, zz, xy, xz, yz;
};
template <class Real>
SILC_HD Vec3<Real> operator*(const Sym3<Real>& A, Vec3<Real> v) {
  return {A.xx * v.x + A.xy * v.y + A.xz * v.z,
          A.xy * v.x + A.yy * v.y + A.yz * v.z,
          A.xz * v.x + A.yz * v.y + A.zz * v.z};
}

/// Rigid-body inertia about O: 10 numbers.
template <class Real>
struct RigidInertia {
  Sym3<Real> I;  // about O                      [kg·m²]
  Vec3<Real> h;  // mass times centre of mass    [kg·m]
  Real m;        //                              [kg]
};

template <class Real>
SILC_HD Spatial<Real> operator*(const RigidInertia<Real>& G, const Spatial<Real>& v) {
  return {G.I * v.ang + Cross(G.h, v.lin), v.lin * G.m - Cross(G.h, v.ang)};
}

/// Articulated-body inertia, symmetric 6 × 6 in blocks [a b; bᵀ c]: 21 numbers.
template <class Real>
struct ArticulatedInertia {
  Sym3<Real> a;
  Real b[9];  // row-major
  Sym3<Real> c;
};

template <class Real>
SILC_HD ArticulatedInertia<Real> Widen(const RigidInertia<Real>& G) {
  const Real zero(0);
  return {G.I,
          {zero, -G.h.z, G.h.y, G.h.z, zero, -G.h.x, -G.h.y, G.h.x, zero},
          {G.m, G.m, G.m, zero, zero, zero}};
}

template <class Real>
SILC_HD void AddTo(Sym3<Real>* A, const Sym3<Real>& B) {
  A->xx += B.xx;
  A->yy += B.yy;
  A->zz += B.zz;
  A->xy += B.xy;
  A->xz += B.xz;
  A->yz += B.yz;
}
template <class Real>
SILC_HD void AddTo(ArticulatedInertia<Real>* A, const ArticulatedInertia<Real>& B) {
  AddTo(&A->a, B.a);
  SILC_UNROLL
  for (int i = 0; i < 9; ++i) A->b[i] += B.b[i];
  AddTo(&A->c, B.c);
}
template <class Real>
SILC_HD void AddTo(ArticulatedInertia<Real>* A, const RigidInertia<Real>& G) {
  AddTo(&A->a, G.I);
  A->b[1] -= G.h.z;
  A->b[2] += G.h.y;
  A->b[3] += G.h.z;
  A->b[5] -= G.h.x;
  A->b[6] -= G.h.y;
  A->b[7] += G.h.x;
  A->c.xx += G.m;
  A->c.yy += G.m;
  A->c.zz += G.m;
}

template <class Real>
SILC_HD Spatial<Real> operator*(const ArticulatedInertia<Real>& A, const Spatial<Real>& v) {
  const Real* b = A.b;
  const Vec3<Real> w = v.ang, l = v.lin;
  return {A.a * w + Vec3<Real>{b[0] * l.x + b[1] * l.y + b[2] * l.z,
                               b[3] * l.x + b[4] * l.y + b[5] * l.z,
                               b[6] * l.x + b[7] * l.y + b[8] * l.z},
          A.c * l + Vec3<Real>{b[0] * w.x + b[3] * w.y + b[6] * w.z,
                               b[1] * w.x + b[4] * w.y + b[7] * w.z,
                               b[2] * w.x + b[5] * w.y + b[8] * w.z}};
}

/// A −= U Uᵀ s
template <class Real>
SILC_HD void SubtractOuter(ArticulatedInertia<Real>* A, const Spatial<Real>& U, Real s) {
  const Spatial<Real> W = U * s;
  A->a.xx -= U.ang.x * W.ang.x;
  A->a.yy -= U.ang.y * W.ang.y;
  A->a.zz -= U.ang.z * W.ang.z;
  A->a.xy -= U.ang.x * W.ang.y;
  A->a.xz -= U.ang.x * W.ang.z;
  A->a.yz -= U.ang.y * W.ang.z;
  A->b[0] -= U.ang.x * W.lin.x;
  A->b[1] -= U.ang.x * W.lin.y;
  A->b[2] -= U.ang.x * W.lin.z;
  A->b[3] -= U.ang.y * W.lin.x;
  A->b[4] -= U.ang.y * W.lin.y;
  A->b[5] -= U.ang.y * W.lin.z;
  A->b[6] -= U.ang.z * W.lin.x;
  A->b[7] -= U.ang.z * W.lin.y;
  A->b[8] -= U.ang.z * W.lin.z;
  A->c.xx -= U.lin.x * W.lin.x;
  A->c.yy -= U.lin.y * W.lin.y;
  A->c.zz -= U.lin.z * W.lin.z;
  A->c.xy -= U.lin.x * W.lin.y;
  A->c.xz -= U.lin.x * W.lin.z;
  A->c.yz -= U.lin.y * W.lin.z;
}

/// A += Tᵀ W T with T = [−[r]× 1], the stiffness W of a point at r as an inertia about O.
template <class Real>
SILC_HD void AddPointStiffness(ArticulatedInertia<Real>* A, Vec3<Real> r, const Sym3<Real>& W) {
  // B = [r]× W, so that b += B and a += B [r]×ᵀ
  const Real b0 = r.y * W.xz - r.z * W.xy, b1 = r.y * W.yz - r.z * W.yy,
             b2 = r.y * W.zz - r.z * W.yz;
  const Real b3 = r.z * W.xx - r.x * W.xz, b4 = r.z * W.xy - r.x * W.yz,
             b5 = r.z * W.xz - r.x * W.zz;
  const Real b6 = r.x * W.xy - r.y * W.xx, b7 = r.x * W.yy - r.y * W.xy,
             b8 = r.x * W.yz - r.y * W.xz;
  A->b[0] += b0;
  A->b[1] += b1;
  A->b[2] += b2;
  A->b[3] += b3;
  A->b[4] += b4;
  A->b[5] += b5;
  A->b[6] += b6;
  A->b[7] += b7;
  A->b[8] += b8;
  A->a.xx += r.y * b2 - r.z * b1;
  A->a.xy += r.z * b0 - r.x * b2;
  A->a.xz += r.x * b1 - r.y * b0;
  A->a.yy += r.z * b3 - r.x * b5;
  A->a.yz += r.x * b4 - r.y * b3;
  A->a.zz += r.x * b7 - r.y * b6;
  AddTo(&A->c, W);
}

/// The same for a W without xy entry.
template <class Real>
SILC_HD void AddUprightStiffness(
    ArticulatedInertia<Real>* A, Vec3<Real> r, Real xx, Real yy, Real zz, Real xz, Real yz) {
  const Real b0 = r.y * xz, b1 = r.y * yz - r.z * yy, b2 = r.y * zz - r.z * yz;
  const Real b3 = r.z * xx - r.x * xz, b4 = -r.x * yz, b5 = r.z * xz - r.x * zz;
  const Real b6 = -r.y * xx, b7 = r.x * yy, b8 = r.x * yz - r.y * xz;
  A->b[0] += b0;
  A->b[1] += b1;
  A->b[2] += b2;
  A->b[3] += b3;
  A->b[4] += b4;
  A->b[5] += b5;
  A->b[6] += b6;
  A->b[7] += b7;
  A->b[8] += b8;
  A->a.xx += r.y * b2 - r.z * b1;
  A->a.xy += r.z * b0 - r.x * b2;
  A->a.xz += r.x * b1 - r.y * b0;
  A->a.yy += r.z * b3 - r.x * b5;
  A->a.yz += r.x * b4 - r.y * b3;
  A->a.zz += r.x * b7 - r.y * b6;
  A->c.xx += xx;
  A->c.yy += yy;
  A->c.zz += zz;
  A->c.xz += xz;
  A->c.yz += yz;
}

/// Solves A x = f for a symmetric positive definite A by LDLᵀ without pivoting.
template <class Real>
SILC_HD Spatial<Real> Solve(const ArticulatedInertia<Real>& A, const Spatial<Real>& f) {
  Real L[6][6];
  L[0][0] = A.a.xx;
  L[1][0] = A.a.xy;
  L[1][1] = A.a.yy;
  L[2][0] = A.a.xz;
  L[2][1] = A.a.yz;
  L[2][2] = A.a.zz;
  SILC_UNROLL
  for (int i = 0; i < 3; ++i) {
    SILC_UNROLL
    for (int j = 0; j < 3; ++j) L[3 + i][j] = A.b[3 * j + i];
  }
  L[3][3] = A.c.xx;
  L[4][3] = A.c.xy;
  L[4][4] = A.c.yy;
  L[5][3] = A.c.xz;
  L[5][4] = A.c.yz;
  L[5][5] = A.c.zz;
  Real x[6] = {f.ang.x, f.ang.y, f.ang.z, f.lin.x, f.lin.y, f.lin.z};
  Real inv[6];
  SILC_UNROLL
  for (int k = 0; k < 6; ++k) {
    inv[k] = Real(1) / L[k][k];
    SILC_UNROLL
    for (int i = k + 1; i < 6; ++i) {
      const Real w = L[i][k] * inv[k];
      SILC_UNROLL
      for (int j = i; j < 6; ++j) L[j][i] -= w * L[j][k];
      x[i] -= w * x[k];
    }
  }
  SILC_UNROLL
  for (int k = 5; k >= 0; --k) {
    Real s = x[k];
    SILC_UNROLL
    for (int i = k + 1; i < 6; ++i) s -= L[i][k] * x[i];
    x[k] = s * inv[k];
  }
  return {{x[0], x[1], x[2]}, {x[3], x[4], x[5]}};
}

}  // namespace silc::SILC_KERNEL
