// SPDX-License-Identifier: Apache-2.0
// The directory is read here and zlib inflates. docs/decisions/zip.md says why libzip does not do
// it.
//
// Offsets and sizes are from PKWARE's APPNOTE.TXT, sections 4.3 and 4.5.3.
#include "silc/npz/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/utf8.h"

namespace silc {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kDirectoryEntry = 0x02014b50;
constexpr std::uint32_t kDirectoryEnd = 0x06054b50;
constexpr std::uint32_t kDirectoryEnd64 = 0x06064b50;
constexpr std::uint32_t kLocator64 = 0x07064b50;
constexpr std::size_t kLocalHeaderBytes = 30;
constexpr std::size_t kDirectoryEntryBytes = 46;
constexpr std::size_t kDirectoryEndBytes = 22;
constexpr std::size_t kDirectoryEnd64Bytes = 56;
constexpr std::size_t kLocator64Bytes = 20;
constexpr std::uint16_t kStored = 0;
constexpr std::uint16_t kDeflate = 8;
constexpr std::uint16_t kUtf8Flag = 1 << 11;
constexpr std::uint16_t kRefusedFlags = 1 << 0 | 1 << 5 | 1 << 6 | 1 << 13;  // encrypted, patched
constexpr std::uint16_t kMax16 = 0xFFFF;      // "see the zip64 record"
constexpr std::uint32_t kMax32 = 0xFFFFFFFF;  // likewise
// 258 bytes from two bits is the most a deflate code can say (RFC 1951), 1032 to 1; a block's
// header and a byte begun count in the one added
constexpr std::uint64_t kMaxDeflateRatio = 1032;

std::uint64_t Load(std::string_view bytes, std::size_t offset, int width) {
  SILC_CHECK(offset <= bytes.size() && static_cast<std::size_t>(width) <= bytes.size() - offset);
  std::uint64_t value = 0;
  for (int i = width - 1; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  }
  return value;
}
std::uint16_t Load16(std::string_view bytes, std::size_t offset) {
  return static_cast<std::uint16_t>(Load(bytes, offset, 2));
}
std::uint32_t Load32(std::string_view bytes, std::size_t offset) {
  return static_cast<std::uint32_t>(Load(bytes, offset, 4));
}
std::uint64_t Load64(std::string_view bytes, std::size_t offset) { return Load(bytes, offset, 8); }

void Append(std::uint64_t value, int width, std::string* bytes) {
  for (int i = 0; i < width; ++i) bytes->push_back(static_cast<char>(value >> 8 * i & 0xFF));
}

bool Fits(std::uint64_t offset, std::uint64_t count, std::uint64_t end) {
  return offset <= end && count <= end - offset;
}

[[noreturn]] void Damaged(const std::string& file, const std::string& what) {
  throw ConfigError(file + ": damaged archive: " + what);
}

struct Directory {
  std::uint64_t begin, end, num_entries;
};

// The record at the very end that says where the directory is.
Directory FindDirectory(std::string_view archive, const std::string& file) {
  const auto not_zip = [&] {
    throw ConfigError(file + ": no zip archive, or cut short: its directory is missing at the end");
  };
  if (archive.size() < kDirectoryEndBytes) not_zip();
  // it is followed by a comment of up to 65535 bytes and by nothing else
  std::size_t record = archive.size() - kDirectoryEndBytes;
  const std::size_t first = record - std::min<std::size_t>(record, kMax16);
  while (Load32(archive, record) != kDirectoryEnd ||
         Load16(archive, record + 20) != archive.size() - record - kDirectoryEndBytes) {
    if (record == first) not_zip();
    --record;
  }

  Directory directory{};
  directory.num_entries = Load16(archive, record + 10);
  std::uint64_t num_bytes = Load32(archive, record + 12);
  directory.begin = Load32(archive, record + 16);
  directory.end = record;
  std::uint64_t disk = Load16(archive, record + 4);
  std::uint64_t directory_disk = Load16(archive, record + 6);
  std::uint64_t entries_on_disk = Load16(archive, record + 8);
  if (directory.num_entries == kMax16 || num_bytes == kMax32 || directory.begin == kMax32) {
    // too large for this record: a wider one stands before it, and a locator between the two
    if (record < kLocator64Bytes + kDirectoryEnd64Bytes ||
        Load32(archive, record - kLocator64Bytes) != kLocator64) {
      Damaged(file, "its zip64 record is missing");
    }
    const std::size_t locator = record - kLocator64Bytes;
    const std::uint64_t record64 = Load64(archive, locator + 8);
    if (!Fits(record64, kDirectoryEnd64Bytes, locator) ||
        Load32(archive, record64) != kDirectoryEnd64 ||
        Load64(archive, record64 + 4) != locator - record64 - 12) {
      Damaged(file, "its zip64 record is not where it should be");
    }
    disk = Load32(archive, record64 + 16);
    directory_disk = Load32(archive, record64 + 20);
    entries_on_disk = Load64(archive, record64 + 24);
    directory.num_entries = Load64(archive, record64 + 32);
    num_bytes = Load64(archive, record64 + 40);
    directory.begin = Load64(archive, record64 + 48);
    directory.end = record64;
  }
  if (disk != 0 || directory_disk != 0 || entries_on_disk != directory.num_entries) {
    throw ConfigError(file + ": part of an archive over several disks, which is not supported");
  }
  if (directory.begin > directory.end || num_bytes != directory.end - directory.begin) {
    Damaged(file, "the directory is not where it should be");
  }
  return directory;
}

// Sizes and offset that did not fit 32 bits, from the entry's zip64 field (APPNOTE 4.5.3): the wide
// ones only, in this order.
void ReadZip64Field(std::string_view extra,
                    const std::vector<std::uint64_t*>& wide,
                    const std::string& file) {
  for (std::size_t position = 0; position < extra.size();) {
    if (extra.size() - position < 4) Damaged(file, "an extra field is cut short");
    const std::uint16_t id = Load16(extra, position);
    const std::size_t num_bytes = Load16(extra, position + 2);
    position += 4;
    if (num_bytes > extra.size() - position) Damaged(file, "an extra field is cut short");
    if (id == 1) {
      if (num_bytes < 8 * wide.size()) Damaged(file, "a zip64 field is cut short");
      for (std::size_t i = 0; i < wide.size(); ++i) *wide[i] = Load64(extra, position + 8 * i);
      return;
    }
    position += num_bytes;
  }
  Damaged(file, "a zip64 field is missing");
}

std::string Inflate(std::string_view packed, std::size_t num_bytes, const std::string& where) {
  std::string bytes(num_bytes, '\0');
  z_stream stream{};
  SILC_CHECK(inflateInit2(&stream, -MAX_WBITS) == Z_OK);  // negative: bare deflate, no zlib header
  const auto fail = [&](const std::string& what) {
    inflateEnd(&stream);
    throw ConfigError(where + ": damaged: " + what);
  };

  // zlib counts in 32 bits, hence the pieces. One byte more than claimed is offered at the end: if
  // it is used the claim was wrong, and zlib needs some room to report the end of the stream.
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  char spare = 0;
  std::size_t num_in = 0, num_out = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    const std::size_t in = std::min(kPiece, packed.size() - num_in);
    const std::size_t out = std::min(kPiece, bytes.size() - num_out);
    // zlib's input is not const by tradition only; it does not write there
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + num_in));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(out > 0 ? bytes.data() + num_out : &spare);
    stream.avail_out = static_cast<uInt>(out > 0 ? out : 1);
    status = inflate(&stream, Z_NO_FLUSH);
    num_in += in - stream.avail_in;
    if (out > 0) {
      num_out += out - stream.avail_out;
    } else if (stream.avail_out == 0) {
      fail("it unpacks to more than the " + std::to_string(num_bytes) + " bytes it claims");
    }
    // Z_BUF_ERROR: no progress is possible, so the input ended before the stream did
    if (status != Z_OK && status != Z_STREAM_END) fail("its deflate stream is broken or cut short");
  }
  inflateEnd(&stream);
  if (num_out != num_bytes || num_in != packed.size()) {
    throw ConfigError(where + ": damaged: " + std::to_string(num_out) + " bytes unpacked from " +
                      std::to_string(num_in) + ", " + std::to_string(num_bytes) + " from " +
                      std::to_string(packed.size()) + " claimed");
  }
  return bytes;
}

std::uint32_t Crc(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

std::vector<ZipMember> ListZip(std::string_view archive, const std::string& file, int max_members) {
  const Directory directory = FindDirectory(archive, file);
  if (directory.num_entries > static_cast<std::uint64_t>(max_members)) {
    throw ConfigError(file + ": " + std::to_string(directory.num_entries) +
                      " members, more than the limit of " + std::to_string(max_members));
  }

  std::vector<ZipMember> members;
  std::set<std::string> names;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> extents;  // of header and data
  std::uint64_t position = directory.begin;
  for (std::uint64_t i = 0; i < directory.num_entries; ++i) {
    if (!Fits(position, kDirectoryEntryBytes, directory.end) ||
        Load32(archive, position) != kDirectoryEntry) {
      Damaged(file, "entry " + std::to_string(i) + " of its directory is missing");
    }
    const std::string_view entry = archive.substr(position, kDirectoryEntryBytes);
    const std::uint16_t flags = Load16(entry, 8);
    const std::size_t name_bytes = Load16(entry, 28);
    const std::size_t extra_bytes = Load16(entry, 30);
    const std::size_t comment_bytes = Load16(entry, 32);
    position += kDirectoryEntryBytes;
    if (!Fits(position, name_bytes + extra_bytes + comment_bytes, directory.end)) {
      Damaged(file, "entry " + std::to_string(i) + " leaves its directory");
    }

    ZipMember member;
    member.name = archive.substr(position, name_bytes);
    // without the flag the name is in a code page of old, where ASCII alone is certain
    const bool ascii =
        std::all_of(member.name.begin(), member.name.end(), [](char c) { return (c & 0x80) == 0; });
    if (name_bytes == 0 || !IsPlainText(member.name) || (!ascii && (flags & kUtf8Flag) == 0)) {
      throw ConfigError(file + ": the name of member " + std::to_string(i) + " is no plain text");
    }
    const std::string where = file + ": member '" + member.name + "'";
    if (!names.insert(member.name).second) throw ConfigError(where + " appears twice");
    if ((flags & kRefusedFlags) != 0) {
      throw ConfigError(where + " is encrypted or a patch, which is not supported");
    }
    member.method = Load16(entry, 10);
    if (member.method != kStored && member.method != kDeflate) {
      throw ConfigError(where + ": compression method " + std::to_string(member.method) +
                        " is not supported; NumPy writes 0 (stored) and 8 (deflate)");
    }
    member.crc = Load32(entry, 16);
    member.packed_bytes = Load32(entry, 20);
    member.bytes = Load32(entry, 24);
    std::uint64_t header = Load32(entry, 42);
    std::vector<std::uint64_t*> wide;
    for (std::uint64_t* field : {&member.bytes, &member.packed_bytes, &header}) {
      if (*field == kMax32) wide.push_back(field);
    }
    if (!wide.empty()) {
      ReadZip64Field(archive.substr(position + name_bytes, extra_bytes), wide, file);
    }
    if (member.method == kStored && member.bytes != member.packed_bytes) {
      Damaged(file, "member '" + member.name + "' is stored in another size than its own");
    }
    position += name_bytes + extra_bytes + comment_bytes;

    // The member's own header repeats most of this. Its sizes may be left open and its extra field
    // differs, so the directory counts and the checksum has the last word.
    if (!Fits(header, kLocalHeaderBytes, directory.begin) ||
        Load32(archive, header) != kLocalHeader) {
      Damaged(file, "member '" + member.name + "' is not where the directory says");
    }
    const std::size_t local_name_bytes = Load16(archive, header + 26);
    const std::size_t local_extra_bytes = Load16(archive, header + 28);
    member.data_offset = header + kLocalHeaderBytes + local_name_bytes + local_extra_bytes;
    if (!Fits(member.data_offset, member.packed_bytes, directory.begin)) {
      Damaged(file, "member '" + member.name + "' leaves the archive");
    }
    if (archive.substr(header + kLocalHeaderBytes, local_name_bytes) != member.name ||
        Load16(archive, header + 8) != member.method) {
      Damaged(file, "member '" + member.name + "' and the directory disagree");
    }
    extents.emplace_back(header, member.data_offset + member.packed_bytes);
    members.push_back(std::move(member));
  }
  if (position != directory.end) Damaged(file, "its directory is longer than its entries");

  std::sort(extents.begin(), extents.end());
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].first < extents[i - 1].second) Damaged(file, "members overlap");
  }
  return members;
}

std::string ReadZipMember(std::string_view archive,
                          const ZipMember& member,
                          const std::string& file,
                          std::size_t max_bytes) {
  SILC_CHECK(Fits(member.data_offset, member.packed_bytes, archive.size()));
  const std::string where = file + ": member '" + member.name + "'";
  if (member.bytes > max_bytes) {
    throw ConfigError(where + ": " + std::to_string(member.bytes) +
                      " bytes unpacked, more than the limit of " + std::to_string(max_bytes));
  }
  const std::string_view packed = archive.substr(member.data_offset, member.packed_bytes);
  std::string bytes;
  if (member.method == kStored) {
    bytes = packed;
  } else {
    if (member.bytes / kMaxDeflateRatio > member.packed_bytes) {
      throw ConfigError(where + ": damaged: " + std::to_string(member.packed_bytes) +
                        " bytes cannot unpack to " + std::to_string(member.bytes));
    }
    bytes = Inflate(packed, member.bytes, where);
  }
  if (Crc(bytes) != member.crc) throw ConfigError(where + ": damaged: its checksum does not match");
  return bytes;
}

std::string WriteZip(const std::vector<ZipContent>& contents) {
  SILC_CHECK(contents.size() < kMax16);
  std::string archive, directory;
  std::set<std::string> names;
  for (const ZipContent& content : contents) {
    SILC_CHECK(!content.name.empty() && content.name.size() < kMax16);
    SILC_CHECK(IsPlainText(content.name) && names.insert(content.name).second);
    SILC_CHECK(content.bytes.size() < kMax32);
    const std::size_t header = archive.size();
    SILC_CHECK(header < kMax32);

    std::string common;      // the part that local header and directory entry share
    Append(20, 2, &common);  // version 2.0 can read it
    Append(kUtf8Flag, 2, &common);
    Append(kStored, 2, &common);
    Append(0, 2, &common);       // midnight,
    Append(0x0021, 2, &common);  // 1 January 1980, the first day there is
    Append(Crc(content.bytes), 4, &common);
    Append(content.bytes.size(), 4, &common);
    Append(content.bytes.size(), 4, &common);
    Append(content.name.size(), 2, &common);
    Append(0, 2, &common);  // extra field

    Append(kLocalHeader, 4, &archive);
    archive += common;
    archive += content.name;
    archive += content.bytes;

    Append(kDirectoryEntry, 4, &directory);
    Append(20, 2, &directory);  // written by version 2.0
    directory += common;
    Append(0, 2, &directory);  // comment
    Append(0, 2, &directory);  // disk
    Append(0, 2, &directory);  // binary
    Append(0, 4, &directory);  // no file permissions
    Append(header, 4, &directory);
    directory += content.name;
  }
  const std::size_t begin = archive.size();
  SILC_CHECK(begin < kMax32 && directory.size() < kMax32);
  archive += directory;
  Append(kDirectoryEnd, 4, &archive);
  Append(0, 4, &archive);  // disks
  Append(contents.size(), 2, &archive);
  Append(contents.size(), 2, &archive);
  Append(directory.size(), 4, &archive);
  Append(begin, 4, &archive);
  Append(0, 2, &archive);  // comment
  return archive;
}

}  // namespace silc
