// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <Eigen/Core>

#include "silc/policy/observation_table.h"

namespace silc {

/// The last frames of an observation, and the flat vector a network sees of them. A frame holds
/// every term of the layout once. All memory is taken at construction.
class History {
 public:
  using Slot = ObservationSlot;

  explicit History(const ObservationTable& table);

  int frame_width() const { return static_cast<int>(frames_.rows()); }
  int num_frames() const { return static_cast<int>(frames_.cols()); }
  const std::vector<Slot>& slots() const { return slots_; }

  /// Back to the start: no frame seen.
  void Reset();
  /// `frame` becomes the newest. After a Reset() the frames before it are zeros or copies of it, as
  /// the layout says. `clipped` marks elements whose derivative is zero because a clip holds them.
  void Push(const Eigen::VectorXd& frame, const std::vector<char>& clipped);

  double Value(const Slot& slot) const { return frames_(slot.element, Column(slot.age)); }
  bool Clipped(const Slot& slot) const {
    return any_clipped_ && clipped_[static_cast<std::size_t>(Column(slot.age))]
                                   [static_cast<std::size_t>(slot.element)];
  }
  bool any_clipped() const { return any_clipped_; }

 private:
  int Column(int age) const { return (newest_ - age + num_frames()) % num_frames(); }

  bool first_frame_fills_;
  Eigen::MatrixXd frames_;                  // frame × ring
  std::vector<std::vector<char>> clipped_;  // ring of frames
  std::vector<Slot> slots_;
  int newest_ = 0;
  bool empty_ = true;
  bool any_clipped_ = false;
};

}  // namespace silc
