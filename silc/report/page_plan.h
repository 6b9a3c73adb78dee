// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "silc/base/yaml.h"
#include "silc/eval/experiment.h"
#include "silc/report/paper.h"

namespace silc {

/// Some of the rows: METHOD (without a mode), METHOD/MODE, */MODE, or * for every row.
struct RowPattern {
  std::string method, mode;  // "*": any
  bool Matches(const RowKey& row) const;
};

/// One experiment of the page and its section.
struct PageExperiment {
  const Experiment* experiment = nullptr;
  std::string id, menu, title;  // address in the page, word in its list of sections, heading
  std::string intro;            // HTML
  int quick = 0;                // robots or trials per seed with --quick
  std::vector<RowKey> paper;    // rows the paper has for it, and silc's own beside them
  std::vector<RowPattern> also, but_not;
  bool commanded = false;  // of policies that are told their budget alone

  /// Whether the page shows a row in this section: then the experiment is run on its policies.
  bool Shows(const RowKey& row) const;
  /// Robots or trials per seed.
  int Episodes(bool with_quick) const { return with_quick ? quick : experiment->episodes; }
};

/// The section of the certificates (docs/certify.md).
struct PageCertificates {
  std::string id, menu, title, intro;  // as of an experiment; no id: the page has none
  int moments = 0, quick = 0;          // of each policy; with --quick
  std::vector<RowPattern> also;

  bool Shows(const RowKey& row) const;
  int Moments(bool with_quick) const { return with_quick ? quick : moments; }
};
/// What --experiments calls the certificates.
inline constexpr char kCertificates[] = "certify";

/// Which experiments the page has, in its order, and which rows each shows (configs/report.yaml).
struct PagePlan {
  std::vector<PageExperiment> experiments;
  PageCertificates certificates;

  bool Shows(const std::string& experiment) const;
  /// Throws ConfigError that names the nearest.
  const PageExperiment& Find(const std::string& experiment) const;
};

/// Throws ConfigError: an experiment or method that is not known, or an experiment of the paper's
/// that has no section.
PagePlan ReadPagePlan(const YamlNode& root, const Paper& paper);
/// configs/report.yaml of this folder, the source tree or the installation.
PagePlan ReadPagePlan(const Paper& paper);

}  // namespace silc
