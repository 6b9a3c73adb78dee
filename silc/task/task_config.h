// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "silc/robot/default_robot.h"
#include "silc/task/reward_terms.h"

namespace silc {

class YamlNode;

struct RewardWeights {
  float weight[kNumRewards];  // [1/s] reward_terms.h
  constexpr RewardWeights() : weight{} {
    for (int i = 0; i < kNumRewards; ++i) weight[i] = kRewardTerms[i].weight;
  }
};

/// What an episode is: every number of the task. Plain data without pointers, so that it is copied
/// to a GPU as it is. Defaults are `g1-loco`; docs/task.md says where each comes from.
///
/// Three numbers are the observation layout's unless they are set here: history, gait period and
/// action clip, 0 by default. MatchLayout() (task_layout.h) fills them in.
struct TaskConfig {
  struct Episode {
    float length = 20;          // [s] time-out
    float min_height = 0.3f;    // [m] pelvis below: failure
    float max_tilt = 0.8f;      // [1] |x| or |y| of gravity in the pelvis frame above: failure
    float max_speed = 100;      // [rad/s, m/s] a robot this fast has diverged
    float start_height = 0.8f;  // [m] of the pelvis at reset
    float start_speed = 0.5f;   // [m/s, rad/s] each component of the base's velocity, ±
    float start_legs = 0.5f;    // [1] leg joints start at default · U(1 ∓ this)
  } episode;

  struct Commands {
    float walk_prob = 0.6f;         // [1] walk, else stand
    float vx_min = -1, vx_max = 1;  // [m/s]
    float vy_min = -1, vy_max = 1;  // [m/s]
    float min_speed = 0.2f;         // [m/s] slower commands become stepping in place
    float heading_max = 3.14f;      // [rad] commanded heading, ±
    float heading_gain = 0.5f;      // [1/s] yaw rate per heading error
    float max_yaw_rate = 1;         // [rad/s]
    float waist_yaw_max = 1;        // [rad] when standing, ±
    float waist_yaw_prob = 0.9f;    // [1] else 0
    float height = 0.75f;           // [m] of the pelvis
    float height_drop = 0.25f;      // [m] lowest command is height − this, when standing
    float resample = 10;            // [s]
  } commands;

  struct Gait {
    float period = 0;            // [s] of two steps; 0: the layout's clock
    float stance = 0.55f;        // [1] share of the period a foot is expected down
    float swing_height = 0.12f;  // [m] of the foot body's origin in mid-swing
  } gait;

  struct Arms {
    float duration_min = 0.5f, duration_max = 3;  // [s] of a reach
    float rest_prob = 0.3f;                       // [1] chance of a rest after a reach
    float rest_min = 0.2f, rest_max = 2;          // [s]
    float max_speed = 5;                          // [rad/s] longer reaches take longer
    float fixed_prob = 0.3f;                      // [1] arms held still until the next command
    float blend = 1;                              // [s] from one motion clip to the next
  } arms;

  struct Observation {
    int history = 0;  // [frames] the actors see, the newest included; 0: the layout's
  } observation;

  struct Action {
    float clip = 0;     // [1] raw network output, ±; 0: the layout's
    int delay_max = 4;  // [substeps] of the joint target, drawn per episode from {0 … this}
  } action;

  struct Noise {
    float joint_pos = 0.01f;  // [rad] uniform, ±
    float joint_vel = 0.1f;   // [rad/s]
    float torque = 0.1f;      // [N·m]
    float base_ang_vel = 0;   // [rad/s]
    float gravity = 0;        // [1]
    // errors that stay for an episode, uniform ±: calibration, mounting, drift
    float joint_pos_bias = 0;     // [rad]
    float torque_bias = 0;        // [N·m]
    float base_ang_vel_bias = 0;  // [rad/s]
    float gravity_bias = 0;       // [1]
  } noise;

  struct Randomisation {
    float friction_min = 0.5f, friction_max = 1.1f;   // [1] of the soles
    float mass_min = 0.9f, mass_max = 1.2f;           // [1] pelvis and leg links, each its own
    float pelvis_mass_min = -1, pelvis_mass_max = 3;  // [kg] added
    float gain_min = 0.9f, gain_max = 1.1f;        // [1] kp and kd, each joint its own, per episode
    float strength_min = 1, strength_max = 1;      // [1] torque of each motor: kp and kd together
    float torso_mass_min = 0, torso_mass_max = 0;  // [kg] added
    float hand_mass_min = 0, hand_mass_max = 0;    // [kg] added, each hand its own
    float torso_com = 0;  // [m] shift of the torso's centre of mass, ± along each axis
  } randomisation;

  struct HandForce {
    float max_x = 40, max_y = 40;        // [N] ±
    float max_up = 5, max_down = 50;     // [N]
    float effort_share = 0.9f;           // [1] of the arm motors' limits the force may ask for
    float axis_off_prob = 0.25f;         // [1] each axis of each hand, per episode
    float noise = 0.5f;                  // [N] uniform, ±, each step
    float sweep_min = 3, sweep_max = 5;  // [s] half a period of the force when standing
  } hand_force;

  struct Push {
    float force = 0;        // [N] largest horizontal force on pelvis or torso; 0: none
    float min_share = 0;    // [1] of it that every push has at least
    float duration = 0.1f;  // [s]
    float interval_min = 3, interval_max = 8;  // [s] between pushes
    float torso_share = 0;     // [1] of the pushes that act on the torso instead of the pelvis
    float kick_velocity = 0;   // [m/s] largest horizontal jump of the base's velocity; 0: none
    float kick_turn = 0;       // [rad/s] largest jump of its angular velocity, ± about each axis
    float kick_interval = 10;  // [s] mean time between kicks, which come at random
    float recovery = 0;        // [s] after a push or kick in which a standing robot may step
  } push;

  struct BudgetCommand {
    // how the budget of a commanded policy changes; its ranges are the budget's own
    float change = 5;                     // [s] between changes; 0: one command per episode
    float ramp_prob = 0.5f;               // [1] of changes that are ramps, not jumps
    float ramp_min = 0.2f, ramp_max = 2;  // [s] that a ramp takes
  } budget_command;

  struct Curriculum {
    // episodes are judged by the share of their length survived; a time-out is 1
    float penalty_start = 0.1f;      // [1] scale of the curriculum's penalties
    float penalty_min = 0.02f;       // [1] and what it does not fall below
    float penalty_rate = 1e-4f;      // [1] relative change per control step
    float penalty_up = 0.84f;        // [1] grows while the mean share survived is above
    float penalty_down = 0.16f;      // [1] shrinks while it is below
    float penalty_window = 2;        // [episodes per robot] the running mean remembers
    float force_start = 0.1f;        // [1] scale of hand forces, pushes and kicks, per robot
    float force_step = 0.02f;        // [1] up or down at each episode's end
    float height_start = 0.1f;       // [1] scale of the commanded height's drop, per robot
    float height_step_up = 0.02f;    // [1]
    float height_step_down = 0.01f;  // [1]
    float survive_up = 0.84f;        // [1] per robot: harder after an episode above
    float survive_down = 0.8f;       // [1] easier after one below
  } curriculum;

  struct Limits {
    float soft_range = 0.95f;  // [1] of the joint range about its centre
    float feet_apart = 0.17f;  // [m] feet nearer to each other than this are punished
  } limits;

  RewardWeights rewards;

  /// Throws ConfigError("PLACE: key: value: rule").
  void Validate(const std::string& place) const;
};

/// One number of the config, with what is known about it.
struct TaskField {
  std::string path;                  // "commands.vx_max"
  std::variant<float*, int*> value;  // into the config asked about
  double low, high;                  // allowed, both ends included
  const char* unit;
};

/// All of them, in the order of the struct. Valid as long as the config.
std::vector<TaskField> TaskFields(TaskConfig* config);

/// The observation layout of tasks that do not name one.
inline constexpr char kDefaultTaskLayout[] = "g1_loco";

/// The task that is meant where none is named.
inline constexpr char kDefaultTask[] = "g1-loco";

/// What a task file says.
struct TaskFile {
  TaskConfig config;
  std::string robot = kDefaultRobot;        // name in robots/, or the path of a robot.yaml
  std::string layout = kDefaultTaskLayout;  // name in layouts/, or the path of a YAML file
  std::string gains;  // set of the robot.yaml, or the path of a gain file; "": the robot's default
};

/// Reads a task file; keys left out keep their defaults. Throws ConfigError: unknown keys (with the
/// nearest known), values out of range, ranges upside down.
TaskFile ReadTaskFile(const std::string& path);
TaskFile ParseTaskFile(std::string_view text, const std::string& path);
/// The keys of a map over what `task` holds, by the same rules.
void OverlayTaskFile(const YamlNode& node, TaskFile* task);

/// Sets one number by its dotted path, as "commands.vx_max=0.5" on a command line does. Throws
/// ConfigError for an unknown path (with the nearest known), no number, or one out of range.
void SetTaskField(TaskConfig* config, const std::string& path, const std::string& value);

/// The config as in a task file, every key with its unit; what a run folder keeps. Reading it back
/// gives the same numbers, bit by bit.
std::string TaskConfigYaml(const TaskConfig& config);

/// How far each sensor may be off in training, noise and bias together, as a policy file carries it
/// and `silc certify --box` takes it: "joint_pos=0.02,joint_vel=0.2". Sensors that are exact are
/// left out; "none" where all are.
std::string SensorErrors(const TaskConfig::Noise& noise);

/// configs/tasks/NAME.yaml for "g1-loco" or "g1-stand", or the path itself when it names a file.
/// Throws ConfigError naming the tasks there are.
std::string FindTaskFile(const std::string& name_or_path);

}  // namespace silc
