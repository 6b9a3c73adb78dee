// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "silc/observe/choose_budget.h"
#include "silc/observe/closed_loop.h"
#include "silc/view/live_observer.h"
#include "silc/view/protocol.h"

namespace silc {

struct SimulationOptions {
  std::string robot = kDefaultRobot;
  std::string layout;               // "" for what each policy file says
  std::optional<std::string> mode;  // none: the budget inside each policy
  /// Told at first to policies that see their budget; none: the middle of their ranges.
  std::optional<std::string> budget;
  std::vector<std::string> policies;  // ONNX files, one robot each; at least one
  std::vector<std::string> choices;   // more files that a robot can be given while it runs
  /// Observe every control step before the physics goes on: exact and slower. For recordings.
  bool observe_in_step = false;
};

/// How hard the mouse pulls: a spring between the point it holds and the point it shows.
inline constexpr double kMouseSpring = 200;      // [N/m] unless the page asks for another
inline constexpr double kMouseDamping = 0.05;    // [s] of the spring: c = 0.05 s · k
inline constexpr double kMouseForceLimit = 300;  // [N]
inline constexpr double kRecordedTime = 30;      // [s] that Recording() goes back

/// Robots in MuJoCo, each with its policy, in step with the clock on the wall.
///
/// One thread calls Run() (or Step(), in tests and recordings). Apply(), Recording() and the
/// constant things may be called from any other.
///
/// The floor is firm (LoadOptions::firm_contacts), as under `silc observe --shake`: on MuJoCo's
/// softer friction soles creep under a steady pull, and displacements would be the floor's.
class LiveSimulation {
 public:
  /// Throws ConfigError for what cannot be loaded, and for budgets as ChooseBudget() does.
  explicit LiveSimulation(SimulationOptions options);
  ~LiveSimulation();

  /// What indices from a page may be.
  InputLimits limits() const;
  const std::string& scene_json() const { return scene_json_; }
  double period() const { return period_; }  ///< [s]
  int num_robots() const { return static_cast<int>(robots_.size()); }

  /// Queues a checked input for the next control step.
  void Apply(const Input& input);

  /// One control period of every robot, and what it looks like after. Policies that were asked for
  /// are loaded first.
  StateFrame Step();

  /// Steps at the wanted speed until asked to stop. `on_frame` gets every frame, encoded;
  /// `on_notice` sentences for people (TakeNotices()). Policies are loaded beside the simulation,
  /// one at a time: robots go on with what they have until theirs is there.
  void Run(const std::stop_token& stop,
           const std::function<void(std::shared_ptr<const std::string>)>& on_frame,
           const std::function<void(const std::string&)>& on_notice);

  /// What people should know since the last call: a fall, a policy or a budget that was refused.
  /// For whoever calls Step().
  std::vector<std::string> TakeNotices();

  /// The last kRecordedTime of a robot as the bytes of an .npz file: qpos and qvel, one row per
  /// control period, as `silc observe --states` takes them.
  std::string Recording(int robot) const;

  /// Loads the file of a robot's policy again; for runs that are being trained. Any thread.
  void ReloadPolicy(int robot);

  std::uint64_t observations() const { return observer_ ? observer_->count() : 0; }
  /// [1] simulated time per elapsed time over the last second, the wanted speed while Run() keeps
  /// up; half a second after a change of speed it begins to be measured anew.
  double achieved() const { return achieved_; }

 private:
  struct Robot;
  struct Moment {
    std::vector<double> qpos, qvel;
  };
  // A policy file as it was read; nothing of a robot has changed yet.
  struct LoadedPolicy {
    TrainingNotes notes;
    Policy policy;
  };
  StateFrame StepOnce(bool wait_for_policies);
  void Carry(const Input& input);
  void BeginPush(int kind, int grabbed, const HeldPoint& point);
  void EndPush();
  LoadedPolicy ReadPolicy(std::uint32_t index) const;
  void AskReloaded(int robot);
  void BeginLoading();
  void EndLoading();
  void GivePolicy(Robot* robot, std::uint32_t index, LoadedPolicy loaded, bool keep_state);
  std::optional<std::string> ModeOf(std::uint32_t budget) const;
  void GiveBudget(Robot* robot, std::uint32_t budget, const std::optional<std::string>& asked);
  void Judge(Robot* robot);
  void TellBudget(Robot* robot, const Input& input);
  PolicyCommand CommandOf(const Robot& robot) const;
  void StepRobot(int index, bool leads);
  Eigen::Vector3d MouseForce(const Robot& robot) const;
  RobotView Show(int index);
  void Record();
  void Notice(std::string text);

  SimulationOptions options_;
  std::unique_ptr<const RobotModel> robot_model_;
  std::vector<std::string> policy_files_, budget_modes_;
  std::vector<PushButton> push_buttons_;
  std::string scene_json_;
  double period_ = 0.02;
  std::uint32_t scene_number_ = 0, next_setup_ = 1;
  std::vector<std::unique_ptr<Robot>> robots_;
  std::unique_ptr<LiveObserver> observer_;

  // what the page asked for
  PolicyCommand command_;
  bool paused_ = false, same_push_ = true;
  GravityChoice gravity_ = GravityChoice::kAsBudgetSays;
  double speed_ = 1, spring_ = kMouseSpring;
  struct {
    int kind = 0;     // 0 none, 1 the mouse, 2 a button
    int grabbed = 0;  // robot
    HeldPoint point;
    Eigen::Vector3d target_W = Eigen::Vector3d::Zero();  // [m] the mouse
    Eigen::Vector3d f_W = Eigen::Vector3d::Zero();       // [N] a button's
    double force_until = 0, shown_until = 0;             // [s] a button's, of time_
  } push_;
  std::vector<Eigen::Vector3d>
      led_forces_;  // [N] of the grabbed robot, per physics step of this period

  // policies that were asked for: the newest of each robot, one of them being read
  std::vector<std::optional<std::uint32_t>> asked_policies_;  // per robot: index
  int loading_robot_ = 0;
  std::uint32_t loading_index_ = 0;

  double time_ = 0;  // [s] simulated, pauses left out
  std::uint32_t sequence_ = 0;
  std::atomic<double> achieved_ = 1;
  // the clock and time_ in the last second of Run(), oldest first; at one speed
  std::deque<std::pair<std::chrono::steady_clock::time_point, double>> passed_;
  std::vector<std::string> notices_;

  mutable std::mutex mutex_;  // guards the three below
  std::vector<Input> inputs_;
  std::vector<int> reloads_;
  std::vector<std::deque<Moment>> recorded_;  // per robot

  std::future<LoadedPolicy> loading_;  // last: its thread uses what is constant above
};

}  // namespace silc
