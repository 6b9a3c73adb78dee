// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace silc {

/// One file in a zip archive, its place checked against the archive's bounds.
struct ZipMember {
  std::string name;
  std::uint16_t method = 0;        // 0 stored, 8 deflate
  std::uint32_t crc = 0;           // CRC-32 of the unpacked bytes
  std::uint64_t bytes = 0;         // unpacked, as the directory claims
  std::uint64_t packed_bytes = 0;  // in the archive
  std::uint64_t data_offset = 0;   // of the packed bytes
};

/// The members of a zip archive, as NumPy's savez and savez_compressed write them: stored or
/// deflate, zip64 records where they are needed. Throws ConfigError starting with `file` for
/// everything else: encryption, several disks, other methods, data before the first member, members
/// that overlap (one deflate stream shared by many names is how small files unpack to petabytes),
/// names that are no plain text or appear twice, more than max_members, and any offset or size that
/// leaves the archive.
std::vector<ZipMember> ListZip(std::string_view archive, const std::string& file, int max_members);

/// The unpacked bytes of a member that ListZip() returned for this archive. The claimed size is
/// held against max_bytes, and against what deflate can reach from the packed bytes, before
/// anything is allocated. Throws ConfigError when it is more, when the data unpack to another size,
/// or when the checksum differs.
std::string ReadZipMember(std::string_view archive,
                          const ZipMember& member,
                          const std::string& file,
                          std::size_t max_bytes);

struct ZipContent {
  std::string name;
  std::string bytes;
};

/// A zip archive with everything stored and no times in it: equal content gives equal bytes.
/// @pre plain text names, no two alike; less than 4 GiB and 65535 members
std::string WriteZip(const std::vector<ZipContent>& contents);

}  // namespace silc
