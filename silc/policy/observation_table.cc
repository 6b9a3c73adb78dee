// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/observation_table.h"

#include <algorithm>

#include "silc/policy/index.h"
#include "silc/policy/observation_layout.h"

namespace silc {
namespace {

// [rad] per robot joint; joints that the layout does not name are asked for by nobody.
std::vector<double> DefaultPose(const ObservationLayout& layout,
                                const std::vector<std::string>& robot_joints,
                                const std::string& place) {
  std::vector<double> pose(robot_joints.size(), 0.0);
  const std::vector<int> joint = MapJoints(layout.joints, robot_joints, place);
  for (std::size_t i = 0; i < joint.size(); ++i) pose[U(joint[i])] = layout.default_pose[i];
  return pose;
}

}  // namespace

ObservationTable CompileObservation(const ObservationLayout& layout,
                                    const std::vector<std::string>& robot_joints,
                                    const std::string& place) {
  ObservationTable table;
  table.sources = {.joints = static_cast<int>(robot_joints.size()),
                   .actions = static_cast<int>(layout.action.joints.size()),
                   .feet = static_cast<int>(layout.clock.offsets.size())};
  table.action_joint = MapJoints(layout.action.joints, robot_joints, place);
  table.whole_frames = layout.order == FrameOrder::kFrameMajor;
  table.first_frame_fills = layout.reset == HistoryReset::kFirstFrame;
  const std::vector<double> pose = DefaultPose(layout, robot_joints, place);

  int frame_width = 0;
  for (const ObservationTerm& term : layout.terms) frame_width += TermWidth(layout, term);
  int begin = 0;  // where the term's frames begin, in term-major order
  for (const ObservationTerm& term : layout.terms) {
    const int width = TermWidth(layout, term), frames = TermFrames(layout, term);
    std::vector<int> joint;
    if (IsJointSource(term.source)) {
      // an action is known by its place in the policy's answer
      joint = term.source == TermSource::kPrevAction
                  ? MapJoints(TermJoints(layout, term), layout.action.joints, place)
                  : MapJoints(TermJoints(layout, term), robot_joints, place);
    }
    for (int i = 0; i < width; ++i) {
      ObservationEntry<double> entry;
      entry.source = term.source;
      entry.index = joint.empty() ? i : joint[U(i)];
      const bool constant = term.source == TermSource::kConstant;
      entry.value = table.sources.At(term.source) + (constant ? 0 : entry.index);
      entry.offset = constant             ? -term.constant[U(i)]
                     : term.minus_default ? pose[U(entry.index)]
                                          : term.offset;
      entry.scale = term.scale[term.scale.size() == 1 ? 0 : U(i)];
      entry.clip_input = term.clip_input;
      entry.clip = term.clip;
      entry.frames = frames;
      const int step = table.whole_frames ? frame_width : width;
      const int first = table.whole_frames ? static_cast<int>(table.entries.size()) : begin + i;
      entry.newest = layout.newest_first ? first : first + (frames - 1) * step;
      entry.stride = layout.newest_first ? step : -step;
      table.entries.push_back(entry);
    }
    table.frames = std::max(table.frames, frames);
    begin += width * frames;
  }

  table.slots.resize(U(begin));
  for (int e = 0; e < table.frame_width(); ++e) {
    const ObservationEntry<double>& entry = table.entries[U(e)];
    for (int age = 0; age < entry.frames; ++age) {
      table.slots[U(entry.newest + age * entry.stride)] = {e, age};
    }
  }
  return table;
}

}  // namespace silc
