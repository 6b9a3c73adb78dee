// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// Where tests find files. The folders are compiled into test_paths.cc alone, so that no other
// object depends on where the checkout lies and a compiler cache serves every checkout.
namespace silc {

/// A file or folder of the source tree: SourcePath("robots/g1"); "" for the root.
std::string SourcePath(const std::string& name);

/// A file or folder of the reference data, which may lie beside the checkout. It need not exist:
/// tests that want it skip themselves.
std::string ReferencePath(const std::string& name);

}  // namespace silc
