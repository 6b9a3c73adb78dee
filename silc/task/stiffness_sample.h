// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/task/stance.h"
#include "silc/task/step_scratch.h"

/// Contact mode and Jacobians of a sample, for the stiffness bound.
namespace silc::step {

/// Batched twin of ComputeContactKinematics(), (S5) for the sample, out of the physics' fields:
/// single support as they are; double support with the left foot at rest, and the closing
/// constraint; flight with no CoM and gravity where it is. The hands are held against the base,
/// which is at rest for them in every mode.
template <class ThreadGroup = SingleThread>
SILC_HD void FillSample(const TaskRobot& robot,
                        const PhysicsView& view,
                        int env,
                        ContactMode mode,
                        float* out,
                        ThreadGroup threads = {}) {
  const int nv = view.nv, n = robot.num_joints;
  const int points = 1 + kNumTaskFrames;  // of a stance: centre of mass, frames
  const bool flight = mode == ContactMode::kFlight;
  const bool closed = mode == ContactMode::kDoubleSupport;
  const int foot = mode == ContactMode::kRightSupport ? 1 : 0;
  for (int row = 0; row < 3; ++row) {
    for (int j = threads.first(); j < n; j += ThreadGroup::kSize) {
      const int stance = 3 * nv * foot * points + nv * row + robot.dof[j];
      out[(SampleRows::kCom + row) * n + j] = flight ? 0.0f : view.stance_jacobian(env, stance);
    }
  }
  for (int hand = 0; hand < 2; ++hand) {
    for (int row = 0; row < 3; ++row) {
      for (int j = threads.first(); j < n; j += ThreadGroup::kSize) {
        const int frame = 6 * nv * (kFrameLeftHand + hand) + nv * row + robot.dof[j];
        out[(SampleRows::kHandOnBase + 3 * hand + row) * n + j] =
            robot.has_hands ? view.frame_jacobian(env, frame) : 0.0f;
      }
    }
  }
  for (int row = 0; row < 6; ++row) {
    for (int j = threads.first(); j < n; j += ThreadGroup::kSize) {
      float value = 0;
      if (closed && row < 3) {
        value = view.stance_jacobian(env, 3 * nv * (1 + kFrameRightFoot) + nv * row + robot.dof[j]);
      } else if (closed) {
        // with the left foot at rest the base turns against its leg
        value = view.frame_jacobian(env, 6 * nv * kFrameRightFoot + nv * row + robot.dof[j]) -
                view.frame_jacobian(env, 6 * nv * kFrameLeftFoot + nv * row + robot.dof[j]);
      }
      out[(SampleRows::kClosing + row) * n + j] = value;
    }
  }
  // E = [g_B]× w_B per q̇; the base turns against the leg that stands
  float quat[4], R[9];
  for (int k = 0; k < 4; ++k) quat[k] = view.qpos(env, robot.base_qpos + 3 + k);
  RotationOf(quat, R);
  const float g_B[3] = {-R[6], -R[7], -R[8]};
  for (int j = threads.first(); j < n; j += ThreadGroup::kSize) {
    float E[3] = {0, 0, 0};
    if (!flight) {
      float w_W[3], w_B[3];
      for (int k = 0; k < 3; ++k) {
        w_W[k] = -view.frame_jacobian(
            env, 6 * nv * (kFrameLeftFoot + foot) + nv * (3 + k) + robot.dof[j]);
      }
      RotateBack(R, w_W, w_B);
      Cross(g_B, w_B, E);
    }
    for (int k = 0; k < 3; ++k) out[(SampleRows::kGravity + k) * n + j] = E[k];
  }
}

/// Contact mode and Jacobians of the sample; unknown after a reset.
template <class ThreadGroup>
SILC_HD void Sample(const TaskContext& t,
                    const PhysicsView& view,
                    int env,
                    const EnvState& s,
                    ThreadGroup threads,
                    StepOutput* out,
                    Scratch* scratch) {
  if (scratch->flag != kRunning) {
    if (threads.Does(0)) {
      *out->contact_mode = kModeUnknown;
      PutStartingFeet(t.robot, scratch);
    }
    if (out->jacobian == nullptr) return;
    const int size = SampleSize(t.robot.num_joints);
    for (int i = threads.first(); i < size; i += ThreadGroup::kSize) out->jacobian[i] = 0;
    return;
  }
  const ContactMode mode = ModeOf(s.stands);
  if (threads.Does(0)) *out->contact_mode = mode;
  if (out->jacobian != nullptr) FillSample(t.robot, view, env, mode, out->jacobian, threads);
}

}  // namespace silc::step
