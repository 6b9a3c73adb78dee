// SPDX-License-Identifier: Apache-2.0
#include "silc/eval/metrics.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "silc/base/check.h"
#include "silc/base/nan.h"
#include "silc/observe/summary.h"

namespace silc {
namespace {}

void ThirdDifferenceMeter::Add(std::span<const double> row) {
  SILC_CHECK(static_cast<int>(row.size()) == channels_);
  const std::size_t n = channels_;
  for (std::size_t i = 0; i < n; ++i) {
    if (rows_ >= 3) sum_ += std::abs(row[i] - 3 * last_[i] + 3 * last_[n + i] - last_[2 * n + i]);
    last_[2 * n + i] = last_[n + i];
    last_[n + i] = last_[i];
    last_[i] = row[i];
  }
  if (rows_ >= 3) ++count_;
  ++rows_;
}

double ThirdDifferenceMeter::Mean() const {
  return count_ > 0 ? sum_ / (static_cast<double>(count_) * channels_) : kNan;
}

double ThirdDifference(std::span<const double> rows, int channels) {
  SILC_CHECK(channels > 0 && rows.size() % channels == 0);
  ThirdDifferenceMeter meter(channels);
  for (std::size_t k = 0; k < rows.size(); k += channels) meter.Add(rows.subspan(k, channels));
  return meter.Mean();
}

double Jitter(std::span<const double> rows, int channels, double dt) {
  return ThirdDifference(rows, channels) / (dt * dt * dt);
}

double MeanAbsolutePower(std::span<const double> tau, std::span<const double> qd, int channels) {
  SILC_CHECK(channels > 0 && tau.size() == qd.size() && tau.size() % channels == 0);
  if (tau.empty()) return kNan;
  double sum = 0;
  for (std::size_t k = 0; k < tau.size(); ++k) sum += std::abs(tau[k] * qd[k]);
  return sum / static_cast<double>(tau.size());
}

double RootMeanSquare(std::span<const double> signal) {
  if (signal.empty()) return kNan;
  double sum = 0;
  for (const double s : signal) sum += s * s;
  return std::sqrt(sum / static_cast<double>(signal.size()));
}

double PeakToPeak(std::span<const double> signal) {
  const std::vector<double> values(signal.begin(), signal.end());
  return Quantile(values, 0.95) - Quantile(values, 0.05);
}

constexpr std::size_t kShortestSignal = 8;  // samples

PowerSpectrum Welch(std::span<const double> signal, double rate, double segment) {
  SILC_CHECK(rate > 0 && segment > 0);
  // a weight may be caught in the last moment that is watched
  if (signal.size() < kShortestSignal) return {};
  const std::size_t size =
      std::clamp<std::size_t>(std::lround(segment * rate), kShortestSignal, signal.size());
  const std::size_t hop = size / 2;
  std::vector<double> window(size);
  double power = 0;  // Σ w²
  for (std::size_t k = 0; k < size; ++k) {
    window[k] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * double(k) / double(size));
    power += window[k] * window[k];
  }
  // the transform written out: segments are a thousand samples, not a million
  std::vector<std::complex<double>> turn(size);
  for (std::size_t k = 0; k < size; ++k) {
    turn[k] = std::polar(1.0, -2 * std::numbers::pi * double(k) / double(size));
  }
  PowerSpectrum result;
  result.resolution = rate / double(size);
  result.density.assign(size / 2 + 1, 0.0);
  std::vector<double> windowed(size);
  int segments = 0;
  for (std::size_t begin = 0; begin + size <= signal.size(); begin += hop, ++segments) {
    double mean = 0;
    for (std::size_t k = 0; k < size; ++k) mean += signal[begin + k] / double(size);
    for (std::size_t k = 0; k < size; ++k) windowed[k] = window[k] * (signal[begin + k] - mean);
    for (std::size_t bin = 0; bin < result.density.size(); ++bin) {
      std::complex<double> sum = 0;
      for (std::size_t k = 0; k < size; ++k) sum += windowed[k] * turn[bin * k % size];
      // one-sided: every frequency but 0 and Nyquist's stands for its negative too
      const bool once = bin == 0 || 2 * bin == size;
      result.density[bin] += (once ? 1 : 2) * std::norm(sum) / (rate * power);
    }
  }
  for (double& density : result.density) density /= segments;
  return result;
}

double BandPower(const PowerSpectrum& spectrum, double low, double high) {
  if (spectrum.density.empty()) return kNan;
  double sum = 0;
  for (std::size_t bin = 0; bin < spectrum.density.size(); ++bin) {
    const double f = spectrum.resolution * double(bin);
    if (f >= low - 1e-9 && f <= high + 1e-9) sum += spectrum.density[bin] * spectrum.resolution;
  }
  return sum;
}

Settling SettlingTime(std::span<const double> signal, double dt, double share, double tail) {
  SILC_CHECK(share > 0);
  // a slow policy may have fewer steps than the tail is long
  const std::size_t tail_size = std::max(1L, std::lround(tail / dt));
  if (signal.size() <= tail_size) return {kNan, kNan, kNan, kNan};
  const std::size_t tail_begin = signal.size() - tail_size;
  Settling result;
  for (std::size_t k = tail_begin; k < signal.size(); ++k) {
    result.final += signal[k] / double(tail_size);
  }
  for (std::size_t k = 0; k < signal.size(); ++k) {
    const double off = std::abs(signal[k] - result.final);
    result.peak = std::max(result.peak, off);
    if (k >= tail_begin) result.tail_sway = std::max(result.tail_sway, off);
  }
  if (result.tail_sway > share * result.peak) {
    result.time = std::numeric_limits<double>::infinity();
    return result;
  }
  for (std::size_t k = 0; k < tail_begin; ++k) {
    if (std::abs(signal[k] - result.final) > share * result.peak) result.time = double(k + 1) * dt;
  }
  return result;
}

}  // namespace silc
