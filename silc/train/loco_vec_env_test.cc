// SPDX-License-Identifier: Apache-2.0
#include "silc/train/loco_vec_env.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/rng.h"

namespace silc {
namespace {

constexpr int kActorObs = 655, kCriticObs = 152;  // of layouts/g1_loco.yaml

constexpr int kRobots = 70;  // the last chunk is ragged

LocoVecEnvOptions Options(bool samples = true) {
  LocoVecEnvOptions options;
  options.env.num_envs = kRobots;
  options.env.threads = 2;
  options.env.seed = 5;
  options.env.samples = samples;
  options.env.config.episode.length = 1;  // time-outs within the test
  return options;
}

// A learner's memory.
struct Buffers {
  std::vector<float> obs, critic, reward, com, hand_on_base, closing, gravity;
  std::vector<ContactMode> mode;
  std::vector<std::uint8_t> done, timed_out;
  Buffers()
      : obs(kRobots * kActorObs, 7e7f),
        critic(kRobots * kCriticObs, 7e7f),
        reward(kRobots * 2),
        com(kRobots * 3 * kTaskJoints),
        hand_on_base(kRobots * 6 * kTaskJoints),
        closing(kRobots * 6 * kTaskJoints),
        gravity(kRobots * 3 * kTaskJoints),
        mode(kRobots),
        done(kRobots),
        timed_out(kRobots) {}
  ObservationView next(bool stiffness = true) {
    ObservationView view{.obs = obs.data(),
                         .critic_obs = critic.data(),
                         .obs_stride = kActorObs,
                         .critic_obs_stride = kCriticObs};
    if (stiffness) {
      view.stiffness = {
          mode.data(), com.data(), hand_on_base.data(), closing.data(), gravity.data()};
    }
    return view;
  }
  OutcomeView outcome() { return {reward.data(), done.data(), timed_out.data()}; }
};

std::vector<float> Actions(std::uint32_t step, double size) {
  std::vector<float> actions(kRobots * kTaskJoints);
  Rng rng(3, 0, step);
  for (float& a : actions) a = static_cast<float>(size * rng.Normal());
  return actions;
}

// Everything lands where vec_env.h says, checked element by element against a twin's own view.
TEST(LocoVecEnv, HandsOverWhatTheTaskProduced) {
  LocoVecEnv vec(Options());
  LocoEnvOptions twin_options = Options().env;
  twin_options.threads = 1;
  LocoEnv twin(twin_options);
  Buffers b;
  vec.Reset(b.next());
  EXPECT_EQ(b.mode[3], kModeUnknown);
  int ended = 0, fell = 0, closed = 0;
  for (std::uint32_t t = 0; t < 80; ++t) {
    const auto actions = Actions(t, 1.5);
    const LocoStep step = twin.Step(actions);
    vec.Step(actions.data(), b.outcome(), b.next());
    for (int e = 0; e < kRobots; ++e) {
      ASSERT_EQ(b.mode[e], step.contact_mode[e]);
      ASSERT_EQ(b.done[e], step.flag[e] != kRunning);
      ASSERT_EQ(b.timed_out[e], step.flag[e] == kTimedOut);
      ASSERT_EQ(b.reward[2 * e], step.reward[2 * e]);
      ASSERT_EQ(b.reward[2 * e + 1], step.reward[2 * e + 1]);
      for (int i = 0; i < kActorObs; ++i) {
        ASSERT_EQ(b.obs[e * kActorObs + i], step.obs[e * kActorObs + i]);
      }
      for (int i = 0; i < kCriticObs; ++i) {
        ASSERT_EQ(b.critic[e * kCriticObs + i], step.critic_obs[e * kCriticObs + i]);
      }
      const auto expect = [&](const std::vector<float>& got, int first_row, int rows) {
        for (int i = 0; i < rows * kTaskJoints; ++i) {
          ASSERT_EQ(got[e * rows * kTaskJoints + i],
                    step.jacobian[e * SampleSize(kTaskJoints) + first_row * kTaskJoints + i]);
        }
      };
      expect(b.com, SampleRows::kCom, 3);
      expect(b.hand_on_base, SampleRows::kHandOnBase, 6);
      expect(b.closing, SampleRows::kClosing, 6);
      expect(b.gravity, SampleRows::kGravity, 3);
      ended += b.timed_out[e];
      fell += b.done[e] && !b.timed_out[e];
      closed += b.mode[e] == ContactMode::kDoubleSupport;
    }
  }
  EXPECT_GT(ended, 10);
  EXPECT_GT(fell, 10);
  EXPECT_GT(closed, 10);
}

TEST(LocoVecEnv, ALostRobotIsNoFallAndIsLogged) {
  LocoVecEnvOptions options = Options(false);
  options.diverged_log =
      (std::filesystem::path(::testing::TempDir()) / "silc_diverged.jsonl").string();
  std::filesystem::remove(options.diverged_log);
  LocoVecEnv vec(options);
  Buffers b;
  vec.Reset(b.next(false));
  vec.Step(Actions(0, 0.1).data(), b.outcome(), b.next(false));
  vec.env().physics().view(Field::kQvel)(9, 12) = std::numeric_limits<float>::infinity();
  const auto actions = Actions(1, 0.1);
  vec.Step(actions.data(), b.outcome(), b.next(false));
  EXPECT_EQ(b.done[9], 1);
  EXPECT_EQ(b.timed_out[9], 1);
  EXPECT_EQ(b.reward[18], 0);
  EXPECT_EQ(b.reward[19], 0);
  for (const float x : b.obs) ASSERT_TRUE(std::isfinite(x));
  vec.TakeMetrics();
  vec.TakeMetrics();  // the second has nothing new to say
  const std::string log = ReadFile(options.diverged_log);
  ASSERT_EQ(std::count(log.begin(), log.end(), '\n'), 1);
  const auto line = nlohmann::json::parse(log);
  EXPECT_EQ(line["env"], 9);
  EXPECT_EQ(line["seed"], 5);
  EXPECT_EQ(line["action"][4].get<float>(), actions[9 * kTaskJoints + 4]);
  std::filesystem::remove(options.diverged_log);
}

TEST(LocoVecEnv, SavedAndLoadedGoesOn) {
  LocoVecEnv a(Options()), other(Options());
  Buffers ba, bb;
  a.Reset(ba.next());
  other.Reset(bb.next());
  for (std::uint32_t t = 0; t < 10; ++t) a.Step(Actions(t, 0.5).data(), ba.outcome(), ba.next());
  other.LoadState(a.SaveState());
  for (std::uint32_t t = 10; t < 30; ++t) {
    a.Step(Actions(t, 0.5).data(), ba.outcome(), ba.next());
    other.Step(Actions(t, 0.5).data(), bb.outcome(), bb.next());
    ASSERT_EQ(ba.obs, bb.obs) << t;
    ASSERT_EQ(ba.reward, bb.reward) << t;
    ASSERT_EQ(ba.hand_on_base, bb.hand_on_base) << t;
  }
}

TEST(LocoVecEnv, TheScoreIsTrackingTimesTheChanceNotToFall) {
  LocoStats stats;
  TaskConfig config;
  EXPECT_TRUE(std::isnan(LocoScore(stats, config)));
  stats.steps = 100;
  stats.seconds = 2;
  stats.term[static_cast<int>(RewardTerm::kTrackingAngVel)] = 0.05;
  stats.term[static_cast<int>(RewardTerm::kTrackingUpperBodyDofs)] = 0.07;
  stats.term[static_cast<int>(RewardTerm::kPenaltyUpperBodyTorques)] = -0.5;  // style
  EXPECT_DOUBLE_EQ(LocoScore(stats, config), 0.12);
  // one fall in 40 s of robots: half an expected fall in an episode of 20 s
  stats.steps = 2000;
  stats.seconds = 40;
  stats.failures = 1;
  EXPECT_NEAR(LocoScore(stats, config), 0.12 * std::exp(-0.5), 1e-12);
}

TEST(LocoVecEnv, MetricsNameWhatIsKnown) {
  LocoVecEnvOptions options = Options(false);
  options.env.config.commands.walk_prob = 0;
  LocoVecEnv vec(options);
  Buffers b;
  vec.Reset(b.next(false));
  vec.Step(Actions(0, 0.1).data(), b.outcome(), b.next(false));
  bool walks = false, tracks = false, unweighted = false;
  for (const auto& [name, value] : vec.TakeMetrics()) {
    walks = walks || name == "task/velocity_error";
    tracks = tracks || name == "reward/tracking_ang_vel";
    unweighted = unweighted || name == "reward/feet_air_time";  // weight 0
  }
  EXPECT_FALSE(walks);
  EXPECT_TRUE(tracks);
  EXPECT_FALSE(unweighted);
  EXPECT_TRUE(std::isfinite(vec.TaskScore()));
}

float ForceScale(const Curricula& curricula, std::size_t robot) {
  float scales[2];
  std::memcpy(scales, &curricula.of_robots.at(robot * sizeof(scales)), sizeof(scales));
  return scales[0];
}

// A run without its robots' states, or with more robots, goes on as hard as it was.
TEST(LocoVecEnv, CurriculaOutliveAReset) {
  LocoVecEnvOptions options = Options(false);
  options.env.config.curriculum.force_start = 0.5;
  options.env.config.curriculum.force_step = 0.125;
  LocoVecEnv first(options);
  Buffers b;
  EXPECT_TRUE(first.SaveCurricula().of_robots.empty()) << "nothing has begun";
  first.Reset(b.next(false));
  for (std::uint32_t t = 0; t < 80; ++t) {
    first.Step(Actions(t, 1.5).data(), b.outcome(), b.next(false));
  }
  const Curricula grown = first.SaveCurricula();
  int moved = 0;
  for (std::size_t i = 0; i < kRobots; ++i) moved += ForceScale(grown, i) != 0.5f;
  ASSERT_GT(moved, kRobots / 4);

  LocoVecEnv second(options);
  second.LoadCurricula(grown);
  EXPECT_EQ(second.SaveCurricula().of_robots, grown.of_robots) << "before its first episode";
  second.Reset(b.next(false));
  EXPECT_EQ(second.SaveCurricula().of_robots, grown.of_robots);
  EXPECT_EQ(second.SaveCurricula().shared, grown.shared);

  // fewer were saved: the rest takes theirs over again
  LocoVecEnv third(options);
  third.LoadCurricula({grown.shared, grown.of_robots.substr(0, 20 * 2 * sizeof(float))});
  third.Reset(b.next(false));
  const Curricula repeated = third.SaveCurricula();
  for (std::size_t i = 0; i < kRobots; ++i) {
    EXPECT_EQ(ForceScale(repeated, i), ForceScale(grown, i % 20)) << i;
  }
}

TEST(LocoVecEnv, BytesThatAreNoCurriculaAreRefused) {
  LocoVecEnv vec(Options(false));
  Buffers b;
  vec.Reset(b.next(false));
  const Curricula good = vec.SaveCurricula();
  const auto refused = [&](const Curricula& bad) {
    vec.LoadCurricula(bad);
    EXPECT_THROW(vec.Reset(b.next(false)), RunError);
  };
  refused({good.shared + "x", good.of_robots});
  refused({good.shared, ""});
  refused({good.shared, good.of_robots + "x"});
  Curricula bad = good;
  const float nan = std::numeric_limits<float>::quiet_NaN(), much = 1e9f;
  std::memcpy(&bad.of_robots[8], &nan, sizeof(nan));
  refused(bad);
  bad = good;
  std::memcpy(&bad.shared[4], &much, sizeof(much));  // the scale of the penalties
  refused(bad);
  vec.LoadCurricula(good);
  vec.Reset(b.next(false));
}

TEST(LocoVecEnv, UnknownBackendsAreNamed) {
  LocoVecEnvOptions options = Options();
  options.env.backend = "bacth";
  try {
    MakeLocoVecEnv(options);
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean batch"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace silc
