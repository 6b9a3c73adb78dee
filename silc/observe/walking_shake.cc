// SPDX-License-Identifier: Apache-2.0
#include "silc/observe/walking_shake.h"

#include <algorithm>
#include <cmath>

#include "silc/base/check.h"
#include "silc/base/nan.h"
#include "silc/observe/shake.h"

namespace silc {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;

constexpr double kNoClock = 1;  // [s] a cycle of a policy without a gait clock

// R_WH: the axes of the walking frame, from the base's forward axis.
Matrix3d Heading(const ClosedLoop& loop) {
  const Matrix3d R_WB = loop.BaseRotation();
  return Eigen::AngleAxisd(std::atan2(R_WB(1, 0), R_WB(0, 0)), Vector3d::UnitZ())
      .toRotationMatrix();
}

// p_WF of the middle between both soles.
Vector3d MiddleOfSoles(ClosedLoop* loop) {
  const auto sole = [&](int foot) {
    return Eigen::Map<const Vector3d>(loop->data()->site_xpos +
                                      std::ptrdiff_t{3} * loop->robot().foot_site()[foot]);
  };
  return (sole(kLeft) + sole(kRight)) / 2;
}

// One robot after one control step.
struct Sample {
  Matrix3d R_WH;          // its own walking frame
  Vector3d p_WC, p_FC_W;  // centre of mass; the same from the middle of its soles
};

Sample SampleOf(ClosedLoop* loop) {
  const Vector3d p_WC = loop->ComPosition();
  return {Heading(*loop), p_WC, p_WC - MiddleOfSoles(loop)};
}

struct Steps {
  int ramp, first, cycle, total;  // control steps; `first` of those that count
};

Steps StepsOf(const ClosedLoop& loop, const WalkingShakeOptions& options, double cycle) {
  const auto steps = [&](double seconds) {
    return static_cast<int>(std::lround(seconds / loop.period()));
  };
  Steps count{steps(options.ramp), 0, std::max(1, steps(cycle)), 0};
  count.first = count.ramp + steps(options.settle);
  count.total = count.first + options.cycles * count.cycle;
  return count;
}

// The twin from the beginning of the push to its end, and K_s along its way.
std::vector<Sample> RunTwin(ClosedLoop loop,
                            const Steps& steps,
                            int predict_every,
                            WalkingShakeResult* result) {
  ContactModeTracker tracker = MakeContactTracker(loop.robot());
  std::vector<Sample> samples = {SampleOf(&loop)};
  Vector3d sum = Vector3d::Zero();
  for (int step = 0; step < steps.total; ++step) {
    loop.TrackContacts(&tracker);
    if (step >= steps.first && (step - steps.first) % predict_every == 0) {
      ++result->moments;
      const ContactMode mode = tracker.mode();
      // in the air nothing but gravity and inertia answers a push
      const std::vector<ShakePrediction> predictions =
          mode == ContactMode::kFlight ? std::vector<ShakePrediction>()
                                       : PredictStiffness(loop, Push::Point::kCom, mode);
      const ShakePrediction* felt = PredictionOf(predictions, ShakeModel::kStaticWithWeight);
      if (felt != nullptr && felt->status == StiffnessStatus::kOk) {
        const Matrix3d& R_WH = samples.back().R_WH;
        sum += (R_WH.transpose() * felt->C_x * R_WH).diagonal();
        ++result->modelled;
      }
    }
    result->twin = loop.Step();
    if (result->twin != LoopStatus::kRunning) return samples;
    samples.push_back(SampleOf(&loop));
  }
  result->model_compliance =
      result->modelled > 0 ? Vector3d(sum / result->modelled) : Vector3d(Vector3d::Constant(kNan));
  return samples;
}

// One push along an axis of the twin's walking frame.
LoopStatus RunPushed(ClosedLoop loop,
                     const std::vector<Sample>& twin,
                     const Steps& steps,
                     int axis,
                     double force,
                     std::vector<double>* course,
                     std::vector<double>* moved,
                     std::vector<double>* leaned) {
  const auto cycles = static_cast<std::size_t>((steps.total - steps.first) / steps.cycle);
  moved->assign(cycles, 0);
  leaned->assign(cycles, 0);
  for (int step = 0; step < steps.total; ++step) {
    const double share = std::min(1.0, (step + 1.0) / steps.ramp);
    loop.SetPush({Push::Point::kCom, share * force * twin[step].R_WH.col(axis)});
    const LoopStatus end = loop.Step();
    if (end != LoopStatus::kRunning) {
      course->clear();
      moved->clear();
      leaned->clear();
      return end;
    }
    const Sample pushed = SampleOf(&loop);
    const Sample& other = twin[step + 1];
    const auto along = [&](const Vector3d& d_W) { return other.R_WH.col(axis).dot(d_W); };
    course->push_back(along(pushed.p_WC - other.p_WC));
    if (step < steps.first) continue;
    const auto cycle = static_cast<std::size_t>((step - steps.first) / steps.cycle);
    (*moved)[cycle] += course->back() / steps.cycle;
    (*leaned)[cycle] += along(pushed.p_FC_W - other.p_FC_W) / steps.cycle;
  }
  return LoopStatus::kRunning;
}

}  // namespace

WalkingShakeResult ShakeWalking(const ClosedLoop& start, const WalkingShakeOptions& options) {
  SILC_CHECK(options.cycles >= 2 && options.predict_every > 0 && options.ramp > 0);
  WalkingShakeResult result;
  ClosedLoop settled(start);
  const double clock = settled.policy().layout().clock.period;
  result.cycle = clock > 0 ? clock : kNoClock;
  const Steps steps = StepsOf(settled, options, result.cycle);
  const std::vector<Sample> twin = RunTwin(settled, steps, options.predict_every, &result);
  if (result.twin != LoopStatus::kRunning) return result;
  for (int step = 0; step < steps.total; ++step) {
    result.time.push_back((step + 1) * settled.period());
  }
  for (const double force : options.forces) {
    WalkingLevel level;
    level.force = force;
    for (int axis = 0; axis < 3; ++axis) {
      std::array<std::vector<double>, 2> course;
      for (const int sign : {0, 1}) {
        level.end[axis][sign] = RunPushed(settled,
                                          twin,
                                          steps,
                                          axis,
                                          sign == 0 ? force : -force,
                                          &course[sign],
                                          &level.moved[axis][sign],
                                          &level.leaned[axis][sign]);
      }
      if (course[0].size() != course[1].size()) continue;  // one of the two fell
      for (std::size_t k = 0; k < course[0].size(); ++k) {
        level.course[axis].push_back((course[0][k] - course[1][k]) / 2);
      }
    }
    result.levels.push_back(std::move(level));
  }
  return result;
}

WalkingResponse ResponseOf(const CycleMeans& means, double cycle) {
  const std::size_t n = means[0].size();
  if (n == 0 || means[1].size() != n) return {kNan, kNan, kNan};
  WalkingResponse response{0, 0, 0};
  for (const std::vector<double>& sign : means) {
    const auto [low, high] = std::minmax_element(sign.begin(), sign.end());
    response.growth = std::max(response.growth, *high - *low);
  }
  double square = 0;  // of the cycles' distances from the middle one
  for (std::size_t k = 0; k < n; ++k) {
    const double half = (means[0][k] - means[1][k]) / 2;
    const double from_middle = static_cast<double>(k) - static_cast<double>(n - 1) / 2;
    response.mean += half / static_cast<double>(n);
    response.speed += from_middle * half;
    square += from_middle * from_middle;
  }
  response.speed = square > 0 ? response.speed / (square * cycle) : kNan;
  return response;
}

double WalkingStiffness(const CycleMeans& means, double force) {
  const WalkingResponse response = ResponseOf(means, 1);
  return response.growth <= kMostGrowth * std::abs(response.mean) ? force / response.mean : kNan;
}

}  // namespace silc
