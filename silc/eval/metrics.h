// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace silc {

// The paper's measures of a motion (its section VI-A), each with its formula; docs/experiments.md
// says what each is used for. Signals of several channels are rows of `channels` numbers, one row
// per sample, one after the other.

/// Mean absolute third difference, per channel:
///
///     1/(T−3) Σ_{t=4}^{T} 1/n Σ_i |a_{t,i} − 3 a_{t−1,i} + 3 a_{t−2,i} − a_{t−3,i}|
///
/// in the signal's own unit. NaN for fewer than four rows.
double ThirdDifference(std::span<const double> rows, int channels);

/// ThirdDifference()/Δt³: the paper's jitter. Action [1/s³], velocity [rad/s⁴], torque [N·m/s³].
/// @param dt  [s] between rows; the number depends on it
double Jitter(std::span<const double> rows, int channels, double dt);

/// The same, fed row by row: what does not fit into memory. Rows before a Break() are not combined
/// with those after it.
class ThirdDifferenceMeter {
 public:
  explicit ThirdDifferenceMeter(int channels) : channels_(channels), last_(3 * channels) {}
  void Add(std::span<const double> row);
  void Break() { rows_ = 0; }
  double Mean() const;  ///< NaN before the fourth row
  /// [1/s³ times the unit] Mean()/Δt³
  double Jitter(double dt) const { return Mean() / (dt * dt * dt); }

 private:
  int channels_, rows_ = 0;
  std::vector<double> last_;  // three rows, newest first
  double sum_ = 0;
  long count_ = 0;
};

/// 1/T Σ_t 1/n Σ_i |τ_{t,i} q̇_{t,i}|: mean absolute mechanical power of a joint [W]. (The paper
/// calls it energy and its unit joule.) NaN for no rows.
double MeanAbsolutePower(std::span<const double> tau, std::span<const double> qd, int channels);

/// √(mean s²). NaN for an empty signal.
double RootMeanSquare(std::span<const double> signal);

/// P95(s) − P5(s), percentiles by linear interpolation. NaN for an empty signal.
double PeakToPeak(std::span<const double> signal);

/// One-sided power spectral density.
struct PowerSpectrum {
  double resolution = 0;        // [Hz] between bins; bin k is at k·resolution
  std::vector<double> density;  // [unit²/Hz]
};

/// Welch's estimate: Hann window, half overlap, mean of each segment removed.
/// Empty for a signal of fewer than eight samples.
/// @param rate     [Hz] of the signal
/// @param segment  [s] shorter signals are one segment; 1 s resolves 1 Hz
PowerSpectrum Welch(std::span<const double> signal, double rate, double segment = 1);

/// ∫ S(f) df over the bins with low ≤ f ≤ high [unit²]: of a position, m². (The paper calls it
/// high-frequency energy and its unit joule.)
double BandPower(const PowerSpectrum& spectrum, double low, double high);

/// When a signal came to rest, and where.
struct Settling {
  double time = 0;   // [s] from the first sample until it stays within the band; ∞: it does not
  double final = 0;  // mean over the tail
  double peak = 0;   // largest |s − final|
  double tail_sway = 0;  // largest |s − final| within the tail
};

/// The band is ± share of the peak about the final value; the tail is the last `tail` seconds.
/// time is ∞ when the signal is still outside the band within the tail: it sways on.
/// All are NaN when the signal is no longer than the tail.
/// @pre share > 0
Settling SettlingTime(std::span<const double> signal, double dt, double share, double tail = 1);

}  // namespace silc
