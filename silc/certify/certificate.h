// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "silc/certify/sigma_bound.h"
#include "silc/observe/observation.h"

namespace silc {

/// How far each number of an observation may be from the recorded one, either way, in the unit of
/// the quantity. Zero: it is what was recorded.
struct BoxRadii {
  double joint_pos = 0;          // [rad]
  double joint_vel = 0;          // [rad/s]
  double torque = 0;             // [N·m]
  double base_ang_vel = 0;       // [rad/s]
  double gravity = 0;            // [1]
  double action = 0;             // [1] previous actions
  double command = 0;            // [m/s], [rad/s], [m], [rad]: whatever is commanded, arms included
  double phase = 0;              // [1] sine and cosine of the gait clock
  bool frames_together = false;  ///< one error of a sensor in all its frames: a bias, not noise
};

/// "joint_pos=0.01,gravity=0.03": the numbers named replace those given. Throws ConfigError with
/// the nearest key for one that does not exist, and for a number that is negative or not finite.
BoxRadii ParseBox(const std::string& text, BoxRadii radii);

/// The box of these radii around an observation.
ObservationBox MakeBox(const ObservationTable& table,
                       const Eigen::VectorXd& centre,
                       const BoxRadii& radii,
                       double scale);

/// One moment that was recorded: what the network saw, and what its σ is a function of.
struct KeptMoment {
  double time = 0;  // [s]
  ContactMode mode = ContactMode::kDoubleSupport;
  StiffnessStatus status = StiffnessStatus::kOk;  ///< whether it is judged at all
  double sigma = 0;                               // [1] as the observer has it
  Eigen::VectorXd observation;
  SigmaFunction function;  ///< unless status says otherwise
};

/// What a box around one moment is shown to hold. NaN where status is not kOk.
struct MomentCertificate {
  double time = 0;  // [s]
  ContactMode mode = ContactMode::kDoubleSupport;
  StiffnessStatus status = StiffnessStatus::kOk;
  std::string refused;       ///< why there is no bound, where status is kOk: a clip; else empty
  double sigma = 0;          // [1] where it was recorded
  double sampled = 0;        // [1] largest at random observations of the box
  double sought = 0;         // [1] largest at corners of the box that were looked for
  double upper = 0;          // [1] no observation of the box has more
  double loop_change = 0;    // [1] β, see SigmaBound
  double radius = 0;         // [1] ρ of the action loop where it was recorded
  double radius_found = 0;   // [1] largest at some of these observations
  double radius_upper = 0;   // [1] no observation of the box has more; infinite: 1 is not a bound
  double sigma_box = 0;      // [1] largest multiple of the box with σ ≤ 1 for certain, 0: none
  double stable_box = 0;     // [1] largest multiple with ρ < 1 for certain, 0: none
  double certified_box = 0;  // [1] the smaller of the two: the budget holds there for certain
  double broken_box = 0;     // [1] smallest multiple tried that has an observation over the budget

  /// At the whole box σ ≤ 1 and ρ < 1 for certain.
  bool Holds() const { return upper <= 1 && radius_upper <= 1; }
};

struct CertifyOptions {
  BoxRadii radii;
  int samples = 100;       // random observations per moment and box
  int bisections = 7;      // of certified_box
  double largest_box = 4;  // [1] multiples of the box are looked for up to this
  double smallest_box = 1.0 / 256;
  std::uint64_t seed = 1;
  int threads = 1;
};

struct Certificate {
  std::vector<MomentCertificate> moments;
  int judged = 0;        // moments with a σ
  double certified = 0;  // [1] share of all moments whose box holds the budget for certain
  double broken = 0;     // [1] share of all moments whose box holds an observation over it
  double stable = 0;     // [1] share of all moments whose box has a stable action loop for certain
  double looseness = 0;  // [1] median of upper/max(sampled, sought), where upper is finite
  double largest_box = 0;          // [1] median certified_box
  double smallest_broken_box = 0;  // [1] median broken_box
};

/// Throws ConfigError ("… cannot be certified: …") when the network is no MLP, naming the operator
/// that makes it another thing, or has an activation or a condition without a bound.
DenseNetwork CertifiableNetwork(const Policy& policy,
                                const BudgetSpec& spec,
                                const std::string& place);

/// Keeps moments of a run for a certificate: at most `count`, evenly spread.
class MomentRecorder {
 public:
  MomentRecorder(const Policy& policy, const BudgetSpec& spec, const Servo& servo, int count);
  /// Whether the next moment would be kept; one that would not counts as seen.
  bool Wants();
  void Add(const Moment& moment, const ContactKinematics& contact);
  std::vector<KeptMoment> Take();
  const ObservationTable& table() const { return table_; }

 private:
  ObservationTable table_;
  BudgetSpec spec_;
  Servo servo_;
  int most_;
  long long seen_ = 0, every_ = 1;
  std::vector<KeptMoment> kept_;
};

/// @param action_clip  on the raw action; infinite: none
/// @param progress     called with the share that is done; may be empty
Certificate Certify(const DenseNetwork& network,
                    const ObservationTable& table,
                    double action_clip,
                    const std::vector<KeptMoment>& moments,
                    const CertifyOptions& options,
                    const std::function<void(double)>& progress);

/// What a person reads, and what a program reads.
std::string CertificateText(const Certificate& certificate, const CertifyOptions& options);
std::string CertificateJson(const Certificate& certificate, const CertifyOptions& options);

}  // namespace silc
