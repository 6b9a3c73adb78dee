// SPDX-License-Identifier: Apache-2.0
// What an ONNX file says beside the network, in lines of KEY=VALUE: a ConfigError or a layout that
// can be written and read again, nothing else.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/policy/layout_file.h"
#include "silc/policy/policy_metadata.h"

namespace {

silc::Metadata Lines(std::string_view text) {
  silc::Metadata metadata;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::size_t equal = line.find('=');
    if (equal != std::string_view::npos) {
      metadata[std::string(line.substr(0, equal))] = std::string(line.substr(equal + 1));
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return metadata;
}

// What was read can be written, and reads back as the same to the last digit.
template <typename Read>
void Try(const Read& read) {
  try {
    const silc::Metadata written = silc::MetadataFor(read(), "fuzz");
    const silc::ObservationLayout again = silc::LayoutFromSilcBlock(written, "again");
    SILC_CHECK(silc::MetadataFor(again, "fuzz") == written);
  } catch (const silc::ConfigError& error) {
    SILC_CHECK(std::string_view(error.what()).substr(0, 5) != "again");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto named = [](const std::string& name) {
    return silc::ReadLayoutFile(silc::FindLayout(name, silc::LayoutFolders())).layout;
  };
  static const silc::ObservationLayout kMjlab = named("mjlab"), kHolosoma = named("holosoma");
  const silc::Metadata metadata = Lines({reinterpret_cast<const char*>(data), size});
  Try([&] { return silc::LayoutFromSilcBlock(metadata, "fuzz"); });
  Try([&] { return silc::LayoutFromMjlab(metadata, kMjlab, "fuzz"); });
  Try([&] {
    silc::ObservationLayout layout = kHolosoma;
    silc::TakeHolosomaGains(metadata, "fuzz", &layout);
    return layout;
  });
  return 0;
}
