// SPDX-License-Identifier: Apache-2.0
#include "silc/base/data_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace silc {
namespace {

namespace fs = std::filesystem;

TEST(DataFolders, LooksHereFirstThenInTheTreeThenWhereItIsInstalled) {
  const std::vector<std::string> folders = DataFolders("configs/tasks");
  ASSERT_GE(folders.size(), 3u);
  EXPECT_EQ(folders.front(), "configs/tasks");
  EXPECT_TRUE(fs::is_regular_file(fs::path(folders[1]) / "g1_loco.yaml")) << folders[1];
  EXPECT_EQ(DataFolders("").front(), ".");
  // this test lies in FOLDER/data_folder_test, so a program installed likewise finds
  // FOLDER/../share
  const fs::path beside =
      fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "share/silc/configs/tasks";
  EXPECT_NE(std::find(folders.begin(), folders.end(), beside.string()), folders.end());
}

}  // namespace
}  // namespace silc
