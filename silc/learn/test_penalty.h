// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <functional>
#include <vector>

#include "silc/base/check.h"
#include "silc/learn/frequency_penalty.h"
#include "silc/learn/penalty.h"
#include "silc/stiffness/dynamic_stiffness.h"
#include "silc/stiffness/joint_stiffness.h"
#include "silc/stiffness/observer.h"
#include "silc/stiffness/test_support.h"

/// What the tests of the penalties share. A namespace of their own: their sizes have the names of
/// another test's, which may be compiled with them.
namespace silc::penalty_test {

using namespace test::eager;
using Eigen::MatrixXd;

Tensor ToTensor(const MatrixXd& m);
MatrixXd ToEigen(const Tensor& t);

inline constexpr int kJoints = test::StickHumanoid::kJoints;  // 20
inline constexpr int kBatch = 8, kFrame = 2 * kJoints + 6, kFrames = 2, kObs = kFrame * kFrames;

inline const Eigen::Vector3d kStiffHand(6000,
                                        4000,
                                        5000);  // [N/m] more than the policies below have

// A robot of 20 joints in every contact mode, two small actors that see joints, previous actions, a
// few torques and gravity in two frames, and the plain Eigen objects that belong to each sample.
struct World {
  Servo servo;
  BudgetSpec spec;
  std::vector<BodyJacobians> body;
  std::vector<ContactKinematics> contact;
  ContactBatch batch;
  std::vector<Network> networks;
  Tensor x, action;
  std::vector<ColumnEntry> seen_actions, seen_torque, seen_joints, seen_gravity;
  PenaltyInput input;
  PenaltyConfig config;

  explicit World(NullWeight weight = NullWeight::kIdentity,
                 const std::vector<int>& hidden = {10, 9},
                 const Eigen::Vector3d& hand_stiffness = {200, 250, 300}) {
    HoldToOneThread();  // matrices of 20 × 20: BLAS threads would only get into each other's way
    at::manual_seed(11);
    Rng rng(17);
    servo = test::RandomServo(kJoints, &rng);
    spec.com = Eigen::Vector3d(200, 300, 20000);
    spec.hand[1] = hand_stiffness;
    spec.weight = weight;
    spec.null_stiffness = weight == NullWeight::kIdentity ? 50 : 0.5;
    std::vector<Tensor> com, hand, closing, gravity;
    std::vector<int> modes;
    for (int i = 0; i < kBatch; ++i) {
      const auto mode = static_cast<ContactMode>(i % 4);
      ContactKinematics k;
      body.push_back(test::StickHumanoid::Jacobians(test::StickHumanoid::Stance(&rng)));
      SILC_CHECK(ComputeContactKinematics(body.back(), mode, nullptr, &k) == StiffnessStatus::kOk);
      modes.push_back(i % 4);
      com.push_back(ToTensor(k.com));
      hand.push_back(at::stack({ToTensor(k.hand_on_base[0]), ToTensor(k.hand_on_base[1])}));
      // in other modes the closing constraint is not read: rubbish there must not matter
      closing.push_back(k.closed ? ToTensor(k.J_c) : at::full({6, kJoints}, NAN, at::kDouble));
      gravity.push_back(ToTensor(k.E));
      contact.push_back(k);
    }
    batch = {at::tensor(modes).to(at::kByte),
             at::stack(com),
             at::stack(hand),
             at::stack(closing),
             at::stack(gravity)};
    const int outputs[] = {12, 8};
    for (std::uint32_t k = 0; k < 2; ++k) {
      networks.push_back(MakeNetwork({.inputs = kObs, .hidden = hidden, .outputs = outputs[k]},
                                     std::vector<double>(outputs[k], 0.3 + 0.2 * k),
                                     23,
                                     k,
                                     at::kDouble));
    }
    {
      at::NoGradGuard no_tape;
      for (Network& network : networks) {
        network.flat.mul_(2);
        network.std.div_(2);
      }
    }
    x = at::randn({kBatch, kObs}, at::kDouble);
    action = at::randn({kBatch, kJoints}, at::kDouble);

    std::vector<ColumnEntry> q0, q, a, tau, g;
    for (int frame = 0; frame < kFrames; ++frame) {
      const int at = frame * kFrame;  // newest last
      for (int j = 0; j < kJoints; ++j) {
        q.push_back({at + j, j, 1.f});
        if (frame == kFrames - 1) q0.push_back(q.back());
        a.push_back({at + kJoints + j, j, 0.5f});
      }
      for (int j = 0; j < 3; ++j) {
        tau.push_back({at + 2 * kJoints + j, kJoints - 1 - j, 0.01f});
        g.push_back({at + 2 * kJoints + 3 + j, j, 1.f});
      }
    }
    const auto dense = [](const std::vector<ColumnEntry>& e, int n) {
      return DenseColumns(e, kObs, n, at::kDouble);
    };
    input.channels = {
        dense(q0, kJoints), dense(q, kJoints), dense(a, kJoints), dense(tau, kJoints), dense(g, 3)};
    input.servo = {ToTensor(servo.kp).view(-1), ToTensor(servo.alpha).view(-1)};
    input.budget = MakeBudgetFactors(spec, input.servo.kp, batch, at::kDouble);
    input.gravity = batch.gravity;
    input.count = kBatch;
    seen_actions = a;
    seen_torque = tau;
    seen_joints = q;
    seen_gravity = g;
  }

  void SetFloor(const Eigen::Vector3d& hand_floor) {
    spec.hand_floor = hand_floor;
    input.budget = MakeBudgetFactors(spec, input.servo.kp, batch, at::kDouble);
  }
  // What the policy sees of q it also sees of the velocity, mixed in: no number more is needed.
  std::vector<ColumnEntry> SeenVelocities() const {
    std::vector<ColumnEntry> v = seen_joints;
    for (ColumnEntry& entry : v) entry.value = 0.03f;
    return v;
  }
  void SetFrequencies(const std::vector<double>& hz, const LoopTiming& timing) {
    std::vector<int> age(kObs);
    for (int i = 0; i < kObs; ++i) age[i] = kFrames - 1 - i / kFrame;
    const std::vector<ColumnEntry> v = SeenVelocities();
    const FrequencyEntries entries = {.q = seen_joints,
                                      .v = v,
                                      .a = seen_actions,
                                      .tau = seen_torque,
                                      .g = seen_gravity,
                                      .age = age};
    input.channels.frequencies =
        MakeFrequencyPoints(hz, timing.period, timing.latency, entries, kObs, kJoints, at::kDouble);
    input.servo.kd = ToTensor(servo.kd).view(-1);
  }
  // (S4) of one sample, by silc/stiffness
  Eigen::MatrixXcd Dynamic(int sample, const LoopTiming& timing, double omega) {
    PolicyJacobians J;
    const Tensor v = DenseColumns(SeenVelocities(), kObs, kJoints, at::kDouble);
    for (int frame = kFrames - 1; frame >= 0; --frame) {
      J.J_q.push_back(FrameJacobian(input.channels.q, frame, sample));
      J.J_v.push_back(FrameJacobian(v, frame, sample));
      J.J_a.push_back(FrameJacobian(input.channels.a, frame, sample));
      J.J_tau.push_back(FrameJacobian(input.channels.tau, frame, sample));
      J.J_g.push_back(FrameJacobian(input.channels.g, frame, sample));
    }
    BaseChannels base;
    base.E = &contact[sample].E;
    Eigen::MatrixXcd K;
    SILC_CHECK(DynamicStiffness(servo, J, timing, base, omega, &K) == StiffnessStatus::kOk);
    return K;
  }
  void SetLoopPoints(const std::vector<double>& angles) {
    std::vector<int> age(kObs);
    for (int i = 0; i < kObs; ++i) age[i] = kFrames - 1 - i / kFrame;
    input.channels.loop =
        MakeLoopPoints(angles, seen_actions, seen_torque, age, kObs, kJoints, at::kDouble);
  }
  // the forward pass again, with the weights as they are now
  const PenaltyInput& Run() {
    input.actors.clear();
    input.activations.clear();
    input.std.clear();
    input.action = {action.narrow(1, 0, 12), action.narrow(1, 12, 8)};
    for (const Network& network : networks) {
      input.actors.push_back(network.layers);
      input.activations.push_back(Forward(network.layers, x));
      input.std.push_back(network.std);
    }
    return input;
  }
  MatrixXd Jacobian(const Tensor& columns, int sample) {
    Run();
    return ToEigen(
        ActionJacobian(input.actors, FrozenSlopes(input.activations, 0, kBatch), columns)[sample]);
  }
  // of one frame of the observation alone
  MatrixXd FrameJacobian(const Tensor& columns, int frame, int sample) {
    Tensor one = at::zeros_like(columns);
    one.narrow(0, frame * kFrame, kFrame).copy_(columns.narrow(0, frame * kFrame, kFrame));
    return Jacobian(one, sample);
  }
  std::vector<Tensor> Leaves() const {
    std::vector<Tensor> leaves;
    for (const Network& n : networks) leaves.insert(leaves.end(), n.leaves.begin(), n.leaves.end());
    return leaves;
  }
};

// Gradient of the surrogate against central differences of the value, through every parameter.
void CheckGradient(World* world, const std::function<PenaltyResult(const PenaltyInput&)>& penalty);

// "A few hundred steps on random data bring the violation to zero without a task."
// What is left of the violation, as a share of what it was. The rate falls to zero, so that the
// last steps settle and rounding does not decide what is left.
double ShareLeft(World* world,
                 const std::function<PenaltyResult(const PenaltyInput&)>& penalty,
                 int steps,
                 double rate);

// The sums over frames of one sample's Jacobians, as if they were of one frame.
PolicyJacobians SampleJacobians(World* world, int i);

// K_s of one sample, by silc/stiffness.
StaticStiffness Reference(World* world, int i);

}  // namespace silc::penalty_test
