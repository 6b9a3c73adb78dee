// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/pair_model.h"
#include "silc/physics/soft_row.h"
#include "silc/physics/spatial.h"

/// (D12) Contacts between two moving links. Such a contact couples two chains, and the tree of
/// M + JᵀDJ is lost. What is left is the tree plus a few rows,
///
///     H = H_t + Gᵀ F Fᵀ G,     G q̈ = relative acceleration at the points,  F from the active edges
///
/// and Woodbury's identity solves it with the factor of H_t at hand:
///
///     y = H_t⁻¹ b_t,   (I + Fᵀ S F) λ = Fᵀ (G y − a_ref),   S = G H_t⁻¹ Gᵀ,   x = y − H_t⁻¹ Gᵀ F λ
///
/// I + FᵀSF has eigenvalues of at least one. Each of its columns is a push at two links answered by
/// the tree: O(links) along the chains of the links that touch.
///
/// A robot keeps its contacts in slots, in the order of the model's pairs. Lanes fill their slots
/// independently, so slot k of one robot may hold another pair than its neighbour's; links are
/// looked up once for each pair in it. An empty slot is all zeros and adds zeros: a robot's bits
/// are its own.
namespace silc::SILC_KERNEL {

template <class Real>
struct PairSlot {
  /// Who is in it: pairs of links, each with the lanes that put it there.
  struct User {
    int pair, first, second;
    MaskOf<Real> lanes;
  };
  User user[ScalarTraits<Real>::kLanes];
  int num_users;
  int rows;              // 1 where no lane has friction, else 3
  Vec3<Real> r1, r2;     // the point, from O of the first and of the second link
  Vec3<Real> n, t1, t2;  // t1, t2 already multiplied by the friction coefficient
  Real D;                // per pyramid edge; 0: empty
  Real ref[3];           // a_ref along n, μt1, μt2
  Real e[3], e_new[3];   // G q̈ − a_ref along the same, at the iterate and the target
  Real F[3][3];          // columns: multiples of n, μt1, μt2
  Vec3<Real> q[3];       // the same columns as vectors in W
  Vec3<Real> force;      // on the second link, in W; the first feels its opposite
};

/// Scratch of the pairs. kSlots = 0 leaves it out, and with it all code about pairs.
template <class Real, int kLinks, int kSlots>
struct PairWork {
  const PairModel<ScalarOf<Real>>* model;  // set by the caller
  PairSlot<Real> slot[kSlots];
  int num_slots;                          // used in some lane
  int count[ScalarTraits<Real>::kLanes];  // used in each
  MaskOf<Real> lanes;                     // robots with a contact
  MaskOf<Real> crowded;                   // robots with more than there are slots
  MaskOf<Real> touched[kLinks];           // links with a contact, per lane
  int links[kLinks], num_links;           // on the chains of those, in some lane, ascending
  unsigned char on_chain[kLinks];
  Spatial<Real> force[kLinks];  // of all contacts on a link, about O
  // shapes
  Vec3<Real> centre[kMaxShapes], axis[kMaxShapes];
  // the tree's answer to forces on its links
  Spatial<Real> push[kLinks], p[kLinks], a[kLinks];
  Real u[kLinks], x[kLinks];
  // I + FᵀSF, then its Cholesky factor: rows of the lower triangle; and λ
  Real K[3 * kSlots * (3 * kSlots + 1) / 2];
  Real value[3 * kSlots];
};
template <class Real, int kLinks>
struct PairWork<Real, kLinks, 0> {};

template <class Real>
SILC_HD void SetLane(Vec3<Real>* a, int i, const Vec3<Real>& value) {
  SetLane(&a->x, i, Lane(value.x, i));
  SetLane(&a->y, i, Lane(value.y, i));
  SetLane(&a->z, i, Lane(value.z, i));
}

/// O of a link's tree in W, and its velocity.
template <class Real, class Robot, class T>
SILC_HD void TreeOrigin(
    const StepModel<T>& model, const Robot& robot, int b, Vec3<Real>* p, Vec3<Real>* v) {
  const LinkConstants<T>& root = model.link[model.link[b].root];
  const Real zero(0);
  if (root.joint == JointKind::kFree) {
    *p = {robot.qpos[root.qpos], robot.qpos[root.qpos + 1], robot.qpos[root.qpos + 2]};
    *v = {robot.qvel[root.dof], robot.qvel[root.dof + 1], robot.qvel[root.dof + 2]};
  } else {
    *p = {Real(root.p_PL[0]), Real(root.p_PL[1]), Real(root.p_PL[2])};
    *v = {zero, zero, zero};
  }
}

/// Nearest points of two shapes as multiples x1, x2 ∈ [−1, 1] of their axes; w from the first
/// centre to the second. Axes that are parallel have many nearest points; one is taken.
template <class Real, class T>
SILC_HD void NearestPoints(const ShapeConstants<T>& s1,
                           const ShapeConstants<T>& s2,
                           const Vec3<Real>& a1,
                           const Vec3<Real>& a2,
                           const Vec3<Real>& w,
                           Real* x1,
                           Real* x2) {
  const Real zero(0), one(1);
  *x1 = zero;
  *x2 = zero;
  if (s1.capsule && s2.capsule) {
    // by the common perpendicular a1 × a2, which keeps its digits where a1² a2² − (a1·a2)² has none
    const Vec3<Real> normal = Cross(a1, a2);
    const Real det = Dot(normal, normal), aa = Dot(a1, a1), bb = Dot(a2, a2);
    const MaskOf<Real> skew = det > Real(T(1e-12)) * aa * bb;
    const Real t1 = Select(skew, Dot(Cross(w, a2), normal) / Select(skew, det, one), zero);
    *x1 = Clamp(t1, -one, one);
    const Real t2 = Dot(a2, a1 * *x1 - w) / bb;
    *x2 = Clamp(t2, -one, one);
    const MaskOf<Real> cut = Abs(t2) > one;
    *x1 = Select(cut, Clamp(Dot(a1, w + a2 * *x2) / aa, -one, one), *x1);
  } else if (s1.capsule) {
    *x1 = Clamp(Dot(a1, w) / Dot(a1, a1), -one, one);
  } else if (s2.capsule) {
    *x2 = Clamp(-Dot(a2, w) / Dot(a2, a2), -one, one);
  }
}

/// (D12) Shapes nearer than their margin, sorted into slots, with frame, regulariser and reference
/// acceleration as (D5)–(D7) have them for the ground.
template <class Real, class Robot, class Work, class T>
SILC_HD_NOINLINE void FindPairs(const StepModel<T>& model, const Robot& robot, Work& work) {
  constexpr int kLanes = ScalarTraits<Real>::kLanes;
  const Real zero(0), one(1);
  const Vec3<Real> none = {zero, zero, zero};
  const PairModel<T>& pairs = *work.pair.model;
  auto& out = work.pair;
  out.num_slots = 0;
  out.num_links = 0;
  out.lanes = MaskOf<Real>(false);
  out.crowded = MaskOf<Real>(false);
  for (int i = 0; i < kLanes; ++i) out.count[i] = 0;
  for (int b = 0; b < model.num_links; ++b) {
    out.touched[b] = MaskOf<Real>(false);
    out.on_chain[b] = 0;
  }
  if (pairs.num_pairs == 0) return;
  const MaskOf<Real> awake = Not(robot.fault[0] > zero);
  for (int i = 0; i < pairs.num_shapes; ++i) {
    const ShapeConstants<T>& s = pairs.shape[i];
    const auto& frame = work.frame[s.link];
    out.centre[i] = frame.p + Rotate(frame.R, s.p_LC[0], s.p_LC[1], s.p_LC[2]);
    if (s.capsule) out.axis[i] = Rotate(frame.R, s.axis[0], s.axis[1], s.axis[2]);
  }
  for (int k = 0; k < pairs.num_pairs; ++k) {
    const PairConstants<T>& pair = pairs.pair[k];
    const ShapeConstants<T>&s1 = pairs.shape[pair.first], &s2 = pairs.shape[pair.second];
    Vec3<Real> w = out.centre[pair.second] - out.centre[pair.first];
    Vec3<Real> apart = none, drift = none;  // O of the second tree from O of the first
    if (pair.other_tree) {
      Vec3<Real> p1, p2, v1, v2;
      TreeOrigin<Real>(model, robot, s1.link, &p1, &v1);
      TreeOrigin<Real>(model, robot, s2.link, &p2, &v2);
      apart = p2 - p1;
      drift = v2 - v1;
      w = w + apart;
    }
    const MaskOf<Real> near = awake & (Dot(w, w) < Real(pair.reach2));
    if (!Any(near)) continue;

    const PairKind<T>& kind = pairs.kind[pair.kind];
    Real x1, x2;
    NearestPoints<Real>(s1, s2, out.axis[pair.first], out.axis[pair.second], w, &x1, &x2);
    Vec3<Real> p1 = out.centre[pair.first], p2 = p1 + w;
    if (s1.capsule) p1 = p1 + out.axis[pair.first] * x1;
    if (s2.capsule) p2 = p2 + out.axis[pair.second] * x2;
    const Vec3<Real> d = p2 - p1;
    const Real length = Sqrt(Dot(d, d));
    const Real dist = length - Real(s1.radius + s2.radius);
    const MaskOf<Real> touching = near & (dist < Real(kind.row.margin));
    if (!Any(touching)) continue;

    // Axes that cross, as those of a flat mechanism do, leave no direction but the one across both;
    // below what the scalar resolves there is no other either. Centres that coincide have none: x.
    Vec3<Real> across = {one, zero, zero};
    if (s1.capsule && s2.capsule) {
      const Vec3<Real> normal = Cross(out.axis[pair.first], out.axis[pair.second]);
      const Real square = Dot(normal, normal);
      const MaskOf<Real> skew = square > Real(T(1e-30));
      across = Select<Real>(skew, normal * (one / Sqrt(Select(skew, square, one))), across);
    }
    const MaskOf<Real> defined = length > Real(T(sizeof(T) == 4 ? 1e-6 : 1e-15));
    const Vec3<Real> n = Select<Real>(defined, d * (one / Select(defined, length, one)), across);
    const Vec3<Real> r1 = p1 + n * (Real(s1.radius) + Real(T(0.5)) * dist), r2 = r1 - apart;
    // MuJoCo's tangents: y laid into the plane, or z when y is nearly the normal
    const MaskOf<Real> by_y = Abs(n.y) < Real(T(0.5));
    const Vec3<Real> up = {zero, Select(by_y, one, zero), Select(by_y, zero, one)};
    const Vec3<Real> flat = up - n * Dot(n, up);
    const Vec3<Real> t1 = flat * (one / Sqrt(Dot(flat, flat)));
    const Real scale = robot.friction_scale[0];
    const Real mu1 = Real(kind.mu1) * scale, mu2 = Real(kind.mu2) * scale;

    const Real pos = dist - Real(kind.row.margin);
    const Real imp = Impedance<Real>(kind.row, pos);
    const Real slack = (one - imp) * Real(s1.invweight + s2.invweight);
    Real D;
    if (kind.frictionless) {
      D = Real(T(0.25)) * imp / Max(slack, Real(T(1e-15)) * imp);
    } else {
      D = imp / (mu1 * mu1 * Real(T(2) / pairs.impratio) * slack * (one + mu1 * mu1));
    }
    const Vec3<Real> v =
        drift + AtPoint(work.frame[s2.link].v, r2) - AtPoint(work.frame[s1.link].v, r1);
    const Vec3<Real> mt1 = t1 * mu1, mt2 = Cross(n, t1) * mu2;
    const Real B(kind.row.B);
    const Real ref[3] = {
        -B * Dot(n, v) - Real(kind.row.K) * imp * pos, -B * Dot(mt1, v), -B * Dot(mt2, v)};

    for (int i = 0; i < kLanes; ++i) {
      if (!LaneBit(touching, i)) continue;
      const int at = out.count[i]++;
      if (at >= Work::kSlots) continue;
      PairSlot<Real>& slot = out.slot[at];
      if (at == out.num_slots) {
        // first use in this step: empty in every other lane
        ++out.num_slots;
        slot.num_users = 0;
        slot.rows = 1;
        slot.r1 = slot.r2 = slot.n = slot.t1 = slot.t2 = none;
        slot.D = slot.ref[0] = slot.ref[1] = slot.ref[2] = zero;
      }
      if (slot.num_users == 0 || slot.user[slot.num_users - 1].pair != k) {
        slot.user[slot.num_users++] = {k, s1.link, s2.link, MaskOf<Real>(false)};
      }
      MaskOf<Real>& lanes = slot.user[slot.num_users - 1].lanes;
      lanes = lanes | OneLane<Real>(i);
      if (!kind.frictionless) slot.rows = 3;
      SetLane(&slot.r1, i, r1);
      SetLane(&slot.r2, i, r2);
      SetLane(&slot.n, i, n);
      SetLane(&slot.t1, i, mt1);
      SetLane(&slot.t2, i, mt2);
      SetLane(&slot.D, i, Lane(D, i));
      for (int j = 0; j < 3; ++j) SetLane(&slot.ref[j], i, Lane(ref[j], i));
    }
    out.lanes = out.lanes | touching;
    out.touched[s1.link] = out.touched[s1.link] | touching;
    out.touched[s2.link] = out.touched[s2.link] | touching;
    for (int b = s1.link; b >= 0 && !out.on_chain[b]; b = model.link[b].parent) out.on_chain[b] = 1;
    for (int b = s2.link; b >= 0 && !out.on_chain[b]; b = model.link[b].parent) out.on_chain[b] = 1;
  }
  for (int b = 0; b < model.num_links; ++b) {
    if (out.on_chain[b]) out.links[out.num_links++] = b;
  }
  for (int i = 0; i < kLanes; ++i) {
    if (out.count[i] > Work::kSlots) out.crowded = out.crowded | OneLane<Real>(i);
  }
}

/// Motions of a slot's two links. Not inlined, like AddSlotForce(): were it merged with the
/// arithmetic around it, one user and several could be contracted differently, and a robot's bits
/// depend on its neighbours.
template <class Real, class Motion>
SILC_HD_NOINLINE void SlotMotions(const PairSlot<Real>& slot,
                                  const Motion& motion,
                                  Spatial<Real>* first,
                                  Spatial<Real>* second) {
  // lanes that do not use the slot may see anything finite: their directions are zero
  *first = motion(slot.user[0].first);
  *second = motion(slot.user[0].second);
  for (int k = 1; k < slot.num_users; ++k) {
    const auto& user = slot.user[k];
    *first = Select<Real>(user.lanes, motion(user.first), *first);
    *second = Select<Real>(user.lanes, motion(user.second), *second);
  }
}

/// Relative acceleration at a slot's point, from a motion of the links.
template <class Real, class Motion>
SILC_HD Vec3<Real> AtSlot(const PairSlot<Real>& slot, const Motion& motion) {
  Spatial<Real> first, second;
  SlotMotions<Real>(slot, motion, &first, &second);
  return AtPoint(second, slot.r2) - AtPoint(first, slot.r1);
}

/// G q̈ − a_ref of all slots for accelerations a of the links.
template <class Real, class Work>
SILC_HD_NOINLINE void PairRows(Work& work, bool target) {
  for (int k = 0; k < work.pair.num_slots; ++k) {
    PairSlot<Real>& s = work.pair.slot[k];
    const Vec3<Real> at = AtSlot<Real>(s, [&](int b) -> const Spatial<Real>& {
      return target ? work.link[b].a_new : work.link[b].a;
    });
    Real* e = target ? s.e_new : s.e;
    e[0] = Dot(s.n, at) - s.ref[0];
    e[1] = Dot(s.t1, at) - s.ref[1];
    e[2] = Dot(s.t2, at) - s.ref[2];
  }
}

/// Adds a force on the second link of a slot, and its opposite on the first, to `wrench`.
template <class Real>
SILC_HD_NOINLINE void AddSlotForce(const PairSlot<Real>& slot,
                                   const Vec3<Real>& f,
                                   Spatial<Real>* wrench) {
  const Real zero(0);
  const Spatial<Real> second = {Cross(slot.r2, f), f}, first = {Cross(slot.r1, f), f},
                      none = {{zero, zero, zero}, {zero, zero, zero}};
  for (int k = 0; k < slot.num_users; ++k) {
    const auto& user = slot.user[k];
    wrench[user.second] = wrench[user.second] + Select<Real>(user.lanes, second, none);
    wrench[user.first] = wrench[user.first] - Select<Real>(user.lanes, first, none);
  }
}

template <class Real, class Work>
SILC_HD void ClearPush(Work& work) {
  const Real zero(0);
  for (int i = 0; i < work.pair.num_links; ++i) {
    work.pair.push[work.pair.links[i]] = {{zero, zero, zero}, {zero, zero, zero}};
  }
}

/// H_t⁻¹ Jᵀ push, by the factor that Eliminate() left, for the links in `list` (ascending, with
/// every parent): accelerations in pair.a and pair.x.
template <class Real, class Link, class Work, class T>
SILC_HD_NOINLINE void TreeAnswer(const StepModel<T>& model,
                                 const Link* list,
                                 int count,
                                 Work& work) {
  auto& pair = work.pair;
  const Real zero(0);
  const Spatial<Real> none = {{zero, zero, zero}, {zero, zero, zero}};
  for (int i = 0; i < count; ++i) {
    const int b = list[i];
    pair.p[b] = pair.on_chain[b] ? none - pair.push[b] : none;
  }
  for (int i = count - 1; i >= 0; --i) {
    const int b = list[i], parent = model.link[b].parent;
    const auto& w = work.link[b];
    if (model.link[b].joint == JointKind::kFree) {
      pair.a[b] = Solve(work.A[b], none - pair.p[b]);
      continue;
    }
    pair.u[b] = -Dot(w.S, pair.p[b]) * w.inv_D;
    if (parent >= 0) pair.p[parent] = pair.p[parent] + (pair.p[b] + w.U * pair.u[b]);
  }
  for (int i = 0; i < count; ++i) {
    const int b = list[i], parent = model.link[b].parent;
    const auto& w = work.link[b];
    if (model.link[b].joint == JointKind::kFree) continue;
    const Spatial<Real> base = parent >= 0 ? pair.a[parent] : none;
    pair.x[b] = pair.u[b] - w.inv_D * Dot(w.U, base);
    pair.a[b] = base + w.S * pair.x[b];
  }
}

/// (D12) F of the edges that are active at the iterate, and the Cholesky factor of I + FᵀSF.
template <class Real, class Work, class T>
SILC_HD_NOINLINE void FactorPairs(const StepModel<T>& model, Work& work) {
  auto& pair = work.pair;
  const Real zero(0), one(1);
  for (int k = 0; k < pair.num_slots; ++k) {
    PairSlot<Real>& s = pair.slot[k];
    const MaskOf<Real> on0 = s.e[0] + s.e[1] < zero, on1 = s.e[0] - s.e[1] < zero,
                       on2 = s.e[0] + s.e[2] < zero, on3 = s.e[0] - s.e[2] < zero;
    const MaskOf<Real> all = on0 & on1 & on2 & on3;
    const Real root = Sqrt(s.D), minus = -root, two = root + root,
               root2 = root * Real(T(1.4142135623730951));
    // four edges n ± μt_k: D diag(4, 2, 2). Three or fewer are columns as they are, the last in
    // the place of the first that is missing.
    const MaskOf<Real> in0 = on3 & Not(on0), in1 = on3 & on0 & Not(on1),
                       in2 = on3 & on0 & on1 & Not(on2);
    const Real last = minus;  // of the last edge, n − μt2, along t2
    s.F[0][0] = Select(all, two, Select(on0 | in0, root, zero));
    s.F[0][1] = Select(all, zero, Select(on0, root, zero));
    s.F[0][2] = Select(all, zero, Select(in0, last, zero));
    s.F[1][0] = Select(all, zero, Select(on1 | in1, root, zero));
    s.F[1][1] = Select(all, root2, Select(on1, minus, zero));
    s.F[1][2] = Select(all, zero, Select(in1, last, zero));
    s.F[2][0] = Select(all, zero, Select(on2 | in2, root, zero));
    s.F[2][1] = zero;
    s.F[2][2] = Select(all, root2, Select(on2, root, Select(in2, last, zero)));
    for (int c = 0; c < s.rows; ++c) {
      s.q[c] = s.n * s.F[c][0] + s.t1 * s.F[c][1] + s.t2 * s.F[c][2];
    }
  }
  // columns: push with q at one slot, look at all later ones
  int column = 0;
  for (int k = 0; k < pair.num_slots; ++k) {
    const PairSlot<Real>& from = pair.slot[k];
    for (int c = 0; c < from.rows; ++c, ++column) {
      ClearPush<Real>(work);
      AddSlotForce(from, from.q[c], pair.push);
      TreeAnswer<Real>(model, pair.links, pair.num_links, work);
      int row = column - c;
      for (int j = k; j < pair.num_slots; ++j) {
        const PairSlot<Real>& to = pair.slot[j];
        const Vec3<Real> at =
            AtSlot<Real>(to, [&](int b) -> const Spatial<Real>& { return pair.a[b]; });
        for (int i = 0; i < to.rows; ++i, ++row) {
          if (row < column) continue;
          pair.K[row * (row + 1) / 2 + column] = Dot(to.q[i], at) + (row == column ? one : zero);
        }
      }
    }
  }
  const int size = column;
  for (int j = 0; j < size; ++j) {
    Real* Kj = pair.K + j * (j + 1) / 2;
    for (int i = 0; i < j; ++i) {
      const Real* Ki = pair.K + i * (i + 1) / 2;
      Real s = Kj[i];
      for (int m = 0; m < i; ++m) s = s - Kj[m] * Ki[m];
      Kj[i] = s * Ki[i];  // the diagonal holds inverses
    }
    Real s = Kj[j];
    for (int m = 0; m < j; ++m) s = s - Kj[m] * Kj[m];
    Kj[j] = one / Sqrt(s);
  }
}

/// −H_t⁻¹ Gᵀ F (I + FᵀSF)⁻¹ Fᵀ g for the links in `list`, in pair.a and pair.x, where g is the
/// target's rows e_new, or (`plain`) the relative acceleration of a_new without a_ref.
template <class Real, class Link, class Work, class T>
SILC_HD_NOINLINE void AnswerPairs(
    const StepModel<T>& model, bool plain, const Link* list, int count, Work& work) {
  auto& pair = work.pair;
  int size = 0;
  for (int k = 0; k < pair.num_slots; ++k) {
    const PairSlot<Real>& s = pair.slot[k];
    if (plain) {
      const Vec3<Real> at =
          AtSlot<Real>(s, [&](int b) -> const Spatial<Real>& { return work.link[b].a_new; });
      for (int c = 0; c < s.rows; ++c) pair.value[size++] = Dot(s.q[c], at);
    } else {
      for (int c = 0; c < s.rows; ++c) {
        pair.value[size++] =
            s.F[c][0] * s.e_new[0] + s.F[c][1] * s.e_new[1] + s.F[c][2] * s.e_new[2];
      }
    }
  }
  Real* value = pair.value;
  for (int j = 0; j < size; ++j) {
    const Real* Kj = pair.K + j * (j + 1) / 2;
    Real s = value[j];
    for (int m = 0; m < j; ++m) s = s - Kj[m] * value[m];
    value[j] = s * Kj[j];
  }
  for (int j = size - 1; j >= 0; --j) {
    Real s = value[j];
    for (int m = j + 1; m < size; ++m) s = s - pair.K[m * (m + 1) / 2 + j] * value[m];
    value[j] = s * pair.K[j * (j + 1) / 2 + j];
  }
  ClearPush<Real>(work);
  int row = 0;
  for (int k = 0; k < pair.num_slots; ++k) {
    const PairSlot<Real>& s = pair.slot[k];
    Vec3<Real> f = s.q[0] * value[row++];
    for (int c = 1; c < s.rows; ++c) f = f + s.q[c] * value[row++];
    AddSlotForce(s, -f, pair.push);
  }
  TreeAnswer<Real>(model, list, count, work);
}

/// Calls add(D, r, s) for the four edges of every slot: values at the iterate and at the target.
template <class Real, class Work, class Add>
SILC_HD void ForPairEdges(const Work& work, const Add& add) {
  for (int k = 0; k < work.pair.num_slots; ++k) {
    const PairSlot<Real>& s = work.pair.slot[k];
    add(s.D, s.e[0] + s.e[1], s.e_new[0] + s.e_new[1]);
    add(s.D, s.e[0] - s.e[1], s.e_new[0] - s.e_new[1]);
    add(s.D, s.e[0] + s.e[2], s.e_new[0] + s.e_new[2]);
    add(s.D, s.e[0] - s.e[2], s.e_new[0] - s.e_new[2]);
  }
}

/// (D12) Turns the tree's Newton target into that of tree and pairs, with the sums that go with it:
/// (target − iterate)ᵀ H (target − iterate), and those over the rows of contacts and pairs. Lanes
/// without pairs keep their bits.
template <class Real, class Link, class Sums, class Work, class T>
SILC_HD_NOINLINE void AddPairs(
    const StepModel<T>& model, const Link* live, int num_live, Real* dHd, Sums* sums, Work& work) {
  auto& pair = work.pair;
  const Real zero(0);
  const Spatial<Real> none = {{zero, zero, zero}, {zero, zero, zero}};
  FactorPairs<Real>(model, work);
  PairRows<Real>(work, true);
  AnswerPairs<Real>(model, false, live, num_live, work);
  Real sum = zero;
  for (int i = 0; i < num_live; ++i) {
    const int b = live[i], parent = model.link[b].parent;
    auto& w = work.link[b];
    w.a_new = Select<Real>(pair.lanes, w.a_new + pair.a[b], w.a_new);
    if (model.link[b].joint == JointKind::kFree) {
      const Spatial<Real> d = w.a_new - w.a;
      sum += Select(work.live[b], Dot(d, work.A[b] * d), zero);
      continue;
    }
    w.x_new = Select(pair.lanes, w.x_new + pair.x[b], w.x_new);
    const Spatial<Real> d = parent >= 0 ? work.link[parent].a_new - work.link[parent].a : none;
    const Real miss = w.x_new - w.x + w.inv_D * Dot(w.U, d);
    sum += Select(work.live[b], miss * miss * w.D, zero);
  }
  PairRows<Real>(work, true);
  for (int k = 0; k < pair.num_slots; ++k) {
    const PairSlot<Real>& s = pair.slot[k];
    for (int c = 0; c < s.rows; ++c) {
      const Real along = s.F[c][0] * (s.e_new[0] - s.e[0]) + s.F[c][1] * (s.e_new[1] - s.e[1]) +
                         s.F[c][2] * (s.e_new[2] - s.e[2]);
      sum += along * along;
    }
  }
  *dHd = Select(pair.lanes, sum, *dHd);

  Sums all = {zero, zero, zero, zero, MaskOf<Real>(false)};
  for (int k = 0; k < work.num_active; ++k) {
    auto& c = work.contact[k];
    Real e[3];
    ContactRows(c, work.link[c.link].a_new, e);
    for (int j = 0; j < 3; ++j) c.e_new[j] = Select(pair.lanes, e[j], c.e_new[j]);
    all.Add(c.D, c.e[0] + c.e[1], c.e_new[0] + c.e_new[1]);
    all.Add(c.D, c.e[0] - c.e[1], c.e_new[0] - c.e_new[1]);
    all.Add(c.D, c.e[0] + c.e[2], c.e_new[0] + c.e_new[2]);
    all.Add(c.D, c.e[0] - c.e[2], c.e_new[0] - c.e_new[2]);
  }
  ForPairEdges<Real>(work, [&](Real D, Real r, Real s) { all.Add(D, r, s); });
  sums->curvature0 = Select(pair.lanes, all.curvature0, sums->curvature0);
  sums->slope0 = Select(pair.lanes, all.slope0, sums->slope0);
  sums->curvature1 = Select(pair.lanes, all.curvature1, sums->curvature1);
  sums->slope1 = Select(pair.lanes, all.slope1, sums->slope1);
  sums->changed = (pair.lanes & all.changed) | (Not(pair.lanes) & sums->changed);
}

/// Forces of the pairs at the solution, per slot and summed per link.
template <class Real, class Work>
SILC_HD_NOINLINE void PairForces(Work& work) {
  auto& pair = work.pair;
  const Real zero(0);
  for (int i = 0; i < pair.num_links; ++i) {
    pair.force[pair.links[i]] = {{zero, zero, zero}, {zero, zero, zero}};
  }
  for (int k = 0; k < pair.num_slots; ++k) {
    PairSlot<Real>& s = pair.slot[k];
    const Real f0 = -s.D * Min(s.e[0] + s.e[1], zero), f1 = -s.D * Min(s.e[0] - s.e[1], zero);
    const Real f2 = -s.D * Min(s.e[0] + s.e[2], zero), f3 = -s.D * Min(s.e[0] - s.e[2], zero);
    s.force = s.n * (f0 + f1 + f2 + f3) + s.t1 * (f0 - f1) + s.t2 * (f2 - f3);
    AddSlotForce(s, s.force, pair.force);
  }
}

/// (D11) with pairs: the tree's correction lies in a_new of the links and has been added; what the
/// pairs make of it is added here.
template <class Real, class Work, class T>
SILC_HD_NOINLINE void RefinePairs(const StepModel<T>& model, Work& work) {
  auto& pair = work.pair;
  const Real zero(0);
  const Spatial<Real> none = {{zero, zero, zero}, {zero, zero, zero}};
  AnswerPairs<Real>(model, true, work.all_links, model.num_links, work);
  const MaskOf<Real> on = pair.lanes & work.solved;
  for (int b = 0; b < model.num_links; ++b) {
    const int parent = model.link[b].parent;
    auto& w = work.link[b];
    if (model.link[b].joint == JointKind::kFree) {
      w.a = Select<Real>(on, w.a + pair.a[b], w.a);
      continue;
    }
    w.x = Select(on, w.x + pair.x[b], w.x);
    const Spatial<Real> base = parent >= 0 ? work.link[parent].a : none;
    w.a = Select<Real>(on, base + w.S * w.x, w.a);
    if (model.implicit_damping) {
      const Real force = JointForce(model, b, work.rows[b], w.x, work);
      w.constraint_force = Select(on, force, w.constraint_force);
    }
  }
  for (int k = 0; k < work.num_active; ++k) {
    auto& c = work.contact[k];
    auto moved = c;
    ContactRows(moved, work.link[c.link].a, moved.e);
    ContactForce(&moved);
    for (int j = 0; j < 3; ++j) c.e[j] = Select(on, moved.e[j], c.e[j]);
    c.force = Select<Real>(on, moved.force, c.force);
  }
  PairRows<Real>(work, false);
  PairForces<Real>(work);
}

}  // namespace silc::SILC_KERNEL
