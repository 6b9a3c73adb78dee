// SPDX-License-Identifier: Apache-2.0
#include "silc/view/view_bench.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "silc/base/test_paths.h"

namespace silc {
namespace {

using nlohmann::json;

ViewBenchOptions OneRobot() {
  ViewBenchOptions options;
  options.simulation.policies = {SourcePath("policies/g1_loco_silc_compliance.onnx")};
  options.spectators = 1;
  options.soak = 0;
  options.seconds = 0.5;
  return options;
}

TEST(ViewBench, GrowthIsExtrapolatedFromTheFramesOverWhichItWasMeasured) {
  EXPECT_DOUBLE_EQ(GrowthIn24Hours(1, 1), 4.32);
  EXPECT_DOUBLE_EQ(GrowthIn24Hours(-2000, 4000), -2.16);
}

// All of the time that was watched counts, not its last second alone.
TEST(ViewBench, TheRealTimeFactorIsSimulatedOverElapsedTime) {
  const json result = json::parse(BenchView(OneRobot()));
  EXPECT_GE(result["elapsed_s"].get<double>(), 0.5);
  EXPECT_NEAR(result["real_time_factor"].get<double>() * result["elapsed_s"].get<double>(),
              result["simulated_s"].get<double>(),
              1e-9);
  // whole control periods; the page takes every frame that it can, and no frame twice
  const double periods = result["simulated_s"].get<double>() / 0.02;
  EXPECT_NEAR(periods, std::round(periods), 1e-6);
  const double frames =
      result["frames_per_s_and_page"].get<double>() * result["elapsed_s"].get<double>();
  EXPECT_GT(frames, 0);
  EXPECT_LT(frames, periods + 5);
  EXPECT_FALSE(result.contains("soak"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their heap is another one
// However short it is asked to be, a soak has frames to measure after the recorder is full; and the
// robot lives in it: it is observed, and nothing of it grows.
TEST(ViewBench, ASoakStepsTheRobotAndHasEnoughFrames) {
  ViewBenchOptions options = OneRobot();
  options.soak = 0.001;
  options.seconds = 0.1;
  const json soak = json::parse(BenchView(options))["soak"];
  const auto measured = soak["frames_measured"].get<std::uint64_t>();
  EXPECT_GE(measured, kSoakLeast);
  EXPECT_GE(soak["frames"].get<std::uint64_t>(), kSoakWarmUp + measured);
  EXPECT_GT(kSoakWarmUp, kRecordedTime / 0.02) << "the recorder is full by then";
  EXPECT_GT(soak["observations"].get<int>(), 10);
  const double growth = soak["heap_growth_bytes"];
  EXPECT_DOUBLE_EQ(soak["heap_growth_24_h_mb"].get<double>(), GrowthIn24Hours(growth, measured));
  // a frame kept would be 3 kB, a moment kept 0.6 kB
  EXPECT_LT(growth / static_cast<double>(measured), 50);
}
#endif

}  // namespace
}  // namespace silc
