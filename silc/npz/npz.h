// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "silc/base/limits.h"
#include "silc/npz/npy.h"

namespace silc {

/// What a file may cost, held against what it claims before anything of that size is allocated.
/// Reading takes at most max_file_bytes + max_total_bytes + max_array_bytes.
struct NpzLimits {
  std::size_t max_file_bytes = kMaxNpzBytes;        // [byte]
  std::size_t max_array_bytes = kMaxNpzArrayBytes;  // [byte] as doubles (8 per number) at least
  std::size_t max_total_bytes = kMaxNpzTotalBytes;  // [byte] of all arrays, counted alike
  int max_arrays = kMaxNpzArrays;
};

/// The named arrays of a .npz file.
class NpzFile {
 public:
  const std::string& file() const { return file_; }
  /// Sorted.
  std::vector<std::string> names() const;
  bool Has(const std::string& name) const { return arrays_.count(name) > 0; }
  /// Throws ConfigError and suggests the nearest names when there is none of that name.
  const NpyArray& operator[](const std::string& name) const;

 private:
  friend NpzFile ParseNpz(std::string_view, const std::string&, const NpzLimits&);
  std::string file_;
  std::map<std::string, NpyArray> arrays_;
};

/// Reads what numpy.savez and savez_compressed write (zip.h, npy.h), all of it. Throws ConfigError
/// for missing, damaged and foreign files and for those past a limit.
NpzFile ReadNpz(const std::string& path, const NpzLimits& limits = {});
/// The same from memory; `file` stands for the path in messages.
NpzFile ParseNpz(std::string_view bytes, const std::string& file, const NpzLimits& limits = {});

/// A single array from a .npy file.
NpyArray ReadNpy(const std::string& path, const NpzLimits& limits = {});

/// An array to be written: `values` in C order, as doubles or rounded to floats.
struct NpzEntry {
  std::string name;  // as numpy.load shows it, without ".npy"
  NpyShape shape;
  std::vector<double> values;
  bool single_precision = false;
};

/// The bytes of a .npz file, stored (not compressed); equal entries give equal bytes.
/// @pre names are plain text, none empty, no two alike; less than 4 GiB in all
std::string EncodeNpz(const std::vector<NpzEntry>& entries);
/// Writes it whole or not at all. Throws RunError when it cannot be written.
void WriteNpz(const std::string& path, const std::vector<NpzEntry>& entries);

}  // namespace silc
