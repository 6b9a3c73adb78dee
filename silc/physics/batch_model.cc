// SPDX-License-Identifier: Apache-2.0
#include "silc/physics/batch_model.h"

#include <algorithm>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/nearest.h"
#include "silc/physics/batch_model_compiler.h"
#include "silc/physics/fields.h"

namespace silc {

BatchModel BatchModelCompiler::Run() {
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

std::string BatchModelCompiler::Name(int type, int id) const {
  const char* name = mj_id2name(&m_, type, id);
  const char* kind = mju_type2Str(type);
  return std::string(kind ? kind : "element") + " " +
         (name && *name ? "'" + std::string(name) + "'" : "number " + std::to_string(id));
}

void BatchModelCompiler::Refuse(const std::string& what, const std::string& why) {
  problems_.push_back(what + ": " + why);
}

void BatchModelCompiler::CheckOptions() {
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

void BatchModelCompiler::CheckElements() {
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

void BatchModelCompiler::MakeBodies() {
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

int BatchModelCompiler::FindNamed(int type, const std::string& name, const std::string& role) {
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

void BatchModelCompiler::MakeOutputs() {
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

void BatchModelCompiler::LinkTree() {
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

BatchModel CompileBatchModel(const mjModel& model, const BatchModelOptions& options) {
  return BatchModelCompiler(model, options).Run();
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

}  // namespace silc
