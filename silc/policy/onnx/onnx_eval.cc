// SPDX-License-Identifier: Apache-2.0
// Evaluates an ONNX file with silc and prints what came out, for ort_check.py to compare.
//   onnx_eval MODEL.onnx INPUTS.f64     all inputs one after the other, float64
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "silc/base/file.h"
#include "silc/policy/graph.h"
#include "silc/policy/onnx/reader.h"

namespace {

template <typename Values>
void PrintList(const Values& values) {
  std::printf("[");
  for (std::size_t i = 0; i < values.size(); ++i)
    std::printf("%s%.17g", i > 0 ? "," : "", double{values[i]});
  std::printf("]");
}

template <typename Real>
void Fill(silc::GraphEvaluator<Real>* evaluator, const std::vector<double>& inputs) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < evaluator->graph().inputs().size(); ++i) {
    for (Real& x : evaluator->input(static_cast<int>(i))) x = static_cast<Real>(inputs.at(at++));
  }
  evaluator->Evaluate();
}

template <typename Real>
void PrintOutputs(const char* name, const silc::GraphEvaluator<Real>& evaluator) {
  std::printf("\"%s\":[", name);
  for (std::size_t i = 0; i < evaluator.graph().outputs().size(); ++i) {
    std::printf("%s", i > 0 ? "," : "");
    PrintList(evaluator.output(static_cast<int>(i)));
  }
  std::printf("]");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: onnx_eval MODEL.onnx INPUTS.f64\n");
    return 2;
  }
  try {
    const silc::OnnxModel model = silc::ReadOnnx(argv[1]);
    const std::string bytes = silc::ReadFile(argv[2]);
    std::vector<double> inputs(bytes.size() / sizeof(double));
    std::memcpy(inputs.data(), bytes.data(), inputs.size() * sizeof(double));

    silc::GraphEvaluator<float> single(model.graph);
    silc::GraphEvaluator<double> twice(model.graph);
    Fill(&single, inputs);
    Fill(&twice, inputs);
    std::printf("{");
    PrintOutputs("float", single);
    std::printf(",");
    PrintOutputs("double", twice);
    // jacobian[output][input], row-major
    std::printf(",\"jacobian\":[");
    for (std::size_t o = 0; o < model.graph->outputs().size(); ++o) {
      std::printf("%s[", o > 0 ? "," : "");
      for (std::size_t i = 0; i < model.graph->inputs().size(); ++i) {
        std::printf("%s", i > 0 ? "," : "");
        PrintList(silc::GraphJacobian(&twice, static_cast<int>(o), static_cast<int>(i)));
      }
      std::printf("]");
    }
    std::printf("]}\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
