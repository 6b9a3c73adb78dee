// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "silc/deploy/link.h"
#include "silc/deploy/messages.h"
#include "silc/deploy/remote.h"
#include "silc/robot/robot_model.h"

namespace silc {

/// What happens to a simulated robot, and when.
///
///     TIME press BUTTON      B, start, A, X, select, L2+B: held for 0.1 s
///     TIME stick NAME VALUE  lx, ly, rx, ry in [−1, 1], until the next
///     TIME release           the gantry lets the robot down and goes, within a second
///     TIME push FX FY FZ T   force on the base in W [N], for T seconds
///     TIME motors T D        torques anew every T seconds, from encoders as they were D seconds
///                            before; both to the millisecond. At the start: 0.001 0
///     TIME fault NAME        from then on, see kInjectedFaults
///     TIME mend              faults are over
///     TIME end               the simulation ends
///
/// Times in seconds of the simulation, lines or parts separated by ';' or newlines.
struct ScriptEvent {
  double time = 0;  // [s]
  std::string what;
  std::string name;
  std::vector<double> numbers;
};
/// In the order of their times. Throws ConfigError that names what it does not understand.
std::vector<ScriptEvent> ParseScript(const std::string& text);
/// One event without its time.
ScriptEvent ParseEvent(const std::string& text);

/// Names after `fault`: what a simulated robot can suffer.
const std::vector<std::string>& InjectedFaults();

/// A G1 in MuJoCo as the network sees it: PD at the motors every millisecond, unless its script
/// says otherwise, state frames with CRC, commands refused when CRC, machine mode or mode_pr are
/// not right. It hangs in a gantry until that is released. Deterministic.
class SimulatedRobot {
 public:
  /// How its model is loaded: steps of a millisecond.
  static LoadOptions NeededLoad();
  explicit SimulatedRobot(const RobotModel& robot);  ///< @pre loaded so, 29 joints

  /// False, and not followed: wrong CRC, machine mode or mode_pr.
  bool Follow(const LowCommand& command);
  void Happen(const ScriptEvent& event);
  /// One millisecond. Nothing, once the simulation has diverged.
  void Step();
  /// The state as it is sent; false: nothing is sent (a fault, or a simulation that diverged).
  bool Frame(LowState* frame);

  double time() const { return data_->time; }  ///< [s]
  double base_height() const { return data_->qpos[2]; }
  Eigen::Vector3d base_position() const { return {data_->qpos[0], data_->qpos[1], data_->qpos[2]}; }
  double tilt() const;              ///< [rad]
  double fastest_joint() const;     ///< [rad/s]
  double strongest_torque() const;  ///< [1] of the effort limit, as applied
  int refused_commands() const { return refused_; }
  bool ended() const { return ended_; }
  /// "at 1.204 s: the acceleration of left_knee_joint is …" when MuJoCo gave up; "": it has not.
  const std::string& divergence() const { return divergence_; }
  bool held() const { return gantry_ > 0; }
  /// Whether the last command followed damps: no spring at any motor.
  bool damped() const;

  static constexpr int kMachineMode = 5;

 private:
  void ApplyGantry();
  void ApplyGrip();
  void ReadEncoders();
  void ApplyMotors();
  void LookForDivergence(double time);
  double JointPosition(int joint) const;     // [rad]
  double MeasuredPosition(int joint) const;  // [rad] by the motor's encoder

  const RobotModel& robot_;
  MjDataPtr data_;
  LowCommand command_{};
  double standing_height_ = 0;             // [m]
  double gantry_ = 1, gantry_height_ = 0;  // [1] of its strength; [m]
  bool releasing_ = false, ended_ = false;
  double driven_for_ = 0;  // [s] the legs have been held by springs
  RemoteReading remote_{.valid = true};
  double pressed_until_ = 0, pushed_until_ = 0;     // [s]
  Eigen::Vector3d push_ = Eigen::Vector3d::Zero();  // [N]
  std::string fault_, divergence_;
  std::uint32_t frozen_tick_ = 0;
  double arm_grip_ = 0, gripped_ = 0;  // [rad] where the arm was taken, how far it was led
  LowState last_{};
  Eigen::VectorXd tau_;

  // the motors: encoders of the last steps, by step
  struct Encoders {
    std::array<double, kRobotMotors> q{}, qd{};  // [rad], [rad/s]
  };
  static constexpr int kMostMotorDelay = 20;  // [step]
  std::array<Encoders, kMostMotorDelay + 1> encoders_{};
  std::int64_t step_ = 0, first_of_motors_ = 0;  // now; when the present period began
  int motor_period_ = 1, motor_delay_ = 0;       // [step]
  int refused_ = 0;
};

struct SimulatedRobotOptions {
  std::vector<ScriptEvent> script;
  double seconds = 0;     ///< [s] of the simulation; 0: until stopped
  bool lockstep = false;  ///< waits for a command after every state, 2 ms; else in real time
  std::function<void(const SimulatedRobot&)> each_second, each_step;
  std::function<bool(ScriptEvent*)> typed;  ///< gives events that happen now, until it is false
};

/// Runs a simulated robot on a port until its time or script is over, it diverges, or `stop`.
void RunSimulation(SimulatedRobot* robot,
                   RobotPort* port,
                   const SimulatedRobotOptions& options,
                   const std::atomic<bool>& stop);

}  // namespace silc
