// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "silc/config/budget_file.h"

namespace silc {

/// What a page says of a certificate (docs/certify.md): medians over the moments, shares of them.
struct CertificateSummary {
  double moments = 0;      // that were recorded
  double sigma = 0;        // [1] where they were recorded
  double seen = 0;         // [1] largest σ found at random observations and corners of the box
  double upper = 0;        // [1] bound over the box; infinite: none
  double certified = 0;    // [1] share of the moments whose box holds the budget for certain
  double broken = 0;       // [1] share whose box holds an observation over it
  double largest_box = 0;  // [1] largest multiple of the box that is certified
};

/// How it is asked for.
struct CertificateSettings {
  int moments = 20;
  int threads = 1;
};

/// Certifies a standing robot against the noise of the training's sensors, as `silc certify` does.
/// Throws ConfigError when the policy cannot be certified, RunError when the run gives no moment.
CertificateSummary SummariseCertificate(const std::string& policy_path,
                                        const UserBudget& budget,
                                        const CertificateSettings& settings);
/// The command that says the same and more.
std::string CertifyCommand(const std::string& policy_path, const CertificateSettings& settings);

/// As a file of the cache. Nothing for a text that is none: a torn file.
std::string ToText(const CertificateSummary& summary);
std::optional<CertificateSummary> CertificateFromText(const std::string& text);

}  // namespace silc
