// SPDX-License-Identifier: Apache-2.0
// Results of `silc eval --json` from anywhere: a ConfigError, or a result that can be drawn and
// written again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "silc/base/error.h"
#include "silc/eval/experiment.h"
#include "silc/eval/experiment_plot.h"
#include "silc/plot/figure.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const silc::ExperimentResult result = silc::FromJson(text, "fuzz.json");
    silc::plot::RenderSvg(silc::FigureOf({&result}, {"fuzz"}));
    silc::FromJson(silc::ToJson(result), "again");
  } catch (const silc::ConfigError&) {
  }
  return 0;
}
