// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/link.h"

#include <atomic>

namespace silc {

// The newest frame, for whoever waits for it.
template <typename Frame>
class FrameSlot {
 public:
  void Put(const Frame& frame) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      frame_ = frame;
      fresh_ = true;
    }
    changed_.notify_all();
  }
  bool Take(Frame* frame, std::chrono::nanoseconds wait) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!changed_.wait_for(lock, wait, [&] { return fresh_; })) return false;
    *frame = frame_;
    fresh_ = false;
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Frame frame_{};
  bool fresh_ = false;
};

struct InProcessBus::Shared {
  FrameSlot<LowState> state;
  FrameSlot<LowCommand> command;
  std::atomic<int> links{0}, ports{0};

  struct Link : RobotLink {
    explicit Link(std::shared_ptr<Shared> bus) : shared(std::move(bus)) { ++shared->links; }
    ~Link() override { --shared->links; }
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;
    bool ReceiveState(LowState* state, std::chrono::nanoseconds wait) override {
      return shared->state.Take(state, wait);
    }
    bool SendCommand(const LowCommand& command) override {
      shared->command.Put(command);
      return true;
    }
    LinkHealth Health() override {
      return {.robot_present = shared->ports > 0, .foreign_writers = shared->links - 1};
    }
    std::shared_ptr<Shared> shared;
  };

  struct Port : RobotPort {
    explicit Port(std::shared_ptr<Shared> bus) : shared(std::move(bus)) { ++shared->ports; }
    ~Port() override { --shared->ports; }
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;
    bool ReceiveCommand(LowCommand* command, std::chrono::nanoseconds wait) override {
      return shared->command.Take(command, wait);
    }
    bool SendState(const LowState& state) override {
      shared->state.Put(state);
      return true;
    }
    std::shared_ptr<Shared> shared;
  };
};

InProcessBus::InProcessBus() : shared_(std::make_shared<Shared>()) {}

std::unique_ptr<RobotLink> InProcessBus::MakeLink() {
  return std::make_unique<Shared::Link>(shared_);
}

std::unique_ptr<RobotPort> InProcessBus::MakePort() {
  return std::make_unique<Shared::Port>(shared_);
}

}  // namespace silc
