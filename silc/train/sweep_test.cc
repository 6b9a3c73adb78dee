// SPDX-License-Identifier: Apache-2.0
#include "silc/train/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/policy/mlp.h"
#include "silc/policy/onnx/reader.h"
#include "silc/policy/onnx/writer.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

std::string Folder(const std::string& name) {
  const fs::path path = fs::path(::testing::TempDir()) / ("silc_sweep_test_" + name);
  fs::remove_all(path);
  fs::create_directories(path);
  return path.string();
}

constexpr char kDefaults[] =
    "defaults: {task: g1-stand, preset: quick, envs: 16, iterations: 2, overrides: [learn.steps=4, "
    "'learn.actor_hidden=[8]', 'learn.critic_hidden=[8]']}\n";

Sweep Read(const std::string& text, const SweepOptions& options = {}) {
  const std::string path = Folder("file") + "/sweep.yaml";
  WriteFileAtomically(path, text);
  Sweep sweep = ReadSweep(path, options);
  fs::remove_all(fs::path(path).parent_path());
  return sweep;
}

std::string ErrorOf(const std::string& text, const SweepOptions& options = {}) {
  try {
    Read(text, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Sweep, ARowWithItsSeedsIsTrainingsWithTheDefaultsSettings) {
  const Sweep sweep = Read(std::string(kDefaults) +
                           "rows:\n"
                           "  - {name: a, seeds: [3, 1]}\n"
                           "  - {name: b, method: silc, mode: soft-hand, seeds: [1, 2], overrides: "
                           "[learn.steps=8], from: a}\n");
  ASSERT_EQ(sweep.jobs.size(), 4u);
  EXPECT_EQ(sweep.jobs[1].name, "a-seed1");
  EXPECT_EQ(sweep.jobs[1].rank, 1);
  EXPECT_EQ(sweep.jobs[1].folder, "runs/sweep/a-seed1");
  EXPECT_EQ(sweep.jobs[1].config.learn.steps, 4);
  EXPECT_EQ(sweep.jobs[1].config.learn.seed, 1u);
  EXPECT_EQ(sweep.jobs[3].config.learn.steps, 8);
  EXPECT_EQ(sweep.jobs[3].config.learn.iterations, 2);
  EXPECT_EQ(sweep.jobs[3].config.mode, "soft-hand");
  // the same seed of the row it starts from, else that row's first
  EXPECT_EQ(sweep.jobs[2].from, 1);
  EXPECT_EQ(sweep.jobs[3].from, 0);
  EXPECT_EQ(fmt::format("{}", fmt::join(sweep.jobs[3].TrainWords("runs/sweep/a-seed3"), " ")),
            "train g1-stand --method silc --mode soft-hand --preset quick --envs 16 --iterations 2 "
            "--seed 2 --init runs/sweep/a-seed3 --out runs/sweep/b-seed2 learn.steps=4 "
            "learn.actor_hidden=[8] learn.critic_hidden=[8] learn.steps=8");

  SweepOptions options;
  options.folder = "elsewhere";
  options.only = {"b"};
  options.overrides = {"learn.epochs=7"};
  const Sweep pair = Read(
      "rows: [{name: c, task: g1-loco}, {name: a, task: g1-stand, seeds: [1, 2]}, {name: b, task: "
      "g1-loco, seeds: [2], from: a}]",
      options);
  ASSERT_EQ(pair.jobs.size(), 2u) << "b and what it starts from";
  EXPECT_EQ(pair.jobs[0].name, "a-seed2");
  EXPECT_EQ(pair.jobs[1].from, 0);
  // one seed of a row, with its own start
  options.only = {"b-seed2", "c"};
  const Sweep seeds = Read(
      "rows: [{name: c, task: g1-loco}, {name: a, task: g1-stand, seeds: [1, 2]}, {name: b, task: "
      "g1-loco, seeds: [1, 2, 3], from: a}]",
      options);
  ASSERT_EQ(seeds.jobs.size(), 3u);
  EXPECT_EQ(seeds.jobs[0].name, "c-seed1");
  EXPECT_EQ(seeds.jobs[1].name, "a-seed2");
  EXPECT_EQ(seeds.jobs[2].name, "b-seed2");
  EXPECT_EQ(seeds.jobs[2].from, 1);
  EXPECT_EQ(seeds.jobs[2].rank, 1) << "still the second of its row";
  options.only = {"b"};
  const Sweep some = Read("rows: [{name: b, task: g1-stand}, {name: c, task: g1-loco}]", options);
  ASSERT_EQ(some.jobs.size(), 1u);
  EXPECT_EQ(some.jobs[0].folder, "elsewhere/b-seed1");
  EXPECT_EQ(some.jobs[0].config.learn.epochs, 7);
}

TEST(Sweep, SlipsAreFoundBeforeAnythingIsTrained) {
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(ErrorOf(text).find(part), std::string::npos) << ErrorOf(text);
  };
  const std::string a = "rows:\n  - {name: a, task: g1-stand}\n";
  expect("row: []", "did you mean rows?");
  expect("rows: []", "must be a list of trainings");
  expect("rows:\n  - {name: a}\n", "task: is missing");
  expect(a + "  - {name: b, task: g1-stand, sedes: [1]}\n", "sweep.yaml:3: ");
  expect(a + "  - {name: b, task: g1-stand, sedes: [1]}\n", "did you mean seeds?");
  expect(a + "  - {name: b, task: g1-stand, seeds: [1, 1]}\n", "is there twice");
  expect(a + "  - {name: a, task: g1-stand}\n", "another row has this name");
  expect(a + "  - {name: b/c, task: g1-stand}\n", "it names files");
  expect(a + "  - {name: b, task: g1-stand, from: c}\n", "is no row above this one");
  expect(a + "  - {name: b, task: g1-stand, from: b}\n", "is no row above this one");
  expect(a + "  - {name: b, task: g1-stnad}\n", "row b: ");
  expect(a + "  - {name: b, task: g1-stand, method: slic}\n", "did you mean silc");
  expect(a + "  - {name: b, task: g1-stand, overrides: [learn.epoch=3]}\n",
         "did you mean learn.epochs?");
  SweepOptions options;
  options.only = {"aa"};
  EXPECT_NE(ErrorOf(a, options).find("--only aa: no such row"), std::string::npos);
  const std::string walk = "rows:\n  - {name: walk, task: g1-stand, seeds: [1, 2]}\n";
  options.only = {"walk-seed1", "wlak-seed2"};
  EXPECT_EQ(ErrorOf(walk, options),
            "--only wlak-seed2: no such training; did you mean walk-seed2 or walk-seed1?");
  options.only = {"walk-seed3"};
  EXPECT_EQ(ErrorOf(walk, options),
            "--only walk-seed3: no such training; did you mean walk-seed1 or walk-seed2?");
}

// The rows of a list that are collected: method, and budget where it takes one. All of them have
// the same samples in all, or they could not be compared, and the same servo.
std::set<std::string> RowsOf(const std::string& list, const std::string& gains) {
  const Sweep sweep = ReadSweep(SourcePath(list), {});
  std::set<std::string> rows;
  // control steps of a job and of all it starts from
  const auto samples = [&](const SweepJob& last) {
    long sum = 0;
    for (const SweepJob* job = &last; job != nullptr;
         job = job->from < 0 ? nullptr : &sweep.jobs[job->from]) {
      sum += long(job->config.envs) * job->config.learn.steps * job->config.learn.iterations;
    }
    return sum;
  };
  const SweepJob* first = nullptr;
  for (const SweepJob& job : sweep.jobs) {
    EXPECT_EQ(job.config.gains ? job.config.gains->name : "", gains) << job.name;
    if (!job.collect) continue;
    if (first == nullptr) first = &job;
    rows.insert(job.config.learn.penalty.method +
                (IsBounded(job.config) ? " " + job.config.mode : ""));
    EXPECT_EQ(job.config.task, "g1-loco");
    EXPECT_EQ(samples(job), samples(*first)) << job.name;
    EXPECT_GE(job.from, 0) << job.name;
    if (job.from < 0) continue;
    EXPECT_EQ(job.config.learn.scale_inputs, sweep.jobs[job.from].config.learn.scale_inputs)
        << job.name << " could not start from it";
  }
  return rows;
}

// The two lists this project trains: every method on the paper's servo, our rows on the other.
TEST(Sweep, TheShippedListsHaveEveryRowOfTheReport) {
  std::set<std::string> paper = {"baseline", "lcp", "sn-lcp", "scalar-lcp", "alcp"};
  std::set<std::string> ours = {"baseline",
                                "silc felt-800",
                                "silc felt-1500",
                                "silc command,com=600..3000,gravity=followed,hand_floor=0"};
  for (const std::string mode :
       {"high-stiff", "compliance", "hard-nullspace", "soft-hand", "hard-hand"}) {
    paper.insert("silc-paper " + mode);
    paper.insert("silc " + mode);
    ours.insert("silc " + mode);
  }
  EXPECT_EQ(RowsOf("configs/sweep_paper.yaml", ""), paper);
  EXPECT_EQ(RowsOf("configs/sweep.yaml", "mjlab"), ours);
}

// A policy without a budget is judged by the default one, and its card says with which channels.
TEST(Sweep, ACardOfAnUnboundedPolicySaysWhatItIsJudgedBy) {
  const std::string folder = Folder("unbounded");
  SweepOptions options;
  options.folder = folder + "/runs";
  const Sweep sweep = Read(
      std::string(kDefaults) + "rows:\n  - {name: free, method: baseline, seeds: [4]}\n", options);
  TrainRunOptions run;
  run.config = sweep.jobs[0].config;
  run.folder = sweep.jobs[0].folder;
  RunTraining(run);
  CollectPolicies(sweep, folder + "/policies");
  const std::string card = ReadFile(folder + "/policies/free.md");
  const BudgetSpec spec = ReadBudget(kDefaultMode).spec;
  EXPECT_NE(
      card.find(fmt::format(
          "| judged by | `{}`: {}; {} |\n", kDefaultMode, BudgetNumbers(spec), BudgetTerms(spec))),
      std::string::npos)
      << card;
  fs::remove_all(folder);
}

TEST(Sweep, KnowsWhereARowStandsAndCollectsWhatIsDone) {
  const std::string folder = Folder("collect");
  SweepOptions options;
  options.folder = folder + "/runs";
  const std::string text = std::string(kDefaults) +
                           "rows:\n  - {name: one, method: silc, mode: soft-hand, seeds: [4, 5]}\n"
                           "  - {name: two}\n";
  const Sweep sweep = Read(text, options);
  const SweepJob& job = sweep.jobs[0];
  EXPECT_EQ(StateOf(job).kind, SweepState::Kind::kNew);
  TrainRunOptions run;
  run.config = job.config;
  run.folder = job.folder;
  std::atomic<bool> stop{true};
  run.stop = &stop;
  RunTraining(run);
  EXPECT_EQ(StateOf(job).kind, SweepState::Kind::kCut);
  EXPECT_EQ(StateOf(job).note, "");
  run.stop = nullptr;
  run.resume = true;
  RunTraining(run);
  EXPECT_EQ(StateOf(job).kind, SweepState::Kind::kDone);
  // more iterations than it was told, or other settings: both are seen
  options.overrides = {"learn.iterations=3"};
  EXPECT_EQ(StateOf(Read(text, options).jobs[0]).kind, SweepState::Kind::kCut);
  options.overrides = {"learn.epochs=9"};
  const SweepState other = StateOf(Read(text, options).jobs[0]);
  EXPECT_EQ(other.kind, SweepState::Kind::kDone);
  EXPECT_EQ(other.note, "trained with epochs: 3; the row says epochs: 9");

  const std::string out = folder + "/policies";
  std::vector<std::string> said = CollectPolicies(sweep, out).said;
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[1], "two-seed1: not finished; not collected");
  EXPECT_FALSE(fs::exists(out + "/two.onnx"));
  // another seed, which --only may leave alone in the list, is not the row's policy
  Sweep second = sweep;
  second.jobs = {sweep.jobs[1]};
  EXPECT_TRUE(CollectPolicies(second, folder + "/second").said.empty());
  // what others only start from stays where it is, finished or not
  Sweep less = sweep;
  for (SweepJob& of_one : less.jobs) of_one.collect = of_one.row != "one";
  EXPECT_EQ(CollectPolicies(less, folder + "/less").said.size(), 1u);
  EXPECT_FALSE(fs::exists(folder + "/less/one.onnx"));
  const std::string card = ReadFile(out + "/one.md");
  for (const char* part : {"# one.onnx",
                           "method `silc`, budget soft-hand",
                           "| judged by | `soft-hand`: CoM ",
                           "gravity held, torque followed, disc; hands' floor 0/0/0.75 |",
                           "--method silc --mode soft-hand",
                           "--seed 4",
                           "| commit |",
                           "| seed | 4 |",
                           "| iterations | 2 of 16 robots × 4 steps",
                           "## Results"}) {
    EXPECT_NE(card.find(part), std::string::npos) << part << "\n" << card;
  }
  // half precision, and the policy still
  const OnnxModel half = ReadOnnx(out + "/one.onnx"), whole = ReadOnnx(job.folder + "/policy.onnx");
  EXPECT_LT(fs::file_size(out + "/one.onnx"), fs::file_size(job.folder + "/policy.onnx"));
  EXPECT_EQ(half.metadata, whole.metadata);
  MlpEngine a(*RecogniseMlp(*half.graph, 0, 0)), b(*RecogniseMlp(*whole.graph, 0, 0));
  std::vector<float> obs(a.network().inputs, 0.1f), x(kTaskJoints), y(kTaskJoints);
  a.Forward(obs, x);
  b.Forward(obs, y);
  // float16 keeps 11 bits of each weight; inputs of 0.1, sums of some hundred terms below 0.1
  for (int j = 0; j < kTaskJoints; ++j) EXPECT_NEAR(x[j], y[j], 1e-3);

  // what was measured stays with the policy it was measured on
  WriteFileAtomically(
      out + "/one.md",
      card.substr(0, card.find("## Results")) + "## Results\n\nStands in 99 of 100.\n");
  CollectPolicies(sweep, out);
  EXPECT_NE(ReadFile(out + "/one.md").find("Stands in 99"), std::string::npos);
  run.config.learn.iterations = 3;
  RunTraining(run);
  said = CollectPolicies(sweep, out).said;
  EXPECT_EQ(ReadFile(out + "/one.md").find("Stands in 99"), std::string::npos);
  EXPECT_NE(said[0].find("are gone"), std::string::npos) << said[0];

  // float16 ends at 65,504: the policy that was there stays
  MlpNetwork large = *RecogniseMlp(*whole.graph, 0, 0);
  large.branches[0][0].weight[3] = 7e4f;
  WriteOnnx(
      job.folder + "/policy.onnx", large, "obs", "actions", whole.metadata, OnnxWeights::kFloat);
  const std::string before = ReadFile(out + "/one.onnx");
  Collected collected = CollectPolicies(sweep, out);
  ASSERT_EQ(collected.failed, std::vector<std::string>{"one"}) << "70,000 is no float16";
  EXPECT_NE(collected.said[0].find("one-seed4: not collected: "), std::string::npos);
  EXPECT_NE(collected.said[0].find("--collect"), std::string::npos) << collected.said[0];
  EXPECT_EQ(ReadFile(out + "/one.onnx"), before);

  // a row that cannot be collected does not keep the next one from it
  TrainRunOptions next;
  next.config = sweep.jobs[2].config;
  next.folder = sweep.jobs[2].folder;
  RunTraining(next);
  WriteFileAtomically(job.folder + "/policy.onnx", "no policy");
  collected = CollectPolicies(sweep, out);
  EXPECT_EQ(collected.failed, std::vector<std::string>{"one"});
  EXPECT_NE(collected.said[0].find("not collected: "), std::string::npos) << collected.said[0];
  EXPECT_NE(collected.said[1].find("/two.onnx"), std::string::npos) << collected.said[1];
  EXPECT_TRUE(fs::exists(out + "/two.onnx"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace silc
