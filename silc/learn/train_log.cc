// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/train_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "silc/base/error.h"

namespace silc {
namespace {

double WallTime() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

std::string Duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  const long s = std::lround(seconds);
  if (s >= 3600) return fmt::format("{} h {:02} min", s / 3600, s / 60 % 60);
  if (s >= 60) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} s", s);
}

// "train/kl" → "kl"
std::string_view Short(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

}  // namespace

std::string MetricsLine(const IterationReport& report, double wall_s) {
  nlohmann::ordered_json line;
  const auto number = [](double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
  };
  line["iteration"] = report.iteration;
  line["wall_s"] = number(wall_s);
  line["steps_per_s"] = number(report.steps_per_s);
  for (const auto& [name, value] : report.scalars) line[name] = number(value);
  return line.dump() + "\n";
}

std::string PlainLine(const IterationReport& report, double eta_s) {
  std::string text = fmt::format("{}/{}  {:.0f} steps/s  {} left",
                                 report.iteration,
                                 report.iterations,
                                 report.steps_per_s,
                                 Duration(eta_s));
  for (const auto& [name, value] : report.scalars) {
    if (name.starts_with("reward/")) continue;
    text += fmt::format("  {} {:.4g}", Short(name), value);
  }
  return text + "\n";
}

std::string PanelText(const IterationReport& report, double eta_s) {
  std::string text = fmt::format("iteration {} of {}   {:.0f} steps/s   {} left\n",
                                 report.iteration,
                                 report.iterations,
                                 report.steps_per_s,
                                 Duration(eta_s));
  int column = 0;
  for (const auto& [name, value] : report.scalars) {
    if (name.starts_with("reward/")) continue;
    text += fmt::format("  {:<20}{:>11.4g}", Short(name), value);
    if (++column % 3 == 0) text += "\n";
  }
  if (column % 3 != 0) text += "\n";
  return text;
}

TrainLog::TrainLog(const std::string& folder, std::FILE* out)
    : folder_(folder), out_(out), start_(std::chrono::steady_clock::now()) {
  const char* term = std::getenv("TERM");
  terminal_ = out != nullptr && isatty(fileno(out)) == 1 && term != nullptr &&
              std::strcmp(term, "dumb") != 0;
  if (!folder.empty()) events_ = std::make_unique<EventFile>(folder, WallTime());
}

TrainLog::~TrainLog() = default;

void TrainLog::Write(const IterationReport& report) {
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (first_iteration_ < 0) first_iteration_ = report.iteration - 1;
  const double eta =
      wall / (report.iteration - first_iteration_) * (report.iterations - report.iteration);
  if (!folder_.empty()) {
    const std::string path = folder_ + "/metrics.jsonl", line = MetricsLine(report, wall);
    std::FILE* file = std::fopen(path.c_str(), "ab");
    const bool written =
        file != nullptr && std::fwrite(line.data(), 1, line.size(), file) == line.size();
    if (file == nullptr || std::fclose(file) != 0 || !written) {
      throw RunError(path + ": cannot be written: " + std::strerror(errno));
    }
    Scalars scalars = report.scalars;
    scalars.emplace_back("perf/steps_per_s", report.steps_per_s);
    events_->Write(WallTime(), report.iteration, scalars);
  }
  if (out_ == nullptr) return;
  if (!terminal_) {
    fmt::print(out_, "{}", PlainLine(report, eta));
  } else {
    const std::string text = PanelText(report, eta);
    // up to the panel's first line, and clear from there down
    if (drawn_lines_ > 0) fmt::print(out_, "\033[{}A\033[J", drawn_lines_);
    fmt::print(out_, "{}", text);
    drawn_lines_ = 0;
    for (const char c : text) drawn_lines_ += c == '\n';
  }
  std::fflush(out_);
}

void TrainLog::Say(const std::string& text) {
  if (out_ == nullptr) return;
  fmt::print(out_, "{}\n", text);
  drawn_lines_ = 0;  // the next panel starts below
  std::fflush(out_);
}

}  // namespace silc
