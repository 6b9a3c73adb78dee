// SPDX-License-Identifier: Apache-2.0
#include "silc/train/diverged_log.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "silc/base/error.h"

namespace silc {

void DivergedLog::Write(const std::vector<DivergedRobot>& lost) {
  if (written_ == lost.size() || path_.empty()) return;
  std::string text;
  for (; written_ < lost.size(); ++written_) {
    const DivergedRobot& d = lost[written_];
    const nlohmann::ordered_json line = {{"seed", d.seed},
                                         {"env", d.env},
                                         {"step", d.step},
                                         {"fault", d.fault},
                                         {"qpos", d.qpos},
                                         {"qvel", d.qvel},
                                         {"action", d.action}};
    text += line.dump() + "\n";
  }
  std::FILE* file = std::fopen(path_.c_str(), "ab");
  if (file == nullptr) throw RunError(path_ + ": cannot be written");
  const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !whole) throw RunError(path_ + ": cannot be written");
}

}  // namespace silc
