// SPDX-License-Identifier: Apache-2.0
#include "silc/certify/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "silc/base/error.h"
#include "silc/base/nan.h"
#include "silc/base/nearest.h"
#include "silc/base/table.h"
#include "silc/base/thread_pool.h"
#include "silc/observe/summary.h"

namespace silc {
namespace {

constexpr int kRadiusSteps = 5;  // of LoopRadiusBound() at the whole box
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct BoxKey {
  const char* name;
  double BoxRadii::*radius;
  const char* unit;
};
constexpr std::array<BoxKey, 8> kBoxKeys = {{{"joint_pos", &BoxRadii::joint_pos, "rad"},
                                             {"joint_vel", &BoxRadii::joint_vel, "rad/s"},
                                             {"torque", &BoxRadii::torque, "N·m"},
                                             {"base_ang_vel", &BoxRadii::base_ang_vel, "rad/s"},
                                             {"gravity", &BoxRadii::gravity, "1"},
                                             {"action", &BoxRadii::action, "1"},
                                             {"command", &BoxRadii::command, "own"},
                                             {"phase", &BoxRadii::phase, "1"}}};

double RadiusOf(TermSource source, const BoxRadii& radii) {
  switch (source) {
    case TermSource::kJointPos:
      return radii.joint_pos;
    case TermSource::kJointVel:
      return radii.joint_vel;
    case TermSource::kJointTorque:
      return radii.torque;
    case TermSource::kPrevAction:
      return radii.action;
    case TermSource::kBaseAngVel:
      return radii.base_ang_vel;
    case TermSource::kProjectedGravity:
      return radii.gravity;
    case TermSource::kPhaseSin:
    case TermSource::kPhaseCos:
      return radii.phase;
    case TermSource::kConstant:
    case TermSource::kBaseLinVel:
    case TermSource::kBudgetCom:  // the budget that is judged is the one that is told
    case TermSource::kBudgetHands:
    case TermSource::kBudgetNull:
      return 0;
    default:
      return radii.command;
  }
}

const char* OpName(Op op) {
  switch (op) {
    case Op::kSoftmax:
      return "Softmax";
    case Op::kLayerNorm:
      return "LayerNormalization";
    case Op::kReduceMean:
      return "ReduceMean";
    case Op::kReduceSum:
      return "ReduceSum";
    case Op::kSqrt:
      return "Sqrt";
    case Op::kPow:
      return "Pow";
    case Op::kExp:
      return "Exp";
    case Op::kLog:
      return "Log";
    case Op::kErf:
      return "Erf";
    case Op::kAbs:
      return "Abs";
    case Op::kNeg:
      return "Neg";
    case Op::kReciprocal:
      return "Reciprocal";
    case Op::kMin:
      return "Min";
    case Op::kMax:
      return "Max";
    case Op::kClip:
      return "Clip";
    case Op::kAdd:
      return "Add";
    case Op::kSub:
      return "Sub";
    case Op::kMul:
      return "Mul";
    case Op::kDiv:
      return "Div";
    case Op::kSelect:
      return "Slice, Gather or Transpose";
    default:
      return "MatMul";
  }
}

// The operator that no MLP of ours has; where every one could be in an MLP, the last that joins two
// paths of the graph.
const GraphNode* Culprit(const Graph& graph) {
  const GraphNode* joint = nullptr;
  for (const GraphNode& node : graph.nodes()) {
    switch (node.op) {
      case Op::kElu:
      case Op::kRelu:
      case Op::kLeakyRelu:
      case Op::kTanh:
      case Op::kSigmoid:
      case Op::kSoftplus:
      case Op::kMatMul:
      case Op::kGemm:
      case Op::kConcat:
      case Op::kSelect:
        break;
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul:
      case Op::kDiv:
      case Op::kClip:
        joint = &node;
        break;
      default:
        return &node;
    }
  }
  return joint != nullptr ? joint : (graph.nodes().empty() ? nullptr : &graph.nodes().back());
}

// Why a box is outside of what the bound knows; empty when it is inside.
std::string MeetsClip(const DenseNetwork& network,
                      const ObservationTable& table,
                      const ObservationBox& box) {
  Eigen::VectorXd radius = Eigen::VectorXd::Zero(box.centre.size());
  for (const ObservationBox::Entry& entry : box.entries) {
    radius[entry.input] += std::abs(entry.radius);
  }
  for (Eigen::Index i = 0; i < radius.size(); ++i) {
    const auto& entry =
        table.entries[static_cast<std::size_t>(table.slots[static_cast<std::size_t>(i)].element)];
    const double clip = std::min(entry.clip, entry.clip_input * std::abs(entry.scale));
    const double low = box.centre[i] - radius[i], high = box.centre[i] + radius[i];
    if (-low >= clip || high >= clip || low <= network.clip_low[i] ||
        high >= network.clip_high[i]) {
      return fmt::format("input {} may reach its clip", i);
    }
  }
  return "";
}

// The largest multiple of the box that is shown, by bisection of the exponent between the sizes
// that are looked at; 0: none.
double LargestBox(const CertifyOptions& options,
                  bool whole_is_shown,
                  const std::function<bool(double)>& shown) {
  double largest = whole_is_shown ? 1 : 0;
  double low = std::log2(options.smallest_box), high = std::log2(options.largest_box);
  (whole_is_shown ? low : high) = 0;
  for (int i = 0; i < options.bisections; ++i) {
    const double middle = 0.5 * (low + high), scale = std::exp2(middle);
    if (shown(scale)) {
      largest = std::max(largest, scale);
      low = middle;
    } else {
      high = middle;
    }
  }
  return largest;
}

MomentCertificate CertifyMoment(const DenseNetwork& network,
                                const ObservationTable& table,
                                double action_clip,
                                const KeptMoment& recorded,
                                const CertifyOptions& options,
                                std::uint32_t index) {
  MomentCertificate out;
  out.time = recorded.time;
  out.mode = recorded.mode;
  out.status = recorded.status;
  out.sigma = out.sampled = out.sought = out.upper = out.loop_change = kNan;
  out.radius = out.radius_found = out.radius_upper = kNan;
  out.sigma_box = out.stable_box = out.certified_box = out.broken_box = kNan;
  if (out.status != StiffnessStatus::kOk) return out;

  SigmaProblem problem(network, recorded.function, recorded.observation);
  out.sigma = problem.at_centre();
  const auto box_of = [&](double scale) {
    return MakeBox(table, recorded.observation, options.radii, scale);
  };
  const auto bound = [&](double scale, double enough) {
    const ObservationBox box = box_of(scale);
    std::string clip = MeetsClip(network, table, box);
    SigmaBound result;
    result.upper = result.loop_change = kInfinity;
    if (clip.empty()) {
      result = problem.Bound(box, action_clip, enough);
      if (result.clipped) clip = "an action may reach its clip";
    }
    if (scale == 1) out.refused = clip;
    return result;
  };
  Rng rng(options.seed, index);
  const SigmaBound at_one = bound(1, 0);
  out.upper = at_one.upper;
  out.loop_change = at_one.loop_change;
  const SigmaFound found = problem.Seek(box_of(1), options.samples, &rng);
  out.sampled = found.sampled;
  out.sought = found.sought;
  out.radius = problem.RadiusAt(recorded.observation);
  out.radius_found = found.radius;
  out.radius_upper =
      out.refused.empty() ? problem.BoundRadius(box_of(1), action_clip, kRadiusSteps) : kInfinity;

  // the largest multiples that are shown, and the smallest that is seen to break
  const auto breaks = [](const SigmaFound& worst) {
    return std::max(worst.sampled, worst.sought) > 1 || worst.radius >= 1;
  };
  out.broken_box = out.sigma > 1 || out.radius >= 1 ? 0 : breaks(found) ? 1 : kInfinity;
  out.sigma_box = 0;
  if (out.sigma <= 1) {
    out.sigma_box = LargestBox(options, out.upper <= 1, [&](double scale) {
      const bool shown = bound(scale, 1).upper <= 1;
      if (breaks(problem.Seek(box_of(scale), options.samples / 10, &rng))) {
        out.broken_box = std::min(out.broken_box, scale);
      }
      return shown;
    });
  }
  out.stable_box = LargestBox(options, out.radius_upper <= 1, [&](double scale) {
    const ObservationBox box = box_of(scale);
    return MeetsClip(network, table, box).empty() && problem.BoundRadius(box, action_clip, 0) <= 1;
  });
  out.certified_box = std::min(out.sigma_box, out.stable_box);
  // the sizes above the certified one, for the gap between what is shown and what is false
  double scale = 1;
  while (scale > out.certified_box && out.broken_box > out.certified_box) {
    if (!breaks(problem.Seek(box_of(scale), options.samples / 10, &rng))) break;
    out.broken_box = std::min(out.broken_box, scale);
    scale /= 2;
  }
  return out;
}

}  // namespace

BoxRadii ParseBox(const std::string& text, BoxRadii radii) {
  std::size_t at = 0;
  std::set<std::string> said;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equal = item.find('=');
    const std::string key = item.substr(0, equal);
    const auto known = std::find_if(
        kBoxKeys.begin(), kBoxKeys.end(), [&](const BoxKey& k) { return key == k.name; });
    if (known == kBoxKeys.end()) {
      std::vector<std::string> names;
      for (const BoxKey& k : kBoxKeys) names.emplace_back(k.name);
      throw ConfigError("--box " + item + ": unknown quantity" + DidYouMean(key, names));
    }
    if (!said.insert(key).second) throw ConfigError("--box: " + key + " is there twice");
    double value = kNan;
    if (equal != std::string::npos) {
      const char *begin = item.data() + equal + 1, *stop = item.data() + item.size();
      const auto [rest, error] = std::from_chars(begin, stop, value);
      if (error != std::errc() || rest != stop) value = kNan;
    }
    if (!(value >= 0) || !std::isfinite(value)) {
      throw ConfigError(
          fmt::format("--box {}: a radius is a number of at least 0 [{}], as in {}=0.01",
                      item,
                      known->unit,
                      key));
    }
    radii.*(known->radius) = value;
  }
  return radii;
}

ObservationBox MakeBox(const ObservationTable& table,
                       const Eigen::VectorXd& centre,
                       const BoxRadii& radii,
                       double scale) {
  ObservationBox box;
  box.centre = centre;
  std::map<int, int> symbol_of;  // element → symbol, where frames go together
  for (int i = 0; i < table.width(); ++i) {
    const int element = table.slots[static_cast<std::size_t>(i)].element;
    const auto& entry = table.entries[static_cast<std::size_t>(element)];
    const double radius = scale * entry.scale * RadiusOf(entry.source, radii);
    if (radius == 0) continue;
    int symbol = box.symbols;
    if (radii.frames_together) symbol = symbol_of.try_emplace(element, symbol).first->second;
    box.symbols = std::max(box.symbols, symbol + 1);
    box.entries.push_back({i, symbol, radius});
  }
  return box;
}

DenseNetwork CertifiableNetwork(const Policy& policy,
                                const BudgetSpec& spec,
                                const std::string& place) {
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(place + ": cannot be certified: " + why);
  };
  if (policy.mlp() == nullptr) {
    const GraphNode* node = Culprit(policy.graph());
    refuse(node == nullptr
               ? "its graph has no operator"
               : fmt::format("its graph is no MLP; operator {} ('{}') has no bound here",
                             OpName(node->op),
                             node->name));
  }
  if (spec.condition == Condition::kOneSided) {
    refuse(
        "the one-sided condition has no bound here; judge by disc or two-sided "
        "(--mode NAME,condition=disc)");
  }
  for (const auto& branch : policy.mlp()->branches) {
    for (const MlpLayer& layer : branch) {
      if (layer.activation == Activation::kElu && !(layer.alpha > 0)) {
        refuse(fmt::format("operator Elu with alpha = {:g}; only positive ones have a bound here",
                           layer.alpha));
      }
    }
  }
  return MakeDenseNetwork(*policy.mlp());
}

MomentRecorder::MomentRecorder(const Policy& policy,
                               const BudgetSpec& spec,
                               const Servo& servo,
                               int count)
    : table_(CompileObservation(policy.layout(), policy.robot().joints, policy.layout().name)),
      spec_(spec),
      servo_(servo),
      most_(count) {}

bool MomentRecorder::Wants() {
  if (seen_ % every_ == 0) return true;
  ++seen_;
  return false;
}

void MomentRecorder::Add(const Moment& moment, const ContactKinematics& contact) {
  if (seen_++ % every_ != 0) return;
  KeptMoment kept;
  kept.time = moment.time;
  kept.mode = moment.mode;
  kept.status = moment.reading.quasi_static.status;
  kept.sigma = moment.reading.quasi_static.sigma;
  kept.observation = moment.observation.cast<double>();
  if (kept.status == StiffnessStatus::kOk) {
    kept.status = MakeSigmaFunction(spec_, servo_, contact, table_, &kept.function);
  }
  kept_.push_back(std::move(kept));
  if (static_cast<int>(kept_.size()) <= 2 * most_) return;
  for (std::size_t i = 0; 2 * i < kept_.size(); ++i) std::swap(kept_[i], kept_[2 * i]);
  kept_.resize((kept_.size() + 1) / 2);
  every_ *= 2;
}

std::vector<KeptMoment> MomentRecorder::Take() {
  std::vector<KeptMoment> taken;
  const auto all = static_cast<int>(kept_.size()), count = std::min(most_, all);
  for (int i = 0; i < count; ++i) {
    taken.push_back(
        std::move(kept_[static_cast<std::size_t>(static_cast<long long>(i) * all / count)]));
  }
  kept_.clear();
  return taken;
}

Certificate Certify(const DenseNetwork& network,
                    const ObservationTable& table,
                    double action_clip,
                    const std::vector<KeptMoment>& moments,
                    const CertifyOptions& options,
                    const std::function<void(double)>& progress) {
  Certificate out;
  out.moments.resize(moments.size());
  ThreadPool pool(options.threads);
  std::atomic<int> done{0};
  const int count = static_cast<int>(moments.size());
  pool.ParallelFor(count, [&](int worker, int i) {
    const auto at = static_cast<std::size_t>(i);
    out.moments[at] = CertifyMoment(
        network, table, action_clip, moments[at], options, static_cast<std::uint32_t>(i));
    ++done;
    if (worker == 0 && progress) progress(static_cast<double>(done) / count);
  });

  std::vector<double> ratios, certified, broken;
  for (const MomentCertificate& m : out.moments) {
    if (m.status != StiffnessStatus::kOk) continue;
    ++out.judged;
    const double found = std::max(m.sampled, m.sought);
    if (m.Holds()) out.certified += 1.0 / count;
    if (m.radius_upper <= 1) out.stable += 1.0 / count;
    if (found > 1 || m.radius_found >= 1) out.broken += 1.0 / count;
    if (std::isfinite(m.upper)) ratios.push_back(m.upper / found);
    certified.push_back(m.certified_box);
    broken.push_back(std::min(m.broken_box, 1e9));  // so that the median knows those without
  }
  out.looseness = Median(ratios);
  out.largest_box = Median(certified);
  out.smallest_broken_box = Median(broken);
  if (out.smallest_broken_box >= 1e9) out.smallest_broken_box = kInfinity;
  return out;
}

std::string CertificateText(const Certificate& certificate, const CertifyOptions& options) {
  std::string text = "box, ± each sensor";
  text += options.radii.frames_together ? ", the same error in all frames:" : ":";
  for (const BoxKey& key : kBoxKeys) {
    if (options.radii.*(key.radius) > 0) {
      text += fmt::format(" {} {:g} {}", key.name, options.radii.*(key.radius), key.unit);
    }
  }
  text += "\n\n";
  Table table({{"time", "[s]"},
               {"contact", "", Align::kToLeft},
               {"σ"},
               {"sampled"},
               {"sought"},
               {"bound"},
               {"ρ"},
               {"found"},
               {"bound"},
               {"σ box"},
               {"ρ box"},
               {"broken box"}});
  const auto number = [](double value) { return FormatNumber(value, 4); };
  std::map<std::string, int> not_judged;
  for (const MomentCertificate& m : certificate.moments) {
    if (m.status != StiffnessStatus::kOk) ++not_judged[Describe(m.status)];
    table.Row({fmt::format("{:.2f}", m.time),
               Name(m.mode),
               number(m.sigma),
               number(m.sampled),
               number(m.sought),
               m.refused.empty() ? number(m.upper) : m.refused,
               number(m.radius),
               number(m.radius_found),
               number(m.radius_upper),
               number(m.sigma_box),
               number(m.stable_box),
               number(m.broken_box)});
  }
  text += table.Render();
  for (const auto& [why, count] : not_judged) {
    text += fmt::format("{} moments not judged: {}\n", count, why);
  }
  text += fmt::format(
      "\n{} of {} moments judged; at the whole box {:.1f} % are certified, σ ≤ 1 and ρ < 1, and "
      "{:.1f} % are seen to break the budget\nρ < 1 alone is certified at {:.1f} %; median largest "
      "certified box {:.3g} of it, median smallest box seen to break {:.3g}; bound over the "
      "largest "
      "sigma found: median {:.3g}\n",
      certificate.judged,
      certificate.moments.size(),
      100 * certificate.certified,
      100 * certificate.broken,
      100 * certificate.stable,
      certificate.largest_box,
      certificate.smallest_broken_box,
      certificate.looseness);
  return text;
}

std::string CertificateJson(const Certificate& certificate, const CertifyOptions& options) {
  using Json = nlohmann::ordered_json;
  const auto number = [](double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
  };
  Json box;
  for (const BoxKey& key : kBoxKeys) box[key.name] = options.radii.*(key.radius);
  box["frames_together"] = options.radii.frames_together;
  Json moments = Json::array();
  for (const MomentCertificate& m : certificate.moments) {
    Json entry = {{"time", m.time},
                  {"contact", Name(m.mode)},
                  {"status", m.status == StiffnessStatus::kOk ? "ok" : Describe(m.status)}};
    if (!m.refused.empty()) entry["refused"] = m.refused;
    entry["sigma"] = number(m.sigma);
    entry["sampled"] = number(m.sampled);
    entry["sought"] = number(m.sought);
    entry["upper"] = number(m.upper);
    entry["loop_change"] = number(m.loop_change);
    entry["radius"] = number(m.radius);
    entry["radius_found"] = number(m.radius_found);
    entry["radius_upper"] = number(m.radius_upper);
    entry["sigma_box"] = number(m.sigma_box);
    entry["stable_box"] = number(m.stable_box);
    entry["certified_box"] = number(m.certified_box);
    entry["broken_box"] = number(m.broken_box);
    moments.push_back(std::move(entry));
  }
  const Json json = {{"box", box},
                     {"samples", options.samples},
                     {"judged", certificate.judged},
                     {"certified", certificate.certified},
                     {"broken", certificate.broken},
                     {"stable", certificate.stable},
                     {"looseness", number(certificate.looseness)},
                     {"largest_box", number(certificate.largest_box)},
                     {"smallest_broken_box", number(certificate.smallest_broken_box)},
                     {"moments", moments}};
  return json.dump(1) + "\n";
}

}  // namespace silc
