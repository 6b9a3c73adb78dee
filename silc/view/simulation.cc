// SPDX-License-Identifier: Apache-2.0
#include "silc/view/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <random>
#include <thread>
#include <utility>

#include "silc/base/check.h"
#include "silc/base/error.h"
#include "silc/base/nan.h"
#include "silc/npz/npz.h"
#include "silc/observe/load_policy.h"
#include "silc/robot/kinematics.h"
#include "silc/robot/robot_fit.h"
#include "silc/view/scene.h"

namespace silc {
namespace {

using Eigen::Vector3d;
using Clock = std::chrono::steady_clock;

constexpr double kLieTime = 2;            // [s] that a fallen robot lies before it is stood up
constexpr double kShownAfterPush = 3;     // [s] that a push button's displacement is followed
constexpr double kBehind = 0.2;           // [s] of delay that is given up instead of caught up
constexpr std::size_t kMaxQueued = 1024;  // inputs per control step; more than a page's burst
const char kOwnBudget[] = "the policy's own";

double SecondsNow() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Whether `later` makes `earlier` needless: what takes long is carried out once a step, as it was
// asked for last.
bool Replaces(const Input& later, const Input& earlier) {
  if (later.type != earlier.type) return false;
  switch (later.type) {
    case InputType::kPolicy:
    case InputType::kBudget:
      return later.robot == earlier.robot;
    case InputType::kTold:
      return later.index == earlier.index;  // the robot
    case InputType::kGravity:
    case InputType::kReset:
      return true;
    default:
      return false;
  }
}

// The inputs of one step without those that a later one replaces, in their order.
std::vector<Input> WithoutReplaced(const std::vector<Input>& inputs) {
  std::vector<Input> kept;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto replaces = [&](const Input& later) { return Replaces(later, inputs[i]); };
    if (std::none_of(inputs.begin() + static_cast<std::ptrdiff_t>(i) + 1, inputs.end(), replaces)) {
      kept.push_back(inputs[i]);
    }
  }
  return kept;
}

}  // namespace

struct LiveSimulation::Robot {
  std::uint32_t policy = 0, budget = 0;  // indices
  TrainingNotes notes;
  std::optional<std::string> asked;  // what a commanded policy is told, as --budget says it
  ChosenBudget chosen;               // by `budget` and `asked`
  std::unique_ptr<ClosedLoop> loop;
  ContactModeTracker tracker;
  std::shared_ptr<const ReadingSetup> setup;
  std::unique_ptr<LiveReader> reader;  // with observe_in_step
  std::optional<LiveReading> reading;
  LoopStatus status = LoopStatus::kRunning;
  double lying = 0;  // [s]
  std::uint8_t falls = 0;
  // of the push
  Vector3d start_W = Vector3d::Zero();        // [m] the point when it began
  Vector3d f_W = Vector3d::Zero();            // [N] in the last physics step
  double push_begin = 0;                      // [s] of the loop's clock
  std::optional<Eigen::Matrix3d> C_at_begin;  // [m/N]
};

LiveSimulation::LiveSimulation(SimulationOptions options) : options_(std::move(options)) {
  SILC_CHECK(!options_.policies.empty());
  LoadOptions firm;
  firm.firm_contacts = true;
  robot_model_ = std::make_unique<const RobotModel>(RobotModel::Load(options_.robot, firm));

  push_buttons_ = PushButtons(robot_model_->has_hands());
  policy_files_ = options_.policies;
  for (const std::string& choice : options_.choices) {
    const auto same = [&](const std::string& file) {
      std::error_code ignored;
      return file == choice || std::filesystem::equivalent(file, choice, ignored);
    };
    if (std::ranges::none_of(policy_files_, same)) policy_files_.push_back(choice);
  }
  if (options_.mode) budget_modes_.push_back(*options_.mode);
  for (const std::string& name : BudgetNames()) {
    if (options_.mode && name == *options_.mode) continue;
    // what has ranges judges nobody, and hands that are not there are not judged
    const BudgetSpec spec = ReadBudget(name).spec;
    if (spec.IsCommanded() || !HasPointsOf(spec, *robot_model_)) continue;
    budget_modes_.push_back(name);
  }

  for (std::size_t i = 0; i < options_.policies.size(); ++i) {
    auto robot = std::make_unique<Robot>();
    robot->budget = options_.mode ? 1 : 0;
    // the same file twice shows two robots of it: the index of its first place
    const auto place = std::ranges::find(policy_files_, options_.policies[i]);
    const auto index = static_cast<std::uint32_t>(place - policy_files_.begin());
    GivePolicy(robot.get(), index, ReadPolicy(index), false);
    robots_.push_back(std::move(robot));
  }
  asked_policies_.resize(robots_.size());
  const auto is_told = [](const auto& robot) { return robot->chosen.told.has_value(); };
  if (options_.budget && std::ranges::none_of(robots_, is_told)) {
    // refused in the words of the other verbs
    GiveBudget(robots_.front().get(), robots_.front()->budget, options_.budget);
  }
  period_ = robots_.front()->loop->period();
  for (const auto& robot : robots_) {
    if (std::abs(robot->loop->period() - period_) > 1e-9) {
      throw ConfigError("robots shown side by side need policies with the same control period");
    }
  }
  recorded_.resize(robots_.size());

  scene_number_ = std::random_device{}();
  SceneLists lists;
  lists.number = scene_number_;
  lists.period = period_;
  lists.num_robots = num_robots();
  for (const std::string& file : policy_files_) {
    lists.policies.push_back(std::filesystem::path(file).stem().string());
  }
  lists.budgets.push_back(kOwnBudget);
  lists.budget_numbers.emplace_back();
  for (const std::string& mode : budget_modes_) {
    const UserBudget budget = ReadBudget(mode);
    lists.budgets.push_back(budget.name);
    lists.budget_numbers.push_back(BudgetNumbers(budget.spec));
  }
  LoadOptions shapes;
  shapes.visuals = true;
  scene_json_ = SceneJson(RobotModel::Load(options_.robot, shapes), lists);
  if (!options_.observe_in_step) {
    observer_ = std::make_unique<LiveObserver>(*robot_model_, num_robots());
  }
}

LiveSimulation::~LiveSimulation() = default;

InputLimits LiveSimulation::limits() const {
  InputLimits limits;
  limits.robots = static_cast<std::uint32_t>(robots_.size());
  limits.bodies = static_cast<std::uint32_t>(robot_model_->model()->nbody);
  limits.policies = static_cast<std::uint32_t>(policy_files_.size());
  limits.budgets = static_cast<std::uint32_t>(budget_modes_.size() + 1);
  limits.pushes = static_cast<std::uint32_t>(push_buttons_.size());
  return limits;
}

void LiveSimulation::Apply(const Input& input) {
  const std::scoped_lock lock(mutex_);
  if (inputs_.size() < kMaxQueued) inputs_.push_back(input);
}

void LiveSimulation::Notice(std::string text) { notices_.push_back(std::move(text)); }

std::vector<std::string> LiveSimulation::TakeNotices() { return std::exchange(notices_, {}); }

// --mode of a budget in the scene's list; none for the policy's own.
std::optional<std::string> LiveSimulation::ModeOf(std::uint32_t budget) const {
  if (budget == 0) return std::nullopt;
  return budget_modes_[budget - 1];
}

LiveSimulation::LoadedPolicy LiveSimulation::ReadPolicy(std::uint32_t index) const {
  TrainingNotes notes;
  Policy policy = LoadPolicy(policy_files_[index], options_.layout, *robot_model_, &notes);
  return {std::move(notes), std::move(policy)};
}

// A robot's own file has been written anew; unless it has, or will have, another one.
void LiveSimulation::AskReloaded(int robot) {
  std::uint32_t index = robots_[robot]->policy;
  if (loading_.valid() && loading_robot_ == robot) index = loading_index_;
  if (asked_policies_[robot]) index = *asked_policies_[robot];
  if (policy_files_[index] == options_.policies[robot]) asked_policies_[robot] = index;
}

// Reads one policy that was asked for, on a thread of its own, where none is being read.
void LiveSimulation::BeginLoading() {
  if (loading_.valid()) return;
  // in turns, so that one robot's cannot starve another's
  for (int i = 0; i < num_robots(); ++i) {
    const int robot = (loading_robot_ + 1 + i) % num_robots();
    if (!asked_policies_[robot]) continue;
    loading_robot_ = robot;
    loading_index_ = *std::exchange(asked_policies_[robot], std::nullopt);
    // it reads constants alone: files' names, the layout, the robot
    loading_ = std::async(std::launch::async,
                          [this, index = loading_index_] { return ReadPolicy(index); });
    return;
  }
}

// Waits for the policy that is being read, and gives it to its robot. Throws ConfigError for what
// cannot be had; the robot keeps what it has.
void LiveSimulation::EndLoading() {
  LoadedPolicy loaded = loading_.get();
  // overtaken by another
  if (asked_policies_[loading_robot_]) return;
  GivePolicy(robots_[loading_robot_].get(), loading_index_, std::move(loaded), true);
}

void LiveSimulation::GivePolicy(Robot* robot,
                                std::uint32_t index,
                                LoadedPolicy loaded,
                                bool keep_state) {
  const std::string& file = policy_files_[index];
  auto [notes, policy] = std::move(loaded);
  // whatever can be refused is refused before the robot has changed
  std::optional<std::string> asked;
  if (policy.sees_budget()) {
    // a newer checkpoint of the same file is told what the older one was
    const bool newer = keep_state && robot->policy == index && robot->chosen.told;
    asked = newer ? robot->asked : options_.budget;
  }
  ChosenBudget chosen =
      ChooseBudget(ModeOf(robot->budget), asked, notes, file, *robot_model_, &policy);
  LoopOptions options;
  options.servo = ServoFor(*robot_model_, policy, "");
  options.command = command_;
  options.command.budget = chosen.told;
  auto loop = std::make_unique<ClosedLoop>(*robot_model_, std::move(policy), options);
  if (keep_state && std::abs(loop->period() - period_) > 1e-9) {
    throw ConfigError(fmt::format(
        "{}: has a control period of {} s, the others have {} s", file, loop->period(), period_));
  }
  // the new policy takes over the robot where it is
  if (keep_state && robot->loop && robot->status == LoopStatus::kRunning) {
    const mjData* data = robot->loop->data();
    loop->SetState({data->qpos, static_cast<std::size_t>(robot_model_->model()->nq)},
                   {data->qvel, static_cast<std::size_t>(robot_model_->model()->nv)});
    loop->data()->time = data->time;
  }
  robot->loop = std::move(loop);
  robot->notes = std::move(notes);
  robot->policy = index;
  robot->asked = asked;
  robot->chosen = std::move(chosen);
  robot->tracker = MakeContactTracker(*robot_model_);
  if (!robot->chosen.warning.empty()) Notice(robot->chosen.warning);
  Judge(robot);
}

// What the policy of a robot is asked to do: the same for all, but for the budget it is told.
PolicyCommand LiveSimulation::CommandOf(const Robot& robot) const {
  PolicyCommand command = command_;
  command.budget = robot.chosen.told;
  return command;
}

// Another budget for a policy that is told one. What is outside its ranges changes nothing.
void LiveSimulation::TellBudget(Robot* robot, const Input& input) {
  const std::string name = std::filesystem::path(policy_files_[robot->policy]).stem().string();
  if (!robot->chosen.told) {
    Notice(name + ": is not told its budget");
    return;
  }
  std::string asked;
  for (int i = 0; i < kNumCommanded; ++i) {
    if (!robot->chosen.command.range[i]) continue;
    const BudgetRange& range = *robot->chosen.command.range[i];
    const double value = input.value[i];
    // a page speaks in float32: the end of a range may be rounded to beyond it
    if (!(value >= range.low * (1 - 1e-6) && value <= range.high * (1 + 1e-6))) {
      Notice(fmt::format("{}: {}: {:g} is outside [{:g}, {:g}], for which it was trained",
                         name,
                         Name(static_cast<CommandedNumber>(i)),
                         value,
                         range.low,
                         range.high));
      return;
    }
    asked += fmt::format("{}{}={}",
                         asked.empty() ? "" : ",",
                         Name(static_cast<CommandedNumber>(i)),
                         std::clamp(value, range.low, range.high));
  }
  GiveBudget(robot, robot->budget, asked);
}

// Another budget of the scene's list, or another number for a policy that is told one. Throws
// ConfigError as ChooseBudget() does, before anything has changed.
void LiveSimulation::GiveBudget(Robot* robot,
                                std::uint32_t budget,
                                const std::optional<std::string>& asked) {
  Policy policy = robot->loop->policy();
  robot->chosen = ChooseBudget(
      ModeOf(budget), asked, robot->notes, policy_files_[robot->policy], *robot_model_, &policy);
  robot->budget = budget;
  robot->asked = asked;
  robot->loop->SetCommand(CommandOf(*robot));
  Judge(robot);
}

// From now on the robot is observed under its budget and the page's choice for gravity.
void LiveSimulation::Judge(Robot* robot) {
  auto setup = std::make_shared<ReadingSetup>();
  setup->number = next_setup_++;
  setup->servo = robot->loop->options().servo;
  setup->budget = robot->chosen.judged.spec;
  if (gravity_ == GravityChoice::kHeld) setup->budget.gravity = Channel::kHeld;
  if (gravity_ == GravityChoice::kFollowed) setup->budget.gravity = Channel::kFollowed;
  robot->setup = setup;
  robot->reading.reset();
}

void LiveSimulation::ReloadPolicy(int robot) {
  const std::scoped_lock lock(mutex_);
  reloads_.push_back(robot);
}

void LiveSimulation::BeginPush(int kind, int grabbed, const HeldPoint& point) {
  push_.kind = kind;
  push_.grabbed = grabbed;
  push_.point = point;
  push_.target_W = robots_[grabbed]->loop->BodyPoint(point.body, point.p_BP);
  for (const auto& robot : robots_) {
    robot->start_W = robot->loop->BodyPoint(point.body, point.p_BP);
    robot->push_begin = robot->loop->time();
    robot->C_at_begin.reset();
  }
}

void LiveSimulation::EndPush() {
  push_.kind = 0;
  for (const auto& robot : robots_) {
    robot->loop->SetPush({});
    robot->f_W.setZero();
  }
}

// What a page asked for. Indices and numbers were checked where they came in. Throws ConfigError
// for a policy or a budget that cannot be had; the robot keeps what it has.
void LiveSimulation::Carry(const Input& input) {
  const Vector3d v(input.value[0], input.value[1], input.value[2]);
  switch (input.type) {
    case InputType::kGrab:
      BeginPush(1, static_cast<int>(input.robot), {static_cast<int>(input.index), v});
      break;
    case InputType::kPull:
      if (push_.kind == 1) push_.target_W = v;
      break;
    case InputType::kRelease:
      if (push_.kind == 1) EndPush();
      break;
    case InputType::kCommand:
      command_.lin_vel = {v[0], v[1]};
      command_.yaw_rate = v[2];
      command_.height = input.value[3];
      command_.walk = input.value[4] > 0.5 ? 1 : 0;
      for (const auto& robot : robots_) robot->loop->SetCommand(CommandOf(*robot));
      break;
    case InputType::kPause:
      paused_ = input.index == 1;
      break;
    case InputType::kSpeed:
      if (speed_ == input.value[0]) break;
      speed_ = input.value[0];
      // what passed at another speed says nothing of this one
      passed_.clear();
      achieved_ = speed_;
      break;
    case InputType::kReset:
      EndPush();
      for (const auto& robot : robots_) {
        robot->loop->Reset();
        robot->tracker = MakeContactTracker(*robot_model_);
        robot->status = LoopStatus::kRunning;
        robot->lying = 0;
      }
      break;
    case InputType::kPush: {
      const PushButton& button = push_buttons_[input.index];
      HeldPoint point{robot_model_->base_body(), Vector3d::Zero()};
      if (button.at_hand) {
        point.body = robot_model_->hand_body()[kLeft];
        point.p_BP = Eigen::Map<const Vector3d>(robot_model_->model()->site_pos +
                                                3 * robot_model_->hand_site()[kLeft]);
      }
      BeginPush(2, 0, point);
      push_.f_W = button.f_W;
      push_.force_until = time_ + button.duration;
      push_.shown_until = push_.force_until + kShownAfterPush;
      break;
    }
    case InputType::kPolicy:
      asked_policies_[input.robot] = input.index;
      break;
    case InputType::kBudget:
      GiveBudget(robots_[input.robot].get(), input.index, robots_[input.robot]->asked);
      break;
    case InputType::kGravity:
      gravity_ = static_cast<GravityChoice>(input.index);
      for (const auto& robot : robots_) Judge(robot.get());
      break;
    case InputType::kSamePush:
      same_push_ = input.index == 1;
      break;
    case InputType::kTold:
      TellBudget(robots_[input.index].get(), input);
      break;
    case InputType::kSpring:
      spring_ = input.value[0];
      break;
    case InputType::kAck:
    case InputType::kShown:
    case InputType::kHand:
      break;  // the server's business
  }
}

// Spring and damper between the point that is held and the mouse, no stronger than a person.
Vector3d LiveSimulation::MouseForce(const Robot& robot) const {
  const int body = push_.point.body;
  const Vector3d p_WP = robot.loop->BodyPoint(body, push_.point.p_BP);
  mjtNum velocity[6];  // angular, linear; of the body's origin, in W
  mj_objectVelocity(robot_model_->model(), robot.loop->data(), mjOBJ_XBODY, body, velocity, 0);
  const Vector3d w(velocity[0], velocity[1], velocity[2]), v(velocity[3], velocity[4], velocity[5]);
  const Vector3d origin = Eigen::Map<const Vector3d>(robot.loop->data()->xpos + 3 * body);
  const Vector3d v_WP = v + w.cross(p_WP - origin);
  const Vector3d f_W = spring_ * (push_.target_W - p_WP) - kMouseDamping * spring_ * v_WP;
  const double size = f_W.norm();
  return size > kMouseForceLimit ? Vector3d(f_W * (kMouseForceLimit / size)) : f_W;
}

void LiveSimulation::StepRobot(int index, bool leads) {
  Robot& robot = *robots_[index];
  ClosedLoop& loop = *robot.loop;
  loop.TrackContacts(&robot.tracker);
  robot.status = loop.Decide();
  if (robot.status == LoopStatus::kRunning) {
    std::optional<HeldPoint> held;
    if (push_.kind != 0) held = push_.point;
    if (observer_) {
      observer_->Offer(index, &loop, robot.tracker.mode(), robot.setup, held);
      robot.reading = observer_->Latest(index, robot.setup->number);
      // its clock begins again where it is stood up
      if (robot.reading && robot.reading->time > loop.time()) robot.reading.reset();
    } else {
      ObservedState state;
      CopyMoment(&loop, robot.tracker.mode(), robot.setup, held, &state);
      if (!robot.reader || robot.reading == std::nullopt) {
        robot.reader = std::make_unique<LiveReader>(*robot_model_, robot.setup);
      }
      robot.reading = robot.reader->Read(&state);
    }

    // at the physics' own pace: 0.05 s is no whole number of control periods
    std::size_t substep = 0;
    const double step = robot_model_->model()->opt.timestep;
    const bool feels = push_.kind != 0 && (same_push_ || index == push_.grabbed);
    loop.SetHooks(
        [&] {
          Vector3d f_W = Vector3d::Zero();
          if (feels && push_.kind == 1) {
            f_W =
                leads ? MouseForce(robot) : led_forces_[std::min(substep, led_forces_.size() - 1)];
            if (leads) led_forces_.push_back(f_W);
          } else if (feels &&
                     time_ + step * static_cast<double>(substep) < push_.force_until - 1e-9) {
            f_W = push_.f_W;
          }
          ++substep;
          robot.f_W = f_W;
          Push push{feels ? Push::Point::kBody : Push::Point::kNone, f_W};
          push.body = push_.point.body;
          push.p_BP = push_.point.p_BP;
          loop.SetPush(push);
        },
        {});
    robot.status = loop.Advance();
    loop.SetHooks({}, {});
  }

  // what it was while it stood says nothing of one that lies
  if (robot.status != LoopStatus::kRunning) robot.reading.reset();

  // a robot that cannot go on stands up again
  const bool broken =
      robot.status == LoopStatus::kPolicyNotFinite || robot.status == LoopStatus::kDiverged;
  if (robot.status == LoopStatus::kFallen && robot.lying == 0) ++robot.falls;
  robot.lying = robot.status == LoopStatus::kRunning ? 0 : robot.lying + period_;
  if (broken || robot.lying > kLieTime) {
    Notice(fmt::format("{}: {}; it stands up again",
                       std::filesystem::path(policy_files_[robot.policy]).stem().string(),
                       Describe(robot.status)));
    loop.Reset();
    robot.tracker = MakeContactTracker(*robot_model_);
    robot.lying = 0;
  }
}

RobotView LiveSimulation::Show(int index) {
  Robot& robot = *robots_[index];
  const mjData* data = robot.loop->data();
  RobotView view;
  view.status = static_cast<std::uint8_t>(robot.status);
  view.mode = static_cast<std::uint8_t>(robot.tracker.mode());
  view.falls = robot.falls;
  view.policy = static_cast<std::uint16_t>(robot.policy);
  view.budget = static_cast<std::uint16_t>(robot.budget);
  if (robot.chosen.told) view.told = ShowTold(robot.chosen.command, *robot.chosen.told);
  const std::array<FootForce, 2> feet = ComputeFootForces(*robot_model_, *data);
  for (int foot = 0; foot < 2; ++foot) {
    view.foot_p_W[foot] =
        Eigen::Map<const Vector3d>(data->site_xpos + 3 * robot_model_->foot_site()[foot]);
    view.foot_f_W[foot] = feet[foot].force;
  }
  if (robot.reading) {
    view.reading = robot.reading->view;
    view.reading.age = robot.loop->time() - robot.reading->time;
    view.points = robot.reading->points;
  }
  view.points[0].p_W = robot.loop->ComPosition();
  for (int hand = 0; robot_model_->has_hands() && hand < 2; ++hand) {
    view.points[1 + hand].p_W = robot.loop->HandPosition(hand);
  }
  view.predicted_W.setConstant(kNan);
  if (push_.kind != 0 && (same_push_ || index == push_.grabbed)) {
    view.push = static_cast<std::uint8_t>(push_.kind);
    view.f_W = robot.f_W;
    view.p_W = robot.loop->BodyPoint(push_.point.body, push_.point.p_BP);
    view.points[kHeldPoint].p_W = view.p_W;
    view.moved_W = view.p_W - robot.start_W;
    // the line through the push is that of the moment at which it began
    if (!robot.C_at_begin && robot.reading && robot.reading->time >= robot.push_begin - 1e-9 &&
        robot.reading->points[kHeldPoint].C_felt.allFinite()) {
      robot.C_at_begin = robot.reading->points[kHeldPoint].C_felt;
    }
    if (robot.C_at_begin) view.predicted_W = *robot.C_at_begin * view.f_W;
  }
  view.bodies = BodyPoses(*robot_model_, *data);
  return view;
}

void LiveSimulation::Record() {
  const mjModel* model = robot_model_->model();
  const auto most = static_cast<std::size_t>(std::lround(kRecordedTime / period_));
  const std::scoped_lock lock(mutex_);
  for (std::size_t i = 0; i < robots_.size(); ++i) {
    const mjData* data = robots_[i]->loop->data();
    recorded_[i].push_back(
        {{data->qpos, data->qpos + model->nq}, {data->qvel, data->qvel + model->nv}});
    if (recorded_[i].size() > most) recorded_[i].pop_front();
  }
}

std::string LiveSimulation::Recording(int robot) const {
  std::vector<double> qpos, qvel;
  std::int64_t rows = 0;
  {
    const std::scoped_lock lock(mutex_);
    for (const Moment& moment : recorded_[robot]) {
      qpos.insert(qpos.end(), moment.qpos.begin(), moment.qpos.end());
      qvel.insert(qvel.end(), moment.qvel.begin(), moment.qvel.end());
      ++rows;
    }
  }
  const mjModel* model = robot_model_->model();
  return EncodeNpz(
      {{"qpos", {rows, model->nq}, std::move(qpos)}, {"qvel", {rows, model->nv}, std::move(qvel)}});
}

StateFrame LiveSimulation::Step() { return StepOnce(true); }

StateFrame LiveSimulation::StepOnce(bool wait_for_policies) {
  std::vector<Input> inputs;
  std::vector<int> reloads;
  {
    const std::scoped_lock lock(mutex_);
    inputs.swap(inputs_);
    reloads.swap(reloads_);
  }
  const auto attempt = [&](const auto& action) {
    try {
      action();
    } catch (const ConfigError& error) {
      Notice(error.what());
    }
  };
  for (const Input& input : WithoutReplaced(inputs)) attempt([&] { Carry(input); });
  for (const int robot : reloads) AskReloaded(robot);
  BeginLoading();
  while (loading_.valid() && (wait_for_policies || loading_.wait_for(std::chrono::seconds(0)) ==
                                                       std::future_status::ready)) {
    attempt([&] { EndLoading(); });
    BeginLoading();
    if (!wait_for_policies) break;  // one a step
  }

  if (!paused_) {
    if (push_.kind == 2 && time_ > push_.shown_until) EndPush();
    // the robot that is held goes first: the others feel the force it felt
    led_forces_.clear();
    const int first = push_.kind == 1 ? push_.grabbed : 0;
    StepRobot(first, true);
    for (int i = 0; i < num_robots(); ++i) {
      if (i != first) StepRobot(i, false);
    }
    time_ += period_;
    Record();
  }

  StateFrame frame;
  frame.sequence = ++sequence_;
  frame.paused = paused_;
  frame.same_push = same_push_;
  frame.gravity = gravity_;
  frame.time = time_;
  frame.sent = SecondsNow();
  frame.speed = speed_;
  frame.achieved = achieved_;
  frame.scene = scene_number_;
  frame.command = {command_.lin_vel.x(),
                   command_.lin_vel.y(),
                   command_.yaw_rate,
                   command_.height,
                   command_.walk};
  for (int i = 0; i < num_robots(); ++i) frame.robots.push_back(Show(i));
  return frame;
}

void LiveSimulation::Run(const std::stop_token& stop,
                         const std::function<void(std::shared_ptr<const std::string>)>& on_frame,
                         const std::function<void(const std::string&)>& on_notice) {
  Clock::time_point due = Clock::now();
  while (!stop.stop_requested()) {
    on_frame(std::make_shared<const std::string>(EncodeState(StepOnce(false))));
    for (const std::string& notice : TakeNotices()) on_notice(notice);

    const Clock::time_point now = Clock::now();
    passed_.emplace_back(now, time_);
    while (passed_.size() > 2 && now - passed_.front().first > std::chrono::seconds(1)) {
      passed_.pop_front();
    }
    const double elapsed = std::chrono::duration<double>(now - passed_.front().first).count();
    if (paused_)
      passed_.clear();
    else if (elapsed > 0.5)
      achieved_ = (time_ - passed_.front().second) / elapsed;

    due += std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(period_ / (paused_ ? 1 : speed_)));
    // lost time stays lost: catching up would show a robot in fast motion
    if (now - due > std::chrono::duration<double>(kBehind)) due = now;
    std::this_thread::sleep_until(due);
  }
}

}  // namespace silc
