// SPDX-License-Identifier: Apache-2.0
#include "silc/view/replay.h"

#include <algorithm>
#include <filesystem>

#include "silc/base/check.h"
#include "silc/base/nan.h"
#include "silc/observe/choose_budget.h"
#include "silc/observe/load_policy.h"
#include "silc/observe/run.h"
#include "silc/view/export_html.h"
#include "silc/view/live_observer.h"
#include "silc/view/live_reading.h"
#include "silc/view/scene.h"

namespace silc {
namespace {

constexpr std::uint32_t kReplayScene = 1;

// [m] of the lower foot
double LowerFoot(const RobotModel& robot, const mjData& data) {
  return std::min(data.site_xpos[3 * robot.foot_site()[0] + 2],
                  data.site_xpos[3 * robot.foot_site()[1] + 2]);
}

// One moment as the page shows it, lifted by `lift` [m].
RobotView ShowMoment(const ClosedLoop& loop,
                     const mjData& data,
                     const LiveReading& reading,
                     ContactMode mode,
                     double lift) {
  const RobotModel& robot = loop.robot();
  const Eigen::Vector3d up(0, 0, lift);
  RobotView view;
  view.mode = static_cast<std::uint8_t>(mode);
  for (int foot = 0; foot < 2; ++foot) {
    view.foot_p_W[foot] =
        Eigen::Map<const Eigen::Vector3d>(data.site_xpos + 3 * robot.foot_site()[foot]) + up;
    view.foot_f_W[foot].setZero();  // a recording has no forces in the world
  }
  view.reading = reading.view;
  view.reading.age = 0;
  view.points = reading.points;
  view.points[0].p_W = loop.ComPosition() + up;
  for (int hand = 0; robot.has_hands() && hand < 2; ++hand) {
    view.points[1 + hand].p_W = loop.HandPosition(hand) + up;
  }
  view.predicted_W.setConstant(kNan);
  view.bodies = BodyPoses(robot, data);
  // the world itself, body 0, stays
  for (std::size_t at = 7; at < view.bodies.size(); at += 7) {
    view.bodies[at + 2] += static_cast<float>(lift);
  }
  return view;
}

}  // namespace

ReplayedStates ReplayForView(const SimulationOptions& options,
                             const std::string& states,
                             const std::function<void(double)>& progress) {
  SILC_CHECK(options.policies.size() == 1);
  const std::string& file = options.policies[0];
  const RobotModel robot = RobotModel::Load(options.robot);
  TrainingNotes notes;
  Policy policy = LoadPolicy(file, options.layout, robot, &notes);
  const ChosenBudget chosen =
      ChooseBudget(options.mode, options.budget, notes, file, robot, &policy);
  auto setup = std::make_shared<ReadingSetup>();
  setup->number = 1;
  setup->servo = ServoFor(robot, policy, "");
  setup->budget = chosen.judged.spec;
  LoopOptions loop_options;
  loop_options.servo = setup->servo;
  ClosedLoop loop(robot, std::move(policy), loop_options);
  const double floor = LowerFoot(robot, *loop.data());  // it stands

  ReplayedStates replay;
  LiveReader reader(robot, setup);
  const LoopStatus end = ReplayStates(&loop, states, [&](const RecordedMoment& moment) {
    ObservedState observed;
    CopyMoment(&loop, moment.mode, setup, std::nullopt, &observed);
    const LiveReading reading = reader.Read(&observed);
    StateFrame frame;
    frame.sequence = static_cast<std::uint32_t>(moment.index);
    frame.time = moment.time;
    frame.scene = kReplayScene;
    const double lift = moment.of_robot ? floor - LowerFoot(robot, *loop.data()) : 0;
    frame.robots = {ShowMoment(loop, *loop.data(), reading, moment.mode, lift)};
    if (chosen.told) frame.robots[0].told = ShowTold(chosen.command, *chosen.told);
    replay.frames.push_back(std::move(frame));
    if (progress) progress((moment.index + 1.0) / moment.count);
  });
  if (end != LoopStatus::kRunning) replay.end = Describe(end);

  SceneLists lists;
  lists.number = kReplayScene;
  lists.period = loop.period();
  lists.policies = {std::filesystem::path(file).stem().string()};
  lists.budgets = {chosen.judged.name};
  lists.budget_numbers = {BudgetNumbers(chosen.judged.spec)};
  LoadOptions shapes;
  shapes.visuals = true;
  replay.scene_json = SceneJson(RobotModel::Load(options.robot, shapes), lists);
  return replay;
}

std::string StatesPage(const SimulationOptions& options,
                       const std::string& states,
                       bool served,
                       const std::function<void(double)>& progress) {
  const ReplayedStates replay = ReplayForView(options, states, progress);
  std::vector<std::string> frames;
  for (std::size_t i = 0; i < replay.frames.size(); i += 2) {
    frames.push_back(EncodeState(replay.frames[i]));
  }
  return served ? ServedRecordingPage(replay.scene_json, frames)
                : RecordingPage(replay.scene_json, frames);
}

}  // namespace silc
