// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "silc/policy/observation_layout.h"

namespace silc {

/// What an ONNX file says beside the network (metadata_props).
using Metadata = std::map<std::string, std::string>;

/// Version of the `silc` block. Readers refuse a newer one.
inline constexpr int kSilcBlockVersion = 1;

bool HasSilcBlock(const Metadata& metadata);
bool HasMjlabKeys(const Metadata& metadata);
bool HasHolosomaGains(const Metadata& metadata);

/// The layout our own files carry, exactly as it was written. Every function here that reads throws
/// ConfigError with `place`, the key and what is wrong with it.
ObservationLayout LayoutFromSilcBlock(const Metadata& metadata, const std::string& place);

/// The layout of an mjlab velocity policy: names, scales, clips, histories, joints, pose, gains and
/// action scale from the file, the meaning of the names from `vocabulary` (layouts/mjlab.yaml). A
/// term or a key that is not known is an error, never a guess.
ObservationLayout LayoutFromMjlab(const Metadata& metadata,
                                  const ObservationLayout& vocabulary,
                                  const std::string& place);

/// Takes kp and kd (JSON lists in the order of dof_names) into a layout that has none.
void TakeHolosomaGains(const Metadata& metadata,
                       const std::string& place,
                       ObservationLayout* layout);

/// The layout of a policy. `layout` is what the user said: a name, a path, or "" to take what the
/// file says of itself (a silc block, else mjlab's keys; otherwise an error that asks for one).
/// `folders` have the layouts that go by name, as FindLayout() takes them.
ObservationLayout ChooseLayout(const Metadata& metadata,
                               const std::string& layout,
                               const std::string& folders,
                               const std::string& place);

/// What our writer puts into a file: mjlab's keys, with all digits, and the silc block. Keys that
/// describe the observation in mjlab's way are left out when mjlab's rules cannot express the
/// layout (frame-major history, newest first, residual actions, clips after scaling, a clock): a
/// consumer that stops at a missing key is better than one that builds another observation.
Metadata MetadataFor(const ObservationLayout& layout, const std::string& run_path);

/// The fewest digits that read back as the same double: "0.25", "40.179238471".
std::string ShortestNumber(double value);

}  // namespace silc
