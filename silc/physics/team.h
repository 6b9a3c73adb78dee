// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/spatial.h"
#include "silc/physics/team_plan.h"

/// Who steps a robot: one thread (Solo), or several that share out its links (Team).
///
/// A team's first member owns the trunk, the links that carry more than one branch; the branches
/// are shared out among all members (TeamPlan). A pass from the root to the leaves is: trunk,
/// meeting point, branches; a pass from the leaves to the root is the reverse. What crosses from a
/// branch to the trunk goes through a port (articulated inertia and force of the branch), what
/// crosses from the trunk to branches through a hub (pose and acceleration of the link they hang
/// on). Sums over all rows are formed from the members' parts in the members' order, so that all
/// members hold the same bits and take the same decisions.
///
/// Both kinds have the same functions, all static; Solo's vanish in compilation.
namespace silc::SILC_KERNEL {

template <class Real>
struct LinkFrame {
  Rotation<Real> R;    // R_WL
  Vec3<Real> p;        // from O
  Spatial<Real> v;     // relative to a frame that moves with O's velocity at this instant
  Spatial<Real> bias;  // acceleration at qacc = 0, gravity's opposite included
};

/// Sums over the rows along the line from iterate to target, α from 0 to 1.
template <class Real>
struct RowSums {
  Real curvature0, slope0;  // rows active at α = 0: Σ D Δ², Σ D r Δ
  Real curvature1, slope1;  // rows active at α = 1: Σ D Δ², Σ D r' Δ
  MaskOf<Real> changed;     // some row is active at one end only

  /// Row value r at α = 0 and s at α = 1, quadratic below zero.
  SILC_HD void Add(Real D, Real r, Real s) {
    const Real zero(0);
    const Real delta = s - r, q = D * delta;
    const MaskOf<Real> on0 = r < zero, on1 = s < zero;
    const Real q0 = Select(on0, q, zero), q1 = Select(on1, q, zero);
    curvature0 += q0 * delta;
    slope0 += q0 * r;
    curvature1 += q1 * delta;
    slope1 += q1 * s;
    changed = changed | ((on0 != on1) & (D > zero));
  }
};

/// A member of what a pass reads of a link: a copy, or a look at the original. A GPU's thread
/// copies, so that all reads are under way together; a CPU's would copy vectors through memory.
template <class Value, bool kCopy>
struct ReadType {
  using Type = Value;
};
template <class Value>
struct ReadType<Value, false> {
  using Type = const Value&;
};
template <class Value, bool kCopy>
using ReadOf = typename ReadType<Value, kCopy>::Type;

struct Solo {
  static constexpr bool kCopies = false;
  /// Own links, parents first, the trunk before the branches.
  struct Walk {
    int link, end;
    SILC_HD bool Next() { return ++link < end; }
  };
  struct ListWalk {
    const unsigned char* list;
    int i, end, link;
    SILC_HD bool Next() {
      if (++i >= end) return false;
      link = list[i];
      return true;
    }
  };
  struct WalkUp {
    int link;
    SILC_HD bool Next() { return --link >= 0; }
  };
  template <class Model>
  SILC_HD static int NumOwn(const Model& model) {
    return model.num_links;
  }
  SILC_HD static int NumTrunk() { return 0; }
  SILC_HD static int Own(int i) { return i; }
  SILC_HD static bool Owns(int) { return true; }
  /// Place of an own link among the thread's own.
  SILC_HD static int Slot(int b) { return b; }
  SILC_HD static bool Leads() { return true; }
  template <class Model>
  SILC_HD static Walk Down(const Model& model) {
    return {-1, model.num_links};
  }
  SILC_HD static ListWalk Down(const unsigned char* list, int count, int) {
    return {list, -1, count, -1};
  }
  template <class Model>
  SILC_HD static WalkUp Up(const Model& model) {
    return {model.num_links};
  }
  SILC_HD static void Meet() {}
  SILC_HD static bool MeetAny(bool flag) { return flag; }

  /// Whether the link hangs on another member's link.
  SILC_HD static bool Remote(int) { return false; }
  template <class Real>
  SILC_HD static void PutPort(int, const ArticulatedInertia<Real>&, const Spatial<Real>&) {}
  template <class Real>
  SILC_HD static void AddPort(int, ArticulatedInertia<Real>*, Spatial<Real>*) {}
  template <class Real>
  SILC_HD static void PutForce(int, const Spatial<Real>&) {}
  template <class Real>
  SILC_HD static Spatial<Real> Force(int) {
    return {};
  }
  template <class Mask>
  SILC_HD static void PutLive(int, Mask) {}
  SILC_HD static bool Live(int) { return false; }
  template <class Real>
  SILC_HD static void PutFrame(int, const LinkFrame<Real>&) {}
  template <class Real>
  SILC_HD static LinkFrame<Real> Frame(int) {
    return {};
  }
  template <class Real>
  SILC_HD static void PutMotion(int, const Spatial<Real>&) {}
  template <class Real>
  SILC_HD static Spatial<Real> Motion(int) {
    return {};
  }
  template <class Real>
  SILC_HD static void PutMotionNew(int, const Spatial<Real>&) {}
  template <class Real>
  SILC_HD static Spatial<Real> MotionNew(int) {
    return {};
  }
  template <class Real>
  SILC_HD static void Sum(int, Real*, Real*) {}
  template <class Real>
  SILC_HD static void Sum(Real*, RowSums<Real>*) {}
  template <class Mask>
  SILC_HD static void AnyMember(Mask*) {}
  template <class Mask>
  SILC_HD static void AllMembers(Mask*, Mask*) {}
};

/// Place says who and where: Member(), Lane() of kLanes robots side by side, Memory() shared by the
/// team (the plan, then numbers), Meet(), MeetAny(). Numbers of neighbouring robots are neighbours.
template <class Place>
struct Team {
  static constexpr bool kCopies = true;
  SILC_HD static const TeamPlan& Plan() {
    return *reinterpret_cast<const TeamPlan*>(Place::Memory());
  }
  SILC_HD static float& At(int i) {
    return Place::Memory()[kTeamPlanFloats + i * Place::kLanes + Place::Lane()];
  }

  template <class Index>
  struct ListWalk {
    const Index* list;
    int i, trunk, end, link;
    SILC_HD bool Next() {
      if (++i == trunk) Meet();
      if (i >= end) return false;
      link = list[i];
      return true;
    }
  };
  struct WalkUp {
    const signed char* own;
    int i, trunk, link;
    SILC_HD bool Next() {
      if (--i == trunk - 1) Meet();
      if (i < 0) return false;
      link = own[i];
      return true;
    }
  };
  SILC_HD static const signed char* OwnLinks() {
    return Plan().link + Plan().begin[Place::Member()];
  }
  template <class Model>
  SILC_HD static int NumOwn(const Model&) {
    return Plan().begin[Place::Member() + 1] - Plan().begin[Place::Member()];
  }
  SILC_HD static int NumTrunk() { return Leads() ? Plan().num_trunk : 0; }
  SILC_HD static int Own(int i) { return OwnLinks()[i]; }
  SILC_HD static bool Owns(int b) { return Plan().owner[b] == Place::Member(); }
  SILC_HD static int Slot(int b) { return Plan().slot[b]; }
  SILC_HD static bool Leads() { return Place::Member() == 0; }
  template <class Model>
  SILC_HD static ListWalk<signed char> Down(const Model& model) {
    return {OwnLinks(), -1, NumTrunk(), NumOwn(model), -1};
  }
  SILC_HD static ListWalk<unsigned char> Down(const unsigned char* list, int count, int trunk) {
    return {list, -1, trunk, count, -1};
  }
  template <class Model>
  SILC_HD static WalkUp Up(const Model& model) {
    return {OwnLinks(), NumOwn(model), NumTrunk(), -1};
  }
  SILC_HD static void Meet() { Place::Meet(); }
  SILC_HD static bool MeetAny(bool flag) { return Place::MeetAny(flag); }

  SILC_HD static bool Remote(int b) { return Plan().port[b] >= 0; }
  SILC_HD static int Port(int b) { return Plan().port[b] * kPortSize; }
  SILC_HD static int Hub(int b) { return Plan().hubs + Plan().hub[b] * kHubSize; }
  SILC_HD static bool IsHub(int b) { return Plan().hub[b] >= 0; }

  SILC_HD static void PutSpatial(int at, const Spatial<float>& s) {
    At(at) = s.ang.x;
    At(at + 1) = s.ang.y;
    At(at + 2) = s.ang.z;
    At(at + 3) = s.lin.x;
    At(at + 4) = s.lin.y;
    At(at + 5) = s.lin.z;
  }
  SILC_HD static Spatial<float> GetSpatial(int at) {
    return {{At(at), At(at + 1), At(at + 2)}, {At(at + 3), At(at + 4), At(at + 5)}};
  }
  SILC_HD static void PutSym(int at, const Sym3<float>& s) {
    At(at) = s.xx;
    At(at + 1) = s.yy;
    At(at + 2) = s.zz;
    At(at + 3) = s.xy;
    At(at + 4) = s.xz;
    At(at + 5) = s.yz;
  }
  SILC_HD static Sym3<float> GetSym(int at) {
    return {At(at), At(at + 1), At(at + 2), At(at + 3), At(at + 4), At(at + 5)};
  }

  // port: force, articulated inertia, live
  SILC_HD static void PutPort(int b, const ArticulatedInertia<float>& A, const Spatial<float>& p) {
    const int at = Port(b);
    PutSpatial(at, p);
    PutSym(at + 6, A.a);
    SILC_UNROLL
    for (int i = 0; i < 9; ++i) At(at + 12 + i) = A.b[i];
    PutSym(at + 21, A.c);
  }
  SILC_HD static void AddPort(int b, ArticulatedInertia<float>* A, Spatial<float>* p) {
    const int at = Port(b);
    *p = *p + GetSpatial(at);
    AddTo(&A->a, GetSym(at + 6));
    SILC_UNROLL
    for (int i = 0; i < 9; ++i) A->b[i] += At(at + 12 + i);
    AddTo(&A->c, GetSym(at + 21));
  }
  SILC_HD static void PutForce(int b, const Spatial<float>& p) { PutSpatial(Port(b), p); }
  template <class Real>
  SILC_HD static Spatial<float> Force(int b) {
    return GetSpatial(Port(b));
  }
  SILC_HD static void PutLive(int b, bool live) {
    if (Remote(b)) At(Port(b) + 27) = live ? 1.0f : 0.0f;
  }
  SILC_HD static bool Live(int b) { return At(Port(b) + 27) > 0; }

  // hub: acceleration at iterate and target, pose
  SILC_HD static void PutMotion(int b, const Spatial<float>& a) {
    if (IsHub(b)) PutSpatial(Hub(b), a);
  }
  template <class Real>
  SILC_HD static Spatial<float> Motion(int b) {
    return GetSpatial(Hub(b));
  }
  SILC_HD static void PutMotionNew(int b, const Spatial<float>& a) {
    if (IsHub(b)) PutSpatial(Hub(b) + 6, a);
  }
  template <class Real>
  SILC_HD static Spatial<float> MotionNew(int b) {
    return GetSpatial(Hub(b) + 6);
  }
  SILC_HD static void PutFrame(int b, const LinkFrame<float>& f) {
    if (!IsHub(b)) return;
    const int at = Hub(b) + 12;
    PutSpatial(at, f.v);
    PutSpatial(at + 6, f.bias);
    PutSpatial(at + 12, {f.p, f.R.col[0]});
    PutSpatial(at + 18, {f.R.col[1], f.R.col[2]});
  }
  template <class Real>
  SILC_HD static LinkFrame<float> Frame(int b) {
    const int at = Hub(b) + 12;
    const Spatial<float> p_x = GetSpatial(at + 12), y_z = GetSpatial(at + 18);
    return {{{p_x.lin, y_z.ang, y_z.lin}}, p_x.ang, GetSpatial(at), GetSpatial(at + 6)};
  }

  /// Sums in place over the members. Two sums that may follow each other without another meeting
  /// point use different slots of `kSumSlots`.
  template <int n>
  SILC_HD static void SumAll(int slot, float (&v)[n]) {
    const int size = Plan().size, at = Plan().sums + slot * size * kSumSize;
    SILC_UNROLL
    for (int k = 0; k < n; ++k) At(at + Place::Member() * kSumSize + k) = v[k];
    Meet();
    SILC_UNROLL
    for (int k = 0; k < n; ++k) v[k] = At(at + k);
    for (int member = 1; member < size; ++member) {
      SILC_UNROLL
      for (int k = 0; k < n; ++k) v[k] += At(at + member * kSumSize + k);
    }
  }
  SILC_HD static void Sum(int slot, float* a, float* b) {
    float v[2] = {*a, *b};
    SumAll(1 + slot, v);
    *a = v[0];
    *b = v[1];
  }
  SILC_HD static void Sum(float* dHd, RowSums<float>* s) {
    float v[6] = {
        *dHd, s->curvature0, s->slope0, s->curvature1, s->slope1, s->changed ? 1.0f : 0.0f};
    SumAll(0, v);
    *dHd = v[0];
    *s = {v[1], v[2], v[3], v[4], v[5] > 0};
  }
  SILC_HD static void AnyMember(bool* flag) {
    float v[1] = {*flag ? 1.0f : 0.0f};
    SumAll(1, v);
    *flag = v[0] > 0;
  }
  SILC_HD static void AllMembers(bool* a, bool* b) {
    float v[2] = {*a ? 0.0f : 1.0f, *b ? 0.0f : 1.0f};
    SumAll(2, v);
    *a = !(v[0] > 0);
    *b = !(v[1] > 0);
  }
};

}  // namespace silc::SILC_KERNEL
