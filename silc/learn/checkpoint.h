// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace silc {

/// Named bytes: what a checkpoint holds. Written in the order of the names, so the same state gives
/// the same file.
using Blobs = std::map<std::string, std::string>;

/// The file: "SILCCKP1", number of blobs, per blob name and bytes with their lengths (64 bits,
/// little endian), CRC-32C of all before.
std::string SerializeBlobs(const Blobs& blobs);
/// Throws ConfigError beginning with `place` when the bytes are cut off, changed or something else.
Blobs ParseBlobs(std::string_view bytes, const std::string& place);

/// The file's blobs, however large it is. `place` begins the messages. Throws ConfigError when its
/// bytes are no whole checkpoint, RunError when it cannot be read at all.
Blobs ReadCheckpoint(const std::string& path, const std::string& place);

/// checkpoint_<iteration>.silc in a folder.
class CheckpointFolder {
 public:
  /// @param keep  how many are kept, the newest; at least 2, so that a broken one has a predecessor
  CheckpointFolder(std::string folder, int keep);

  /// Writes beside and renames, then removes what is older than the last `keep`. Throws RunError.
  void Save(int iteration, const Blobs& blobs);

  /// Of the newest file, whole or not; 0 when there is none.
  int NewestIteration() const;
  bool Empty() const;  ///< no file, whole or not

  struct Loaded {
    int iteration = 0;
    std::string path;
    Blobs blobs;
    std::vector<std::string> broken;  // newer ones
  };
  /// The newest that is whole; for every newer one that is not, `warn` is told why. Nothing when
  /// none is. Throws RunError when one cannot be read at all, which says nothing about its bytes.
  std::optional<Loaded> LoadNewest(const std::function<void(const std::string&)>& warn) const;

 private:
  std::map<int, std::string> List() const;  // iteration → path
  std::string folder_;
  int keep_;
};

/// What a reader of the run folder wants to know a year later: resolved settings, commit, seed,
/// machine, as run.yaml, which ends with the lines of `more`. Creates the folder. Throws RunError.
void WriteRunFolder(const std::string& folder,
                    const std::string& resolved_yaml,
                    unsigned long seed,
                    const std::string& more = "");

}  // namespace silc
