// SPDX-License-Identifier: Apache-2.0
// One control step: what the network sees, and what its answer means.
#include <algorithm>
#include <cmath>

#include "silc/base/check.h"
#include "silc/policy/policy_impl.h"

namespace silc {
namespace {

constexpr double kPi = 3.14159265358979323846;

// To [−π, π).
void WrapAngle(double* angle) { *angle -= 2 * kPi * std::floor((*angle + kPi) / (2 * kPi)); }

// Of what the policy is told; a number that it is not told is not read.
bool IsSoundBudget(const BudgetValues& budget, const std::array<bool, kNumCommanded>& told) {
  for (int i = 0; i < kNumCommanded; ++i) {
    if (told[U(i)] && !(budget[U(i)] > 0 && std::isfinite(budget[U(i)]))) return false;
  }
  return true;
}

}  // namespace

void Policy::Impl::Reset() {
  history.Reset();
  std::fill(prev_action.begin(), prev_action.end(), 0.0);
  raw_action.setZero();
  for (Eigen::Index i = 0; i < phase.size(); ++i) phase[i] = layout.clock.offsets[U(i)];
  standing = false;
  has_acted = false;
}

bool Policy::Impl::InputFinite(const ObservationInput& in) const {
  return in.q.allFinite() && in.qd.allFinite() && in.w_WB_B.allFinite() && in.v_WB_B.allFinite() &&
         in.g_B.allFinite() && (!needs_tau || in.tau.allFinite()) &&
         (!needs_ref || in.q_ref.allFinite()) && in.command.lin_vel.allFinite() &&
         std::isfinite(in.command.yaw_rate) && std::isfinite(in.command.height) &&
         std::isfinite(in.command.walk) && in.command.waist.allFinite() && in.phase.allFinite() &&
         (!in.command.budget || IsSoundBudget(*in.command.budget, budget_told));
}

void Policy::Impl::AdvanceClock(const ObservationInput& in) {
  if (layout.clock.period == 0) return;
  if (in.phase.size() == phase.size()) {
    phase = in.phase;
    return;
  }
  const double still = layout.clock.standing_speed;
  const bool stands =
      observes_walk ? in.command.walk < 0.5
                    : in.command.lin_vel.norm() < still && std::abs(in.command.yaw_rate) < still;
  if (stands) {
    phase.setConstant(layout.clock.standing_phase);
    standing = true;
  } else if (standing) {
    for (Eigen::Index i = 0; i < phase.size(); ++i) phase[i] = layout.clock.offsets[U(i)];
    standing = false;
  } else if (has_acted) {
    for (double& angle : phase) {
      angle += 2 * kPi * layout.control_dt / layout.clock.period;
      WrapAngle(&angle);
    }
  }
}

void Policy::Impl::Gather(const ObservationInput& in) {
  const auto put = [&](TermSource source, const auto& from) {
    values.segment(table.sources.At(source), from.size()) = from;
  };
  const auto put_one = [&](TermSource source, double value) {
    values[table.sources.At(source)] = value;
  };
  put(TermSource::kJointPos, in.q);
  put(TermSource::kJointVel, in.qd);
  if (in.tau.size() == nv) put(TermSource::kJointTorque, in.tau);
  put(TermSource::kRefJointPos, in.q_ref.size() == nv ? in.q_ref : default_pose);
  put(TermSource::kPrevAction,
      Eigen::Map<const Eigen::VectorXd>(prev_action.data(), std::ssize(prev_action)));
  put(TermSource::kBaseAngVel, in.w_WB_B);
  put(TermSource::kBaseLinVel, in.v_WB_B);
  put(TermSource::kProjectedGravity, in.g_B);
  put(TermSource::kCommandLinVel, in.command.lin_vel);
  put_one(TermSource::kCommandAngVel, in.command.yaw_rate);
  put_one(TermSource::kCommandHeight, in.command.height);
  put_one(TermSource::kCommandWalk, in.command.walk);
  put(TermSource::kCommandWaist, in.command.waist);
  for (int i = 0; i < kNumCommanded; ++i) {
    values[table.sources.At(TermSource::kBudgetCom) + i] =
        in.command.budget && budget_told[U(i)] ? std::log((*in.command.budget)[U(i)])
                                               : budget_otherwise[U(i)];
  }
  for (Eigen::Index i = 0; i < phase.size(); ++i) {
    const bool hidden = standing && layout.clock.standing_zero;
    values[table.sources.At(TermSource::kPhaseSin) + i] = hidden ? 0 : std::sin(phase[i]);
    values[table.sources.At(TermSource::kPhaseCos) + i] = hidden ? 0 : std::cos(phase[i]);
  }
}

void Policy::Impl::Encode(const ObservationInput& in) {
  Gather(in);
  for (std::size_t e = 0; e < table.entries.size(); ++e) {
    const ObservationEntry<double>& entry = table.entries[e];
    const double x = values[entry.value];
    frame[static_cast<Eigen::Index>(e)] = EncodeTerm(entry, x);
    clipped[e] = IsClipped(entry, x);
  }
}

PolicyStatus Policy::Impl::Act(const ObservationInput& in, Eigen::VectorXd* q_target) {
  SILC_CHECK(in.q.size() == nv && in.qd.size() == nv);
  SILC_CHECK(!needs_tau || in.tau.size() == nv);
  SILC_CHECK(in.q_ref.size() == nv || in.q_ref.size() == 0);
  if (!InputFinite(in)) return PolicyStatus::kInputNotFinite;
  AdvanceClock(in);
  Encode(in);
  history.Push(frame, clipped);
  const auto& slots = history.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    observation[static_cast<Eigen::Index>(i)] = static_cast<float>(history.Value(slots[i]));
  }

  // (S1): q* = q_default + α a, or the reference instead of the default
  bool finite = true;
  const auto take = [&](std::size_t i, double a) {
    finite = finite && std::isfinite(a);
    action_clipped[i] = std::abs(a) > layout.action.clip;
    prev_action[i] = std::clamp(a, -layout.action.clip, layout.action.clip);
  };
  if (mlp) {
    mlp->Forward({observation.data(), U(observation.size())}, answer);
    for (std::size_t i = 0; i < answer.size(); ++i) take(i, answer[i]);
  } else if (graph_float) {
    Fill(&*graph_float);
    for (std::size_t i = 0; i < answer.size(); ++i) take(i, graph_float->output(output)[i]);
  } else {
    Fill(&*graph_double);
    for (std::size_t i = 0; i < answer.size(); ++i) take(i, graph_double->output(output)[i]);
  }
  has_acted = finite;
  if (!finite) {
    std::fill(prev_action.begin(), prev_action.end(), 0.0);
    return PolicyStatus::kOutputNotFinite;
  }

  if (q_target->size() != nv) q_target->resize(nv);
  *q_target = default_pose;
  for (std::size_t i = 0; i < table.action_joint.size(); ++i) {
    const int joint = table.action_joint[i];
    raw_action[joint] = prev_action[i];
    if (action_residual[i] && in.q_ref.size() == nv) (*q_target)[joint] = in.q_ref[joint];
    (*q_target)[joint] += scale[i] * prev_action[i];
  }
  return PolicyStatus::kOk;
}

void Policy::Reset() { impl_->Reset(); }

PolicyStatus Policy::Act(const ObservationInput& input, Eigen::VectorXd* q_target) {
  return impl_->Act(input, q_target);
}

}  // namespace silc
