// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "silc/cli/verbs.h"
#include "silc/learn/penalty_bench.h"

namespace silc {
namespace {

struct BenchPenaltyArguments {
  PenaltyBenchOptions options;
  std::string python = "python3";
};

// bench/penalty_peer.py of this folder or the source tree; empty: neither
std::string PeerScript() {
  for (const char* folder : {"bench", SILC_BENCH_SOURCE_DIR}) {
    const std::string file = std::string(folder) + "/penalty_peer.py";
    if (std::filesystem::is_regular_file(file)) return file;
  }
  return "";
}

void RunPenaltyBench(const BenchPenaltyArguments& args) {
  const PenaltyBenchOptions& options = args.options;
  const auto measure = [&](const char* way, const std::vector<std::string>& settings) {
    LearnConfig config;
    ApplyOverrides(settings, &config);
    const PenaltyBenchResult result = BenchPenalty(options, config);
    const auto ms = [](double seconds) { return std::round(1e6 * seconds) / 1e3; };
    const nlohmann::ordered_json line = {{"name", "penalty.gradient_ms"},
                                         {"value", ms(result.wall_s)},
                                         {"unit", "ms"},
                                         {"cpu_ms", ms(result.cpu_s)},
                                         {"by", "silc"},
                                         {"way", way},
                                         {"samples", options.samples},
                                         {"device", options.device},
                                         {"version", SILC_VERSION}};
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  };
  const std::string silc = "learn.penalty.method=silc";
  measure("largest, eigen", {silc, "learn.penalty.sigmas=largest"});
  measure("largest, power", {silc, "learn.penalty.sigmas=largest", "learn.penalty.spectral=power"});
  measure("all, one probe", {silc, "learn.penalty.probes=1"});
  measure("all", {silc});

  const std::string script = PeerScript();
  if (script.empty()) {
    fmt::print(stderr, "bench/penalty_peer.py is not here: PyTorch's own ways are left out\n");
    return;
  }
  const std::string torch = "'" + args.python + "' -c 'import torch' 2>/dev/null";
  if (std::system(torch.c_str()) != 0) {
    fmt::print(stderr,
               "{} has no torch: PyTorch's own ways are left out (pip install torch, or --python "
               "of an environment that has it)\n",
               args.python);
    return;
  }
  std::string widths;
  for (const int width : options.hidden) widths += " " + std::to_string(width);
  const std::string command =
      fmt::format("'{}' '{}' --samples {} --device {} --repeats {} --hidden{}",
                  args.python,
                  script,
                  options.samples,
                  options.device,
                  options.repeats,
                  widths);
  if (std::system(command.c_str()) != 0) throw std::runtime_error(script + " failed");
}

}  // namespace

void AddBenchPenalty(CLI::App* bench) {
  auto args = std::make_shared<BenchPenaltyArguments>();
  CLI::App* verb = bench->add_subcommand(
      "penalty", "the penalty's gradient, ours beside PyTorch's own ways, on one thread or a GPU");
  verb->add_option("--samples", args->options.samples, "of a mini-batch")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--hidden", args->options.hidden, "widths of the actors")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  verb->add_option("--device", args->options.device)
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  verb->add_option("--repeats", args->options.repeats)
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  verb->add_option("--python", args->python, "interpreter with torch")->capture_default_str();
  verb->callback([args] { RunPenaltyBench(*args); });
}

}  // namespace silc
