// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace silc {

/// An OpenGL context without a window, current on this thread while the object lives: EGL where a
/// driver offers it, else OSMesa. Both are looked for when the program runs, so that nothing of
/// them is needed to build silc or to run the rest of it.
class OffscreenContext {
 public:
  /// Null where neither is to be had; `why` then holds a sentence that says what is missing.
  static std::unique_ptr<OffscreenContext> Create(int width, int height, std::string* why);

  virtual ~OffscreenContext() = default;
  OffscreenContext(const OffscreenContext&) = delete;
  OffscreenContext& operator=(const OffscreenContext&) = delete;
  virtual const char* name() const = 0;  ///< "EGL" or "OSMesa"

 protected:
  OffscreenContext() = default;
};

}  // namespace silc
