// SPDX-License-Identifier: Apache-2.0
#include "silc/report/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/sha256.h"
#include "silc/config/budget_file.h"
#include "silc/eval/experiment.h"
#include "silc/observe/load_policy.h"
#include "silc/policy/method.h"
#include "silc/report/page.h"
#include "silc/report/project_file.h"
#include "silc/report/shots.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

// Raised whenever an experiment's code gives other numbers for the same settings.
constexpr int kResultsVersion = 6;
// The same of certificates, which are bounded in minutes where experiments take hours.
constexpr int kCertificatesVersion = 7;

std::string Seeds(const std::vector<std::uint64_t>& seeds) {
  std::string text;
  for (const std::uint64_t seed : seeds) text += (text.empty() ? "" : ",") + std::to_string(seed);
  return text;
}

// One run that some part of the page needs.
struct Job {
  std::size_t policy;  // index into ReportData::policies
  std::string experiment;
  ExperimentOptions options;
  std::string file;  // in the cache
};

// The name of a result: whatever changes the numbers is hashed into it.
std::string CacheName(const Job& job, const std::string& policy_hash, const std::string& version) {
  const std::string settings = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n",
                                           version,
                                           kResultsVersion,
                                           policy_hash,
                                           job.experiment,
                                           job.options.robot,
                                           BudgetYaml(job.options.budget->spec),
                                           Seeds(job.options.seeds),
                                           job.options.episodes);
  return job.experiment + "-" + Sha256(settings).substr(0, 20);
}

class Reporter {
 public:
  explicit Reporter(const ReportOptions& options) : options_(options) {}

  ReportOutcome Run() {
    // a wrong name is said before anything is run
    data_.paper = ReadPaper();
    data_.plan = ReadPagePlan(data_.paper);
    bool certify = options_.experiments.empty();
    for (const std::string& name : options_.experiments) {
      if (name == kCertificates) {
        certify = true;
      } else {
        data_.plan.Find(name);
        data_.experiments.push_back(name);
      }
    }
    CheckSeeds(options_.seeds);
    data_.errata = ReadFile(FindProjectFile("docs/paper_errata.md"));
    const RobotModel robot = RobotModel::Load(ExperimentOptions{}.robot);
    data_.policies = ReadPolicyFolder(options_.policies, robot);
    data_.recorded = ReadRecorded(
        options_.policies, data_.paper, robot.spec().Gains().name, &data_.not_recorded);
    data_.others = ReadOthers(options_.policies, data_.paper, data_.plan, &data_.not_recorded);
    data_.version = options_.version;
    data_.command = options_.command;
    data_.quick = options_.quick;
    if (options_.experiments.empty()) {
      for (const PageExperiment& one : data_.plan.experiments)
        data_.experiments.push_back(one.experiment->name);
    }
    data_.found.resize(data_.policies.size());
    data_.settings = Settings();

    std::error_code error;
    fs::create_directories(Cache(), error);
    if (error) throw RunError(Cache() + ": cannot be made: " + error.message());
    for (const FolderPolicy& policy : data_.policies) {
      if (!policy.fault.empty()) LeaveOut(policy.path + ": left out: " + policy.fault);
      if (!policy.warning.empty()) Say(policy.warning);
    }
    for (const std::string& why : data_.not_recorded) LeaveOut("left out: " + why);
    const std::vector<Job> jobs = Plan();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      ReadOrRun(jobs[i], fmt::format("[{}/{}] ", i + 1, jobs.size()));
    }
    if (certify) CertifyAll();
    if (options_.pictures) TakePictures(jobs);
    outcome_.page = (fs::path(options_.out) / "index.html").string();
    WriteFileAtomically(outcome_.page, RenderPage(data_));
    return outcome_;
  }

 private:
  std::string Cache() const { return (fs::path(options_.out) / "cache").string(); }
  void Say(const std::string& line) const {
    if (options_.say) options_.say(line);
  }

  void LeaveOut(const std::string& line) {
    Say(line);
    outcome_.left_out.push_back(line);
  }

  std::string Settings() const {
    std::string text = options_.quick ? "Quick settings: " : "Full settings: ";
    for (std::size_t i = 0; i < data_.experiments.size(); ++i) {
      const PageExperiment& one = data_.plan.Find(data_.experiments[i]);
      text += fmt::format("{}{} {} {}",
                          i == 0 ? "" : ", ",
                          one.experiment->name,
                          one.Episodes(options_.quick),
                          one.experiment->unit);
    }
    return text + fmt::format("; seed {}.", Seeds(options_.seeds));
  }

  std::vector<Job> Plan() {
    std::vector<Job> jobs;
    std::vector<std::string> hashes;
    for (const FolderPolicy& policy : data_.policies)
      hashes.push_back(policy.fault.empty() ? PolicyHash(policy.path) : "");
    for (const std::string& name : data_.experiments) {
      const PageExperiment& section = data_.plan.Find(name);
      for (std::size_t i = 0; i < data_.policies.size(); ++i) {
        const FolderPolicy& policy = data_.policies[i];
        if (!policy.fault.empty() || !section.Shows(policy.row)) continue;
        if (section.commanded && !policy.command.any()) continue;
        Job job{i, name, {}, ""};
        job.options.budget = policy.budget;
        job.options.command = policy.command;
        job.options.seeds = options_.seeds;
        job.options.threads = options_.threads;
        job.options.episodes = section.Episodes(options_.quick);
        job.file =
            (fs::path(Cache()) / (CacheName(job, hashes[i], options_.version) + ".json")).string();
        data_.commands[RunKey(name, policy.path)] =
            EvalCommand(name, policy.path, "", job.options.episodes, job.options.seeds);
        jobs.push_back(std::move(job));
      }
    }
    return jobs;
  }

  // A file of the cache; nothing where there is none, or where it is more than silc writes there.
  std::optional<std::string> CachedBytes(const std::string& file) const {
    if (options_.fresh || !fs::is_regular_file(file)) return std::nullopt;
    try {
      return ReadFile(file, kMaxResultBytes);
    } catch (const ConfigError&) {
      return std::nullopt;
    }
  }

  // A result of the cache; nothing where there is none, or where it is torn or of another format.
  std::optional<ExperimentResult> Cached(const Job& job) const {
    const std::optional<std::string> text = CachedBytes(job.file);
    if (!text) return std::nullopt;
    try {
      return FromJson(*text, job.file);
    } catch (const ConfigError&) {
      return std::nullopt;
    }
  }

  // Finds the job's result: from the cache, else by running the experiment.
  void ReadOrRun(const Job& job, const std::string& count) {
    const FolderPolicy& policy = data_.policies[job.policy];
    const std::string what = count + job.experiment + ", " + policy.name;
    if (std::optional<ExperimentResult> result = Cached(job)) {
      result->policy = policy.path;  // the same bytes may have another name by now
      data_.found[job.policy].push_back(std::move(*result));
      ++outcome_.cached;
      Say(what + ": from the cache");
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    try {
      const RobotModel robot = RobotModel::Load(job.options.robot);
      const ExperimentResult result = RunExperiment(FindExperiment(job.experiment),
                                                    policy.path,
                                                    LoadPolicy(policy.path, "", robot),
                                                    job.options,
                                                    [&](double share) {
                                                      if (options_.progress)
                                                        options_.progress(what, share);
                                                    });
      WriteFileAtomically(job.file, ToJson(result));
      data_.found[job.policy].push_back(result);
      ++outcome_.computed;
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      Say(fmt::format("{}: {:.1f} s", what, took.count()));
    } catch (const ConfigError& error) {
      Fail(job, what, error.what());
    } catch (const RunError& error) {
      Fail(job, what, error.what());
    }
  }

  void Fail(const Job& job, const std::string& what, const std::string& why) {
    data_.failures[RunKey(job.experiment, data_.policies[job.policy].path)] = why;
    ++outcome_.failed;
    Say(what + ": failed: " + why);
  }

  void CertifyAll() {
    for (std::size_t i = 0; i < data_.policies.size(); ++i) {
      const FolderPolicy& policy = data_.policies[i];
      if (!policy.fault.empty() || !data_.plan.certificates.Shows(policy.row)) continue;
      const CertificateSettings settings = {data_.plan.certificates.Moments(options_.quick),
                                            options_.threads};
      PageCertificate one{i, CertifyCommand(policy.path, settings), "", {}};
      const std::string name = fmt::format("{}\n{}\n{}\n{}\n{}\n",
                                           options_.version,
                                           kCertificatesVersion,
                                           PolicyHash(policy.path),
                                           BudgetYaml(policy.budget.spec),
                                           settings.moments);
      const std::string file =
          (fs::path(Cache()) / ("certify-" + Sha256(name).substr(0, 20) + ".txt")).string();
      const std::string what = "certificate, " + policy.name;
      std::optional<CertificateSummary> cached;
      if (const auto text = CachedBytes(file)) cached = CertificateFromText(*text);
      if (cached) {
        one.summary = *cached;
        ++outcome_.cached;
        Say(what + ": from the cache");
      } else {
        const auto fail = [&](const std::string& why) {
          one.failure = why;
          ++outcome_.failed;
          Say(what + ": failed: " + why);
        };
        try {
          one.summary = SummariseCertificate(policy.path, policy.budget, settings);
          WriteFileAtomically(file, ToText(one.summary));
          ++outcome_.computed;
          Say(what);
        } catch (const ConfigError& error) {
          fail(error.what());
        } catch (const RunError& error) {
          fail(error.what());
        }
      }
      data_.certificates.push_back(std::move(one));
    }
  }

  // one picture per experiment, of the most telling policy it ran with: silc before the others
  void TakePictures(const std::vector<Job>& jobs) {
    for (const std::string& experiment : data_.experiments) {
      const Shot* shot = FindShot(experiment);
      if (shot == nullptr) continue;
      const Job* best = nullptr;
      const auto rank = [&](const Job& job) {
        const std::string& method = data_.policies[job.policy].row.method;
        return method == Name(Method::kSilc) ? 2 : method == Name(Method::kSilcPaper) ? 1 : 0;
      };
      for (const Job& job : jobs) {
        if (job.experiment == experiment && (!best || rank(job) > rank(*best))) best = &job;
      }
      if (!best) continue;
      const FolderPolicy& policy = data_.policies[best->policy];
      const std::string file = fs::path(best->file).replace_extension(".png").string();
      PagePicture picture;
      picture.caption = shot->caption + " (" + policy.row.method +
                        (policy.row.mode.empty() ? "" : ", " + policy.row.mode) + ")";
      if (const auto png = CachedBytes(file)) {
        picture.png = *png;
      } else {
        std::string why;
        try {
          const auto image = TakeShot(*shot, policy.path, policy.budget, &why);
          if (image) picture.png = EncodePng(*image);
        } catch (const ConfigError&) {  // the experiment does not take this policy: said above
        } catch (const RunError& error) {
          Say("picture of " + experiment + ": " + error.what());
        }
        if (!why.empty()) {
          data_.no_pictures = why;
          Say("no pictures: " + why);
          return;
        }
        if (picture.png.empty()) continue;
        WriteFileAtomically(file, picture.png);
        Say("picture of " + experiment);
      }
      data_.pictures[experiment] = std::move(picture);
    }
  }

  const ReportOptions& options_;
  ReportData data_;
  ReportOutcome outcome_;
};

}  // namespace

ReportOutcome WriteReport(const ReportOptions& options) { return Reporter(options).Run(); }

}  // namespace silc
