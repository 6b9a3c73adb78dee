// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/policy/observation_table.h"
#include "silc/task/commands.h"
#include "silc/task/task_robot.h"
#include "silc/task/thread_group.h"

/// How the task executes a compiled layout (silc/policy/observation_table.h): the actors'
/// observation with its noise and history, and the critic's.
namespace silc {

/// The gait clock of a layout may tell so many feet their phase.
inline constexpr int kClockFeet = 2;
/// What the critic sees beside a frame of the actors.
inline constexpr int kPrivilegedObs = 21;

/// Values an observation is made of. Phases stand last, so that the positions of the others do not
/// depend on the layout's number of feet.
SILC_HD constexpr ObservationSources TaskSources() {
  return {.joints = kTaskJoints, .actions = kTaskJoints, .feet = kClockFeet};
}
inline constexpr int kNumValues = TaskSources().size();

/// One element of a frame, and the noise on the quantity it reads.
struct TaskEntry {
  ObservationEntry<float> read;
  float noise;  // uniform ±, in the quantity's own unit, before offset and scale
  float bias;   // likewise, but the same for a whole episode
  int draw;     // which of the frame's draws its noise is: as many as entries before it have noise
};
static_assert(sizeof(TaskEntry) / 4 % 2 == 1, "entries in shared memory begin in different banks");

/// Which episode's sensor biases: they are a function of this and of the value alone, so that an
/// element that reads the same value has the same bias, and nothing must be remembered.
struct BiasKey {
  std::uint64_t seed;
  std::uint32_t env;
  std::uint32_t episode;  // the control step in which it was reset
};
/// In ±1.
SILC_HD float BiasOf(const BiasKey& key, int value) {
  return Draw(key.seed, key.env, key.episode, DrawPurpose::kBias, static_cast<std::uint32_t>(value))
      .Uniform(-1, 1);
}

/// A layout as the step executes it. Plain data; on a GPU the entries lie there.
struct TaskObservation {
  const TaskEntry* entries;  // of a frame
  int frame_width;
  int frames;  // the most that any element keeps
  int width;   // of the actors' observation
  bool whole_frames, newest_first, first_frame_fills;
  int num_feet;
  float foot_phase[kClockFeet];  // [rad] when the robot sets off
  float standing_phase;          // [rad]

  SILC_HD int critic_width() const { return frame_width + kPrivilegedObs; }
};

/// What only a simulator knows, for the critic.
struct PrivilegedState {
  float v_B[3];
  float quat_xyzw[4];
  float height;              // [m]
  float hand_force_B[2][3];  // [N]
  float foot_height[2];      // [m] of the ankle
  float foot_force[2];       // [N] vertical
  float push_B[3];           // [N]
};

/// Writes the phases of the gait clock among the values of a moment.
/// @param phase  of the clock, [0, 1)
SILC_HD void PutPhases(const TaskObservation& o, float phase, float walk, float* values) {
  const int first = TaskSources().At(TermSource::kPhaseSin);
  for (int f = 0; f < o.num_feet; ++f) {
    const float angle =
        walk < 0.5f ? o.standing_phase : 6.283185307179586f * phase + o.foot_phase[f];
    values[first + f] = sinf(angle);
    values[first + o.num_feet + f] = cosf(angle);
  }
}

/// Moves the frames of a history on by one; the newest is left as it was.
template <class ThreadGroup>
SILC_HD void AgeFrames(const TaskObservation& o, ThreadGroup threads, float* obs) {
  const int kept = o.width - o.frame_width;
  if (o.whole_frames) {
    // A group moves a stretch of kSize numbers at a time, from the end that moves out: read, wait,
    // write. What a stretch writes, none after it reads.
    const int rounds = (kept + ThreadGroup::kSize - 1) / ThreadGroup::kSize;
    for (int k = 0; k < rounds; ++k) {
      const int i = (o.newest_first ? rounds - 1 - k : k) * ThreadGroup::kSize + threads.first();
      const int to = o.newest_first ? i + o.frame_width : i;
      const int from = o.newest_first ? i : i + o.frame_width;
      const float x = i < kept ? obs[from] : 0.0f;
      threads.Sync();
      if (i < kept) obs[to] = x;
    }
  } else {
    for (int e = threads.first(); e < o.frame_width; e += ThreadGroup::kSize) {
      const ObservationEntry<float>& entry = o.entries[e].read;
      for (int age = entry.frames - 1; age > 0; --age) {
        const int at = entry.newest + age * entry.stride;
        obs[at] = obs[at - entry.stride];
      }
    }
  }
  threads.Sync();
}

/// What an actor gets of the clean value x.
SILC_HD float Measured(const TaskEntry& entry, float x, const BiasKey& bias, Draw& draw) {
  if (entry.bias > 0) x += entry.bias * BiasOf(bias, entry.read.value);
  if (entry.noise > 0) x += draw.Uniform(-entry.noise, entry.noise);
  return x;
}

/// Observes `values` (ObservationSources): a frame with noise becomes the newest of the actors'
/// observation, the same frame without noise is written to `clean`. Noise is drawn in the order of
/// the frame. In a fresh history the frames before are copies or zeros, as the layout says.
template <class ThreadGroup = SingleThread>
SILC_HD void ObserveFrame(const TaskObservation& o,
                          const float* values,
                          bool fresh,
                          const BiasKey& bias,
                          Draw& draw,
                          float* obs,
                          float* clean,
                          ThreadGroup threads = {}) {
  if (!fresh) AgeFrames(o, threads, obs);
  for (int e = threads.first(); e < o.frame_width; e += ThreadGroup::kSize) {
    const TaskEntry& entry = o.entries[e];
    const float x = values[entry.read.value];
    clean[e] = EncodeTerm(entry.read, x);
    if (entry.noise > 0) draw.Seek(entry.draw);
    const float seen = EncodeTerm(entry.read, Measured(entry, x, bias, draw));
    obs[entry.read.newest] = seen;
    if (!fresh) continue;
    const float before = o.first_frame_fills ? seen : 0.0f;
    for (int age = 1; age < entry.read.frames; ++age) {
      obs[entry.read.newest + age * entry.read.stride] = before;
    }
  }
}

/// The critic's numbers beside the clean frame: base_lin_vel 3 (× 2), base orientation xyzw 4,
/// height 1, hand forces in the pelvis frame 3 + 3 (× 0.1), ankle heights 2, feet's vertical forces
/// 2 (÷ 300 N), push in the pelvis frame 3 (× 0.05). Clipped to ±100.
SILC_HD void ObservePrivileged(const PrivilegedState& s, float* out) {
  int n = 0;
  const auto put = [&](float value) { out[n++] = Clamp(value, -100.0f, 100.0f); };
  for (int k = 0; k < 3; ++k) put(2.0f * s.v_B[k]);
  for (int k = 0; k < 4; ++k) put(s.quat_xyzw[k]);
  put(s.height);
  for (int h = 0; h < 2; ++h) {
    for (int k = 0; k < 3; ++k) put(0.1f * s.hand_force_B[h][k]);
  }
  for (int f = 0; f < 2; ++f) put(s.foot_height[f]);
  for (int f = 0; f < 2; ++f) put(s.foot_force[f] / 300.0f);
  for (int k = 0; k < 3; ++k) put(0.05f * s.push_B[k]);
}

}  // namespace silc
