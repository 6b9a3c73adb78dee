// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A robot as the step reads it: constants only, no pointers, so that one memcpy carries it into a
/// thread's cache or a GPU's constant memory. BatchModel (batch_model.h) makes it from an mjModel.
namespace silc {

inline constexpr int kMaxLinks = 64;
inline constexpr int kMaxContacts = 128;
inline constexpr int kMaxFeet = 8;
inline constexpr int kMaxImus = 4;
inline constexpr int kMaxFrames = 16;
inline constexpr int kMaxPushes = 8;

/// Why a robot was frozen.
enum Fault : int {
  kFaultNone = 0,
  kFaultNotFinite = 1,
  kFaultAbsurd = 2,
  kFaultCrowded = 3,  // more than kMaxSelfContacts contacts between its own links at once
};

struct StepOptions {
  int max_iterations = 20;  // of Newton's method
  int line_search = 6;      // evaluations of the slope per iteration
  double tolerance = 0;     // stop when dᵀHd · inertia_scale falls below
  int refine = 1;           // one step of iterative refinement at the end
};

/// Parts of a step, for profiles.
enum StepStage : int {
  kStageKinematics,
  kStageContacts,
  kStageIdle,
  kStageNewton,
  kStageRefine,
  kStageIntegrate,
  kNumStages
};

/// What a step cost; sums over steps and lanes.
struct StepCounts {
  long steps = 0;               // robots × steps
  long groups = 0;              // vectors × steps
  long iterations = 0;          // Newton iterations that a robot needed
  long group_iterations = 0;    // iterations executed: the slowest robot of each vector
  long contacts = 0;            // contact points in touch with the ground
  long self_contacts = 0;       // contacts between two links
  long unconverged = 0;         // robots that ran out of iterations
  long live_links = 0;          // links in Newton, over groups
  long ticks[kNumStages] = {};  // of the processor's clock, by stage

  void Add(const StepCounts& other) {
    steps += other.steps;
    groups += other.groups;
    iterations += other.iterations;
    group_iterations += other.group_iterations;
    contacts += other.contacts;
    self_contacts += other.self_contacts;
    unconverged += other.unconverged;
    live_links += other.live_links;
    for (int i = 0; i < kNumStages; ++i) ticks[i] += other.ticks[i];
  }
};

enum class JointKind : int { kFree, kHinge, kSlide };

/// One row family of the soft constraint model (D7): reference acceleration and impedance.
///
///     a_ref = −B v − K d(x) (pos − margin),    d(x) ∈ [dmin, dmax] over x = |pos − margin| / width
template <class T>
struct SoftRow {
  T K;           // [1/s²]
  T B;           // [1/s]
  T dmin, dmax;  // impedance at and beyond `width` [1]
  T inv_width;   // 0 for a flat impedance [1/m or 1/rad]
  T mid;         // where the two powers meet, in (0, 1)
  T rise, fall;  // 1/mid^(p−1), 1/(1−mid)^(p−1)
  T margin;      // [m or rad]
  int power;     // p ≥ 1
};

/// A link is what one joint moves. Links are numbered depth first, so a parent comes before its
/// children, and the subtree of link i is a run of numbers that starts at i. A body with several
/// joints is a chain of links of which the last has the mass; a body without joints is part of the
/// link it is welded to.
///
/// Link frame L: origin on the joint axis (free joint: the body's origin); hinge and slide axes are
/// the `axis`-th axis of L.
template <class T>
struct LinkConstants {
  int parent;  // −1: the world
  int root;    // first link of its tree
  JointKind joint;
  int axis;       // 0, 1, 2
  int qpos, dof;  // first index in qpos and qvel
  int num_children;
  int first_child;  // links; siblings are chained through next_sibling, −1 ends the list
  int next_sibling;
  int rotated;     // 0: R_PL is the identity
  int keep_frame;  // 1: the pose is needed after the pass (branch, contact, sensor)
  int num_contacts;
  int first_contact;
  T contact_reach;  // every contact point of the link lies within this of its origin [m]
  int actuator;     // −1: none
  T p_PL[3];        // L in its parent's frame at zero joint position (root: in W) [m]
  T R_PL[9];        // row-major
  T q0;             // joint position at which the fixed pose above holds
  T armature;       // on the joint's diagonal [kg·m² or kg]
  T damping;        // [N·m·s/rad or N·s/m]
  T stiffness;      // [N·m/rad or N/m]
  T spring_ref;
  T friction;    // friction loss, largest force [N·m or N]; 0: none
  T friction_D;  // inverse regulariser 1/R of its row
  T friction_B;  // a_ref = −B q̇
  int limited;
  T low, high;  // [rad or m]
  T invweight;  // MuJoCo's dof_invweight0
  SoftRow<T> limit;
};

/// A point of a shape that can touch a plane: a sphere's centre, a capsule's end, a box's corner.
template <class T>
struct ContactConstants {
  int link;
  int foot;              // index of the foot whose force it adds to, −1: none
  int box_corner;        // 1: of the corner and its opposite the lower one counts
  int along_axis;        // 1: the first tangent follows `direction` (capsules); 0: it is t1
  int upright;           // 1: n, t1, t2 are z, y, −x of W: most of the arithmetic has zeros in it
  T p_LC[3];             // sphere centre; for a box its centre [m]
  T direction[3];        // capsule axis, or box centre → corner, in L
  T radius;              // [m]
  T n[3], t1[3], t2[3];  // plane normal and tangents in W
  T offset;              // n·x = offset on the plane [m]
  T mu1, mu2;            // [1]; 0 for a contact without friction
  int frictionless;      // 1: condim 1
  T invweight;           // MuJoCo's translational body_invweight0
  T impratio;
  SoftRow<T> row;
};

/// PD servo (S1) on one joint: τ = clamp(kp (q* − q) − kd q̇ + τ_ff, low, high).
template <class T>
struct ActuatorConstants {
  int link;
  T low, high;  // [N·m or N]
};

/// A site: fixed in a link.
template <class T>
struct SiteConstants {
  int link;
  T p_LS[3];
  T R_LS[9];  // row-major
};

template <class T>
struct PushConstants {
  int link;
  T p_LC[3];  // nominal centre of mass of the pushed body, where the force acts
};

template <class T>
struct StepModel {
  int num_links, num_contacts, num_actuators, num_feet, num_imus, num_frames, num_pushes;
  int foot_link[kMaxFeet];
  int nq, nv;
  int has_friction;  // any joint with friction loss
  int has_limits;
  int implicit_damping;  // 1: velocity update with M + hD (D10)
  int implicit_kd;       // 1: D includes kd of unsaturated servos (implicitfast)
  T timestep;            // [s]
  T gravity[3];          // [m/s²]
  T inertia_scale;       // 1 / (mean diagonal inertia · nv), MuJoCo's scale for tolerances
  T max_speed;           // |q̇| above which a robot is faulty [rad/s or m/s]
  T max_distance;        // same for the base's position [m]
  LinkConstants<T> link[kMaxLinks];
  ActuatorConstants<T> actuator[kMaxLinks];
  SiteConstants<T> imu[kMaxImus];
  SiteConstants<T> frame[kMaxFrames];
  PushConstants<T> push[kMaxPushes];
  ContactConstants<T> contact[kMaxContacts];  // last: a GPU launch carries only those in use
};

}  // namespace silc
