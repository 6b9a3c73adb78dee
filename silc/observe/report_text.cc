// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/report_text.h"

#include <fmt/format.h>

#include <cmath>

#include "silc/base/table.h"

namespace silc {
namespace {

constexpr const char* kAxes[3] = {"x", "y", "z"};

std::string Percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.3g} %", 100 * share) : "–";
}

std::string Header(const ObservationRun& run, const RunSummary& summary) {
  std::string text = fmt::format("{} on {}: {}\n", run.policy, run.robot, run.source);
  text += fmt::format("gains {}; policy every {:g} ms, latency {:g} ms; {} observation{}\n",
                      run.gains,
                      1e3 * run.timing.period,
                      1e3 * run.timing.latency,
                      run.moments.size(),
                      run.moments.size() == 1 ? "" : "s");
  if (run.moments.size() > 1) {
    const auto hundredths = [](double v) { return std::round(100 * v) / 100 + 0.0; };  // no "-0.00"
    text += fmt::format("base moved at {:.2f} {:.2f} m/s, {:.2f} rad/s on average\n",
                        hundredths(summary.velocity[0]),
                        hundredths(summary.velocity[1]),
                        hundredths(summary.velocity[2]));
  }
  if (summary.modes.size() > 1) {
    for (std::size_t i = 0; i + 1 < summary.modes.size(); ++i) {
      text += fmt::format("{}{} {}",
                          i == 0 ? "" : ", ",
                          Name(summary.modes[i].mode),
                          Percent(summary.modes[i].share));
    }
    text +=
        fmt::format("; joints at their effort limit {} of the time\n", Percent(summary.saturation));
  }
  return text;
}

std::string JointTable(const ObservationRun& run, const RunSummary& summary) {
  std::vector<TableColumn> columns = {{"joint", "", Align::kToLeft},
                                      {"Kp", "N·m/rad"},
                                      {"one-step K₁", "N·m/rad"},
                                      {"static K_s", "N·m/rad"},
                                      {"Kd", "N·m·s/rad"}};
  for (const double hz : kDampingHz) {
    columns.push_back({fmt::format("at {:g} Hz", hz), "N·m·s/rad"});
  }
  // the joints' own, where the model gives them any
  const bool damped = run.joint_damping.size() > 0 && run.joint_damping.maxCoeff() > 0;
  const bool rubs = run.friction_loss.size() > 0 && run.friction_loss.maxCoeff() > 0;
  if (damped) columns.push_back({"of that the joint's", "N·m·s/rad"});
  if (rubs) columns.push_back({"friction loss", "N·m"});
  Table table(columns);
  for (std::size_t i = 0; i < summary.joints.size(); ++i) {
    const JointSummary& joint = summary.joints[i];
    std::vector<std::string> row = {joint.name,
                                    FormatNumber(joint.kp),
                                    FormatNumber(joint.one_step),
                                    FormatNumber(joint.quasi_static),
                                    FormatNumber(joint.kd)};
    for (const double damping : joint.damping) row.push_back(FormatNumber(damping));
    if (damped) row.push_back(FormatNumber(run.joint_damping[static_cast<Eigen::Index>(i)]));
    if (rubs) row.push_back(FormatNumber(run.friction_loss[static_cast<Eigen::Index>(i)]));
    table.Row(row);
  }
  return fmt::format(
             "\nJoint stiffness and damping as they are felt, torque and gravity followed; "
             "diagonal{}\n",
             run.moments.size() > 1 ? ", median over the run" : "") +
         table.Render();
}

std::string PointTable(const RunSummary& summary) {
  Table table({{"point", "", Align::kToLeft},
               {"axis", "", Align::kToLeft},
               {"push 1/C_ii", "N/m"},
               {"held K_x", "N/m"},
               {"budget", "N/m"},
               {"worst", "× budget"},
               {"p99", "× budget"}});
  for (const PointSummary& point : summary.points) {
    for (int axis = 0; axis < 3; ++axis) {
      table.Row({axis == 0 ? point.name : "",
                 kAxes[axis],
                 FormatNumber(point.one_axis[axis]),
                 FormatNumber(point.held[axis]),
                 FormatNumber(point.budget[axis]),
                 axis == 0 ? FormatNumber(point.worst_median) : "",
                 axis == 0 ? FormatNumber(point.worst_p99) : ""});
    }
  }
  return "\nStiffness at the points, as it is felt: static, through the contacts, torque and "
         "gravity followed.\nA push along one axis feels 1/C_ii. A budget's hands are on the base: "
         "pulled against it, without the legs\n" +
         table.Render();
}

std::string BudgetTable(const ObservationRun& run, const RunSummary& summary) {
  Table table({{"contact", "", Align::kToLeft},
               {"share", ""},
               {"σ median", ""},
               {"σ p99", ""},
               {"violated", ""},
               {"worst eig.", ""},
               {"p99", ""},
               {"random dir.", ""},
               {"σ of K₁", ""}});
  for (std::size_t i = 0; i < summary.modes.size(); ++i) {
    const ModeSummary& mode = summary.modes[i];
    const bool all = i > 0 && i + 1 == summary.modes.size();
    if (all) table.Group();
    table.Row({all ? "all" : Name(mode.mode),
               Percent(mode.share),
               FormatNumber(mode.sigma_median),
               FormatNumber(mode.sigma_p99),
               Percent(mode.violations),
               FormatNumber(mode.worst_median),
               FormatNumber(mode.worst_p99),
               Percent(mode.random_direction_violations),
               FormatNumber(mode.one_step_median)});
  }
  std::string how = "Judged";
  if (!run.trained.empty()) {
    how = run.trained + "; judged on K_s";
    how.front() = 'T';
  }
  return fmt::format("\nBudget {}: {}\n{} with {}; it holds when σ ≤ 1\n",
                     run.budget.name,
                     BudgetNumbers(run.budget.spec),
                     how,
                     BudgetTerms(run.budget.spec)) +
         table.Render();
}

std::string Verdict(const ObservationRun& run, const RunSummary& summary) {
  std::string text;
  for (const auto& [status, count] : summary.missing) {
    text += fmt::format("\nNo static stiffness in {} of {} observations: {}.\n",
                        count,
                        run.moments.size(),
                        Describe(status));
  }
  if (std::isfinite(summary.loop_radius_max) && summary.loop_radius_max > 0) {
    text += fmt::format(
        "\nAction loop: spectral radius {}{} (median), {} (largest); 1 or more is unstable "
        "with the joints held.\n",
        summary.loop_radius_is_bound ? "at most " : "",
        FormatNumber(summary.loop_radius_median),
        FormatNumber(summary.loop_radius_max));
  }
  const ModeSummary& all = summary.modes.back();
  const int unjudged = all.moments - all.judged;
  if (all.judged == 0) {
    text += fmt::format("\nThe budget '{}' could not be judged.\n", run.budget.name);
  } else if (all.over == 0 && unjudged > 0) {
    text += fmt::format(
        "\nThe budget '{}' is kept in {} judged observations; {} could not be judged, so it is not "
        "shown to hold.\n",
        run.budget.name,
        all.judged,
        unjudged);
  } else if (all.over == 0) {
    text += fmt::format(
        "\nThe budget '{}' HOLDS in all {} judged observations.\n", run.budget.name, all.judged);
  } else {
    text += fmt::format("\nThe budget '{}' is VIOLATED in {} of {} judged observations.\n",
                        run.budget.name,
                        Percent(all.over / static_cast<double>(all.judged)),
                        all.judged);
  }
  return text;
}

}  // namespace

std::string ObservationText(const ObservationRun& run, const RunSummary& summary) {
  std::string text = Header(run, summary);
  if (summary.modes.empty()) return text + "\nNothing was observed.\n";
  return text + JointTable(run, summary) + PointTable(summary) + BudgetTable(run, summary) +
         Verdict(run, summary);
}

std::string ShakeText(const ShakeResult& result) {
  std::string text = fmt::format(
      "\nShaking the {}: stiffness 1/C_ii, model against measurement. In K_s torque and "
      "gravity are followed\n",
      result.point);
  if (result.settled != LoopStatus::kRunning) {
    return text + fmt::format("Not measured: {}.\n", Describe(result.settled));
  }
  std::vector<TableColumn> columns = {{"", "", Align::kToLeft}};
  for (const char* axis : kAxes) columns.push_back({axis, "N/m"});
  columns.push_back({"", "", Align::kToLeft});
  Table table(columns);
  table.Group("model");
  for (const ShakePrediction& prediction : result.predictions) {
    table.Row({prediction.name,
               FormatNumber(prediction.one_axis[0]),
               FormatNumber(prediction.one_axis[1]),
               FormatNumber(prediction.one_axis[2]),
               prediction.status == StiffnessStatus::kOk ? "" : Describe(prediction.status)});
  }
  table.Group("measured");
  for (const ShakeLevel& level : result.levels) {
    const Eigen::Vector3d k = level.OneAxis();
    std::string note;
    for (int axis = 0; axis < 3; ++axis) {
      for (const int sign : {0, 1}) {
        if (level.end[axis][sign] != LoopStatus::kRunning) {
          note += fmt::format("{}fell at {}{:g} N {}",
                              note.empty() ? "" : ", ",
                              sign == 0 ? "+" : "−",
                              level.force,
                              kAxes[axis]);
        }
      }
    }
    table.Row({fmt::format("±{:g} N", level.force),
               FormatNumber(k[0]),
               FormatNumber(k[1]),
               FormatNumber(k[2]),
               note});
  }
  const bool comparable = result.mode_changes == 0;
  if (!result.predictions.empty() && !result.levels.empty() && comparable) {
    // the smallest push is the one a linear model speaks of
    table.Group("model / measured at the smallest push");
    for (const ShakePrediction& prediction : result.predictions) {
      const Eigen::Vector3d ratio =
          prediction.one_axis.cwiseQuotient(result.levels.front().OneAxis());
      table.Row({prediction.name,
                 FormatNumber(ratio[0]),
                 FormatNumber(ratio[1]),
                 FormatNumber(ratio[2])});
    }
  }
  text += table.Render();
  text +=
      fmt::format("Standing in {}; unpushed, the point sways by {} mm; action loop radius {}.\n",
                  Name(result.mode),
                  FormatNumber(1e3 * result.sway, 2),
                  FormatNumber(result.loop.rho));
  if (!comparable) {
    text += fmt::format(
        "The robot steps: its contacts changed {} times in {:g} s without a push. The measured "
        "numbers are of mean positions between steps, the model is of one stance; they are not "
        "compared.\n",
        result.mode_changes,
        result.watched);
  } else if (!result.levels.empty()) {
    // the displacement that the smallest push made, on the stiffest axis
    const Eigen::Matrix3d moved = result.levels.front().plus - result.levels.front().minus;
    const double least = 0.5 * moved.diagonal().cwiseAbs().minCoeff();
    if (result.sway > 0.2 * least) {
      text += fmt::format(
          "The sway is {:.2g} times the smallest displacement measured at ±{:g} N: read those "
          "numbers with care, or push harder (--forces).\n",
          result.sway / least,
          result.levels.front().force);
    }
  }
  if (result.friction_loss > 0) {
    text += fmt::format(
        "The model's joints have a friction loss of up to {} N·m. The model leaves it out: a push "
        "too small to overcome it moves less, and measures stiffer.\n",
        FormatNumber(result.friction_loss));
  }
  return text;
}

}  // namespace silc
