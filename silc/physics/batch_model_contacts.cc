// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>

#include "silc/base/error.h"
#include "silc/physics/batch_model_compiler.h"

namespace silc {

BatchModelCompiler::PairParameters BatchModelCompiler::Mix(int g1, int g2) const {
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

BatchModelCompiler::PairParameters BatchModelCompiler::FromPair(int i) const {
  PairParameters p;
  p.condim = m_.pair_dim[i];
  p.friction[0] = std::max(m_.pair_friction[5 * i], kMinFriction);
  p.friction[1] = std::max(m_.pair_friction[5 * i + 1], kMinFriction);
  std::copy_n(m_.pair_solref + mjNREF * i, mjNREF, p.solref);
  std::copy_n(m_.pair_solimp + mjNIMP * i, mjNIMP, p.solimp);
  p.margin = m_.pair_margin[i];
  return p;
}

int BatchModelCompiler::PairOf(int g1, int g2) const {
  int pair = -1;
  for (int i = 0; i < m_.npair; ++i) {
    const int a = m_.pair_geom1[i], b = m_.pair_geom2[i];
    if ((a == g1 && b == g2) || (a == g2 && b == g1)) pair = i;
  }
  return pair;
}

bool BatchModelCompiler::Match(int g1, int g2) const {
  return ((m_.geom_contype[g1] & m_.geom_conaffinity[g2]) ||
          (m_.geom_contype[g2] & m_.geom_conaffinity[g1])) &&
         !Excluded(m_.geom_bodyid[g1], m_.geom_bodyid[g2]);
}

bool BatchModelCompiler::Excluded(int b1, int b2) const {
  for (int i = 0; i < m_.nexclude; ++i) {
    const int a = m_.exclude_signature[i] >> 16, b = m_.exclude_signature[i] & 0xffff;
    if ((a == b1 && b == b2) || (a == b2 && b == b1)) return true;
  }
  return false;
}

void BatchModelCompiler::MakeContacts() {
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

void BatchModelCompiler::AddContact(int plane, int geom, const PairParameters& pair) {
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
    Refuse(
        who,
        "contacts with condim " + std::to_string(pair.condim) + " are not supported, only 1 and 3");
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
  const Vector3d p_WP = Position(ground) + Orientation(ground) * ToVector(m_.geom_pos + 3 * plane);
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
  c.invweight =
      m_.body_invweight0[2 * m_.geom_bodyid[geom]] + m_.body_invweight0[2 * m_.geom_bodyid[plane]];
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
      const Vector3d corner(i & 1 ? size.x() : -size.x(), i & 2 ? size.y() : -size.y(), -size.z());
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

bool BatchModelCompiler::MayTouch(int g1, int g2) const {
  const int w1 = m_.body_weldid[m_.geom_bodyid[g1]], w2 = m_.body_weldid[m_.geom_bodyid[g2]];
  if (w1 == w2) return false;
  if (!Match(g1, g2)) return false;
  const int p1 = m_.body_weldid[m_.body_parentid[w1]], p2 = m_.body_weldid[m_.body_parentid[w2]];
  return Disabled(mjDSBL_FILTERPARENT) || (w1 != p2 && w2 != p1);
}

void BatchModelCompiler::MakePairs() {
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

int BatchModelCompiler::ShapeOf(int geom) {
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

void BatchModelCompiler::AddPair(int g1, int g2, const PairParameters& parameters) {
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
  kind.row = MakeRow(Name(mjOBJ_GEOM, g1), parameters.solref, parameters.solimp, parameters.margin);
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
  pair.other_tree = out_.step.link[shapes_[s1].link].root != out_.step.link[shapes_[s2].link].root;
  pair.reach2 = far > 0 ? far * far : 0;
  pairs_.push_back(pair);
}

void RemoveSelfCollision(mjModel* model) {
  constexpr int kMaxStaticShapes = 31;  // a bit each
  mjModel& m = *model;
  // every static geom gets a bit of its own, and moving geoms answer to the bits they answered to
  // before
  std::vector<int> bits(m.ngeom, 0);
  int next = 0;
  const auto moves = [&](int g) { return m.body_weldid[m.geom_bodyid[g]] != 0; };
  for (int s = 0; s < m.ngeom; ++s) {
    if (moves(s) || (m.geom_contype[s] == 0 && m.geom_conaffinity[s] == 0)) continue;
    if (next >= kMaxStaticShapes) {
      throw ConfigError("the model has more than " + std::to_string(kMaxStaticShapes) +
                        " static shapes that can be touched\n  Make some of them visual (contype "
                        "and conaffinity 0), or join them.");
    }
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

}  // namespace silc
