// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/step_model.h"

/// Self-collision as the step reads it: shapes of moving links, and which of them may touch which.
/// Not a part of StepModel, which travels with every launch of a GPU kernel.
namespace silc {

inline constexpr int kMaxShapes = 48;
inline constexpr int kMaxPairs = 512;
inline constexpr int kMaxPairKinds = 16;
/// Self-contacts of one robot at one time; beyond them it is frozen with kFaultCrowded.
inline constexpr int kMaxSelfContacts = 16;

/// A sphere, or a capsule: a sphere swept along ±`axis`.
template <class T>
struct ShapeConstants {
  int link;
  int capsule;
  T p_LC[3];    // centre [m]
  T axis[3];    // capsule: centre → end, in L [m]
  T radius;     // [m]
  T invweight;  // of its body: MuJoCo's translational body_invweight0
};

/// What contacts of many pairs have in common.
template <class T>
struct PairKind {
  T mu1, mu2;        // [1]; 0 for a contact without friction
  int frictionless;  // 1: condim 1
  SoftRow<T> row;
};

template <class T>
struct PairConstants {
  unsigned char first, second;  // shapes; the normal points from the first to the second
  unsigned char kind;
  unsigned char other_tree;  // 1: the shapes belong to trees with an O each
  T reach2;                  // centres further apart than the root of this cannot touch [m²]
};

template <class T>
struct PairModel {
  int num_shapes, num_pairs, num_kinds;
  T impratio;
  ShapeConstants<T> shape[kMaxShapes];
  PairConstants<T> pair[kMaxPairs];
  PairKind<T> kind[kMaxPairKinds];
};

}  // namespace silc
