// SPDX-License-Identifier: Apache-2.0
// The files here are put together byte by byte as NumPy's format description (NEP 1) has it, not by
// our writer.
#include "silc/npz/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "silc/base/error.h"
#include "silc/base/rng.h"

namespace silc {
namespace {

constexpr std::size_t kLimit = 1 << 20;

std::string Npy(const std::string& dictionary, const std::string& data, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  bytes += static_cast<char>(dictionary.size() % 256);
  bytes += static_cast<char>(dictionary.size() / 256);
  if (version > 1) bytes.append(2, '\0');
  return bytes + dictionary + data;
}

std::string Dictionary(const std::string& dtype, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + dtype + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }      \n";
}

std::string Raw(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

std::string Message(const std::string& bytes, std::size_t limit = kLimit) {
  try {
    ParseNpy(bytes, "F", limit);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

template <typename Call>
std::string MessageOf(const Call& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::vector<double> Doubles(const std::string& dtype, const std::string& data, int size) {
  const auto array =
      ParseNpy(Npy(Dictionary(dtype, "(" + std::to_string(size) + ",)"), data), "F", kLimit);
  EXPECT_EQ(array.dtype(), dtype);
  return array.AsDoubles({size});
}

using Values = std::vector<double>;

TEST(Npy, ReadsEveryNumberTypeInBothByteOrders) {
  EXPECT_EQ(Doubles("|b1", Raw({1, 0}), 2), (Values{1, 0}));
  EXPECT_EQ(Doubles("|i1", Raw({0x7F, 0x80}), 2), (Values{127, -128}));
  EXPECT_EQ(Doubles("|u1", Raw({0x7F, 0x80}), 2), (Values{127, 128}));
  EXPECT_EQ(Doubles("<i2", Raw({0x01, 0x80}), 1), (Values{-32767}));
  EXPECT_EQ(Doubles(">i2", Raw({0x80, 0x01}), 1), (Values{-32767}));
  EXPECT_EQ(Doubles("<u2", Raw({0x01, 0x80}), 1), (Values{32769}));
  EXPECT_EQ(Doubles(">u2", Raw({0x01, 0x80}), 1), (Values{384}));
  EXPECT_EQ(Doubles("<i4", Raw({0xFE, 0xFF, 0xFF, 0xFF}), 1), (Values{-2}));
  EXPECT_EQ(Doubles(">i4", Raw({0xFF, 0xFF, 0xFF, 0xFE}), 1), (Values{-2}));
  EXPECT_EQ(Doubles("<u4", Raw({0xFE, 0xFF, 0xFF, 0xFF}), 1), (Values{4294967294.0}));
  EXPECT_EQ(Doubles(">u4", Raw({0, 0, 1, 0}), 1), (Values{256}));
  EXPECT_EQ(Doubles("<i8", Raw({0xFD, 255, 255, 255, 255, 255, 255, 255}), 1), (Values{-3}));
  EXPECT_EQ(Doubles(">i8", Raw({255, 255, 255, 255, 255, 255, 255, 0xFD}), 1), (Values{-3}));
  EXPECT_EQ(Doubles("<u8", Raw({0, 0, 0, 0, 1, 0, 0, 0}), 1), (Values{4294967296.0}));
  EXPECT_EQ(Doubles(">u8", Raw({0, 0, 0, 1, 0, 0, 0, 0}), 1), (Values{4294967296.0}));
  // -1.5 in each width, sign | exponent | fraction written out: 0xBE00, 0xBFC00000, 0xBFF8…
  EXPECT_EQ(Doubles("<f2", Raw({0x00, 0xBE}), 1), (Values{-1.5}));
  EXPECT_EQ(Doubles(">f2", Raw({0xBE, 0x00}), 1), (Values{-1.5}));
  EXPECT_EQ(Doubles("<f4", Raw({0, 0, 0xC0, 0xBF}), 1), (Values{-1.5}));
  EXPECT_EQ(Doubles(">f4", Raw({0xBF, 0xC0, 0, 0}), 1), (Values{-1.5}));
  EXPECT_EQ(Doubles("<f8", Raw({0, 0, 0, 0, 0, 0, 0xF8, 0xBF}), 1), (Values{-1.5}));
  EXPECT_EQ(Doubles(">f8", Raw({0xBF, 0xF8, 0, 0, 0, 0, 0, 0}), 1), (Values{-1.5}));
}

// Ends of the half range, from the definition of binary16.
TEST(Npy, HalvesReachFromSubnormalToInfinity) {
  EXPECT_EQ(Doubles("<f2", Raw({0x01, 0x00}), 1), (Values{std::ldexp(1, -24)}));
  EXPECT_EQ(Doubles("<f2", Raw({0xFF, 0x03}), 1), (Values{std::ldexp(1023, -24)}));
  EXPECT_EQ(Doubles("<f2", Raw({0x00, 0x04}), 1), (Values{std::ldexp(1, -14)}));
  EXPECT_EQ(Doubles("<f2", Raw({0xFF, 0x7B}), 1), (Values{65504}));
  const auto special =
      ParseNpy(Npy(Dictionary("<f2", "(2,)"), Raw({0x00, 0xFC, 0x01, 0x7C})), "F", kLimit);
  const auto values = special.AsDoubles({2}, NpyArray::Finite::kNotRequired);
  EXPECT_EQ(values[0], -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(values[1]));
}

TEST(Npy, FortranOrderBecomesCOrder) {
  // element (i, j, k) of a (2, 3, 4) array holds 100 i + 10 j + k; in Fortran order i runs fastest
  std::string data;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) data += static_cast<char>(100 * i + 10 * j + k);
    }
  }
  const auto array = ParseNpy(Npy(Dictionary("|u1", "(2, 3, 4)", true), data), "F", kLimit);
  const auto values = array.AsDoubles({2, 3, 4});
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) {
        EXPECT_EQ(values[(i * 3 + j) * 4 + k], 100 * i + 10 * j + k);
      }
    }
  }
  // both at once: >i2, (2, 2), columns (1, 2), (3, 4)
  const auto both =
      ParseNpy(Npy(Dictionary(">i2", "(2, 2)", true), Raw({0, 1, 0, 2, 0, 3, 0, 4})), "F", kLimit);
  EXPECT_EQ(both.AsDoubles({2, 2}), (Values{1, 3, 2, 4}));
}

TEST(Npy, ReadsScalarsEmptyArraysAndTheThreeVersions) {
  for (const int version : {1, 2, 3}) {
    const auto scalar = ParseNpy(Npy(Dictionary("<i2", "()"), Raw({50, 0}), version), "F", kLimit);
    EXPECT_EQ(scalar.shape(), NpyShape{});
    EXPECT_EQ(scalar.AsDouble(), 50);
    EXPECT_EQ(scalar.AsInts({}), std::vector<std::int64_t>{50});
  }
  const auto empty =
      ParseNpy(Npy(Dictionary("<f8", "(0, 4611686018427387904, 3)", true), ""), "F", kLimit);
  EXPECT_EQ(empty.size(), 0);
  EXPECT_TRUE(empty.AsDoubles({0, kAnySize, 3}).empty());
}

TEST(Npy, ReadsHeadersAsPythonWouldWriteThem) {
  const std::string data = Raw({7, 8});
  for (const char* text : {
           "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n",
           "{\"shape\":(2,),\"descr\":\"|u1\",\"fortran_order\":False}",
           " { 'fortran_order' : False , 'shape' : ( 2 , ) , 'descr' : '|u1' } \n",
       }) {
    EXPECT_EQ(ParseNpy(Npy(text, data), "F", kLimit).AsDoubles({2}), (Values{7, 8})) << text;
  }
}

TEST(Npy, ReadsUnicodeAsUtf8) {
  // "Kₛ", padded to four characters, both byte orders; U+209B
  const std::string little = Raw({'K', 0, 0, 0, 0x9B, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const std::string big = Raw({0, 0, 0, 'K', 0, 0, 0x20, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(ParseNpy(Npy(Dictionary("<U4", "()"), little), "F", kLimit).AsString(), "Kₛ");
  EXPECT_EQ(ParseNpy(Npy(Dictionary(">U4", "(1,)"), big), "F", kLimit).AsString(), "Kₛ");
  const auto two =
      ParseNpy(Npy(Dictionary("<U1", "(2,)"), Raw({'a', 0, 0, 0, 'b', 0, 0, 0})), "F", kLimit);
  EXPECT_EQ(two.AsStrings({2}), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(MessageOf([&] { two.AsDoubles({2}); }), "F: dtype '<U1' is text, expected numbers");
  EXPECT_EQ(MessageOf([&] { two.AsString(); }),
            "F: shape (2,), expected a single value: () or (1,)");
  const auto surrogate =
      ParseNpy(Npy(Dictionary("<U1", "(1,)"), Raw({0, 0xD8, 0, 0})), "F", kLimit);
  EXPECT_EQ(MessageOf([&] { surrogate.AsString(); }), "F: text at [0] is no unicode");
  EXPECT_EQ(ParseNpy(Npy(Dictionary("<U0", "()"), ""), "F", kLimit).AsString(), "");
}

TEST(Npy, AccessorsNameShapeIndexAndValue) {
  std::string data(48, '\0');
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  std::memcpy(data.data() + 32, &nan, 8);
  const std::string bytes = Npy(Dictionary("<f8", "(2, 3)"), data);
  const auto array = ParseNpy(bytes, "walk.npz: array 'qpos'", kLimit);
  EXPECT_EQ(MessageOf([&] {
              array.AsDoubles({kAnySize, 36});
            }),
            "walk.npz: array 'qpos': shape (2, 3), expected (*, 36)");
  EXPECT_EQ(MessageOf([&] { array.AsDoubles({6}); }),
            "walk.npz: array 'qpos': shape (2, 3), expected (6,)");
  EXPECT_EQ(MessageOf([&] {
              array.AsDoubles({2, kAnySize});
            }),
            "walk.npz: array 'qpos': value NaN at [1, 1] is not finite");
  EXPECT_EQ(MessageOf([&] {
              array.AsInts({2, 3});
            }),
            "walk.npz: array 'qpos': dtype '<f8', expected integers");
  EXPECT_EQ(MessageOf([&] {
              array.AsStrings({2, 3});
            }),
            "walk.npz: array 'qpos': dtype '<f8' is no text");
  EXPECT_TRUE(std::isnan(array.AsDoubles({2, 3}, NpyArray::Finite::kNotRequired)[4]));

  data.resize(8);
  std::memcpy(data.data(), &inf, 8);
  const auto infinite = ParseNpy(Npy(Dictionary("<f8", "()"), data), "F", kLimit);
  EXPECT_EQ(MessageOf([&] { infinite.AsDouble(); }), "F: value inf at [] is not finite");
}

// 2^53 + 1 is the first integer without a double of its own.
TEST(Npy, IntegersAreExactOrRefused) {
  const std::string data = Raw({0, 0, 0, 0, 0, 0, 0x20, 0, 1, 0, 0, 0, 0, 0, 0x20, 0});
  for (const char* dtype : {"<i8", "<u8"}) {
    const auto array = ParseNpy(Npy(Dictionary(dtype, "(2,)"), data), "F", kLimit);
    EXPECT_EQ(MessageOf([&] { array.AsDoubles({2}); }),
              "F: value 9007199254740993 at [1] is more than a double holds exactly (2^53)");
    EXPECT_EQ(array.AsInts({2})[1], 9007199254740993);
  }
  const auto huge = ParseNpy(Npy(Dictionary("<u8", "()"), std::string(8, '\xff')), "F", kLimit);
  EXPECT_EQ(MessageOf([&] { huge.AsInts({}); }),
            "F: value 18446744073709551615 at [] is more than 2^63 - 1");
  const auto lowest =
      ParseNpy(Npy(Dictionary("<i8", "()"), Raw({0, 0, 0, 0, 0, 0, 0, 0x80})), "F", kLimit);
  EXPECT_EQ(lowest.AsInts({})[0], std::numeric_limits<std::int64_t>::min());
  EXPECT_NE(MessageOf([&] { lowest.AsDouble(); }), "");
}

TEST(Npy, RefusesPicklesAndForeignTypesWithAWayOut) {
  EXPECT_EQ(Message(Npy(Dictionary("|O", "(1,)"), "\x80\x04N.")),
            "F: holds Python objects (a pickle), and reading one can run any code; save arrays of "
            "plain numbers instead");
  EXPECT_EQ(
      Message(Npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }\n", "abcd")),
      "F: records (structured dtypes) are not supported; save each field as an array of its "
      "own");
  for (const char* dtype : {"<c16",
                            "<f16",
                            "<M8[ns]",
                            "|S5",
                            "|V8",
                            "<f3",
                            "<i16",
                            "|f4",
                            "=f4",
                            "<b2",
                            "f4",
                            "<f",
                            "",
                            "<f4x",
                            "<U99999999999",
                            "<f 4",
                            "<f-4"}) {
    EXPECT_EQ(Message(Npy(Dictionary(dtype, "(1,)"), std::string(16, '\0'))),
              "F: dtype '" + std::string(dtype) +
                  "' is not supported; known: bool, i1 to i8, u1 to u8, f2, f4, f8, U");
  }
}

TEST(Npy, RefusesHeadersThatAreNone) {
  for (const char* text : {
           "",
           "\n",
           "{",
           "{}",
           "{'descr': '<f8', 'fortran_order': False}",                       // no shape
           "{'descr': '<f8', 'fortran_order': False, 'shape': ()} x",        // trailing
           "{'descr': '<f8', 'fortran_order': False, 'shape': (), 'x': 1}",  // unknown
           "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': ()}",
           "{'descr': '<f8', 'fortran_order': 0, 'shape': ()}",
           "{'descr': '<f8', 'fortran_order': False, 'shape': (1)}",
           "{'descr': '<f8', 'fortran_order': False, 'shape': (1 1)}",
           "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
           "{'descr': '<f8', 'fortran_order': False, 'shape': (1.0,)}",
           "{'descr': '<f8', 'fortran_order': False, 'shape': [1]}",
           "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
           "{'descr': '<f8', 'fortran_order': False, 'shape': (,)}",
           "{'descr': '<f8 'fortran_order': False, 'shape': ()}",
           "{'descr': '<f\\x38', 'fortran_order': False, 'shape': ()}",
           "{'descr': '<f8'; 'fortran_order': False, 'shape': ()}",
       }) {
    const std::string message = Message(Npy(text, std::string(8, '\0')));
    EXPECT_EQ(message.rfind("F: damaged: its header is no NumPy header", 0), 0u)
        << text << " -> " << message;
  }
  std::string axes;
  for (int i = 0; i < 65; ++i) axes += "1,";
  EXPECT_EQ(Message(Npy(Dictionary("|u1", "(" + axes + ")"), "x")),
            "F: damaged: its header is no NumPy header (more than 64 axes)");
  EXPECT_EQ(Message(Npy(Dictionary("|u1", "(1,)"), "x", 4)),
            "F: NumPy format version 4.0 is not supported; known: 1.0, 2.0, 3.0");
  EXPECT_EQ(Message(std::string("\x93NUMPY\x02\0\xff\xff\xff\x7f", 12)),
            "F: damaged: a header of 2147483647 bytes");
  EXPECT_EQ(Message("PK"), "F: no NumPy array: it does not start as one");
}

TEST(Npy, DataMustMatchTheShapeToTheByte) {
  EXPECT_EQ(Message(Npy(Dictionary("<f4", "(2, 3)"), std::string(23, '\0'))),
            "F: damaged: 23 bytes of data, 24 expected for shape (2, 3) of '<f4'");
  EXPECT_EQ(Message(Npy(Dictionary("<f4", "(2, 3)"), std::string(25, '\0'))),
            "F: damaged: 25 bytes of data, 24 expected for shape (2, 3) of '<f4'");
  EXPECT_EQ(Message(Npy(Dictionary("|b1", "(1,)"), "\x02")),
            "F: damaged: a bool that is neither 0 nor 1");
}

// Each of these would overflow 64 bits, or ask for far more than the limit, if taken at its word.
TEST(Npy, SizesAreBoundedBeforeAnythingIsAllocated) {
  for (const char* shape : {"(9223372036854775807,)",
                            "(4294967296, 4294967296)",
                            "(3037000500, 3037000500, 2)",
                            "(131073,)",
                            "(512, 257)"}) {
    for (const char* dtype : {"<f8", "|u1", "<U0"}) {
      EXPECT_EQ(Message(Npy(Dictionary(dtype, shape), "")),
                "F: shape " + std::string(shape) + " of '" + dtype +
                    "' takes more than the limit of 1048576 bytes");
    }
  }
  EXPECT_EQ(Message(Npy(Dictionary("<U999999999", "(1,)"), "")),
            "F: shape (1,) of '<U999999999' takes more than the limit of 1048576 bytes");
  EXPECT_EQ(Message(Npy(Dictionary("<f8", "()"), std::string(8, '\0')), 7),
            "F: shape () of '<f8' takes more than the limit of 7 bytes");
  EXPECT_EQ(Message(Npy(Dictionary("<f8", "()"), std::string(8, '\0')), 8), "");
}

TEST(Npy, WritesWhatItReads) {
  Rng rng(11);
  for (const NpyShape& shape : {NpyShape{}, {0}, {1}, {7}, {3, 4}, {2, 3, 5}}) {
    std::size_t size = 1;
    for (const auto axis : shape) size *= axis;
    Values values(size), rounded(size);
    for (std::size_t i = 0; i < size; ++i) {
      values[i] = rng.Normal() * std::pow(10, rng.Uniform(-30, 30));
      rounded[i] = static_cast<float>(values[i]);
    }
    const auto bytes = EncodeNpy(shape, values);
    EXPECT_EQ(ParseNpy(bytes, "F", kLimit).AsDoubles(shape), values);
    EXPECT_EQ((bytes.size() - 8 * size) % 64, 0u);  // NumPy maps only aligned data
    EXPECT_EQ(ParseNpy(EncodeNpy(shape, values, true), "F", kLimit).AsDoubles(shape), rounded);
  }
  // the bytes NumPy writes for numpy.array([1.0]): 128 with the header, the value at the end
  std::string dictionary = "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }";
  dictionary.append(117 - dictionary.size(), ' ').append("\n");
  EXPECT_EQ(EncodeNpy({1}, {1.0}), Npy(dictionary, Raw({0, 0, 0, 0, 0, 0, 0xF0, 0x3F})));
}

// Without a checksum around it a changed byte may go unseen; it must still end in an answer.
TEST(Npy, RandomDamageEndsInAnErrorOrAnArray) {
  const std::string whole = Npy(Dictionary("<f4", "(3, 2)", true), std::string(24, 'x'));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(Message(whole.substr(0, length)), "") << length;
  }
  Rng rng(12);
  int num_read = 0, num_refused = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string bytes = whole;
    for (unsigned k = 0; k <= rng.Bits() % 3; ++k) {
      bytes[rng.Bits() % bytes.size()] = static_cast<char>(rng.Bits() % 256);
    }
    try {
      const auto array = ParseNpy(bytes, "F", kLimit);
      if (array.kind() == NpyArray::Kind::kText) {
        MessageOf([&] { array.AsStrings(array.shape()); });
      } else {
        EXPECT_EQ(array.AsDoubles(array.shape(), NpyArray::Finite::kNotRequired).size(),
                  static_cast<std::size_t>(array.size()));
      }
      ++num_read;
    } catch (const ConfigError&) {
      ++num_refused;
    }
  }
  EXPECT_GT(num_read, 1000);
  EXPECT_GT(num_refused, 1000);
}

}  // namespace
}  // namespace silc
