// SPDX-License-Identifier: Apache-2.0
#include "silc/certify/activation_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "silc/base/check.h"

namespace silc {
namespace {

constexpr double kUnit = std::numeric_limits<double>::epsilon();  // twice the unit roundoff

// Smallest and largest of what it was shown, and the largest modulus of any term on the way.
struct Extremes {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  double size = 0;

  void Add(double f, double slope, double distance) {
    const double residual = f - slope * distance;
    low = std::min(low, residual);
    high = std::max(high, residual);
    size = std::max(size, std::abs(f) + std::abs(slope * distance));
  }
};

// The line of this slope in the middle between the extremes of f(z) − slope (z − centre). Sixteen
// roundings, of exp and log with an ulp each, are more than were made.
LineBound Between(double slope, const Extremes& extremes) {
  LineBound line;
  line.slope = slope;
  line.value = 0.5 * (extremes.low + extremes.high);
  line.error = 0.5 * (extremes.high - extremes.low) + 16 * kUnit * extremes.size;
  return line;
}

// gain (eᶻ − shift) below zero and a second branch above, `above(z)`, that is a line. f(z) − slope
// (z − centre) is extreme at the ends, on either side of the kink, or where gain eᶻ = slope.
template <typename Above>
LineBound BoundExponentialBranch(
    double gain, double shift, const Above& above, double centre, double radius) {
  const double low = centre - radius, high = centre + radius;
  const auto below = [&](double z) {
    return shift == 0 ? gain * std::exp(z) : gain * std::expm1(z);
  };
  const auto f = [&](double z) { return z < 0 ? below(z) : above(z); };
  double slope = 0;
  if (radius > 1e-8) {
    slope = (f(high) - f(low)) / (high - low);
  } else {
    // the chord would be the quotient of roundings
    slope = centre < 0 ? gain * std::exp(centre) : above(1) - above(0);
  }
  Extremes extremes;
  extremes.Add(f(low), slope, low - centre);
  extremes.Add(f(high), slope, high - centre);
  if (low <= 0 && high >= 0) {
    extremes.Add(below(0), slope, -centre);
    extremes.Add(above(0), slope, -centre);
  }
  if (slope > 0 && gain > 0) {
    const double z = std::log(slope / gain);
    if (z > low && z < std::min(high, 0.0)) extremes.Add(below(z), slope, z - centre);
  }
  return Between(slope, extremes);
}

ActivationBounds BoundElu(double alpha, double centre, double radius) {
  ActivationBounds bounds;
  bounds.value = BoundExponentialBranch(
      alpha, 1, [](double z) { return z; }, centre, radius);
  bounds.slope = BoundExponentialBranch(
      alpha, 0, [](double) { return 1.0; }, centre, radius);
  return bounds;
}

ActivationBounds BoundLeakyRelu(double alpha, double centre, double radius) {
  const double low = centre - radius, high = centre + radius;
  const auto f = [&](double z) { return z < 0 ? alpha * z : z; };
  ActivationBounds bounds;
  if (low > 0 || high < 0 || radius == 0) {
    const double slope = centre < 0 ? alpha : 1;
    bounds.value = {f(centre), slope, 4 * kUnit * std::abs(centre)};
    bounds.slope = {slope, 0, 0};
    if (centre == 0) bounds.slope = {0.5 * (1 + alpha), 0, 0.5 * std::abs(1 - alpha) + kUnit};
    return bounds;
  }
  const double slope = (f(high) - f(low)) / (high - low);
  Extremes extremes;
  for (const double z : {low, 0.0, high}) extremes.Add(f(z), slope, z - centre);
  bounds.value = Between(slope, extremes);
  bounds.slope = {0.5 * (1 + alpha), 0, 0.5 * std::abs(1 - alpha) + kUnit};
  return bounds;
}

// φ′ of these is largest in the middle (Tanh, Sigmoid) or grows (Softplus): its range is known from
// the ends and from zero.
ActivationBounds BoundSmooth(Activation activation, double centre, double radius) {
  const double low = centre - radius, high = centre + radius;
  double least = ActivationSlope(activation, 1, low), most = ActivationSlope(activation, 1, high);
  if (least > most) std::swap(least, most);
  if (activation != Activation::kSoftplus && low < 0 && high > 0) {
    most = ActivationSlope(activation, 1, 0);
  }
  ActivationBounds bounds;
  const double middle = 0.5 * (least + most), half = 0.5 * (most - least) + 16 * kUnit;
  bounds.slope = {middle, 0, half};
  const double value = EvaluateActivation(activation, 1, centre);
  bounds.value = {value, middle, half * radius + 16 * kUnit * (std::abs(value) + std::abs(centre))};
  return bounds;
}

bool IsFinite(const LineBound& line) {
  return std::isfinite(line.value) && std::isfinite(line.slope) && std::isfinite(line.error);
}

ActivationBounds BoundFinite(Activation activation, double alpha, double centre, double radius) {
  switch (activation) {
    case Activation::kNone:
      return {{centre, 1, 0}, {1, 0, 0}};
    case Activation::kElu:
      return BoundElu(alpha, centre, radius);
    case Activation::kRelu:
      return BoundLeakyRelu(0, centre, radius);
    case Activation::kLeakyRelu:
      return BoundLeakyRelu(alpha, centre, radius);
    default:
      return BoundSmooth(activation, centre, radius);
  }
}

}  // namespace

double EvaluateActivation(Activation activation, double alpha, double z) {
  switch (activation) {
    case Activation::kNone:
      return z;
    case Activation::kElu:
      return z < 0 ? alpha * std::expm1(z) : z;
    case Activation::kRelu:
      return std::max(z, 0.0);
    case Activation::kLeakyRelu:
      return z < 0 ? alpha * z : z;
    case Activation::kTanh:
      return std::tanh(z);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-z));
    case Activation::kSoftplus:
      return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z)));
  }
  return z;
}

double ActivationSlope(Activation activation, double alpha, double z) {
  switch (activation) {
    case Activation::kNone:
      return 1;
    case Activation::kElu:
      return z < 0 ? alpha * std::exp(z) : 1;
    case Activation::kRelu:
      return z < 0 ? 0 : 1;
    case Activation::kLeakyRelu:
      return z < 0 ? alpha : 1;
    case Activation::kTanh:
      return 1 - std::tanh(z) * std::tanh(z);
    case Activation::kSigmoid: {
      const double s = 1 / (1 + std::exp(-z));
      return s * (1 - s);
    }
    case Activation::kSoftplus:
      return 1 / (1 + std::exp(-z));
  }
  return 1;
}

ActivationBounds BoundActivation(Activation activation,
                                 double alpha,
                                 double centre,
                                 double radius) {
  SILC_CHECK(!(radius < 0));
  if (std::isfinite(centre) && std::isfinite(radius)) {
    ActivationBounds bounds = BoundFinite(activation, alpha, centre, radius);
    if (IsFinite(bounds.value) && IsFinite(bounds.slope)) return bounds;
  }
  // finite weights can overflow a double all the same
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {{0, 0, kInfinity}, {0, 0, kInfinity}};
}

}  // namespace silc
