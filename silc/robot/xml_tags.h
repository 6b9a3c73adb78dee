// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace silc {

/// One tag of an XML text as far as a look at its size needs it: name and attributes.
struct XmlTag {
  std::string name;     // in lower case: MuJoCo takes <Include> for <include>
  bool closes = false;  // </name>
  bool empty = false;   // <name/>
  int line = 0;
  std::map<std::string, std::string> attributes;  // entities and character references written out
};

/// Goes from tag to tag; comments, declarations and text between are passed over. What is no XML is
/// left for MuJoCo to complain about.
class XmlTagReader {
 public:
  /// @param text  must outlive the reader
  explicit XmlTagReader(std::string_view text) : text_(text) {}
  /// False behind the last.
  bool Next(XmlTag* tag);

 private:
  void Step() { line_ += text_[at_++] == '\n'; }
  bool Take(char c);
  void SkipSpace();
  bool SkipTo(std::string_view what);
  std::string Word();

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace silc
