// SPDX-License-Identifier: Apache-2.0
// What a checkpoint holds: saved, loaded to go on as if nothing had been, or taken as a warm start.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "silc/base/crc32c.h"
#include "silc/base/error.h"
#include "silc/base/yaml.h"
#include "silc/learn/trainer_impl.h"

namespace silc {
namespace {

constexpr char kShared[] = "curricula.shared", kOfRobots[] = "curricula.robots";

std::string BytesOf(const Tensor& t) {
  const Tensor host = t.detach().to(at::kCPU).contiguous();
  return {static_cast<const char*>(host.data_ptr()), host.nbytes()};
}
// @param first, total  where the bytes are of more rows than t has: its first one, and how many
void CopyBytes(const Blobs& blobs,
               const std::string& name,
               const std::string& place,
               Tensor* t,
               std::size_t first = 0,
               std::size_t total = 0) {
  const std::size_t row = total > 0 ? t->nbytes() / t->size(0) : 0;
  const std::size_t expected = total > 0 ? total * row : t->nbytes();
  const auto found = blobs.find(name);
  if (found == blobs.end()) throw ConfigError(place + ": " + name + ": is missing");
  if (found->second.size() != expected) {
    throw ConfigError(fmt::format("{}: {}: has {} bytes, the settings ask for {}: another network?",
                                  place,
                                  name,
                                  found->second.size(),
                                  expected));
  }
  Tensor host = at::empty(t->sizes(), t->options().device(at::kCPU));
  std::memcpy(host.data_ptr(), found->second.data() + first * row, host.nbytes());
  at::NoGradGuard no_tape;
  t->copy_(host);
}

// A checksum says that the bytes are those that were written, not who wrote them.
int ParseIteration(const std::string& text, const std::string& place) {
  constexpr int kMostIterations = 1'000'000'000;  // as learn.iterations
  int iteration = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, iteration);
  if (error == std::errc() && stop == end && iteration >= 0 && iteration <= kMostIterations) {
    return iteration;
  }
  throw ConfigError(fmt::format(
      "{}: iteration: '{}' is no number from 0 to {}", place, text.substr(0, 40), kMostIterations));
}

// Sums in the same order on machines of one kind keep the ranks' weights the same, to the bit.
// Where one computes otherwise they would drift apart unseen.
void RequireSameWeights(const Blobs& blobs, Ranks* ranks) {
  if (ranks->size() == 1) return;
  const std::vector<std::string> all =
      ranks->GatherBytes(fmt::format("{:08x}", Crc32c(SerializeBlobs(blobs))));
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    throw RunError(
        fmt::format("rank {} holds other weights than rank 0: do the machines differ?", r));
  }
}

}  // namespace

NamedTensors StateOf(const Agent& agent) {
  return {{agent.name + ".actor", agent.actor.flat},
          {agent.name + ".critic", agent.critic.flat},
          {agent.name + ".actor.m", agent.actor_adam.m},
          {agent.name + ".actor.v", agent.actor_adam.v},
          {agent.name + ".actor.t", agent.actor_adam.t},
          {agent.name + ".critic.m", agent.critic_adam.m},
          {agent.name + ".critic.v", agent.critic_adam.v},
          {agent.name + ".critic.t", agent.critic_adam.t},
          {agent.name + ".rate", agent.rate}};
}

NamedTensors StateOf(const SpectralNormaliser& normaliser, const std::string& agent) {
  NamedTensors list;
  for (std::size_t l = 0; l < normaliser.u.size(); ++l) {
    list.emplace_back(fmt::format("{}.u{}", agent, l), normaliser.u[l]);
    list.emplace_back(fmt::format("{}.v{}", agent, l), normaliser.v[l]);
  }
  return list;
}

NamedTensors Trainer::Impl::Carried() const {
  NamedTensors list = {{"next.obs", obs}, {"next.critic_obs", critic_obs}};
  if (needs_stiffness) {
    list.insert(list.end(),
                {{"next.mode", mode},
                 {"next.com", com},
                 {"next.hand", hand_on_base},
                 {"next.closing", closing},
                 {"next.gravity", gravity}});
  }
  return list;
}

NamedTensors Trainer::Impl::InputState() const {
  NamedTensors list;
  if (!config.scale_inputs) return list;
  for (const auto& [name, s] : {std::pair{"actor", &actor_inputs}, {"critic", &critic_inputs}}) {
    for (const auto& [part, t] : {std::pair{"count", s->count},
                                  {"mean", s->mean},
                                  {"square", s->square},
                                  {"shift", s->shift},
                                  {"scale", s->scale}}) {
      list.emplace_back(fmt::format("inputs.{}.{}", name, part), t);
    }
  }
  return list;
}

NamedTensors Trainer::Impl::AverageState() const {
  NamedTensors list;
  if (config.average == 0) return list;
  for (const Agent& agent : agents) list.emplace_back(agent.name + ".average", agent.average.flat);
  return list;
}

void Trainer::Impl::TakeCurricula(const Blobs& blobs) const {
  const auto shared = blobs.find(kShared), of_robots = blobs.find(kOfRobots);
  // a checkpoint of before they were kept, or of an environment that has none
  if (shared == blobs.end() || of_robots == blobs.end()) return;
  if (shared->second.empty() || of_robots->second.empty()) return;
  env->LoadCurricula({shared->second, of_robots->second});
}

Blobs Trainer::Save() const {
  const Impl& impl = *impl_;
  Blobs blobs;
  blobs["iteration"] = std::to_string(impl.iteration);
  LearnConfig settings = impl.config;
  settings.threads = 0;  // the result does not depend on it, nor shall the bytes
  settings.groups = impl.groups;
  blobs["config"] = ToYaml(settings);
  for (const Agent& agent : impl.agents) {
    for (const auto& [name, t] : StateOf(agent)) blobs[name] = BytesOf(t);
    for (const auto& [name, t] : StateOf(agent.normaliser, agent.name)) blobs[name] = BytesOf(t);
  }
  for (const auto& [name, t] : impl.AverageState()) blobs[name] = BytesOf(t);
  for (const auto& [name, t] : impl.InputState()) blobs[name] = BytesOf(t);
  blobs["penalty"] = {reinterpret_cast<const char*>(&impl.weight.state), sizeof(impl.weight.state)};
  RequireSameWeights(blobs, impl.ranks.get());
  Ranks& ranks = *impl.ranks;
  const bool first = ranks.rank() == 0;
  const Curricula own = impl.env->SaveCurricula();
  // nothing but on rank 0
  for (const std::string& part : ranks.GatherBytes(own.of_robots)) blobs[kOfRobots] += part;
  if (first) blobs[kShared] = own.shared;
  if (!impl.config.checkpoint_env) return blobs;
  // the observation the next rollout begins with, and all that makes the ones after it
  const std::vector<std::string> states = ranks.GatherBytes(impl.env->SaveState());
  if (first) blobs["env"] = ranks.size() == 1 ? states[0] : impl.env->JoinStates(states);
  const std::int64_t T = impl.config.steps;
  for (const auto& [name, buffer] : impl.Carried()) {
    // nothing but on rank 0
    for (const std::string& part : ranks.GatherBytes(BytesOf(buffer[T]))) blobs[name] += part;
  }
  return blobs;
}

void Trainer::Load(const Blobs& blobs, const std::string& place) {
  Impl& impl = *impl_;
  const auto blob = [&](const char* name) -> const std::string& {
    const auto found = blobs.find(name);
    if (found == blobs.end()) throw ConfigError(place + ": " + name + ": is missing");
    return found->second;
  };
  const int iteration = ParseIteration(blob("iteration"), place);
  for (const Agent& agent : impl.agents) {
    for (auto [name, t] : StateOf(agent)) CopyBytes(blobs, name, place, &t);
    for (auto [name, t] : StateOf(agent.normaliser, agent.name)) CopyBytes(blobs, name, place, &t);
  }
  for (auto [name, t] : impl.AverageState()) CopyBytes(blobs, name, place, &t);
  for (auto [name, t] : impl.InputState()) CopyBytes(blobs, name, place, &t);
  auto& state = impl.weight.state;
  if (blob("penalty").size() != sizeof(state)) throw ConfigError(place + ": penalty: wrong size");
  std::memcpy(&state, blob("penalty").data(), sizeof(state));
  impl.iteration = iteration;
  if (!blobs.contains("env") || impl.iteration == 0) {
    // saved without its environment, or before its first episode: all episodes start over, as hard
    // as they were
    impl.TakeCurricula(blobs);
    return;
  }
  const std::int64_t T = impl.config.steps;
  for (const auto& [name, buffer] : impl.Carried()) {
    Tensor last = buffer[T];
    CopyBytes(blobs, name, place, &last, impl.spec.first_env, impl.spec.all_envs());
  }
  impl.env->LoadState(blob("env"));
  impl.started = true;
}

void Trainer::Init(const Blobs& blobs, const std::string& place) {
  Impl& impl = *impl_;
  const auto found = blobs.find("config");
  if (found == blobs.end()) throw ConfigError(place + ": config: is missing");
  const YamlNode theirs = YamlNode::Parse(found->second, place + ": config")["learn"];
  const auto same_widths = [&](const char* key, const std::vector<int>& own) {
    const std::vector<double> widths = theirs[key].AsDoubles();
    if (std::equal(widths.begin(), widths.end(), own.begin(), own.end())) return;
    throw ConfigError(
        fmt::format("{}: learn.{} is [{}] there and [{}] here: a warm start needs the same "
                    "networks\n  Set learn.{} to what it is there.",
                    place,
                    key,
                    fmt::join(widths, ", "),
                    fmt::join(own, ", "),
                    key));
  };
  same_widths("actor_hidden", impl.config.actor_hidden);
  same_widths("critic_hidden", impl.config.critic_hidden);
  const bool scaled = theirs.Has("scale_inputs") && theirs["scale_inputs"].AsBool();
  if (scaled != impl.config.scale_inputs) {
    throw ConfigError(
        fmt::format("{}: learn.scale_inputs is {} there and {} here: a warm start "
                    "needs the same\n  Set learn.scale_inputs={}.",
                    place,
                    scaled,
                    impl.config.scale_inputs,
                    scaled));
  }
  for (auto [name, t] : impl.InputState()) CopyBytes(blobs, name, place, &t);
  for (Agent& agent : impl.agents) {
    for (auto [name, t] : StateOf(agent)) CopyBytes(blobs, name, place, &t);
    const bool normalised = blobs.contains(agent.name + ".u0");
    SpectralNormaliser normaliser;
    if (normalised || impl.method == Method::kSnLcp) {
      normaliser = SpectralNormaliser::Make(agent.actor, impl.config.penalty.spectral_gain);
    }
    if (normalised) {
      for (auto [name, t] : StateOf(normaliser, agent.name)) CopyBytes(blobs, name, place, &t);
    }
    if (impl.method == Method::kSnLcp) {
      agent.normaliser = std::move(normaliser);
    } else if (normalised) {
      normaliser.gain = theirs["penalty"]["spectral_gain"].AsDouble();
      at::NoGradGuard no_tape;
      const Layers acting = normaliser.Apply(agent.actor);
      for (std::size_t l = 0; l < acting.weight.size(); ++l) {
        agent.actor.layers.weight[l].copy_(acting.weight[l]);
      }
    }
  }
  if (impl.config.average > 0) {
    for (Agent& agent : impl.agents) agent.average.flat.copy_(agent.actor.flat);
  }
  if (impl.config.init_curricula) impl.TakeCurricula(blobs);
}

}  // namespace silc
