// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/step_acceleration.h"
#include "silc/physics/step_kinematics.h"
#include "silc/physics/step_newton.h"

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
///
/// The stages, in their order: step_kinematics.h with step_contacts.h, step_factor.h,
/// step_newton.h, step_acceleration.h, and the integration here.
namespace silc::SILC_KERNEL {

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
  for (int own = 0; own < Team::NumOwn(model); ++own) {
    const int b = Team::Own(own);
    const LinkConstants<T>& link = model.link[b];
    LinkWork<Real>& w = work.link[b];
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
      const Real q = robot.qpos[link.qpos], v = robot.qvel[k] + h * w.x;
      w.x_new = v;
      w.x = q + h * v;  // no longer needed as acceleration
      check(v, max_speed);
      check(q, huge);
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
