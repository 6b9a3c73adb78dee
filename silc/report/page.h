// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "silc/eval/experiment.h"
#include "silc/report/certificate_summary.h"
#include "silc/report/page_plan.h"
#include "silc/report/paper.h"
#include "silc/report/policy_folder.h"
#include "silc/report/recorded.h"

namespace silc {

/// A picture of an experiment.
struct PagePicture {
  std::string png;      // bytes of the file
  std::string caption;  // text
};

/// The certificate of one policy, or why there is none.
struct PageCertificate {
  std::size_t policy = 0;  // index into ReportData::policies
  std::string command;     // that gives it again
  std::string failure;     // "" where there is a summary
  CertificateSummary summary;
};

/// Everything the page says, gathered; RenderPage() computes nothing that is not in here.
struct ReportData {
  Paper paper;
  PagePlan plan;
  std::vector<FolderPolicy> policies;                // of the folder, usable or not
  std::vector<std::string> experiments;              // that were asked for, in order
  std::vector<std::vector<ExperimentResult>> found;  // per policy
  std::vector<RecordedResult> recorded;              // of other training seeds; beside the folder's
  std::vector<OthersResult> others;                  // of policies that other people trained
  std::vector<std::string> not_recorded;             // why one of these was left out, file first
  std::map<std::string, std::string> failures;       // "experiment, policy": why there is no result
  std::map<std::string, std::string> commands;       // "experiment, policy": runs it again
  std::vector<PageCertificate> certificates;         // in the policies' order
  std::map<std::string, PagePicture> pictures;       // by experiment
  std::string no_pictures;                           // why there are none; "" when there are
  std::string errata;                                // docs/paper_errata.md
  std::string settings;  // one sentence: how many robots and trials, which seeds
  std::string command;   // that wrote the page
  std::string version;
  bool quick = false;
};

/// What a key of `failures` and `commands` looks like.
std::string RunKey(const std::string& experiment, const std::string& policy_path);

/// The command line that gives a result again. `mode` is "" where the policy is judged by the
/// budget inside its file.
std::string EvalCommand(const std::string& experiment,
                        const std::string& policy_path,
                        const std::string& mode,
                        int episodes,
                        const std::vector<std::uint64_t>& seeds);

/// One HTML document that needs nothing but itself: CSS, figures and pictures are in it, there is
/// no script and nothing to fetch. The same data give the same bytes.
std::string RenderPage(const ReportData& data);

}  // namespace silc
