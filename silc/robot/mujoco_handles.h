// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mujoco/mujoco.h>

#include <memory>

namespace silc {

struct MjSpecDeleter {
  void operator()(mjSpec* spec) const { mj_deleteSpec(spec); }
};
struct MjModelDeleter {
  void operator()(mjModel* model) const { mj_deleteModel(model); }
};
struct MjDataDeleter {
  void operator()(mjData* data) const { mj_deleteData(data); }
};

using MjSpecPtr = std::unique_ptr<mjSpec, MjSpecDeleter>;
using MjModelPtr = std::unique_ptr<mjModel, MjModelDeleter>;
using MjDataPtr = std::unique_ptr<mjData, MjDataDeleter>;

/// By default MuJoCo ends the process on an error and writes MUJOCO_LOG.TXT into the working
/// folder. After this call its errors are thrown as RunError through the MuJoCo call that met them
/// (the mjData in use is then unfit for anything but deletion) and its warnings go to the log.
/// Loading a robot does it; calling it again does nothing.
void InstallMujocoHandlers();

}  // namespace silc
