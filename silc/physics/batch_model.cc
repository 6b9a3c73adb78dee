// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/batch_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <Eigen/Core>
#include <Eigen/Geometry>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/nearest.h"
#include "silc/physics/fields.h"

namespace silc {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;

// MuJoCo's bounds on impedances and on numbers it divides by
constexpr double kMinImpedance = 1e-4;
constexpr double kMaxImpedance = 0.9999;
constexpr double kMinValue = 1e-15;
constexpr double kMinFriction = 1e-5;

Vector3d ToVector(const mjtNum* v) { return {v[0], v[1], v[2]}; }
Matrix3d ToRotation(const mjtNum* quat_wxyz) {
  return Eigen::Quaterniond(quat_wxyz[0], quat_wxyz[1], quat_wxyz[2], quat_wxyz[3])
      .normalized()
      .toRotationMatrix();
}
using RowMatrix3d = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;
void StoreVector(const Vector3d& v, double* out) { Eigen::Map<Vector3d>(out, 3) = v; }
void StoreMatrix(const Matrix3d& R, double* out) { Eigen::Map<RowMatrix3d>(out, 3, 3) = R; }
Vector3d Position(const BatchBody& body) { return Eigen::Map<const Vector3d>(body.p_LB.data()); }
Matrix3d Orientation(const BatchBody& body) {
  return Eigen::Map<const RowMatrix3d>(body.R_LB.data());
}

/// One compilation: the model, what is made of it, and what stood in the way.
class Compiler {
 public:
  Compiler(const mjModel& model, const BatchModelOptions& options) : m_(model), options_(options) {}

  BatchModel Run() {
    out_.step = StepModel<double>{};
    out_.pairs = PairModel<double>{};
    CheckOptions();
    CheckElements();
    MakeBodies();
    MakeJoints();
    if (problems_.empty()) {
      MakeActuators();
      MakeContacts();
      MakePairs();
      MakeOutputs();
    }
    if (!problems_.empty()) {
      std::string text = "the batch stepper cannot run this model:";
      for (const std::string& problem : problems_) text += "\n  " + problem;
      text += "\nChange the model, or run it with --backend mujoco.";
      throw ConfigError(text);
    }
    LinkTree();
    return std::move(out_);
  }

 private:
  std::string Name(int type, int id) const {
    const char* name = mj_id2name(&m_, type, id);
    const char* kind = mju_type2Str(type);
    return std::string(kind ? kind : "element") + " " +
           (name && *name ? "'" + std::string(name) + "'" : "number " + std::to_string(id));
  }
  void Refuse(const std::string& what, const std::string& why) {
    problems_.push_back(what + ": " + why);
  }
  bool Disabled(int bit) const { return m_.opt.disableflags & bit; }

  void CheckOptions() {
    const mjOption& opt = m_.opt;
    if (opt.integrator != mjINT_EULER && opt.integrator != mjINT_IMPLICITFAST) {
      Refuse("option integrator", "only Euler and implicitfast are supported");
    }
    if (opt.cone != mjCONE_PYRAMIDAL) Refuse("option cone", "only pyramidal cones are supported");
    if (opt.noslip_iterations > 0) {
      Refuse("option noslip_iterations", "no slip correction after the solver");
    }
    if (opt.density > 0 || opt.viscosity > 0) {
      Refuse("option density, viscosity", "no fluid forces");
    }
    const struct {
      int bit;
      const char* name;
    } enabled[] = {
        {mjENBL_OVERRIDE, "override"}, {mjENBL_SLEEP, "sleep"}, {mjENBL_DIAGEXACT, "diagexact"}};
    for (const auto& flag : enabled) {
      if (opt.enableflags & flag.bit) {
        Refuse(std::string("option flag ") + flag.name, "this flag is not supported");
      }
    }
    if (!(opt.timestep > 0)) Refuse("option timestep", "must be positive");

    StepModel<double>& step = out_.step;
    step.timestep = opt.timestep;
    for (int k = 0; k < 3; ++k) step.gravity[k] = Disabled(mjDSBL_GRAVITY) ? 0 : opt.gravity[k];
    step.inertia_scale = 1 / (std::max(m_.stat.meaninertia, kMinValue) * std::max<int>(1, m_.nv));
    step.max_speed = options_.max_speed;
    step.max_distance = options_.max_distance;
    step.nq = static_cast<int>(m_.nq);
    step.nv = static_cast<int>(m_.nv);
    out_.qpos0.assign(m_.qpos0, m_.qpos0 + m_.nq);
  }

  // elements that act on the physics and are unknown here
  void CheckElements() {
    for (int i = 0; i < m_.ntendon; ++i) Refuse(Name(mjOBJ_TENDON, i), "tendons are not supported");
    if (!Disabled(mjDSBL_EQUALITY) && !Disabled(mjDSBL_CONSTRAINT)) {
      for (int i = 0; i < m_.neq; ++i) {
        Refuse(Name(mjOBJ_EQUALITY, i), "equality constraints are not supported");
      }
    }
    for (int i = 0; i < m_.nflex; ++i)
      Refuse(Name(mjOBJ_FLEX, i), "flexible bodies are not supported");
    for (int i = 0; i < m_.nplugin; ++i) Refuse(Name(mjOBJ_PLUGIN, i), "plugins are not supported");
    for (int b = 0; b < m_.nbody; ++b) {
      if (m_.body_mocapid[b] >= 0) Refuse(Name(mjOBJ_BODY, b), "mocap bodies are not supported");
      if (m_.body_gravcomp[b] != 0) {
        Refuse(Name(mjOBJ_BODY, b), "gravity compensation is not supported");
      }
    }
    for (int g = 0; g < m_.ngeom; ++g) {
      if (m_.geom_adhesion[g] != 0) Refuse(Name(mjOBJ_GEOM, g), "adhesion is not supported");
      if (!Eigen::Map<const Eigen::Matrix<double, 6, 1>>(m_.geom_surfacevel + 6 * g).isZero(0)) {
        Refuse(Name(mjOBJ_GEOM, g), "moving surfaces are not supported");
      }
    }
  }

  void MakeBodies() {
    for (int b = 0; b < m_.nbody; ++b) {
      BatchBody body;
      const char* name = mj_id2name(&m_, mjOBJ_BODY, b);
      body.name = name ? name : "";
      body.mass = m_.body_mass[b];
      const Matrix3d R = ToRotation(m_.body_iquat + 4 * b);
      const Matrix3d I = R * ToVector(m_.body_inertia + 3 * b).asDiagonal() * R.transpose();
      body.com = {m_.body_ipos[3 * b], m_.body_ipos[3 * b + 1], m_.body_ipos[3 * b + 2]};
      body.inertia = {I(0, 0), I(1, 1), I(2, 2), I(0, 1), I(0, 2), I(1, 2)};
      body.link = -1;
      body.p_LB = {0, 0, 0};
      body.R_LB = {1, 0, 0, 0, 1, 0, 0, 0, 1};
      out_.bodies.push_back(body);
    }
  }

  /// K, B and impedance of a row from MuJoCo's solref and solimp. (D7)
  SoftRow<double> MakeRow(const std::string& who,
                          const mjtNum* solref,
                          const mjtNum* solimp,
                          double margin) {
    double ref[2] = {solref[0], solref[1]};
    if ((ref[0] > 0) != (ref[1] > 0)) {
      Refuse(who, "solref mixes the two formats (both positive or both negative)");
    }
    if (!Disabled(mjDSBL_REFSAFE) && ref[0] > 0) ref[0] = std::max(ref[0], 2 * m_.opt.timestep);
    SoftRow<double> row;
    row.dmin = std::clamp<double>(solimp[0], kMinImpedance, kMaxImpedance);
    row.dmax = std::clamp<double>(solimp[1], kMinImpedance, kMaxImpedance);
    const double width = std::max<double>(0, solimp[2]);
    row.mid = std::clamp<double>(solimp[3], kMinImpedance, kMaxImpedance);
    const double power = std::max<double>(1, solimp[4]);
    row.K = ref[0] > 0
                ? 1 / std::max(kMinValue, row.dmax * row.dmax * ref[0] * ref[0] * ref[1] * ref[1])
                : -ref[0] / std::max(kMinValue, row.dmax * row.dmax);
    row.B = ref[1] > 0 ? 2 / std::max(kMinValue, row.dmax * ref[0])
                       : -ref[1] / std::max(kMinValue, row.dmax);
    row.margin = margin;
    row.power = static_cast<int>(std::lround(power));
    if (row.power != power || row.power > 8) {
      Refuse(who, "the power in solimp must be a whole number up to 8");
      row.power = 1;
    }
    if (row.dmin == row.dmax || width <= kMinValue) {
      row.dmin = row.dmax = 0.5 * (row.dmin + row.dmax);
      row.inv_width = 0;
    } else {
      row.inv_width = 1 / width;
    }
    row.rise = 1 / std::pow(row.mid, row.power - 1);
    row.fall = 1 / std::pow(1 - row.mid, row.power - 1);
    return row;
  }

  // links, one per joint, in MuJoCo's order
  void MakeJoints() {
    StepModel<double>& step = out_.step;
    if (m_.njnt > kMaxLinks) {
      Refuse("the model",
             "has " + std::to_string(m_.njnt) + " joints, at most " + std::to_string(kMaxLinks) +
                 " are supported");
      return;
    }
    const bool implicitfast = m_.opt.integrator == mjINT_IMPLICITFAST;
    for (int b = 1; b < m_.nbody; ++b) {
      BatchBody& body = out_.bodies[b];
      const BatchBody& parent = out_.bodies[m_.body_parentid[b]];
      // the body's frame in the frame of the link it hangs on so far
      int link = parent.link;
      const Matrix3d R_LP = Orientation(parent);
      Matrix3d R_LB = R_LP * ToRotation(m_.body_quat + 4 * b);
      Vector3d p_LB = Position(parent) + R_LP * ToVector(m_.body_pos + 3 * b);
      for (int k = 0; k < m_.body_jntnum[b]; ++k) {
        const int j = m_.body_jntadr[b] + k;
        if (m_.jnt_type[j] == mjJNT_BALL) {
          Refuse(Name(mjOBJ_JOINT, j), "ball joints are not supported; use three hinges");
          continue;
        }
        const int dof = m_.jnt_dofadr[j], index = step.num_links++;
        LinkConstants<double>& c = step.link[index];
        c.parent = link;
        c.root = link < 0 ? index : step.link[link].root;
        c.qpos = m_.jnt_qposadr[j];
        c.dof = dof;
        c.actuator = -1;
        c.first_child = c.next_sibling = -1;
        c.axis = 2;
        Matrix3d C = Matrix3d::Identity();  // link axes in the body's frame
        Vector3d anchor = Vector3d::Zero();
        if (m_.jnt_type[j] == mjJNT_FREE) {
          c.joint = JointKind::kFree;
          if (implicitfast && OnlyLinkOfTree(b)) {
            Refuse(Name(mjOBJ_BODY, b),
                   "a single free body under implicitfast (gyroscopic terms are not supported)");
          }
        } else {
          c.joint = m_.jnt_type[j] == mjJNT_HINGE ? JointKind::kHinge : JointKind::kSlide;
          anchor = ToVector(m_.jnt_pos + 3 * j);
          const Vector3d axis = ToVector(m_.jnt_axis + 3 * j).normalized();
          int unit = -1;
          for (int i = 0; i < 3; ++i) {
            if (axis[i] == 1) unit = i;
          }
          if (unit >= 0) {
            c.axis = unit;
          } else {
            // any right-handed frame whose z is the axis
            C.col(2) = axis;
            C.col(0) = axis.unitOrthogonal();
            C.col(1) = axis.cross(C.col(0));
          }
          c.q0 = m_.qpos0[c.qpos];
        }
        const Vector3d p_PL = p_LB + R_LB * anchor;
        const Matrix3d R_PL = R_LB * C;
        StoreVector(p_PL, c.p_PL);
        StoreMatrix(R_PL, c.R_PL);
        c.rotated = !R_PL.isIdentity(0);
        MakeJointForces(j, c);
        link = index;
        R_LB = C.transpose();
        p_LB = -C.transpose() * anchor;
      }
      body.link = link;
      StoreVector(p_LB, body.p_LB.data());
      StoreMatrix(R_LB, body.R_LB.data());
    }
    if (step.num_links == 0 && problems_.empty()) Refuse("the model", "has no joints");
  }

  bool OnlyLinkOfTree(int body) const {
    for (int b = 1; b < m_.nbody; ++b) {
      if (b != body && m_.body_rootid[b] == m_.body_rootid[body] && m_.body_jntnum[b] > 0)
        return false;
    }
    return true;
  }

  // armature, damping, spring, friction loss and limits of one joint
  void MakeJointForces(int j, LinkConstants<double>& c) {
    StepModel<double>& step = out_.step;
    const std::string who = Name(mjOBJ_JOINT, j);
    const int dof = c.dof, count = c.joint == JointKind::kFree ? 6 : 1;
    for (int k = 1; k < count; ++k) {
      if (m_.dof_armature[dof + k] != m_.dof_armature[dof] ||
          m_.dof_damping[dof + k] != m_.dof_damping[dof]) {
        Refuse(who, "armature and damping of a free joint must be the same in all six directions");
        break;
      }
    }
    for (int k = 0; k < count * mjNPOLY; ++k) {
      if (m_.dof_dampingpoly[mjNPOLY * dof + k] != 0) {
        Refuse(who, "only linear damping is supported");
        break;
      }
    }
    for (int k = 0; k < mjNPOLY; ++k) {
      if (m_.jnt_stiffnesspoly[mjNPOLY * j + k] != 0) {
        Refuse(who, "only linear springs are supported");
        break;
      }
    }
    if (m_.jnt_actgravcomp[j]) Refuse(who, "gravity compensation is not supported");

    c.armature = m_.dof_armature[dof];
    c.damping = Disabled(mjDSBL_DAMPER) ? 0 : m_.dof_damping[dof];
    c.stiffness = Disabled(mjDSBL_SPRING) ? 0 : m_.jnt_stiffness[j];
    if (c.damping > 0 && (m_.opt.integrator == mjINT_IMPLICITFAST || !Disabled(mjDSBL_EULERDAMP))) {
      step.implicit_damping = 1;
    }
    const bool constraints = !Disabled(mjDSBL_CONSTRAINT);
    if (c.joint == JointKind::kFree) {
      if (c.stiffness != 0) Refuse(who, "a spring on a free joint is not supported");
      c.stiffness = 0;
      for (int k = 0; k < 6; ++k) {
        if (constraints && !Disabled(mjDSBL_FRICTIONLOSS) && m_.dof_frictionloss[dof + k] != 0) {
          Refuse(who, "friction loss on a free joint is not supported");
          break;
        }
      }
      return;
    }
    c.spring_ref = m_.qpos_spring[c.qpos];
    c.invweight = m_.dof_invweight0[dof];
    if (constraints && !Disabled(mjDSBL_FRICTIONLOSS) && m_.dof_frictionloss[dof] > 0) {
      const SoftRow<double> row =
          MakeRow(who, m_.dof_solref + mjNREF * dof, m_.dof_solimp + mjNIMP * dof, 0);
      c.friction = m_.dof_frictionloss[dof];
      c.friction_D = 1 / std::max(kMinValue, (1 - row.dmin) / row.dmin * c.invweight);
      c.friction_B = row.B;
      step.has_friction = 1;
    }
    if (constraints && !Disabled(mjDSBL_LIMIT) && m_.jnt_limited[j]) {
      c.limited = 1;
      c.low = m_.jnt_range[2 * j];
      c.high = m_.jnt_range[2 * j + 1];
      c.limit =
          MakeRow(who, m_.jnt_solref + mjNREF * j, m_.jnt_solimp + mjNIMP * j, m_.jnt_margin[j]);
      step.has_limits = 1;
      if (c.high - c.low <= 2 * m_.jnt_margin[j]) {
        Refuse(who, "its range is narrower than twice its margin, both limits would act at once");
      }
    }
  }

  void MakeActuators() {
    StepModel<double>& step = out_.step;
    if (m_.na > 0) Refuse("the model", "has actuators with activation states");
    for (int i = 0; i < m_.nactuator; ++i) {
      const std::string who = Name(mjOBJ_ACTUATOR, i);
      const char* name = mj_id2name(&m_, mjOBJ_ACTUATOR, i);
      out_.actuators.push_back(name ? name : "");
      out_.default_kp.push_back(0);
      out_.default_kd.push_back(0);
      if (m_.actuator_trntype[i] != mjTRN_JOINT) {
        Refuse(who, "only actuators that act on a joint are supported");
        continue;
      }
      const int joint = m_.actuator_trnid[2 * i];
      int link = -1;
      for (int b = 0; b < step.num_links; ++b) {
        if (step.link[b].dof == m_.jnt_dofadr[joint]) link = b;
      }
      if (step.link[link].joint == JointKind::kFree) {
        Refuse(who, "actuators on a free joint are not supported");
        continue;
      }
      if (step.link[link].actuator >= 0) {
        Refuse(who, Name(mjOBJ_JOINT, joint) + " has another actuator already");
        continue;
      }
      if (m_.actuator_dyntype[i] != mjDYN_NONE || m_.actuator_gaintype[i] != mjGAIN_FIXED ||
          (m_.actuator_biastype[i] != mjBIAS_NONE && m_.actuator_biastype[i] != mjBIAS_AFFINE)) {
        Refuse(who, "only motors and position servos without internal dynamics are supported");
        continue;
      }
      if (m_.actuator_delay[i] > 0 || m_.actuator_damping[i] != 0 || m_.actuator_armature[i] != 0) {
        Refuse(who,
               "delay, damping and armature of actuators are not supported; delay is a setting of "
               "the batch, the others belong to the joint");
        continue;
      }
      const double gear = m_.actuator_gear[6 * m_.actuator_outadr[i]];
      double low = -1e10, high = 1e10;
      const auto limit = [&](double a, double b) {
        low = std::max(low, std::min(a, b));
        high = std::min(high, std::max(a, b));
      };
      if (m_.actuator_forcelimited[i]) {
        limit(gear * m_.actuator_forcerange[2 * i], gear * m_.actuator_forcerange[2 * i + 1]);
      }
      if (m_.jnt_actfrclimited[joint]) {
        limit(m_.jnt_actfrcrange[2 * joint], m_.jnt_actfrcrange[2 * joint + 1]);
      }
      const mjtNum* gain = m_.actuator_gainprm + mjNGAIN * i;
      const mjtNum* bias = m_.actuator_biasprm + mjNBIAS * i;
      if (m_.actuator_biastype[i] == mjBIAS_NONE) {
        // a motor: the servo (S1) is ours and its torque stays within what ctrl may ask for
        const int u = m_.actuator_ctrladr[i];
        if (m_.actuator_ctrllimited[u] && !Disabled(mjDSBL_CLAMPCTRL)) {
          const double scale = gear * gain[0];
          limit(scale * m_.actuator_ctrlrange[2 * u], scale * m_.actuator_ctrlrange[2 * u + 1]);
        }
      } else {
        if (gear != 1) Refuse(who, "a position servo must have gear 1");
        if (bias[0] != 0 || bias[1] != -gain[0]) {
          Refuse(who, "the bias must be that of a position servo (0, -kp, -kd)");
        }
        out_.default_kp.back() = gain[0];
        out_.default_kd.back() = -bias[2];
      }
      if (Disabled(mjDSBL_ACTUATION)) low = high = 0;
      step.link[link].actuator = i;
      step.actuator[i] = {link, low, high};
    }
    step.num_actuators = static_cast<int>(m_.nactuator);
    if (m_.opt.integrator == mjINT_IMPLICITFAST && m_.nactuator > 0) {
      step.implicit_damping = 1;
      step.implicit_kd = 1;
    }
  }

  struct PairParameters {
    int condim;
    double friction[2], solref[mjNREF], solimp[mjNIMP], margin;
  };

  // two geoms become one contact: priority decides, else mixing
  PairParameters Mix(int g1, int g2) const {
    PairParameters p;
    p.margin = m_.geom_margin[g1] + m_.geom_margin[g2];
    const int p1 = m_.geom_priority[g1], p2 = m_.geom_priority[g2];
    if (p1 != p2) {
      const int g = p1 > p2 ? g1 : g2;
      p.condim = m_.geom_condim[g];
      p.friction[0] = p.friction[1] = m_.geom_friction[3 * g];
      std::copy_n(m_.geom_solref + mjNREF * g, mjNREF, p.solref);
      std::copy_n(m_.geom_solimp + mjNIMP * g, mjNIMP, p.solimp);
    } else {
      p.condim = std::max(m_.geom_condim[g1], m_.geom_condim[g2]);
      p.friction[0] = p.friction[1] = std::max(m_.geom_friction[3 * g1], m_.geom_friction[3 * g2]);
      const double s1 = m_.geom_solmix[g1], s2 = m_.geom_solmix[g2];
      double mix = 0.5;
      if (s1 >= kMinValue && s2 >= kMinValue) {
        mix = s1 / (s1 + s2);
      } else if (s1 >= kMinValue || s2 >= kMinValue) {
        mix = s1 < kMinValue ? 0 : 1;
      }
      const mjtNum *r1 = m_.geom_solref + mjNREF * g1, *r2 = m_.geom_solref + mjNREF * g2;
      for (int k = 0; k < mjNREF; ++k) {
        p.solref[k] =
            r1[0] > 0 && r2[0] > 0 ? mix * r1[k] + (1 - mix) * r2[k] : std::min(r1[k], r2[k]);
      }
      for (int k = 0; k < mjNIMP; ++k) {
        p.solimp[k] =
            mix * m_.geom_solimp[mjNIMP * g1 + k] + (1 - mix) * m_.geom_solimp[mjNIMP * g2 + k];
      }
    }
    for (double& friction : p.friction) friction = std::max(friction, kMinFriction);
    return p;
  }

  PairParameters FromPair(int i) const {
    PairParameters p;
    p.condim = m_.pair_dim[i];
    p.friction[0] = std::max(m_.pair_friction[5 * i], kMinFriction);
    p.friction[1] = std::max(m_.pair_friction[5 * i + 1], kMinFriction);
    std::copy_n(m_.pair_solref + mjNREF * i, mjNREF, p.solref);
    std::copy_n(m_.pair_solimp + mjNIMP * i, mjNIMP, p.solimp);
    p.margin = m_.pair_margin[i];
    return p;
  }

  /// The explicit <pair> of two geoms, or −1.
  int PairOf(int g1, int g2) const {
    int pair = -1;
    for (int i = 0; i < m_.npair; ++i) {
      const int a = m_.pair_geom1[i], b = m_.pair_geom2[i];
      if ((a == g1 && b == g2) || (a == g2 && b == g1)) pair = i;
    }
    return pair;
  }

  /// Whether two geoms' masks meet and no <exclude> keeps their bodies apart.
  bool Match(int g1, int g2) const {
    return ((m_.geom_contype[g1] & m_.geom_conaffinity[g2]) ||
            (m_.geom_contype[g2] & m_.geom_conaffinity[g1])) &&
           !Excluded(m_.geom_bodyid[g1], m_.geom_bodyid[g2]);
  }

  void MakeContacts() {
    if (Disabled(mjDSBL_CONTACT) || Disabled(mjDSBL_CONSTRAINT)) return;
    const auto moves = [&](int g) { return out_.bodies[m_.geom_bodyid[g]].link >= 0; };
    for (int g1 = 0; g1 < m_.ngeom; ++g1) {
      if (moves(g1)) continue;
      for (int g2 = 0; g2 < m_.ngeom; ++g2) {
        if (!moves(g2)) continue;
        const int pair = PairOf(g1, g2);
        if (pair >= 0) {
          AddContact(g1, g2, FromPair(pair));
          continue;
        }
        if (Match(g1, g2)) AddContact(g1, g2, Mix(g1, g2));
      }
    }
    // in the order of links, so that each link owns a run
    std::stable_sort(contacts_.begin(), contacts_.end(), [](const auto& a, const auto& b) {
      return a.link < b.link;
    });
    StepModel<double>& step = out_.step;
    if (contacts_.size() > kMaxContacts) {
      Refuse("the model",
             "has " + std::to_string(contacts_.size()) +
                 " contact points (sphere 1, capsule 2, box 4 per plane), at most " +
                 std::to_string(kMaxContacts) + " are supported");
      return;
    }
    step.num_contacts = static_cast<int>(contacts_.size());
    std::copy(contacts_.begin(), contacts_.end(), step.contact);
  }

  /// Whether MuJoCo looks for contacts between two geoms of moving bodies.
  bool MayTouch(int g1, int g2) const {
    const int w1 = m_.body_weldid[m_.geom_bodyid[g1]], w2 = m_.body_weldid[m_.geom_bodyid[g2]];
    if (w1 == w2) return false;
    if (!Match(g1, g2)) return false;
    const int p1 = m_.body_weldid[m_.body_parentid[w1]], p2 = m_.body_weldid[m_.body_parentid[w2]];
    return Disabled(mjDSBL_FILTERPARENT) || (w1 != p2 && w2 != p1);
  }

  /// (D12) Pairs of spheres and capsules on two moving links.
  void MakePairs() {
    out_.self_collision = options_.self_collision;
    if (!options_.self_collision || Disabled(mjDSBL_CONTACT) || Disabled(mjDSBL_CONSTRAINT)) return;
    const auto moves = [&](int g) { return out_.bodies[m_.geom_bodyid[g]].link >= 0; };
    for (int g1 = 0; g1 < m_.ngeom; ++g1) {
      for (int g2 = g1 + 1; moves(g1) && g2 < m_.ngeom; ++g2) {
        if (!moves(g2)) continue;
        const int pair = PairOf(g1, g2);
        if (pair >= 0) {
          AddPair(g1, g2, FromPair(pair));
        } else if (MayTouch(g1, g2)) {
          AddPair(g1, g2, Mix(g1, g2));
        }
      }
    }
    const auto room = [&](std::size_t count, int most, const char* what) {
      if (count <= static_cast<std::size_t>(most)) return true;
      Refuse("self-collision",
             std::to_string(count) + " " + what + ", at most " + std::to_string(most) +
                 " are supported; exclude some, or leave self-collision off");
      return false;
    };
    PairModel<double>& out = out_.pairs;
    out.impratio = std::max(m_.opt.impratio, kMinValue);
    if (!room(shapes_.size(), kMaxShapes, "shapes") || !room(pairs_.size(), kMaxPairs, "pairs") ||
        !room(kinds_.size(), kMaxPairKinds, "different contact parameters")) {
      return;
    }
    out.num_shapes = static_cast<int>(shapes_.size());
    out.num_pairs = static_cast<int>(pairs_.size());
    out.num_kinds = static_cast<int>(kinds_.size());
    std::copy(shapes_.begin(), shapes_.end(), out.shape);
    std::copy(pairs_.begin(), pairs_.end(), out.pair);
    std::copy(kinds_.begin(), kinds_.end(), out.kind);
  }

  /// Index of the geom's shape; −1 for other than spheres and capsules.
  int ShapeOf(int geom) {
    for (std::size_t i = 0; i < shape_geoms_.size(); ++i) {
      if (shape_geoms_[i] == geom) return static_cast<int>(i);
    }
    const int type = m_.geom_type[geom];
    if (type != mjGEOM_SPHERE && type != mjGEOM_CAPSULE) return -1;
    const BatchBody& body = out_.bodies[m_.geom_bodyid[geom]];
    const Matrix3d R_LB = Orientation(body);
    ShapeConstants<double> s = {};
    s.link = body.link;
    s.capsule = type == mjGEOM_CAPSULE;
    StoreVector(Position(body) + R_LB * ToVector(m_.geom_pos + 3 * geom), s.p_LC);
    s.radius = m_.geom_size[3 * geom];
    if (s.capsule) {
      const Matrix3d R_LG = R_LB * ToRotation(m_.geom_quat + 4 * geom);
      StoreVector(R_LG.col(2) * m_.geom_size[3 * geom + 1], s.axis);
    }
    s.invweight = m_.body_invweight0[2 * m_.geom_bodyid[geom]];
    shape_geoms_.push_back(geom);
    shapes_.push_back(s);
    return static_cast<int>(shapes_.size()) - 1;
  }

  void AddPair(int g1, int g2, const PairParameters& parameters) {
    for (const int g : {g1, g2}) {
      const int other = g == g1 ? g2 : g1;
      if (ShapeOf(g) >= 0) continue;
      if (std::find(refused_.begin(), refused_.end(), g) == refused_.end()) {
        refused_.push_back(g);
        Refuse(Name(mjOBJ_GEOM, g),
               "may touch the moving " + Name(mjOBJ_GEOM, other) +
                   ", and only spheres and capsules touch each other; use one of them, exclude the "
                   "pair, or leave self-collision off");
      }
      return;
    }
    if (parameters.condim != 1 && parameters.condim != 3) {
      Refuse(Name(mjOBJ_GEOM, g1),
             "contacts with condim " + std::to_string(parameters.condim) +
                 " are not supported, only 1 and 3");
      return;
    }
    PairKind<double> kind = {};
    kind.frictionless = parameters.condim == 1;
    kind.mu1 = kind.frictionless ? 0 : parameters.friction[0];
    kind.mu2 = kind.frictionless ? 0 : parameters.friction[1];
    kind.row =
        MakeRow(Name(mjOBJ_GEOM, g1), parameters.solref, parameters.solimp, parameters.margin);
    const auto same = [&](const PairKind<double>& k) {
      const SoftRow<double>&a = k.row, &b = kind.row;
      return k.frictionless == kind.frictionless && k.mu1 == kind.mu1 && k.mu2 == kind.mu2 &&
             a.K == b.K && a.B == b.B && a.dmin == b.dmin && a.dmax == b.dmax &&
             a.inv_width == b.inv_width && a.mid == b.mid && a.margin == b.margin &&
             a.power == b.power;
    };
    auto found = std::find_if(kinds_.begin(), kinds_.end(), same);
    if (found == kinds_.end()) found = kinds_.insert(kinds_.end(), kind);
    const int s1 = ShapeOf(g1), s2 = ShapeOf(g2);
    const auto reach = [](const ShapeConstants<double>& s) {
      return s.radius + Eigen::Map<const Vector3d>(s.axis).norm();
    };
    // a little more than exact, for single precision
    const double far = (reach(shapes_[s1]) + reach(shapes_[s2]) + parameters.margin) * 1.0001;
    PairConstants<double> pair = {};
    pair.first = static_cast<unsigned char>(s1);
    pair.second = static_cast<unsigned char>(s2);
    pair.kind = static_cast<unsigned char>(found - kinds_.begin());
    pair.other_tree =
        out_.step.link[shapes_[s1].link].root != out_.step.link[shapes_[s2].link].root;
    pair.reach2 = far > 0 ? far * far : 0;
    pairs_.push_back(pair);
  }

  bool Excluded(int b1, int b2) const {
    for (int i = 0; i < m_.nexclude; ++i) {
      const int a = m_.exclude_signature[i] >> 16, b = m_.exclude_signature[i] & 0xffff;
      if ((a == b1 && b == b2) || (a == b2 && b == b1)) return true;
    }
    return false;
  }

  void AddContact(int plane, int geom, const PairParameters& pair) {
    const std::string who = Name(mjOBJ_GEOM, geom);
    if (m_.geom_type[plane] != mjGEOM_PLANE) {
      Refuse(who,
             "touches the static " + Name(mjOBJ_GEOM, plane) +
                 ", and only planes are supported as ground");
      return;
    }
    const int type = m_.geom_type[geom];
    if (type != mjGEOM_SPHERE && type != mjGEOM_CAPSULE && type != mjGEOM_BOX) {
      Refuse(who,
             "only spheres, capsules and boxes touch planes; use one of them, or set contype and "
             "conaffinity to 0");
      return;
    }
    if (pair.condim != 1 && pair.condim != 3) {
      Refuse(who,
             "contacts with condim " + std::to_string(pair.condim) +
                 " are not supported, only 1 and 3");
      return;
    }
    const BatchBody& body = out_.bodies[m_.geom_bodyid[geom]];
    const BatchBody& ground = out_.bodies[m_.geom_bodyid[plane]];
    ContactConstants<double> c = {};
    c.link = body.link;
    c.foot = -1;
    for (int f = 0; f < static_cast<int>(options_.feet.size()); ++f) {
      if (options_.feet[f] == body.name) c.foot = f;
    }

    // the plane in W: its static body's pose is p_LB, R_LB, as the world is the frame of "link −1"
    const Matrix3d R_WP = Orientation(ground) * ToRotation(m_.geom_quat + 4 * plane);
    const Vector3d p_WP =
        Position(ground) + Orientation(ground) * ToVector(m_.geom_pos + 3 * plane);
    const Vector3d n = R_WP.col(2);
    // MuJoCo's choice of tangents: y laid into the plane, or z when y is nearly the normal
    Vector3d t1 = std::abs(n.y()) < 0.5 ? Vector3d::UnitY() : Vector3d::UnitZ();
    t1 = (t1 - n * n.dot(t1)).normalized();
    StoreVector(n, c.n);
    StoreVector(t1, c.t1);
    StoreVector(n.cross(t1), c.t2);
    c.offset = n.dot(p_WP);
    c.upright = type != mjGEOM_CAPSULE && n == Vector3d::UnitZ() && t1 == Vector3d::UnitY();

    c.frictionless = pair.condim == 1;
    c.mu1 = c.frictionless ? 0 : pair.friction[0];
    c.mu2 = c.frictionless ? 0 : pair.friction[1];
    c.impratio = std::max(m_.opt.impratio, kMinValue);
    c.invweight = m_.body_invweight0[2 * m_.geom_bodyid[geom]] +
                  m_.body_invweight0[2 * m_.geom_bodyid[plane]];
    c.row = MakeRow(who, pair.solref, pair.solimp, pair.margin);

    const Matrix3d R_LB = Orientation(body);
    const Vector3d p_LG = Position(body) + R_LB * ToVector(m_.geom_pos + 3 * geom);
    const Matrix3d R_LG = R_LB * ToRotation(m_.geom_quat + 4 * geom);
    const Vector3d size = ToVector(m_.geom_size + 3 * geom);
    StoreVector(p_LG, c.p_LC);
    if (type == mjGEOM_BOX) {
      // of a corner and its opposite one is lower: four pairs, four points, as MuJoCo makes
      c.box_corner = 1;
      for (int i = 0; i < 4; ++i) {
        const Vector3d corner(
            i & 1 ? size.x() : -size.x(), i & 2 ? size.y() : -size.y(), -size.z());
        StoreVector(R_LG * corner, c.direction);
        contacts_.push_back(c);
      }
      return;
    }
    c.radius = size.x();
    if (type == mjGEOM_SPHERE) {
      contacts_.push_back(c);
      return;
    }
    c.along_axis = 1;
    const Vector3d axis = R_LG.col(2);
    StoreVector(axis, c.direction);
    for (const double side : {1.0, -1.0}) {
      StoreVector(p_LG + side * size.y() * axis, c.p_LC);
      contacts_.push_back(c);
    }
  }

  int FindNamed(int type, const std::string& name, const std::string& role) {
    const int id = mj_name2id(&m_, type, name.c_str());
    if (id < 0) {
      std::vector<std::string> known;
      const int count = static_cast<int>(type == mjOBJ_SITE ? m_.nsite : m_.nbody);
      for (int i = 0; i < count; ++i) {
        if (const char* other = mj_id2name(&m_, type, i)) known.push_back(other);
      }
      Refuse(role + " '" + name + "'",
             std::string("there is no such ") + mju_type2Str(type) + DidYouMean(name, known));
    }
    return id;
  }

  void MakeOutputs() {
    StepModel<double>& step = out_.step;
    const auto room = [&](const char* role, std::size_t count, int most) {
      if (count > static_cast<std::size_t>(most)) {
        Refuse(role, std::to_string(count) + " asked for, at most " + std::to_string(most));
      }
      return count <= static_cast<std::size_t>(most);
    };
    if (!room("feet", options_.feet.size(), kMaxFeet) ||
        !room("imus", options_.imus.size(), kMaxImus) ||
        !room("frames", options_.frames.size(), kMaxFrames) ||
        !room("pushes", options_.pushes.size(), kMaxPushes)) {
      return;
    }
    out_.feet = options_.feet;
    out_.imus = options_.imus;
    out_.frames = options_.frames;
    out_.pushes = options_.pushes;
    for (const std::string& name : options_.feet) {
      const int id = FindNamed(mjOBJ_BODY, name, "foot");
      if (id < 0) continue;
      const BatchBody& body = out_.bodies[id];
      if (body.link < 0) {
        Refuse("foot '" + name + "'", "does not move");
        continue;
      }
      if (step.link[body.link].root != 0) {
        Refuse("foot '" + name + "'", "is not part of the first tree, which is the robot");
      }
      StoreVector(Position(body), step.foot_point[step.num_feet]);
      step.foot_link[step.num_feet++] = body.link;
    }
    const auto add_site = [&](const std::string& name,
                              const char* role,
                              SiteConstants<double>* site) {
      const int id = FindNamed(mjOBJ_SITE, name, role);
      if (id < 0) return;
      const BatchBody& body = out_.bodies[m_.site_bodyid[id]];
      if (body.link < 0) Refuse(std::string(role) + " '" + name + "'", "does not move");
      site->link = body.link;
      StoreVector(Position(body) + Orientation(body) * ToVector(m_.site_pos + 3 * id), site->p_LS);
      StoreMatrix(Orientation(body) * ToRotation(m_.site_quat + 4 * id), site->R_LS);
    };
    for (const std::string& name : options_.imus) add_site(name, "imu", &step.imu[step.num_imus++]);
    for (const std::string& name : options_.frames) {
      add_site(name, "frame", &step.frame[step.num_frames++]);
    }
    for (const std::string& name : options_.pushes) {
      const int id = FindNamed(mjOBJ_BODY, name, "push");
      if (id < 0) continue;
      const BatchBody& body = out_.bodies[id];
      if (body.link < 0) {
        Refuse("push '" + name + "'", "does not move");
        continue;
      }
      PushConstants<double>& push = step.push[step.num_pushes++];
      push.link = body.link;
      StoreVector(Position(body) + Orientation(body) * Eigen::Map<const Vector3d>(body.com.data()),
                  push.p_LC);
    }
  }

  // children, runs of contacts, and which poses the step has to keep
  void LinkTree() {
    StepModel<double>& step = out_.step;
    for (int b = step.num_links - 1; b >= 0; --b) {
      LinkConstants<double>& link = step.link[b];
      if (link.joint == JointKind::kFree) link.keep_frame = 1;
      if (link.parent < 0) continue;
      LinkConstants<double>& parent = step.link[link.parent];
      link.next_sibling = parent.first_child;
      parent.first_child = b;
      if (++parent.num_children > 1) parent.keep_frame = 1;
    }
    for (int i = 0; i < step.num_contacts; ++i) {
      const ContactConstants<double>& c = step.contact[i];
      LinkConstants<double>& link = step.link[c.link];
      if (link.num_contacts++ == 0) link.first_contact = i;
      const double reach = Eigen::Map<const Vector3d>(c.p_LC).norm() + c.radius + c.row.margin +
                           (c.box_corner ? Eigen::Map<const Vector3d>(c.direction).norm() : 0);
      link.contact_reach = std::max(link.contact_reach, reach);
      // the reach is measured from one plane; links that meet several are always looked at closely
      const ContactConstants<double>& first = step.contact[link.first_contact];
      if (!std::equal(c.n, c.n + 3, first.n) || c.offset != first.offset) link.contact_reach = 1e10;
    }
    for (int i = 0; i < out_.pairs.num_shapes; ++i) {
      step.link[out_.pairs.shape[i].link].keep_frame = 1;
    }
    for (int i = 0; i < step.num_imus; ++i) step.link[step.imu[i].link].keep_frame = 1;
    for (int i = 0; i < step.num_pushes; ++i) step.link[step.push[i].link].keep_frame = 1;
  }

  const mjModel& m_;
  const BatchModelOptions& options_;
  BatchModel out_;
  std::vector<ContactConstants<double>> contacts_;
  std::vector<ShapeConstants<double>> shapes_;
  std::vector<int> shape_geoms_, refused_;
  std::vector<PairKind<double>> kinds_;
  std::vector<PairConstants<double>> pairs_;
  std::vector<std::string> problems_;
};

}  // namespace

BatchModel CompileBatchModel(const mjModel& model, const BatchModelOptions& options) {
  return Compiler(model, options).Run();
}

void RemoveSelfCollision(mjModel* model) {
  mjModel& m = *model;
  // every static geom gets a bit of its own, and moving geoms answer to the bits they answered to
  // before
  std::vector<int> bits(m.ngeom, 0);
  int next = 0;
  const auto moves = [&](int g) { return m.body_weldid[m.geom_bodyid[g]] != 0; };
  for (int s = 0; s < m.ngeom; ++s) {
    if (moves(s) || (m.geom_contype[s] == 0 && m.geom_conaffinity[s] == 0)) continue;
    SILC_CHECK(next < 31);
    const int bit = 1 << next++;
    for (int g = 0; g < m.ngeom; ++g) {
      if (moves(g) && ((m.geom_contype[s] & m.geom_conaffinity[g]) ||
                       (m.geom_contype[g] & m.geom_conaffinity[s]))) {
        bits[g] |= bit;
      }
    }
    bits[s] = bit;
  }
  std::fill_n(m.body_contype, m.nbody, 0);
  std::fill_n(m.body_conaffinity, m.nbody, 0);
  for (int g = 0; g < m.ngeom; ++g) {
    m.geom_contype[g] = moves(g) ? 0 : bits[g];
    m.geom_conaffinity[g] = moves(g) ? bits[g] : 0;
    m.body_contype[m.geom_bodyid[g]] |= m.geom_contype[g];
    m.body_conaffinity[m.geom_bodyid[g]] |= m.geom_conaffinity[g];
  }
  // explicit pairs of two moving geoms: out of each other's reach for good
  for (int i = 0; i < m.npair; ++i) {
    if (moves(m.pair_geom1[i]) && moves(m.pair_geom2[i])) m.pair_margin[i] = -1e10;
  }
}

std::vector<double> LinkInertias(const BatchModel& model,
                                 const std::vector<double>& mass,
                                 const std::vector<double>& com) {
  const int num_bodies = static_cast<int>(model.bodies.size()), num_links = model.step.num_links;
  SILC_CHECK(mass.empty() || static_cast<int>(mass.size()) == num_bodies);
  SILC_CHECK(com.empty() || static_cast<int>(com.size()) == 3 * num_bodies);
  std::vector<double> out(10 * num_links, 0.0);
  const auto body_mass = [&](int b) { return mass.empty() ? model.bodies[b].mass : mass[b]; };
  const auto body_com_L = [&](int b) -> Vector3d {
    const BatchBody& body = model.bodies[b];
    const double* c = com.empty() ? body.com.data() : com.data() + 3 * b;
    return Position(body) + Orientation(body) * Eigen::Map<const Vector3d>(c);
  };
  for (int l = 0; l < num_links; ++l) {
    double m = 0;
    Vector3d h = Vector3d::Zero();
    for (int b = 0; b < num_bodies; ++b) {
      if (model.bodies[b].link != l) continue;
      m += body_mass(b);
      h += body_mass(b) * body_com_L(b);
    }
    const Vector3d c = m > 0 ? Vector3d(h / m) : Vector3d::Zero();
    Matrix3d I = Matrix3d::Zero();
    for (int b = 0; b < num_bodies; ++b) {
      const BatchBody& body = model.bodies[b];
      if (body.link != l) continue;
      Matrix3d I_B;
      I_B << body.inertia[0], body.inertia[3], body.inertia[4],  //
          body.inertia[3], body.inertia[1], body.inertia[5],     //
          body.inertia[4], body.inertia[5], body.inertia[2];
      if (body.mass > 0) I_B *= body_mass(b) / body.mass;
      const Matrix3d R = Orientation(body);
      const Vector3d d = body_com_L(b) - c;
      I += R * I_B * R.transpose() +
           body_mass(b) * (d.squaredNorm() * Matrix3d::Identity() - d * d.transpose());
    }
    double* o = out.data() + 10 * l;
    o[0] = m;
    StoreVector(c, o + 1);
    const double values[6] = {I(0, 0), I(1, 1), I(2, 2), I(0, 1), I(0, 2), I(1, 2)};
    std::copy_n(values, 6, o + 4);
  }
  return out;
}

std::vector<double> DefaultRow(const BatchModel& model) {
  const StepModel<double>& s = model.step;
  const FieldLayout layout = MakeLayout(s);
  std::vector<double> row(layout.size, 0.0);
  const auto put = [&](Field field, const std::vector<double>& values) {
    SILC_CHECK(static_cast<int>(values.size()) == FieldWidth(s, field));
    std::copy(values.begin(), values.end(), row.begin() + layout.offset[static_cast<int>(field)]);
  };
  put(Field::kQpos, model.qpos0);
  put(Field::kKp, model.default_kp);
  put(Field::kKd, model.default_kd);
  put(Field::kInertia, LinkInertias(model));
  std::vector<double> armature;
  for (int b = 0; b < s.num_links; ++b) armature.push_back(s.link[b].armature);
  put(Field::kArmature, armature);
  put(Field::kFriction, {1.0});
  return row;
}

namespace {
SoftRow<float> ToFloat(const SoftRow<double>& r) {
  const auto f = [](double x) { return static_cast<float>(x); };
  return {f(r.K),
          f(r.B),
          f(r.dmin),
          f(r.dmax),
          f(r.inv_width),
          f(r.mid),
          f(r.rise),
          f(r.fall),
          f(r.margin),
          r.power};
}
template <int N>
void ToFloat(const double (&in)[N], float (&out)[N]) {
  for (int i = 0; i < N; ++i) out[i] = static_cast<float>(in[i]);
}
}  // namespace

StepModel<float> ToFloat(const StepModel<double>& m) {
  const auto f = [](double x) { return static_cast<float>(x); };
  StepModel<float> o = {};
  o.num_links = m.num_links;
  o.num_contacts = m.num_contacts;
  o.num_actuators = m.num_actuators;
  o.num_feet = m.num_feet;
  o.num_imus = m.num_imus;
  o.num_frames = m.num_frames;
  o.num_pushes = m.num_pushes;
  std::copy_n(m.foot_link, kMaxFeet, o.foot_link);
  for (int i = 0; i < m.num_feet; ++i) ToFloat(m.foot_point[i], o.foot_point[i]);
  o.nq = m.nq;
  o.nv = m.nv;
  o.has_friction = m.has_friction;
  o.has_limits = m.has_limits;
  o.implicit_damping = m.implicit_damping;
  o.implicit_kd = m.implicit_kd;
  o.timestep = f(m.timestep);
  ToFloat(m.gravity, o.gravity);
  o.inertia_scale = f(m.inertia_scale);
  o.max_speed = f(m.max_speed);
  o.max_distance = f(m.max_distance);
  for (int b = 0; b < m.num_links; ++b) {
    const LinkConstants<double>& a = m.link[b];
    LinkConstants<float>& l = o.link[b];
    l.parent = a.parent;
    l.root = a.root;
    l.joint = a.joint;
    l.axis = a.axis;
    l.qpos = a.qpos;
    l.dof = a.dof;
    l.num_children = a.num_children;
    l.first_child = a.first_child;
    l.next_sibling = a.next_sibling;
    l.rotated = a.rotated;
    l.keep_frame = a.keep_frame;
    l.num_contacts = a.num_contacts;
    l.first_contact = a.first_contact;
    l.contact_reach = f(a.contact_reach);
    l.actuator = a.actuator;
    ToFloat(a.p_PL, l.p_PL);
    ToFloat(a.R_PL, l.R_PL);
    l.q0 = f(a.q0);
    l.armature = f(a.armature);
    l.damping = f(a.damping);
    l.stiffness = f(a.stiffness);
    l.spring_ref = f(a.spring_ref);
    l.friction = f(a.friction);
    l.friction_D = f(a.friction_D);
    l.friction_B = f(a.friction_B);
    l.limited = a.limited;
    l.low = f(a.low);
    l.high = f(a.high);
    l.invweight = f(a.invweight);
    l.limit = ToFloat(a.limit);
  }
  for (int i = 0; i < m.num_contacts; ++i) {
    const ContactConstants<double>& a = m.contact[i];
    ContactConstants<float>& c = o.contact[i];
    c.link = a.link;
    c.foot = a.foot;
    c.box_corner = a.box_corner;
    c.along_axis = a.along_axis;
    c.upright = a.upright;
    ToFloat(a.p_LC, c.p_LC);
    ToFloat(a.direction, c.direction);
    c.radius = f(a.radius);
    ToFloat(a.n, c.n);
    ToFloat(a.t1, c.t1);
    ToFloat(a.t2, c.t2);
    c.offset = f(a.offset);
    c.mu1 = f(a.mu1);
    c.mu2 = f(a.mu2);
    c.frictionless = a.frictionless;
    c.invweight = f(a.invweight);
    c.impratio = f(a.impratio);
    c.row = ToFloat(a.row);
  }
  for (int i = 0; i < m.num_actuators; ++i) {
    o.actuator[i] = {m.actuator[i].link, f(m.actuator[i].low), f(m.actuator[i].high)};
  }
  const auto site = [](const SiteConstants<double>& a, SiteConstants<float>* b) {
    b->link = a.link;
    ToFloat(a.p_LS, b->p_LS);
    ToFloat(a.R_LS, b->R_LS);
  };
  for (int i = 0; i < m.num_imus; ++i) site(m.imu[i], &o.imu[i]);
  for (int i = 0; i < m.num_frames; ++i) site(m.frame[i], &o.frame[i]);
  for (int i = 0; i < m.num_pushes; ++i) {
    o.push[i].link = m.push[i].link;
    ToFloat(m.push[i].p_LC, o.push[i].p_LC);
  }
  return o;
}

PairModel<float> ToFloat(const PairModel<double>& m) {
  const auto f = [](double x) { return static_cast<float>(x); };
  PairModel<float> o = {};
  o.num_shapes = m.num_shapes;
  o.num_pairs = m.num_pairs;
  o.num_kinds = m.num_kinds;
  o.impratio = f(m.impratio);
  for (int i = 0; i < m.num_shapes; ++i) {
    const ShapeConstants<double>& a = m.shape[i];
    ShapeConstants<float>& s = o.shape[i];
    s.link = a.link;
    s.capsule = a.capsule;
    ToFloat(a.p_LC, s.p_LC);
    ToFloat(a.axis, s.axis);
    s.radius = f(a.radius);
    s.invweight = f(a.invweight);
  }
  for (int i = 0; i < m.num_pairs; ++i) {
    const PairConstants<double>& a = m.pair[i];
    o.pair[i] = {a.first, a.second, a.kind, a.other_tree, f(a.reach2)};
  }
  for (int i = 0; i < m.num_kinds; ++i) {
    const PairKind<double>& a = m.kind[i];
    o.kind[i] = {f(a.mu1), f(a.mu2), a.frictionless, ToFloat(a.row)};
  }
  return o;
}

}  // namespace silc
