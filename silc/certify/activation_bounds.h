// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/policy/mlp.h"

namespace silc {

/// A function f on an interval, enclosed by a line and a distance from it:
///
///     |f(z) − value − slope (z − centre)| ≤ error     for |z − centre| ≤ radius              (C2)
struct LineBound {
  double value = 0;
  double slope = 0;
  double error = 0;  // ≥ 0, rounding of its own computation included
};

/// An activation φ and its derivative φ′, both enclosed on one interval.
struct ActivationBounds {
  LineBound value;  // of φ
  LineBound slope;  // of φ′; at a kink it encloses both one-sided derivatives
};

/// (C2) for |z − centre| ≤ radius. Elu, Relu and LeakyRelu are enclosed by their chords, the best
/// line for a convex function; Tanh, Sigmoid and Softplus by the mean value theorem, with a
/// derivative enclosed by a constant. Where a number is not finite or the enclosure overflows,
/// nothing is known: value and slope are 0 and the errors infinite.
/// @pre radius ≥ 0 or NaN.
ActivationBounds BoundActivation(Activation activation, double alpha, double centre, double radius);

/// φ(z) and φ′(z), the right derivative at a kink, in double precision.
double EvaluateActivation(Activation activation, double alpha, double z);
double ActivationSlope(Activation activation, double alpha, double z);

}  // namespace silc
