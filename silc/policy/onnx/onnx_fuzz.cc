// SPDX-License-Identifier: Apache-2.0
// Any bytes are a ConfigError or a graph that can be evaluated and differentiated; nothing else may
// happen.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "silc/base/error.h"
#include "silc/policy/graph.h"
#include "silc/policy/mlp.h"
#include "silc/policy/onnx/reader.h"

namespace {

// A folder with a file that tensors may name as "w.data"; it goes with the process.
class DataFolder {
 public:
  DataFolder()
      : folder_(std::filesystem::temp_directory_path() /
                ("silc_onnx_fuzz_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "w.data", std::ios::binary) << std::string(4096, '\x3d');
  }
  ~DataFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string path() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const DataFolder folder;
  // small limits: time goes into new paths instead of large products
  silc::GraphLimits limits;
  limits.max_nodes = 200;
  limits.max_elements = 1 << 12;
  limits.max_total_elements = 1 << 14;
  limits.max_work = 1 << 18;
  try {
    const silc::OnnxModel model =
        silc::ParseOnnx({reinterpret_cast<const char*>(data), size}, "fuzz", limits, folder.path());
    silc::GraphEvaluator<float> evaluator(model.graph);
    evaluator.SetTangentCount(2);
    // at zero, too, where roots have an infinite slope and logarithms and quotients none
    for (const float spread : {1.0f, 0.0f}) {
      for (std::size_t i = 0; i < model.graph->inputs().size(); ++i) {
        float x = 0.5f;
        for (float& value : evaluator.input(static_cast<int>(i))) {
          x = 0.7f - x;
          value = spread * x;
        }
      }
      evaluator.Evaluate();
      evaluator.input_tangents(0)[0] = 1.0f;
      evaluator.PushTangents();
    }
    for (std::size_t i = 0; i < model.graph->outputs().size(); ++i) {
      if (const auto network = silc::RecogniseMlp(*model.graph, 0, static_cast<int>(i))) {
        silc::MlpEngine engine(*network);
        std::vector<float> x(static_cast<std::size_t>(engine.inputs()), 0.25f);
        std::vector<float> y(static_cast<std::size_t>(engine.outputs()));
        engine.Forward(x, y);
        engine.PullBack();
      }
    }
  } catch (const silc::ConfigError&) {
  }
  return 0;
}
