// SPDX-License-Identifier: Apache-2.0
#include "silc/base/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/nearest.h"

namespace silc {
namespace {

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
  // a map's values by their keys: yaml-cpp goes through all keys for each that is asked for
  mutable std::map<std::string, YAML::Node> index = {};

  std::shared_ptr<const Impl> Child(const YAML::Node& child, const std::string& child_path) const {
    return std::make_shared<const Impl>(Impl{child, file, child_path});
  }
  // Null where there is none. @pre this is a map
  const YAML::Node* Find(const std::string& key) const {
    if (index.empty()) {
      for (const auto& entry : node) index.emplace(entry.first.Scalar(), entry.second);
    }
    const auto found = index.find(key);
    return found == index.end() ? nullptr : &found->second;
  }
};

namespace {

// Counts what a text would become before any of it is kept: nodes, with every alias written out,
// and depth. Aliases of aliases make millions of a few hundred bytes.
class SizeCheck : public YAML::EventHandler {
 public:
  explicit SizeCheck(const std::string& file) : file_(file) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) Fail(mark, "a second document begins; one file is one document");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Add(mark, anchor, 1); }
  void OnScalar(const YAML::Mark& mark,
                const std::string&,
                YAML::anchor_t anchor,
                const std::string&) override {
    Add(mark, anchor, 1);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // one that is not finished yet contains itself
    const auto known = anchored_.find(anchor);
    if (known == anchored_.end()) Fail(mark, "an alias of something that contains it");
    Add(mark, YAML::NullAnchor, known->second);
  }
  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string&,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark,
                  const std::string&,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Container {
    YAML::Mark mark;
    YAML::anchor_t anchor;
    std::int64_t nodes = 1;
  };

  [[noreturn]] void Fail(const YAML::Mark& mark, const std::string& what) const {
    throw ConfigError(file_ + ":" + std::to_string(mark.line + 1) + ": " + what);
  }
  void Add(const YAML::Mark& mark, YAML::anchor_t anchor, std::int64_t nodes) {
    if (anchor != YAML::NullAnchor) anchored_[anchor] = nodes;
    // where nothing is open this is the whole document
    if (open_.empty()) return;
    open_.back().nodes += nodes;
    if (open_.back().nodes > kMaxYamlNodes) {
      Fail(mark,
           "more than " + std::to_string(kMaxYamlNodes) + " values, aliases written out included");
    }
  }
  void Open(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (open_.size() >= static_cast<std::size_t>(kMaxYamlDepth)) {
      Fail(mark, "nested deeper than " + std::to_string(kMaxYamlDepth) + " levels");
    }
    open_.push_back({mark, anchor});
  }
  void Close() {
    const Container closed = open_.back();
    open_.pop_back();
    Add(closed.mark, closed.anchor, closed.nodes);
  }

  const std::string& file_;
  int documents_ = 0;
  std::vector<Container> open_;
  std::map<YAML::anchor_t, std::int64_t> anchored_;
};

// yaml-cpp keeps the last of two equal keys in silence, so duplicates are looked for once, up
// front.
void RefuseDuplicates(const YAML::Node& node, const std::string& file, const std::string& path) {
  if (node.IsMap()) {
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string where = file + ":" + std::to_string(entry.first.Mark().line + 1) + ": ";
      if (!entry.first.IsScalar()) throw ConfigError(where + "a key must be a plain word");
      const std::string key = entry.first.Scalar();
      if (!seen.insert(key).second) throw ConfigError(where + Join(path, key) + ": given twice");
      RefuseDuplicates(entry.second, file, Join(path, key));
    }
  } else if (node.IsSequence()) {
    for (std::size_t i = 0; i < node.size(); ++i) {
      RefuseDuplicates(node[i], file, path + "[" + std::to_string(i) + "]");
    }
  }
}

}  // namespace

YamlNode YamlNode::ParseFile(const std::string& path) {
  return Parse(ReadFile(path, kMaxYamlBytes), path);
}

YamlNode YamlNode::Parse(std::string_view text, const std::string& name) {
  if (text.size() > kMaxYamlBytes) {
    throw ConfigError(name + ": " + std::to_string(text.size()) +
                      " bytes, more than the limit of " + std::to_string(kMaxYamlBytes));
  }
  YAML::Node node;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    SizeCheck check(name);
    while (parser.HandleNextDocument(check)) {
    }
    node = YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    throw ConfigError(name + ":" + std::to_string(error.mark.line + 1) +
                      ": not valid YAML: " + error.msg);
  }
  if (!node.IsDefined() || node.IsNull()) throw ConfigError(name + ": is empty");
  RefuseDuplicates(node, name, "");
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
  return impl_->Find(key) != nullptr;
}

YamlNode YamlNode::operator[](const std::string& key) const {
  if (!Has(key)) Fail("'" + key + "' is missing");
  return YamlNode(impl_->Child(*impl_->Find(key), Join(impl_->path, key)));
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
