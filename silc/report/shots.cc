// SPDX-License-Identifier: Apache-2.0
#include "silc/report/shots.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "silc/eval/experiment.h"
#include "silc/observe/closed_loop.h"
#include "silc/observe/load_policy.h"
#include "silc/report/picture.h"

namespace silc {
namespace {

constexpr int kWidth = 560, kHeight = 640;  // [px]

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
    // 40 N on a hand and 150 N on the pelvis are both to be seen
    arrows.push_back({point, force, hand ? 0.009 : 0.006});
  }
  return arrows;
}

bool RopeIsTaut(const mjData& data) {
  return std::any_of(data.efc_type, data.efc_type + data.nefc, [](int type) {
    return type == mjCNSTR_LIMIT_TENDON;
  });
}

View ViewOf(const std::string& experiment, const Eigen::Vector3d& base) {
  View view;
  view.look_at_W = {base.x(), base.y(), 0.66};
  view.distance = 2.0;
  if (experiment == "com-impulse") view.azimuth = 250;
  if (experiment == "hand-load") view.azimuth = 205;
  if (experiment == "hand-impact") {  // from the right hand's side, the weight below it in view
    view.azimuth = 130;
    view.look_at_W.z() = 0.58;
  }
  if (experiment == "foam-step") {
    view.azimuth = 225;
    view.elevation = -18;
    view.look_at_W.z() = 0.55;
  }
  if (experiment == "walk") view.azimuth = 255;
  return view;
}

// Decides, control step by control step, when the moment has come.
class Trigger {
 public:
  explicit Trigger(std::string experiment) : experiment_(std::move(experiment)) {}

  bool Now(const RobotModel& robot, const mjData& data) {
    if (experiment_ == "com-impulse" || experiment_ == "hand-load") {
      const std::vector<Arrow> arrows = ArrowsOf(robot, data);
      if (begin_ < 0 && !arrows.empty()) begin_ = data.time;
      if (!arrows.empty()) arrows_ = arrows;
      // the swing at its widest; the hand once it has come to rest
      return begin_ >= 0 && data.time - begin_ > (experiment_ == "hand-load" ? 1.0 : 0.30);
    }
    if (experiment_ == "hand-impact") {
      if (begin_ < 0 && RopeIsTaut(data)) begin_ = data.time;
      return begin_ >= 0 && data.time - begin_ > 0.10;
    }
    // stepping: a foot well off the ground, on foam the one beside it; a policy that drifts is
    // still on the pad early on
    const int foot = robot.foot_body()[experiment_ == "foam-step" ? kRight : kLeft];
    if (data.time > 0.8 && data.xpos[3 * foot + 2] > 0.10) return true;
    return data.time > 4;
  }
  const std::vector<Arrow>& arrows() const { return arrows_; }

 private:
  std::string experiment_;
  double begin_ = -1;  // [s] when the thing began; < 0: not yet
  std::vector<Arrow> arrows_;
};

std::optional<Image> Draw(const std::string& experiment,
                          const RobotModel& robot,
                          const mjData& data,
                          const std::vector<Arrow>& arrows,
                          std::string* why) {
  const auto painter = Painter::Create(*robot.model(), kWidth, kHeight, why);
  if (!painter) return std::nullopt;
  const Eigen::Vector3d base(data.xpos + 3 * robot.base_body());
  return painter->Draw(data, ViewOf(experiment, base), arrows);
}

// `walk` runs its robots in the task's own loop, which nobody can watch: three seconds of it here.
std::optional<Image> ShotOfWalk(const std::string& path, std::string* why) {
  const RobotModel robot = RobotModel::Load(kDefaultRobot, {.visuals = true});
  const Policy policy = LoadPolicy(path, "", robot);
  LoopOptions options;
  options.servo = ServoFor(robot, policy, "");
  options.command.lin_vel = {0.7, 0};
  options.command.walk = 1;
  ClosedLoop loop(robot, policy, options);
  const std::array<int, 2> feet = robot.foot_body();
  while (loop.time() < 5) {
    if (loop.Step() != LoopStatus::kRunning) return std::nullopt;
    // mid-stride: one foot well ahead of the other
    const mjtNum* x = loop.data()->xpos;
    if (loop.time() > 3 && x[3 * feet[kLeft]] - x[3 * feet[kRight]] > 0.22) break;
  }
  return Draw("walk", robot, *loop.data(), {}, why);
}

}  // namespace

std::string ShotCaption(const std::string& experiment) {
  if (experiment == "walk") return "Walking at 0.7 m/s";
  if (experiment == "com-impulse") return "0.3 s after −150 N at the pelvis";
  if (experiment == "hand-load") return "−40 N on the left hand";
  if (experiment == "budget") return "Stepping in place with moving arms";
  if (experiment == "hand-impact") return "2.5 kg on a rope, just caught";
  if (experiment == "foam-step") return "Stepping with the left foot on foam";
  return "";
}

std::optional<Image> TakeShot(const std::string& experiment,
                              const std::string& policy_path,
                              const UserBudget& budget,
                              std::string* why) {
  if (experiment == "walk") return ShotOfWalk(policy_path, why);
  std::optional<Image> image;
  ExperimentOptions options;
  options.budget = budget;
  options.episodes = 1;
  options.visuals = true;
  Trigger moment(experiment);
  options.watch = [&](const RobotModel& robot, const mjData& data) {
    if (!moment.Now(robot, data)) return;
    image = Draw(experiment, robot, data, moment.arrows(), why);
    throw Taken{};
  };
  const RobotModel robot = RobotModel::Load(options.robot);
  try {
    RunExperiment(
        FindExperiment(experiment), policy_path, LoadPolicy(policy_path, "", robot), options);
  } catch (const Taken&) {
  }
  return image;
}

}  // namespace silc
