// SPDX-License-Identifier: Apache-2.0
#include "silc/npz/npz.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/rng.h"
#include "silc/base/test_paths.h"
#include "silc/npz/zip.h"

namespace silc {
namespace {

namespace fs = std::filesystem;
using Values = std::vector<double>;
using Names = std::vector<std::string>;

const std::string kCorpus = SourcePath("silc/npz/fuzz_corpus/");

template <typename Call>
std::string MessageOf(const Call& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

class Npz : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(Npz, ReadsWhatItWrote) {
  Rng rng(21);
  Values qpos(252), times(7);
  for (double& value : qpos) value = rng.Normal();
  for (double& value : times) value = rng.Normal();
  const fs::path path = folder_ / "motion.npz";
  WriteNpz(path,
           {{"times", {7}, times, true},
            {"qpos", {7, 36}, qpos},
            {"fps", {}, {50}},
            {"none", {0, 3}, {}}});

  const NpzFile npz = ReadNpz(path);
  EXPECT_EQ(npz.file(), path);
  EXPECT_EQ(npz.names(), (Names{"fps", "none", "qpos", "times"}));
  EXPECT_TRUE(npz.Has("qpos"));
  EXPECT_FALSE(npz.Has("qpos.npy"));
  EXPECT_EQ(npz["qpos"].AsDoubles({kAnySize, 36}), qpos);
  EXPECT_EQ(npz["fps"].AsDouble(), 50);
  EXPECT_EQ(npz["none"].shape(), (NpyShape{0, 3}));
  for (double& value : times) value = static_cast<float>(value);
  EXPECT_EQ(npz["times"].AsDoubles({7}), times);
  EXPECT_TRUE(ParseNpz(EncodeNpz({}), "F").names().empty());
}

// The fuzzer's seeds were written by NumPy 2.4 (savez, savez_compressed, save).
TEST_F(Npz, ReadsWhatNumPyWrote) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const NpzFile npz = ReadNpz(kCorpus + name);
    EXPECT_EQ(npz.names(), (Names{"fps", "joint", "ok", "qpos"}));
    EXPECT_EQ(npz["qpos"].dtype(), "<f4");
    EXPECT_EQ(npz["qpos"].AsDoubles({2, 3}), (Values{0, 0.25, 0.5, 0.75, 1, 1.25}));
    EXPECT_EQ(npz["fps"].AsDouble(), 50);
    EXPECT_EQ(npz["joint"].AsStrings({2}), (Names{"knee", "hüfte"}));
    EXPECT_EQ(npz["ok"].AsInts({2}), (std::vector<std::int64_t>{1, 0}));
  }
  EXPECT_EQ(ReadNpy(kCorpus + "fortran_big_endian.npy").AsDoubles({2, 3}),
            (Values{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(ReadNpy(kCorpus + "half.npy").AsDoubles({2}), (Values{1.5, -0.25}));
  EXPECT_EQ(ReadNpy(kCorpus + "version_2.npy").AsDoubles({2, 1}), (Values{1, 2}));
}

TEST_F(Npz, ReadsTheReferenceMotion) {
  const std::string path = ReferencePath("g1/motions/shuffle_dance.npz");
  if (!fs::exists(path)) GTEST_SKIP() << "reference data not there: " << path;
  const NpzFile npz = ReadNpz(path);
  EXPECT_EQ(npz.names(), (Names{"ctrl", "qpos", "qvel", "times"}));
  const Values qpos = npz["qpos"].AsDoubles({251, 36});  // finite, or it throws
  npz["qvel"].AsDoubles({251, 35});
  npz["ctrl"].AsDoubles({250, 29});
  const Values times = npz["times"].AsDoubles({251});
  for (int i = 0; i < 251; ++i) {
    // base quaternions are unit to float precision, and the clock runs at 50 Hz: numbers that a
    // wrong stride or byte order would not give
    const double* quat = &qpos[36 * i + 3];
    const double norm = std::hypot(std::hypot(quat[0], quat[1]), std::hypot(quat[2], quat[3]));
    EXPECT_NEAR(norm, 1, 1e-5);
    EXPECT_NEAR(times[i], 0.02 * i, 1e-9);
  }
}

TEST_F(Npz, MessagesNameFileAndArray) {
  const std::string path = folder_ / "walk.npz";
  WriteNpz(path, {{"qpos", {2, 3}, Values(6)}, {"qvel", {2, 3}, Values(6)}});
  const NpzFile npz = ReadNpz(path);
  EXPECT_EQ(MessageOf([&] {
              npz["qpos"].AsDoubles({kAnySize, 36});
            }),
            path + ": array 'qpos': shape (2, 3), expected (*, 36)");
  EXPECT_EQ(MessageOf([&] { npz["qpso"]; }), path + ": no array 'qpso'; did you mean qpos?");
  EXPECT_EQ(MessageOf([&] { npz["root_states"]; }),
            path + ": no array 'root_states'; known: qpos, qvel");
  EXPECT_EQ(MessageOf([&] { ReadNpz(folder_ / "none.npz"); }),
            (folder_ / "none.npz").string() + ": no such file");
  EXPECT_EQ(
      MessageOf([&] { ReadNpz(kCorpus + "half.npy"); }),
      kCorpus + "half.npy: a single array (.npy); write it with numpy.savez(file, name=array)");
  EXPECT_EQ(MessageOf([&] { ReadNpy(path); }),
            path + ": several arrays (.npz), expected a single one (.npy)");
  EXPECT_EQ(MessageOf([&] {
              ParseNpz(WriteZip({{"a.txt", "1"}}), "F");
            }),
            "F: member 'a.txt' is no array: its name does not end in .npy");
  EXPECT_EQ(MessageOf([&] {
              ParseNpz(WriteZip({{"a.npy", "1"}}), "F");
            }),
            "F: array 'a': no NumPy array: it does not start as one");
  EXPECT_EQ(MessageOf([&] { ParseNpz("", "F"); }),
            "F: no zip archive, or cut short: its directory is missing at the end");
}

TEST_F(Npz, EveryLimitHolds) {
  const std::string path = folder_ / "x.npz";
  WriteNpz(path, {{"a", {1000}, Values(1000)}, {"b", {1000}, Values(1000)}});  // 2 · 8000 byte
  const auto message = [&](NpzLimits limits) { return MessageOf([&] { ReadNpz(path, limits); }); };
  // each just enough: the second array's header (128 byte) is in the archive beside its data
  EXPECT_EQ(message({.max_file_bytes = fs::file_size(path),
                     .max_array_bytes = 8128,
                     .max_total_bytes = 16128,
                     .max_arrays = 2}),
            "");
  EXPECT_EQ(
      message({.max_file_bytes = 1000}),
      path + ": " + std::to_string(fs::file_size(path)) + " bytes, more than the limit of 1000");
  EXPECT_EQ(message({.max_array_bytes = 8127}),
            path + ": member 'a.npy': 8128 bytes unpacked, more than the limit of 8127");
  EXPECT_EQ(message({.max_total_bytes = 16127}),
            path + ": member 'b.npy': 8128 bytes unpacked, more than the limit of 8127");
  EXPECT_EQ(message({.max_arrays = 1}), path + ": 2 members, more than the limit of 1");

  // one byte a number in the file, eight in the answer: the limit means the answer
  std::string bytes = EncodeNpy({1}, {0});
  bytes.replace(bytes.find("<f8"), 3, "|u1");
  bytes.replace(bytes.find("(1,), }   "), 10, "(1000,), }");
  bytes.resize(bytes.size() - 8);
  const std::string small = WriteZip({{"a.npy", bytes + std::string(1000, '\1')}});
  EXPECT_EQ(MessageOf([&] { ParseNpz(small, "F", {.max_array_bytes = 8000}); }), "");
  EXPECT_EQ(MessageOf([&] { ParseNpz(small, "F", {.max_array_bytes = 7999}); }),
            "F: array 'a': shape (1000,) of '|u1' takes more than the limit of 7999 bytes");
}

// Everything an accessor can return, as text: equal dumps are equal files to any user.
std::string Dump(const NpzFile& npz) {
  std::string text;
  for (const std::string& name : npz.names()) {
    const NpyArray& array = npz[name];
    text += name + array.dtype() + NpyShapeText(array.shape());
    if (array.kind() == NpyArray::Kind::kText) {
      for (const std::string& item : array.AsStrings(array.shape())) text += item + ",";
    } else {
      for (const double value : array.AsDoubles(array.shape(), NpyArray::Finite::kNotRequired)) {
        text += std::to_string(value) + ",";
      }
    }
  }
  return text;
}

TEST_F(Npz, EveryTruncationIsRefused) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string whole = ReadFile(kCorpus + name);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      ASSERT_NE(MessageOf([&] { ParseNpz(whole.substr(0, length), "F"); }), "") << length;
    }
  }
}

// Checksums guard the arrays and the directory guards the rest: no single wrong bit goes through.
TEST_F(Npz, ASingleFlippedBitIsRefusedOrWithoutEffect) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string whole = ReadFile(kCorpus + name);
    const std::string expected = Dump(ParseNpz(whole, "F"));
    int num_refused = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string bytes = whole;
        bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
        try {
          ASSERT_EQ(Dump(ParseNpz(bytes, "F")), expected) << "byte " << i << " bit " << bit;
        } catch (const ConfigError&) {
          ++num_refused;
        }
      }
    }
    // times, versions, attributes and the local sizes may be wrong, the rest may not
    EXPECT_GT(num_refused, static_cast<int>(whole.size()) * 4);
  }
}

TEST_F(Npz, RandomDamageNeverEndsInAnythingElse) {
  Rng rng(22);
  const NpzLimits limits{.max_array_bytes = 1 << 16, .max_total_bytes = 1 << 17};
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string whole = ReadFile(kCorpus + name);
    for (int trial = 0; trial < 5000; ++trial) {
      std::string bytes = whole;
      for (unsigned k = 0; k <= rng.Bits() % 8; ++k) {
        // half of it where the directory is, at the end
        const std::size_t begin = rng.Bits() % 2 == 0 ? 0 : bytes.size() - bytes.size() / 4;
        const std::size_t i = begin + rng.Bits() % (bytes.size() - begin);
        bytes[i] = static_cast<char>(rng.Bits() % 256);
      }
      MessageOf([&] { Dump(ParseNpz(bytes, "F", limits)); });
    }
  }
}

}  // namespace
}  // namespace silc
