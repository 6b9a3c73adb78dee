// SPDX-License-Identifier: Apache-2.0
#include "silc/train/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <vector>

#include "silc/base/shell.h"

namespace silc {
namespace {

// %A is the array's number, %a the element's; what else has a percent sign is doubled
std::string LogPattern(const std::string& folder) {
  std::string text;
  for (const char c : folder) text += c == '%' ? "%%" : std::string(1, c);
  return text + "/slurm-%A_%a.log";
}

}  // namespace

std::string SlurmScript(const Sweep& sweep, const SlurmOptions& options) {
  // SLURM starts elements in the order of their numbers: first seeds first
  std::vector<std::size_t> order(sweep.jobs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sweep.jobs[a].rank < sweep.jobs[b].rank;
  });
  std::vector<std::size_t> number(sweep.jobs.size());
  for (std::size_t i = 0; i < order.size(); ++i) number[order[i]] = i;

  std::string cases, array, dependent;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const SweepJob& job = sweep.jobs[order[i]];
    const std::string init =
        job.from < 0 ? "" : sweep.jobs[static_cast<std::size_t>(job.from)].folder;
    cases += fmt::format(
        "    {})\n      folder={} iterations={}\n      begin=({})\n      go_on=({})\n      ;;\n",
        i,
        ShellQuote(job.folder),
        job.config.learn.iterations,
        ShellCommand(job.TrainWords(init)),
        ShellCommand(job.ResumeWords()));
    if (job.from < 0) array += fmt::format("{}{}", array.empty() ? "" : ",", i);
  }
  // in the order of the file: what a training starts from has been submitted before it
  for (std::size_t j = 0; j < sweep.jobs.size(); ++j) {
    const SweepJob& job = sweep.jobs[j];
    if (job.from < 0) continue;
    const auto from = static_cast<std::size_t>(job.from);
    dependent += fmt::format(
        "  # {} starts from {}\n"
        "  job[{}]=$(submit {} --dependency=\"afterok:${{job[{}]}}_{}\" \"$@\")\n",
        job.name,
        sweep.jobs[from].name,
        number[j],
        number[j],
        number[from],
        number[from]);
  }
  std::string first;  // all of one array have its number
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (sweep.jobs[order[i]].from < 0) first += fmt::format("  job[{}]=$first\n", i);
  }
  // a comment has one line
  std::string title = sweep.title.empty() ? "trainings" : sweep.title;
  std::replace_if(
      title.begin(), title.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  const std::string logs = std::filesystem::path(sweep.jobs.front().folder).parent_path().string();
  return fmt::format(R"(#!/usr/bin/env bash
# {title}, for SLURM; written by silc sweep.
#   bash {script} --time=12:00:00 --gres=gpu:1    submits it: what stands behind goes to sbatch
# Submitted again, what is done ends at once and what was cut goes on. With --ntasks=8
# --gpus-per-task=1 each training runs on eight GPUs.
#SBATCH --job-name=silc-sweep
#SBATCH --signal=TERM@120
set -euo pipefail
cd {directory}
silc=${{SILC:-{silc}}}

# One training, by its number: from the beginning, or on from its last checkpoint.
train() {{
  local folder iterations begin go_on words
  case $1 in
{cases}    *)
      echo "there is no training $1" >&2
      exit 2
      ;;
  esac
  if [[ -e $folder/config.yaml ]]; then words=("${{go_on[@]}}"); else words=("${{begin[@]}}"); fi
  # a step of its own: SLURM's signals go to steps
  srun "$silc" "${{words[@]}}"
  if [[ ! -e $folder/checkpoints/checkpoint_$(printf %08d "$iterations").silc ]]; then
    echo "$folder: cut before iteration $iterations; submitted again it goes on" >&2
    exit 75
  fi
}}

# submit ELEMENTS [OPTION...]: prints the job's number
submit() {{
  local elements=$1
  shift
  sbatch --parsable --array="$elements" --output={output} --kill-on-invalid-dep=yes \
    "$@" {script} | cut -d ';' -f 1
}}

if [[ -n ${{SLURM_ARRAY_TASK_ID:-}} ]]; then
  train "$SLURM_ARRAY_TASK_ID"
else
  mkdir -p {logs}
  first=$(submit {array} "$@")
{first}{dependent}  echo "submitted {count} trainings; squeue --me shows them"
fi
)",
                     fmt::arg("title", title),
                     fmt::arg("script", ShellQuote(options.script)),
                     fmt::arg("directory", ShellQuote(options.directory)),
                     fmt::arg("silc", ShellQuote(options.silc)),
                     fmt::arg("cases", cases),
                     fmt::arg("output", ShellQuote(LogPattern(logs.empty() ? "." : logs))),
                     fmt::arg("logs", ShellQuote(logs.empty() ? "." : logs)),
                     fmt::arg("array", array),
                     fmt::arg("first", first),
                     fmt::arg("dependent", dependent),
                     fmt::arg("count", sweep.jobs.size()));
}

}  // namespace silc
