// SPDX-License-Identifier: Apache-2.0
#include "silc/physics_tools/make_batch.h"

#include <numeric>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/nearest.h"
#include "silc/robot/pose.h"
#ifdef SILC_HAVE_CUDA
#include "silc/physics/cuda_batch.h"
#endif

namespace silc {

RobotBatch MakeRobotBatch(const RobotModel& robot, const BatchRequest& request) {
  const RobotSpec& spec = robot.spec();
  RobotBatch out;
  out.model.reset(mj_copyModel(nullptr, robot.model()), mj_deleteModel);
  if (!request.self_collision) RemoveSelfCollision(out.model.get());
  if (request.friction_loss >= 0) {
    for (const int dof : robot.dof_address())
      out.model->dof_frictionloss[dof] = request.friction_loss;
  }
  BatchModelOptions options;
  options.self_collision = request.self_collision;
  options.feet = {spec.left_foot.body, spec.right_foot.body};
  options.frames = {spec.left_foot.site, spec.right_foot.site};
  for (const ImuSpec& imu : spec.imus) options.imus.push_back(imu.site);
  for (const HandSpec& hand : spec.hands) options.frames.push_back(hand.site);
  options.pushes = {spec.base};
  for (const HandSpec& hand : spec.hands) options.pushes.push_back(hand.body);
  const BatchModel model = CompileBatchModel(*out.model, options);

  const int n = request.num_envs;
  if (request.backend == "batch") {
    out.batch = std::make_unique<CpuBatch>(
        model, n, CpuBatchOptions{.threads = request.threads, .kernel = request.kernel});
  } else if (request.backend == "mujoco") {
    out.batch = std::make_unique<MujocoBatch>(*out.model, model, n, request.threads);
  } else if (request.backend == "cuda") {
#ifdef SILC_HAVE_CUDA
    out.batch = std::make_unique<CudaBatch>(model, n);
#else
    throw ConfigError("backend 'cuda' is not in this build; configure with the cuda preset");
#endif
  } else {
    throw ConfigError("backend '" + request.backend + "' is unknown" +
                      DidYouMean(request.backend, {"batch", "cuda", "mujoco"}));
  }

  // every robot in the standing pose, its servos holding it there
  const MjDataPtr data = robot.MakeData();
  StandInPose(robot, spec.StandingPose(request.pose), data.get());
  const GainSet& gains = spec.Gains(request.gains);
  std::vector<int> envs(n);
  std::iota(envs.begin(), envs.end(), 0);
  const int nu = model.step.num_actuators;
  std::vector<float> qpos, qvel(static_cast<std::size_t>(n) * model.step.nv, 0.0f), kp, kd, target;
  for (int env = 0; env < n; ++env) {
    qpos.insert(qpos.end(), data->qpos, data->qpos + model.step.nq);
    for (int j = 0; j < nu; ++j) {
      kp.push_back(static_cast<float>(request.stiffness * gains.kp[j]));
      kd.push_back(static_cast<float>(gains.kd[j]));
      target.push_back(static_cast<float>(data->qpos[robot.qpos_address()[j]]));
    }
  }
  out.batch->Reset(envs, qpos, qvel);
  out.batch->Write(Field::kKp, envs, kp);
  out.batch->Write(Field::kKd, envs, kd);
  out.batch->Write(Field::kTarget, envs, target);
  return out;
}

}  // namespace silc
