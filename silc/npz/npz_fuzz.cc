// SPDX-License-Identifier: Apache-2.0
// Any bytes end in arrays within the limits or in a ConfigError. A .npz is tried and then a .npy:
// the checksum in the first keeps random changes from the second.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/npz/npz.h"

namespace {

constexpr silc::NpzLimits kLimits{.max_file_bytes = 1 << 20,
                                  .max_array_bytes = 1 << 20,
                                  .max_total_bytes = 1 << 21,
                                  .max_arrays = 64};

template <typename Call>
void Try(const Call& call) {
  try {
    call();
  } catch (const silc::ConfigError& error) {
    SILC_CHECK(error.what()[0] == 'F');  // every message says which file
  }
}

void TryAllAccessors(const silc::NpyArray& array) {
  SILC_CHECK(array.AnswerBytes() <= kLimits.max_array_bytes);
  Try([&] { array.AsDoubles(array.shape()); });
  Try([&] { array.AsDoubles(array.shape(), silc::NpyArray::Finite::kNotRequired); });
  Try([&] { array.AsInts(array.shape()); });
  Try([&] { array.AsStrings(array.shape()); });
  Try([&] { array.AsDouble(); });
  Try([&] { array.AsString(); });
  Try([&] { array.CheckShape({silc::kAnySize, 36}); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Try([&] {
    const silc::NpzFile npz = silc::ParseNpz(bytes, "F", kLimits);
    for (const auto& name : npz.names()) TryAllAccessors(npz[name]);
  });
  Try([&] { TryAllAccessors(silc::ParseNpy(bytes, "F", kLimits.max_array_bytes)); });
  return 0;
}
