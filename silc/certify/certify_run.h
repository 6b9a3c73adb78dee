// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "silc/certify/certificate.h"
#include "silc/observe/run.h"

namespace silc {

/// How the moments of a certificate are recorded.
struct CertifyRun {
  std::string states;  // qpos and qvel of an .npz; "": a rollout in MuJoCo
  double rollout = 4;  // [s]
  double settle = 2;   // [s] before the first moment
  int moments = 20;    // at most, evenly spread
};

/// The noise that a task of configs/tasks, or a task file, puts on its sensors.
/// @param task  "": kDefaultTask
/// Throws ConfigError when there is no such task.
BoxRadii NoiseOfTask(const std::string& task);

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
