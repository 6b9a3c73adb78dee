// SPDX-License-Identifier: Apache-2.0
#include "silc/learn/train_log.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "silc/base/error.h"
#include "silc/base/table.h"
#include "silc/base/utf8.h"
#include "silc/stiffness/condition.h"

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

// A figure people watch. Agents have one each: a key that ends in '_' stands for all it begins.
struct Figure {
  const char* label;
  const char* key;
  const char* unit = "";  // "%" is for shares
  int digits = 3;
};

// nothing when the report has no such scalar
std::string ValueText(const IterationReport& report, const Figure& figure) {
  const std::string_view key = figure.key;
  const double scale = std::string_view(figure.unit) == "%" ? 100 : 1;
  std::string text;
  bool any = false;  // a number among them: a dash has no unit
  for (const auto& [name, value] : report.scalars) {
    if (key.ends_with('_') ? !name.starts_with(key) : name != key) continue;
    text += (text.empty() ? "" : "/") + FormatNumber(scale * value, figure.digits);
    any = any || std::isfinite(value);
  }
  if (any && *figure.unit != '\0') text += std::string(" ") + figure.unit;
  return text;
}

std::string CellText(const IterationReport& report, const Figure& figure) {
  const std::string value = ValueText(report, figure);
  return value.empty() ? value : std::string(figure.label) + " " + value;
}

// 1234567 → "1.23 M"
std::string Rate(double per_s) {
  if (per_s >= 1e6) return FormatNumber(per_s / 1e6) + " M";
  if (per_s >= 1e4) return FormatNumber(per_s / 1e3) + " k";
  return FormatNumber(std::round(per_s), 4);
}

constexpr Figure kLine[] = {{"reward", "train/reward"},
                            {"episode", "task/episode_length", "s"},
                            {"vel", "task/velocity_error"},
                            {"arm", "task/arm_error"},
                            {"σ", "stiffness/sigma_mean"},
                            {"p99", "stiffness/sigma_p99"},
                            {"over", "stiffness/violating", "%", 2},
                            {"KL", "train/kl_", "", 2},
                            {"rate", "train/rate_", "", 2}};
constexpr int kLineWidth = 160;  // [columns]

struct PanelRow {
  const char* title;
  std::vector<Figure> figures;
};
const std::vector<PanelRow>& PanelRows() {
  static const std::string over = fmt::format("over {:g}", kKeptSigma);
  static const std::vector<PanelRow> rows = {{"task",
                                              {{"reward", "train/reward"},
                                               {"episode", "task/episode_length", "s"},
                                               {"survived", "task/survival", "%"},
                                               {"falls", "train/fall_share", "%"}}},
                                             {"curricula",
                                              {{"penalties", "task/penalty_scale", "", 2},
                                               {"forces", "task/force_scale", "", 2},
                                               {"heights", "task/height_scale", "", 2}}},
                                             {"errors",
                                              {{"velocity", "task/velocity_error", "m/s"},
                                               {"yaw rate", "task/yaw_rate_error", "rad/s"},
                                               {"arms", "task/arm_error", "rad"},
                                               {"height", "task/height_error", "m"},
                                               {"drift", "task/stand_speed", "m/s"}}},
                                             {"stiffness",
                                              {{"σ mean", "stiffness/sigma_mean"},
                                               {"p99", "stiffness/sigma_p99"},
                                               {over.c_str(), "stiffness/violating", "%", 2},
                                               {"λ", "penalty/lambda"},
                                               {"left out", "penalty/left_out", "%", 2}}},
                                             {"  over in",
                                              {{"double", "stiffness/violating_double", "%", 2},
                                               {"left", "stiffness/violating_left", "%", 2},
                                               {"right", "stiffness/violating_right", "%", 2},
                                               {"flight", "stiffness/violating_flight", "%", 2}}},
                                             {"  dynamic",
                                              {{"σ mean", "stiffness/frequency_sigma_mean"},
                                               {"p99", "stiffness/frequency_sigma_p99"},
                                               {"driving", "stiffness/frequency_driving", "%", 2}}},
                                             {"learning",
                                              {{"KL", "train/kl_", "", 2},
                                               {"rate", "train/rate_", "", 2},
                                               {"spread", "train/std_", "", 2},
                                               {"value loss", "train/value_loss_", "", 2}}}};
  return rows;
}
constexpr int kPanelWidth = 100;     // [columns]
constexpr int kNarrowestPanel = 40;  // [columns] any single figure fits

// a line that wraps would not be drawn over; 0 columns: it does not say
int ColumnsOf(std::FILE* out) {
  winsize size = {};
  return ::ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                         : kPanelWidth;
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
  std::string text = fmt::format("{}/{}  {} steps/s  {} left",
                                 report.iteration,
                                 report.iterations,
                                 Rate(report.steps_per_s),
                                 Duration(eta_s));
  for (const Figure& figure : kLine) {
    const std::string cell = CellText(report, figure);
    if (cell.empty()) continue;
    if (DisplayWidth(text) + 2 + DisplayWidth(cell) > kLineWidth) break;
    text += "  " + cell;
  }
  return text + "\n";
}

std::string PanelText(const IterationReport& report, double eta_s, int columns) {
  const int width = std::clamp(columns, kNarrowestPanel, kPanelWidth);
  std::string text = fmt::format("iteration {} of {}   {} steps/s   {} left\n",
                                 report.iteration,
                                 report.iterations,
                                 Rate(report.steps_per_s),
                                 Duration(eta_s));
  for (const PanelRow& row : PanelRows()) {
    std::string title = row.title, line;
    for (const Figure& figure : row.figures) {
      const std::string cell = CellText(report, figure);
      if (cell.empty()) continue;
      if (!line.empty() && DisplayWidth(line) + 3 + DisplayWidth(cell) > width) {
        text += line + "\n";
        line.clear();
        title.clear();
      }
      line += line.empty() ? fmt::format("  {:<10}{}", title, cell) : "   " + cell;
    }
    if (!line.empty()) text += line + "\n";
  }
  return text;
}

TrainLog::TrainLog(const std::string& folder,
                   std::FILE* out,
                   double line_every_s,
                   const std::atomic<bool>* stop)
    : folder_(folder),
      out_(out),
      line_every_s_(line_every_s),
      stop_(stop),
      start_(std::chrono::steady_clock::now()) {
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
    const bool ends = report.iteration == report.iterations;
    if (wall - last_line_s_ < line_every_s_ && !ends) return;
    last_line_s_ = wall;
    Print(PlainLine(report, eta));
  } else {
    const std::string text = PanelText(report, eta, ColumnsOf(out_));
    if (stop_ != nullptr && stop_->load()) drawn_lines_ = 0;
    // up to the panel's first line, and clear from there down
    if (drawn_lines_ > 0) Print(fmt::format("\033[{}A\033[J", drawn_lines_));
    Print(text);
    drawn_lines_ = 0;
    for (const char c : text) drawn_lines_ += c == '\n';
  }
}

void TrainLog::Print(const std::string& text) {
  if (out_ == nullptr) return;
  const bool written = std::fwrite(text.data(), 1, text.size(), out_) == text.size();
  if (!written || std::fflush(out_) != 0) out_ = nullptr;
}

void TrainLog::Say(const std::string& text) {
  if (out_ == nullptr) return;
  Print(text + "\n");
  drawn_lines_ = 0;  // the next panel starts below
}

}  // namespace silc
