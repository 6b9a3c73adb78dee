// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/task/draw.h"
#include "silc/task/scalar.h"
#include "silc/task/task_robot.h"

namespace silc {

/// Arm poses and which of them are joined by a straight path in joint space that keeps clear of the
/// robot's own body (reach_table.h makes it). Plain pointers, so that a GPU can have its own copy.
struct ReachTable {
  const float* poses;  // (num_poses, kUpperJoints) [rad], zero beyond the robot's own
  const int* next;     // (num_poses, num_next) poses that can be reached
  int num_poses;
  int num_next;
};

/// Recorded arm motions, resampled to the control period. Empty: num_clips = 0.
struct MotionTable {
  const float* frames;  // (all frames, kUpperJoints) [rad], zero beyond the robot's own
  const int* first;     // (num_clips + 1) first frame of each clip
  int num_clips;
};

/// Where the arms' reference is going. Two kinds: reaches between poses of the table, or clips.
struct ArmState {
  float from[kUpperJoints];  // [rad] where this reach or blend began
  float ref[kUpperJoints];   // [rad] the reference now
  int target;                // pose of the table, or clip
  int frame;                 // of the clip
  float time, duration;      // [s] since the reach (or clip) began, and how long the reach takes
  float rest;                // [s] left of a rest
  bool fixed;                // held still until the next command
};

/// Minimum-jerk progress from 0 to 1: s(x) = 10x³ − 15x⁴ + 6x⁵; its slope is at most 1.875.
SILC_HD float MinimumJerk(float x) {
  x = Clamp(x, 0.0f, 1.0f);
  return x * x * x * (10.0f + x * (-15.0f + 6.0f * x));
}
inline constexpr float kMinimumJerkPeak = 1.875f;

namespace arm {

SILC_HD void BeginReach(
    const TaskConfig::Arms& c, const ReachTable& table, int target, Draw& draw, ArmState* s) {
  s->target = target;
  s->time = 0;
  s->duration = draw.Uniform(c.duration_min, c.duration_max);
  for (int j = 0; j < kUpperJoints; ++j) {
    s->from[j] = s->ref[j];
    const float distance = fabsf(table.poses[target * kUpperJoints + j] - s->ref[j]);
    s->duration = Max(s->duration, kMinimumJerkPeak * distance / c.max_speed);
  }
}

SILC_HD void BeginClip(const TaskConfig::Arms& c,
                       const MotionTable& motions,
                       Draw& draw,
                       ArmState* s) {
  s->target = draw.Index(motions.num_clips);
  const int first = motions.first[s->target], end = motions.first[s->target + 1];
  s->frame = first + draw.Index(end - first);
  s->time = 0;
  s->duration = c.blend;
  for (int j = 0; j < kUpperJoints; ++j) s->from[j] = s->ref[j];
}

}  // namespace arm

/// A new episode: the arms start somewhere, at rest.
SILC_HD void ResetArms(const TaskConfig::Arms& c,
                       const ReachTable& table,
                       const MotionTable& motions,
                       Draw& draw,
                       ArmState* s) {
  s->rest = 0;
  s->fixed = draw.Chance(c.fixed_prob);
  if (motions.num_clips > 0) {
    arm::BeginClip(c, motions, draw, s);
    for (int j = 0; j < kUpperJoints; ++j) {
      s->ref[j] = s->from[j] = motions.frames[static_cast<long>(s->frame) * kUpperJoints + j];
    }
    return;
  }
  const int start = draw.Index(table.num_poses);
  for (int j = 0; j < kUpperJoints; ++j) s->ref[j] = table.poses[start * kUpperJoints + j];
  arm::BeginReach(
      c, table, table.next[start * table.num_next + draw.Index(table.num_next)], draw, s);
}

/// At every new command the arms may be told to hold still, or to move again.
SILC_HD void ResampleArms(const TaskConfig::Arms& c, Draw& draw, ArmState* s) {
  s->fixed = draw.Chance(c.fixed_prob);
}

/// One control step on. Held arms stop where they are; clips go on inside. A reach that is held and
/// then freed goes on from where it was, because its time stood still.
SILC_HD void AdvanceArms(const TaskConfig::Arms& c,
                         const ReachTable& table,
                         const MotionTable& motions,
                         float dt,
                         Draw& draw,
                         ArmState* s) {
  if (s->fixed) return;
  if (motions.num_clips > 0) {
    if (++s->frame >= motions.first[s->target + 1]) arm::BeginClip(c, motions, draw, s);
    s->time += dt;
    const float w = MinimumJerk(s->time / s->duration);
    for (int j = 0; j < kUpperJoints; ++j) {
      const float clip = motions.frames[static_cast<long>(s->frame) * kUpperJoints + j];
      s->ref[j] = s->from[j] + w * (clip - s->from[j]);
    }
    return;
  }
  if (s->rest > 0) {
    s->rest -= dt;
    return;
  }
  s->time += dt;
  const float w = MinimumJerk(s->time / s->duration);
  for (int j = 0; j < kUpperJoints; ++j) {
    s->ref[j] = s->from[j] + w * (table.poses[s->target * kUpperJoints + j] - s->from[j]);
  }
  if (s->time < s->duration) return;
  if (draw.Chance(c.rest_prob)) s->rest = draw.Uniform(c.rest_min, c.rest_max);
  arm::BeginReach(
      c, table, table.next[s->target * table.num_next + draw.Index(table.num_next)], draw, s);
}

}  // namespace silc
