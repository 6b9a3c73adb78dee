// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/base/host_device.h"
#include "silc/policy/term_source.h"

/// An observation layout, compiled: the one description of an observation that every part executes.
///
///     who                                   does
///     training environment, CPU and CUDA    EncodeTerm() in float on ObservationEntry<float>
///     Policy, on a robot or in MuJoCo       EncodeTerm() in double on ObservationEntry<double>
///     stiffness penalty, Policy::Jacobians  the columns of the Jacobian: source, index, scale
///
/// The layout itself (observation_layout.h) is what a user writes and what an exported policy
/// carries; it is compiled anew wherever it is used.
namespace silc {

struct ObservationLayout;

/// The values that an observation of one moment is made of, one after the other. Both users fill
/// such an array and run the table over it.
struct ObservationSources {
  int joints = 0;   // of the robot
  int actions = 0;  // of the policy
  int feet = 0;     // of the gait clock

  /// Position of a source's first value. Joints are in the robot's order, actions in the policy's.
  SILC_HD constexpr int At(TermSource source) const {
    const int base = 4 * joints + actions;
    switch (source) {
      case TermSource::kJointPos:
        return 0;
      case TermSource::kJointVel:
        return joints;
      case TermSource::kJointTorque:
        return 2 * joints;
      case TermSource::kRefJointPos:
        return 3 * joints;
      case TermSource::kPrevAction:
        return 4 * joints;
      case TermSource::kBaseAngVel:
        return base;
      case TermSource::kBaseLinVel:
        return base + 3;
      case TermSource::kProjectedGravity:
        return base + 6;
      case TermSource::kCommandLinVel:
      case TermSource::kCommandTwist:
        return base + 9;
      case TermSource::kCommandAngVel:
        return base + 11;
      case TermSource::kCommandHeight:
        return base + 12;
      case TermSource::kCommandWalk:
        return base + 13;
      case TermSource::kCommandWaist:
        return base + 14;
      case TermSource::kConstant:
        return base + 17;  // one value, 0: the number is in the entry's offset
      case TermSource::kBudgetCom:
        return base + 18;
      case TermSource::kBudgetHands:
        return base + 19;
      case TermSource::kBudgetNull:
        return base + 20;
      case TermSource::kPhaseSin:
        return base + 21;
      case TermSource::kPhaseCos:
        return base + 21 + feet;
    }
    return 0;
  }
  SILC_HD constexpr int size() const { return 4 * joints + actions + 21 + 2 * feet; }
};

/// One element of a frame: where it is read, what is done to it, and where its frames stand.
template <typename Real>
struct ObservationEntry {
  TermSource source;
  int index;  // robot joint, action of the policy (prev_action), or component
  int value;  // position among the ObservationSources
  Real offset, scale, clip_input, clip;
  int frames;  // kept of it
  int newest;  // position in the observation; the frame of age a is at newest + a · stride
  int stride;
};

///     o = clip( scale · clip_input(x − offset), clip )
template <typename Real>
SILC_HD Real EncodeTerm(const ObservationEntry<Real>& e, Real x) {
  Real y = x - e.offset;
  // written so that compilers make minimum and maximum instructions of it, without branches
  y = y > -e.clip_input ? y : -e.clip_input;
  y = y < e.clip_input ? y : e.clip_input;
  y = e.scale * y;
  y = y > -e.clip ? y : -e.clip;
  return y < e.clip ? y : e.clip;
}

/// Whether a clip holds the element, so that it does not move with x.
template <typename Real>
SILC_HD bool IsClipped(const ObservationEntry<Real>& e, Real x) {
  const Real shifted = x - e.offset, magnitude = shifted < 0 ? -shifted : shifted;
  if (magnitude > e.clip_input) return true;
  const Real scaled = e.scale * shifted;
  return (scaled < 0 ? -scaled : scaled) > e.clip;
}

/// Element and age of one number of the observation.
struct ObservationSlot {
  int element;  // of the frame
  int age;      // 0 the newest
};

struct ObservationTable {
  ObservationSources sources;
  std::vector<ObservationEntry<double>> entries;  // of a frame, in its order
  std::vector<ObservationSlot> slots;             // of the observation, in its order
  std::vector<int> action_joint;                  // robot joint of each action
  int frames = 0;                                 // the most that any element keeps
  bool whole_frames = false;                      // stand one after the other
  bool first_frame_fills = false;                 // frames before the first repeat it; else zeros

  int frame_width() const { return static_cast<int>(entries.size()); }
  int width() const { return static_cast<int>(slots.size()); }
  /// Column of an element in a Jacobian, in the robot's order.
  int Column(const ObservationEntry<double>& entry) const {
    return entry.source == TermSource::kPrevAction
               ? action_joint[static_cast<std::size_t>(entry.index)]
               : entry.index;
  }
};

/// @param robot_joints  names, in the robot's order
/// @param place         for messages, as ObservationLayout::Place() gives it
/// @pre layout.Validate() passed. Throws ConfigError for joints the robot does not have.
ObservationTable CompileObservation(const ObservationLayout& layout,
                                    const std::vector<std::string>& robot_joints,
                                    const std::string& place);

}  // namespace silc
