// SPDX-License-Identifier: Apache-2.0
// A fuzzer without libFuzzer: hands it every file of a folder, and each cut in half.
//   NAME_fuzz FOLDER
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "name the folder of the seeds\n"), 2;
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    for (const std::size_t size : {bytes.size(), bytes.size() / 2}) {
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), size);
    }
    ++read;
  }
  std::printf("%d seeds\n", read);
  return read > 0 ? 0 : 1;
}
