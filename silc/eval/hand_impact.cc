// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "silc/base/error.h"
#include "silc/base/nan.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiments.h"
#include "silc/eval/metrics.h"
#include "silc/eval/trial.h"

namespace silc {
namespace {

constexpr double kRadius = 0.05;  // [m] of the weight, a ball
constexpr double kRope = 0.3;     // [m] its length; slack when shorter
constexpr double kDrop = 0.2;     // [m] released this much above where the rope is taut
constexpr double kImpactStep =
    0.001;                          // [s] physics; 5 ms would put 100 Hz at the Nyquist frequency
constexpr double kImpactAfter = 8;  // [s] watched from the release
constexpr double kBandLow = 5, kBandHigh = 100;  // [Hz] the paper's
/// The rope's length limit as a spring and damper on the reduced mass m of weight and hand, some
/// 1 kg: ω = 1/(time · ratio) = 100 rad/s, so k = ω² m = 10 kN/m, a thin cord's. It stops 2 m/s
/// within some 15 mm.
constexpr double kRopeTime = 0.02, kRopeRatio = 0.5;  // [s], [1]
const char kWeight[] = "weight";
const char kImpactPanel[] = "right hand, z, 2.5 kg caught on a rope";
const char kSpectrumPanel[] = "right hand, z: power spectral density";

void AddWeight(const std::string& hand_site, bool visible, mjSpec* spec) {
  mjsBody* body = mjs_addBody(mjs_findBody(spec, "world"), nullptr);
  mjs_setName(body->element, kWeight);
  body->pos[2] = 5;  // out of the way until it is put in place
  mjs_addFreeJoint(body);
  // given, because robots' files may switch off what follows from shapes
  body->mass = kDroppedMass;
  for (double& inertia : body->inertia) inertia = 0.4 * kDroppedMass * kRadius * kRadius;
  std::fill(body->ipos, body->ipos + 3, 0.0);
  body->explicitinertial = true;
  mjsGeom* geom = mjs_addGeom(body, nullptr);
  geom->type = mjGEOM_SPHERE;
  geom->size[0] = kRadius;
  geom->contype = geom->conaffinity = 0;  // it hangs free: touching a leg is no part of this
  geom->rgba[0] = 0.85f, geom->rgba[1] = 0.33f, geom->rgba[2] = 0.1f, geom->rgba[3] = 1;
  mjsSite* site = mjs_addSite(body, nullptr);
  mjs_setName(site->element, kWeight);

  mjsTendon* rope = mjs_addTendon(spec, nullptr);
  mjs_setName(rope->element, "rope");
  rope->limited = mjLIMITED_TRUE;
  rope->range[0] = 0;
  rope->range[1] = kRope;
  rope->solref_limit[0] = kRopeTime;
  rope->solref_limit[1] = kRopeRatio;
  rope->width = visible ? 0.004 : 0.001;
  mjs_wrapSite(rope, hand_site.c_str());
  mjs_wrapSite(rope, kWeight);
}

struct ImpactTrial {
  LoopStatus end = LoopStatus::kRunning;
  double settling5 = kNan, settling2 = kNan, band_z = kNan, band_all = kNan, peak = kNan,
         sag = kNan, sway_band = kNan, pull = kNan, final_pull = kNan;
  std::vector<double> time, z;
  PowerSpectrum spectrum;
};

ImpactTrial RunImpactTrial(const RobotModel& robot,
                           const Policy& policy,
                           const TrialDraw& draw,
                           const std::function<void(const RobotModel&, const mjData&)>& watch) {
  ImpactTrial trial;
  ClosedLoop loop = MakeLoop(robot, policy, StandCommand(), draw);
  const mjModel* model = robot.model();
  mjData* data = loop.data();
  const int weight = mj_name2id(model, mjOBJ_BODY, kWeight);
  const int joint = model->body_jntadr[weight];
  double* weight_qpos = data->qpos + model->jnt_qposadr[joint];
  double* weight_qvel = data->qvel + model->jnt_dofadr[joint];
  const int rope = mj_name2id(model, mjOBJ_TENDON, "rope");

  // held under the hand, its rope slack, until the release
  bool held = true;
  std::array<std::vector<double>, 3> hand;
  std::vector<double> pull;
  loop.SetHooks(
      [&] {
        if (!held) return;
        const Eigen::Vector3d p = loop.HandPosition(kRight);
        const double place[7] = {p.x(), p.y(), p.z() - (kRope - kDrop), 1, 0, 0, 0};
        std::copy(place, place + 7, weight_qpos);
        std::fill(weight_qvel, weight_qvel + 6, 0.0);
      },
      [&] {
        const Eigen::Vector3d p = loop.HandPosition(kRight);
        for (int axis = 0; axis < 3; ++axis) hand[axis].push_back(p[axis]);
        // a limit's multiplier is the tendon's pull
        double force = 0;
        for (int row = 0; row < data->nefc; ++row) {
          if (data->efc_type[row] == mjCNSTR_LIMIT_TENDON && data->efc_id[row] == rope) {
            force = data->efc_force[row];
          }
        }
        pull.push_back(force);
      });
  const auto look = [&] {
    if (watch) watch(robot, *data);
  };
  trial.end = RunFor(&loop, SettleTime(draw, loop.period()), look);
  if (trial.end != LoopStatus::kRunning) return trial;
  const std::size_t second = std::lround(1 / kImpactStep);
  double rest = 0;
  for (std::size_t k = hand[2].size() - second; k < hand[2].size(); ++k) {
    rest += hand[2][k] / double(second);
  }
  // how much of the band the robot fills by standing, to compare with
  trial.sway_band =
      BandPower(Welch(std::span<const double>(hand[2]).last(2 * second), 1 / kImpactStep),
                kBandLow,
                kBandHigh);
  for (auto& axis : hand) axis.clear();
  pull.clear();
  held = false;
  trial.end = RunFor(&loop, kImpactAfter, look);
  for (std::size_t k = 0; k < hand[2].size(); ++k) {
    trial.time.push_back(double(k + 1) * kImpactStep);
    trial.z.push_back(hand[2][k] - rest);
  }
  if (trial.end != LoopStatus::kRunning) return trial;

  const auto caught = std::find_if(pull.begin(), pull.end(), [](double f) { return f > 0; });
  if (caught == pull.end()) return trial;
  const std::size_t from = caught - pull.begin();
  const std::span<const double> z = std::span<const double>(trial.z).subspan(from);
  trial.settling5 = SettlingTime(z, kImpactStep, 0.05).time;
  const Settling two = SettlingTime(z, kImpactStep, 0.02);
  trial.settling2 = two.time;
  trial.sag = -two.final;
  trial.peak = -*std::min_element(z.begin(), z.end());
  trial.pull = *std::max_element(pull.begin(), pull.end());
  trial.final_pull = 0;
  for (std::size_t k = pull.size() - second; k < pull.size(); ++k) {
    trial.final_pull += pull[k] / double(second);
  }
  trial.band_all = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const PowerSpectrum spectrum =
        Welch(std::span<const double>(hand[axis]).subspan(from), 1 / kImpactStep);
    const double power = BandPower(spectrum, kBandLow, kBandHigh);
    trial.band_all += power;
    if (axis == 2) {
      trial.band_z = power;
      trial.spectrum = spectrum;
    }
  }
  return trial;
}

}  // namespace

ExperimentResult RunHandImpact(const Policy& policy,
                               const ExperimentOptions& options,
                               const Progress& progress) {
  const RobotModel bare = RobotModel::Load(options.robot);
  NeedHands(bare);
  LoadOptions load;
  load.physics_period = kImpactStep;
  load.extend = [&](mjSpec* spec) {
    AddWeight(bare.spec().hands[kRight].site, options.visuals, spec);
  };
  const RobotModel robot = LoadRobot(options, load);
  std::vector<ImpactTrial> trials(NumTrials(options));
  ForTrials(options, progress, [&](int k, const TrialDraw& draw) {
    trials[k] = RunImpactTrial(robot, policy, draw, k == 0 ? options.watch : nullptr);
  });

  const metric::HandImpactMetrics& declared = metric::HandImpact();
  ExperimentResult result;
  const auto samples = [&](double ImpactTrial::*member) { return SamplesOf(trials, member); };
  result.metrics = {MedianMetric(declared.settling_time_z, samples(&ImpactTrial::settling5)),
                    MedianMetric(declared.settling_time_2_z, samples(&ImpactTrial::settling2)),
                    MeanMetric(declared.band_power_z, samples(&ImpactTrial::band_z)),
                    MeanMetric(declared.band_power, samples(&ImpactTrial::band_all)),
                    MeanMetric(declared.band_power_before_z, samples(&ImpactTrial::sway_band)),
                    MeanMetric(declared.peak_excursion_z, samples(&ImpactTrial::peak)),
                    MeanMetric(declared.sag_z, samples(&ImpactTrial::sag)),
                    MeanMetric(declared.peak_pull, samples(&ImpactTrial::pull)),
                    MeanMetric(declared.final_pull, samples(&ImpactTrial::final_pull))};
  const std::vector<LoopStatus> ends = EndsOf(trials);
  int restless = 0;
  for (const ImpactTrial& t : trials) {
    restless += std::isinf(t.settling5);
  }
  const ImpactTrial& shown = trials[FirstLasting(ends)];
  AddSurvival(declared, ends, &result);
  if (restless > 0) {
    result.notes.push_back(fmt::format(
        "in {} of {} trials the hand swayed on by more than 5 % of its peak: it never settled",
        restless,
        trials.size()));
  }
  result.settings = {
      {"weight", fmt::format("{:g} kg", kDroppedMass)},
      {"rope",
       fmt::format("{:g} m, a tendon with a length limit, time constant {:g} s, damping ratio {:g}",
                   kRope,
                   kRopeTime,
                   kRopeRatio)},
      {"drop", fmt::format("{:g} m", kDrop)},
      {"physics step", fmt::format("{:g} s", kImpactStep)},
      {"watched", fmt::format("{:g} s from the release", kImpactAfter)},
      {"settling",
       "from the rope's first pull until within the band about the mean of the last second"},
      {"spectrum", "Welch, Hann, 1 s segments, half overlap, from the rope's first pull"},
      {"trials per seed", std::to_string(options.episodes)}};
  Curve curve{kImpactPanel, "", "time after the release [s]", "z − rest [m]", shown.time, shown.z};
  Thin(&curve.x, &curve.y, 1000);
  result.curves.push_back(std::move(curve));
  Curve spectrum{kSpectrumPanel, "", "frequency [Hz]", "density [m²/Hz]"};
  spectrum.log_x = spectrum.log_y = true;
  for (std::size_t bin = 1; bin < shown.spectrum.density.size(); ++bin) {
    const double hz = shown.spectrum.resolution * double(bin);
    if (hz > 2 * kBandHigh) break;
    spectrum.x.push_back(hz);
    spectrum.y.push_back(shown.spectrum.density[bin]);
  }
  result.curves.push_back(std::move(spectrum));
  result.spans.push_back({kSpectrumPanel, "5–100 Hz", kBandLow, kBandHigh});
  return result;
}

}  // namespace silc
