// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace silc {

using Scalars = std::vector<std::pair<std::string, double>>;

/// One TFRecord: length, its masked CRC, the bytes, their masked CRC; little endian.
std::string FrameRecord(std::string_view bytes);
/// The two kinds of tensorflow.Event that TensorBoard needs, as protobuf bytes.
std::string EncodeFileVersion(double wall_time);
std::string EncodeScalars(double wall_time, std::int64_t step, const Scalars& scalars);

/// A TensorBoard event file, events.out.tfevents.<time>.silc in a folder, written as it grows.
class EventFile {
 public:
  /// Throws RunError when the file cannot be opened.
  EventFile(const std::string& folder, double wall_time);
  /// Throws RunError when the disk is full.
  void Write(double wall_time, std::int64_t step, const Scalars& scalars);
  const std::string& path() const { return path_; }

 private:
  void Append(const std::string& record);
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace silc
