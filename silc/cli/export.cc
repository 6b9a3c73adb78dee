// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "silc/base/error.h"
#include "silc/cli/verbs.h"
#include "silc/policy/mlp.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/onnx/writer.h"

namespace silc {
namespace {

struct ExportArguments {
  std::string from, to;
  bool half = false;
};

void Export(const ExportArguments& args) {
  const OnnxModel model = ReadOnnx(args.from);
  const auto network = RecogniseMlp(*model.graph, 0, 0);
  if (!network) {
    throw ConfigError(
        args.from +
        ": is no plain MLP (a normaliser, then actors side by side), which is what can "
        "be written again");
  }
  WriteOnnx(args.to,
            *network,
            "obs",
            "actions",
            model.metadata,
            args.half ? OnnxWeights::kHalf : OnnxWeights::kFloat);
  fmt::print("wrote {}: {} inputs, {} outputs, {:.2f} MB\n",
             args.to,
             network->inputs,
             network->outputs(),
             static_cast<double>(std::filesystem::file_size(args.to)) / 1e6);
}

}  // namespace

void AddExport(CLI::App* app) {
  auto args = std::make_shared<ExportArguments>();
  CLI::App* verb =
      app->add_subcommand("export", "a policy written again, for a robot or a repository");
  verb->add_option("POLICY", args->from, "ONNX file")->required();
  verb->add_option("OUT", args->to, "ONNX file to write; the metadata goes with it")->required();
  verb->add_flag("--half", args->half, "weights in float16 behind a Cast: half the file");
  verb->callback([args] { Export(*args); });
}

}  // namespace silc
