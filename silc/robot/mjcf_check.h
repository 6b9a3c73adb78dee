// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mujoco/mujoco.h>

#include <string>

namespace silc {

/// Looks through an MJCF, and what it includes and attaches, for elements of which a few words or
/// bytes make millions: replicate, composite, flexcomp, attach, height fields, textures and the PNG
/// files they name. MuJoCo builds them before it can be asked how many there are, and follows a
/// file that includes itself without end. Throws ConfigError that names file, line and limit.
void CheckMjcfFile(const std::string& path);

/// Holds a compiled model against the limits on its size, and its numbers against what physics
/// allows: finite everywhere, no negative mass, inertia, armature, damping or friction loss. MuJoCo
/// takes some of those and answers with NaN later. Throws ConfigError that begins with `place`.
void CheckModel(const mjModel& model, const std::string& place);

}  // namespace silc
