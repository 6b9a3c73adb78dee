// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/report_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "silc/observe/summary.h"
#include "silc/plot/figure.h"

namespace silc {
namespace {

using plot::Band;
using plot::Figure;
using plot::Panel;
using plot::Series;
using plot::Stroke;

constexpr const char* kAxisNames[3] = {"x", "y", "z"};
constexpr int kAxisColor[3] = {2, 3, 1};
constexpr int kBudgetColor = 0;
// of a policy without a static answer; the reason is a sentence, and the report has it
constexpr const char* kNoStatic = "no static stiffness: the report says why";

// A hand is drawn on the base where the budget bounds it there, else as somebody feels it who
// pushes.
std::string HandName(const ObservationRun& run, int hand) {
  return std::string(hand == kLeft ? "left" : "right") +
         (run.budget.spec.hand[hand] ? " hand on the base" : " hand in the world");
}
const PointReading& HandOf(const ObservationRun& run, const Moment& moment, int hand) {
  return run.budget.spec.hand[hand] ? moment.reading.hand_on_base[hand]
                                    : moment.reading.hand_in_world[hand];
}

// Stretches of equal contact mode; double support stays unshaded.
std::vector<Band> ContactBands(const ObservationRun& run) {
  std::vector<Band> bands;
  const auto color = [](ContactMode mode) {
    return mode == ContactMode::kLeftSupport ? 5 : mode == ContactMode::kRightSupport ? 6 : 4;
  };
  for (std::size_t i = 0; i < run.moments.size(); ++i) {
    const Moment& moment = run.moments[i];
    if (moment.mode == ContactMode::kDoubleSupport) continue;
    const double end = moment.time + run.timing.period;
    const bool goes_on = i > 0 && run.moments[i - 1].mode == moment.mode && !bands.empty();
    if (goes_on) {
      bands.back().x1 = end;
    } else {
      bands.push_back({Name(moment.mode), moment.time, end, color(moment.mode)});
    }
  }
  return bands;
}

Series OverTime(const ObservationRun& run,
                const std::string& label,
                int color,
                const std::function<double(const Moment&)>& value) {
  Series series{.label = label, .color = color};
  for (const Moment& moment : run.moments) {
    series.x.push_back(moment.time);
    series.y.push_back(value(moment));
  }
  return series;
}

Panel PointPanel(const ObservationRun& run,
                 const std::string& title,
                 const std::optional<Eigen::Vector3d>& budget,
                 const std::function<const PointReading&(const Moment&)>& point) {
  Panel panel;
  panel.title = title;
  panel.x.label = "time [s]";
  panel.y = {.label = "push stiffness 1/C_ii [N/m]", .log = true};
  panel.bands = ContactBands(run);
  panel.empty = kNoStatic;
  for (int axis = 0; axis < 3; ++axis) {
    panel.series.push_back(
        OverTime(run, kAxisNames[axis], kAxisColor[axis], [&, axis](const Moment& m) {
          return point(m).one_axis[axis];
        }));
  }
  if (budget) {
    for (int axis = 0; axis < 3; ++axis) {
      panel.levels.push_back(
          {fmt::format("budget {}", kAxisNames[axis]), (*budget)[axis], kAxisColor[axis]});
    }
  }
  return panel;
}

Panel SigmaPanel(const ObservationRun& run) {
  Panel panel;
  panel.title =
      fmt::format("σ against budget '{}' ({})", run.budget.name, Name(run.budget.spec.condition));
  panel.x.label = "time [s]";
  panel.y = {.label = "σ [1]", .log = true};
  panel.bands = ContactBands(run);
  panel.series.push_back(
      OverTime(run, "static K_s", 1, [](const Moment& m) { return m.reading.quasi_static.sigma; }));
  panel.series.push_back(
      OverTime(run, "one-step K₁", 2, [](const Moment& m) { return m.reading.one_step.sigma; }));
  panel.series.back().stroke = Stroke::kDashed;
  panel.levels.push_back({"holds below 1", 1, kBudgetColor});
  return panel;
}

// Joints worth a curve each: the first of every kind in robot order, left side standing for both.
std::vector<int> PlottedJoints(const ObservationRun& run) {
  std::vector<int> joints;
  for (const char* part :
       {"hip_pitch", "knee", "ankle_pitch", "waist_pitch", "shoulder_pitch", "elbow"}) {
    for (std::size_t i = 0; i < run.joints.size(); ++i) {
      if (run.joints[i].find(part) != std::string::npos) {
        joints.push_back(static_cast<int>(i));
        break;
      }
    }
  }
  // a robot with other names: six joints spread over it
  const int n = static_cast<int>(run.joints.size());
  for (int k = 0; joints.empty() && k < std::min(6, n); ++k)
    joints.push_back(k * n / std::min(6, n));
  return joints;
}

std::vector<Panel> FrequencyPanels(const ObservationRun& run) {
  Panel stiffness, damping;
  stiffness.title = "dynamic stiffness, relative to Kp";
  stiffness.x = damping.x = {.label = "frequency [Hz]", .log = true};
  stiffness.y.label = "Re K(jω) / Kp [1]";
  stiffness.levels.push_back({"PD alone", 1, kBudgetColor});
  damping.title = "damping";
  damping.y.label = "Im K(jω) / ω [N·m·s/rad]";
  damping.levels.push_back({"", 0, 7});
  int color = 0;
  for (const int joint : PlottedJoints(run)) {
    color = color % 7 + 1;
    Series re{.label = run.joints[joint], .color = color};
    Series im{.label = run.joints[joint], .color = color};
    for (std::size_t i = 0; i < run.sweep.hz.size(); ++i) {
      const std::complex<double> K = run.sweep.K[i](joint, joint);
      re.x.push_back(run.sweep.hz[i]);
      re.y.push_back(K.real() / run.servo.kp[joint]);
      im.x.push_back(run.sweep.hz[i]);
      im.y.push_back(K.imag() / (2 * std::numbers::pi * run.sweep.hz[i]));
    }
    stiffness.series.push_back(std::move(re));
    damping.series.push_back(std::move(im));
  }
  return {stiffness, damping};
}

// Ellipse of displacements that a push of 10 N in any direction of a plane causes: the image of the
// circle of forces under C_x.
Series ComplianceEllipse(
    const Eigen::Matrix3d& C_x, int a, int b, const std::string& label, int color) {
  Series series{.label = label, .color = color};
  for (int i = 0; i <= 120; ++i) {
    const double angle = 2 * std::numbers::pi * i / 120;
    Eigen::Vector3d f = Eigen::Vector3d::Zero();
    f[a] = 10 * std::cos(angle);  // [N]
    f[b] = 10 * std::sin(angle);
    const Eigen::Vector3d dx = 1e3 * C_x * f;  // [mm]
    series.x.push_back(dx[a]);
    series.y.push_back(dx[b]);
  }
  return series;
}

// Median over the moments, entry by entry, of those whose reading exists.
Eigen::Matrix3d MedianMatrix(const ObservationRun& run,
                             const std::function<const Eigen::Matrix3d&(const Moment&)>& matrix) {
  Eigen::Matrix3d median;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      std::vector<double> values;
      for (const Moment& moment : run.moments) values.push_back(matrix(moment)(i, j));
      median(i, j) = Median(std::move(values));
    }
  }
  return median;
}

std::vector<Panel> EllipsePanels(const ObservationRun& run) {
  const auto com = [](const Moment& m) -> const PointReading& { return m.reading.com; };
  const auto hand = [&](const Moment& m) -> const PointReading& { return HandOf(run, m, kLeft); };
  std::vector<Panel> panels;
  const auto ellipse = [&](const std::string& title, int a, int b, const auto& point) {
    Panel panel;
    panel.title = title;
    panel.equal_aspect = true;
    panel.empty = kNoStatic;
    panel.x.label = fmt::format("{} [mm]", kAxisNames[a]);
    panel.y.label = fmt::format("{} [mm]", kAxisNames[b]);
    panel.series.push_back(ComplianceEllipse(
        MedianMatrix(run, [&](const Moment& m) -> const Eigen::Matrix3d& { return point(m).C_x; }),
        a,
        b,
        "static K_s",
        1));
    return panel;
  };
  const auto with_budget = [&](Panel panel,
                               const std::optional<Eigen::Vector3d>& budget,
                               int a,
                               int b) {
    if (!budget) return panel;
    const Eigen::Matrix3d C = budget->cwiseInverse().asDiagonal();
    panel.series.push_back(ComplianceEllipse(C, a, b, "budget: at least this far", kBudgetColor));
    panel.series.back().stroke = Stroke::kDashed;
    return panel;
  };
  const BudgetSpec& spec = run.budget.spec;
  panels.push_back(
      with_budget(ellipse("centre of mass under 10 N, from above", 0, 1, com), spec.com, 0, 1));
  panels.push_back(
      with_budget(ellipse(HandName(run, kLeft) + " under 10 N, from the side", 0, 2, hand),
                  spec.hand[kLeft],
                  0,
                  2));
  return panels;
}

}  // namespace

std::string ObservationSvg(const ObservationRun& run) {
  Figure figure;
  figure.title = fmt::format("{} on {}", run.policy, run.robot);
  figure.subtitle =
      fmt::format("{}; budget '{}'; gains {}", run.source, run.budget.name, run.gains);
  figure.columns = 2;
  if (run.moments.size() > 1) {
    figure.panels.push_back(PointPanel(
        run, "centre of mass", run.budget.spec.com, [](const Moment& m) -> const PointReading& {
          return m.reading.com;
        }));
    figure.panels.push_back(
        PointPanel(run,
                   HandName(run, kLeft),
                   run.budget.spec.hand[kLeft],
                   [&](const Moment& m) -> const PointReading& { return HandOf(run, m, kLeft); }));
    figure.panels.push_back(SigmaPanel(run));
    figure.panels.push_back(
        PointPanel(run,
                   HandName(run, kRight),
                   run.budget.spec.hand[kRight],
                   [&](const Moment& m) -> const PointReading& { return HandOf(run, m, kRight); }));
  }
  for (Panel& panel : FrequencyPanels(run)) figure.panels.push_back(std::move(panel));
  for (Panel& panel : EllipsePanels(run)) figure.panels.push_back(std::move(panel));
  return RenderSvg(figure);
}

}  // namespace silc
