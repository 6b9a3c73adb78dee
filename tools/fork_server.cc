// SPDX-License-Identifier: Apache-2.0
// Loads a program once and forks it for every command; tools/mutate.py preloads it. Loading
// LibTorch takes half a second of processor time and MuJoCo a part of that, a fork some
// milliseconds.
//
// It takes main()'s place when the shared libraries are loaded and their constructors have run.
// Each child then goes through the program's own main(). It ends behind it without destructors:
// those of LibTorch free what all children share, and copying it page by page takes 0.1 s.
//
//   SILC_FORK_SERVER=R,W   descriptors: requests are read from R, answers written to W
//   request   size of the rest [byte, 4]; limits of address space and of a file [byte, 8 each];
//             texts that end with 0: folder, standard input, output and error, then the words
//   answers   the child's process id [4], which is also its group's; when it has ended, its status
//             as waitpid() has it [4] and its processor time [s, a double]
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Main = int (*)(int, char**, char**);

Main program_main = nullptr;

bool ReadAll(int from, void* to, std::size_t size) {
  auto* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::read(from, at, size);
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

template <typename T>
void Answer(int to, const T& value) {
  if (::write(to, &value, sizeof(value)) != static_cast<ssize_t>(sizeof(value))) std::_Exit(1);
}

void Open(const char* path, int flags, int as) {
  const int file = ::open(path, flags, 0644);
  if (file < 0 || ::dup2(file, as) < 0) std::_Exit(125);
  ::close(file);
}

struct Request {
  std::uint64_t address_space = 0, file_size = 0;  // [byte]
  std::vector<char> text;
  std::vector<char*> places;  // folder, input, output, error
  std::vector<char*> words;   // a null behind the last
};

// False: nobody asks any more.
bool ReadRequest(int from, Request* request) {
  std::uint32_t size = 0;
  if (!ReadAll(from, &size, sizeof(size)) || size < 16) return false;
  std::vector<char> bytes(size);
  if (!ReadAll(from, bytes.data(), size)) return false;
  std::memcpy(&request->address_space, bytes.data(), 8);
  std::memcpy(&request->file_size, bytes.data() + 8, 8);
  request->text.assign(bytes.begin() + 16, bytes.end());
  request->places.clear();
  request->words.clear();
  char* const end = request->text.data() + request->text.size();
  for (char* at = request->text.data(); at < end; at += std::strlen(at) + 1) {
    (request->places.size() < 4 ? request->places : request->words).push_back(at);
  }
  request->words.push_back(nullptr);
  return request->places.size() == 4 && request->words.size() > 1;
}

// In the child: as a shell would have started it.
void Enter(const Request& request) {
  ::setpgid(0, 0);
  if (::chdir(request.places[0]) != 0) std::_Exit(125);
  Open(request.places[1], O_RDONLY, STDIN_FILENO);
  Open(request.places[2], O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  Open(request.places[3], O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
  const auto limit = [](auto what, std::uint64_t most) {
    const rlimit both = {most, most};
    ::setrlimit(what, &both);
  };
  limit(RLIMIT_AS, request.address_space);
  limit(RLIMIT_FSIZE, request.file_size);
  limit(RLIMIT_CORE, 0);
}

int ServeOrRun(int argc, char** argv, char** environment) {
  int from = -1, to = -1;
  const char* descriptors = std::getenv("SILC_FORK_SERVER");
  if (descriptors == nullptr || std::sscanf(descriptors, "%d,%d", &from, &to) != 2) {
    return program_main(argc, argv, environment);
  }
  // what a child starts is a program like any other
  ::unsetenv("SILC_FORK_SERVER");
  ::unsetenv("LD_PRELOAD");
  static Request request;
  while (ReadRequest(from, &request)) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(from);
      ::close(to);
      Enter(request);
      const int code =
          program_main(static_cast<int>(request.words.size()) - 1, request.words.data(), environ);
      std::fflush(nullptr);
      std::_Exit(code);
    }
    if (child < 0) return 1;
    ::setpgid(child, child);  // whoever is first; a child that is gone already needs none
    Answer(to, static_cast<std::int32_t>(child));
    int status = 0;
    rusage used = {};
    while (::wait4(child, &status, 0, &used) != child) {
    }
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    Answer(to, static_cast<std::int32_t>(status));
    Answer(to, seconds(used.ru_utime) + seconds(used.ru_stime));
  }
  std::_Exit(0);
}

}  // namespace

// The C library's own, with another main(). The name is its.
extern "C" __attribute__((visibility("default"))) int __libc_start_main(  // NOLINT
    Main main,
    int argc,
    char** argv,
    void (*init)(),
    void (*fini)(),
    void (*loader_fini)(),
    void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto start = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  program_main = main;
  return start(ServeOrRun, argc, argv, init, fini, loader_fini, stack_end);
}
