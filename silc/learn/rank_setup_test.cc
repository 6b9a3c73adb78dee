// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/rank_setup.h"

#include <gtest/gtest.h>

#include <map>

#include "silc/base/error.h"

namespace silc {
namespace {

using Variables = std::map<std::string, std::string>;

RankSetup Read(const Variables& variables) {
  return ReadRankSetup([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string ErrorOf(const Variables& variables) {
  try {
    Read(variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RankSetup, IsOneProcessWithoutVariables) {
  EXPECT_EQ(Read({}).size, 1);
  // a batch script has these, too, and silc in it without srun is one process
  EXPECT_EQ(Read({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}}).size, 1);
  // set and empty is as good as not set
  EXPECT_EQ(Read({{"RANK", ""}, {"WORLD_SIZE", ""}}).size, 1);
}

TEST(RankSetup, IsReadAsTorchrunMpirunAndSrunSetIt) {
  const RankSetup torchrun = Read({{"RANK", "9"},
                                   {"WORLD_SIZE", "16"},
                                   {"LOCAL_RANK", "1"},
                                   {"LOCAL_WORLD_SIZE", "8"},
                                   {"MASTER_ADDR", "head"},
                                   {"MASTER_PORT", "1234"},
                                   {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                   {"TORCHELASTIC_RESTART_COUNT", "2"}});
  EXPECT_EQ(torchrun.rank, 9);
  EXPECT_EQ(torchrun.size, 16);
  EXPECT_EQ(torchrun.local_rank, 1);
  EXPECT_EQ(torchrun.local_size, 8);
  EXPECT_EQ(torchrun.address, "head");
  EXPECT_EQ(torchrun.port, 1234);
  EXPECT_TRUE(torchrun.store_is_kept);
  // names of an attempt before are others
  EXPECT_NE(torchrun.prefix.find('2'), std::string::npos);

  Variables mpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                   {"OMPI_COMM_WORLD_SIZE", "4"},
                   {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  EXPECT_EQ(Read(mpi).rank, 3);
  EXPECT_EQ(Read(mpi).address, "127.0.0.1");
  EXPECT_FALSE(Read(mpi).store_is_kept);
  mpi["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  EXPECT_NE(ErrorOf(mpi).find("-x MASTER_ADDR=HOST"), std::string::npos) << ErrorOf(mpi);
  mpi["MASTER_ADDR"] = "head";
  EXPECT_EQ(Read(mpi).address, "head");

  Variables slurm = {{"SLURM_PROCID", "5"},
                     {"SLURM_STEP_NUM_TASKS", "16"},
                     {"SLURM_NTASKS_PER_NODE", "8"},
                     {"SLURM_LOCALID", "5"},
                     {"SLURM_STEP_NODELIST", "gpu[003-004]"},
                     {"SLURM_JOB_ID", "123456"}};
  EXPECT_EQ(Read(slurm).rank, 5);
  EXPECT_EQ(Read(slurm).size, 16);
  EXPECT_EQ(Read(slurm).local_rank, 5);
  EXPECT_EQ(Read(slurm).address, "gpu003");
  const int port = Read(slurm).port;
  slurm["SLURM_JOB_ID"] = "123457";
  EXPECT_NE(Read(slurm).port, port) << "two jobs on one machine";
}

TEST(RankSetup, NamesTheVariableThatIsWrong) {
  EXPECT_NE(ErrorOf({{"RANK", "0"}}).find("WORLD_SIZE: is not set"), std::string::npos);
  EXPECT_NE(ErrorOf({{"RANK", "2"}, {"WORLD_SIZE", "2"}}).find("RANK=2"), std::string::npos);
  EXPECT_NE(ErrorOf({{"RANK", "1x"}, {"WORLD_SIZE", "2"}}).find("RANK=1x"), std::string::npos);
  EXPECT_NE(ErrorOf({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).find("MASTER_ADDR"), std::string::npos);
  EXPECT_NE(ErrorOf({{"MASTER_PORT", "70000"}}).find("MASTER_PORT=70000"), std::string::npos);
}

TEST(RankSetup, FindsTheFirstMachineOfASlurmList) {
  EXPECT_EQ(FirstHost("gpu7"), "gpu7");
  EXPECT_EQ(FirstHost("gpu7,gpu9"), "gpu7");
  EXPECT_EQ(FirstHost("gpu[003-006,010],cpu1"), "gpu003");
  EXPECT_EQ(FirstHost("gpu[12,14]"), "gpu12");
  EXPECT_EQ(FirstHost("gpu[12]"), "gpu12");
}

}  // namespace
}  // namespace silc
