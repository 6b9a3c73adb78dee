// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy_tools/test_log.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "silc/npz/npz.h"

namespace silc::test {

std::vector<double> FromLog(const std::string& log, const std::string& name, int width) {
  std::vector<double> values;
  for (int chunk = 0;; ++chunk) {
    char file[32];
    std::snprintf(file, sizeof file, "chunk_%06d.npz", chunk);
    const std::filesystem::path path = std::filesystem::path(log) / file;
    if (!std::filesystem::exists(path)) return values;
    const NpzFile npz = ReadNpz(path.string());
    if (!npz.Has(name)) continue;  // a second without the policy
    const std::vector<std::int64_t> shape = width > 0 ? std::vector<std::int64_t>{kAnySize, width}
                                                      : std::vector<std::int64_t>{kAnySize};
    const std::vector<double> some = npz[name].AsDoubles(shape, NpyArray::Finite::kNotRequired);
    values.insert(values.end(), some.begin(), some.end());
  }
}

}  // namespace silc::test
