// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "silc/deploy/link.h"

namespace silc::test {

/// Both ends in one process: the newest frame each way.
class InProcessBus {
 public:
  InProcessBus();
  std::unique_ptr<RobotLink> MakeLink();
  std::unique_ptr<RobotPort> MakePort();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace silc::test
