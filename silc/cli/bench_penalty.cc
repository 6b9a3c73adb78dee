// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "silc/base/error.h"
#include "silc/cli/number.h"
#include "silc/cli/trainer.h"
#include "silc/cli/verbs.h"
#include "silc/learn/update_bench.h"
#include "silc/policy/method.h"

namespace silc {
namespace {

struct BenchPenaltyArguments {
  int envs = 4096, iterations = 3;
  std::string device = "cpu", python = "python3";
  std::vector<std::string> overrides;
};

std::string PeerScript() {
  for (const char* path : {"bench/penalty_peer.py", SILC_BENCH_DIR "/penalty_peer.py"}) {
    if (std::filesystem::is_regular_file(path)) return path;
  }
  return {};
}

void BenchPenalty(const BenchPenaltyArguments& args) {
  LearnConfig sizes;
  for (const Method each : {Method::kBaseline, Method::kSilcPaper, Method::kSilc}) {
    const std::string& method = Name(each);
    UpdateBenchOptions options;
    options.num_envs = args.envs;
    options.iterations = args.iterations;
    ApplyMethod(method, "bench", &options.learn);
    options.learn.device = args.device;
    ApplyOverrides(args.overrides, &options.learn);
    sizes = options.learn;
    const nlohmann::ordered_json line = {{"name", "penalty.update_ms"},
                                         {"value", BenchUpdate(options).median_ms},
                                         {"unit", "ms"},
                                         {"who", "silc"},
                                         {"way", method},
                                         {"envs", args.envs},
                                         {"steps", sizes.steps},
                                         {"epochs", sizes.epochs},
                                         {"samples", sizes.penalty.samples},
                                         {"device", args.device}};
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  }

  // the same sizes, written with what PyTorch offers
  const std::string script = PeerScript();
  const std::string probe = args.python + " -c 'import torch' 2>/dev/null";
  if (script.empty() || std::system(probe.c_str()) != 0) {
    fmt::print(stderr,
               "skipped: PyTorch's own ways: {}\n",
               script.empty() ? "bench/penalty_peer.py is not here"
                              : args.python + " has no torch; --python names another");
    return;
  }
  const std::string command = fmt::format(
      "{} {} --envs {} --steps {} --epochs {} --mini-batches {} --samples {} --hidden {} "
      "--iterations {} --device {} --threads {}",
      args.python,
      script,
      args.envs,
      sizes.steps,
      sizes.epochs,
      sizes.mini_batches,
      sizes.penalty.samples,
      fmt::join(sizes.actor_hidden, " "),
      args.iterations,
      args.device,
      sizes.threads);
  if (std::system(command.c_str()) != 0) throw RunError(script + ": failed");
}

}  // namespace

void AddBenchPenalty(CLI::App* bench) {
  auto args = std::make_shared<BenchPenaltyArguments>();
  CLI::App* verb = bench->add_subcommand("penalty", kBenchPenaltyHelp);
  verb->add_option("overrides", args->overrides, "settings, as in learn.epochs=3");
  verb->add_option("--envs", args->envs, "robots")
      ->check(WholeIn(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--iterations", args->iterations, "timed, after one that is not")
      ->check(WholeIn(1, 1000))
      ->capture_default_str();
  verb->add_option("--device", args->device, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  verb->add_option("--python", args->python, "that has torch")->capture_default_str();
  verb->callback([args] { BenchPenalty(*args); });
}

}  // namespace silc
