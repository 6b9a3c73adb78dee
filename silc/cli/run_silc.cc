// SPDX-License-Identifier: Apache-2.0
#include "silc/cli/run_silc.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <vector>

namespace silc {

std::string SilcBinary() { return SILC_BINARY; }

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

pid_t StartSilc(const std::string& arguments) { return StartSilc(arguments, {}, ""); }

pid_t StartSilc(const std::string& arguments,
                const std::map<std::string, std::string>& variables,
                const std::string& log) {
  std::vector<std::string> words = {SILC_BINARY};
  std::istringstream stream(arguments);
  for (std::string word; stream >> word;) words.push_back(word);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // all memory is taken before the fork: another thread may hold the allocator's lock in it
  std::vector<std::string> texts;
  for (const auto& [name, value] : variables) texts.push_back(name + "=" + value);
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  for (std::string& text : texts) environment.push_back(text.data());
  environment.push_back(nullptr);
  const char* out = log.empty() ? "/dev/null" : log.c_str();
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(out, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) ::_exit(126);
    ::dup2(file, STDOUT_FILENO);
    if (!log.empty()) ::dup2(file, STDERR_FILENO);
    ::execve(SILC_BINARY, argv.data(), environment.data());
    ::_exit(127);
  }
  return child;
}

bool WriteStandPolicy(const std::string& path) {
  return std::system((std::string(STAND_POLICY_BINARY) + " " + path + " > /dev/null").c_str()) == 0;
}

}  // namespace silc
