// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "silc/base/rng.h"
#include "silc/learn/vec_env.h"

namespace silc::test {

/// Joints with a servo (S1) and a load: q̈ = kp (α a − q) − kd q̇ + d, unit inertia. The policy is
/// paid for holding q at zero against a load d it does not see, so the task alone makes it stiff.
/// Two agents with half of the joints each; two frames of (q, q̇/10, previous action), newest last.
class SpringEnv : public VecEnv {
 public:
  static constexpr int kJoints = 4, kFrame = 3 * kJoints, kObs = 2 * kFrame, kEpisode = 60;
  static constexpr double kKp = 20, kKd = 6, kAlpha = 0.25, kDt = 0.02;

  explicit SpringEnv(int num_envs, std::uint64_t seed = 1) : seed_(seed), robots_(num_envs) {
    spec_.num_envs = num_envs;
    spec_.obs_dim = spec_.critic_obs_dim = kObs;
    spec_.critic_obs_dim = kObs + kJoints;  // the critic sees the load
    spec_.agents = {{"lower", kJoints / 2}, {"upper", kJoints / 2}};
    spec_.stiffness = true;
    StiffnessSpec& s = spec_.stiffness_spec;
    s.servo.kp.setConstant(kJoints, kKp);
    s.servo.kd.setConstant(kJoints, kKd);
    s.servo.alpha.setConstant(kJoints, kAlpha);
    s.budget.weight = NullWeight::kServo;
    s.budget.null_stiffness = 0.8;  // four fifths of the servo's own stiffness
    for (int frame = 0; frame < 2; ++frame) {
      for (int j = 0; j < kJoints; ++j) {
        s.q.push_back({frame * kFrame + j, j, 1.f});
        s.a.push_back({frame * kFrame + 2 * kJoints + j, j, 1.f});
        if (frame == 1) s.q0.push_back(s.q.back());
      }
    }
  }

  const EnvSpec& spec() const override { return spec_; }
  /// What the environment says of itself, to be changed before a trainer looks at it.
  StiffnessSpec& stiffness_spec() { return spec_.stiffness_spec; }

  void Reset(const ObservationView& first) override {
    for (std::size_t i = 0; i < robots_.size(); ++i) {
      Begin(i);
      // episodes end at different times
      robots_[i].age = static_cast<int>(i) % kEpisode;
    }
    Observe(first);
  }

  void Step(const float* action, const OutcomeView& outcome, const ObservationView& next) override {
    for (std::size_t i = 0; i < robots_.size(); ++i) {
      Robot& r = robots_[i];
      double reward[2] = {0, 0};
      bool fallen = false;
      for (int j = 0; j < kJoints; ++j) {
        const double a = std::fmin(20.0, std::fmax(-20.0, double(action[i * kJoints + j])));
        for (int sub = 0; sub < 4; ++sub) {
          const double acceleration = kKp * (kAlpha * a - r.q[j]) - kKd * r.qd[j] + r.load[j];
          r.qd[j] += acceleration * kDt / 4;
          r.q[j] += r.qd[j] * kDt / 4;
        }
        r.a[j] = a;
        reward[j / (kJoints / 2)] += 1 - std::fabs(r.q[j]) / 0.5;
        fallen = fallen || std::fabs(r.q[j]) > 3;
      }
      const bool late = ++r.age >= kEpisode;
      outcome.reward[2 * i] = static_cast<float>(reward[0]);
      outcome.reward[2 * i + 1] = static_cast<float>(reward[1]);
      outcome.done[i] = fallen || late;
      outcome.timed_out[i] = late && !fallen;
      if (outcome.done[i]) Begin(i);
    }
    Observe(next);
  }

  std::string SaveState() const override {
    return {reinterpret_cast<const char*>(robots_.data()), robots_.size() * sizeof(Robot)};
  }
  void LoadState(std::string_view bytes) override {
    std::memcpy(robots_.data(), bytes.data(), bytes.size());
  }

 private:
  struct Robot {
    double q[kJoints], qd[kJoints], a[kJoints], load[kJoints];
    float past[kFrame];  // the frame before
    int age, episode;
  };

  void Begin(std::size_t i) {
    Robot& r = robots_[i];
    const int episode = r.episode + 1;
    r = {};
    r.episode = episode;
    Rng rng(seed_, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(episode));
    for (int j = 0; j < kJoints; ++j) {
      r.q[j] = rng.Uniform(-0.2, 0.2);
      r.load[j] = rng.Uniform(-15, 15);
    }
  }

  void Observe(const ObservationView& view) {
    for (std::size_t i = 0; i < robots_.size(); ++i) {
      Robot& r = robots_[i];
      float frame[kFrame];
      for (int j = 0; j < kJoints; ++j) {
        frame[j] = static_cast<float>(r.q[j]);
        frame[kJoints + j] = static_cast<float>(r.qd[j] / 10);
        frame[2 * kJoints + j] = static_cast<float>(r.a[j]);
      }
      float* obs = view.obs + i * view.obs_stride;
      std::memcpy(obs, r.past, sizeof(frame));
      std::memcpy(obs + kFrame, frame, sizeof(frame));
      std::memcpy(r.past, frame, sizeof(frame));
      float* critic = view.critic_obs + i * view.critic_obs_stride;
      std::memcpy(critic, obs, kObs * sizeof(float));
      for (int j = 0; j < kJoints; ++j) critic[kObs + j] = static_cast<float>(r.load[j] / 15);
      // nothing stands on the ground: the budget is posture alone
      if (view.stiffness.mode != nullptr) {
        view.stiffness.mode[i] = ContactMode::kFlight;
      }
    }
  }

  std::uint64_t seed_;
  EnvSpec spec_;
  std::vector<Robot> robots_;
};

}  // namespace silc::test
