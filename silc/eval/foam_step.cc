// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "silc/base/error.h"
#include "silc/base/nan.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiments.h"
#include "silc/eval/foam.h"
#include "silc/eval/metrics.h"
#include "silc/eval/trial.h"
#include "silc/robot/pose.h"

namespace silc {
namespace {

constexpr double kPadSpread = 0.2;  // [1] of the pad's modulus, ±, from trial to trial
constexpr double kWarmUp = 3;       // [s] of stepping before anything is counted
constexpr double kSeconds = 10;     // [s] counted
constexpr double kStep = 0.001;     // [s] physics
const char kGyroPanel[] = "angular velocity of the pelvis, y";
const char kAccPanel[] = "acceleration of the pelvis, x";

void AddScene(const std::string& imu_site, mjSpec* spec) {
  const auto sensor = [&](mjtSensor type, const char* name) {
    mjsSensor* s = mjs_addSensor(spec);
    mjs_setName(s->element, name);
    s->type = type;
    s->objtype = mjOBJ_SITE;
    mjs_setString(s->objname, imu_site.c_str());
  };
  sensor(mjSENS_GYRO, "experiment_gyro");
  sensor(mjSENS_ACCELEROMETER, "experiment_acc");
  // for pictures; the forces are Foam's
  const FoamOptions pad;
  mjsGeom* geom = mjs_addGeom(mjs_findBody(spec, "world"), nullptr);
  geom->type = mjGEOM_BOX;
  geom->contype = geom->conaffinity = 0;
  geom->size[0] = 0.3;
  geom->size[1] = 0.15;
  geom->size[2] = pad.thickness / 2;
  geom->pos[0] = 0.05;
  geom->pos[1] = 0.17;  // its edge between the feet
  geom->pos[2] = pad.thickness / 2;
  geom->rgba[0] = 0.2f, geom->rgba[1] = 0.55f, geom->rgba[2] = 0.75f, geom->rgba[3] = 0.8f;
}

// Left foot `rise` higher than the right, by bending that leg: hip, knee and ankle pitch share it.
void RaiseLeftFoot(const RobotModel& robot, double rise, mjData* data) {
  const auto joint = [&](const std::string& name) -> double* {
    for (int j = 0; j < robot.num_joints(); ++j) {
      if (robot.spec().joints[j] == name) return data->qpos + robot.qpos_address()[j];
    }
    throw ConfigError("foam-step needs a joint '" + name + "'");
  };
  double *hip = joint("left_hip_pitch_joint"), *knee = joint("left_knee_joint"),
         *ankle = joint("left_ankle_pitch_joint");
  const double hip0 = *hip, knee0 = *knee, ankle0 = *ankle;
  const auto height = [&](int foot) { return data->site_xpos[3 * robot.foot_site()[foot] + 2]; };
  double low = 0, high = 0.6;  // [rad] of bend
  const double before = [&] {
    mj_kinematics(robot.model(), data);
    return height(kLeft);
  }();
  for (int k = 0; k < 40; ++k) {
    const double bend = 0.5 * (low + high);
    *hip = hip0 - bend;
    *knee = knee0 + 2 * bend;
    *ankle = ankle0 - bend;
    mj_kinematics(robot.model(), data);
    (height(kLeft) - before < rise ? low : high) = bend;
  }
  mj_forward(robot.model(), data);
}

struct FoamTrial {
  LoopStatus end = LoopStatus::kRunning;
  double gyro_rms = kNan, gyro_range = kNan, acc_rms = kNan, acc_range = kNan;
  double compression = kNan;  // [m] largest
  double on_pad = kNan;       // [%] of the time the left foot is loaded
  std::vector<double> time, gyro_y, acc_x;
};

FoamTrial RunFoamTrial(const RobotModel& robot,
                       const Policy& policy,
                       const TrialDraw& draw,
                       const std::function<void(const RobotModel&, const mjData&)>& watch) {
  FoamTrial trial;
  ClosedLoop loop = MakeLoop(robot, policy, StepCommand(policy), draw);
  const mjModel* model = robot.model();
  mjData* data = loop.data();
  FoamOptions pad;
  // steps in place fall into the gait's clock: only the pad itself can differ from trial to trial
  pad.modulus *= draw.Stream(2).Uniform(1 - kPadSpread, 1 + kPadSpread);
  Foam foam(robot, pad);
  RaiseLeftFoot(robot, FoamOptions().thickness, data);
  const double* gyro =
      data->sensordata + model->sensor_adr[mj_name2id(model, mjOBJ_SENSOR, "experiment_gyro")];
  const double* acc =
      data->sensordata + model->sensor_adr[mj_name2id(model, mjOBJ_SENSOR, "experiment_acc")];

  std::vector<double> all_gyro, all_acc;
  long samples = 0, loaded = 0;
  double most = 0;
  loop.SetHooks([&] { foam.Apply(kStep, data); },
                [&] {
                  if (data->time < kWarmUp) return;
                  for (int k = 0; k < 3; ++k) all_gyro.push_back(gyro[k]);
                  for (int k = 0; k < 2; ++k) all_acc.push_back(acc[k]);
                  trial.time.push_back(data->time - kWarmUp);
                  trial.gyro_y.push_back(gyro[1]);
                  trial.acc_x.push_back(acc[0]);
                  ++samples;
                  loaded += foam.normal()[kLeft] > 0;
                  most = std::max(most, foam.normal()[kLeft]);
                });
  trial.end = RunFor(&loop, kWarmUp + kSeconds, [&] {
    if (watch) watch(robot, *data);
  });
  if (trial.end != LoopStatus::kRunning) return trial;
  trial.gyro_rms = RootMeanSquare(all_gyro);
  trial.gyro_range = PeakToPeak(all_gyro);
  trial.acc_rms = RootMeanSquare(all_acc);
  trial.acc_range = PeakToPeak(all_acc);
  trial.compression =
      most / (foam.stiffness() * static_cast<double>(robot.foot_geoms()[kLeft].size()));
  trial.on_pad = 100.0 * static_cast<double>(loaded) / static_cast<double>(samples);
  return trial;
}

}  // namespace

ExperimentResult RunFoamStep(const Policy& policy,
                             const ExperimentOptions& options,
                             const Progress& progress) {
  const RobotModel bare = RobotModel::Load(options.robot);
  if (bare.spec().imus.empty()) throw ConfigError("robot '" + options.robot + "' has no IMU");
  const ImuSpec imu = bare.spec().imus.front();
  LoadOptions load;
  load.physics_period = kStep;
  load.extend = [&](mjSpec* spec) { AddScene(imu.site, spec); };
  const RobotModel robot = LoadRobot(options, load);
  std::vector<FoamTrial> trials(NumTrials(options));
  ForTrials(options, progress, [&](int k, const TrialDraw& draw) {
    trials[k] = RunFoamTrial(robot, policy, draw, k == 0 ? options.watch : nullptr);
  });

  const metric::FoamStepMetrics& declared = metric::FoamStep();
  ExperimentResult result;
  const auto samples = [&](double FoamTrial::*member) { return SamplesOf(trials, member); };
  result.metrics = {MeanMetric(declared.gyro_rms, samples(&FoamTrial::gyro_rms)),
                    MeanMetric(declared.gyro_p95_p5, samples(&FoamTrial::gyro_range)),
                    MeanMetric(declared.acc_rms, samples(&FoamTrial::acc_rms)),
                    MeanMetric(declared.acc_p95_p5, samples(&FoamTrial::acc_range)),
                    MeanMetric(declared.compression, samples(&FoamTrial::compression)),
                    MeanMetric(declared.on_pad, samples(&FoamTrial::on_pad))};
  const std::vector<LoopStatus> ends = EndsOf(trials);
  const FoamTrial& shown = trials[FirstLasting(ends)];
  AddSurvival(declared, ends, &result);
  const Foam foam(robot, FoamOptions());
  const FoamOptions pad;
  result.settings = {
      {"pad",
       fmt::format("{:g} mm, E = {:g} kPa ± 20 %, loss factor {:g} at {:g} Hz, friction {:g}",
                   1000 * pad.thickness,
                   pad.modulus / 1000,
                   pad.loss_factor,
                   pad.loss_frequency,
                   pad.friction)},
      {"sole",
       fmt::format("{:g} cm² on four points of {:.0f} N/m and {:.0f} N·s/m each",
                   1e4 * pad.sole_area,
                   foam.stiffness(),
                   foam.damping())},
      {"imu", imu.name + ", at the physics' rate"},
      {"physics step", fmt::format("{:g} s", kStep)},
      {"counted", fmt::format("{:g} s of stepping in place after {:g} s", kSeconds, kWarmUp)},
      {"components", "gyroscope x, y, z and accelerometer x, y, each pooled"},
      {"trials per seed", std::to_string(options.episodes)}};
  Curve gyro{kGyroPanel, "", "time [s]", "ω_y [rad/s]", shown.time, shown.gyro_y};
  Curve acc{kAccPanel, "", "time [s]", "a_x [m/s²]", shown.time, shown.acc_x};
  Thin(&gyro.x, &gyro.y, 1000);
  Thin(&acc.x, &acc.y, 1000);
  result.curves = {gyro, acc};
  return result;
}

}  // namespace silc
