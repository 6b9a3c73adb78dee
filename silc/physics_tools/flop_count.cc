// SPDX-License-Identifier: Apache-2.0
#include "silc/physics_tools/flop_count.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "silc/physics/kernel.h"

namespace silc::SILC_KERNEL {

/// A double that counts what is done with it. A sine and cosine pair counts as the 25 operations of
/// the SIMD version.
struct Counted {
  double v;
  static inline long operations = 0;
  Counted() = default;
  Counted(double value) : v(value) {}
  friend Counted operator+(Counted a, Counted b) { return Count(a.v + b.v); }
  friend Counted operator-(Counted a, Counted b) { return Count(a.v - b.v); }
  friend Counted operator*(Counted a, Counted b) { return Count(a.v * b.v); }
  friend Counted operator/(Counted a, Counted b) { return Count(a.v / b.v); }
  friend Counted operator-(Counted a) { return {-a.v}; }  // a changed sign is free
  Counted& operator+=(Counted b) { return *this = *this + b; }
  Counted& operator-=(Counted b) { return *this = *this - b; }
  Counted& operator*=(Counted b) { return *this = *this * b; }
  friend bool operator<(Counted a, Counted b) { return a.v < b.v; }
  friend bool operator>(Counted a, Counted b) { return a.v > b.v; }
  friend bool operator<=(Counted a, Counted b) { return a.v <= b.v; }
  static Counted Count(double value, long count = 1) {
    operations += count;
    return value;
  }
};
inline Counted Select(bool m, Counted a, Counted b) { return Counted::Count(m ? a.v : b.v); }
inline Counted Min(Counted a, Counted b) { return Counted::Count(a.v < b.v ? a.v : b.v); }
inline Counted Max(Counted a, Counted b) { return Counted::Count(a.v > b.v ? a.v : b.v); }
inline Counted Abs(Counted a) { return Counted::Count(std::abs(a.v)); }
inline Counted Sqrt(Counted a) { return Counted::Count(std::sqrt(a.v)); }
inline void SinCos(Counted x, Counted* s, Counted* c) {
  *s = Counted::Count(std::sin(x.v), 25);
  *c = std::cos(x.v);
}
inline double Lane(Counted a, int) { return a.v; }
inline void SetLane(Counted* a, int, double value) { a->v = value; }

}  // namespace silc::SILC_KERNEL

#include "silc/physics/robot_buffer.h"

namespace silc::SILC_KERNEL {
template <>
struct ScalarTraits<Counted> {
  using Scalar = double;
  using Mask = bool;
  static constexpr int kLanes = 1;
};
}  // namespace silc::SILC_KERNEL

namespace silc {

FlopCount CountFlop(const BatchModel& model,
                    const std::vector<float>& qpos,
                    const std::vector<float>& qvel,
                    int steps,
                    PhysicsBatch& batch) {
  using portable::Counted;
  constexpr int kRobots = 8;
  const StepModel<double>& s = model.step;
  const auto work = std::make_unique<portable::PairedWorkspace<Counted>>();
  work->pair.model = &model.pairs;
  const int robots = std::min<int>(kRobots, static_cast<int>(qpos.size()) / s.nq);
  long total = 0;
  for (int env = 0; env < robots; ++env) {
    portable::RobotBuffer<Counted> robot(model);
    const portable::RobotData<Counted>& data = robot.data();
    for (int i = 0; i < s.nq; ++i) data.qpos[i] = qpos[static_cast<std::size_t>(env) * s.nq + i];
    for (int i = 0; i < s.nv; ++i) data.qvel[i] = qvel[static_cast<std::size_t>(env) * s.nv + i];
    for (int u = 0; u < s.num_actuators; ++u) {
      data.kp[u] = batch.view(Field::kKp)(0, u);
      data.kd[u] = batch.view(Field::kKd)(0, u);
      data.target[u] = batch.view(Field::kTarget)(0, u);
    }
    Counted::operations = 0;
    for (int t = 0; t < steps; ++t) {
      portable::Step<Counted>(s,
                              data,
                              {.max_iterations = 30, .line_search = 10, .tolerance = 1e-10},
                              0,
                              t % 4 == 3,
                              nullptr,
                              *work);
    }
    total += Counted::operations;
  }
  return {static_cast<double>(total) / (static_cast<double>(robots) * steps)};
}

}  // namespace silc
