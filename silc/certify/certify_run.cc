// SPDX-License-Identifier: Apache-2.0
#include "silc/certify/certify_run.h"

#include <fmt/format.h>

#include "silc/base/error.h"
#include "silc/task/task_config.h"

namespace silc {

BoxRadii NoiseOf(const std::string& task, const TrainingNotes& notes, const std::string& place) {
  std::string errors = notes.noise;
  if (!task.empty() || errors.empty()) {
    const std::string name = !task.empty() ? task : notes.task.empty() ? kDefaultTask : notes.task;
    errors = SensorErrors(ReadTaskFile(FindTaskFile(name)).config.noise);
  }
  if (errors == "none") return {};
  try {
    return ParseBox(errors, {});
  } catch (const ConfigError& error) {
    throw ConfigError(place + ": silc_noise: " + error.what());
  }
}

RunCertificate CertifyPolicy(const RobotModel& robot,
                             const Policy& policy,
                             const UserBudget& budget,
                             const LoopOptions& in_loop,
                             const CertifyRun& how,
                             const CertifyOptions& options,
                             const std::string& place,
                             const Progress& progress) {
  const ClosedLoop loop(robot, policy, in_loop);
  const DenseNetwork network = CertifiableNetwork(policy, budget.spec, place);
  MomentRecorder recorder(policy, budget.spec, in_loop.servo, how.moments);
  ObservationOptions observation;
  observation.budget = budget;
  observation.random_directions = 0;
  observation.whole_moments = 0;
  observation.wanted = [&] { return recorder.Wants(); };
  observation.on_contact = [&](const Moment& moment, const ContactKinematics& contact) {
    recorder.Add(moment, contact);
  };
  RunCertificate result;
  result.run = how.states.empty() ? ObserveRollout(loop, how.rollout, how.settle, observation)
                                  : ObserveStates(loop, how.states, observation);
  const std::vector<KeptMoment> moments = recorder.Take();
  if (moments.empty()) {
    throw RunError(fmt::format("{}: no moment to certify: {}", place, Describe(result.run.end)));
  }
  result.certificate =
      Certify(network, recorder.table(), policy.layout().action.clip, moments, options, progress);
  return result;
}

}  // namespace silc
