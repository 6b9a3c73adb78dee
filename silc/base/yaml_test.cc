// SPDX-License-Identifier: Apache-2.0
#include "silc/base/yaml.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include <functional>

#include "silc/base/error.h"
#include "silc/base/limits.h"

namespace silc {
namespace {

// What the user reads when `use` meets `text`.
std::string Message(const std::string& text, const std::function<void(const YamlNode&)>& use) {
  try {
    use(YamlNode::Parse(text, "f.yaml"));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Yaml, ReadsNestedValues) {
  const YamlNode root = YamlNode::Parse("a: {b: [1, -2.5e3, +3]}\nc: true\nd: hello\n", "f.yaml");
  root.Keys({"a", "c"}, {"d", "e"});
  EXPECT_EQ(root["a"]["b"].AsDoubles(), (std::vector<double>{1, -2500, 3}));
  EXPECT_TRUE(root["c"].AsBool());
  EXPECT_EQ(root["d"].AsString(), "hello");
  EXPECT_FALSE(root.Has("e"));
  EXPECT_EQ(root.KeyNames(), (std::vector<std::string>{"a", "c", "d"}));
}

TEST(Yaml, AnUnknownKeyNamesItsLineAndTheNearestKnownOne) {
  EXPECT_EQ(Message("kp: 1\nkdd: 2\n", [](const YamlNode& n) { n.Keys({"kp"}, {"kd"}); }),
            "f.yaml:2: kdd: unknown key; did you mean kd or kp?");
}

TEST(Yaml, AMissingKeyIsNamed) {
  EXPECT_EQ(Message("g:\n  kp: 1\n",
                    [](const YamlNode& n) {
                      n["g"].Keys({"kp", "kd"});
                    }),
            "f.yaml:2: g: 'kd' is missing");
}

// Text of another file, a policy's metadata for instance, is held to the limit as well.
TEST(Yaml, MoreThanAnyFileHasIsRefusedUnread) {
  EXPECT_EQ(Message("# " + std::string(kMaxYamlBytes, 'a') + "\na: 1\n", [](const YamlNode&) {}),
            "f.yaml: 16777224 bytes, more than the limit of 16777216");
}

TEST(Yaml, AKeyGivenTwiceIsRefused) {
  EXPECT_EQ(Message("a: {kp: 1,\n kp: 2}\n", [](const YamlNode&) {}),
            "f.yaml:2: a.kp: given twice");
}

TEST(Yaml, ValuesOfTheWrongKindSayWhatTheyAre) {
  EXPECT_EQ(Message("a: [1, x]\n", [](const YamlNode& n) { n["a"].AsDoubles(); }),
            "f.yaml:1: a[1]: 'x' is not a finite number");
  EXPECT_EQ(Message("a: .nan\n", [](const YamlNode& n) { n["a"].AsDouble(); }),
            "f.yaml:1: a: '.nan' is not a finite number");
  EXPECT_EQ(Message("a: nan\n", [](const YamlNode& n) { n["a"].AsDouble(); }),
            "f.yaml:1: a: 'nan' is not a finite number");
  EXPECT_EQ(Message("a: 2.5\n", [](const YamlNode& n) { n["a"].AsInt(); }),
            "f.yaml:1: a: '2.5' is not a whole number");
  EXPECT_EQ(Message("a: 7\n", [](const YamlNode& n) { n["a"].AsDoubleIn(0, 1); }),
            "f.yaml:1: a: 7 is outside [0, 1]");
  EXPECT_EQ(Message("a: yes\n", [](const YamlNode& n) { n["a"].AsBool(); }),
            "f.yaml:1: a: 'yes' is neither true nor false");
  EXPECT_EQ(Message("a: stnad\n",
                    [](const YamlNode& n) {
                      n["a"].AsChoice({"stand", "walk"});
                    }),
            "f.yaml:1: a: 'stnad' is not a choice here; did you mean stand?");
  EXPECT_EQ(Message("a: 1\n", [](const YamlNode& n) { n["a"]["b"]; }),
            "f.yaml:1: a: must be a map of keys to values");
}

TEST(Yaml, BrokenTextAndEmptyFilesAreRefused) {
  EXPECT_EQ(Message("", [](const YamlNode&) {}), "f.yaml: is empty");
  EXPECT_TRUE(Message("a: [1\n", [](const YamlNode&) {}).starts_with("f.yaml:2: not valid YAML: "));
}

// A few hundred bytes that stand for 10⁹ values: told at once, not after half a minute.
TEST(Yaml, AliasesAreCountedWrittenOut) {
  std::string text = "a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]\n";
  for (char c = 'b'; c <= 'i'; ++c) {
    text += std::string(1, c) + ": &" + c + " [";
    for (int k = 0; k < 9; ++k) text += std::string(k == 0 ? "*" : ", *") + char(c - 1);
    text += "]\n";
  }
  EXPECT_NE(Message(text, [](const YamlNode&) {}).find("more than 262144 values"),
            std::string::npos);
  // a modest use is none of this
  const YamlNode root = YamlNode::Parse("legs: &legs [1, 2]\narms: *legs\n", "f.yaml");
  EXPECT_EQ(root["arms"].AsDoubles(), (std::vector<double>{1, 2}));
  EXPECT_NE(Message("a: &a [*a]\n", [](const YamlNode&) {}), "no error");
}

TEST(Yaml, LongListsDeepNestsAndSecondDocumentsAreRefused) {
  std::string list = "a: [0";
  for (int k = 0; k < 300000; ++k) list += ",1";
  EXPECT_NE(Message(list + "]", [](const YamlNode&) {}).find("more than 262144 values"),
            std::string::npos);
  EXPECT_NE(Message("a: " + std::string(100, '[') + std::string(100, ']'), [](const YamlNode&) {})
                .find("nested deeper than 64 levels"),
            std::string::npos);
  EXPECT_EQ(Message("a: 1\n---\na: 2\n", [](const YamlNode&) {}),
            "f.yaml:2: a second document begins; one file is one document");
}

// yaml-cpp goes through all keys for each that is asked for: 10⁹ comparisons here.
TEST(Yaml, EachOfManyKeysIsFoundAtOnce) {
  constexpr int kKeys = 40'000;
  std::string text;
  for (int k = 0; k < kKeys; ++k) text += "k" + std::to_string(k) + ": " + std::to_string(k) + "\n";
  const YamlNode root = YamlNode::Parse(text, "f");
  const auto start = std::chrono::steady_clock::now();
  for (int k = 0; k < kKeys; ++k) {
    const std::string key = "k" + std::to_string(k);
    ASSERT_TRUE(root.Has(key));
    ASSERT_EQ(root[key].AsInt(), k);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 10);
  EXPECT_FALSE(root.Has("k"));
}

}  // namespace
}  // namespace silc
