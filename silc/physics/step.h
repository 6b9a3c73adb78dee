// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/pairs.h"
#include "silc/physics/soft_row.h"
#include "silc/physics/spatial.h"
#include "silc/physics/step_model.h"
#include "silc/physics/team.h"

/// One physics step of one robot (Real = double, float, or one CUDA thread) or of several side by
/// side (Real = Lanes<N>). MuJoCo's step, computed another way; docs/physics.md derives (D1)–(D10).
///
/// Unknown of a step is the acceleration qacc that minimises, over the tree,
///
///     ½ qaccᵀ M qacc − (τ − c)ᵀ qacc + Σ s_i(J_i qacc − a_ref,i) (D1)
///
/// with s_i quadratic where row i is active and flat (contact, limit) or linear (friction loss)
/// where it is not. Every Newton target solves (M + JᵀDJ) qacc = b for the active rows. A contact
/// between a link and the static world adds a 6 × 6 stiffness to that one link, limits and friction
/// loss add to one joint's diagonal: M + JᵀDJ has M's tree structure, and the articulated-body
/// recursion solves it in O(links).
///
/// Links without an active row in their subtree are idle: their elimination is the same in every
/// Newton iteration and is done once. Which links are idle is found anew each step, per lane: a
/// lane's result has to be the same, bit for bit, whatever its neighbours do. So a link that is
/// live for a neighbour only is recomputed (to the same bits) and otherwise kept out of the lane's
/// line search.
namespace silc::SILC_KERNEL {

/// The processor's clock, for profiles; 0 where there is none that is cheap to read.
SILC_HD long Ticks() {
#if defined(__CUDA_ARCH__)
  return clock64();
#elif defined(__x86_64__) && !defined(__CUDACC__)
  return static_cast<long>(__builtin_ia32_rdtsc());
#else
  return 0;
#endif
}

/// Adds the time since the last call to a stage.
struct StageClock {
  StepCounts* counts;
  long last;
  SILC_HD explicit StageClock(StepCounts* c) : counts(c), last(c ? Ticks() : 0) {}
  SILC_HD void Charge(StepStage stage) {
    if (!counts) return;
    const long now = Ticks();
    counts->ticks[stage] += now - last;
    last = now;
  }
};

/// Value i of one robot, or of a group of lanes. On the GPU the robots of a batch are interleaved.
template <class Real>
struct Column {
  Real* data;
#ifdef __CUDA_ARCH__
  int stride;
  SILC_HD Real& operator[](int i) const { return data[static_cast<long>(i) * stride]; }
#else
  int stride;
  SILC_HD Real& operator[](int i) const { return data[i]; }
#endif
  /// For values that are read once a step: on a GPU past the L1 cache, which the workspace needs.
  SILC_HD Real Read(int i) const {
#if defined(__CUDA_ARCH__) && defined(SILC_CUDA_LDCG)
    return __ldcg(&(*this)[i]);
#else
    return (*this)[i];
#endif
  }
};

/// Everything of a robot that is not in StepModel. MuJoCo's layout of qpos and qvel.
template <class Real>
struct RobotData {
  // state
  Column<Real> qpos;   // nq
  Column<Real> qvel;   // nv
  Column<Real> qacc;   // nv; also where Newton starts
  Column<Real> fault;  // 1: see Fault
  // control, held over the substeps
  Column<Real> target;           // nu   q*                                     [rad or m]
  Column<Real> previous_target;  // nu   in force during the first `delay` substeps
  Column<Real> delay;            // 1                                           [substeps]
  Column<Real> feedforward;      // nu                                          [N·m or N]
  Column<Real> kp, kd;           // nu
  // parameters
  Column<Real> inertia;         // 10 per link: mass, centre of mass in L, inertia about it in L
                                //              (xx yy zz xy xz yz)
  Column<Real> armature;        // links
  Column<Real> friction_scale;  // 1: multiplies every contact's friction
  // pushes: force and moment at the pushed body's centre of mass, in W, for so many substeps
  Column<Real> wrench;        // 6 per push                                  [N, N·m]
  Column<Real> wrench_steps;  // 1 per push
  // results of the last substep
  Column<Real> torque;      // nu   applied by the servos                  [N·m or N]
  Column<Real> foot_force;  // 3 per foot, on the robot, in W              [N]
  Column<Real> imu;         // 6 per site: gyro [rad/s], accelerometer [m/s²], in the site's frame
};

template <class Real>
struct LinkWork {
  Spatial<Real> S;  // joint motion
  RigidInertia<Real> G;
  Spatial<Real> f;  // force needed for `bias`, external wrenches taken off
  Real tau;         // joint force without constraints
  Real diagonal;    // armature
  Real damping;     // [N·m·s/rad], for the implicit velocity update
  // elimination of the joint: qdd = u − Uᵀa_parent / D
  Spatial<Real> U;
  Real D, inv_D, u;
  // Newton's iterate and target
  Spatial<Real> a, a_new;  // Σ S qdd over the chain: J qacc without velocity terms
  Real x, x_new;
  // limit and friction-loss rows
  Real limit_D, limit_sign, limit_ref, friction_ref;
  Real constraint_force;
  // what the balance of forces lacks at the solution, of the link alone and along its joint; see
  // BalanceOf()
  Spatial<Real> missing;
  Real joint_missing;
};

/// Where the balance is kept: in place of f and tau when nobody asks for them any more. The fewer
/// bytes of a robot are in use, the more of them a GPU's cache holds.
template <class Real, class T>
SILC_HD Spatial<Real>& BalanceOf(const StepModel<T>& model, LinkWork<Real>& w) {
  return model.implicit_damping ? w.missing : w.f;
}
template <class Real, class T>
SILC_HD Real& JointBalanceOf(const StepModel<T>& model, LinkWork<Real>& w) {
  return model.implicit_damping ? w.joint_missing : w.tau;
}

/// Whether somebody asks for the acceleration of this link.
template <class T>
SILC_HD bool KeepsMotion(const LinkConstants<T>& link) {
  return link.keep_frame || link.num_children > 1;
}

template <class Real>
struct ContactWork {
  int link, id, upright;
  Vec3<Real> r;          // contact point from O
  Vec3<Real> n, t1, t2;  // t1, t2 already multiplied by the friction coefficient
  Real mu1, mu2;
  Real D;               // per pyramid edge; 0: not in touch
  Real ref[3];          // a_ref along n, μt1, μt2
  Real e[3], e_new[3];  // J qacc − a_ref along the same, at the iterate and the target
  Vec3<Real> force;     // on the link, in W
};

/// The rows of a link: contacts of a run, and whether the joint is at its limit in some lane. In
/// one word, so that a pass over the links reads one.
struct LinkRows {
  unsigned bits;
  SILC_HD static LinkRows Make(int first, int end, bool at_limit) {
    return {static_cast<unsigned>(first) | static_cast<unsigned>(end) << 8 |
            (at_limit ? 1u << 16 : 0u)};
  }
  SILC_HD int first() const { return static_cast<int>(bits & 0xff); }
  SILC_HD int end() const { return static_cast<int>(bits >> 8 & 0xff); }
  SILC_HD bool at_limit() const { return bits >> 16 != 0; }
};

/// Of a link or a contact.
using Index = unsigned char;
static_assert(kMaxLinks < 256 && kMaxContacts < 256);

/// @tparam kSelfContacts  slots for contacts between links (pairs.h); 0 without self-collision
template <class Real,
          int kLinks = kMaxLinks,
          int kContacts = kMaxContacts,
          class Crew = Solo,
          int kSelfContacts = 0>
struct Workspace {
  using Team = Crew;
  static constexpr int kSlots = kSelfContacts;
  PairWork<Real, kLinks, kSelfContacts> pair;
  LinkWork<Real> link[kLinks];
  LinkFrame<Real> frame[kLinks];
  ArticulatedInertia<Real>
      A[kLinks];  // of the subtree, joint eliminated, for the parent to collect
  Spatial<Real> p[kLinks];
  ContactWork<Real> contact[kContacts];
  MaskOf<Real> live[kLinks];
  int num_active;  // contacts in touch in some lane: contact[0 .. num_active)
  LinkRows rows[kLinks];
  // the thread's own links, parents before children, the trunk first: live in some lane, the others
  Index live_links[kLinks], idle_links[kLinks], all_links[kLinks];
  int num_live, live_trunk, num_idle, idle_trunk;
  Index limit_links[kLinks];
  int num_limits;       // links with the joint at its limit in some lane
  MaskOf<Real> solved;  // Newton ended with its rows settled: factor and rows agree
};

/// With self-collision. Its `pair.model` is to be set before a step.
template <class Real>
using PairedWorkspace = Workspace<Real, kMaxLinks, kMaxContacts, Solo, kMaxSelfContacts>;

enum class Stage { kIdle, kNewton, kDamped };

/// Turns a frame about its own axis k by the angle with sine s and cosine c; returns the axis. A
/// template: columns picked at run time would have to live in memory.
template <int k, class Real>
SILC_HD Vec3<Real> Turn(Rotation<Real>* R, Real s, Real c) {
  constexpr int i = (k + 1) % 3, j = (k + 2) % 3;
  const Vec3<Real> y = R->col[i], z = R->col[j];
  R->col[i] = y * c + z * s;
  R->col[j] = z * c - y * s;
  return R->col[k];
}

/// (D2) Moves a frame from link b's parent to link b and writes the joint's motion S. On entry the
/// frame is that of link `held`, which is the parent unless the tree branches there.
template <class Real, class Work, class T>
SILC_HD void PlaceLink(const StepModel<T>& model,
                       const RobotData<Real>& robot,
                       int b,
                       int held,
                       Real position,
                       Real qd,
                       Work& work,
                       LinkFrame<Real>* at) {
  const Real zero(0);
  const LinkConstants<T>& link = model.link[b];
  LinkFrame<Real>& frame = *at;
  if (link.parent < 0) {
    // O: the free body's origin, or the root's place at zero joint position
    frame.p = {zero, zero, zero};
    frame.v = {{zero, zero, zero}, {zero, zero, zero}};
    frame.bias = {{zero, zero, zero},
                  {Real(-model.gravity[0]), Real(-model.gravity[1]), Real(-model.gravity[2])}};
  }
  if (link.joint == JointKind::kFree) {
    const int k = link.qpos + 3, v = link.dof + 3;
    Real q0 = robot.qpos[k], q1 = robot.qpos[k + 1], q2 = robot.qpos[k + 2], q3 = robot.qpos[k + 3];
    const Real s = Real(1) / Sqrt(q0 * q0 + q1 * q1 + q2 * q2 + q3 * q3);
    q0 = q0 * s;
    q1 = q1 * s;
    q2 = q2 * s;
    q3 = q3 * s;
    const Real one(1), two(2);
    frame.R.col[0] = {
        one - two * (q2 * q2 + q3 * q3), two * (q1 * q2 + q0 * q3), two * (q1 * q3 - q0 * q2)};
    frame.R.col[1] = {
        two * (q1 * q2 - q0 * q3), one - two * (q1 * q1 + q3 * q3), two * (q2 * q3 + q0 * q1)};
    frame.R.col[2] = {
        two * (q1 * q3 + q0 * q2), two * (q2 * q3 - q0 * q1), one - two * (q1 * q1 + q2 * q2)};
    frame.v.ang = frame.R.col[0] * robot.qvel[v] + frame.R.col[1] * robot.qvel[v + 1] +
                  frame.R.col[2] * robot.qvel[v + 2];
    return;
  }
  if (link.parent < 0) {
    SILC_UNROLL
    for (int k = 0; k < 3; ++k) {
      frame.R.col[k] = {Real(link.R_PL[k]), Real(link.R_PL[3 + k]), Real(link.R_PL[6 + k])};
    }
  } else {
    if (Work::Team::Remote(b)) {
      frame = Work::Team::template Frame<Real>(link.parent);
    } else if (link.parent != held) {
      frame = work.frame[link.parent];
    }
    frame.p = frame.p + Rotate(frame.R, link.p_PL[0], link.p_PL[1], link.p_PL[2]);
    if (link.rotated) {
      const Rotation<Real> R = frame.R;
      SILC_UNROLL
      for (int k = 0; k < 3; ++k) {
        frame.R.col[k] = Rotate(R, link.R_PL[k], link.R_PL[3 + k], link.R_PL[6 + k]);
      }
    }
  }
  LinkWork<Real>& w = work.link[b];
  const Real q = position - Real(link.q0);
  if (link.joint == JointKind::kHinge) {
    Real s, c;
    SinCos(q, &s, &c);
    Vec3<Real> axis;
    if (link.axis == 0) {
      axis = Turn<0>(&frame.R, s, c);
    } else if (link.axis == 1) {
      axis = Turn<1>(&frame.R, s, c);
    } else {
      axis = Turn<2>(&frame.R, s, c);
    }
    w.S = {axis, Cross(frame.p, axis)};
  } else {
    const Vec3<Real> axis = frame.R.col[link.axis];
    frame.p = frame.p + axis * q;
    w.S = {{zero, zero, zero}, axis};
  }
  const Spatial<Real> joint_v = w.S * qd;
  frame.v = frame.v + joint_v;
  frame.bias = frame.bias + CrossMotion(frame.v, joint_v);
}

/// What a link reads of the robot's memory. Read at once and ahead of its use: on a GPU every read
/// is a wait of hundreds of cycles.
template <class Real>
struct LinkInputs {
  Real q, qd, armature, target, previous_target, kp, kd, feedforward;
  Real inertia[10];
};
template <class Real, class T>
SILC_HD LinkInputs<Real> ReadLink(const StepModel<T>& model, const RobotData<Real>& robot, int b) {
  const LinkConstants<T>& link = model.link[b];
  LinkInputs<Real> in;
  in.q = robot.qpos.Read(link.qpos);
  in.qd = robot.qvel.Read(link.dof);
  in.armature = robot.armature.Read(b);
  if (link.actuator >= 0) {
    const int u = link.actuator;
    in.target = robot.target.Read(u);
    in.previous_target = robot.previous_target.Read(u);
    in.kp = robot.kp.Read(u);
    in.kd = robot.kd.Read(u);
    in.feedforward = robot.feedforward.Read(u);
  }
  SILC_UNROLL
  for (int i = 0; i < 10; ++i) in.inertia[i] = robot.inertia.Read(10 * b + i);
  return in;
}

/// (D8) The row of a joint at its limit, and the reference of friction loss.
template <class Real, class Work, class T>
SILC_HD bool FindLimit(
    const StepModel<T>& model, int b, Real q, Real qd, MaskOf<Real> awake, Work& work) {
  const Real zero(0), one(1);
  const LinkConstants<T>& link = model.link[b];
  LinkWork<Real>& w = work.link[b];
  if (link.friction > 0) w.friction_ref = -Real(link.friction_B) * qd;
  if (!link.limited) return false;
  const Real above = q - Real(link.low), below = Real(link.high) - q;
  const Real pos = Min(above, below) - Real(link.limit.margin);
  const MaskOf<Real> at_limit = awake & (pos < zero);
  if (!Any(at_limit)) return false;
  const Real sign = Select(above < below, one, -one);
  const Real imp = Impedance<Real>(link.limit, pos);
  w.limit_sign = sign;
  w.limit_D = Select(at_limit, imp / ((one - imp) * Real(link.invweight)), zero);
  w.limit_ref = -Real(link.limit.B) * sign * qd - Real(link.limit.K) * imp * pos;
  work.limit_links[work.num_limits++] = static_cast<Index>(b);
  return true;
}

/// The point O of a tree in W, its velocity, and the factor on friction.
template <class Real>
struct Ground {
  Vec3<Real> p_WO, v_WO;
  Real friction;
};
template <class Real, class T>
SILC_HD Ground<Real> ReadGround(const StepModel<T>& model, const RobotData<Real>& robot, int b) {
  const Real zero(0);
  const LinkConstants<T>& root = model.link[b];
  if (root.joint == JointKind::kFree) {
    return {{robot.qpos[root.qpos], robot.qpos[root.qpos + 1], robot.qpos[root.qpos + 2]},
            {robot.qvel[root.dof], robot.qvel[root.dof + 1], robot.qvel[root.dof + 2]},
            robot.friction_scale[0]};
  }
  return {{Real(root.p_PL[0]), Real(root.p_PL[1]), Real(root.p_PL[2])},
          {zero, zero, zero},
          robot.friction_scale[0]};
}

/// (D6) Points of a link's spheres, capsules and boxes below their plane's margin, with frame,
/// regulariser and reference acceleration. Adds those that touch in some lane.
template <class Real, class Work, class T>
SILC_HD void FindContacts(const StepModel<T>& model,
                          int b,
                          const LinkFrame<Real>& frame,
                          const Ground<Real>& ground,
                          MaskOf<Real> awake,
                          Work& work) {
  const Real zero(0), one(1), friction = ground.friction;
  const LinkConstants<T>& link = model.link[b];
  const Vec3<Real> p_WL = ground.p_WO + frame.p, v_WO = ground.v_WO;
  int n = work.num_active;
  for (int i = link.first_contact; i < link.first_contact + link.num_contacts; ++i) {
    const ContactConstants<T>& point = model.contact[i];
    const Vec3<Real> normal = {Real(point.n[0]), Real(point.n[1]), Real(point.n[2])};
    const Real height = Dot(normal, p_WL) - Real(point.offset);
    if (i == link.first_contact && !Any(height < Real(link.contact_reach))) break;

    const Vec3<Real> direction =
        Rotate(frame.R, point.direction[0], point.direction[1], point.direction[2]);
    Vec3<Real> arm = Rotate(frame.R, point.p_LC[0], point.p_LC[1], point.p_LC[2]);
    if (point.box_corner) {
      const MaskOf<Real> up = Dot(normal, direction) > zero;
      arm = arm + Select<Real>(up, -direction, direction);
    }
    const Real dist = height + Dot(normal, arm) - Real(point.radius);
    const MaskOf<Real> touching = awake & (dist < Real(point.row.margin));
    if (!Any(touching)) continue;

    ContactWork<Real>& c = work.contact[n];
    c.link = b;
    c.id = i;
    c.upright = point.upright;
    c.r = frame.p + arm - normal * (Real(point.radius) + Real(T(0.5)) * dist);

    Vec3<Real> t1 = {Real(point.t1[0]), Real(point.t1[1]), Real(point.t1[2])};
    Vec3<Real> t2 = {Real(point.t2[0]), Real(point.t2[1]), Real(point.t2[2])};
    if (point.along_axis) {
      // the capsule's axis laid into the plane, unless it stands on its end
      const Vec3<Real> flat = direction - normal * Dot(normal, direction);
      const Real length2 = Dot(flat, flat);
      const MaskOf<Real> defined = length2 > Real(T(1e-12));
      const Real scale = one / Sqrt(Select(defined, length2, one));
      t1 = Select<Real>(defined, flat * scale, t1);
      t2 = Cross(normal, t1);
    }
    const Real mu1 = Real(point.mu1) * friction, mu2 = Real(point.mu2) * friction;
    t1 = t1 * mu1;
    t2 = t2 * mu2;
    c.mu1 = mu1;
    c.mu2 = mu2;
    c.n = normal;
    c.t1 = t1;
    c.t2 = t2;

    // regulariser of one pyramid edge; a frictionless contact is four equal edges that share its
    // row
    const Real pos = dist - Real(point.row.margin);
    const Real imp = Impedance<Real>(point.row, pos);
    const Real slack = (one - imp) * Real(point.invweight);
    Real D;
    if (point.frictionless) {
      D = Real(T(0.25)) * imp / Max(slack, Real(T(1e-15)) * imp);
    } else {
      const Real mu2_reg = mu1 * mu1 * Real(T(2) / point.impratio);
      D = imp / (mu2_reg * slack * (one + mu1 * mu1));
    }
    c.D = Select(touching, D, zero);

    const Vec3<Real> v = v_WO + AtPoint(frame.v, c.r);
    const Real B(point.row.B);
    c.ref[0] = -B * Dot(normal, v) - Real(point.row.K) * imp * pos;
    c.ref[1] = -B * Dot(t1, v);
    c.ref[2] = -B * Dot(t2, v);
    ++n;
  }
  work.num_active = n;
}

/// (D2) Poses, velocities, bias forces, servo torques, limits and contacts, root to leaves.
template <class Real, class Work, class T>
SILC_HD_NOINLINE void Kinematics(const StepModel<T>& model,
                                 const RobotData<Real>& robot,
                                 int substep,
                                 Work& work) {
  using Team = typename Work::Team;
  const Real zero(0);
  const MaskOf<Real> awake = Not(robot.fault[0] > zero);
  const MaskOf<Real> delayed = Real(T(substep)) < robot.delay[0];
  LinkFrame<Real> frame = {};  // carried down a chain
  int held = -1, root = -1;
  Ground<Real> ground = {};
  work.num_limits = 0;
  work.num_active = 0;
  const auto read = [&](int b) { return ReadLink(model, robot, b); };
  auto walk = Team::Down(model);
  Reader<LinkInputs<Real>, Team::kReadAhead> reader(read, walk.Peek());
  for (; walk.Next(); held = walk.link) {
    const int b = walk.link;
    const LinkConstants<T>& link = model.link[b];
    LinkWork<Real>& w = work.link[b];
    const LinkInputs<Real> in = reader.Take(read, b, walk.Peek());
    PlaceLink<Real>(model, robot, b, held, in.q, in.qd, work, &frame);
    Team::PutFrame(b, frame);
    w.tau = zero;
    if (model.implicit_damping) w.damping = Real(link.damping);
    w.diagonal = in.armature;
    bool at_limit = false;
    if (link.joint != JointKind::kFree) {
      // passive forces, and the servo (S1)
      w.tau = Real(link.stiffness) * (Real(link.spring_ref) - in.q) - Real(link.damping) * in.qd;
      if (link.actuator >= 0) {
        const int u = link.actuator;
        const Real low(model.actuator[u].low), high(model.actuator[u].high);
        const Real target = Select(delayed, in.previous_target, in.target);
        const Real wish = in.kp * (target - in.q) - in.kd * in.qd + in.feedforward;
        const Real torque = Clamp(wish, low, high);
        robot.torque[u] = torque;
        w.tau = w.tau + torque;
        // a saturated servo does not answer to velocity
        if (model.implicit_kd) {
          w.damping = w.damping + Select((low < wish) & (wish < high), in.kd, zero);
        }
      }
      at_limit = FindLimit<Real>(model, b, in.q, in.qd, awake, work);
    }
    if (link.keep_frame) work.frame[b] = frame;
    const int first_contact = work.num_active;
    if (link.num_contacts > 0) {
      if (link.root != root) {
        root = link.root;
        ground = ReadGround(model, robot, root);
      }
      FindContacts<Real>(model, b, frame, ground, awake, work);
    }
    work.rows[b] = LinkRows::Make(first_contact, work.num_active, at_limit);

    // inertia about O in world axes, and the force that `bias` takes
    const Real m = in.inertia[0];
    const Vec3<Real> c = frame.p + frame.R.col[0] * in.inertia[1] + frame.R.col[1] * in.inertia[2] +
                         frame.R.col[2] * in.inertia[3];
    const Real Ixx = in.inertia[4], Iyy = in.inertia[5], Izz = in.inertia[6], Ixy = in.inertia[7],
               Ixz = in.inertia[8], Iyz = in.inertia[9];
    const Vec3<Real>&x = frame.R.col[0], &y = frame.R.col[1], &z = frame.R.col[2];
    const Vec3<Real> Rx = x * Ixx + y * Ixy + z * Ixz;  // columns of R I
    const Vec3<Real> Ry = x * Ixy + y * Iyy + z * Iyz;
    const Vec3<Real> Rz = x * Ixz + y * Iyz + z * Izz;
    RigidInertia<Real> G;
    G.m = m;
    G.h = c * m;
    const Real hxx = G.h.x * c.x, hyy = G.h.y * c.y, hzz = G.h.z * c.z;
    G.I.xx = Rx.x * x.x + Ry.x * y.x + Rz.x * z.x + hyy + hzz;
    G.I.yy = Rx.y * x.y + Ry.y * y.y + Rz.y * z.y + hxx + hzz;
    G.I.zz = Rx.z * x.z + Ry.z * y.z + Rz.z * z.z + hxx + hyy;
    G.I.xy = Rx.x * x.y + Ry.x * y.y + Rz.x * z.y - G.h.x * c.y;
    G.I.xz = Rx.x * x.z + Ry.x * y.z + Rz.x * z.z - G.h.x * c.z;
    G.I.yz = Rx.y * x.z + Ry.y * y.z + Rz.y * z.z - G.h.y * c.z;
    w.G = G;
    w.f = G * frame.bias + CrossForce(frame.v, G * frame.v);
    if (link.joint == JointKind::kFree && link.damping > 0) {
      const Vec3<Real> v = {
          robot.qvel[link.dof], robot.qvel[link.dof + 1], robot.qvel[link.dof + 2]};
      w.f = w.f + Spatial<Real>{frame.v.ang, v} * Real(link.damping);
    }
  }
  for (int i = 0; i < model.num_pushes; ++i) {
    const PushConstants<T>& push = model.push[i];
    if (!Team::Owns(push.link)) continue;
    const MaskOf<Real> on = Real(T(substep)) < robot.wrench_steps[i];
    if (!Any(on)) continue;
    const LinkFrame<Real>& at = work.frame[push.link];
    const Vec3<Real> r = at.p + Rotate(at.R, push.p_LC[0], push.p_LC[1], push.p_LC[2]);
    const int k = 6 * i;
    const Vec3<Real> force = {Select(on, robot.wrench[k], zero),
                              Select(on, robot.wrench[k + 1], zero),
                              Select(on, robot.wrench[k + 2], zero)};
    const Vec3<Real> moment = {Select(on, robot.wrench[k + 3], zero),
                               Select(on, robot.wrench[k + 4], zero),
                               Select(on, robot.wrench[k + 5], zero)};
    LinkWork<Real>& w = work.link[push.link];
    w.f = w.f - Spatial<Real>{moment + Cross(r, force), force};
  }
}

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

/// Adds the active edges of a contact to its link: stiffness Σ D JᵀJ and pull Σ D Jᵀa_ref. (D5)
template <class Real>
SILC_HD void AddContactRows(const ContactWork<Real>& c,
                            ArticulatedInertia<Real>* A,
                            Spatial<Real>* p) {
  const Real zero(0);
  const Real d0 = Select(c.e[0] + c.e[1] < zero, c.D, zero);
  const Real d1 = Select(c.e[0] - c.e[1] < zero, c.D, zero);
  const Real d2 = Select(c.e[0] + c.e[2] < zero, c.D, zero);
  const Real d3 = Select(c.e[0] - c.e[2] < zero, c.D, zero);
  // Σ d (n ± μt)(n ± μt)ᵀ = nn nnᵀ + n1 (n t1ᵀ + t1 nᵀ) + …, in the scaled tangents
  const Real s1 = d0 + d1, s2 = d2 + d3, n1 = d0 - d1, n2 = d2 - d3, nn = s1 + s2;
  if (c.upright) {
    const Real w1 = c.mu1 * n1, w2 = -c.mu2 * n2;  // yz and xz
    const Real w11 = c.mu1 * c.mu1 * s1, w22 = c.mu2 * c.mu2 * s2;
    const Vec3<Real> g = {-c.mu2 * (n2 * c.ref[0] + s2 * c.ref[2]),
                          c.mu1 * (n1 * c.ref[0] + s1 * c.ref[1]),
                          nn * c.ref[0] + n1 * c.ref[1] + n2 * c.ref[2]};
    AddUprightStiffness(A, c.r, w22, w11, nn, w2, w1);
    p->lin = p->lin - g;
    p->ang = p->ang - Cross(c.r, g);
    return;
  }
  const Vec3<Real> wn = c.n * nn + c.t1 * n1 + c.t2 * n2;
  const Vec3<Real> w1 = c.n * n1 + c.t1 * s1;
  const Vec3<Real> w2 = c.n * n2 + c.t2 * s2;
  const Sym3<Real> W = {wn.x * c.n.x + w1.x * c.t1.x + w2.x * c.t2.x,
                        wn.y * c.n.y + w1.y * c.t1.y + w2.y * c.t2.y,
                        wn.z * c.n.z + w1.z * c.t1.z + w2.z * c.t2.z,
                        wn.x * c.n.y + w1.x * c.t1.y + w2.x * c.t2.y,
                        wn.x * c.n.z + w1.x * c.t1.z + w2.x * c.t2.z,
                        wn.y * c.n.z + w1.y * c.t1.z + w2.y * c.t2.z};
  const Vec3<Real> g = wn * c.ref[0] + w1 * c.ref[1] + w2 * c.ref[2];
  AddPointStiffness(A, c.r, W);
  p->lin = p->lin - g;
  p->ang = p->ang - Cross(c.r, g);
}

/// What an elimination reads of a link, and what a pass down the eliminated tree reads; ahead of
/// their use where Team::kReadAhead.
template <class Real, bool kAhead>
struct LinkTerms {
  ReadOf<Spatial<Real>, kAhead> S;
  ReadOf<RigidInertia<Real>, kAhead> G;
  ReadOf<Spatial<Real>, kAhead> f;
  ReadOf<Real, kAhead> tau, diagonal, x;
  LinkRows rows;
};
template <class Real, class Work>
SILC_HD LinkTerms<Real, Work::Team::kReadAhead> ReadTerms(const Work& work, int b) {
  const LinkWork<Real>& w = work.link[b];
  return {w.S, w.G, w.f, w.tau, w.diagonal, w.x, work.rows[b]};
}
template <class Real, bool kAhead>
struct LinkFactor {
  ReadOf<Spatial<Real>, kAhead> S, U;
  ReadOf<Real, kAhead> D, inv_D, u, x;
  ReadOf<MaskOf<Real>, kAhead> live;
  LinkRows rows;
};
template <class Real, class Work>
SILC_HD LinkFactor<Real, Work::Team::kReadAhead> ReadFactor(const Work& work, int b) {
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
  const auto read = [&](int b) { return ReadTerms<Real>(work, b); };
  Reader<LinkTerms<Real, Team::kReadAhead>, Team::kReadAhead> reader(
      read, count > 0 ? list[count - 1] : -1);
  for (int i = count - 1;; --i) {
    if (i == trunk - 1) Team::Meet();  // the branches are done
    if (i < 0) break;
    const int b = list[i];
    const LinkConstants<T>& link = model.link[b];
    LinkWork<Real>& w = work.link[b];
    const LinkTerms<Real, Team::kReadAhead> own = reader.Take(read, b, i > 0 ? list[i - 1] : -1);
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

/// J qacc − a_ref of a contact for the link's acceleration a.
template <class Real>
SILC_HD void ContactRows(const ContactWork<Real>& c, const Spatial<Real>& a, Real* e) {
  const Vec3<Real> at = AtPoint(a, c.r);
  if (c.upright) {
    e[0] = at.z - c.ref[0];
    e[1] = c.mu1 * at.y - c.ref[1];
    e[2] = -c.mu2 * at.x - c.ref[2];
    return;
  }
  e[0] = Dot(c.n, at) - c.ref[0];
  e[1] = Dot(c.t1, at) - c.ref[1];
  e[2] = Dot(c.t2, at) - c.ref[2];
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
  const Real zero(0), one(1), tiny(T(1e-30));
  const Index* live = work.live_links;
  const int num_live = work.num_live;

  // start from the last step's acceleration
  Mask any_live = Mask(false);
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

  Mask done = frozen | Not(any_live);
  work.solved = done;
  for (int iteration = 0; iteration < options.max_iterations; ++iteration) {
    // target: the minimum if the active rows stayed as they are
    Eliminate<Real>(model, Stage::kNewton, live, num_live, work.live_trunk, work);
    Real dHd = zero;  // (target − iterate)ᵀ H (target − iterate), from the factor
    RowSums<Real> sums = {zero, zero, zero, zero, Mask(false)};
    held = -1;
    const auto read = [&](int b) { return ReadFactor<Real>(work, b); };
    auto walk = Team::Down(live, num_live, work.live_trunk);
    Reader<LinkFactor<Real, Team::kReadAhead>, Team::kReadAhead> reader(read, walk.Peek());
    for (; walk.Next(); held = walk.link) {
      const int b = walk.link;
      LinkWork<Real>& w = work.link[b];
      const LinkFactor<Real, Team::kReadAhead> factor = reader.Take(read, b, walk.Peek());
      if (model.link[b].joint == JointKind::kFree) {
        motion = {w.a, w.a_new};
        const Spatial<Real> d = w.a_new - w.a;
        dHd += Select(factor.live, Dot(d, work.A[b] * d), zero);
      } else {
        motion = ParentMotion<Real>(model, b, held, motion, work);
        const Real answer = factor.u - factor.inv_D * Dot(factor.U, motion.a);
        const Real x_new = factor.u - factor.inv_D * Dot(factor.U, motion.a_new);
        const Real miss = answer - factor.x;
        dHd += Select(factor.live, miss * miss * factor.D, zero);
        motion.a = motion.a + factor.S * factor.x;
        motion.a_new = motion.a_new + factor.S * x_new;
        w.x_new = x_new;
      }
      KeepMotion<Real>(model, b, motion, work);
      for (int k = factor.rows.first(); k < factor.rows.end(); ++k) {
        ContactWork<Real>& c = work.contact[k];
        ContactRows(c, motion.a_new, c.e_new);
        sums.Add(c.D, c.e[0] + c.e[1], c.e_new[0] + c.e_new[1]);
        sums.Add(c.D, c.e[0] - c.e[1], c.e_new[0] - c.e_new[1]);
        sums.Add(c.D, c.e[0] + c.e[2], c.e_new[0] + c.e_new[2]);
        sums.Add(c.D, c.e[0] - c.e[2], c.e_new[0] - c.e_new[2]);
      }
    }
    if constexpr (Work::kSlots > 0) {
      // a robot that is done keeps its factors: computed again they would be the same
      if (Any(work.pair.lanes & Not(done))) {
        AddPairs<Real>(model, live, num_live, &dHd, &sums, work);
      }
    }
    for (int i = 0; i < work.num_limits; ++i) {
      const LinkWork<Real>& w = work.link[work.limit_links[i]];
      sums.Add(w.limit_D, w.limit_sign * w.x - w.limit_ref, w.limit_sign * w.x_new - w.limit_ref);
    }
    if (model.has_friction) {
      for (int i = 0; i < num_live; ++i) {
        const LinkConstants<T>& link = model.link[live[i]];
        if (!(link.friction > 0)) continue;
        const LinkWork<Real>& w = work.link[live[i]];
        const Real D(link.friction_D), f(link.friction);
        const Real r = w.x - w.friction_ref, s = w.x_new - w.friction_ref, delta = s - r;
        const Real fr = Clamp(D * r, -f, f), fs = Clamp(D * s, -f, f);
        const Mask in0 = Abs(D * r) < f, in1 = Abs(D * s) < f;
        sums.curvature0 += Select(in0, D * delta * delta, zero);
        sums.slope0 += fr * delta;
        sums.curvature1 += Select(in1, D * delta * delta, zero);
        sums.slope1 += fs * delta;
        sums.changed = sums.changed | (in0 != in1) | (Not(in0) & ((fr > zero) != (fs > zero)));
      }
    }

    Team::Sum(&dHd, &sums);

    // the same rows at both ends: the target is the minimum itself
    const Mask small = Not(dHd * Real(model.inertia_scale) > Real(T(options.tolerance)));
    const Mask at_target = Not(sums.changed) | small;
    if (counts) {
      ++counts->group_iterations;
      counts->iterations += Count(Not(done));
    }

    // (D9) slope of (D1) along the line: g0 + α dMd + rows(α), piecewise linear and rising
    const Real dMd = dHd - sums.curvature0, g0 = -dHd - sums.slope0;
    Real alpha = one;
    Mask settled = done | at_target;
    if (!All(settled)) {
      Real slope = g0 + dMd + sums.slope1, curvature = dMd + sums.curvature1;
      // flat enough: a closer minimum along this line saves no iteration
      const Real flat = Real(T(0.15)) * dHd;
      settled = settled | Not(Abs(slope) > flat);
      // bracket: slope below zero at `low`, above it at `high`; high = 1e6 means not yet seen
      Mask short_of = slope < zero;
      Real low = Select(short_of, one, zero), high = Select(short_of, Real(T(1e6)), one);
      Real slope_low = Select(short_of, slope, -dHd), slope_high = Select(short_of, zero, slope);
      for (int evaluation = 1; evaluation < options.line_search && !All(settled); ++evaluation) {
        // Newton where it stays in the bracket, a secant through its ends where not
        const Real newton = alpha - slope / Max(curvature, tiny);
        const Real secant =
            Select(slope_high > zero,
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

    // move; a lane that is done keeps its bits
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
    // one that stopped with its rows still changing has the factor of other rows, here or, where a
    // neighbour goes on, after the next elimination
    work.solved = work.solved | (Not(done) & Not(sums.changed));
    done = done | at_target;
    if (All(done)) break;
  }
  if (counts) {
    counts->unconverged += Count(Not(done));
    counts->live_links += num_live;
  }
}

/// Force of a contact on its link, at the solution.
template <class Real>
SILC_HD void ContactForce(ContactWork<Real>* contact) {
  const Real zero(0);
  ContactWork<Real>& c = *contact;
  const Real f0 = -c.D * Min(c.e[0] + c.e[1], zero), f1 = -c.D * Min(c.e[0] - c.e[1], zero);
  const Real f2 = -c.D * Min(c.e[0] + c.e[2], zero), f3 = -c.D * Min(c.e[0] - c.e[2], zero);
  Vec3<Real> force;
  if (c.upright) {
    force = {-c.mu2 * (f2 - f3), c.mu1 * (f0 - f1), f0 + f1 + f2 + f3};
  } else {
    force = c.n * (f0 + f1 + f2 + f3) + c.t1 * (f0 - f1) + c.t2 * (f2 - f3);
  }
  const Vec3<Real> none = {zero, zero, zero};
  c.force = Select<Real>(c.D > zero, force, none);
}

/// Force of a joint's limit and friction loss, at acceleration x.
template <class Real, class Work, class T>
SILC_HD Real JointForce(const StepModel<T>& model, int b, LinkRows rows, Real x, const Work& work) {
  const LinkConstants<T>& link = model.link[b];
  const LinkWork<Real>& w = work.link[b];
  const Real zero(0);
  Real force = zero;
  if (rows.at_limit()) {
    force = -w.limit_sign * w.limit_D * Min(w.limit_sign * x - w.limit_ref, zero);
  }
  if (link.friction > 0) {
    const Real f(link.friction);
    force = force - Clamp(Real(link.friction_D) * (x - w.friction_ref), -f, f);
  }
  return force;
}

/// Acceleration of the links from root to leaves, all joints: in lanes where a link is live the
/// iterate of Newton's method, elsewhere the joint's answer to its parent. With the forces of the
/// rows and, if `balance`, what is missing to the balance of forces.
template <class Real, class Work, class T>
SILC_HD_NOINLINE void Accelerate(const StepModel<T>& model, bool balance, Work& work) {
  using Team = typename Work::Team;
  Motion<Real> motion = {ZeroSpatial<Real>(), ZeroSpatial<Real>()};
  int held = -1;
  const auto read = [&](int b) { return ReadFactor<Real>(work, b); };
  auto walk = Team::Down(model);
  Reader<LinkFactor<Real, Team::kReadAhead>, Team::kReadAhead> reader(read, walk.Peek());
  for (; walk.Next(); held = walk.link) {
    const int b = walk.link;
    LinkWork<Real>& w = work.link[b];
    const LinkFactor<Real, Team::kReadAhead> factor = reader.Take(read, b, walk.Peek());
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
    ReadOf<Spatial<Real>, Team::kReadAhead> missing, S, U;
    ReadOf<Real, Team::kReadAhead> joint_missing, inv_D;
  };
  const auto read_terms = [&](int b) {
    LinkWork<Real>& w = work.link[b];
    return Terms{BalanceOf(model, w), w.S, w.U, JointBalanceOf(model, w), w.inv_D};
  };
  Spatial<Real> p = ZeroSpatial<Real>();
  int carried = -1;  // the link whose p is still at hand
  auto up = Team::Up(model);
  Reader<Terms, Team::kReadAhead> terms_reader(read_terms, up.Peek());
  while (up.Next()) {
    const int b = up.link;
    const LinkConstants<T>& link = model.link[b];
    LinkWork<Real>& w = work.link[b];
    const Terms terms = terms_reader.Take(read_terms, b, up.Peek());
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
  const auto read = [&](int b) { return ReadFactor<Real>(work, b); };
  auto walk = Team::Down(model);
  Reader<LinkFactor<Real, Team::kReadAhead>, Team::kReadAhead> reader(read, walk.Peek());
  for (; walk.Next(); held = walk.link) {
    const int b = walk.link;
    LinkWork<Real>& w = work.link[b];
    const LinkFactor<Real, Team::kReadAhead> factor = reader.Take(read, b, walk.Peek());
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

/// qacc of the state, with everything on the way left in `work`. Does not touch qpos and qvel.
template <class Real, class Work, class T>
SILC_HD_NOINLINE void Forward(const StepModel<T>& model,
                              const RobotData<Real>& robot,
                              const StepOptions& options,
                              int substep,
                              StepCounts* counts,
                              Work& work) {
  StageClock clock(counts);
  Kinematics<Real>(model, robot, substep, work);
  clock.Charge(kStageKinematics);
  if constexpr (Work::kSlots > 0) FindPairs<Real>(model, robot, work);
  FindLive<Real>(model, robot, work);
  clock.Charge(kStageContacts);
  Eliminate<Real>(model, Stage::kIdle, work.idle_links, work.num_idle, work.idle_trunk, work);
  clock.Charge(kStageIdle);
  work.solved = MaskOf<Real>(true);
  if (Work::Team::MeetAny(work.num_live > 0)) {
    const MaskOf<Real> frozen = robot.fault[0] > Real(0);
    Newton<Real>(model, robot, options, frozen, counts, work);
  }
  clock.Charge(kStageNewton);
  if constexpr (Work::kSlots > 0) PairForces<Real>(work);
  Accelerate<Real>(model, options.refine, work);
  if (options.refine) Refine<Real>(model, work);
  clock.Charge(kStageRefine);
  if (counts) {
    counts->steps += ScalarTraits<Real>::kLanes;
    ++counts->groups;
    for (int k = 0; k < work.num_active; ++k) {
      counts->contacts += Count(work.contact[k].D > Real(0));
    }
    if constexpr (Work::kSlots > 0) {
      for (int k = 0; k < work.pair.num_slots; ++k) {
        counts->self_contacts += Count(work.pair.slot[k].D > Real(0));
      }
    }
  }
}

/// Writes qacc, foot forces and IMU readings of the state that Forward() worked on.
template <class Real, class Work, class T>
SILC_HD_NOINLINE void WriteResults(const StepModel<T>& model,
                                   const RobotData<Real>& robot,
                                   const Work& work) {
  const Real zero(0);
  using Team = typename Work::Team;
  for (int i = 0; i < 3 * model.num_feet; ++i) {
    if (Team::Owns(model.foot_link[i / 3])) robot.foot_force[i] = zero;
  }
  for (int k = 0; k < work.num_active; ++k) {
    const ContactWork<Real>& c = work.contact[k];
    const int foot = model.contact[c.id].foot;
    if (foot < 0) continue;
    robot.foot_force[3 * foot] += c.force.x;
    robot.foot_force[3 * foot + 1] += c.force.y;
    robot.foot_force[3 * foot + 2] += c.force.z;
  }
  for (int i = 0; i < model.num_imus; ++i) {
    const SiteConstants<T>& imu = model.imu[i];
    if (!Team::Owns(imu.link)) continue;
    const LinkFrame<Real>& frame = work.frame[imu.link];
    Rotation<Real> R;
    SILC_UNROLL
    for (int k = 0; k < 3; ++k) {
      R.col[k] = Rotate(frame.R, imu.R_LS[k], imu.R_LS[3 + k], imu.R_LS[6 + k]);
    }
    const Vec3<Real> r = frame.p + Rotate(frame.R, imu.p_LS[0], imu.p_LS[1], imu.p_LS[2]);
    const Spatial<Real> a = frame.bias + work.link[imu.link].a;
    // of the body-fixed point: the spatial acceleration leaves out ω × v
    const Vec3<Real> point = AtPoint(a, r) + Cross(frame.v.ang, AtPoint(frame.v, r));
    const Vec3<Real> gyro = RotateInverse(R, frame.v.ang), acc = RotateInverse(R, point);
    robot.imu[6 * i] = gyro.x;
    robot.imu[6 * i + 1] = gyro.y;
    robot.imu[6 * i + 2] = gyro.z;
    robot.imu[6 * i + 3] = acc.x;
    robot.imu[6 * i + 4] = acc.y;
    robot.imu[6 * i + 5] = acc.z;
  }
}

/// One step: Forward(), velocity (implicit in the joint damping where the model says so, (D10)),
/// position. A lane whose new state is not finite or beyond the model's bounds keeps its state and
/// gets a fault.
template <class Real, class Work, class T>
SILC_HD void Step(const StepModel<T>& model,
                  const RobotData<Real>& robot,
                  const StepOptions& options,
                  int substep,
                  bool results,
                  StepCounts* counts,
                  Work& work) {
  const Real zero(0), h(model.timestep);
  Forward<Real>(model, robot, options, substep, counts, work);
  StageClock clock(counts);
  if (results) WriteResults<Real>(model, robot, work);
  const MaskOf<Real> was_ok = Not(robot.fault[0] > zero);

  // qacc is what Newton starts from next time
  using Team = typename Work::Team;
  for (int own = 0; own < Team::NumOwn(model); ++own) {
    const int b = Team::Own(own);
    const LinkConstants<T>& link = model.link[b];
    const LinkWork<Real>& w = work.link[b];
    const int k = link.dof;
    if (link.joint == JointKind::kFree) {
      const Vec3<Real> ang = RotateInverse(work.frame[b].R, w.a.ang);
      robot.qacc[k] = w.a.lin.x;
      robot.qacc[k + 1] = w.a.lin.y;
      robot.qacc[k + 2] = w.a.lin.z;
      robot.qacc[k + 3] = ang.x;
      robot.qacc[k + 4] = ang.y;
      robot.qacc[k + 5] = ang.z;
    } else {
      robot.qacc[k] = w.x;
    }
  }
  if (model.implicit_damping) {
    Eliminate<Real>(
        model, Stage::kDamped, work.all_links, Team::NumOwn(model), Team::NumTrunk(), work);
    AccelerateDamped<Real>(model, work);
  }

  // new velocities; |v| ≤ huge is false for NaN and for infinity
  const Real huge(T(1e30)), max_speed(model.max_speed);
  MaskOf<Real> finite = MaskOf<Real>(true), sane = MaskOf<Real>(true);
  const auto check = [&](Real v, Real limit) {
    finite = finite & (Abs(v) < huge);
    sane = sane & (Abs(v) < limit);
  };
  struct State {
    Real q, qd, x;
  };
  const auto read = [&](int b) {
    const LinkConstants<T>& link = model.link[b];
    return State{robot.qpos.Read(link.qpos), robot.qvel.Read(link.dof), work.link[b].x};
  };
  auto walk = Team::Down(model);
  Reader<State, Team::kReadAhead> reader(read, walk.Peek());
  while (walk.Next()) {
    const int b = walk.link;
    const LinkConstants<T>& link = model.link[b];
    LinkWork<Real>& w = work.link[b];
    const State state = reader.Take(read, b, walk.Peek());
    const int k = link.dof;
    if (link.joint == JointKind::kFree) {
      const Vec3<Real> ang = RotateInverse(work.frame[b].R, w.a.ang);
      // the new velocity waits in a_new until the whole robot is known to be sane
      w.a_new = {{robot.qvel[k + 3] + h * ang.x,
                  robot.qvel[k + 4] + h * ang.y,
                  robot.qvel[k + 5] + h * ang.z},
                 {robot.qvel[k] + h * w.a.lin.x,
                  robot.qvel[k + 1] + h * w.a.lin.y,
                  robot.qvel[k + 2] + h * w.a.lin.z}};
      check(w.a_new.ang.x, max_speed);
      check(w.a_new.ang.y, max_speed);
      check(w.a_new.ang.z, max_speed);
      check(w.a_new.lin.x, max_speed);
      check(w.a_new.lin.y, max_speed);
      check(w.a_new.lin.z, max_speed);
      const Real far(model.max_distance);
      check(robot.qpos[link.qpos], far);
      check(robot.qpos[link.qpos + 1], far);
      check(robot.qpos[link.qpos + 2], far);
    } else {
      const Real v = state.qd + h * state.x;
      w.x_new = v;
      w.x = state.q + h * v;  // no longer needed as acceleration
      check(v, max_speed);
      check(state.q, huge);
    }
  }
  Team::AllMembers(&finite, &sane);
  MaskOf<Real> ok = was_ok & finite & sane;
  Real code = Select(finite, Real(T(kFaultAbsurd)), Real(T(kFaultNotFinite)));
  if constexpr (Work::kSlots > 0) {
    code = Select(ok & work.pair.crowded, Real(T(kFaultCrowded)), code);
    ok = ok & Not(work.pair.crowded);
  }
  if (Team::Leads()) robot.fault[0] = Select(ok, zero, Select(was_ok, code, robot.fault[0]));

  for (int own = 0; own < Team::NumOwn(model); ++own) {
    const int b = Team::Own(own);
    const LinkConstants<T>& link = model.link[b];
    const LinkWork<Real>& w = work.link[b];
    const int k = link.dof, q = link.qpos;
    const auto keep = [&](Real& state, Real next) { state = Select(ok, next, state); };
    if (link.joint != JointKind::kFree) {
      // without reading first: a lane that is not ok keeps its state
      if (All(ok)) {
        robot.qvel[k] = w.x_new;
        robot.qpos[q] = w.x;
      } else {
        keep(robot.qvel[k], w.x_new);
        keep(robot.qpos[q], w.x);
      }
      continue;
    }
    const Vec3<Real> v = w.a_new.lin, w_L = w.a_new.ang;
    keep(robot.qvel[k], v.x);
    keep(robot.qvel[k + 1], v.y);
    keep(robot.qvel[k + 2], v.z);
    keep(robot.qvel[k + 3], w_L.x);
    keep(robot.qvel[k + 4], w_L.y);
    keep(robot.qvel[k + 5], w_L.z);
    keep(robot.qpos[q], robot.qpos[q] + h * v.x);
    keep(robot.qpos[q + 1], robot.qpos[q + 1] + h * v.y);
    keep(robot.qpos[q + 2], robot.qpos[q + 2] + h * v.z);
    // turn by |ω| h about ω, in the body's frame
    const Real speed2 = Dot(w_L, w_L);
    const Real speed = Sqrt(Max(speed2, Real(T(1e-30))));
    Real s, c;
    SinCos(Real(T(0.5)) * h * speed, &s, &c);
    s = s / speed;
    const Real q0 = robot.qpos[q + 3], q1 = robot.qpos[q + 4], q2 = robot.qpos[q + 5],
               q3 = robot.qpos[q + 6];
    const Real bx = w_L.x * s, by = w_L.y * s, bz = w_L.z * s;
    const Real n0 = q0 * c - q1 * bx - q2 * by - q3 * bz;
    const Real n1 = q0 * bx + q1 * c + q2 * bz - q3 * by;
    const Real n2 = q0 * by - q1 * bz + q2 * c + q3 * bx;
    const Real n3 = q0 * bz + q1 * by - q2 * bx + q3 * c;
    const Real scale = Real(1) / Sqrt(n0 * n0 + n1 * n1 + n2 * n2 + n3 * n3);
    keep(robot.qpos[q + 3], n0 * scale);
    keep(robot.qpos[q + 4], n1 * scale);
    keep(robot.qpos[q + 5], n2 * scale);
    keep(robot.qpos[q + 6], n3 * scale);
  }
  clock.Charge(kStageIntegrate);
}

}  // namespace silc::SILC_KERNEL
