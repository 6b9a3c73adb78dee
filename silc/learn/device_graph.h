// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

namespace silc {

/// GPU work recorded once and replayed as one launch: an update is thousands of small kernels, and
/// launching them one by one takes longer than running them. The work must not wait for the device,
/// and must read and write the same memory every time.
class DeviceGraph {
 public:
  DeviceGraph();
  ~DeviceGraph();
  DeviceGraph(DeviceGraph&&) noexcept;
  DeviceGraph& operator=(DeviceGraph&&) noexcept;

  /// Whether this build and the current stream can record.
  static bool Available();

  bool recorded() const;
  /// Records `work` on the current stream, without running it. What was recorded before is dropped.
  /// Memory the work frees again is taken from where `sharing` took its own: the two must never run
  /// at the same time, and results of either must be held on to while the other is recorded.
  void Record(const std::function<void()>& work, const DeviceGraph* sharing = nullptr);
  /// @pre recorded()
  void Replay();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Waits for the GPU, where there is one in this build: for timings.
void WaitForDevice();

}  // namespace silc
