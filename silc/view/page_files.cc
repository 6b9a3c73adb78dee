// SPDX-License-Identifier: Apache-2.0
#include "silc/view/page_files.h"

#include <algorithm>
#include <string>

// made by CMakeLists.txt of this folder
#define SILC_PAGE_FILE(index, name)                \
  extern "C" const char silc_page_##index##_begin; \
  extern "C" const char silc_page_##index##_end;
#include "page_table.inc"
#undef SILC_PAGE_FILE

namespace silc {
namespace {

std::string_view TypeOf(std::string_view name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  return "text/html; charset=utf-8";
}

}  // namespace

const std::vector<PageFile>& PageFiles() {
  static const std::vector<PageFile> kFiles = [] {
    std::vector<PageFile> files;
#define SILC_PAGE_FILE(index, name) \
  files.push_back(                  \
      {"/page/" name,               \
       TypeOf(name),                \
       {&silc_page_##index##_begin, \
        static_cast<std::size_t>(&silc_page_##index##_end - &silc_page_##index##_begin)}});
#include "page_table.inc"
#undef SILC_PAGE_FILE
    return files;
  }();
  return kFiles;
}

const PageFile* FindPageFile(std::string_view path) {
  const auto found = std::ranges::find(PageFiles(), path, &PageFile::path);
  return found == PageFiles().end() ? nullptr : &*found;
}

}  // namespace silc
