// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/robot_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <new>
#include <utility>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/nearest.h"
#include "silc/robot/mjcf_check.h"
#include "silc/stiffness/types.h"

namespace silc {
namespace {

// "robots/g1/robot.yaml: feet.left.site: 'left_fot' ": where a complaint about a name begins.
std::string Place(const RobotSpec& spec, const std::string& key, const std::string& value) {
  return spec.file + ": " + key + ": '" + value + "' ";
}

std::vector<std::string> NamesInSpec(const mjSpec* mjcf, mjtObj type) {
  std::vector<std::string> names;
  for (mjsElement* e = mjs_firstElement(mjcf, type); e; e = mjs_nextElement(mjcf, e)) {
    const std::string name = mjs_getString(mjs_getName(e));
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> NamesInModel(const mjModel* model, mjtObj type, int count) {
  std::vector<std::string> names;
  for (int id = 0; id < count; ++id) {
    if (const char* name = mj_id2name(model, type, id); name && *name) names.emplace_back(name);
  }
  return names;
}

int FindId(const RobotSpec& spec,
           const mjModel* model,
           mjtObj type,
           int count,
           const char* what,
           const std::string& key,
           const std::string& name) {
  const int id = mj_name2id(model, type, name.c_str());
  if (id < 0) {
    throw ConfigError(Place(spec, key, name) + "is not a " + what + " of " + spec.model_file +
                      DidYouMean(name, NamesInModel(model, type, count)));
  }
  return id;
}

// Keeps the chosen set of foot geoms, switched on, and removes the others.
void ChooseFootGeoms(const RobotSpec& spec, mjSpec* mjcf) {
  for (const char* side : {"left", "right"}) {
    const FootSpec& foot = side == std::string("left") ? spec.left_foot : spec.right_foot;
    const std::string key = "feet." + std::string(side) + ".geoms.";
    bool found = false;
    std::vector<mjsElement*> others;
    for (const FootGeoms& set : foot.geom_sets) {
      for (const std::string& name : set.geoms) {
        // MuJoCo takes "" for the first geom without a name
        mjsElement* element =
            name.empty() ? nullptr : mjs_findElement(mjcf, mjOBJ_GEOM, name.c_str());
        if (!element) {
          throw ConfigError(Place(spec, key + set.name, name) + "is not a geom of " +
                            spec.model_file + DidYouMean(name, NamesInSpec(mjcf, mjOBJ_GEOM)));
        }
        if (set.name != spec.foot_collision) {
          others.push_back(element);
          continue;
        }
        found = true;
        mjsGeom* geom = mjs_asGeom(element);
        if (geom->contype == 0 && geom->conaffinity == 0) geom->contype = geom->conaffinity = 1;
      }
    }
    if (!found) {
      std::vector<std::string> sets;
      for (const FootGeoms& set : foot.geom_sets) sets.push_back(set.name);
      throw ConfigError(Place(spec, "feet.collision", spec.foot_collision) + "is not among feet." +
                        side + ".geoms" + DidYouMean(spec.foot_collision, sets));
    }
    for (mjsElement* element : others) mjs_delete(mjcf, element);
  }
}

bool IsWorldGeom(mjsElement* geom) {
  return std::string(mjs_getString(mjs_getName(mjs_getParent(geom)->element))) == "world";
}

// Floor, and for viewers light and sky; who touches whom.
void MakeScene(const LoadOptions& options, mjSpec* mjcf) {
  mjsBody* world = mjs_findBody(mjcf, "world");
  SILC_CHECK(world != nullptr);
  bool has_floor = false;
  int bits = 1;
  for (mjsElement* e = mjs_firstElement(mjcf, mjOBJ_GEOM); e; e = mjs_nextElement(mjcf, e)) {
    mjsGeom* geom = mjs_asGeom(e);
    const bool in_world = IsWorldGeom(e);
    if (geom->contype == 0 && geom->conaffinity == 0) continue;
    if (in_world && geom->type == mjGEOM_PLANE) has_floor = true;
    bits |= geom->contype | geom->conaffinity;
    if (!options.self_collision) {
      // robot against robot: 0 & 1; robot against world: 1 & 1
      geom->contype = in_world ? 1 : 0;
      geom->conaffinity = in_world ? 0 : 1;
    }
  }

  if (!has_floor) {
    mjsGeom* floor = mjs_addGeom(world, nullptr);
    mjs_setName(floor->element, "floor");
    floor->type = mjGEOM_PLANE;
    floor->size[0] = floor->size[1] = 0;  // endless
    floor->size[2] = 0.05;
    floor->contype = options.self_collision ? bits : 1;
    floor->conaffinity = options.self_collision ? bits : 0;
    floor->condim = 3;
    floor->priority = 0;
    floor->friction[0] = 1;
    floor->group = 0;
    if (options.visuals) {
      mjsTexture* tiles = mjs_addTexture(mjcf, nullptr);
      mjs_setName(tiles->element, "floor_tiles");
      tiles->type = mjTEXTURE_2D;
      tiles->builtin = mjBUILTIN_CHECKER;
      tiles->mark = mjMARK_EDGE;
      tiles->width = tiles->height = 300;
      for (int i = 0; i < 3; ++i) {
        tiles->rgb1[i] = 0.36;
        tiles->rgb2[i] = 0.40;
        tiles->markrgb[i] = 0.5;
      }
      mjsMaterial* material = mjs_addMaterial(mjcf, nullptr);
      mjs_setName(material->element, "floor_tiles");
      mjs_setInStringVec(material->textures, mjTEXROLE_RGB, "floor_tiles");
      material->texuniform = true;
      material->texrepeat[0] = material->texrepeat[1] = 2;
      material->reflectance = 0.05f;
      mjs_setString(floor->material, "floor_tiles");
    }
  }

  if (options.visuals) {
    mjsTexture* sky = mjs_addTexture(mjcf, nullptr);
    mjs_setName(sky->element, "sky");
    sky->type = mjTEXTURE_SKYBOX;
    sky->builtin = mjBUILTIN_GRADIENT;
    sky->width = 64;
    sky->height = 384;
    const double top[3] = {0.62, 0.70, 0.80}, bottom[3] = {0.92, 0.94, 0.96};
    std::copy(top, top + 3, sky->rgb1);
    std::copy(bottom, bottom + 3, sky->rgb2);
    mjsLight* sun = mjs_addLight(world, nullptr);
    sun->type = mjLIGHT_DIRECTIONAL;
    const double from[3] = {1.5, 1.5, 3.5}, toward[3] = {-0.4, -0.4, -1};
    std::copy(from, from + 3, sun->pos);
    std::copy(toward, toward + 3, sun->dir);
  }
}

MjModelPtr Compile(const RobotSpec& spec, mjSpec* mjcf) {
  MjModelPtr model(mj_compile(mjcf, nullptr));
  if (!model) throw ConfigError(spec.model_file + ": " + mjs_getError(mjcf));
  CheckModel(*model, spec.model_file);
  return model;
}

// Smaller side of a range about zero; infinity when there is none.
double Bound(bool limited, const mjtNum* range) {
  if (!limited) return std::numeric_limits<double>::infinity();
  return std::min(std::abs(range[0]), std::abs(range[1]));
}

bool IsTorqueMotor(const mjModel* m, int u) {
  return m->actuator_trntype[u] == mjTRN_JOINT && m->actuator_gaintype[u] == mjGAIN_FIXED &&
         m->actuator_gainprm[mjNGAIN * u] == 1 && m->actuator_biastype[u] == mjBIAS_NONE &&
         m->actuator_dyntype[u] == mjDYN_NONE && m->actuator_gear[6 * u] == 1;
}

// [N·m] what the model lets act on each joint, in robot order: the joint's own range, and those of
// the actuators on it.
Eigen::VectorXd EffortLimits(const RobotSpec& spec,
                             const mjModel* m,
                             const std::vector<int>& joints) {
  Eigen::VectorXd limit(spec.num_joints());
  for (int i = 0; i < spec.num_joints(); ++i) {
    const int joint = joints[i];
    limit[i] = Bound(m->jnt_actfrclimited[joint], m->jnt_actfrcrange + 2 * joint);
    for (int u = 0; u < m->nu; ++u) {
      if (m->actuator_trntype[u] != mjTRN_JOINT || m->actuator_trnid[2 * u] != joint) continue;
      const double gear = std::abs(m->actuator_gear[6 * u]);
      const double force = Bound(m->actuator_forcelimited[u], m->actuator_forcerange + 2 * u);
      limit[i] = std::min(limit[i], gear * force);
      if (IsTorqueMotor(m, u)) {
        limit[i] =
            std::min(limit[i], Bound(m->actuator_ctrllimited[u], m->actuator_ctrlrange + 2 * u));
      }
    }
    if (!std::isfinite(limit[i]) || limit[i] <= 0) {
      throw ConfigError(Place(spec, "joints", spec.joints[i]) + "has no effort limit in " +
                        spec.model_file + "\n  Give the joint an actuatorfrcrange.");
    }
  }
  return limit;
}

bool HasMotorsInRobotOrder(const RobotSpec& spec,
                           const mjModel* m,
                           const std::vector<int>& joints) {
  if (m->nu != spec.num_joints()) return false;
  for (int u = 0; u < m->nu; ++u) {
    if (!IsTorqueMotor(m, u) || m->actuator_trnid[2 * u] != joints[u]) return false;
  }
  return true;
}

void ReplaceActuators(const RobotSpec& spec, const Eigen::VectorXd& effort_limit, mjSpec* mjcf) {
  std::vector<mjsElement*> old;
  for (mjsElement* e = mjs_firstElement(mjcf, mjOBJ_ACTUATOR); e; e = mjs_nextElement(mjcf, e)) {
    old.push_back(e);
  }
  for (mjsElement* element : old) mjs_delete(mjcf, element);
  for (int i = 0; i < spec.num_joints(); ++i) {
    mjsActuator* motor = mjs_addActuator(mjcf, nullptr);
    mjs_setName(motor->element, spec.joints[i].c_str());
    mjs_setToMotor(motor);
    motor->trntype = mjTRN_JOINT;
    mjs_setString(motor->target, spec.joints[i].c_str());
    motor->gear[0] = 1;
    motor->forcelimited = mjLIMITED_FALSE;
    motor->ctrllimited = mjLIMITED_TRUE;
    motor->ctrlrange[0] = -effort_limit[i];
    motor->ctrlrange[1] = effort_limit[i];
  }
  // what the keyframes say to the old actuators means nothing to motors
  for (mjsElement* e = mjs_firstElement(mjcf, mjOBJ_KEY); e; e = mjs_nextElement(mjcf, e)) {
    mjs_setDouble(mjs_asKey(e)->ctrl, nullptr, 0);
    mjs_setDouble(mjs_asKey(e)->act, nullptr, 0);
  }
}

// Joint ids in robot order; refuses what the rest of silc could not treat. In an extended scene
// there may be joints that are not below the base.
std::vector<int> ResolveJoints(const RobotSpec& spec, const mjModel* m, bool extended) {
  std::vector<int> joints;
  for (const std::string& name : spec.joints) {
    const int id = FindId(spec, m, mjOBJ_JOINT, m->njnt, "joint", "joints", name);
    if (m->jnt_type[id] != mjJNT_HINGE) {
      throw ConfigError(Place(spec, "joints", name) + "is not a hinge in " + spec.model_file +
                        "; stiffness is computed for hinge joints alone");
    }
    joints.push_back(id);
  }
  const int base = FindId(spec, m, mjOBJ_BODY, m->nbody, "body", "base", spec.base);
  if (m->body_jntnum[base] != 1 || m->jnt_type[m->body_jntadr[base]] != mjJNT_FREE) {
    throw ConfigError(Place(spec, "base", spec.base) + "has no free joint in " + spec.model_file +
                      "\n  The base is the body that floats: give it a <freejoint/>.");
  }
  for (int id = 0; id < m->njnt; ++id) {
    if (id == m->body_jntadr[base]) continue;
    if (extended && m->body_rootid[m->jnt_bodyid[id]] != m->body_rootid[base]) continue;
    if (std::find(joints.begin(), joints.end(), id) == joints.end()) {
      const char* name = mj_id2name(m, mjOBJ_JOINT, id);
      throw ConfigError(spec.file + ": joints: joint '" + (name ? name : "(unnamed)") + "' of " +
                        spec.model_file + " is not listed\n  List it, or weld it in the model.");
    }
  }
  return joints;
}

}  // namespace

RobotModel RobotModel::Load(const std::string& name_or_path, const LoadOptions& options) {
  return FromSpec(ReadRobotSpec(FindRobotFile(name_or_path)), options);
}

RobotModel RobotModel::FromSpec(RobotSpec spec, const LoadOptions& options) {
  InstallMujocoHandlers();
  if (options.gains) spec.UseGains(*options.gains);
  if (!options.foot_collision.empty()) spec.foot_collision = options.foot_collision;
  if (spec.num_joints() > kMaxDofs) {
    throw ConfigError(spec.file + ": joints: " + std::to_string(spec.num_joints()) +
                      " joints are more than " + std::to_string(kMaxDofs) +
                      "\n  Raise kMaxDofs in silc/stiffness/types.h and build again.");
  }
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(spec.model_file, ignored)) {
    throw ConfigError(spec.file + ": model: there is no file " + spec.model_file);
  }

  CheckMjcfFile(spec.model_file);
  char error[1024] = "";
  MjSpecPtr mjcf(mj_parseXML(spec.model_file.c_str(), nullptr, error, sizeof(error)));
  if (!mjcf) throw ConfigError(spec.model_file + ": " + error);
  if (options.physics_period > 0) spec.physics_period = options.physics_period;
  mjcf->option.timestep = spec.physics_period;
  if (options.firm_contacts) mjcf->option.impratio = 100;
  ChooseFootGeoms(spec, mjcf.get());
  MakeScene(options, mjcf.get());
  if (!options.visuals && mjs_discardVisual(mjcf.get(), nullptr) < 0) {
    throw ConfigError(spec.model_file + ": " + mjs_getError(mjcf.get()));
  }
  const bool extended = static_cast<bool>(options.extend);
  if (extended) options.extend(mjcf.get());

  RobotModel robot;
  robot.model_ = Compile(spec, mjcf.get());
  const std::vector<int> joints = ResolveJoints(spec, robot.model_.get(), extended);
  robot.effort_limit_ = EffortLimits(spec, robot.model_.get(), joints);
  if (!HasMotorsInRobotOrder(spec, robot.model_.get(), joints)) {
    ReplaceActuators(spec, robot.effort_limit_, mjcf.get());
    robot.model_ = Compile(spec, mjcf.get());
  }
  robot.spec_ = std::move(spec);
  robot.ResolveNames(extended);
  return robot;
}

void RobotModel::ResolveNames(bool extended) {
  const mjModel* m = model_.get();
  const int n = num_joints();
  q_min_.resize(n);
  q_max_.resize(n);
  const std::vector<int> joints = ResolveJoints(spec_, m, extended);
  for (int i = 0; i < n; ++i) {
    const int joint = joints[i];
    qpos_address_.push_back(m->jnt_qposadr[joint]);
    dof_address_.push_back(m->jnt_dofadr[joint]);
    actuator_.push_back(i);
    const double infinity = std::numeric_limits<double>::infinity();
    q_min_[i] = m->jnt_limited[joint] ? m->jnt_range[2 * joint] : -infinity;
    q_max_[i] = m->jnt_limited[joint] ? m->jnt_range[2 * joint + 1] : infinity;
  }

  const auto body = [&](const std::string& key, const std::string& name) {
    return FindId(spec_, m, mjOBJ_BODY, m->nbody, "body", key, name);
  };
  // a site by name; `on` is the body it must sit on, -1 for any
  const auto site = [&](const std::string& key, const std::string& name, int on) {
    const int id = FindId(spec_, m, mjOBJ_SITE, m->nsite, "site", key, name);
    if (on >= 0 && m->site_bodyid[id] != on) {
      throw ConfigError(Place(spec_, key, name) + "sits on body " +
                        mj_id2name(m, mjOBJ_BODY, m->site_bodyid[id]) + ", not on " +
                        mj_id2name(m, mjOBJ_BODY, on));
    }
    return id;
  };

  base_body_ = body("base", spec_.base);
  base_qpos_address_ = m->jnt_qposadr[m->body_jntadr[base_body_]];
  base_dof_address_ = m->jnt_dofadr[m->body_jntadr[base_body_]];
  mass_ = m->body_subtreemass[base_body_];

  foot_of_geom_.assign(m->ngeom, -1);
  for (int side : {kLeft, kRight}) {
    const FootSpec& foot = side == kLeft ? spec_.left_foot : spec_.right_foot;
    const std::string key = side == kLeft ? "feet.left." : "feet.right.";
    foot_body_[side] = body(key + "body", foot.body);
    foot_site_[side] = site(key + "site", foot.site, foot_body_[side]);
    for (const FootGeoms& set : foot.geom_sets) {
      if (set.name != spec_.foot_collision) continue;
      for (const std::string& name : set.geoms) {
        const int id =
            FindId(spec_, m, mjOBJ_GEOM, m->ngeom, "geom", key + "geoms." + set.name, name);
        if (m->geom_bodyid[id] != foot_body_[side]) {
          throw ConfigError(Place(spec_, key + "geoms." + set.name, name) + "belongs to body " +
                            mj_id2name(m, mjOBJ_BODY, m->geom_bodyid[id]) + ", not to " +
                            foot.body);
        }
        foot_geoms_[side].push_back(id);
        foot_of_geom_[id] = side;
      }
    }
  }
  for (std::size_t i = 0; i < spec_.hands.size(); ++i) {
    const HandSpec& hand = spec_.hands[i];
    const std::string key = "hands." + hand.name + ".";
    hand_body_[i] = body(key + "body", hand.body);
    hand_site_[i] = site(key + "site", hand.site, hand_body_[i]);
  }
  for (const ImuSpec& imu : spec_.imus) {
    imu_site_.push_back(site("imus." + imu.name, imu.site, -1));
  }
  for (int id = m->ngeom - 1; id >= 0; --id) {
    if (m->geom_type[id] == mjGEOM_PLANE && m->geom_bodyid[id] == 0) floor_geom_ = id;
  }
  SILC_CHECK(floor_geom_ >= 0);
}

MjDataPtr RobotModel::MakeData() const {
  MjDataPtr data(mj_makeData(model_.get()));
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

}  // namespace silc
