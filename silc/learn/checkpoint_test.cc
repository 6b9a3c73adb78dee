// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/yaml.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() : folder_(fs::temp_directory_path() / "silc_checkpoint_test") {
    fs::remove_all(folder_);
  }
  ~CheckpointTest() override { fs::remove_all(folder_); }
  fs::path folder_;
};

const Blobs kBlobs = {{"actor", std::string("\0\1\2", 3)}, {"empty", ""}, {"iteration", "7"}};

TEST_F(CheckpointTest, EveryFlippedBitAndEveryCutIsSeen) {
  const std::string bytes = SerializeBlobs(kBlobs);
  EXPECT_EQ(ParseBlobs(bytes, "x"), kBlobs);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_THROW(ParseBlobs(bytes.substr(0, i), "x"), ConfigError) << i;
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    EXPECT_THROW(ParseBlobs(flipped, "x"), ConfigError) << i;
  }
}

TEST_F(CheckpointTest, KeepsTheLastOnesAndLoadsTheNewest) {
  CheckpointFolder folder(folder_.string(), 2);
  for (int i : {9, 10, 200}) folder.Save(i, {{"n", std::to_string(i)}});
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2);
  const auto loaded = folder.LoadNewest([](const std::string& text) { FAIL() << text; });
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->iteration, 200);
  EXPECT_EQ(loaded->blobs.at("n"), "200");
}

TEST_F(CheckpointTest, FallsBackToThePreviousOneAndSaysSo) {
  CheckpointFolder folder(folder_.string(), 3);
  folder.Save(1, kBlobs);
  folder.Save(2, kBlobs);
  const std::string newest = (folder_ / "checkpoint_00000002.silc").string();
  const std::string bytes = ReadFile(newest);
  std::ofstream(newest, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  const auto loaded = folder.LoadNewest(warn);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->iteration, 1);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("checkpoint_00000002.silc"), std::string::npos);
  EXPECT_NE(warnings[0].find("the one before it is used"), std::string::npos);
  EXPECT_FALSE(CheckpointFolder("/no/such/folder", 2).LoadNewest(warn).has_value());
}

// 262,144 robots make 1.1 GiB; whatever was written is read. A sparse file stands for it here: it
// is refused for its bytes, not for its size.
TEST_F(CheckpointTest, NoSizeIsTooLarge) {
  fs::create_directories(folder_);
  const std::string path = (folder_ / "checkpoint_00000001.silc").string();
  std::ofstream(path, std::ios::binary) << "SILCCKP1";
  fs::resize_file(path, (std::uintmax_t{1} << 30) + 1);
  try {
    ReadCheckpoint(path, path);
    FAIL() << "zeros were taken for a checkpoint";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("its checksum does not agree"), std::string::npos)
        << error.what();
  }
}

TEST_F(CheckpointTest, TheRunFolderSaysWhatWasRun) {
  WriteRunFolder(folder_.string(), "learn:\n  epochs: 3\n", 42);
  const YamlNode run = YamlNode::ParseFile((folder_ / "run.yaml").string());
  run.Keys({"commit", "seed", "machine"});
  EXPECT_EQ(run["seed"].AsInt(), 42);
  EXPECT_EQ(YamlNode::ParseFile((folder_ / "config.yaml").string())["learn"]["epochs"].AsInt(), 3);
}

}  // namespace
}  // namespace silc
