// SPDX-License-Identifier: Apache-2.0
#include "silc/physics_tools/sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "silc/physics_tools/make_batch.h"
#include "silc/plot/figure.h"

namespace silc {
namespace {

SimTrace Simulate(const SimOptions& options, const RobotModel& robot, const std::string& backend) {
  RobotBatch made = MakeRobotBatch(robot,
                                   {.backend = backend,
                                    .gains = options.gains,
                                    .pose = options.pose,
                                    .stiffness = options.stiffness,
                                    .friction_loss = options.friction_loss});
  PhysicsBatch& batch = *made.batch;
  const double h = made.model->opt.timestep;
  const int substeps = robot.spec().physics_steps_per_control();
  const int rows = static_cast<int>(std::lround(options.seconds / (h * substeps)));
  const std::vector<int> one = {0};
  std::vector<float> wrench(batch.width(Field::kWrench), 0.0f);
  std::copy(options.push.begin(), options.push.end(), wrench.begin());
  batch.Write(Field::kWrench, one, wrench);

  SimTrace trace;
  trace.backend = backend;
  std::vector<float> qpos(batch.width(Field::kQpos)), force(batch.width(Field::kFootForce)),
      torque(batch.width(Field::kTorque)), fault(1);
  const int base = robot.base_qpos_address();
  for (int row = 0; row < rows; ++row) {
    const double t = row * substeps * h;
    if (std::abs(t - options.push_time) < 0.5 * substeps * h) {
      std::vector<float> steps(batch.width(Field::kWrenchSteps), 0.0f);
      steps[0] = static_cast<float>(std::lround(options.push_duration / h));
      batch.Write(Field::kWrenchSteps, one, steps);
    }
    batch.Advance(substeps);
    batch.Read(Field::kQpos, qpos);
    batch.Read(Field::kFootForce, force);
    batch.Read(Field::kTorque, torque);
    batch.Read(Field::kFault, fault);
    const float* q = qpos.data() + base;
    trace.time.push_back(t + substeps * h);
    trace.base.push_back({q[0], q[1], q[2]});
    const double up = 1 - 2.0 * (q[4] * q[4] + q[5] * q[5]);  // z of the base's z axis
    trace.tilt.push_back(std::acos(std::clamp(up, -1.0, 1.0)));
    trace.foot_force.push_back({force[2], force[5]});
    double largest = 0;
    for (const float x : torque) largest = std::max<double>(largest, std::abs(x));
    trace.torque.push_back(largest);
    trace.fault = static_cast<int>(fault[0]);
  }
  return trace;
}

}  // namespace

std::vector<SimTrace> RunSim(const SimOptions& options) {
  const RobotModel robot = RobotModel::Load(options.robot, {.self_collision = false});
  std::vector<SimTrace> traces;
  for (const std::string& backend : options.backends) {
    traces.push_back(Simulate(options, robot, backend));
  }
  return traces;
}

std::string SimCsv(const std::vector<SimTrace>& traces) {
  std::string out =
      "backend,time_s,base_x_m,base_y_m,base_z_m,tilt_rad,left_foot_N,right_foot_N,torque_Nm\n";
  for (const SimTrace& trace : traces) {
    for (std::size_t i = 0; i < trace.time.size(); ++i) {
      out += fmt::format("{},{:.4f},{:.7g},{:.7g},{:.7g},{:.6g},{:.6g},{:.6g},{:.6g}\n",
                         trace.backend,
                         trace.time[i],
                         trace.base[i][0],
                         trace.base[i][1],
                         trace.base[i][2],
                         trace.tilt[i],
                         trace.foot_force[i][0],
                         trace.foot_force[i][1],
                         trace.torque[i]);
    }
  }
  return out;
}

std::string SimSvg(const SimOptions& options, const std::vector<SimTrace>& traces) {
  plot::Figure figure;
  figure.title = options.robot + " standing under its servos";
  figure.subtitle = fmt::format("pushed by {:g}, {:g}, {:g} N at {:g} s for {:g} s",
                                options.push[0],
                                options.push[1],
                                options.push[2],
                                options.push_time,
                                options.push_duration);
  figure.columns = 2;
  const auto panel = [&](const std::string& title, const std::string& label, const auto& value) {
    plot::Panel p;
    p.title = title;
    p.x.label = "time [s]";
    p.y.label = label;
    for (std::size_t k = 0; k < traces.size(); ++k) {
      plot::Series series;
      series.label = traces[k].backend;
      series.x = traces[k].time;
      series.color = static_cast<int>(k) + 1;
      series.stroke = k == 0 ? plot::Stroke::kSolid : plot::Stroke::kDashed;
      for (std::size_t i = 0; i < traces[k].time.size(); ++i)
        series.y.push_back(value(traces[k], i));
      p.series.push_back(std::move(series));
    }
    p.bands.push_back({"push", options.push_time, options.push_time + options.push_duration, 3});
    figure.panels.push_back(std::move(p));
  };
  panel("base, forward", "x [m]", [](const SimTrace& t, std::size_t i) { return t.base[i][0]; });
  panel("base, height", "z [m]", [](const SimTrace& t, std::size_t i) { return t.base[i][2]; });
  panel("tilt of the base", "[rad]", [](const SimTrace& t, std::size_t i) { return t.tilt[i]; });
  panel("left foot, vertical", "[N]", [](const SimTrace& t, std::size_t i) {
    return t.foot_force[i][0];
  });
  return plot::RenderSvg(figure);
}

}  // namespace silc
