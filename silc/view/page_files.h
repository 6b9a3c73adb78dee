// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace silc {

/// A file of the page, embedded in the program.
struct PageFile {
  std::string_view path;  // "/page/main.js"
  std::string_view type;  // "text/javascript; charset=utf-8"
  std::string_view bytes;
};

/// All of them: page/ of this folder, and three.js of the distribution.
const std::vector<PageFile>& PageFiles();
/// Null when there is none at that path.
const PageFile* FindPageFile(std::string_view path);

}  // namespace silc
