// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "silc/physics/batch_model_compiler.h"

namespace silc {

SoftRow<double> BatchModelCompiler::MakeRow(const std::string& who,
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

void BatchModelCompiler::MakeJoints() {
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

bool BatchModelCompiler::OnlyLinkOfTree(int body) const {
  for (int b = 1; b < m_.nbody; ++b) {
    if (b != body && m_.body_rootid[b] == m_.body_rootid[body] && m_.body_jntnum[b] > 0)
      return false;
  }
  return true;
}

void BatchModelCompiler::MakeJointForces(int j, LinkConstants<double>& c) {
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

void BatchModelCompiler::MakeActuators() {
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

}  // namespace silc
