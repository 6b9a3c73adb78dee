// SPDX-License-Identifier: Apache-2.0
#include "silc/cli/run_silc.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <vector>

namespace silc {

Outcome Silc(const std::string& arguments, const std::string& before) {
  const std::string command = before + SILC_BINARY + " " + arguments + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    text.append(buffer, n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

pid_t StartSilc(const std::string& arguments) {
  std::vector<std::string> words = {SILC_BINARY};
  std::istringstream stream(arguments);
  for (std::string word; stream >> word;) words.push_back(word);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(126);
    ::execv(SILC_BINARY, argv.data());
    ::_exit(127);
  }
  return child;
}

bool WriteStandPolicy(const std::string& path) {
  return std::system((std::string(STAND_POLICY_BINARY) + " " + path + " > /dev/null").c_str()) == 0;
}

}  // namespace silc
