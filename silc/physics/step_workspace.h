// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/pairs.h"
#include "silc/physics/spatial.h"
#include "silc/physics/step_model.h"
#include "silc/physics/team.h"

/// What a step works on: the robot's own memory and the workspace in which the stages of a step
/// leave their results for each other.
namespace silc::SILC_KERNEL {

/// The processor's clock, for profiles; 0 where there is none that is cheap to read.
SILC_HD long Ticks() {
#if defined(__x86_64__) && !defined(__CUDACC__)
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

/// A value for each link of a thread's own, found by the link's number.
template <class Value, int kLinks, class TeamType>
struct PerLink {
  Value value[kLinks];
  SILC_HD Value& operator[](int b) { return value[TeamType::Slot(b)]; }
  SILC_HD const Value& operator[](int b) const { return value[TeamType::Slot(b)]; }
};

/// @tparam kLinks, kContacts  the most that a thread has of its own; the fewer, the less memory a
///                        GPU sets aside for every thread it could hold
/// @tparam kSelfContacts  slots for contacts between links (pairs.h); 0 without self-collision
template <class Real,
          int kLinks = kMaxLinks,
          int kContacts = kMaxContacts,
          class TeamType = Solo,
          int kSelfContacts = 0>
struct Workspace {
  using Team = TeamType;
  static constexpr int kSlots = kSelfContacts;
  template <class Value>
  using OfLink = PerLink<Value, kLinks, TeamType>;
  PairWork<Real, kLinks, kSelfContacts> pair;
  OfLink<LinkWork<Real>> link;
  OfLink<LinkFrame<Real>> frame;
  // of the subtree, joint eliminated, for the parent to collect
  OfLink<ArticulatedInertia<Real>> A;
  OfLink<Spatial<Real>> p;
  ContactWork<Real> contact[kContacts];
  OfLink<MaskOf<Real>> live;
  int num_active;  // contacts in touch in some lane: contact[0 .. num_active)
  OfLink<LinkRows> rows;
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

}  // namespace silc::SILC_KERNEL
