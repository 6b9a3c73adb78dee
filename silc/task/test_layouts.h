// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "silc/base/test_paths.h"
#include "silc/policy/layout_file.h"

// Layouts that tests of the task train with: the shipped one, and two that differ from it in all
// that a layout can say.
namespace silc {

inline ObservationLayout ShippedLayout() {
  return ReadLayoutFile(SourcePath("layouts/g1_loco.yaml")).layout;
}

/// Other order of terms and joints, other scales (one per element for the joints), clips that hold,
/// a constant, two feet; whole frames, newest first, zeros before the first.
inline ObservationLayout ShuffledLayout() {
  ObservationLayout layout = ShippedLayout();
  layout.name = "shuffled";
  std::reverse(layout.terms.begin(), layout.terms.end());
  std::rotate(layout.terms.begin(), layout.terms.begin() + 5, layout.terms.end());
  double factor = 0.3;
  for (ObservationTerm& term : layout.terms) {
    factor += 0.1;
    for (double& scale : term.scale) scale *= factor;
    if (term.source == TermSource::kJointPos) {
      term.joints.assign(layout.joints.rbegin(), layout.joints.rend());
      term.scale.clear();
      for (int j = 0; j < 29; ++j) term.scale.push_back(0.5 + 0.05 * j);
    }
    if (term.source == TermSource::kJointVel) term.clip_input = 0.5;
    if (term.source == TermSource::kPrevAction) term.clip = 0.3;
    if (term.source == TermSource::kRefJointPos) term.minus_default = true;
    if (term.source == TermSource::kCommandLinVel) term.source = TermSource::kCommandTwist;
  }
  ObservationTerm constant;
  constant.name = "constant";
  constant.constant = {0.5, -2};
  constant.scale = {1.5};
  layout.terms.insert(layout.terms.begin() + 3, constant);
  layout.history = 3;
  layout.newest_first = true;
  layout.reset = HistoryReset::kZeros;
  layout.clock.period = 0.7;
  layout.clock.offsets = {0.5, 3.5};
  layout.clock.standing_phase = 1;
  return layout;
}

/// The same terms, each with a history of its own, oldest first, copies before the first.
inline ObservationLayout TermMajorLayout() {
  ObservationLayout layout = ShuffledLayout();
  layout.name = "term_major";
  layout.order = FrameOrder::kTermMajor;
  layout.newest_first = false;
  layout.reset = HistoryReset::kFirstFrame;
  int frames = 0;
  for (ObservationTerm& term : layout.terms) term.history = 1 + frames++ % 4;
  return layout;
}

struct TestLayout {
  const char* name;
  ObservationLayout (*make)();
};
inline constexpr TestLayout kTestLayouts[] = {
    {"Shipped", ShippedLayout}, {"Shuffled", ShuffledLayout}, {"TermMajor", TermMajorLayout}};

}  // namespace silc
