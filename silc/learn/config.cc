// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/limits.h"
#include "silc/base/nearest.h"

namespace silc {
namespace {

// One setting: where it stands in the file, how it is read and how it is written.
struct Field {
  std::string key;  // "penalty.lambda"
  std::function<void(const YamlNode&)> read;
  std::function<std::string()> write;
};

class Fields {
 public:
  void Number(const char* key, double* value, double low, double high) {
    fields_.push_back({key,
                       [=](const YamlNode& node) { *value = node.AsDoubleIn(low, high); },
                       [=] { return fmt::format("{}", *value); }});
  }
  void Count(const char* key, int* value, int low, int high) {
    fields_.push_back({key,
                       [=](const YamlNode& node) { *value = node.AsIntIn(low, high); },
                       [=] { return fmt::format("{}", *value); }});
  }
  void Seed(const char* key, std::uint64_t* value) {
    fields_.push_back({key,
                       [=](const YamlNode& node) {
                         *value = static_cast<std::uint64_t>(
                             node.AsIntIn(0, std::numeric_limits<int>::max()));
                       },
                       [=] { return fmt::format("{}", *value); }});
  }
  void Flag(const char* key, bool* value) {
    fields_.push_back({key,
                       [=](const YamlNode& node) { *value = node.AsBool(); },
                       [=] { return *value ? "true" : "false"; }});
  }
  void Choice(const char* key, std::string* value, const std::vector<std::string>& choices) {
    fields_.push_back({key,
                       [=](const YamlNode& node) { *value = node.AsChoice(choices); },
                       [=] { return *value; }});
  }
  void Widths(const char* key, std::vector<int>* value) {
    fields_.push_back({key,
                       [=](const YamlNode& node) {
                         if (!node.IsList()) node.Fail("must be a list of layer widths");
                         value->clear();
                         for (int i = 0; i < node.size(); ++i) {
                           value->push_back(node[i].AsIntIn(1, 65536));
                         }
                         // the policy that comes of it has to be read again
                         for (std::size_t i = 1; i < value->size(); ++i) {
                           if (std::int64_t{(*value)[i - 1]} * (*value)[i] <= kMaxTensorElements)
                             continue;
                           node.Fail(
                               fmt::format("layers of {} and {} have more than {} weights "
                                           "between them, the limit of an ONNX file's tensor",
                                           (*value)[i - 1],
                                           (*value)[i],
                                           kMaxTensorElements));
                         }
                       },
                       [=] { return fmt::format("[{}]", fmt::join(*value, ", ")); }});
  }
  enum class Empty { kRefused, kAllowed };
  void Numbers(const char* key,
               std::vector<double>* value,
               double low,
               double high,
               Empty empty = Empty::kRefused) {
    fields_.push_back({key,
                       [=](const YamlNode& node) {
                         if (node.IsScalar()) {
                           *value = {node.AsDoubleIn(low, high)};
                           return;
                         }
                         if (node.size() == 0 && empty == Empty::kRefused) {
                           node.Fail("must not be empty");
                         }
                         value->clear();
                         for (int i = 0; i < node.size(); ++i) {
                           value->push_back(node[i].AsDoubleIn(low, high));
                         }
                       },
                       [=] { return fmt::format("[{}]", fmt::join(*value, ", ")); }});
  }
  const std::vector<Field>& list() const { return fields_; }

 private:
  std::vector<Field> fields_;
};

// Every setting once: reading, overriding and writing go through this list.
Fields FieldsOf(LearnConfig* c) {
  constexpr int kMany = 1'000'000'000;
  Fields f;
  f.Seed("seed", &c->seed);
  f.Count("iterations", &c->iterations, 0, kMany);
  f.Count("steps", &c->steps, 1, 100000);
  f.Count("epochs", &c->epochs, 1, 1000);
  f.Count("mini_batches", &c->mini_batches, 1, 100000);
  f.Widths("actor_hidden", &c->actor_hidden);
  f.Widths("critic_hidden", &c->critic_hidden);
  f.Flag("scale_inputs", &c->scale_inputs);
  f.Numbers("init_std", &c->init_std, 1e-3, 100);
  f.Number("min_std", &c->min_std, 1e-6, 10);
  f.Number("rate", &c->rate, 0, 1);
  f.Number("min_rate", &c->min_rate, 0, 1);
  f.Number("max_rate", &c->max_rate, 0, 1);
  f.Number("kl_target", &c->kl_target, 1e-6, 10);
  f.Count("cool_down", &c->cool_down, 0, kMany);
  f.Number("weight_decay", &c->weight_decay, 0, 1);
  f.Number("gamma", &c->gamma, 0, 1);
  f.Number("lambda", &c->lambda, 0, 1);
  f.Number("clip", &c->clip, 1e-3, 1);
  f.Number("value_clip", &c->value_clip, 0, 1e6);
  f.Number("critic_rate", &c->critic_rate, 0, 1);
  f.Number("value_weight", &c->value_weight, 0, 1000);
  f.Number("entropy_weight", &c->entropy_weight, 0, 1000);
  f.Number("gradient_clip", &c->gradient_clip, 1e-6, 1e6);
  f.Count("chunks", &c->chunks, 1, 1024);
  f.Count("groups", &c->groups, 0, 1 << 20);
  f.Count("threads", &c->threads, 0, 1024);
  f.Choice("device", &c->device, {"cpu", "cuda"});
  f.Count("average", &c->average, 0, kMany);
  f.Count("checkpoint_every", &c->checkpoint_every, 1, kMany);
  f.Count("keep_checkpoints", &c->keep_checkpoints, 2, 100000);
  f.Flag("init_curricula", &c->init_curricula);
  f.Flag("checkpoint_env", &c->checkpoint_env);
  f.Flag("graphs", &c->graphs);
  f.Choice("precision", &c->precision, {"auto", "float32", "float16", "bfloat16"});
  f.Flag("tape", &c->tape);
  PenaltyConfig* p = &c->penalty;
  f.Choice("penalty.method", &p->method, MethodNames());
  f.Number("penalty.lambda", &p->lambda, 0, 1e6);
  f.Choice("penalty.schedule", &p->schedule, {"fixed", "ramp", "multiplier"});
  f.Count("penalty.start", &p->start, 0, kMany);
  f.Count("penalty.ramp", &p->ramp, 1, kMany);
  f.Number("penalty.multiplier_rate", &p->multiplier_rate, 0, 1);
  f.Number("penalty.multiplier_floor", &p->multiplier_floor, 0, 1);
  f.Number("penalty.multiplier_target", &p->multiplier_target, 1e-9, 1e6);
  f.Number("penalty.score_reference", &p->score_reference, 0, 1e9);
  f.Number("penalty.bound_start", &p->bound_start, 0.1, 1e9);
  f.Number("penalty.bound_end", &p->bound_end, 0.1, 1e9);
  f.Number("penalty.bound_rate", &p->bound_rate, 0, 1);
  f.Number("penalty.bound_lag", &p->bound_lag, 0, 1e9);
  f.Number("penalty.gradient_clip", &p->gradient_clip, 1e-6, 1e6);
  f.Count("penalty.samples", &p->samples, 0, kMany);
  f.Count("penalty.every", &p->every, 1, kMany);
  f.Choice("penalty.hinge", &p->hinge, {"square", "log"});
  f.Choice("penalty.sigmas", &p->sigmas, {"largest", "all"});
  f.Count("penalty.probes", &p->probes, 0, 64);
  f.Choice("penalty.spectral", &p->spectral, {"eigen", "power"});
  f.Number("penalty.action_loop_limit", &p->action_loop_limit, 0.01, 100);
  f.Number("penalty.action_loop_weight", &p->action_loop_weight, 0, 1e6);
  f.Count("penalty.action_loop_points", &p->action_loop_points, 0, 64);
  f.Numbers("penalty.frequencies", &p->frequencies, 0, 1000, Fields::Empty::kAllowed);
  f.Number("penalty.damping_weight", &p->damping_weight, 0, 1e6);
  f.Number("penalty.latency", &p->latency, 0, 1);
  f.Number("penalty.loop_gain_limit", &p->loop_gain_limit, 1, 1e9);
  f.Number("penalty.lipschitz", &p->lipschitz, 1e-3, 1e6);
  f.Number("penalty.spectral_gain", &p->spectral_gain, 1e-3, 1e3);
  return f;
}

constexpr char kPenalty[] = "penalty.";

void ReadSection(const YamlNode& node, const std::string& prefix, const Fields& fields) {
  std::vector<std::string> known;
  for (const Field& field : fields.list()) {
    if (!field.key.starts_with(prefix)) continue;
    const std::string rest = field.key.substr(prefix.size());
    if (rest.find('.') == std::string::npos) known.push_back(rest);
  }
  if (prefix.empty()) known.push_back("penalty");
  node.Keys({}, known);
  for (const Field& field : fields.list()) {
    if (!field.key.starts_with(prefix)) continue;
    const std::string rest = field.key.substr(prefix.size());
    if (rest.find('.') == std::string::npos && node.Has(rest)) field.read(node[rest]);
  }
}

}  // namespace

Method MethodOf(const LearnConfig& config) {
  for (std::size_t i = 0; i < MethodNames().size(); ++i) {
    if (MethodNames()[i] == config.penalty.method) return static_cast<Method>(i);
  }
  SILC_CHECK(false && "Validate() lets no other method through");
  return Method::kBaseline;
}

void ApplyMethod(const std::string& method, const std::string& place, LearnConfig* config) {
  bool known = false;
  for (const std::string& name : MethodNames()) known = known || name == method;
  if (!known) {
    throw ConfigError(place + ": method: '" + method + "' is not a choice here" +
                      DidYouMean(method, MethodNames()));
  }
  PenaltyConfig& p = config->penalty;
  const PenaltyConfig defaults;
  p.method = method;
  const bool silc = method == Name(Method::kSilc);
  p.lambda = method == Name(Method::kLcp) ? 0.002 : defaults.lambda;
  p.hinge = silc ? "log" : "square";
  p.sigmas = silc ? "all" : "largest";
}

void ReadLearnConfig(const YamlNode& node, LearnConfig* config) {
  const Fields fields = FieldsOf(config);
  ReadSection(node, "", fields);
  if (node.Has("penalty")) {
    const YamlNode penalty = node["penalty"];
    if (penalty.IsMap() && penalty.Has("method")) {
      ApplyMethod(penalty["method"].AsChoice(MethodNames()), penalty.Where(), config);
    }
    ReadSection(penalty, kPenalty, fields);
  }
  config->Validate(node.Where());
}

std::vector<std::string> LearnKeys() {
  LearnConfig unused;
  std::vector<std::string> keys;
  const Fields fields = FieldsOf(&unused);
  for (const Field& field : fields.list()) keys.push_back("learn." + field.key);
  return keys;
}

void ApplyOverrides(std::span<const std::string> overrides, LearnConfig* config) {
  const Fields fields = FieldsOf(config);
  const std::vector<std::string> known = LearnKeys();
  for (const std::string& text : overrides) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw ConfigError("command line: " + text + ": must be key=value, such as learn.epochs=3");
    }
    const std::string key = text.substr(0, equals), value = text.substr(equals + 1);
    bool found = false;
    for (const Field& field : fields.list()) {
      if ("learn." + field.key != key) continue;
      found = true;
      const YamlNode node = YamlNode::Parse(value, "command line: " + key);
      if (field.key == "penalty.method") ApplyMethod(node.AsString(), "command line", config);
      field.read(node);
    }
    if (!found) {
      throw ConfigError("command line: " + key + ": unknown key" + DidYouMean(key, known));
    }
  }
  config->Validate("command line");
}

std::string ToYaml(const LearnConfig& config) {
  LearnConfig copy = config;  // the list of fields points into what it is made for
  const Fields fields = FieldsOf(&copy);
  std::string text = "learn:\n", penalty = "  penalty:\n";
  for (const Field& field : fields.list()) {
    if (field.key == "groups" && config.groups <= 1) continue;  // one process: what always was
    if (field.key.starts_with(kPenalty)) {
      penalty += fmt::format("    {}: {}\n", field.key.substr(sizeof(kPenalty) - 1), field.write());
    } else {
      text += fmt::format("  {}: {}\n", field.key, field.write());
    }
  }
  return text + penalty;
}

void LearnConfig::Validate(const std::string& place) const {
  if (!(min_rate <= rate && rate <= max_rate)) {
    throw ConfigError(fmt::format("{}: rate: {}: must lie between min_rate {} and max_rate {}",
                                  place,
                                  rate,
                                  min_rate,
                                  max_rate));
  }
  if (tape && (precision == "float16" || precision == "bfloat16")) {
    throw ConfigError(place + ": tape: " + precision +
                      " is done without the tape; leave one of the two out");
  }
  if (penalty.every > epochs * mini_batches) {
    throw ConfigError(fmt::format(
        "{}: penalty.every: {}: an iteration has {} optimiser steps only (epochs × mini_batches)",
        place,
        penalty.every,
        epochs * mini_batches));
  }
  if (penalty.probes > 0 && penalty.sigmas != "all") {
    throw ConfigError(place +
                      ": penalty.probes: only penalty.sigmas: all takes random combinations; set "
                      "it, or probes: 0");
  }
  if (penalty.sigmas == "all" && penalty.spectral == "power") {
    throw ConfigError(place +
                      ": penalty.spectral: power finds the largest singular value alone; use "
                      "eigen, or sigmas: largest");
  }
}

}  // namespace silc
