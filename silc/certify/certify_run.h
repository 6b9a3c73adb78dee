// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "silc/certify/certificate.h"
#include "silc/observe/run.h"
#include "silc/policy/training_notes.h"

namespace silc {

/// How the moments of a certificate are recorded.
struct CertifyRun {
  std::string states;  // qpos and qvel of an .npz; "": a rollout in MuJoCo
  double rollout = 4;  // [s]
  double settle = 2;   // [s] before the first moment
  int moments = 20;    // at most, evenly spread
};

/// How far each sensor could be off in training, noise and bias together.
/// @param task   of configs/tasks, or a task file; "": what the policy says of itself (a preset has
///               its own noise), else the task it names, else kDefaultTask
/// @param place  stands for the policy in messages
/// Throws ConfigError when there is no such task, or the policy says what is no noise.
BoxRadii NoiseOf(const std::string& task, const TrainingNotes& notes, const std::string& place);

struct RunCertificate {
  Certificate certificate;
  ObservationRun run;  // where the moments come from, and how it ended
};

/// Records moments of a policy in its loop and certifies the box around each.
/// Throws ConfigError when the network cannot be certified (CertifiableNetwork()), RunError when
/// the run gives no moment. `place` stands for the policy in messages.
/// @param progress  called with the share of the moments that is done; may be empty
RunCertificate CertifyPolicy(const RobotModel& robot,
                             const Policy& policy,
                             const UserBudget& budget,
                             const LoopOptions& in_loop,
                             const CertifyRun& how,
                             const CertifyOptions& options,
                             const std::string& place,
                             const Progress& progress = {});

}  // namespace silc
