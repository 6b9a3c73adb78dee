// SPDX-License-Identifier: Apache-2.0
#include "silc/deploy/test_bus.h"

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace silc::test {

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
  std::atomic<int> writers{0}, ports{0};

  struct Link : RobotLink {
    explicit Link(std::shared_ptr<Shared> bus) : shared(std::move(bus)) {}
    ~Link() override { shared->writers -= own_writers; }
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;
    bool ReceiveState(LowState* received, std::chrono::nanoseconds wait) override {
      return shared->state.Take(received, wait);
    }
    void BeginSending() override {
      ++own_writers;
      ++shared->writers;
    }
    bool SendCommand(const LowCommand& sent) override {
      if (own_writers == 0) return false;
      shared->command.Put(sent);
      return true;
    }
    LinkHealth Health() override {
      return {.robot_present = shared->ports > 0, .foreign_writers = shared->writers - own_writers};
    }
    std::shared_ptr<Shared> shared;
    int own_writers = 0;
  };

  struct Port : RobotPort {
    explicit Port(std::shared_ptr<Shared> bus) : shared(std::move(bus)) { ++shared->ports; }
    ~Port() override { --shared->ports; }
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;
    bool ReceiveCommand(LowCommand* received, std::chrono::nanoseconds wait) override {
      return shared->command.Take(received, wait);
    }
    bool SendState(const LowState& sent) override {
      shared->state.Put(sent);
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

}  // namespace silc::test
