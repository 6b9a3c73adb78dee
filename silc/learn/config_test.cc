// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/config.h"

#include <gtest/gtest.h>

#include "silc/base/error.h"

namespace silc {
namespace {

std::string ErrorOf(const std::string& yaml) {
  try {
    LearnConfig config;
    ReadLearnConfig(YamlNode::Parse(yaml, "run.yaml")["learn"], &config);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string OverrideError(const std::string& text) {
  try {
    LearnConfig config;
    ApplyOverrides(std::vector<std::string>{text}, &config);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(LearnConfig, ReadsWhatItWrites) {
  LearnConfig config;
  ApplyMethod("silc", "test", &config);
  config.epochs = 3;
  config.rate = 2.5e-4;
  config.actor_hidden = {64, 32};
  config.penalty.samples = 77;
  LearnConfig read;
  ReadLearnConfig(YamlNode::Parse(ToYaml(config), "resolved.yaml")["learn"], &read);
  EXPECT_EQ(ToYaml(read), ToYaml(config));
  EXPECT_EQ(read.actor_hidden, config.actor_hidden);
  EXPECT_EQ(read.penalty.samples, 77);
}

TEST(LearnConfig, NamesTheNearestKey) {
  EXPECT_EQ(ErrorOf("learn:\n  epocs: 3\n").substr(0, 57),
            "run.yaml:2: learn.epocs: unknown key; did you mean epochs");
  EXPECT_NE(ErrorOf("learn:\n  penalty: {lamda: 1}\n").find("did you mean lambda"),
            std::string::npos);
  EXPECT_NE(OverrideError("learn.epocs=3").find("did you mean learn.epochs"), std::string::npos);
  EXPECT_NE(OverrideError("learn.penalty.method=slic").find("silc"), std::string::npos);
}

TEST(LearnConfig, RefusesWhatIsNoValue) {
  EXPECT_NE(ErrorOf("learn: {epochs: 0}").find("outside [1, 1000]"), std::string::npos);
  EXPECT_NE(ErrorOf("learn: {epochs: 2.5}").find("not a whole number"), std::string::npos);
  EXPECT_NE(ErrorOf("learn: {rate: 1}").find("max_rate"), std::string::npos);
  EXPECT_NE(ErrorOf("learn: {penalty: {sigmas: all, spectral: power}}").find("eigen"),
            std::string::npos);
  EXPECT_NE(ErrorOf("learn: {epochs: 2, mini_batches: 2, penalty: {every: 5}}").find("4 optimiser"),
            std::string::npos);
  for (const std::string precision : {"float16", "bfloat16"}) {
    EXPECT_NE(ErrorOf("learn: {tape: true, precision: " + precision + "}")
                  .find(precision + " is done without the tape"),
              std::string::npos);
  }
  EXPECT_NE(OverrideError("learn.epochs").find("key=value"), std::string::npos);
  EXPECT_NE(OverrideError("learn.epochs=many").find("learn.epochs"), std::string::npos);
}

// A training of hours would end with a policy that nothing reads.
TEST(LearnConfig, LayersThatNoPolicyFileHoldsAreRefused) {
  EXPECT_EQ(ErrorOf("learn: {actor_hidden: [4096, 4096]}\n"), "");
  EXPECT_EQ(
      ErrorOf("learn: {actor_hidden: [8, 4096, 4097]}\n"),
      "run.yaml:1: learn.actor_hidden: layers of 4096 and 4097 have more than 16777216 weights "
      "between them, the limit of an ONNX file's tensor");
  EXPECT_NE(OverrideError("learn.actor_hidden=[65536, 65536]"), "");
}

TEST(LearnConfig, AMethodBringsItsDefaultsAndTheFileHasTheLastWord) {
  LearnConfig config;
  ReadLearnConfig(YamlNode::Parse("penalty: {lambda: 3, method: lcp}", "run.yaml"), &config);
  EXPECT_EQ(config.penalty.lambda, 3);
  ApplyOverrides(std::vector<std::string>{"learn.penalty.method=lcp", "learn.epochs=7"}, &config);
  EXPECT_EQ(config.penalty.lambda, 0.002);
  EXPECT_EQ(config.epochs, 7);
  EXPECT_EQ(MethodOf(config), Method::kLcp);
  EXPECT_EQ(Name(MethodOf(config)), "lcp");
}

}  // namespace
}  // namespace silc
