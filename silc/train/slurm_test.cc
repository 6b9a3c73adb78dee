// SPDX-License-Identifier: Apache-2.0
#include "silc/train/slurm.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "silc/base/file.h"
#include "silc/base/shell.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

// Words that a shell would take apart: a space, quotes, a substitution.
constexpr char kOdd[] = "it's $(touch hit) \"odd\"";

SweepJob Job(const std::string& name, const std::string& folder, int rank, int from) {
  SweepJob job;
  job.row = name;
  job.name = name + "-seed1";
  job.folder = folder + "/" + job.name;
  job.request.task = "g1-stand";
  job.request.seed = 1;
  job.request.overrides = {"learn.actor_hidden=[8, 8]"};
  job.config.learn.iterations = 20;
  job.rank = rank;
  job.from = from;
  return job;
}

// A folder with programs of SLURM's names that write down what they are asked, and a script.
class SlurmScripts : public ::testing::Test {
 protected:
  SlurmScripts() : folder_(fs::path(::testing::TempDir()) / (std::string("silc slurm ") + kOdd)) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "bin");
    // each call is a job with the next number
    Program("sbatch",
            "printf '%s|' \"$@\" >> submitted; echo >> submitted\n"
            "echo \"$((100 + $(wc -l < submitted)));cluster\"\n");
    Program("srun", "\"$@\"\n");
    Program("silc", "printf '%s|' \"$@\" > ran\n");
  }
  ~SlurmScripts() override { fs::remove_all(folder_); }

  void Program(const std::string& name, const std::string& body) {
    const std::string path = Path("bin/" + name);
    WriteFileAtomically(path, "#!/usr/bin/env bash\n" + body);
    ::chmod(path.c_str(), 0755);
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void Write(const Sweep& sweep) {
    WriteFileAtomically(
        Path("sweep.sh"),
        SlurmScript(
            sweep,
            {.silc = Path("bin/silc"), .directory = folder_.string(), .script = Path("sweep.sh")}));
  }
  // exit code of the script; `before` is for the same shell
  int Bash(const std::string& arguments, const std::string& before = "") const {
    const std::string command = before + " PATH=" + ShellQuote(Path("bin")) + ":$PATH bash " +
                                arguments + " > /dev/null 2>&1";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string Script() const { return ShellQuote(Path("sweep.sh")); }

  fs::path folder_;
};

// first seeds are 0 and 1; 2 is the second seed of the first row; 3 and 4 start from others
Sweep Five(const std::string& folder) {
  Sweep sweep;
  sweep.title = "two\nlines; touch hit";
  sweep.jobs = {Job("a", folder, 0, -1),
                Job("a2", folder, 1, -1),
                Job("b", folder, 0, 0),
                Job("c", folder, 0, 2),
                Job("d", folder, 0, -1)};
  return sweep;
}

TEST_F(SlurmScripts, AreArraysInWhichTrainingsWaitForThoseTheyStartFrom) {
  Write(Five("runs"));
  ASSERT_EQ(Bash("-n " + Script()), 0);
  ASSERT_EQ(Bash(Script() + " --time=1:00 '--comment=two words'"), 0);
  const std::string text = ReadFile(Path("submitted"));
  const std::string common = "|--output=runs/slurm-%A_%a.log|--kill-on-invalid-dep=yes|";
  const std::string users = "--time=1:00|--comment=two words|" + Path("sweep.sh") + "|\n";
  // by rank: a 0, b 1, c 2, d 3, a2 4
  EXPECT_EQ(text,
            "--parsable|--array=0,3,4" + common + users + "--parsable|--array=1" + common +
                "--dependency=afterok:101_0|" + users + "--parsable|--array=2" + common +
                "--dependency=afterok:102_1|" + users);
  EXPECT_FALSE(fs::exists(Path("hit")));
  EXPECT_TRUE(fs::is_directory(Path("runs")));
}

TEST_F(SlurmScripts, TrainTheElementSlurmNamesAndFailWhereItIsCut) {
  const Sweep sweep = Five(std::string("runs ") + kOdd);
  Write(sweep);
  const auto words = [](const std::vector<std::string>& list) {
    std::string text;
    for (const std::string& word : list) text += word + "|";
    return text;
  };
  // number 1 is b, which starts from a; nothing comes of it, so it must not pass for done
  EXPECT_EQ(Bash(Script(), "SLURM_ARRAY_TASK_ID=1"), 75);
  EXPECT_EQ(ReadFile(Path("ran")), words(sweep.jobs[2].TrainWords(sweep.jobs[0].folder)));

  const std::string run = Path(sweep.jobs[2].folder);
  fs::create_directories(run + "/checkpoints");
  WriteFileAtomically(run + "/config.yaml", "");
  WriteFileAtomically(run + "/checkpoints/checkpoint_00000020.silc", "");
  EXPECT_EQ(Bash(Script(), "SLURM_ARRAY_TASK_ID=1"), 0);
  EXPECT_EQ(ReadFile(Path("ran")), words(sweep.jobs[2].ResumeWords()));

  EXPECT_EQ(Bash(Script(), "SLURM_ARRAY_TASK_ID=5"), 2);
  EXPECT_FALSE(fs::exists(Path("hit")));
}

}  // namespace
}  // namespace silc
