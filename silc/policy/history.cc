// SPDX-License-Identifier: Apache-2.0
#include "silc/policy/history.h"

#include <algorithm>

#include "silc/base/check.h"

namespace silc {

History::History(const ObservationTable& table)
    : first_frame_fills_(table.first_frame_fills),
      frames_(Eigen::MatrixXd::Zero(table.frame_width(), table.frames)),
      clipped_(static_cast<std::size_t>(table.frames),
               std::vector<char>(static_cast<std::size_t>(table.frame_width()), 0)),
      slots_(table.slots) {}

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
  const int copies = empty_ && first_frame_fills_ ? num_frames() : 1;
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
