// SPDX-License-Identifier: Apache-2.0
#include <tuple>
#include <type_traits>

#include "silc/physics/batch_model.h"

namespace silc {
namespace {

// Every field of the model's structs, in their order. A structured binding names all fields of a
// struct or does not compile: one that is added there and forgotten here is an error, not a zero in
// the float copy.
#define SILC_FIELDS(Struct, ...)    \
  template <class T>                \
  auto Fields(Struct<T>& s) {       \
    auto& [__VA_ARGS__] = s;        \
    return std::tie(__VA_ARGS__);   \
  }                                 \
  template <class T>                \
  auto Fields(const Struct<T>& s) { \
    const auto& [__VA_ARGS__] = s;  \
    return std::tie(__VA_ARGS__);   \
  }

SILC_FIELDS(SoftRow, K, B, dmin, dmax, inv_width, mid, rise, fall, margin, power)
SILC_FIELDS(LinkConstants,
            parent,
            root,
            joint,
            axis,
            qpos,
            dof,
            num_children,
            first_child,
            next_sibling,
            rotated,
            keep_frame,
            num_contacts,
            first_contact,
            contact_reach,
            actuator,
            p_PL,
            R_PL,
            q0,
            armature,
            damping,
            stiffness,
            spring_ref,
            friction,
            friction_D,
            friction_B,
            limited,
            low,
            high,
            invweight,
            limit)
SILC_FIELDS(ContactConstants,
            link,
            foot,
            box_corner,
            along_axis,
            upright,
            p_LC,
            direction,
            radius,
            n,
            t1,
            t2,
            offset,
            mu1,
            mu2,
            frictionless,
            invweight,
            impratio,
            row)
SILC_FIELDS(ActuatorConstants, link, low, high)
SILC_FIELDS(SiteConstants, link, p_LS, R_LS)
SILC_FIELDS(PushConstants, link, p_LC)
SILC_FIELDS(StepModel,
            num_links,
            num_contacts,
            num_actuators,
            num_feet,
            num_imus,
            num_frames,
            num_pushes,
            foot_link,
            nq,
            nv,
            has_friction,
            has_limits,
            implicit_damping,
            implicit_kd,
            timestep,
            gravity,
            inertia_scale,
            max_speed,
            max_distance,
            link,
            actuator,
            imu,
            frame,
            push,
            contact)
SILC_FIELDS(ShapeConstants, link, capsule, p_LC, axis, radius, invweight)
SILC_FIELDS(PairKind, mu1, mu2, frictionless, row)
SILC_FIELDS(PairConstants, first, second, kind, other_tree, reach2)
SILC_FIELDS(PairModel, num_shapes, num_pairs, num_kinds, impratio, shape, pair, kind)
#undef SILC_FIELDS

// Numbers are rounded, everything else is copied: arrays by element, structs by field.
template <class From, class To>
void Round(const From& from, To& to) {
  if constexpr (std::is_array_v<From>) {
    static_assert(std::extent_v<From> == std::extent_v<To>);
    for (std::size_t i = 0; i < std::extent_v<From>; ++i) Round(from[i], to[i]);
  } else if constexpr (std::is_class_v<From>) {
    std::apply(
        [&](const auto&... in) {
          std::apply([&](auto&... out) { (Round(in, out), ...); }, Fields(to));
        },
        Fields(from));
  } else {
    to = static_cast<To>(from);
  }
}

}  // namespace

StepModel<float> ToFloat(const StepModel<double>& model) {
  StepModel<float> out = {};
  Round(model, out);
  return out;
}

PairModel<float> ToFloat(const PairModel<double>& model) {
  PairModel<float> out = {};
  Round(model, out);
  return out;
}

}  // namespace silc
