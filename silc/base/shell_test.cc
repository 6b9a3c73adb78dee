// SPDX-License-Identifier: Apache-2.0
#include "silc/base/shell.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace silc {
namespace {

// What the shell itself makes of a command line.
std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "no shell";
  char buffer[256];
  while (const std::size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) {
    output.append(buffer, n);
  }
  ::pclose(pipe);
  return output;
}

TEST(ShellQuote, TheShellReadsBackWhatWasQuoted) {
  const std::vector<std::string> words = {"policies/my policy.onnx",
                                          "it's",
                                          "'",
                                          "$(echo no)",
                                          "`echo no`",
                                          "a;b&c|d",
                                          "*",
                                          "~",
                                          "#",
                                          "a\\b",
                                          "\"",
                                          "two\nlines",
                                          "",
                                          "K₁ σ",
                                          "x=[1,2]{3}<4>!"};
  for (const std::string& word : words) {
    EXPECT_EQ(OutputOf("printf %s " + ShellQuote(word)), word) << ShellQuote(word);
  }
  std::vector<std::string> command = {"printf", "%s|"};
  std::string expected;
  for (const std::string& word : words) {
    command.push_back(word);
    expected += word + "|";
  }
  EXPECT_EQ(OutputOf(ShellCommand(command)), expected);
}

TEST(ShellQuote, WordsThatNeedNoQuotesHaveNone) {
  for (const std::string word : {"policies/a-1.onnx", "--seeds", "1,2", "learn.rate=1e-4"}) {
    EXPECT_EQ(ShellQuote(word), word);
  }
}

}  // namespace
}  // namespace silc
