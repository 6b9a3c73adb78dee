// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace silc {

/// A YAML value that knows where it stands. Every accessor either returns what was asked for or
/// throws a ConfigError that starts with "FILE:LINE: key": missing keys, wrong types, numbers that
/// are no numbers and values out of range all end there. Numbers must be finite.
///
/// A map is read by naming its keys once, with Keys(): anything else in it is an error that
/// suggests the nearest known key. Duplicate keys are errors too.
class YamlNode {
 public:
  static YamlNode ParseFile(const std::string& path);
  /// `name` stands for the file in messages.
  static YamlNode Parse(std::string_view text, const std::string& name);

  /// Throws unless this is a map whose keys are all in `required` or `optional`, with none missing.
  void Keys(const std::vector<std::string>& required,
            const std::vector<std::string>& optional = {}) const;
  /// The map's keys in file order.
  std::vector<std::string> KeyNames() const;

  bool Has(const std::string& key) const;
  YamlNode operator[](const std::string& key) const;  ///< throws when the key is missing
  YamlNode operator[](int index) const;
  int size() const;  ///< of a list or a map; throws for a scalar

  bool IsMap() const;
  bool IsList() const;
  bool IsScalar() const;

  double AsDouble() const;
  double AsDoubleIn(double low, double high) const;  ///< low ≤ value ≤ high
  int AsInt() const;
  int AsIntIn(int low, int high) const;
  bool AsBool() const;
  std::string AsString() const;
  /// One of `choices`; otherwise the nearest ones are suggested.
  std::string AsChoice(const std::vector<std::string>& choices) const;
  std::vector<double> AsDoubles() const;
  std::vector<std::string> AsStrings() const;

  /// "FILE:LINE: path.to.key", the beginning of any message about this value.
  std::string Where() const;
  /// The file this came from (for paths relative to it).
  const std::string& file() const;
  /// Throws ConfigError("FILE:LINE: path.to.key" + ": " + message).
  [[noreturn]] void Fail(const std::string& message) const;

 private:
  struct Impl;  // keeps yaml-cpp out of the header
  explicit YamlNode(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace silc
