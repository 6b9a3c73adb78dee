// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "silc/policy/method.h"
#include "silc/policy/policy_metadata.h"

namespace silc {

/// What a policy file says of its training, in metadata_props silc_task, silc_method, … "" where it
/// does not say.
struct TrainingNotes {
  std::string task;    // "g1-loco"
  std::string method;  // "silc"
  std::string mode;    // the budget's name, a label; "" for methods that have none
  std::string budget;  // its numbers, as YAML (silc/config/policy_budget.h)
  /// [1] the σ that the training pressed towards at last (learn.penalty.bound_end): 1 is the
  /// budget.
  std::string bound;
  /// How far its sensors could be off (SensorErrors()): "joint_pos=0.01,joint_vel=0.1"; "none".
  std::string noise;
  std::string seed, iterations;
  /// silc_gravity: held, as files without a budget's numbers said it. Read, not written.
  bool gravity_held = false;
};
TrainingNotes TrainingNotesOf(const Metadata& metadata);

/// Into the metadata; what is "" is left as it was.
void WriteNotes(const TrainingNotes& notes, Metadata* metadata);

}  // namespace silc
