// SPDX-License-Identifier: Apache-2.0
#include "silc/report/certificate_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/nan.h"
#include "silc/base/shell.h"
#include "silc/certify/certify_run.h"
#include "silc/observe/load_policy.h"

namespace silc {
namespace {

constexpr int kCertificateSamples = 100;  // random observations per box, as silc certify has them

double MedianOfMoments(const Certificate& certificate, double (*of)(const MomentCertificate&)) {
  std::vector<double> values;
  for (const MomentCertificate& moment : certificate.moments) {
    if (moment.status == StiffnessStatus::kOk) values.push_back(of(moment));
  }
  if (values.empty()) return kNan;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

}  // namespace

CertificateSummary SummariseCertificate(const std::string& policy_path,
                                        const UserBudget& budget,
                                        const CertificateSettings& settings) {
  const RobotModel robot = RobotModel::Load(kDefaultRobot);
  TrainingNotes notes;
  const Policy policy = LoadPolicy(policy_path, "", robot, &notes);
  LoopOptions loop_options;
  loop_options.servo = ServoFor(robot, policy, "");
  CertifyRun how;
  how.moments = settings.moments;
  CertifyOptions options;
  options.radii = NoiseOf("", notes, policy_path);
  options.threads = settings.threads;
  options.samples = kCertificateSamples;
  const RunCertificate found =
      CertifyPolicy(robot, policy, budget, loop_options, how, options, policy_path);
  if (found.run.end != LoopStatus::kRunning) {
    throw RunError(fmt::format("{} after {:.2f} s", Describe(found.run.end), found.run.end_time));
  }
  const Certificate& c = found.certificate;
  CertificateSummary summary;
  summary.moments = static_cast<double>(c.moments.size());
  summary.sigma = MedianOfMoments(c, [](const MomentCertificate& m) { return m.sigma; });
  summary.seen =
      MedianOfMoments(c, [](const MomentCertificate& m) { return std::fmax(m.sampled, m.sought); });
  summary.upper = MedianOfMoments(
      c, [](const MomentCertificate& m) { return std::isnan(m.upper) ? HUGE_VAL : m.upper; });
  summary.certified = c.certified;
  summary.broken = c.broken;
  summary.largest_box = c.largest_box;
  return summary;
}

std::string CertifyCommand(const std::string& policy_path, const CertificateSettings& settings) {
  return fmt::format("silc certify {} --moments {}", ShellQuote(policy_path), settings.moments);
}

std::string ToText(const CertificateSummary& s) {
  return fmt::format("certificate {:.17g} {:.17g} {:.17g} {:.17g} {:.17g} {:.17g} {:.17g} end\n",
                     s.moments,
                     s.sigma,
                     s.seen,
                     s.upper,
                     s.certified,
                     s.broken,
                     s.largest_box);
}

std::optional<CertificateSummary> CertificateFromText(const std::string& text) {
  CertificateSummary s;
  char end[4] = {};
  const int read = std::sscanf(text.c_str(),
                               "certificate %lf %lf %lf %lf %lf %lf %lf %3s",
                               &s.moments,
                               &s.sigma,
                               &s.seen,
                               &s.upper,
                               &s.certified,
                               &s.broken,
                               &s.largest_box,
                               end);
  if (read != 8 || std::string(end) != "end") return std::nullopt;
  return s;
}

}  // namespace silc
