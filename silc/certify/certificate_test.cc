// SPDX-License-Identifier: Apache-2.0
#include "silc/certify/certificate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/test_paths.h"
#include "silc/certify/certify_run.h"
#include "silc/observe/choose_budget.h"
#include "silc/observe/load_policy.h"
#include "silc/observe/run.h"

namespace silc {
namespace {

const RobotModel& G1() {
  static const RobotModel robot = RobotModel::Load(SourcePath("robots/g1"));
  return robot;
}

// `asked`: the recorder says which moments are observed; else all are. `observed` counts them.
std::vector<KeptMoment> Record(const Policy& policy,
                               const BudgetSpec& spec,
                               double vx,
                               int count,
                               ObservationTable* table,
                               bool asked = false,
                               int* observed = nullptr) {
  LoopOptions options;
  options.servo = ServoFor(G1(), policy, "");
  options.command.lin_vel[0] = vx;
  options.command.walk = vx != 0 ? 1 : 0;
  MomentRecorder recorder(policy, spec, options.servo, count);
  *table = recorder.table();
  ObservationOptions observation;
  observation.budget.spec = spec;
  observation.random_directions = 0;
  observation.on_contact = [&](const Moment& moment, const ContactKinematics& contact) {
    recorder.Add(moment, contact);
    if (observed != nullptr) ++*observed;
  };
  if (asked) observation.wanted = [&] { return recorder.Wants(); };
  ObserveRollout(ClosedLoop(G1(), policy, options), 0.6, 0.4, observation);
  return recorder.Take();
}

// The function that is bounded is the σ that the observer shows: every channel and both conditions,
// with a band, on one and on two feet.
TEST(Certificate, SigmaIsTheObservers) {
  const Policy policy = LoadPolicy(SourcePath("policies/g1_loco_silc_compliance.onnx"), "", G1());
  const DenseNetwork network = CertifiableNetwork(policy, BudgetSpec(), "policy");
  int compared = 0;
  for (int trial = 0; trial < 4; ++trial) {
    BudgetSpec spec;
    spec.com = Eigen::Vector3d(600, 500, 20000);
    spec.gravity = trial % 2 == 0 ? Channel::kHeld : Channel::kFollowed;
    spec.torque = trial == 3 ? Channel::kHeld : Channel::kFollowed;
    spec.condition = trial == 2 ? Condition::kTwoSided : Condition::kDisc;
    if (trial == 1) {
      spec.hand[0] = spec.hand[1] = Eigen::Vector3d(300, 400, 500);
      spec.hand_floor = Eigen::Vector3d(0.1, 0.2, 0);
      spec.weight = NullWeight::kServo;
      spec.null_stiffness = 0.5;
    }
    ObservationTable table;
    for (const KeptMoment& moment : Record(policy, spec, trial < 2 ? 0 : 0.5, 8, &table)) {
      if (moment.status != StiffnessStatus::kOk) continue;
      const SigmaProblem problem(network, moment.function, moment.observation);
      // the observer's Jacobians are float32
      EXPECT_NEAR(problem.at_centre(), moment.sigma, 2e-4 * moment.sigma) << trial;
      ++compared;
    }
  }
  EXPECT_GT(compared, 15);
}

TEST(Certificate, BoundsAnIntervalAroundEveryMomentAndSaysHowLoosely) {
  const Policy policy = LoadPolicy(SourcePath("policies/quick/g1_stand_silc.onnx"), "", G1());
  BudgetSpec spec;
  spec.com = Eigen::Vector3d(3000, 3000, 60000);
  spec.null_stiffness = 300;
  spec.gravity = Channel::kHeld;
  const DenseNetwork network = CertifiableNetwork(policy, spec, "policy");
  ObservationTable table;
  const std::vector<KeptMoment> moments = Record(policy, spec, 0, 2, &table);
  ASSERT_EQ(moments.size(), 2u);
  CertifyOptions options;
  options.radii = {.joint_pos = 0.01, .joint_vel = 0.1, .torque = 0.1};
  options.samples = 20;
  options.bisections = 3;
  options.threads = 2;
  const Certificate certificate =
      Certify(network, table, policy.layout().action.clip, moments, options, {});
  ASSERT_EQ(certificate.moments.size(), 2u);
  for (const MomentCertificate& m : certificate.moments) {
    ASSERT_EQ(m.status, StiffnessStatus::kOk);
    EXPECT_LE(m.sigma, std::max(m.sampled, m.sought));
    EXPECT_LE(std::max(m.sampled, m.sought), m.upper);
    // a box that is certified is not seen to break
    EXPECT_LT(m.certified_box, m.broken_box);
    EXPECT_EQ(m.certified_box >= 1, m.upper <= 1);
  }
  EXPECT_GE(certificate.looseness, 1);
  const auto json = nlohmann::json::parse(CertificateJson(certificate, options));
  EXPECT_EQ(json["moments"].size(), 2u);
  EXPECT_EQ(json["box"]["joint_pos"], 0.01);
  EXPECT_NEAR(json["moments"][0]["upper"].get<double>(), certificate.moments[0].upper, 1e-12);
  EXPECT_NE(CertificateText(certificate, options).find("2 of 2 moments judged"), std::string::npos);
}

// What the quick start is told: every moment keeps the budget of the file at the whole noise box.
TEST(Certificate, TheQuickPolicyIsCertifiedAtTheWholeNoiseBox) {
  const std::string path = SourcePath("policies/quick/g1_stand_silc.onnx");
  TrainingNotes notes;
  Policy policy = LoadPolicy(path, "", G1(), &notes);
  const UserBudget budget = ChooseBudget({}, {}, notes, path, G1(), &policy).judged;
  EXPECT_EQ(budget.spec.condition, Condition::kDisc);
  LoopOptions loop;
  loop.servo = ServoFor(G1(), policy, "");
  CertifyRun how;
  how.moments = 4;
  CertifyOptions options;
  options.radii = NoiseOf("", notes, path);
  EXPECT_EQ(options.radii.joint_pos, 0.01);
  EXPECT_EQ(options.radii.joint_vel, 0.1);
  options.samples = 100;
  options.bisections = 4;
  options.threads = 2;
  const Certificate certificate =
      CertifyPolicy(G1(), policy, budget, loop, how, options, path).certificate;
  EXPECT_EQ(certificate.judged, 4);
  EXPECT_EQ(certificate.certified, 1);
  EXPECT_GE(certificate.largest_box, 1.15);
  for (const MomentCertificate& m : certificate.moments) {
    EXPECT_GE(m.upper, std::max(m.sampled, m.sought));
    EXPECT_LE(m.upper, m.sigma + 0.02);
  }
}

// The box of `silc certify` is the noise of the task's file, not a copy of it in code.
TEST(Certificate, ANoiseBoxIsWhatTheTaskFileSays) {
  const std::string path = testing::TempDir() + "/noisy_task.yaml";
  WriteFileAtomically(path,
                      "title: noisy\nnoise: {joint_pos: 0.05, joint_vel: 0.7, torque: 0, "
                      "base_ang_vel: 0.2, gravity: 0.03}\n");
  const BoxRadii radii = NoiseOf(path, {}, "policy");
  EXPECT_EQ(radii.joint_pos, 0.05);
  EXPECT_EQ(radii.joint_vel, 0.7);
  EXPECT_EQ(radii.torque, 0);
  EXPECT_EQ(radii.base_ang_vel, 0.2);
  EXPECT_EQ(radii.gravity, 0.03);
  EXPECT_GT(NoiseOf("", {}, "policy").joint_pos, 0) << "the default task has sensors with noise";
  EXPECT_THROW(NoiseOf("g1-locoo", {}, "policy"), ConfigError);

  // an error that stays for an episode is one more
  WriteFileAtomically(path, "title: biased\nnoise: {joint_pos: 0.01, joint_pos_bias: 0.02}\n");
  EXPECT_NEAR(NoiseOf(path, {}, "policy").joint_pos, 0.03, 1e-9);
  std::filesystem::remove(path);
}

// A preset changes the noise of its task, and the policy says so; the task is asked when it does
// not, or when the user does.
TEST(Certificate, ANoiseBoxIsWhatThePolicyWasTrainedWith) {
  TrainingNotes notes;
  notes.task = "g1-stand";
  const BoxRadii of_task = NoiseOf("", notes, "policy");
  EXPECT_GT(of_task.torque, 0);
  notes.noise = "joint_vel=0.2,base_ang_vel=0.25,gravity=0.03";
  const BoxRadii own = NoiseOf("", notes, "policy");
  EXPECT_EQ(own.joint_pos, 0) << "what is not named was exact";
  EXPECT_EQ(own.joint_vel, 0.2);
  EXPECT_EQ(own.base_ang_vel, 0.25);
  EXPECT_EQ(own.gravity, 0.03);
  EXPECT_EQ(NoiseOf("g1-stand", notes, "policy").torque, of_task.torque);
  notes.noise = "none";
  EXPECT_EQ(NoiseOf("", notes, "policy").joint_pos, 0);
  notes.noise = "joint_pos=-1";
  try {
    NoiseOf("", notes, "mine.onnx");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()).find("mine.onnx: silc_noise: "), 0u) << error.what();
  }
}

TEST(Certificate, BoxesHaveTheUnitOfTheSensor) {
  const Policy policy = LoadPolicy(SourcePath("policies/quick/g1_stand_silc.onnx"), "", G1());
  const ObservationTable table =
      CompileObservation(policy.layout(), policy.robot().joints, policy.layout().name);
  BoxRadii radii = ParseBox("joint_pos=0.02,joint_vel=0.3,torque=0,gravity=0.05", {});
  const Eigen::VectorXd centre = Eigen::VectorXd::Zero(table.width());
  for (const bool together : {false, true}) {
    radii.frames_together = together;
    const ObservationBox box = MakeBox(table, centre, radii, 2);
    std::vector<int> element_of(static_cast<std::size_t>(box.symbols), -1);
    for (const ObservationBox::Entry& entry : box.entries) {
      const int element = table.slots[static_cast<std::size_t>(entry.input)].element;
      const auto& term = table.entries[static_cast<std::size_t>(element)];
      double radius = 0;
      if (term.source == TermSource::kJointPos) radius = 0.02;
      if (term.source == TermSource::kJointVel) radius = 0.3;
      if (term.source == TermSource::kProjectedGravity) radius = 0.05;
      EXPECT_DOUBLE_EQ(entry.radius, 2 * term.scale * radius);
      EXPECT_GT(radius, 0);
      // a symbol is one number of the observation, or one sensor in all frames
      int& owner = element_of[static_cast<std::size_t>(entry.symbol)];
      EXPECT_TRUE(owner == -1 || (together && owner == element));
      owner = element;
    }
    EXPECT_EQ(static_cast<int>(box.entries.size()) > box.symbols, together && table.frames > 1);
  }
}

TEST(Certificate, WrongBoxesAreAnswered) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      ParseBox(text, {});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("joint_pos=0.01,gravity=0"), "");
  EXPECT_EQ(message("joint_po=0.01"),
            "--box joint_po=0.01: unknown quantity; did you mean joint_pos?");
  EXPECT_EQ(message("gravity=0,joint_pos=0.01,gravity=1"), "--box: gravity is there twice");
  for (const char* wrong : {"gravity", "gravity=", "gravity=-1", "gravity=nan", "gravity=0.1x"}) {
    EXPECT_NE(message(wrong).find("a radius is a number of at least 0 [1]"), std::string::npos)
        << wrong << ": " << message(wrong);
  }
}

// A network that is none of ours is refused by the name of what it has.
TEST(Certificate, OtherGraphsAreRefusedByTheirOperator) {
  const Policy mlp = LoadPolicy(SourcePath("policies/quick/g1_stand_silc.onnx"), "", G1());
  const int inputs = mlp.mlp()->inputs, outputs = mlp.mlp()->outputs();
  GraphBuilder builder;
  const ValueId x = builder.AddInput("obs", {1, inputs});
  const ValueId w =
      builder.AddConstant("w",
                          {inputs, outputs},
                          std::vector<float>(static_cast<std::size_t>(inputs * outputs), 0.01f));
  const ValueId y = builder.AddMatMul("product", x, w);
  builder.AddOutput("actions", builder.AddSoftmax("attention", y, {1}));
  const Policy other(std::make_shared<const Graph>(builder.Finish()), mlp.layout(), mlp.robot());
  const auto message = [](const Policy& policy, const BudgetSpec& spec) -> std::string {
    try {
      CertifiableNetwork(policy, spec, "other.onnx");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(other, {}),
            "other.onnx: cannot be certified: its graph is no MLP; operator Softmax ('attention') "
            "has no bound here");
  BudgetSpec one_sided;
  one_sided.condition = Condition::kOneSided;
  EXPECT_NE(message(mlp, one_sided).find("the one-sided condition has no bound"),
            std::string::npos);
  EXPECT_EQ(message(mlp, {}), "");
}

// Moments are spread over the whole run, however many there were.
TEST(Certificate, RecorderKeepsMomentsEvenlySpread) {
  const Policy policy = LoadPolicy(SourcePath("policies/quick/g1_stand_silc.onnx"), "", G1());
  BudgetSpec spec;
  ObservationTable table;
  const std::vector<KeptMoment> moments = Record(policy, spec, 0, 5, &table);
  ASSERT_EQ(moments.size(), 5u);
  EXPECT_NEAR(moments.front().time, 0.4, 1e-6);
  EXPECT_GT(moments.back().time, 0.75);
  for (std::size_t i = 1; i < moments.size(); ++i) {
    EXPECT_GT(moments[i].time, moments[i - 1].time);
  }
}

// What nobody keeps need not be observed: the moments that are kept are the same ones, bit for bit.
TEST(Certificate, OnlyMomentsThatAreKeptAreObserved) {
  const Policy policy = LoadPolicy(SourcePath("policies/quick/g1_stand_silc.onnx"), "", G1());
  BudgetSpec spec;
  ObservationTable table;
  for (const int count : {2, 5}) {
    int all = 0, wanted = 0;
    const std::vector<KeptMoment> a = Record(policy, spec, 0, count, &table, false, &all);
    const std::vector<KeptMoment> b = Record(policy, spec, 0, count, &table, true, &wanted);
    EXPECT_EQ(all, 30) << count;
    EXPECT_LE(wanted, 20) << count;
    ASSERT_EQ(a.size(), b.size()) << count;
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].time, b[i].time) << count;
      EXPECT_EQ(a[i].sigma, b[i].sigma) << count;
      EXPECT_TRUE((a[i].observation.array() == b[i].observation.array()).all()) << count;
    }
  }
}

}  // namespace
}  // namespace silc
