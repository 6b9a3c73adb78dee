// SPDX-License-Identifier: Apache-2.0
#include "silc/view/export_html.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "silc/base/check.h"
#include "silc/view/page_files.h"

namespace silc {
namespace {

std::string ToBase64(std::string_view bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve(4 * (bytes.size() + 2) / 3);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      word = word << 8 | (k < left ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= left ? kDigits[word >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

// Replaces the one place of `what`.
void ReplaceOnce(std::string_view what, const std::string& with, std::string* text) {
  const std::size_t at = text->find(what);
  SILC_CHECK(at != std::string::npos);
  text->replace(at, what.size(), with);
}

std::string Bytes(const char* path) {
  const PageFile* file = FindPageFile(path);
  SILC_CHECK(file != nullptr);
  return std::string(file->bytes);
}

}  // namespace

std::string ServedRecordingPage(const std::string& scene_json,
                                const std::vector<std::string>& frames) {
  std::string recording = "{\"scene\": " + scene_json + ", \"frames\": [";
  for (std::size_t i = 0; i < frames.size(); ++i) {
    recording += (i == 0 ? "\"" : ",\"") + ToBase64(frames[i]) + "\"";
  }
  recording += "]}";
  // "</script>" in a name must not end the script
  for (std::size_t at = 0; (at = recording.find("</", at)) != std::string::npos; at += 3) {
    recording.replace(at, 2, "<\\/");
  }
  std::string page = Bytes("/page/index.html");
  ReplaceOnce(
      "<script type=\"module\">",
      "<script>window.silcRecording = " + recording + ";</script>\n<script type=\"module\">",
      &page);
  return page;
}

std::string RecordingPage(const std::string& scene_json, const std::vector<std::string>& frames) {
  // modules find each other by name, wherever the names point: here into the page itself
  nlohmann::json imports;
  for (const PageFile& file : PageFiles()) {
    if (!file.path.ends_with(".js")) continue;
    const std::string name(file.path.substr(file.path.rfind('/') + 1));
    imports[name == "three.module.js" ? "three" : "view/" + name] =
        "data:text/javascript;base64," + ToBase64(file.bytes);
  }
  std::string page = ServedRecordingPage(scene_json, frames);
  ReplaceOnce("<link rel=\"stylesheet\" href=\"/page/style.css\">",
              "<style>\n" + Bytes("/page/style.css") + "</style>",
              &page);
  ReplaceOnce(R"({"imports": {"three": "/page/three.module.js", "view/": "/page/"}})",
              nlohmann::json{{"imports", imports}}.dump(),
              &page);
  return page;
}

std::string ExportHtml(ExportOptions options, const std::function<void(double)>& progress) {
  options.simulation.observe_in_step = true;
  LiveSimulation simulation(options.simulation);
  const int steps = static_cast<int>(std::lround(options.seconds / simulation.period()));
  std::vector<std::string> frames;
  // a robot without hands is pushed at its pelvis twice
  const std::uint32_t hand = simulation.limits().pushes == 3 ? 1 : 0;
  for (int step = 0; step < steps; ++step) {
    const auto at = [&](double second) {
      return step == static_cast<int>(std::lround(second / simulation.period()));
    };
    if (at(1)) simulation.Apply({InputType::kPush, 0, hand, {}});
    if (at(6)) simulation.Apply({InputType::kPush, 0, 0, {}});
    const StateFrame frame = simulation.Step();
    if (step % 2 == 0) frames.push_back(EncodeState(frame));  // 25 a second are enough to look at
    if (progress) progress((step + 1.0) / steps);
  }
  return RecordingPage(simulation.scene_json(), frames);
}

}  // namespace silc
