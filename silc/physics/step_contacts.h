// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/soft_row.h"
#include "silc/physics/step_workspace.h"

/// Contacts with the static world, joint limits and friction loss: the rows of (D1), found,
/// differentiated and turned into forces.
namespace silc::SILC_KERNEL {

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

}  // namespace silc::SILC_KERNEL
