// SPDX-License-Identifier: Apache-2.0
#include "silc/base/yaml.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/nearest.h"

namespace silc {
namespace {

constexpr std::size_t kMaxYamlBytes = std::size_t{16} << 20;
constexpr int kMaxDepth = 64;

std::string Join(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

std::string Number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end.ptr);
}

}  // namespace

struct YamlNode::Impl {
  YAML::Node node;
  std::string file;
  std::string path;  // "actors.lower.joints[3]"

  std::shared_ptr<const Impl> Child(const YAML::Node& child, const std::string& child_path) const {
    return std::make_shared<const Impl>(Impl{child, file, child_path});
  }
};

namespace {

// yaml-cpp keeps the last of two equal keys in silence, so duplicates are looked for once, up
// front. The same walk bounds the depth, which aliases could otherwise make endless.
void RefuseDuplicates(const YAML::Node& node,
                      const std::string& file,
                      const std::string& path,
                      int depth) {
  if (depth > kMaxDepth) throw ConfigError(file + ": nested deeper than 64 levels");
  if (node.IsMap()) {
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string where = file + ":" + std::to_string(entry.first.Mark().line + 1) + ": ";
      if (!entry.first.IsScalar()) throw ConfigError(where + "a key must be a plain word");
      const std::string key = entry.first.Scalar();
      if (!seen.insert(key).second) throw ConfigError(where + Join(path, key) + ": given twice");
      RefuseDuplicates(entry.second, file, Join(path, key), depth + 1);
    }
  } else if (node.IsSequence()) {
    for (std::size_t i = 0; i < node.size(); ++i) {
      RefuseDuplicates(node[i], file, path + "[" + std::to_string(i) + "]", depth + 1);
    }
  }
}

}  // namespace

YamlNode YamlNode::ParseFile(const std::string& path) {
  return Parse(ReadFile(path, kMaxYamlBytes), path);
}

YamlNode YamlNode::Parse(std::string_view text, const std::string& name) {
  YAML::Node node;
  try {
    node = YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    throw ConfigError(name + ":" + std::to_string(error.mark.line + 1) +
                      ": not valid YAML: " + error.msg);
  }
  if (!node.IsDefined() || node.IsNull()) throw ConfigError(name + ": is empty");
  RefuseDuplicates(node, name, "", 0);
  return YamlNode(std::make_shared<const Impl>(Impl{node, name, ""}));
}

void YamlNode::Keys(const std::vector<std::string>& required,
                    const std::vector<std::string>& optional) const {
  if (!IsMap()) Fail("must be a map of keys to values");
  std::vector<std::string> known = required;
  known.insert(known.end(), optional.begin(), optional.end());
  for (const auto& entry : impl_->node) {
    const std::string key = entry.first.Scalar();
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw ConfigError(impl_->file + ":" + std::to_string(entry.first.Mark().line + 1) + ": " +
                        Join(impl_->path, key) + ": unknown key" + DidYouMean(key, known));
    }
  }
  for (const std::string& key : required) {
    if (!Has(key)) Fail("'" + key + "' is missing");
  }
}

std::vector<std::string> YamlNode::KeyNames() const {
  if (!IsMap()) Fail("must be a map of keys to values");
  std::vector<std::string> names;
  for (const auto& entry : impl_->node) names.push_back(entry.first.Scalar());
  return names;
}

bool YamlNode::Has(const std::string& key) const {
  if (!IsMap()) Fail("must be a map of keys to values");
  return impl_->node[key].IsDefined();
}

YamlNode YamlNode::operator[](const std::string& key) const {
  if (!Has(key)) Fail("'" + key + "' is missing");
  return YamlNode(impl_->Child(impl_->node[key], Join(impl_->path, key)));
}

YamlNode YamlNode::operator[](int index) const {
  if (!IsList()) Fail("must be a list");
  if (index < 0 || index >= size()) Fail("has no entry " + std::to_string(index));
  return YamlNode(
      impl_->Child(impl_->node[index], impl_->path + "[" + std::to_string(index) + "]"));
}

int YamlNode::size() const {
  if (IsScalar()) Fail("must be a list or a map");
  return static_cast<int>(impl_->node.size());
}

bool YamlNode::IsMap() const { return impl_->node.IsMap(); }
bool YamlNode::IsList() const { return impl_->node.IsSequence(); }
bool YamlNode::IsScalar() const { return impl_->node.IsScalar(); }

std::string YamlNode::AsString() const {
  if (!IsScalar()) Fail("must be a single value");
  return impl_->node.Scalar();
}

double YamlNode::AsDouble() const {
  const std::string text = AsString();
  // from_chars knows no leading plus and, unlike stod, no locale and no trailing rubbish
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  double value = 0;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    Fail("'" + text + "' is not a finite number");
  }
  return value;
}

double YamlNode::AsDoubleIn(double low, double high) const {
  const double value = AsDouble();
  if (value < low || value > high) {
    Fail(Number(value) + " is outside [" + Number(low) + ", " + Number(high) + "]");
  }
  return value;
}

int YamlNode::AsInt() const {
  const std::string text = AsString();
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    Fail("'" + text + "' is not a whole number");
  }
  return value;
}

int YamlNode::AsIntIn(int low, int high) const {
  const int value = AsInt();
  if (value < low || value > high) {
    Fail(std::to_string(value) + " is outside [" + std::to_string(low) + ", " +
         std::to_string(high) + "]");
  }
  return value;
}

bool YamlNode::AsBool() const {
  const std::string text = AsString();
  if (text == "true") return true;
  if (text == "false") return false;
  Fail("'" + text + "' is neither true nor false");
}

std::string YamlNode::AsChoice(const std::vector<std::string>& choices) const {
  std::string text = AsString();
  if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
    Fail("'" + text + "' is not a choice here" + DidYouMean(text, choices));
  }
  return text;
}

std::vector<double> YamlNode::AsDoubles() const {
  if (!IsList()) Fail("must be a list of numbers");
  std::vector<double> values;
  for (int i = 0; i < size(); ++i) values.push_back((*this)[i].AsDouble());
  return values;
}

std::vector<std::string> YamlNode::AsStrings() const {
  if (!IsList()) Fail("must be a list of names");
  std::vector<std::string> values;
  for (int i = 0; i < size(); ++i) values.push_back((*this)[i].AsString());
  return values;
}

std::string YamlNode::Where() const {
  const std::string place = impl_->file + ":" + std::to_string(impl_->node.Mark().line + 1);
  return impl_->path.empty() ? place : place + ": " + impl_->path;
}

const std::string& YamlNode::file() const { return impl_->file; }

void YamlNode::Fail(const std::string& message) const {
  throw ConfigError(Where() + ": " + message);
}

}  // namespace silc
