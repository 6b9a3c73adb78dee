// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "silc/deploy/link.h"

namespace silc {

struct DdsOptions {
  int domain = 0;       // the robot's is 0
  std::string network;  // interface, "eth0"; "" for Cyclone's choice
};

/// Both ends of rt/lowstate and rt/lowcmd over Cyclone DDS. Throws RunError when Cyclone refuses:
/// no such interface, no such domain. Ends made in one process with the same domain share it.
std::unique_ptr<RobotLink> MakeDdsLink(const DdsOptions& options);
std::unique_ptr<RobotPort> MakeDdsPort(const DdsOptions& options);

}  // namespace silc
