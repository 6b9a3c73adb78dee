// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/history.h"

#include <algorithm>

#include "silc/base/check.h"

namespace silc {

History::History(const ObservationLayout& layout) : reset_(layout.reset) {
  int width = 0, depth = 0;
  std::vector<int> begin;
  for (const ObservationTerm& term : layout.terms) {
    begin.push_back(width);
    width += TermWidth(layout, term);
    depth = std::max(depth, TermFrames(layout, term));
  }
  frames_ = Eigen::MatrixXd::Zero(width, depth);
  clipped_.assign(static_cast<std::size_t>(depth),
                  std::vector<char>(static_cast<std::size_t>(width), 0));

  const auto age = [&](int i, int count) { return layout.newest_first ? i : count - 1 - i; };
  if (layout.order == FrameOrder::kFrameMajor) {
    for (int i = 0; i < depth; ++i) {
      for (int e = 0; e < width; ++e) slots_.push_back({e, age(i, depth)});
    }
  } else {
    for (std::size_t t = 0; t < layout.terms.size(); ++t) {
      const int count = TermFrames(layout, layout.terms[t]);
      for (int i = 0; i < count; ++i) {
        for (int e = 0; e < TermWidth(layout, layout.terms[t]); ++e)
          slots_.push_back({begin[t] + e, age(i, count)});
      }
    }
  }
}

void History::Reset() {
  frames_.setZero();
  for (auto& frame : clipped_) std::fill(frame.begin(), frame.end(), char{0});
  newest_ = 0;
  empty_ = true;
  any_clipped_ = false;
}

void History::Push(const Eigen::VectorXd& frame, const std::vector<char>& clipped) {
  SILC_CHECK(frame.size() == frames_.rows() &&
             clipped.size() == static_cast<std::size_t>(frame.size()));
  const int copies = empty_ && reset_ == HistoryReset::kFirstFrame ? num_frames() : 1;
  empty_ = false;
  for (int i = 0; i < copies; ++i) {
    newest_ = (newest_ + 1) % num_frames();
    frames_.col(newest_) = frame;
    std::copy(clipped.begin(), clipped.end(), clipped_[static_cast<std::size_t>(newest_)].begin());
  }
  any_clipped_ = false;
  for (const auto& marks : clipped_) {
    any_clipped_ = any_clipped_ || std::find(marks.begin(), marks.end(), char{1}) != marks.end();
  }
}

}  // namespace silc
