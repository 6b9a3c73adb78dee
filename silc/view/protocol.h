// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace silc {

// What goes over the viewer's WebSocket, byte by byte: docs/view.md has the tables,
// page/protocol.js is the twin in the browser. Numbers are little-endian; a real number is a
// float32 unless said otherwise. A frame of another version is refused, not guessed at.

inline constexpr std::uint32_t kFrameMagic = 0x564C4953;  // "SILV"
inline constexpr std::uint16_t kProtocolVersion = 2;

/// Centre of mass, left hand, right hand, the point that is held by the mouse.
inline constexpr int kViewPoints = 4;
inline constexpr int kHeldPoint = 3;

/// One point of the robot and what a lasting force would do to it.
struct PointView {
  Eigen::Vector3d p_W = Eigen::Vector3d::Zero();  // [m]
  Eigen::Matrix3d C_felt;    // [m/N] (S11) of K_s with weight; NaN where there is none
  Eigen::Matrix3d C_budget;  // [m/N] of the budget (S6) alone; NaN where there is none
  /// [1] worst direction of what is judged at this point against the budget; it holds up to 1.
  double worst = 0;

  PointView();
};

/// What the observer last said about a robot.
struct ReadingView {
  double age = 0;           // [s] simulated since the state was taken
  double sigma = 0;         // [1] of the budget's condition
  double worst = 0;         // [1] worst direction
  double loop_radius = 0;   // [1] of the action loop
  std::uint8_t status = 0;  // StiffnessStatus of what is judged
  double observe_time = 0;  // [s] that the observation took

  ReadingView();
};

/// The budget that a commanded policy is told (docs/command.md): the numbers and their ranges, in
/// the order com [N/m], hands [N/m], null space; NaN for what it is not told.
struct ToldView {
  std::array<double, 3> value, low, high;

  ToldView();
};

/// One robot at one control step.
struct RobotView {
  std::uint8_t status = 0;                        // LoopStatus
  std::uint8_t mode = 0;                          // ContactMode
  std::uint8_t push = 0;                          // 0 none, 1 the mouse, 2 a push button
  std::uint8_t falls = 0;                         // since the start, modulo 256
  std::uint16_t policy = 0;                       // index in the scene's list
  std::uint16_t budget = 0;                       // index in the scene's list; 0 the policy's own
  Eigen::Vector3d f_W = Eigen::Vector3d::Zero();  // [N] the push
  Eigen::Vector3d p_W = Eigen::Vector3d::Zero();  // [m] where it acts
  Eigen::Vector3d moved_W = Eigen::Vector3d::Zero();      // [m] since the push began
  Eigen::Vector3d predicted_W = Eigen::Vector3d::Zero();  // [m] C_felt f_W; NaN where unknown
  std::array<Eigen::Vector3d, 2> foot_p_W, foot_f_W;      // [m], [N] left, right; of the contacts
  ReadingView reading;
  std::array<PointView, kViewPoints> points;
  ToldView told;
  std::vector<float> bodies;  // (num_bodies, 7): p_W [m], quat_wxyz
};

/// What a page asks for of sensed gravity, for all robots.
enum class GravityChoice : std::uint8_t { kAsBudgetSays = 0, kHeld = 1, kFollowed = 2 };
inline constexpr std::uint32_t kNumGravityChoices = 3;

/// Everything a page shows of one control step.
struct StateFrame {
  std::uint32_t sequence = 0;
  bool paused = false;
  bool same_push = true;  // all robots feel the push, or one
  GravityChoice gravity = GravityChoice::kAsBudgetSays;
  double time = 0;          // [s] of the simulation
  double sent = 0;          // [s] the server's steady clock; an acknowledgement is held to it
  double speed = 1;         // [1] wanted: 1 is real time
  double achieved = 1;      // [1] simulated per elapsed time, over the last second
  std::uint32_t scene = 0;  // number of the scene description this frame belongs to
  std::array<double, 5> command{};  // vx, vy [m/s], yaw rate [rad/s], height [m], walk [1]
  std::vector<RobotView> robots;
};

inline constexpr std::size_t kFrameHeaderBytes = 72;
inline constexpr std::size_t kRobotHeaderBytes = 516;

std::string EncodeState(const StateFrame& frame);
/// Nothing when the bytes are no frame of this version, or not all of one.
std::optional<StateFrame> DecodeState(std::string_view bytes);

enum class InputType : std::uint8_t {
  kAck = 1,        // u32 sequence of a frame that has come
  kHand = 2,       // u32 1 take the robot in hand, 0 let go
  kGrab = 3,       // u32 robot, u32 body, 3 × f32 p_BP [m]
  kPull = 4,       // 3 × f32 p_W of the spring's other end [m]
  kRelease = 5,    //
  kCommand = 6,    // f32 vx, vy [m/s], yaw rate [rad/s], height [m], walk [1]
  kPause = 7,      // u32 0 or 1
  kSpeed = 8,      // f32 [1] of real time
  kReset = 9,      //
  kPush = 10,      // u32 index of PushButtons()
  kPolicy = 11,    // u32 robot, u32 index
  kBudget = 12,    // u32 robot, u32 index
  kGravity = 13,   // u32 GravityChoice
  kSamePush = 14,  // u32 0 or 1
  kSpring = 15,    // f32 [N/m] of the mouse's spring
  kTold = 16,      // u32 robot, f32 com, hands [N/m], null space: the budget it is told
  kShown = 17,     // u32 sequence, f32 [s] since its picture was presented
};

/// One word from a page, checked. Which fields mean something depends on the type.
struct Input {
  InputType type = InputType::kAck;
  std::uint32_t robot = 0;
  std::uint32_t index = 0;  // sequence, body, push, policy, budget, choice, switch; kTold: robot
  std::array<double, 5> value{};
};

/// A push of the paper's experiments.
struct PushButton {
  const char* name;
  bool at_hand;         // left hand; else the pelvis
  Eigen::Vector3d f_W;  // [N]
  double duration;      // [s]
};
/// Those that a robot can be given: without hands none at the hand.
std::vector<PushButton> PushButtons(bool has_hands);

/// What indices may be: the sizes of the lists that they point into.
struct InputLimits {
  std::uint32_t robots = 0, bodies = 0, policies = 0, budgets = 0, pushes = 0;
};

inline constexpr std::size_t kMaxInputBytes = 64;

/// One message of a page. Nothing, and a sentence in `error`, where the size, the version, the
/// type, an index or a number is outside what docs/view.md allows.
std::optional<Input> DecodeInput(std::string_view bytes,
                                 const InputLimits& limits,
                                 std::string* error);
/// The twin, for tests and the benchmark.
std::string EncodeInput(const Input& input);

}  // namespace silc
