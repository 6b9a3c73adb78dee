// SPDX-License-Identifier: Apache-2.0
#include "silc/train/sweep.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <thread>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/shell.h"
#include "silc/base/table.h"
#include "silc/base/utf8.h"
#include "silc/cli/number.h"
#include "silc/cli/trainer.h"
#include "silc/cli/verbs.h"
#include "silc/train/slurm.h"

namespace silc {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = SweepState::Kind;

std::atomic<int> stops{0};  // times the user asked
static_assert(std::atomic<int>::is_always_lock_free, "counted in a signal handler");
extern "C" void OnSweepSignal(int) { ++stops; }

struct SweepArguments {
  std::string file, collect, slurm;
  SweepOptions options;
  int jobs = 1, retries = 0;
  double max_seconds = 0;
  bool list = false;
};

// The program that users run: silc, which lies beside this one (silc/cli/trainer.h).
std::string SilcProgram() {
  return std::filesystem::read_symlink("/proc/self/exe").replace_filename("silc").string();
}

// A silc of its own whose words go to a file. Its group is its own, too: a Ctrl-C at the terminal
// would reach it a second time, and the second one ends it without a checkpoint.
pid_t StartSilc(const std::vector<std::string>& words, const std::string& log) {
  const std::string binary = SilcProgram();
  std::vector<char*> argv = {const_cast<char*>(binary.c_str())};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) throw RunError(log + ": cannot be written: " + std::strerror(errno));
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    // when the sweep is killed, its trainings end with a checkpoint
    ::prctl(PR_SET_PDEATHSIG, SIGINT);
    if (::getppid() != parent) ::_exit(1);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::execv(binary.c_str(), argv.data());
    ::_exit(127);
  }
  ::close(file);
  if (child < 0)
    throw RunError(std::string("a training cannot be started: ") + std::strerror(errno));
  return child;
}

std::string LastLine(const std::string& path) {
  std::string last;
  if (!std::filesystem::exists(path)) return last;
  std::istringstream lines(ReadFile(path));
  // what follows "silc: " is the error; lines below it are ways out
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("silc: ")) last = line.substr(6);
  }
  return last;
}

std::string Minutes(double seconds) {
  const long s = std::lround(seconds);
  return s >= 3600 ? fmt::format("{} h {:02} min", s / 3600, s / 60 % 60)
                   : fmt::format("{} min {:02} s", s / 60, s % 60);
}

class Sweeper {
 public:
  Sweeper(const SweepArguments& args, const Sweep& sweep)
      : args_(args), sweep_(sweep), start_(Clock::now()) {
    for (const SweepJob& job : sweep_.jobs) {
      order_.push_back(jobs_.size());
      jobs_.push_back({.state = StateOf(job)});
    }
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return sweep_.jobs[a].rank < sweep_.jobs[b].rank;
    });
    const char* term = std::getenv("TERM");
    terminal_ = isatty(STDOUT_FILENO) == 1 && term != nullptr && std::strcmp(term, "dumb") != 0;
  }
  ~Sweeper() {
    // by an exception only: nobody would look after them any more
    for (const Job& job : jobs_) {
      if (job.child > 0) ::kill(job.child, SIGINT);
    }
  }
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  /// Until all that can be done is done, the time is over or the user stops it.
  void Run() {
    int heard = 0;
    while (true) {
      Reap();
      const bool late = args_.max_seconds > 0 && Elapsed() > args_.max_seconds;
      if (late && !stopping_) Stop(fmt::format("the {} s are over", args_.max_seconds));
      for (const int asked = stops; heard < asked; ++heard) {
        Stop(heard == 0 ? "stopping (Ctrl-C again: at once)" : "stopping at once");
      }
      if (!stopping_) StartReady();
      if (Running() == 0) return;
      Draw();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  std::string TableText() {
    Table table({{"row", "", Align::kToLeft},
                 {"seed"},
                 {"method", "", Align::kToLeft},
                 {"budget", "", Align::kToLeft},
                 {"iteration"},
                 {"of"},
                 {"reward"},
                 {"state", "", Align::kToLeft}});
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const SweepJob& job = sweep_.jobs[i];
      const RunInfo& run = jobs_[i].state.run;
      table.Row({job.row,
                 fmt::format("{}", job.config.learn.seed),
                 job.config.learn.penalty.method,
                 IsBounded(job.config) ? job.config.mode : "–",
                 fmt::format("{}", run.iteration),
                 fmt::format("{}", job.config.learn.iterations),
                 FormatNumber(run.reward),
                 StateText(i)});
    }
    return Printable(table.Render());
  }

  void Erase() {
    if (drawn_lines_ > 0) fmt::print("\033[{}A\033[J", drawn_lines_);
    drawn_lines_ = 0;
  }

  bool AnyFailed() const {
    return std::any_of(jobs_.begin(), jobs_.end(), [](const Job& job) {
      return !job.failed.empty() || job.state.kind == Kind::kBroken;
    });
  }

 private:
  struct Job {
    SweepState state;  // on disk
    pid_t child = 0;   // 0: not running here
    int retries = 0;   // times it was started once more
    std::string failed;
    Clock::time_point last_look = {};
  };

  double Elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  int Running() const {
    return static_cast<int>(
        std::count_if(jobs_.begin(), jobs_.end(), [](const Job& job) { return job.child > 0; }));
  }
  std::string LogOf(std::size_t i) const { return sweep_.jobs[i].folder + ".log"; }

  void Say(std::size_t i, const std::string& what) {
    Erase();
    last_draw_ = -1e9;  // the table comes back below at once
    fmt::print("{:>12}  {}: {}\n", Minutes(Elapsed()), sweep_.jobs[i].name, what);
    std::fflush(stdout);
  }

  void Reap() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      Job& job = jobs_[i];
      int status = 0;
      if (job.child <= 0 || ::waitpid(job.child, &status, WNOHANG) != job.child) continue;
      job.child = 0;
      job.state = StateOf(sweep_.jobs[i]);
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        Say(i, StateText(i));
      } else if (stopping_ && (WIFSIGNALED(status) || WEXITSTATUS(status) >= 128)) {
        Say(i, "ended at once");
      } else {
        std::string why = LastLine(LogOf(i));
        if (why.empty()) {
          why = WIFSIGNALED(status) ? fmt::format("killed by signal {}", WTERMSIG(status))
                                    : fmt::format("exit code {}", WEXITSTATUS(status));
        }
        if (job.retries < args_.retries && !stopping_ && job.state.kind != Kind::kBroken) {
          ++job.retries;
          Say(i, "is started once more, for it ended so: " + why);
          continue;
        }
        job.failed = why;
        Say(i, "failed: " + why + " (" + LogOf(i) + ")");
      }
    }
  }

  void Stop(const std::string& why) {
    Erase();
    fmt::print("{:>12}  {}{}\n",
               Minutes(Elapsed()),
               why,
               stopping_ ? "" : ": each training ends after its iteration, with a checkpoint");
    std::fflush(stdout);
    stopping_ = true;
    for (const Job& job : jobs_) {
      if (job.child > 0) ::kill(job.child, SIGINT);
    }
  }

  bool Ready(std::size_t i) const {
    const Job& job = jobs_[i];
    if (job.child > 0 || !job.failed.empty()) return false;
    if (job.state.kind == Kind::kCut) return true;
    const int from = sweep_.jobs[i].from;
    return job.state.kind == Kind::kNew &&
           (from < 0 || (jobs_[static_cast<std::size_t>(from)].state.kind == Kind::kDone &&
                         jobs_[static_cast<std::size_t>(from)].child == 0));
  }

  void StartReady() {
    for (const std::size_t i : order_) {
      if (Running() >= args_.jobs) return;
      if (!Ready(i)) continue;
      const SweepJob& job = sweep_.jobs[i];
      const bool cut = jobs_[i].state.kind == Kind::kCut;
      std::error_code error;
      std::filesystem::create_directories(std::filesystem::path(job.folder).parent_path(), error);
      const std::string init =
          job.from < 0 ? "" : sweep_.jobs[static_cast<std::size_t>(job.from)].folder;
      jobs_[i].child = StartSilc(cut ? job.ResumeWords() : job.TrainWords(init), LogOf(i));
      Say(i,
          cut ? fmt::format("goes on after iteration {}", jobs_[i].state.run.iteration) : "starts");
    }
  }

  std::string StateText(std::size_t i) const {
    const Job& job = jobs_[i];
    const RunInfo& run = job.state.run;
    std::string text;
    if (job.child > 0) {
      text = "running";
      if (std::isfinite(run.steps_per_s)) {
        text += fmt::format(", {} k steps/s", FormatNumber(run.steps_per_s / 1e3));
      }
      return text;
    }
    if (!job.failed.empty()) return "failed, see " + LogOf(i);
    const int from = sweep_.jobs[i].from;
    switch (job.state.kind) {
      case Kind::kNew:
        text = from >= 0 && jobs_[static_cast<std::size_t>(from)].state.kind != Kind::kDone
                   ? "waits for " + sweep_.jobs[static_cast<std::size_t>(from)].name
                   : "to do";
        break;
      case Kind::kCut:
        text = "stopped";
        break;
      case Kind::kDone:
        text = "done";
        break;
      case Kind::kElsewhere:
        text = "somebody else trains it";
        break;
      case Kind::kBroken:
        return "broken: " + job.state.note;
    }
    return job.state.note.empty() ? text : text + ", but " + job.state.note;
  }

  // the whole table over itself, on a terminal that is high enough for it
  void Draw() {
    if (!terminal_ || Elapsed() - last_draw_ < 1) return;
    last_draw_ = Elapsed();
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (jobs_[i].child > 0) jobs_[i].state.run = InspectRun(sweep_.jobs[i].folder);
    }
    winsize size = {};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < jobs_.size() + 4) return;
    // a line that wraps would not be drawn over
    std::istringstream lines(TableText());
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      text += "\033[?7l" + line + "\033[?7h\n";
    }
    Erase();
    fmt::print("{}", text);
    std::fflush(stdout);
    drawn_lines_ = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }

  const SweepArguments& args_;
  const Sweep& sweep_;
  Clock::time_point start_;
  std::vector<Job> jobs_;           // as sweep_.jobs
  std::vector<std::size_t> order_;  // in which they are started
  bool stopping_ = false, terminal_ = false;
  double last_draw_ = -1e9;  // [s]
  int drawn_lines_ = 0;
};

void RunSweep(const SweepArguments& args) {
  const Sweep sweep = ReadSweep(args.file, args.options);
  if (!args.slurm.empty()) {
    namespace fs = std::filesystem;
    WriteFileAtomically(args.slurm,
                        SlurmScript(sweep,
                                    {.silc = SilcProgram(),
                                     .directory = fs::current_path().string(),
                                     .script = fs::absolute(args.slurm).string()}));
    fmt::print("{}: {} trainings; bash {} --time=12:00:00 --gres=gpu:1 submits them\n",
               Printable(args.slurm),
               sweep.jobs.size(),
               Printable(ShellQuote(args.slurm)));
    return;
  }
  Sweeper sweeper(args, sweep);
  fmt::print("{}", sweeper.TableText());
  std::fflush(stdout);
  if (!args.list) {
    struct sigaction action = {};
    action.sa_handler = OnSweepSignal;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGHUP, &action, nullptr);
    sweeper.Run();
    sweeper.Erase();
    fmt::print("\n{}", sweeper.TableText());
  }
  Collected collected;
  if (!args.collect.empty()) {
    collected = CollectPolicies(sweep, args.collect);
    for (const std::string& line : collected.said) fmt::print("{}\n", Printable(line));
  }
  if (sweeper.AnyFailed())
    throw RunError(args.file + ": some trainings failed; the table says why");
  if (!collected.failed.empty()) {
    throw RunError(fmt::format("--collect: could not take the policy of {}",
                               fmt::join(collected.failed, ", ")));
  }
}

}  // namespace

void AddSweep(CLI::App* app) {
  auto args = std::make_shared<SweepArguments>();
  SweepOptions& options = args->options;
  CLI::App* verb = app->add_subcommand("sweep", kSweepHelp);
  verb->add_option("file", args->file, "YAML with the list, such as configs/sweep.yaml")
      ->required();
  verb->add_option("overrides", options.overrides, "settings for every row: learn.iterations=100");
  verb->add_option("--backend", options.backend, "batch (CPU), cuda or mujoco [batch]");
  verb->add_option("--jobs", args->jobs, "trainings at once; several may share a GPU")
      ->capture_default_str()
      ->check(WholeIn(1, 64));
  verb->add_option("--threads", options.threads, "of the CPU, for each training [all]")
      ->check(WholeIn(1, 1024));
  verb->add_option("--max-seconds",
                   args->max_seconds,
                   "stop all after this time, each with a checkpoint [s]")
      ->check(NumberIn(0.0, 1e9));
  verb->add_option("--only",
                   options.only,
                   "rows, or of a row a seed, to train, as in a,b-seed2; what they start from, too")
      ->delimiter(',');
  verb->add_option("--retries", args->retries, "times a training that fails is started once more")
      ->capture_default_str()
      ->check(WholeIn(0, 100));
  verb->add_option("--out", options.folder, "folder of the runs [the file's, else runs/sweep]");
  verb->add_option("--collect",
                   args->collect,
                   "then copy finished policies here, half precision, each with a card");
  verb->add_option("--slurm",
                   args->slurm,
                   "train nothing: write this script, which hands the trainings to SLURM");
  verb->add_flag("--list", args->list, "train nothing: only say where each row stands");
  verb->callback([args] { RunSweep(*args); });
}

}  // namespace silc
