// SPDX-License-Identifier: Apache-2.0
#include "silc/view/protocol.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "silc/base/check.h"
#include "silc/base/nan.h"

namespace silc {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

// Puts numbers behind one another.
class ByteWriter {
 public:
  template <typename T>
  void Put(T value) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    bytes_.append(bytes, sizeof(T));
  }
  void PutReal(double value) { Put(static_cast<float>(value)); }
  template <typename Matrix>
  void PutAll(const Matrix& m) {  // row by row
    for (Eigen::Index i = 0; i < m.rows(); ++i) {
      for (Eigen::Index j = 0; j < m.cols(); ++j) PutReal(m(i, j));
    }
  }
  std::string Take() { return std::move(bytes_); }
  std::size_t size() const { return bytes_.size(); }
  void Append(const void* data, std::size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }

 private:
  std::string bytes_;
};

// Takes them out again. @pre the caller has counted the bytes
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
  template <typename T>
  T Take() {
    SILC_CHECK(at_ + sizeof(T) <= bytes_.size());
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  double TakeReal() { return Take<float>(); }
  template <typename Matrix>
  void TakeAll(Matrix* m) {
    for (Eigen::Index i = 0; i < m->rows(); ++i) {
      for (Eigen::Index j = 0; j < m->cols(); ++j) (*m)(i, j) = TakeReal();
    }
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

void PutRobot(const RobotView& robot, ByteWriter* out) {
  out->Put(robot.status);
  out->Put(robot.mode);
  out->Put(robot.push);
  out->Put(robot.falls);
  out->Put(robot.policy);
  out->Put(robot.budget);
  for (const auto* v : {&robot.f_W, &robot.p_W, &robot.moved_W, &robot.predicted_W}) {
    out->PutAll(*v);
  }
  for (int foot = 0; foot < 2; ++foot) {
    out->PutAll(robot.foot_p_W[foot]);
    out->PutAll(robot.foot_f_W[foot]);
  }
  const ReadingView& r = robot.reading;
  out->PutReal(r.age);
  out->PutReal(r.sigma);
  out->PutReal(r.worst);
  out->PutReal(r.loop_radius);
  out->PutReal(r.observe_time);
  out->Put(static_cast<std::uint32_t>(r.status));
  for (const PointView& point : robot.points) {
    out->PutAll(point.p_W);
    out->PutAll(point.C_felt);
    out->PutAll(point.C_budget);
    out->PutReal(point.worst);
  }
  for (const auto* three : {&robot.told.value, &robot.told.low, &robot.told.high}) {
    for (const double value : *three) out->PutReal(value);
  }
}

RobotView TakeRobot(ByteReader* in) {
  RobotView robot;
  robot.status = in->Take<std::uint8_t>();
  robot.mode = in->Take<std::uint8_t>();
  robot.push = in->Take<std::uint8_t>();
  robot.falls = in->Take<std::uint8_t>();
  robot.policy = in->Take<std::uint16_t>();
  robot.budget = in->Take<std::uint16_t>();
  for (auto* v : {&robot.f_W, &robot.p_W, &robot.moved_W, &robot.predicted_W}) in->TakeAll(v);
  for (int foot = 0; foot < 2; ++foot) {
    in->TakeAll(&robot.foot_p_W[foot]);
    in->TakeAll(&robot.foot_f_W[foot]);
  }
  ReadingView& r = robot.reading;
  r.age = in->TakeReal();
  r.sigma = in->TakeReal();
  r.worst = in->TakeReal();
  r.loop_radius = in->TakeReal();
  r.observe_time = in->TakeReal();
  r.status = static_cast<std::uint8_t>(in->Take<std::uint32_t>());
  for (PointView& point : robot.points) {
    in->TakeAll(&point.p_W);
    in->TakeAll(&point.C_felt);
    in->TakeAll(&point.C_budget);
    point.worst = in->TakeReal();
  }
  for (auto* three : {&robot.told.value, &robot.told.low, &robot.told.high}) {
    for (double& value : *three) value = in->TakeReal();
  }
  return robot;
}

constexpr std::size_t kPoseFloats = 7;

// What a field of an input may be.
struct RealRange {
  double low, high;
};

// The payload of each type: how many u32, then how many f32, and what the reals may be.
struct InputShape {
  int words = 0, reals = 0;
  RealRange range[5] = {};
};

const InputShape* ShapeOf(std::uint8_t type) {
  constexpr RealRange kMetres{-1000, 1000};
  constexpr RealRange kStiffness{1e-3, 1e6};  // a policy's own ranges are narrower
  static const InputShape kShapes[] = {
      {},                                                     // 0: none
      {1, 0},                                                 // kAck
      {1, 0},                                                 // kHand
      {2, 3, {{-5, 5}, {-5, 5}, {-5, 5}}},                    // kGrab
      {0, 3, {kMetres, kMetres, kMetres}},                    // kPull
      {0, 0},                                                 // kRelease
      {0, 5, {{-3, 3}, {-3, 3}, {-3, 3}, {0.2, 2}, {0, 1}}},  // kCommand
      {1, 0},                                                 // kPause
      {0, 1, {{0.05, 1}}},                                    // kSpeed
      {0, 0},                                                 // kReset
      {1, 0},                                                 // kPush
      {2, 0},                                                 // kPolicy
      {2, 0},                                                 // kBudget
      {1, 0},                                                 // kGravity
      {1, 0},                                                 // kSamePush
      {0, 1, {{1, 5000}}},                                    // kSpring
      {1, 3, {kStiffness, kStiffness, kStiffness}},           // kTold
      {1, 1, {{0, 60}}},                                      // kShown
  };
  if (type == 0 || type >= std::size(kShapes)) return nullptr;
  return &kShapes[type];
}

// Empty, or what is wrong with the indices.
std::string CheckIndices(const Input& input, const InputLimits& limits) {
  const auto below = [](const char* what, std::uint32_t value, std::uint32_t count) {
    return value < count ? std::string() : fmt::format("{} {} of {}", what, value, count);
  };
  switch (input.type) {
    case InputType::kGrab: {
      std::string fault = below("robot", input.robot, limits.robots);
      // body 0 is the world, which nobody pulls
      if (fault.empty()) fault = below("body", input.index - 1, limits.bodies - 1);
      return fault;
    }
    case InputType::kPolicy: {
      std::string fault = below("robot", input.robot, limits.robots);
      return fault.empty() ? below("policy", input.index, limits.policies) : fault;
    }
    case InputType::kBudget: {
      std::string fault = below("robot", input.robot, limits.robots);
      return fault.empty() ? below("budget", input.index, limits.budgets) : fault;
    }
    case InputType::kPush:
      return below("push", input.index, limits.pushes);
    case InputType::kTold:
      return below("robot", input.index, limits.robots);
    case InputType::kGravity:
      return below("choice", input.index, kNumGravityChoices);
    case InputType::kHand:
    case InputType::kPause:
    case InputType::kSamePush:
      return below("switch", input.index, 2);
    default:
      return "";
  }
}

constexpr std::size_t kInputHeaderBytes = 4;

}  // namespace

PointView::PointView() : worst(kNan) {
  C_felt.setConstant(kNan);
  C_budget.setConstant(kNan);
}

ToldView::ToldView() {
  value.fill(kNan);
  low.fill(kNan);
  high.fill(kNan);
}

ReadingView::ReadingView() : sigma(kNan), worst(kNan), loop_radius(kNan) {}

std::string EncodeState(const StateFrame& frame) {
  ByteWriter out;
  const std::size_t bodies =
      frame.robots.empty() ? 0 : frame.robots.front().bodies.size() / kPoseFloats;
  out.Put(kFrameMagic);
  out.Put(kProtocolVersion);
  out.Put(static_cast<std::uint16_t>(frame.robots.size()));
  out.Put(frame.sequence);
  out.Put(static_cast<std::uint32_t>(bodies));
  out.Put(frame.time);
  out.Put(frame.sent);
  out.PutReal(frame.speed);
  out.PutReal(frame.achieved);
  out.Put(frame.scene);
  out.Put(static_cast<std::uint8_t>(frame.paused));
  out.Put(static_cast<std::uint8_t>(frame.same_push));
  out.Put(static_cast<std::uint8_t>(frame.gravity));
  out.Put(std::uint8_t{0});
  for (const double value : frame.command) out.PutReal(value);
  while (out.size() < kFrameHeaderBytes) out.Put(std::uint8_t{0});
  for (const RobotView& robot : frame.robots) {
    SILC_CHECK(robot.bodies.size() == bodies * kPoseFloats);
    const std::size_t begin = out.size();
    PutRobot(robot, &out);
    SILC_CHECK(out.size() - begin == kRobotHeaderBytes);
    out.Append(robot.bodies.data(), robot.bodies.size() * sizeof(float));
  }
  return out.Take();
}

std::optional<StateFrame> DecodeState(std::string_view bytes) {
  if (bytes.size() < kFrameHeaderBytes) return std::nullopt;
  ByteReader in(bytes);
  if (in.Take<std::uint32_t>() != kFrameMagic) return std::nullopt;
  if (in.Take<std::uint16_t>() != kProtocolVersion) return std::nullopt;
  const std::size_t robots = in.Take<std::uint16_t>();
  StateFrame frame;
  frame.sequence = in.Take<std::uint32_t>();
  const std::size_t bodies = in.Take<std::uint32_t>();
  const std::size_t robot_bytes = kRobotHeaderBytes + bodies * kPoseFloats * sizeof(float);
  if (bytes.size() != kFrameHeaderBytes + robots * robot_bytes) return std::nullopt;
  frame.time = in.Take<double>();
  frame.sent = in.Take<double>();
  frame.speed = in.TakeReal();
  frame.achieved = in.TakeReal();
  frame.scene = in.Take<std::uint32_t>();
  frame.paused = in.Take<std::uint8_t>() != 0;
  frame.same_push = in.Take<std::uint8_t>() != 0;
  frame.gravity = static_cast<GravityChoice>(in.Take<std::uint8_t>());
  in.Take<std::uint8_t>();
  for (double& value : frame.command) value = in.TakeReal();
  ByteReader body(bytes.substr(kFrameHeaderBytes));
  for (std::size_t i = 0; i < robots; ++i) {
    RobotView robot = TakeRobot(&body);
    robot.bodies.resize(bodies * kPoseFloats);
    for (float& value : robot.bodies) value = body.Take<float>();
    frame.robots.push_back(std::move(robot));
  }
  return frame;
}

std::vector<PushButton> PushButtons(bool has_hands) {
  // silc eval com-impulse, hand-load and push have the same numbers
  std::vector<PushButton> buttons = {
      {"150 N for 0.05 s on the pelvis", false, {-150, 0, 0}, 0.05},
      {"40 N down on the left hand for 2 s", true, {0, 0, -40}, 2},
      {"600 N for 0.08 s on the pelvis", false, {-600, 0, 0}, 0.08},
  };
  if (!has_hands) std::erase_if(buttons, [](const PushButton& button) { return button.at_hand; });
  return buttons;
}

std::optional<Input> DecodeInput(std::string_view bytes,
                                 const InputLimits& limits,
                                 std::string* error) {
  const auto refuse = [&](std::string why) -> std::optional<Input> {
    *error = std::move(why);
    return std::nullopt;
  };
  if (bytes.size() < kInputHeaderBytes || bytes.size() > kMaxInputBytes) {
    return refuse(fmt::format("a message of {} bytes; {} to {} are taken",
                              bytes.size(),
                              kInputHeaderBytes,
                              kMaxInputBytes));
  }
  ByteReader in(bytes);
  const auto version = in.Take<std::uint16_t>();
  const auto type = in.Take<std::uint8_t>();
  in.Take<std::uint8_t>();
  if (version != kProtocolVersion) {
    return refuse(fmt::format("version {}; this is version {}", version, kProtocolVersion));
  }
  const InputShape* shape = ShapeOf(type);
  if (shape == nullptr) return refuse(fmt::format("unknown type {}", type));
  const std::size_t size = kInputHeaderBytes + 4 * (shape->words + shape->reals);
  if (bytes.size() != size) {
    return refuse(fmt::format("type {} of {} bytes; it has {}", type, bytes.size(), size));
  }
  Input input;
  input.type = static_cast<InputType>(type);
  if (shape->words == 2) input.robot = in.Take<std::uint32_t>();
  if (shape->words > 0) input.index = in.Take<std::uint32_t>();
  for (int i = 0; i < shape->reals; ++i) {
    const double value = in.TakeReal();
    // float32 rounds 0.05 up and 0.2, too: a limit is inside
    const double slack = 1e-6;
    if (!(value >= shape->range[i].low - slack && value <= shape->range[i].high + slack)) {
      return refuse(fmt::format("type {}: {} is outside [{}, {}]",
                                type,
                                value,
                                shape->range[i].low,
                                shape->range[i].high));
    }
    input.value[i] = value;
  }
  std::string fault = CheckIndices(input, limits);
  if (!fault.empty()) return refuse(fmt::format("type {}: {}", type, fault));
  return input;
}

std::string EncodeInput(const Input& input) {
  const auto type = static_cast<std::uint8_t>(input.type);
  const InputShape* shape = ShapeOf(type);
  SILC_CHECK(shape != nullptr);
  ByteWriter out;
  out.Put(kProtocolVersion);
  out.Put(type);
  out.Put(std::uint8_t{0});
  if (shape->words == 2) out.Put(input.robot);
  if (shape->words > 0) out.Put(input.index);
  for (int i = 0; i < shape->reals; ++i) out.PutReal(input.value[i]);
  return out.Take();
}

}  // namespace silc
