// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/training_notes.h"

#include "silc/policy/method.h"

namespace silc {

TrainingNotes TrainingNotesOf(const Metadata& metadata) {
  const auto say = [&](const char* key) {
    const auto at = metadata.find(key);
    return at == metadata.end() ? std::string() : at->second;
  };
  TrainingNotes notes;
  notes.task = say("silc_task");
  notes.method = say("silc_method");
  notes.budget = say("silc_budget");
  // an unbounded run may have been given a mode: it says nothing of the policy
  if (HasBudget(notes.method) || !notes.budget.empty()) notes.mode = say("silc_mode");
  notes.bound = say("silc_bound");
  notes.noise = say("silc_noise");
  notes.seed = say("silc_seed");
  notes.iterations = say("silc_iterations");
  notes.gravity_held = say("silc_gravity") == "held";
  return notes;
}

void WriteNotes(const TrainingNotes& notes, Metadata* metadata) {
  const auto put = [&](const char* key, const std::string& value) {
    if (!value.empty()) (*metadata)[key] = value;
  };
  put("silc_task", notes.task);
  put("silc_method", notes.method);
  put("silc_mode", notes.mode);
  put("silc_budget", notes.budget);
  put("silc_bound", notes.bound);
  put("silc_noise", notes.noise);
  // what older files said beside a name
  if (!notes.budget.empty()) metadata->erase("silc_gravity");
  put("silc_seed", notes.seed);
  put("silc_iterations", notes.iterations);
}

}  // namespace silc
