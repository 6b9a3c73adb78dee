// SPDX-License-Identifier: Apache-2.0
// The archives here are put together byte by byte after PKWARE's APPNOTE.TXT, not by our writer.
#include "silc/npz/zip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <functional>

#include "silc/base/error.h"
#include "silc/base/rng.h"

namespace silc {
namespace {

std::string Le(std::uint64_t value, int width) {
  std::string bytes;
  for (; width > 0; --width, value /= 256) bytes += static_cast<char>(value % 256);
  return bytes;
}

std::string Deflate(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = bytes.size();
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = packed.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// One member and the lies a test wants it to tell.
struct Member {
  std::string name, data;  // data as packed
  std::uint64_t bytes;     // claimed
  std::uint32_t crc;
  int method = 0;
  int flags = 0;
  bool zip64 = false;           // wide sizes and offset in the directory
  std::string extra = "";       // in the directory
  std::string local_name = "";  // when it differs
  std::uint64_t shift = 0;      // added to the offset of its header
};

std::uint32_t Crc(const std::string& bytes) {
  return crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}
Member Stored(const std::string& name, const std::string& bytes) {
  return {name, bytes, bytes.size(), Crc(bytes)};
}
Member Deflated(const std::string& name, const std::string& bytes) {
  return {name, Deflate(bytes), bytes.size(), Crc(bytes), 8};
}

std::string Zip(const std::vector<Member>& members,
                bool end64 = false,
                const std::string& comment = "") {
  std::string archive, directory;
  for (const Member& m : members) {
    const std::uint64_t offset = archive.size() + m.shift;
    const std::string& local_name = m.local_name.empty() ? m.name : m.local_name;
    // as NumPy does it: sizes in a zip64 field of the local header, whatever their size
    archive += "PK\x03\x04" + Le(45, 2) + Le(m.flags, 2) + Le(m.method, 2) + Le(0x210000, 4) +
               Le(m.crc, 4) + Le(0xFFFFFFFF, 4) + Le(0xFFFFFFFF, 4) + Le(local_name.size(), 2) +
               Le(20, 2) + local_name + Le(1, 2) + Le(16, 2) + Le(m.bytes, 8) +
               Le(m.data.size(), 8) + m.data;
    std::string extra = m.extra;
    if (m.zip64)
      extra += Le(1, 2) + Le(24, 2) + Le(m.bytes, 8) + Le(m.data.size(), 8) + Le(offset, 8);
    directory += "PK\x01\x02" + Le(45, 2) + Le(45, 2) + Le(m.flags, 2) + Le(m.method, 2) +
                 Le(0x210000, 4) + Le(m.crc, 4) + Le(m.zip64 ? 0xFFFFFFFF : m.data.size(), 4) +
                 Le(m.zip64 ? 0xFFFFFFFF : m.bytes, 4) + Le(m.name.size(), 2) +
                 Le(extra.size(), 2) + Le(0, 2) + Le(0, 2) + Le(0, 2) + Le(0, 4) +
                 Le(m.zip64 ? 0xFFFFFFFF : offset, 4) + m.name + extra;
  }
  const std::size_t begin = archive.size();
  archive += directory;
  if (end64) {
    const std::size_t record = archive.size();
    archive += "PK\x06\x06" + Le(44, 8) + Le(45, 2) + Le(45, 2) + Le(0, 4) + Le(0, 4) +
               Le(members.size(), 8) + Le(members.size(), 8) + Le(directory.size(), 8) +
               Le(begin, 8);
    archive += "PK\x06\x07" + Le(0, 4) + Le(record, 8) + Le(1, 4);
  }
  return archive + "PK\x05\x06" + Le(0, 4) + Le(end64 ? 0xFFFF : members.size(), 2) +
         Le(end64 ? 0xFFFF : members.size(), 2) + Le(end64 ? 0xFFFFFFFF : directory.size(), 4) +
         Le(end64 ? 0xFFFFFFFF : begin, 4) + Le(comment.size(), 2) + comment;
}

struct Content {
  std::string name, bytes;
  bool operator==(const Content&) const = default;
};

std::vector<Content> ReadAll(const std::string& archive, std::size_t max_bytes = 1 << 20) {
  std::vector<Content> contents;
  for (const ZipMember& member : ListZip(archive, "F", 10)) {
    contents.push_back({member.name, ReadZipMember(archive, member, "F", max_bytes)});
  }
  return contents;
}

std::string Message(const std::string& archive, std::size_t max_bytes = 1 << 20) {
  try {
    ReadAll(archive, max_bytes);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Zip, ReadsStoredAndDeflatedMembers) {
  const std::string text = "stiffness, stiffness, stiffness and more of it";
  const std::vector<Content> expected = {{"a", text}, {"b", text}, {"empty", ""}, {"empty8", ""}};
  std::vector<Member> members = {
      Stored("a", text), Deflated("b", text), Stored("empty", ""), Deflated("empty8", "")};
  EXPECT_EQ(ReadAll(Zip(members)), expected);
  EXPECT_EQ(ReadAll(Zip(members, false, "a comment")), expected);
  // zip64 in the entries, in the end record, behind another extra field
  EXPECT_EQ(ReadAll(Zip(members, true)), expected);
  for (Member& member : members) member.zip64 = true;
  EXPECT_EQ(ReadAll(Zip(members)), expected);
  members[0].extra = Le(0x5455, 2) + Le(5, 2) + "times";
  EXPECT_EQ(ReadAll(Zip(members, true)), expected);
  EXPECT_TRUE(ReadAll(Zip({})).empty());
}

TEST(Zip, ReadsMembersThatZlibSplitsIntoBlocks) {
  Rng rng(1);
  std::string noise;
  for (int i = 0; i < 300000; ++i) noise += static_cast<char>(rng.Bits() % 200);
  EXPECT_EQ(ReadAll(Zip({Deflated("n", noise)})), (std::vector<Content>{{"n", noise}}));
}

TEST(Zip, WhatItWritesIsReadAndEqualContentGivesEqualBytes) {
  const std::vector<ZipContent> contents = {
      {"a.npy", "123"}, {"σ.npy", std::string(70000, 'x')}, {"c", ""}};
  const std::string archive = WriteZip(contents);
  EXPECT_EQ(
      ReadAll(archive),
      (std::vector<Content>{{"a.npy", "123"}, {"σ.npy", std::string(70000, 'x')}, {"c", ""}}));
  EXPECT_EQ(archive, WriteZip(contents));
  // independent of our reader: the layout of a one-member archive, from APPNOTE 4.3
  const std::string common = Le(20, 2) + Le(1 << 11, 2) + Le(0, 2) + Le(0, 2) + Le(0x21, 2) +
                             Le(0xCBF43926, 4) + Le(9, 4) + Le(9, 4) + Le(1, 2) + Le(0, 2);
  EXPECT_EQ(WriteZip({{"a", "123456789"}}),  // whose CRC-32 is the standard's check value
            "PK\x03\x04" + common + "a123456789" + "PK\x01\x02" + Le(20, 2) + common + Le(0, 6) +
                Le(0, 4) + Le(0, 4) + "a" + "PK\x05\x06" + Le(0, 4) + Le(1, 2) + Le(1, 2) +
                Le(47, 4) + Le(40, 4) + Le(0, 2));
}

TEST(Zip, RefusesWhatNumPyNeverWrites) {
  const auto refused = [](const std::function<void(Member*)>& change) {
    std::vector<Member> members = {Stored("a", "12345678"), Deflated("b", "12345678")};
    change(&members[0]);
    return Message(Zip(members));
  };
  EXPECT_EQ(refused([](Member*) {}), "");
  EXPECT_EQ(refused([](Member* m) { m->flags = 1; }),
            "F: member 'a' is encrypted or a patch, which is not supported");
  EXPECT_EQ(refused([](Member* m) { m->method = 14; }),
            "F: member 'a': compression method 14 is not supported; NumPy writes 0 (stored) and 8 "
            "(deflate)");
  EXPECT_EQ(refused([](Member* m) { m->name = "b"; }), "F: member 'b' appears twice");
  EXPECT_EQ(refused([](Member* m) { m->name = "a\n"; }),
            "F: the name of member 0 is no plain text");
  EXPECT_EQ(refused([](Member* m) { m->name = "σ"; }), "F: the name of member 0 is no plain text");
  EXPECT_EQ(refused([](Member* m) { m->name = "σ", m->flags = 1 << 11; }), "");
  EXPECT_EQ(refused([](Member* m) { m->local_name = "c"; }),
            "F: damaged archive: member 'a' and the directory disagree");
  EXPECT_EQ(refused([](Member* m) { m->bytes = 7; }),
            "F: damaged archive: member 'a' is stored in another size than its own");
  EXPECT_EQ(refused([](Member* m) { m->shift = 1; }),
            "F: damaged archive: member 'a' is not where the directory says");
  EXPECT_EQ(refused([](Member* m) { m->shift = 0xFFFFFF00; }),
            "F: damaged archive: member 'a' is not where the directory says");
  EXPECT_EQ(refused([](Member* m) { m->zip64 = true, m->shift = ~std::uint64_t{0}; }),
            "F: damaged archive: member 'a' is not where the directory says");
  EXPECT_EQ(refused([](Member* m) { m->bytes = 0xFFFFFFFF; }),
            "F: damaged archive: a zip64 field is missing");
  EXPECT_EQ(
      refused([](Member* m) { m->bytes = 0xFFFFFFFF, m->extra = Le(1, 2) + Le(4, 2) + "1234"; }),
      "F: damaged archive: a zip64 field is cut short");
  EXPECT_EQ(
      refused([](Member* m) { m->bytes = 0xFFFFFFFF, m->extra = Le(1, 2) + Le(8, 2) + "1234"; }),
      "F: damaged archive: an extra field is cut short");
  EXPECT_EQ(refused([](Member* m) { m->crc ^= 1; }),
            "F: member 'a': damaged: its checksum does not match");
  EXPECT_EQ(Message("junk" + Zip({Stored("a", "1")})),
            "F: damaged archive: the directory is not where it should be");
  EXPECT_EQ(Message(Zip({Stored("a", "1")}) + "junk"),
            "F: no zip archive, or cut short: its directory is missing at the end");
  // an end record that leaves out the last member
  std::string one_less = Zip({Stored("a", "1"), Stored("b", "2")});
  one_less.replace(one_less.size() - 14, 4, Le(1, 2) + Le(1, 2));
  EXPECT_EQ(Message(one_less), "F: damaged archive: its directory is longer than its entries");
  std::vector<Member> many;
  many.reserve(11);
  for (int i = 0; i < 11; ++i)
    many.push_back(Stored(std::string(1, static_cast<char>('a' + i)), ""));
  EXPECT_EQ(Message(Zip(many)), "F: 11 members, more than the limit of 10");
}

TEST(Zip, DeflateMustGiveExactlyWhatItClaims) {
  const auto message = [](const std::function<void(Member*)>& change) {
    Member member = Deflated("a", std::string(1000, 'x') + "yz");
    change(&member);
    return Message(Zip({member}));
  };
  const auto starts = [&](const std::string& text, const std::function<void(Member*)>& change) {
    EXPECT_EQ(message(change).rfind("F: member 'a': damaged: " + text, 0), 0u) << message(change);
  };
  EXPECT_EQ(message([](Member*) {}), "");
  starts("it unpacks to more than the 1001 bytes", [](Member* m) { m->bytes = 1001; });
  starts("it unpacks to more than the 0 bytes", [](Member* m) { m->bytes = 0; });
  starts("1002 bytes unpacked", [](Member* m) { m->bytes = 1003; });
  starts("1002 bytes unpacked", [](Member* m) { m->data += "tail"; });
  starts("its deflate stream is broken or cut short", [](Member* m) { m->data.pop_back(); });
  starts("its deflate stream is broken or cut short", [](Member* m) { m->data = ""; });
  starts("its deflate stream is broken or cut short", [](Member* m) { m->data = "\xff\xff\xff"; });
}

// A million zeros deflate to about a thousand bytes; nobody needs to unpack them to say no.
TEST(Zip, BombsAreRefusedByTheirClaimsAndByTheirMeans) {
  Member bomb = Deflated("a", std::string(1 << 20, '\0'));
  EXPECT_LT(bomb.data.size(), 1100u);
  EXPECT_EQ(Message(Zip({bomb}), 1 << 20), "");
  EXPECT_EQ(Message(Zip({bomb}), (1 << 20) - 1),
            "F: member 'a': 1048576 bytes unpacked, more than the limit of 1048575");
  // claims little, holds more: stopped at the claim
  bomb.bytes = 100;
  EXPECT_EQ(Message(Zip({bomb})),
            "F: member 'a': damaged: it unpacks to more than the 100 bytes it claims");
  // claims more than its bytes can hold: nothing is allocated for it
  bomb.bytes = std::uint64_t{1} << 50;
  bomb.zip64 = true;
  EXPECT_EQ(Message(Zip({bomb}), ~std::size_t{0}),
            "F: member 'a': damaged: " + std::to_string(bomb.data.size()) +
                " bytes cannot unpack to 1125899906842624");
  // two names for one piece of data
  Member first = Stored("a", "12345678");
  Member second = first;
  second.shift = -static_cast<std::uint64_t>(30 + 1 + 20 + 8);
  second.zip64 = first.zip64 = true;
  second.name = "b";
  EXPECT_EQ(Message(Zip({first, second})),
            "F: damaged archive: member 'b' and the directory disagree");
  // the same with a header of its own inside the other's data
  const std::string inner = Zip({Stored("b", "12345678")}).substr(0, 30 + 1 + 20 + 8);
  Member outer = Stored("a", inner);
  second = Stored("b", "12345678");
  second.zip64 = true;
  second.shift = -static_cast<std::uint64_t>(inner.size());
  EXPECT_EQ(Message(Zip({outer, second})), "F: damaged archive: members overlap");
}

TEST(Zip, EveryTruncationIsRefused) {
  for (const bool end64 : {false, true}) {
    const std::string whole = Zip({Stored("a", "12345678"), Deflated("b", "xyxyxyxy")}, end64);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      EXPECT_NE(Message(whole.substr(0, length)), "") << length;
    }
  }
}

// Most of an archive is checked or checksummed; what is not (times, versions, attributes, the local
// copy of the sizes) has no influence. So no single wrong byte can change what is read.
TEST(Zip, ASingleChangedByteIsRefusedOrWithoutEffect) {
  for (const bool end64 : {false, true}) {
    const std::string whole =
        Zip({Stored("a", "12345678"), Deflated("b", "xyxyxyxyxyxyxyxy")}, end64);
    const std::vector<Content> expected = ReadAll(whole);
    int num_refused = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (int value = 1; value < 256; ++value) {
        std::string bytes = whole;
        bytes[i] = static_cast<char>(bytes[i] ^ value);
        try {
          ASSERT_EQ(ReadAll(bytes), expected) << "byte " << i << " ^ " << value;
        } catch (const ConfigError&) {
          ++num_refused;
        }
      }
    }
    EXPECT_GT(num_refused, static_cast<int>(whole.size()) * 100);
  }
}

TEST(Zip, RandomDamageEndsInAnErrorOrInBoundedContent) {
  Rng rng(4);
  const std::string whole =
      Zip({Stored("a", "12345678"), Deflated("b", std::string(500, 'x'))}, true);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string bytes = whole;
    for (unsigned k = 0; k < 2 + rng.Bits() % 6; ++k) {
      const std::size_t i = rng.Bits() % bytes.size();
      if (rng.Bits() % 8 == 0) {
        bytes.erase(i, 1 + rng.Bits() % 4);
      } else {
        bytes[i] = static_cast<char>(rng.Bits() % 3 == 0 ? 0xFF : rng.Bits() % 256);
      }
    }
    try {
      for (const Content& content : ReadAll(bytes, 1000)) ASSERT_LE(content.bytes.size(), 1000u);
    } catch (const ConfigError&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace silc
