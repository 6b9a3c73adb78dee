// SPDX-License-Identifier: Apache-2.0
// The program as a user meets it: exit codes, messages, files written whole or not at all.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/cli/run_silc.h"
#include "silc/robot/tiny_biped.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

class Cli : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new fs::path(fs::path(::testing::TempDir()) / "silc_cli_test");
    fs::remove_all(*folder_);
    fs::create_directories(*folder_);
    stand_ = new std::string((*folder_ / "stand.onnx").string());
    ASSERT_TRUE(WriteStandPolicy(*stand_));
  }
  static void TearDownTestSuite() {
    fs::remove_all(*folder_);
    delete folder_;
    delete stand_;
  }
  static int NumFiles() {
    return static_cast<int>(
        std::distance(fs::directory_iterator(*folder_), fs::directory_iterator()));
  }
  static std::string Path(const std::string& name) { return (*folder_ / name).string(); }

  static fs::path* folder_;
  static std::string* stand_;
};
fs::path* Cli::folder_ = nullptr;
std::string* Cli::stand_ = nullptr;

TEST_F(Cli, HelpAndVersionSucceed) {
  EXPECT_EQ(Silc("--help").code, 0);
  EXPECT_EQ(Silc("observe --help").code, 0);
  EXPECT_EQ(Silc("--version").text, "silc " SILC_VERSION "\n");
}

TEST_F(Cli, AskedWronglyIsTwo) {
  for (const char* wrong :
       {"", "obsrve", "observe", "observe x.onnx --rollout -3", "observe x.onnx --nonsense"}) {
    const Outcome outcome = Silc(wrong);
    EXPECT_EQ(outcome.code, 2) << wrong << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find("--help lists what it takes"), std::string::npos) << outcome.text;
  }
}

TEST_F(Cli, FilesAndNamesThatDoNotExistAreNamed) {
  const auto expect = [](const std::string& arguments, const std::string& message) {
    const Outcome outcome = Silc(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_NE(outcome.text.find(message), std::string::npos) << outcome.text;
  };
  expect("observe none.onnx", "none.onnx: no such file");
  expect("observe " + *stand_ + " --robot g2", "g2");
  expect("observe " + *stand_ + " --mode complaince", "did you mean compliance?");
  expect("observe " + *stand_ + " --mode ''", "--mode: is empty");
  expect("observe " + *stand_ + " --mode compliance,gravty=held", "did you mean gravity?");
  expect("observe " + *stand_ + " --condition two-sided",
         "--condition: is part of the budget: --mode compliance,condition=two-sided");
  expect("eval walk --policy " + *stand_ + " --hold-gravity",
         "--hold-gravity: is part of the budget: --mode compliance,gravity=held");
  expect("eval budget --policy " + *stand_ + " --with-gravity",
         "--with-gravity: is part of the budget: --mode compliance,gravity=followed");
  expect("export " + *stand_ + " " + Path("x.onnx") + " --note silc_gravity=held",
         "is part of the budget now; --mode writes it");
  expect("export " + *stand_ + " " + Path("x.onnx") + " --mode ''", "--mode: is empty");
  expect("observe " + *stand_ + " --layout falcn", "falcon");
  expect("observe " + *stand_ + " --gains falcn", "falcon");
  // before the work, not behind it
  for (const std::string& work : {"observe " + *stand_ + " --json",
                                  "eval com-impulse --policy " + *stand_ + " --json",
                                  "eval com-impulse --policy " + *stand_ + " --plot",
                                  "certify " + *stand_ + " --json",
                                  std::string("sim --seconds 0.1 --csv"),
                                  std::string("sim --seconds 0.1 --plot"),
                                  std::string("motion inspect none.csv --plot"),
                                  std::string("gains --mode compliance --name x --write")}) {
    expect(work + " no/such/folder/x", "there is no folder");
  }
  expect("certify none.onnx", "none.onnx: no such file");
  expect("certify " + *stand_ + " --box joint_po=1", "did you mean joint_pos?");
  expect("certify " + *stand_ + " --box joint_pos=-1", "a radius is a number of at least 0 [rad]");
  expect("certify " + *stand_ + " --mode compliance,condition=one-sided",
         "cannot be certified: the one-sided condition has no bound here");
  expect("certify " + *stand_ + " --task g1-locoo", "g1-locoo");
  expect("report --policies no/such/folder", "no such folder");
  expect("report --experiments comimpulse", "com-impulse");
  expect("export " + *stand_ + " " + Path("x.onnx") + " --note method", "KEY=VALUE");
}

// A linear policy has one Jacobian: its bound is its σ, in a box of any size.
TEST_F(Cli, CertifiesALinearPolicyExactly) {
  const Outcome outcome =
      Silc("certify " + *stand_ + " --rollout 0.2 --settle 0.1 --moments 2 --samples 5 --json " +
           Path("certificate.json"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("budget 'compliance', judged with gravity held, torque followed"),
            std::string::npos)
      << outcome.text;
  const auto json = nlohmann::json::parse(ReadFile(Path("certificate.json")));
  ASSERT_EQ(json["moments"].size(), 2u);
  for (const auto& moment : json["moments"]) {
    EXPECT_NEAR(moment["upper"].get<double>(), moment["sigma"].get<double>(), 1e-4);
    // found by halving the way from ρ to 1
    EXPECT_GE(moment["radius_upper"].get<double>(), moment["radius"].get<double>());
    EXPECT_LT(moment["radius_upper"].get<double>(), 1);
  }
  // no budget that is broken where it was recorded is certified, and --check says so
  const Outcome tight = Silc("certify " + *stand_ +
                             " --rollout 0.1 --settle 0 --moments 1 --samples 0 --check --mode "
                             "compliance,com=1");
  EXPECT_EQ(tight.code, 1) << tight.text;
  EXPECT_NE(tight.text.find("certified at 0.0 % of the moments"), std::string::npos) << tight.text;
}

// What was taken for a number, and was none.
TEST_F(Cli, NumbersThatAreNoneAreTwo) {
  const std::string policy = "observe " + *stand_;
  for (const std::string& wrong : {policy + " --latency nan",
                                   policy + " --rollout nan",
                                   policy + " --rollout inf",
                                   policy + " --settle nan --rollout 1",
                                   policy + " --command nan,0,0",
                                   policy + " --height nan",
                                   policy + " --shake com --forces nan",
                                   policy + " --shake com --forces 2,-2",
                                   policy + " --seed -1",
                                   policy + " --mode ''",
                                   policy + " --robot ''",
                                   policy + " --json ''",
                                   std::string("sim --seconds nan"),
                                   std::string("sim --stiffness nan"),
                                   std::string("sim --push nan,0,0@0.1"),
                                   std::string("bench observe --seconds nan"),
                                   "eval stand --policy " + *stand_ + " --seed -1",
                                   "eval stand --policy " + *stand_ + " --force-scale nan"}) {
    const Outcome outcome = Silc(wrong);
    EXPECT_EQ(outcome.code, 2) << wrong << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find("silc: "), std::string::npos) << wrong << "\n" << outcome.text;
  }
}

// The largest weight of a file, made 70,000: beyond half precision, fine in float. In the ONNX
// format a tensor's name is field 8 and its bytes are field 9 (tag 0x4a, length as a varint).
std::string WithALargeWeight(std::string file) {
  for (std::size_t at = 0; at + 8 < file.size(); ++at) {
    if (static_cast<unsigned char>(file[at]) != 0x4a) continue;
    std::size_t length = 0, k = at + 1;
    for (int shift = 0; k < file.size() && shift < 28; shift += 7, ++k) {
      length |= static_cast<std::size_t>(file[k] & 0x7f) << shift;
      if ((file[k] & 0x80) == 0) break;
    }
    if (length < 1000 || length % 4 != 0 || k + 1 + length > file.size()) continue;
    const float large = 70000;
    std::memcpy(&file[k + 1], &large, sizeof(large));
    return file;
  }
  ADD_FAILURE() << "no tensor found";
  return file;
}

TEST_F(Cli, HalfPrecisionHalvesTheFileAndRefusesWhatItCannotHold) {
  const std::string half = Path("half.onnx");
  const Outcome exported = Silc("export " + *stand_ + " " + half + " --half");
  ASSERT_EQ(exported.code, 0) << exported.text;
  // metadata does not shrink
  EXPECT_LT(fs::file_size(half), 0.7 * static_cast<double>(fs::file_size(*stand_)));
  EXPECT_EQ(Silc("observe " + half + " --rollout 0.1 --settle 0").code, 0);

  const std::string large = Path("large.onnx"), refused = Path("refused.onnx");
  WriteFileAtomically(large, WithALargeWeight(ReadFile(*stand_)));
  ASSERT_EQ(Silc("export " + large + " " + Path("float.onnx")).code, 0);
  const Outcome outcome = Silc("export " + large + " " + refused + " --half");
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_NE(outcome.text.find("--half: "), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("70000"), std::string::npos) << outcome.text;
  EXPECT_FALSE(fs::exists(refused));
}

// Ranges are for policies that are told which number holds.
TEST_F(Cli, RangesAreRefusedWhereNobodyIsToldANumber) {
  const std::string out = Path("ranges.onnx");
  Outcome outcome = Silc("export " + *stand_ + " " + out + " --mode command");
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_NE(outcome.text.find("gives ranges"), std::string::npos) << outcome.text;
  EXPECT_FALSE(fs::exists(out));
}

// A robot of four joints without hands, whatever it is given to.
TEST_F(Cli, RobotsThatDoNotFitAreTwoAndNeverAnAbort) {
  const TinyBipedFolder tiny;
  const std::string robot = " --robot " + tiny.robot_yaml();
  std::string row = "0,0,0.79,0,0,0,1";
  for (int j = 0; j < 29; ++j) row += ",0";
  WriteFileAtomically(Path("m.csv"), row + "\n" + row + "\n");
  const auto expect = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome = Silc(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find(part), std::string::npos) << arguments << "\n" << outcome.text;
  };
  expect("motion inspect " + Path("m.csv") + robot, "the robot has no actor 'lower'");
  expect("observe " + *stand_ + robot, "needs more than 6, this robot has 4");
  expect("observe " + *stand_ + robot + " --shake left-hand", "names no hands");
  // a point says its side, and whether the legs are in it
  for (const char* point : {"hand", "hand-on-base", "left_hand"}) {
    expect("observe " + *stand_ + " --shake " + point,
           "must be left-hand or right-hand (in the world), left-hand-on-base or");
  }
  expect("gains --mode compliance" + robot, "needs more than 6, this robot has 4");
  expect("gains --mode compliance --states none.npz", "none.npz");
  std::string boxes;
  for (int k = 0; k < 31; ++k) {
    boxes += "<geom type=\"box\" size=\"0.1 0.1 0.1\" pos=\"" + std::to_string(9 + k) + " 9 1\"/>";
  }
  const TinyBipedFolder cluttered(kTinyBipedYaml,
                                  Changed(kTinyBipedMjcf, "<worldbody>", "<worldbody>" + boxes));
  expect("sim --seconds 0.02 --robot " + cluttered.robot_yaml(), "more than 31 static shapes");
  fs::remove(Path("m.csv"));
}

// A budget of hands on a robot without hands: the same sentence from every verb, whether the user
// names the budget or the policy brings it.
TEST_F(Cli, ABudgetOfHandsOnARobotWithoutHandsIsTheSameErrorEverywhere) {
  const std::string source = SourcePath("robots/g1");
  std::string yaml = ReadFile(source + "/robot.yaml");
  const std::size_t hands = yaml.find("\nhands:\n") + 1;
  ASSERT_NE(hands, std::string::npos + 1);
  std::size_t end = yaml.find('\n', hands) + 1;
  while (end < yaml.size() && yaml[end] == ' ') end = yaml.find('\n', end) + 1;
  yaml.erase(hands, end - hands);
  fs::create_directories(Path("handless"));
  for (const auto& entry : fs::directory_iterator(source)) {
    fs::create_symlink(entry.path(), fs::path(Path("handless")) / entry.path().filename());
  }
  fs::remove(Path("handless/robot.yaml"));
  WriteFileAtomically(Path("handless/robot.yaml"), yaml);
  const std::string robot = " --robot " + Path("handless/robot.yaml");

  const std::string mine = Path("hands.onnx");
  ASSERT_EQ(Silc("export " + *stand_ + " " + mine + " --mode soft-hand").code, 0);
  const auto expect = [&](const std::string& verb, const std::string& more) {
    for (const auto& [policy, mode] : {std::pair(*stand_, " --mode soft-hand"), {mine, ""}}) {
      const std::string arguments = verb + policy + robot + mode + more;
      const Outcome outcome = Silc(arguments);
      EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.text;
      EXPECT_NE(outcome.text.find("robot.yaml: the budget bounds hands, which this robot does not "
                                  "have; --mode compliance bounds the centre of mass alone"),
                std::string::npos)
          << arguments << "\n"
          << outcome.text;
    }
    // and its centre of mass can be judged
    return verb + mine + robot + " --mode compliance" + more;
  };
  EXPECT_EQ(Silc(expect("observe ", "")).code, 0);
  expect("certify ", "");
  expect("eval com-impulse --episodes 1 --threads 1 --policy ", "");
  expect("deploy ", "");
#ifdef SILC_HAS_VIEW
  const std::string html = Path("handless.html");
  EXPECT_EQ(Silc(expect("view ", " --seconds 0.1 --export " + html)).code, 0);
  // the page offers what can be judged
  const std::string page = ReadFile(html);
  EXPECT_NE(page.find("\"hard-nullspace\""), std::string::npos);
  EXPECT_EQ(page.find("\"soft-hand\""), std::string::npos);
  fs::remove(html);
  expect("view ", " --states none.npz");  // before the states are read
#endif
  fs::remove_all(Path("handless"));
  fs::remove(mine);
}

#ifdef SILC_HAS_VIEW
// A token that an address cannot hold, or that can be guessed, is refused before any work begins.
TEST_F(Cli, AViewersTokenIsCheckedFirst) {
  for (const std::string token : {"x", "a+b", "'0123456789abcdef&b'"}) {
    const Outcome outcome = Silc("view --host 0.0.0.0 --port 0 --token " + token);
    EXPECT_EQ(outcome.code, 2) << token << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find("--token: must be 16 to 128 letters, digits, '-' or '_', or "
                                "'random', which makes such a one"),
              std::string::npos)
        << token << "\n"
        << outcome.text;
  }
}

// A run before its first checkpoint is waited for, until Ctrl-C; a recording of it cannot be had,
// and a folder that is no run never has a policy.
TEST_F(Cli, AViewerWaitsForTheFirstCheckpointOfARun) {
  const std::string run = Path("young_run"), words = Path("waiting.txt");
  fs::create_directories(run);
  Outcome outcome = Silc("view --port 0 " + run);
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_NE(outcome.text.find(run + ": is no run of silc train"), std::string::npos)
      << outcome.text;

  WriteFileAtomically(run + "/config.yaml", "");
  for (const std::string& recording :
       {" --export " + Path("young.html"), std::string(" --states none.npz")}) {
    outcome = Silc("view " + run + recording);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_NE(outcome.text.find(run + "/policy.onnx: is not there; a run writes it at its "
                                      "checkpoints"),
              std::string::npos)
        << outcome.text;
  }

  const pid_t viewer = StartSilc("view --port 0 " + run, {}, words);
  const std::string waits =
      "waiting for a first checkpoint: " + run + "/policy.onnx; Ctrl-C ends it\n";
  std::string said;
  for (int i = 0; i < 6000 && said != waits; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (fs::exists(words)) said = ReadFile(words);
  }
  EXPECT_EQ(said, waits);
  kill(viewer, SIGINT);
  int status = 0;
  waitpid(viewer, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << ReadFile(words);
  EXPECT_EQ(ReadFile(words), waits + "ended\n");
  fs::remove_all(run);
  fs::remove(words);
}
#endif

TEST_F(Cli, OutputThatCannotBeWrittenIsOne) {
  for (const std::string& arguments :
       {"observe " + *stand_,
        std::string("sim --seconds 0.02 --backend mujoco"),
        "eval com-impulse --episodes 1 --threads 1 --policy " + *stand_}) {
    EXPECT_EQ(Silc(arguments + " > /dev/full").code, 1) << arguments;
  }
}

// A table with FAULT in it is no success.
TEST_F(Cli, ASimulationThatDivergedIsOne) {
  const Outcome outcome = Silc("sim --seconds 0.2 --push 1e9,0,0@0.02");
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("FAULT"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("silc: g1: the simulation diverged"), std::string::npos)
      << outcome.text;
}

// Every verb, by the help of the one above it; how many there are.
int ExpectHelpNeedsSomewhereToGo(const std::string& verb) {
  const Outcome help = Silc(verb + " --help");
  EXPECT_EQ(help.code, 0) << verb << help.text;
  EXPECT_EQ(Silc(verb + " --help > /dev/full").code, 1) << verb;
  const std::string title = "\nSubcommands:\n";
  const std::size_t at = help.text.find(title);
  int count = 1;
  if (at == std::string::npos) return count;
  std::istringstream lines(help.text.substr(at + title.size()));
  // a name begins at the third column; what follows on the next lines is further right
  for (std::string line; std::getline(lines, line) && line.starts_with("  ");) {
    if (line[2] == ' ') continue;
    count += ExpectHelpNeedsSomewhereToGo(verb + " " + line.substr(2, line.find(' ', 2) - 2));
  }
  return count;
}

TEST_F(Cli, HelpThatCannotBeWrittenIsOne) {
  EXPECT_GT(ExpectHelpNeedsSomewhereToGo(""), 20) << "verbs, those of verbs included";
  EXPECT_EQ(Silc("--version > /dev/full").code, 1);
}

// Under a limit on memory: a sentence and 1, not an abort.
TEST_F(Cli, MemoryThatRunsOutIsTold) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow is beyond any
  const Outcome outcome =
      Silc("bench physics --envs 4194304 --threads 1 --steps 1 --repeats 1", "ulimit -v 6000000; ");
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("memory"), std::string::npos) << outcome.text;
#endif
}

TEST_F(Cli, EscapeSequencesOfAFileAreNotObeyed) {
  const Outcome outcome = Silc("observe \"$(printf 'x\\033[2J.onnx')\"");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.text.find('\033'), std::string::npos) << outcome.text;
}

// Names inside a policy are somebody else's words.
TEST_F(Cli, EscapeSequencesInsideAPolicyAreNotObeyed) {
  const std::string policy = Path("escapes.onnx");
  ASSERT_EQ(Silc("export " + *stand_ + " " + policy +
                 " --note silc_method=silc --note \"silc_mode=$(printf '\\033[2Jx')\"")
                .code,
            0);
  ASSERT_NE(ReadFile(policy).find("\033[2Jx"), std::string::npos) << "the file has it raw";
  for (const std::string& verb :
       {"observe " + policy, "eval com-impulse --episodes 1 --policy " + policy}) {
    const Outcome outcome = Silc(verb);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_EQ(outcome.text.find('\033'), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("[2Jx"), std::string::npos) << outcome.text;
  }
  // an operator that nobody knows is told with its name
  std::string file = ReadFile(*stand_);
  const std::size_t at = file.find("\x22\x04Gemm");  // a node's op_type: field 4, four bytes
  ASSERT_NE(at, std::string::npos);
  file.replace(at + 2, 4, "\033[2J");
  WriteFileAtomically(policy, file);
  const Outcome unknown = Silc("observe " + policy);
  EXPECT_EQ(unknown.code, 2) << unknown.text;
  EXPECT_EQ(unknown.text.find('\033'), std::string::npos) << unknown.text;
  EXPECT_NE(unknown.text.find("[2J"), std::string::npos) << unknown.text;
  fs::remove(policy);
}

// A slip in a layout of the user's own is mended there: the message names that file, not the
// policy, and what was meant.
TEST_F(Cli, AWrongNameInALayoutFileNamesThatFile) {
  const std::string source = SourcePath("");
  const std::string good = ReadFile(source + "/layouts/g1_loco.yaml");
  const std::string path = Path("mine.yaml");
  const auto line_of = [&](const std::string& text) {
    return std::to_string(1 + std::count(good.begin(), good.begin() + good.find(text), '\n'));
  };
  const auto expect = [&](const std::string& from,
                          const std::string& to,
                          bool everywhere,
                          const std::vector<std::string>& parts) {
    std::string text = good;
    std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    for (; at != std::string::npos;
         at = everywhere ? text.find(from, at + to.size()) : std::string::npos)
      text.replace(at, from.size(), to);
    WriteFileAtomically(path, text);
    const Outcome outcome =
        Silc("observe " + source + "/policies/g1_loco_baseline.onnx --pose stand --layout " + path);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.text.find(part), std::string::npos) << part << " in: " << outcome.text;
    EXPECT_EQ(outcome.text.find(".onnx"), std::string::npos) << outcome.text;
  };
  // a joint that the robot does not have
  expect("waist_roll_joint",
         "wasit_roll_joint",
         true,
         {path + ": joint 'wasit_roll_joint' is not one of the robot's 29 joints",
          "did you mean waist_roll_joint"});
  // in one place only: not one of the layout's own
  expect("  left_knee_joint: 0.3",
         "  left_kne_joint: 0.3",
         false,
         {path + ":" + line_of("  left_knee_joint: 0.3") + ": default_pose.left_kne_joint",
          "did you mean left_knee_joint"});
  expect("      left_shoulder_pitch_joint, left",
         "      left_sholder_pitch_joint, left",
         false,
         {path + ": ",
          "'left_sholder_pitch_joint' is not a joint of the layout",
          "did you mean left_shoulder_pitch_joint"});
  // a term made of something unknown
  expect("source: projected_gravity",
         "source: projected_gravty",
         false,
         {path + ":", "terms[9].source", "projected_gravty", "did you mean projected_gravity"});
  fs::remove(path);
}

TEST_F(Cli, AnObservationWithThePolicysWrongLayoutSaysWhatItExpected) {
  const Outcome outcome = Silc("observe " + *stand_ + " --layout falcon");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.text.find("575"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("87"), std::string::npos) << outcome.text;
}

TEST_F(Cli, ObservesAndWritesEverything) {
  const Outcome outcome =
      Silc("observe " + *stand_ + " --rollout 0.5 --settle 0.1 --json " + Path("o.json") +
           " --csv " + Path("o.csv") + " --plot " + Path("o.svg"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("Stiffness at the points"), std::string::npos);
  const auto json = nlohmann::json::parse(ReadFile(Path("o.json")));
  EXPECT_EQ(json["moments"].size(), 25u);
  EXPECT_TRUE(ReadFile(Path("o.svg")).ends_with("</svg>\n"));
  for (const char* name : {"o.json", "o.csv", "o.svg"}) fs::remove(Path(name));
}

TEST_F(Cli, AFallIsAFailureAndStillLeavesWholeFiles) {
  // the regulator was designed without latency: 200 ms of it bring the robot down
  const Outcome outcome =
      Silc("observe " + *stand_ + " --rollout 10 --latency 200 --json " + Path("fall.json"));
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("the robot fell"), std::string::npos) << outcome.text;
  const auto json = nlohmann::json::parse(ReadFile(Path("fall.json")));
  EXPECT_LT(json["moments"].size(), 500u);
  fs::remove(Path("fall.json"));
}

TEST_F(Cli, CheckTurnsAViolationIntoAFailure) {
  EXPECT_EQ(Silc("observe " + *stand_).code, 0);
  const Outcome outcome = Silc("observe " + *stand_ + " --check");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.text.find("the budget 'compliance' does not hold"), std::string::npos)
      << outcome.text;
}

// A policy without a budget is judged by one that nobody chose, so the verbs say which; where the
// file carries a budget or the user names one, there is nothing to say.
TEST_F(Cli, AMissingBudgetIsTold) {
  const std::string words = "no budget inside; judged by '";
  const std::string eval = "eval budget --episodes 1 --seconds 0.2 --policy ";
  const std::string inside = Path("inside.onnx");
  ASSERT_EQ(Silc("export " + *stand_ + " " + inside + " --mode high-stiff").code, 0);
  for (const std::string& run : {std::string("observe "), eval}) {
    const Outcome none = Silc(run + *stand_);
    EXPECT_NE(none.text.find(*stand_ + ": " + words + "compliance'\n"), std::string::npos)
        << none.text;
    for (const std::string& other : {*stand_ + " --mode soft", inside}) {
      const Outcome said = Silc(run + other);
      EXPECT_EQ(said.code, 0) << said.text;
      EXPECT_EQ(said.text.find(words), std::string::npos) << said.text;
    }
  }
  // beside one with a budget it is measured by that one
  const Outcome beside = Silc(eval + inside + " " + *stand_);
  EXPECT_NE(beside.text.find(*stand_ + ": " + words + "high-stiff'\n"), std::string::npos)
      << beside.text;
  fs::remove(inside);
}

// --check goes by the budget inside the policy: its numbers and its condition.
TEST_F(Cli, CheckGoesByTheBudgetInsideThePolicy) {
  const std::string policy = Path("inside.onnx");
  const auto check = [&](const std::string& mode) {
    const Outcome exported = Silc("export " + *stand_ + " " + policy + " --mode " + mode);
    EXPECT_EQ(exported.code, 0) << exported.text;
    EXPECT_NE(exported.text.find("budget " + mode + ": "), std::string::npos) << exported.text;
    const Outcome outcome = Silc("observe --check " + policy);
    EXPECT_NE(outcome.text.find("Budget " + mode + ": "), std::string::npos) << outcome.text;
    return outcome.code;
  };
  const std::string wide = "compliance,com=1e6,null_space=1e4,condition=two-sided";
  EXPECT_EQ(check(wide), 0);
  // so does eval, which says by which condition
  const Outcome measured = Silc("eval budget --episodes 1 --seconds 0.2 --policy " + policy);
  EXPECT_EQ(measured.code, 0) << measured.text;
  EXPECT_NE(measured.text.find("torque followed, two-sided"), std::string::npos) << measured.text;
  EXPECT_NE(measured.text.find("the budget's condition on K_s"), std::string::npos)
      << measured.text;
  // the regulator's stiffness is not symmetric: no disc is wide enough for it
  EXPECT_EQ(check("compliance,com=1e6,null_space=1e4"), 1);
  EXPECT_EQ(check("compliance,com=1e6,null_space=1,condition=two-sided"), 1);
  EXPECT_EQ(Silc("observe --check " + policy + " --mode " + wide).code, 0) << "the user's word";
  // a policy of the paper's method was bounded otherwise than it is judged: both verbs say so
  const Outcome noted = Silc("export " + *stand_ + " " + policy +
                             " --mode compliance --note silc_method=silc-paper "
                             "--note silc_bound=4");
  ASSERT_EQ(noted.code, 0) << noted.text;
  const Outcome observed = Silc("observe " + policy);
  EXPECT_NE(observed.text.find("Trained by (S7a) on K₁ at limit 4; judged on K_s with gravity "
                               "held, torque followed, disc"),
            std::string::npos)
      << observed.text;
  const Outcome evaluated = Silc("eval budget --episodes 1 --seconds 0.2 --policy " + policy);
  EXPECT_NE(evaluated.text.find("inside: trained by (S7a) on K₁ at limit 4; judged on K_s, disc"),
            std::string::npos)
      << evaluated.text;
  fs::remove(policy);
}

// Same seed, same bytes; a table, a plot, one line of JSON per policy.
TEST_F(Cli, EvalWritesTheSameResultTwice) {
  const std::string run = "eval com-impulse --episodes 1 --policy " + *stand_ + " --seed 3 --json ";
  const Outcome outcome = Silc(run + Path("e1.json") + " --plot " + Path("e.svg"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("survive"), std::string::npos) << outcome.text;
  ASSERT_EQ(Silc(run + Path("e2.json")).code, 0);
  EXPECT_EQ(ReadFile(Path("e1.json")), ReadFile(Path("e2.json")));
  const auto json = nlohmann::json::parse(ReadFile(Path("e1.json")));
  EXPECT_EQ(json["experiment"], "com-impulse");
  EXPECT_EQ(json["policy"], *stand_);
  EXPECT_EQ(json["policy_sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(json["seeds"], std::vector<int>{3});
  EXPECT_TRUE(ReadFile(Path("e.svg")).ends_with("</svg>\n"));
  for (const char* name : {"e1.json", "e2.json", "e.svg"}) fs::remove(Path(name));
}

// The names that --json writes, with what they mean.
TEST_F(Cli, EvalHelpListsWhatIsMeasured) {
  const Outcome outcome = Silc("eval walk --help");
  ASSERT_EQ(outcome.code, 0);
  const auto at = outcome.text.find("action_jitter ");
  ASSERT_NE(at, std::string::npos) << outcome.text;
  const std::string line = outcome.text.substr(at, outcome.text.find('\n', at) - at);
  EXPECT_NE(line.find("action jitter"), std::string::npos) << line;
  EXPECT_NE(line.find("1/s³"), std::string::npos) << line;
  EXPECT_NE(line.find("lower"), std::string::npos) << line;
}

TEST_F(Cli, EvalRefusesWhatItCannotBuild) {
  const auto expect = [](const std::string& arguments, const std::string& message) {
    const Outcome outcome = Silc("eval " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_NE(outcome.text.find(message), std::string::npos) << outcome.text;
  };
  const std::string policy = " --policy " + *stand_;
  expect("hand-load --policy none.onnx", "none.onnx: no such file");
  expect("hand-load" + policy + " --layout falcon", "575");
  expect("hand-load" + policy + " --mode complaince", "did you mean compliance?");
  expect("hand-load" + policy + " --layout falcon holosoma", "one, or one each");
  expect("com-impulse" + policy + " --seeds 1,1,1", "1 is there twice");
  expect("frequency" + policy + " --points hand_w", "there is no point 'hand_w'");
  expect("frequency" + policy + " --frequencies 1,25", "25 Hz is outside (0, 25)");
}

// A long comparison does not end with its first bad file.
TEST_F(Cli, EvalLeavesOutWhatItCannotMeasureAndGoesOn) {
  const std::string torn = Path("torn.onnx"), unknown = Path("unknown.onnx"),
                    lines = Path("left.json");
  WriteFileAtomically(torn, ReadFile(*stand_).substr(0, 500));
  ASSERT_EQ(
      Silc("export " + *stand_ + " " + unknown + " --note silc_method=silc --note silc_mode=my-own")
          .code,
      0);
  const std::string run = "eval com-impulse --episodes 1 --threads 1 --json " + lines;
  const Outcome some =
      Silc(run + " --policy " + torn + " " + *stand_ + " " + Path("none.onnx") + " " + unknown);
  EXPECT_EQ(some.code, 1) << some.text;
  for (const std::string& part :
       {"silc: " + torn, "silc: " + unknown, std::string("none.onnx: no such file")}) {
    const std::size_t at = some.text.find(part);
    ASSERT_NE(at, std::string::npos) << part << " in: " << some.text;
    EXPECT_NE(some.text.find("This policy is left out.", at), std::string::npos) << some.text;
  }
  EXPECT_NE(some.text.find("silc: 3 of 4 policies could not be measured: "), std::string::npos)
      << some.text;
  // what can be measured is measured as it is alone
  const std::string beside = ReadFile(lines);
  ASSERT_EQ(Silc(run + " --policy " + *stand_).code, 0);
  EXPECT_EQ(beside, ReadFile(lines));
  fs::remove(lines);
  // nothing to measure is asked wrongly, as with one policy
  const Outcome none = Silc(run + " --policy " + torn + " " + Path("none.onnx"));
  EXPECT_EQ(none.code, 2) << none.text;
  EXPECT_NE(none.text.find("2 of 2 policies could not be measured"), std::string::npos)
      << none.text;
  EXPECT_FALSE(fs::exists(lines));
  // a wrong flag is none of the policies' faults
  EXPECT_EQ(Silc(run + " --mode complaince --policy " + *stand_ + " " + torn).code, 2);
  for (const std::string& path : {torn, unknown}) fs::remove(path);
}

// Without --mode a policy is held against the budget it was trained under, and so is what stands
// beside it.
TEST_F(Cli, EvalTakesTheBudgetFromThePolicies) {
  const auto trained = [&](const std::string& name, const std::string& mode) {
    std::string path = Path(name);
    EXPECT_EQ(
        Silc("export " + *stand_ + " " + path + " --note silc_method=silc --note silc_mode=" + mode)
            .code,
        0);
    return path;
  };
  const std::string soft = trained("soft.onnx", "soft-hand"),
                    hard = trained("hard.onnx", "hard-hand");
  const std::string run = "eval com-impulse --episodes 1 --policy ";
  const Outcome one = Silc(run + *stand_ + " " + soft);
  EXPECT_EQ(one.code, 0);
  EXPECT_NE(one.text.find("budget soft-hand: CoM 200/200/20000 N/m"), std::string::npos)
      << one.text;
  EXPECT_NE(one.text.find("carries the name of its budget but not its numbers"), std::string::npos)
      << one.text;
  const Outcome two = Silc(run + soft + " " + hard);
  EXPECT_EQ(two.code, 2);
  EXPECT_NE(two.text.find("hard.onnx under hard-hand"), std::string::npos) << two.text;
  EXPECT_NE(Silc(run + soft + " " + hard + " --mode compliance").text.find("budget compliance"),
            std::string::npos);
  EXPECT_NE(Silc(run + *stand_).text.find("budget compliance"), std::string::npos);
  const std::string own = trained("own.onnx", "my-own");
  for (const std::string verb : {"observe ", run.c_str()}) {
    const Outcome outcome = Silc(verb + own);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.text.find("'my-own' that does not come with silc"), std::string::npos)
        << outcome.text;
  }
  EXPECT_NE(Silc("observe " + soft).text.find("The budget 'soft-hand'"), std::string::npos);
  // the same name and other numbers are two budgets
  const std::string near = Path("near.onnx");
  ASSERT_EQ(Silc("export " + soft + " " + near +
                 " --mode soft-hand,null_space=51 --note "
                 "silc_mode=soft-hand")
                .code,
            0);
  const Outcome named_alike = Silc(run + soft + " " + near);
  EXPECT_EQ(named_alike.code, 2);
  EXPECT_NE(named_alike.text.find("null space 51"), std::string::npos) << named_alike.text;
  fs::remove(near);
  for (const std::string& path : {soft, hard, own}) fs::remove(path);
}

TEST_F(Cli, NothingIsLeftBehindByWhatFailed) {
  WriteFileAtomically(Path("broken.onnx"), ReadFile(*stand_).substr(0, 500));
  const int before = NumFiles();
  EXPECT_EQ(Silc("observe " + Path("broken.onnx") + " --json " + Path("b.json")).code, 2);
  EXPECT_EQ(NumFiles(), before);
}

TEST_F(Cli, MotionInspectTellsAndPlotsOrSaysWhyNot) {
  const std::string file = SourcePath("silc/task/fuzz_corpus/three_frames.csv");
  const Outcome good = Silc("motion inspect " + file + " --plot " + Path("m.svg"));
  ASSERT_EQ(good.code, 0) << good.text;
  EXPECT_NE(good.text.find("3 frames at 30 per second"), std::string::npos) << good.text;
  EXPECT_NE(good.text.find("left_elbow_joint"), std::string::npos);
  EXPECT_TRUE(ReadFile(Path("m.svg")).ends_with("</svg>\n"));
  fs::remove(Path("m.svg"));
  WriteFileAtomically(Path("short.csv"), "1,2,3\n");
  const Outcome bad = Silc("motion inspect " + Path("short.csv"));
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.text.find("short.csv"), std::string::npos) << bad.text;
  fs::remove(Path("short.csv"));
}

// From a policy somebody else made to a page: its method is noted in the file, the experiment runs
// once, the second report finds it in the cache.
TEST_F(Cli, ReportWritesAPageAndRemembersResults) {
  const std::string folder = Path("report_policies"), out = Path("report");
  fs::create_directories(folder);
  const Outcome noted =
      Silc("export " + *stand_ + " " + folder + "/stand.onnx --note silc_method=baseline");
  ASSERT_EQ(noted.code, 0) << noted.text;
  const std::string report = "report --quick --no-pictures --experiments com-impulse --policies " +
                             folder + " --out " + out;
  const Outcome first = Silc(report), second = Silc(report);
  EXPECT_EQ(first.code, 0) << first.text;
  EXPECT_NE(first.text.find("1 results computed"), std::string::npos) << first.text;
  EXPECT_NE(first.text.find("wrote " + out + "/index.html"), std::string::npos) << first.text;
  EXPECT_NE(second.text.find("0 results computed, 1 from the cache"), std::string::npos)
      << second.text;
  EXPECT_NE(ReadFile(out + "/index.html").find("stand.onnx"), std::string::npos);

  // a policy that is left out is said at the end, and by the exit code; the page has the rest
  WriteFileAtomically(folder + "/torn.onnx", "no policy");
  const Outcome torn = Silc(report);
  EXPECT_EQ(torn.code, 1);
  EXPECT_NE(torn.text.find("wrote " + out + "/index.html\nsilc: the page is not whole:\n  - " +
                           folder + "/torn.onnx: left out: "),
            std::string::npos)
      << torn.text;
  EXPECT_NE(ReadFile(out + "/index.html").find("stand.onnx"), std::string::npos);
  fs::remove(folder + "/torn.onnx");

  // so is a recorded result
  fs::create_directories(folder + "/seeds");
  WriteFileAtomically(folder + "/seeds/index.yaml",
                      "- {file: gone.json, method: baseline, seed: 2}\n");
  const Outcome recorded = Silc(report);
  EXPECT_EQ(recorded.code, 1);
  EXPECT_NE(recorded.text.find("silc: the page is not whole:\n  - left out: "), std::string::npos)
      << recorded.text;
  fs::remove_all(folder);
  fs::remove_all(out);
}

TEST_F(Cli, BenchPrintsJsonLines) {
  const Outcome outcome = Silc("bench observe --seconds 0.01");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  std::istringstream lines(outcome.text);
  std::string line;
  std::vector<std::string> names;
  while (std::getline(lines, line)) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json["unit"], "us");
    EXPECT_GT(json["value"].get<double>(), 0);
    names.push_back(json["name"]);
  }
  EXPECT_NE(std::find(names.begin(), names.end(), "observe.us"), names.end());
}

}  // namespace
}  // namespace silc
