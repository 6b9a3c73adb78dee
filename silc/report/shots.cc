// SPDX-License-Identifier: Apache-2.0
#include "silc/report/shots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "silc/eval/experiment.h"
#include "silc/eval/experiment_metrics.h"
#include "silc/eval/experiments.h"
#include "silc/observe/closed_loop.h"
#include "silc/observe/load_policy.h"
#include "silc/report/picture.h"

namespace silc {
namespace {

constexpr int kWidth = 560, kHeight = 640;  // [px]
constexpr double kWalkingSpeed = 0.7;       // [m/s]

// "−40 N"
std::string Newtons(double force) {
  return fmt::format("{}{:g} N", force < 0 ? "−" : "", std::abs(force));
}

// thrown by the watcher once the picture is taken: the rest of the experiment is not needed
struct Taken {};

// Forces the world applies, from what the loop wrote for MuJoCo.
std::vector<Arrow> ArrowsOf(const RobotModel& robot, const mjData& data) {
  std::vector<Arrow> arrows;
  for (int body = 1; body < robot.model()->nbody; ++body) {
    const Eigen::Vector3d force(data.xfrc_applied + 6 * body);
    if (force.norm() < 5) continue;  // [N] not worth an arrow
    // at the hand's site where it acts on a hand, else at the body's centre of mass
    Eigen::Vector3d point(data.xipos + 3 * body);
    for (const int hand : {kLeft, kRight}) {
      if (robot.hand_body()[hand] == body)
        point = Eigen::Vector3d(data.site_xpos + 3 * robot.hand_site()[hand]);
    }
    const bool hand = body == robot.hand_body()[kLeft] || body == robot.hand_body()[kRight];
    // the small load of a hand and the push at the pelvis are both to be seen
    arrows.push_back({point, force, hand ? 0.009 : 0.006});
  }
  return arrows;
}

bool RopeIsTaut(const mjData& data) {
  return std::any_of(data.efc_type, data.efc_type + data.nefc, [](int type) {
    return type == mjCNSTR_LIMIT_TENDON;
  });
}

View ViewOf(const Shot& shot, const Eigen::Vector3d& base) {
  View view;
  view.look_at_W = {base.x(), base.y(), shot.look_at_z};
  view.distance = 2.0;
  view.azimuth = shot.azimuth;
  view.elevation = shot.elevation;
  return view;
}

// Decides, control step by control step, when the moment has come.
class Trigger {
 public:
  explicit Trigger(const Shot& shot) : shot_(shot) {}

  bool Now(const RobotModel& robot, const mjData& data) {
    if (shot_.moment == ShotMoment::kStepped) {
      // a policy that drifts is still on the pad early on
      if (data.time > 0.8 && data.xpos[3 * robot.foot_body()[shot_.foot] + 2] > 0.10) return true;
      return data.time > 4;
    }
    const std::vector<Arrow> arrows = ArrowsOf(robot, data);
    const bool pushed = shot_.moment == ShotMoment::kPushed;
    if (pushed && !arrows.empty()) arrows_ = arrows;
    if (begin_ < 0 && (pushed ? !arrows.empty() : RopeIsTaut(data))) begin_ = data.time;
    return begin_ >= 0 && data.time - begin_ > shot_.after;
  }
  const std::vector<Arrow>& arrows() const { return arrows_; }

 private:
  const Shot& shot_;
  double begin_ = -1;  // [s] when the thing began; < 0: not yet
  std::vector<Arrow> arrows_;
};

std::optional<Image> Draw(const Shot& shot,
                          const RobotModel& robot,
                          const mjData& data,
                          const std::vector<Arrow>& arrows,
                          std::string* why) {
  const auto painter = Painter::Create(*robot.model(), kWidth, kHeight, why);
  if (!painter) return std::nullopt;
  const Eigen::Vector3d base(data.xpos + 3 * robot.base_body());
  return painter->Draw(data, ViewOf(shot, base), arrows);
}

// `walk` runs its robots in the task's own loop, which nobody can watch: three seconds of it here.
std::optional<Image> ShotOfWalk(const Shot& shot, const std::string& path, std::string* why) {
  const RobotModel robot = RobotModel::Load(kDefaultRobot, {.visuals = true});
  const Policy policy = LoadPolicy(path, "", robot);
  LoopOptions options;
  options.servo = ServoFor(robot, policy, "");
  options.command.lin_vel = {kWalkingSpeed, 0};
  options.command.walk = 1;
  ClosedLoop loop(robot, policy, options);
  const std::array<int, 2> feet = robot.foot_body();
  while (loop.time() < 5) {
    if (loop.Step() != LoopStatus::kRunning) return std::nullopt;
    // mid-stride: one foot well ahead of the other
    const mjtNum* x = loop.data()->xpos;
    if (loop.time() > 3 && x[3 * feet[kLeft]] - x[3 * feet[kRight]] > 0.22) break;
  }
  return Draw(shot, robot, *loop.data(), {}, why);
}

}  // namespace

const std::vector<Shot>& Shots() {
  constexpr double kSwung = 0.3;  // [s] the swing at its widest
  static const std::vector<Shot> shots = {
      {.experiment = metric::Walk(),
       .caption = fmt::format("Walking at {:g} m/s", kWalkingSpeed),
       .moment = ShotMoment::kStrided,
       .azimuth = 255},
      {.experiment = metric::ComImpulse(),
       .caption = fmt::format("{:g} s after {} at the pelvis", kSwung, Newtons(kImpulseForce)),
       .moment = ShotMoment::kPushed,
       .after = kSwung,
       .azimuth = 250},
      {.experiment = metric::HandLoad(),
       .caption = Newtons(kLoadForce) + " on the left hand",
       .moment = ShotMoment::kPushed,
       .after = 1,  // the hand has come to rest
       .azimuth = 205},
      {.experiment = metric::Budget(),
       .caption = "Stepping in place with moving arms",
       .moment = ShotMoment::kStepped},
      {.experiment = metric::HandImpact(),
       .caption = fmt::format("{:g} kg on a rope, just caught", kDroppedMass),
       .moment = ShotMoment::kCaught,
       .after = 0.1,
       .azimuth = 130,  // from the right hand's side, the weight below it in view
       .look_at_z = 0.58},
      {.experiment = metric::FoamStep(),
       .caption = "Stepping with the left foot on foam",
       .moment = ShotMoment::kStepped,
       .foot = kRight,  // the one beside the pad
       .azimuth = 225,
       .elevation = -18,
       .look_at_z = 0.55},
  };
  return shots;
}

const Shot* FindShot(const std::string& experiment) {
  for (const Shot& shot : Shots()) {
    if (shot.experiment.experiment() == experiment) return &shot;
  }
  return nullptr;
}

std::optional<Image> TakeShot(const Shot& shot,
                              const std::string& policy_path,
                              const UserBudget& budget,
                              std::string* why) {
  if (shot.moment == ShotMoment::kStrided) return ShotOfWalk(shot, policy_path, why);
  std::optional<Image> image;
  ExperimentOptions options;
  options.budget = budget;
  options.episodes = 1;
  options.visuals = true;
  Trigger moment(shot);
  options.watch = [&](const RobotModel& robot, const mjData& data) {
    if (!moment.Now(robot, data)) return;
    image = Draw(shot, robot, data, moment.arrows(), why);
    throw Taken{};
  };
  const RobotModel robot = RobotModel::Load(options.robot);
  try {
    RunExperiment(FindExperiment(shot.experiment.experiment()),
                  policy_path,
                  LoadPolicy(policy_path, "", robot),
                  options);
  } catch (const Taken&) {
  }
  return image;
}

}  // namespace silc
