// SPDX-License-Identifier: Apache-2.0
// Robots act for `steps` control steps, and what they saw, did and earned is kept.
#include "silc/learn/trainer_impl.h"

namespace silc {

ObservationView Trainer::Impl::ViewAt(std::int64_t t) {
  ObservationView view;
  view.obs = obs[t].data_ptr<float>();
  view.obs_stride = obs_width;
  view.critic_obs = critic_obs[t].data_ptr<float>();
  view.critic_obs_stride = critic_obs_width;
  if (needs_stiffness) {
    // tensors have no enums: the bytes are ContactModes
    view.stiffness = {.mode = reinterpret_cast<ContactMode*>(mode[t].data_ptr<std::uint8_t>()),
                      .com = com[t].data_ptr<float>(),
                      .hand_on_base = hand_on_base[t].data_ptr<float>(),
                      .closing = closing[t].data_ptr<float>(),
                      .gravity = gravity[t].data_ptr<float>()};
  }
  return view;
}

void Trainer::Impl::Act(std::int64_t t,
                        const std::vector<Layers>& actors,
                        const std::vector<Layers>& critics) {
  pool->ParallelFor(pieces(), [&](int, int piece) {
    at::NoGradGuard no_tape;
    const auto [first, count] = PieceRows(spec.num_envs, piece);
    if (count == 0) return;
    const Tensor o = obs[t].narrow(0, first, count), c = critic_obs[t].narrow(0, first, count);
    for (std::size_t k = 0; k < agents.size(); ++k) {
      const Agent& agent = agents[k];
      const auto block = [&, first = first, count = count](const Tensor& x) {
        return x.narrow(0, first, count).narrow(1, agent.first, agent.count);
      };
      const Tensor mu = Forward(actors[k], o).output;
      const Tensor a = mu + agent.actor.std.detach() * block(noise[t]);
      block(mean[t]).copy_(mu);
      block(action[t]).copy_(a);
      logp[t].narrow(0, first, count).select(1, k).copy_(LogProb(mu, agent.actor.std.detach(), a));
      value[t].narrow(0, first, count).select(1, k).copy_(Forward(critics[k], c).output.squeeze(1));
    }
  });
}

void Trainer::Impl::Collect() {
  const std::int64_t T = config.steps;
  if (!started) {
    env->Reset(ViewAt(T));
    started = true;
  }
  // the state after the last rollout is the first of this one
  for (const auto& [name, buffer] : Carried()) buffer[0].copy_(buffer[T]);
  at::NoGradGuard no_tape;
  std_old.resize(agents.size());
  for (std::size_t k = 0; k < agents.size(); ++k) {
    const Tensor std = agents[k].actor.std.detach();
    if (!std_old[k].defined()) std_old[k] = at::empty_like(std);
    std_old[k].copy_(std);
  }
  if (!noise.defined()) noise = at::empty({T, spec.num_envs, spec.num_actions()}, options);
  for (int b = 0; b < own_groups; ++b) {
    Tensor own = OfBlock(noise, b, 1);
    if (own_groups == 1) {
      own.normal_(0, 1, generators[b]);
    } else {
      own.copy_(at::empty(own.sizes(), options).normal_(0, 1, generators[b]));
    }
  }
  env->BeginIteration(iteration);
  const auto roll = [&] {
    std::vector<Layers> actors, critics;
    if (without_tape) without_tape->BeginRollout();
    for (const Agent& agent : agents) {
      if (without_tape) break;
      actors.push_back(LayersOf(agent));
      critics.push_back(CriticOf(agent));
    }
    for (std::int64_t t = 0; t < T; ++t) {
      const auto start = Clock::now();
      if (without_tape) {
        without_tape->Act(t);
      } else {
        Act(t, actors, critics);
      }
      times.policy += Since(start);
      const auto stepping = Clock::now();
      env->Step(action[t].data_ptr<float>(),
                {reward[t].data_ptr<float>(),
                 done[t].data_ptr<std::uint8_t>(),
                 timed_out[t].data_ptr<std::uint8_t>()},
                ViewAt(t + 1));
      times.env += Since(stepping);
    }
    if (without_tape) {
      without_tape->EndRollout();
      return;
    }
    for (int b = 0; b < own_groups; ++b) {
      for (std::size_t k = 0; k < agents.size(); ++k) {
        const Tensor v = Forward(critics[k], OfBlock(critic_obs[T], b, 0)).output;
        OfBlock(value[T], b, 0).select(1, k).copy_(v.squeeze(1));
      }
    }
  };
  // normalised weights are made anew for each rollout, so a recording of them would be of the
  // first
  if (!Records() || method == Method::kSnLcp) {
    roll();
    return;
  }
  if (!rollout_graph.recorded()) rollout_graph.Record(roll);
  rollout_graph.Replay();
}

}  // namespace silc
