// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <Eigen/Core>
#include <Eigen/LU>

#include "silc/base/check.h"
#include "silc/physics/batch.h"

namespace silc {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Worker {
  mjModel* m;
  mjData* d;
};

}  // namespace

struct MujocoBatch::Impl {
  Impl(const mjModel& mujoco,
       const BatchModel& model,
       int num_envs,
       std::shared_ptr<ThreadPool> threads)
      : nominal(mj_copyModel(nullptr, &mujoco)),
        layout(MakeLayout(model.step)),
        rows(static_cast<std::size_t>(layout.size) * num_envs),
        body_mass(num_envs),
        body_com(num_envs),
        pool(std::move(threads)) {
    if (!model.self_collision) RemoveSelfCollision(nominal);
    nominal->opt.disableflags |= mjDSBL_AUTORESET;  // faults are reported, not papered over
    const StepModel<double>& s = model.step;
    for (int u = 0; u < s.num_actuators; ++u) {
      // every actuator becomes the servo (S1): bias (τ_ff, −kp, −kd), gain kp, the joint's limits
      nominal->actuator_gaintype[u] = mjGAIN_FIXED;
      nominal->actuator_biastype[u] = mjBIAS_AFFINE;
      nominal->actuator_gear[6 * nominal->actuator_outadr[u]] = 1;
      nominal->actuator_ctrllimited[nominal->actuator_ctrladr[u]] = 0;
      nominal->actuator_forcelimited[u] = 1;
      nominal->actuator_forcerange[2 * u] = s.actuator[u].low;
      nominal->actuator_forcerange[2 * u + 1] = s.actuator[u].high;
    }
    const std::vector<double> row = DefaultRow(model);
    for (int env = 0; env < num_envs; ++env) {
      std::transform(row.begin(),
                     row.end(),
                     rows.begin() + static_cast<std::size_t>(env) * layout.size,
                     [](double x) { return static_cast<float>(x); });
    }
    for (int i = 0; i < pool->size(); ++i) {
      mjModel* m = mj_copyModel(nullptr, nominal);
      workers.push_back({m, mj_makeData(m)});
    }
    const auto find = [&](int type, const std::vector<std::string>& names, std::vector<int>* ids) {
      for (const std::string& name : names) ids->push_back(mj_name2id(nominal, type, name.c_str()));
    };
    find(mjOBJ_BODY, model.feet, &feet);
    find(mjOBJ_BODY, model.pushes, &pushes);
    find(mjOBJ_SITE, model.imus, &imus);
    find(mjOBJ_SITE, model.frames, &frames);
  }
  ~Impl() {
    for (Worker& w : workers) {
      mj_deleteData(w.d);
      mj_deleteModel(w.m);
    }
    mj_deleteModel(nominal);
  }

  float* At(int env, Field field) {
    return rows.data() + static_cast<std::size_t>(env) * layout.size +
           layout.offset[static_cast<int>(field)];
  }

  /// Gives the worker's model the parameters of one robot.
  void LoadParameters(const BatchModel& model, int env, mjModel* m) {
    const StepModel<double>& s = model.step;
    const float *kp = At(env, Field::kKp), *kd = At(env, Field::kKd);
    const float* feedforward = At(env, Field::kFeedforward);
    for (int u = 0; u < s.num_actuators; ++u) {
      m->actuator_gainprm[mjNGAIN * u] = kp[u];
      mjtNum* bias = m->actuator_biasprm + mjNBIAS * u;
      bias[0] = feedforward[u];
      bias[1] = -kp[u];
      bias[2] = -kd[u];
    }
    const float* armature = At(env, Field::kArmature);
    for (int b = 0; b < s.num_links; ++b) {
      const int count = s.link[b].joint == JointKind::kFree ? 6 : 1;
      std::fill_n(m->dof_armature + s.link[b].dof, count, armature[b]);
    }
    const double friction = *At(env, Field::kFriction);
    for (int g = 0; g < m->ngeom; ++g) {
      m->geom_friction[3 * g] = nominal->geom_friction[3 * g] * friction;
    }
    for (int i = 0; i < m->npair; ++i) {
      m->pair_friction[5 * i] = nominal->pair_friction[5 * i] * friction;
      m->pair_friction[5 * i + 1] = nominal->pair_friction[5 * i + 1] * friction;
    }
    std::copy_n(nominal->body_mass, m->nbody, m->body_mass);
    std::copy_n(nominal->body_inertia, 3 * m->nbody, m->body_inertia);
    std::copy_n(nominal->body_ipos, 3 * m->nbody, m->body_ipos);
    std::copy_n(nominal->body_sameframe, m->nbody, m->body_sameframe);
    std::copy_n(nominal->geom_sameframe, m->ngeom, m->geom_sameframe);
    std::copy_n(nominal->site_sameframe, m->nsite, m->site_sameframe);
    if (const std::vector<double>& mass = body_mass[env]; !mass.empty()) {
      for (int b = 1; b < m->nbody; ++b) {
        if (m->body_mass[b] > 0) {
          for (int k = 0; k < 3; ++k) m->body_inertia[3 * b + k] *= mass[b] / m->body_mass[b];
        }
        m->body_mass[b] = mass[b];
      }
    }
    m->opt.disableflags = nominal->opt.disableflags;
    if (const std::vector<double>& com = body_com[env]; !com.empty()) {
      std::copy(com.begin(), com.end(), m->body_ipos);
      std::fill_n(m->body_sameframe, m->nbody, mjtByte{mjSAMEFRAME_NONE});
      std::fill_n(m->geom_sameframe, m->ngeom, mjtByte{mjSAMEFRAME_NONE});
      std::fill_n(m->site_sameframe, m->nsite, mjtByte{mjSAMEFRAME_NONE});
      // its bounding boxes are fixed to the centres of mass they were compiled with
      m->opt.disableflags |= mjDSBL_MIDPHASE;
    }
    std::copy_n(m->body_mass, m->nbody, m->body_subtreemass);
    for (int b = static_cast<int>(m->nbody) - 1; b > 0; --b) {
      m->body_subtreemass[m->body_parentid[b]] += m->body_subtreemass[b];
    }
  }

  void LoadState(const BatchModel& model, int env, mjModel* m, mjData* d) {
    const StepModel<double>& s = model.step;
    mj_resetData(m, d);
    std::copy_n(At(env, Field::kQpos), s.nq, d->qpos);
    std::copy_n(At(env, Field::kQvel), s.nv, d->qvel);
    std::copy_n(At(env, Field::kQacc), s.nv, d->qacc_warmstart);
  }

  void AdvanceRobot(const BatchModel& model, int env, int substeps, mjModel* m, mjData* d) {
    const StepModel<double>& s = model.step;
    float* fault = At(env, Field::kFault);
    if (*fault != 0) return;
    LoadParameters(model, env, m);
    LoadState(model, env, m, d);
    const float delay = *At(env, Field::kDelay);
    float* steps = At(env, Field::kWrenchSteps);
    for (int k = 0; k < substeps; ++k) {
      const float* target = At(env, k < delay ? Field::kPreviousTarget : Field::kTarget);
      std::copy_n(target, s.num_actuators, d->ctrl);
      if (!pushes.empty()) {
        mj_kinematics(m, d);
        Push(env, k, m, d);
      }
      const std::vector<mjtNum> qpos(d->qpos, d->qpos + s.nq), qvel(d->qvel, d->qvel + s.nv);
      mj_forward(m, d);
      if (k + 1 == substeps) StoreResults(model, env, m, d);
      if (m->opt.integrator == mjINT_EULER) {
        mj_Euler(m, d);
      } else {
        mj_implicit(m, d);
      }
      const int code = Judge(s, d);
      if (code != kFaultNone) {
        *fault = static_cast<float>(code);
        std::copy(qpos.begin(), qpos.end(), d->qpos);
        std::copy(qvel.begin(), qvel.end(), d->qvel);
        break;
      }
    }
    std::copy_n(d->qpos, s.nq, At(env, Field::kQpos));
    std::copy_n(d->qvel, s.nv, At(env, Field::kQvel));
    std::copy_n(d->qacc, s.nv, At(env, Field::kQacc));
    std::copy_n(At(env, Field::kTarget), s.num_actuators, At(env, Field::kPreviousTarget));
    for (std::size_t i = 0; i < pushes.size(); ++i) {
      steps[i] = std::max(steps[i] - static_cast<float>(substeps), 0.0f);
    }
  }

  void Push(int env, int substep, const mjModel* m, mjData* d) {
    for (std::size_t i = 0; i < pushes.size(); ++i) {
      const int b = pushes[i];
      const bool on = static_cast<float>(substep) < At(env, Field::kWrenchSteps)[i];
      const float* wrench = At(env, Field::kWrench) + 6 * i;
      mjtNum* applied = d->xfrc_applied + 6 * b;
      for (int k = 0; k < 6; ++k) applied[k] = on ? wrench[k] : 0;
      // the force acts at the nominal centre of mass, MuJoCo's at the robot's own
      mjtNum offset[3], arm[3], moment[3];
      mju_sub3(offset, nominal->body_ipos + 3 * b, m->body_ipos + 3 * b);
      mju_mulMatVec3(arm, d->xmat + 9 * b, offset);
      mju_cross(moment, arm, applied);
      mju_addTo3(applied + 3, moment);
    }
  }

  static int Judge(const StepModel<double>& s, const mjData* d) {
    bool sane = true;
    for (int i = 0; i < s.nv; ++i) {
      if (!std::isfinite(d->qvel[i])) return kFaultNotFinite;
      sane &= std::abs(d->qvel[i]) < s.max_speed;
    }
    for (int b = 0; b < s.num_links; ++b) {
      const mjtNum* q = d->qpos + s.link[b].qpos;
      if (!std::isfinite(q[0])) return kFaultNotFinite;
      for (int k = 0; s.link[b].joint == JointKind::kFree && k < 3; ++k) {
        sane &= std::abs(q[k]) < s.max_distance;
      }
    }
    return sane ? kFaultNone : kFaultAbsurd;
  }

  void StoreResults(const BatchModel& model, int env, const mjModel* m, mjData* d) {
    std::copy_n(d->actuator_force, model.step.num_actuators, At(env, Field::kTorque));
    float* force = At(env, Field::kFootForce);
    std::fill_n(force, 3 * feet.size(), 0.0f);
    for (int i = 0; i < d->ncon; ++i) {
      const mjContact& c = d->contact[i];
      for (std::size_t f = 0; f < feet.size(); ++f) {
        const int b1 = m->geom_bodyid[c.geom[0]], b2 = m->geom_bodyid[c.geom[1]];
        const bool first = b1 == feet[f];
        if (!first && b2 != feet[f]) continue;
        // of the ground, not of another link
        if (m->body_weldid[first ? b2 : b1] != 0) continue;
        mjtNum local[6], world[3];
        mj_contactForce(m, d, i, local);
        mju_mulMatTVec3(world, c.frame, local);
        for (int k = 0; k < 3; ++k) {
          force[3 * f + k] += static_cast<float>(first ? -world[k] : world[k]);
        }
      }
    }
    if (imus.empty()) return;
    mj_rnePostConstraint(m, d);
    for (std::size_t i = 0; i < imus.size(); ++i) {
      mjtNum velocity[6], acceleration[6];
      mj_objectVelocity(m, d, mjOBJ_SITE, imus[i], velocity, 1);
      mj_objectAcceleration(m, d, mjOBJ_SITE, imus[i], acceleration, 1);
      float* imu = At(env, Field::kImu) + 6 * i;
      std::copy_n(velocity, 3, imu);
      std::copy_n(acceleration + 3, 3, imu + 3);
    }
  }

  void Outputs(const BatchModel& model, int env, mjModel* m, mjData* d) {
    const StepModel<double>& s = model.step;
    LoadParameters(model, env, m);
    LoadState(model, env, m, d);
    mj_kinematics(m, d);
    mj_comPos(m, d);
    mj_comVel(m, d);
    mj_subtreeVel(m, d);
    const int root = m->body_rootid[m->jnt_bodyid[0]], nv = s.nv;
    std::copy_n(d->subtree_com + 3 * root, 3, At(env, Field::kCom));
    std::copy_n(d->subtree_linvel + 3 * root, 3, At(env, Field::kCom) + 3);
    RowMatrix com(3, nv);
    mj_jacSubtreeCom(m, d, com.data(), root);
    std::copy_n(com.data(), 3 * nv, At(env, Field::kComJacobian));
    std::vector<RowMatrix> points = {com};
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const int site = frames[i];
      float* pose = At(env, Field::kPose) + 12 * i;
      std::copy_n(d->site_xpos + 3 * site, 3, pose);
      std::copy_n(d->site_xmat + 9 * site, 9, pose + 3);
      mjtNum velocity[6];
      mj_objectVelocity(m, d, mjOBJ_SITE, site, velocity, 0);
      float* out = At(env, Field::kVelocity) + 6 * i;
      std::copy_n(velocity + 3, 3, out);
      std::copy_n(velocity, 3, out + 3);
      RowMatrix linear(3, nv), angular(3, nv);
      mj_jacSite(m, d, linear.data(), angular.data(), site);
      float* J = At(env, Field::kFrameJacobian) + 6 * nv * i;
      std::copy_n(linear.data(), 3 * nv, J);
      std::copy_n(angular.data(), 3 * nv, J + 3 * nv);
      points.push_back(linear);
    }
    // (S5), MuJoCo's side of the twin; held by outputs_test. Without a free base the foot cannot be
    // at rest and J stays as it is
    const bool floating = s.link[0].joint == JointKind::kFree;
    RowMatrix foot(6, nv);
    for (std::size_t f = 0; f < feet.size(); ++f) {
      mj_jacBody(m, d, foot.data(), foot.data() + 3 * nv, feet[f]);
      for (std::size_t i = 0; i < points.size(); ++i) {
        RowMatrix J = points[i];
        if (floating) {
          J -= points[i].leftCols(6) * foot.leftCols(6).partialPivLu().solve(foot);
          J.leftCols(6).setZero();
        }
        std::copy_n(
            J.data(), 3 * nv, At(env, Field::kStanceJacobian) + 3 * nv * (f * points.size() + i));
      }
    }
  }

  mjModel* nominal;
  const FieldLayout layout;
  std::vector<float> rows;
  std::vector<std::vector<double>> body_mass, body_com;  // per robot; empty: the model's
  std::vector<int> feet, pushes, imus, frames;
  const std::shared_ptr<ThreadPool> pool;
  std::vector<Worker> workers;
};

MujocoBatch::MujocoBatch(const mjModel& mujoco, BatchModel model, int num_envs, int threads)
    : MujocoBatch(
          mujoco, std::move(model), num_envs, std::make_shared<ThreadPool>(std::max(1, threads))) {}

MujocoBatch::MujocoBatch(const mjModel& mujoco,
                         BatchModel model,
                         int num_envs,
                         std::shared_ptr<ThreadPool> pool)
    : HostBatch(std::move(model), num_envs),
      impl_(std::make_unique<Impl>(mujoco, model_, num_envs, std::move(pool))) {}

MujocoBatch::~MujocoBatch() = default;

FieldView MujocoBatch::view(Field field) {
  return {impl_->At(0, field), 1, impl_->layout.size, width(field), false};
}

void MujocoBatch::SetBodies(int env,
                            const std::vector<double>& mass,
                            const std::vector<double>& com) {
  SILC_CHECK(env >= 0 && env < num_envs());
  const std::vector<double> inertia = LinkInertias(model_, mass, com);
  std::copy(inertia.begin(), inertia.end(), impl_->At(env, Field::kInertia));
  impl_->body_mass[env] = mass;
  impl_->body_com[env] = com;
}

void MujocoBatch::Advance(int substeps) {
  SILC_CHECK(substeps >= 1);
  impl_->pool->ParallelFor(num_envs(), [&](int worker, int env) {
    impl_->AdvanceRobot(model_, env, substeps, impl_->workers[worker].m, impl_->workers[worker].d);
  });
}

void MujocoBatch::UpdateKinematics(KinematicsLevel) {
  impl_->pool->ParallelFor(num_envs(), [&](int worker, int env) {
    impl_->Outputs(model_, env, impl_->workers[worker].m, impl_->workers[worker].d);
  });
}

void MujocoBatch::AdvanceRange(int worker, int begin, int end, int substeps, KinematicsLevel) {
  SILC_CHECK(substeps >= 1);
  const Worker& own = impl_->workers[worker];
  for (int env = begin; env < end; ++env) {
    impl_->AdvanceRobot(model_, env, substeps, own.m, own.d);
    impl_->Outputs(model_, env, own.m, own.d);
  }
}

}  // namespace silc
