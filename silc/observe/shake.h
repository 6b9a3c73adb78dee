// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "silc/observe/closed_loop.h"
#include "silc/observe/run.h"
#include "silc/stiffness/task_stiffness.h"

namespace silc {

struct ShakeOptions {
  Push::Point point = Push::Point::kLeftHand;
  std::vector<double> forces = {2, 10, 20, 40};  // [N] the smallest is for the linear model
  double settle = 4;                             // [s] standing before the first push
  double ramp = 1.5;                             // [s] from zero to full force
  double hold = 3;                               // [s] at full force
  double window = 1;  // [s] at the end of the hold over which displacements are averaged
};

/// Displacement of the point per axis of push, at one force level. Each push starts from the same
/// settled state and is compared with a twin that was not pushed, over the same window: drift and
/// sway cancel.
struct ShakeLevel {
  double force = 0;  // [N]
  /// Column k: displacement in W [m] for +force and −force along axis k. NaN when the robot fell.
  Eigen::Matrix3d plus, minus;
  std::array<std::array<LoopStatus, 2>, 3> end;  // [axis][+, −]
  std::array<bool, 3> stepped{};                 // [axis] a contact changed under one of the two
  Eigen::Vector3d sway =
      Eigen::Vector3d::Zero();  // [m] along the axis of push: the larger movement of both windows

  /// δx per N from the difference of both signs, which drops the even part of the response. [m/N]
  Eigen::Matrix3d Compliance() const { return (plus - minus) / (2 * force); }
  Eigen::Vector3d OneAxis() const;  ///< 1/C_ii [N/m]
};

/// The models of the comparison, from naive to complete.
enum class ShakeModel : std::uint8_t {
  kServo,             ///< the servo without a policy
  kOneStep,           ///< K₁ (S2)
  kStatic,            ///< K_s (S3)
  kStaticWithWeight,  ///< K_s and the stiffness of the robot's own weight: what a push measures
};

/// "PD alone", "one-step K₁", "static K_s", "K_s with weight".
const char* Name(ShakeModel model);

/// What the mathematics says of the same moment. One column of the comparison.
struct ShakePrediction {
  std::string name;  // of its ShakeModel
  StiffnessStatus status = StiffnessStatus::kNotFinite;
  Eigen::Vector3d one_axis;  // [N/m] 1/C_ii
  Eigen::Matrix3d C_x;       // [m/N]
};

struct ShakeResult {
  std::string point;  // "left hand in the world", "left hand on the base"
  LoopStatus settled = LoopStatus::kRunning;
  ContactMode mode = ContactMode::kDoubleSupport;
  ActionLoopRadius loop;  // of the policy at the settled moment
  double sway = 0;        // [m] largest movement of the point in the unpushed twin's window
  Eigen::Vector3d sway_W = Eigen::Vector3d::Zero();  // [m] the same, along each axis
  int mode_changes = 0;      // of contacts while the unpushed twin was watched: it steps
  double watched = 0;        // [s] that long
  double friction_loss = 0;  // [N·m] the largest of the model's joints
  std::vector<ShakeLevel> levels;
  /// One for each ShakeModel in its order; none where the robot did not settle.
  std::vector<ShakePrediction> predictions;
};

/// Measures static stiffness at a point by pushing, and predicts it from the policy's Jacobians at
/// the same moment. The loop's command should be to stand.
ShakeResult Shake(const ClosedLoop& start,
                  const ShakeOptions& options,
                  const Progress& progress = {});

/// What the mathematics says of the state that the loop is in, along the axes of W: PD alone, K₁,
/// K_s, K_s with weight. Empty where the policy's answer is not finite. The policy is asked on a
/// copy, so that the loop stays as it was.
/// @param[out] radius  of the action loop; may be null, and costs milliseconds where it is not
std::vector<ShakePrediction> PredictStiffness(ClosedLoop loop,
                                              Push::Point point,
                                              ContactMode mode,
                                              ActionLoopRadius* radius = nullptr);
/// Null where `predictions` have none of that model.
const ShakePrediction* PredictionOf(const std::vector<ShakePrediction>& predictions,
                                    ShakeModel model);

/// [N/m] 1/C_ii of one level along one axis, or NaN where the robot has no static stiffness: it
/// fell or stepped, or it sways along that axis, pushed or not, by more than the push displaces it.
double RestingStiffness(const ShakeResult& result, std::size_t level, int axis);

/// [N/m] 1/C_ii that `model` predicts along one axis, or NaN where it predicts nothing.
double PredictedStiffness(const ShakeResult& result, ShakeModel model, int axis);

}  // namespace silc
