// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/observation_layout.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <sstream>

#include "silc/base/error.h"
#include "silc/base/limits.h"
#include "silc/base/nearest.h"
#include "silc/base/utf8.h"
#include "silc/policy/index.h"
#include "silc/stiffness/types.h"

namespace silc {
namespace {

// Everything Validate() says comes through here: "PLACE: key: what".
[[noreturn]] void Fail(const std::string& place, const std::string& key, const std::string& what) {
  throw ConfigError(place + ": " + key + ": " + what);
}

void CheckRange(const std::string& place,
                const std::string& key,
                const std::vector<double>& values,
                double low,
                double high) {
  for (const double value : values) {
    if (value >= low && value <= high) continue;  // a NaN is not
    std::ostringstream text;
    text << value << " is outside [" << low << ", " << high << "]";
    Fail(place, key, text.str());
  }
}

void CheckText(const std::string& place, const std::string& key, const std::string& name) {
  if (!IsPlainText(name)) Fail(place, key, "'" + Printable(name) + "' is no text");
}

void CheckPerJoint(const std::string& place,
                   const std::string& key,
                   const std::vector<double>& values,
                   std::size_t joints,
                   bool may_be_empty,
                   double low,
                   double high) {
  if (values.empty() && may_be_empty) return;
  if (values.size() != joints) {
    Fail(place,
         key,
         std::to_string(values.size()) + " numbers for " + std::to_string(joints) + " joints");
  }
  CheckRange(place, key, values, low, high);
}

void CheckNames(const std::string& place,
                const std::string& key,
                const std::vector<std::string>& names,
                const std::vector<std::string>* among) {
  std::set<std::string> seen;
  const std::set<std::string> known = among == nullptr
                                          ? std::set<std::string>()
                                          : std::set<std::string>{among->begin(), among->end()};
  for (const std::string& name : names) {
    if (!seen.insert(name).second) Fail(place, key, "'" + name + "' is listed twice");
    if (among != nullptr && !known.contains(name)) {
      Fail(place, key, "'" + name + "' is not a joint of the layout" + DidYouMean(name, *among));
    }
  }
}

}  // namespace

const std::vector<std::string>& TermSourceNames() {
  static const std::vector<std::string> kNames = {
      "joint_pos",     "joint_vel",      "joint_torque",      "prev_action",     "ref_joint_pos",
      "base_ang_vel",  "base_lin_vel",   "projected_gravity", "command_lin_vel", "command_ang_vel",
      "command_twist", "command_height", "command_walk",      "command_waist",   "budget_com",
      "budget_hands",  "budget_null",    "phase_sin",         "phase_cos",       "constant"};
  return kNames;
}

const char* TermSourceName(TermSource source) {
  return TermSourceNames()[U(static_cast<int>(source))].c_str();
}

bool IsJointSource(TermSource source) { return source <= TermSource::kRefJointPos; }

std::optional<CommandedNumber> CommandedBy(TermSource source) {
  switch (source) {
    case TermSource::kBudgetCom:
      return kCommandCom;
    case TermSource::kBudgetHands:
      return kCommandHands;
    case TermSource::kBudgetNull:
      return kCommandNull;
    default:
      return std::nullopt;
  }
}

TermSource TermOf(CommandedNumber number) {
  constexpr TermSource kSources[] = {
      TermSource::kBudgetCom, TermSource::kBudgetHands, TermSource::kBudgetNull};
  return kSources[number];
}

void AddBudgetTerms(const BudgetCommand& command, ObservationLayout* layout) {
  for (int i = 0; i < kNumCommanded; ++i) {
    if (!command.range[U(i)]) continue;
    const TermSource source = TermOf(static_cast<CommandedNumber>(i));
    const bool there = std::any_of(layout->terms.begin(),
                                   layout->terms.end(),
                                   [&](const auto& term) { return term.source == source; });
    if (there) continue;
    const BudgetRange& range = *command.range[U(i)];
    ObservationTerm term;
    term.name = TermSourceName(source);
    term.source = source;
    // (B3); a range of one number is shown as 0
    term.offset = std::log(range.Middle());
    const double half_width = 0.5 * std::log(range.high / range.low);
    term.scale = {half_width > 0 ? std::min(1 / half_width, kMaxTermNumber) : 1.0};
    layout->terms.push_back(std::move(term));
  }
}

const std::vector<std::string>& TermJoints(const ObservationLayout& layout,
                                           const ObservationTerm& term) {
  if (!term.joints.empty()) return term.joints;
  return term.source == TermSource::kPrevAction ? layout.action.joints : layout.joints;
}

int TermWidth(const ObservationLayout& layout, const ObservationTerm& term) {
  if (IsJointSource(term.source)) return static_cast<int>(TermJoints(layout, term).size());
  switch (term.source) {
    case TermSource::kBaseAngVel:
    case TermSource::kBaseLinVel:
    case TermSource::kProjectedGravity:
    case TermSource::kCommandTwist:
    case TermSource::kCommandWaist:
      return 3;
    case TermSource::kCommandLinVel:
      return 2;
    case TermSource::kPhaseSin:
    case TermSource::kPhaseCos:
      return static_cast<int>(layout.clock.offsets.size());
    case TermSource::kConstant:
      return static_cast<int>(term.constant.size());
    default:
      return 1;
  }
}

int TermFrames(const ObservationLayout& layout, const ObservationTerm& term) {
  return term.history > 0 ? term.history : layout.history;
}

int ObservationWidth(const ObservationLayout& layout) {
  std::int64_t width = 0;
  for (const ObservationTerm& term : layout.terms) {
    width += std::int64_t{TermWidth(layout, term)} * TermFrames(layout, term);
  }
  // far beyond what Validate() lets through
  return static_cast<int>(std::min<std::int64_t>(width, std::numeric_limits<int>::max()));
}

std::string DescribeTerms(const ObservationLayout& layout) {
  std::ostringstream text;
  int frame = 0, at = 0;
  for (const ObservationTerm& term : layout.terms) {
    const int width = TermWidth(layout, term), frames = TermFrames(layout, term);
    text << "  " << term.name << ": " << width;
    if (layout.order == FrameOrder::kTermMajor) {
      if (frames > 1) text << " × " << frames << " frames";
      text << ", from " << at << "\n";
    } else {
      text << ", from " << frame << " of the frame\n";
    }
    frame += width;
    at += width * frames;
  }
  if (layout.order == FrameOrder::kFrameMajor)
    text << "  frame: " << frame << " × " << layout.history << " frames\n";
  text << "  together: " << at;
  return text.str();
}

void ObservationLayout::Validate(const std::string& place) const {
  if (!(control_dt > 0 && control_dt <= 1)) {
    Fail(place, "control_dt", std::to_string(control_dt) + " s must be in (0, 1]");
  }
  // a robot has no more, and so has its policy: names are compared with each other below
  if (joints.size() > U(kMaxDofs)) {
    Fail(place,
         "joints",
         std::to_string(joints.size()) + " joints; silc reads at most " + std::to_string(kMaxDofs));
  }
  if (terms.size() > kMaxTerms) {
    Fail(place,
         "terms",
         std::to_string(terms.size()) + " terms; silc reads at most " + std::to_string(kMaxTerms));
  }
  CheckText(place, "name", name);
  CheckText(place, "input", input);
  CheckText(place, "output", output);
  for (const std::string& joint : joints) CheckText(place, "joints", joint);
  for (const ObservationTerm& term : terms) CheckText(place, "terms", term.name);
  if (joints.empty()) Fail(place, "joints", "none given");
  CheckNames(place, "joints", joints, nullptr);
  CheckPerJoint(place, "default_pose", default_pose, joints.size(), false, -kMaxAngle, kMaxAngle);
  CheckPerJoint(place, "kp", kp, joints.size(), true, kMinKp, kMaxKp);
  CheckPerJoint(place, "kd", kd, joints.size(), true, 0, kMaxKd);
  CheckPerJoint(place, "effort_limit", effort_limit, joints.size(), true, kMinEffort, kMaxEffort);
  if (kp.empty() != kd.empty()) Fail(place, "kp, kd", "give both or none");
  if (history < 1 || history > 1000)
    Fail(place, "history", std::to_string(history) + " must be in [1, 1000]");

  if (action.joints.empty()) Fail(place, "action.joints", "none given");
  CheckNames(place, "action.joints", action.joints, &joints);
  CheckNames(place, "action.residual_joints", action.residual_joints, &action.joints);
  if (action.scale.size() != 1 && action.scale.size() != action.joints.size()) {
    Fail(place,
         "action.scale",
         std::to_string(action.scale.size()) + " numbers for " +
             std::to_string(action.joints.size()) + " actions; give one, or one per action");
  }
  CheckRange(place, "action.scale", action.scale, -kMaxActionScale, kMaxActionScale);
  if (!(action.clip > 0)) Fail(place, "action.clip", "must be positive");

  if (clock.period != 0) {
    CheckRange(place, "clock.period", {clock.period}, kMinClockPeriod, kMaxClockPeriod);
    CheckRange(place, "clock.offsets", clock.offsets, -kMaxTermNumber, kMaxTermNumber);
    CheckRange(
        place, "clock.standing_phase", {clock.standing_phase}, -kMaxTermNumber, kMaxTermNumber);
    CheckRange(place, "clock.standing_speed", {clock.standing_speed}, 0, 10);
    if (clock.offsets.empty())
      Fail(place, "clock.offsets", "give the phase of each foot at the start");
  }

  if (terms.empty()) Fail(place, "terms", "none given");
  std::set<std::string> names;
  for (const ObservationTerm& term : terms) {
    const std::string key = "terms." + term.name;
    if (!names.insert(term.name).second) Fail(place, key, "is listed twice");
    if (!term.joints.empty() && !IsJointSource(term.source)) {
      Fail(place, key + ".joints", std::string(TermSourceName(term.source)) + " has no joints");
    }
    CheckNames(place,
               key + ".joints",
               term.joints,
               term.source == TermSource::kPrevAction ? &action.joints : &joints);
    if (term.minus_default && term.source != TermSource::kJointPos &&
        term.source != TermSource::kRefJointPos) {
      Fail(place, key + ".minus_default", "is for joint_pos and ref_joint_pos");
    }
    if ((term.source == TermSource::kPhaseSin || term.source == TermSource::kPhaseCos) &&
        clock.period == 0) {
      Fail(place, key, "needs a clock: with period and offsets");
    }
    const int width = TermWidth(*this, term);
    if (width == 0) Fail(place, key, "has no elements");
    if (term.scale.size() != 1 && term.scale.size() != U(width)) {
      Fail(place,
           key + ".scale",
           std::to_string(term.scale.size()) + " numbers for " + std::to_string(width) +
               " elements; give one, or one per element");
    }
    CheckRange(place, key + ".scale", term.scale, -kMaxTermNumber, kMaxTermNumber);
    CheckRange(place, key + ".offset", {term.offset}, -kMaxTermNumber, kMaxTermNumber);
    CheckRange(place, key + ".value", term.constant, -kMaxTermNumber, kMaxTermNumber);
    if (term.offset != 0 && (term.minus_default || term.source == TermSource::kConstant)) {
      Fail(place, key + ".offset", "this term has one already");
    }
    if (CommandedBy(term.source) && term.scale[0] == 0) {
      Fail(place, key + ".scale", "0 would hide the command");
    }
    if (!(term.clip > 0) || !(term.clip_input > 0)) Fail(place, key + ".clip", "must be positive");
    if (term.history < 0 || term.history > 1000) {
      Fail(place, key + ".history", std::to_string(term.history) + " must be in [0, 1000]");
    }
    if (order == FrameOrder::kFrameMajor && TermFrames(*this, term) != history) {
      Fail(place,
           key + ".history",
           "frames are kept whole; use order: term_major for different histories");
    }
  }
  if (ObservationWidth(*this) > 1'000'000)
    Fail(place, "terms", "the observation is wider than 1000000");
}

std::string ObservationLayout::Title() const {
  return "layout '" + name + "'" + (file.empty() ? "" : " (" + file + ")");
}

std::string ObservationLayout::Place(const std::string& policy_file) const {
  return file.empty() ? policy_file + ": " + Title() : file;
}

std::vector<int> MapJoints(const std::vector<std::string>& joints,
                           const std::vector<std::string>& robot_joints,
                           const std::string& place) {
  std::vector<int> index;
  for (const std::string& joint : joints) {
    const auto at = std::find(robot_joints.begin(), robot_joints.end(), joint);
    if (at == robot_joints.end()) {
      throw ConfigError(place + ": joint '" + joint + "' is not one of the robot's " +
                        std::to_string(robot_joints.size()) + " joints" +
                        DidYouMean(joint, robot_joints));
    }
    index.push_back(static_cast<int>(at - robot_joints.begin()));
  }
  return index;
}

}  // namespace silc
