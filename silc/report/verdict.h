// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace silc {

/// What a comparison with the paper came to. The rules below are the ones docs/report.md states.
enum class Verdict {
  kReproduced,
  kPartly,
  kNot,
  kOpen,  ///< nothing to judge: no policy, no measurement, or no number in the paper
};
const char* Describe(Verdict verdict);  ///< "reproduced", "partly", "not reproduced", "open"

inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// A number with its 95 % interval; both ends NaN where there is none.
struct Estimate {
  double value = kNoNumber, low = kNoNumber, high = kNoNumber;
};

/// a/b. The interval combines the two as independent, on the logarithm: with
/// ln(high/value) as half width, upwards √(up_a² + down_b²). NaN unless both are positive.
Estimate Ratio(const Estimate& a, const Estimate& b);

// limits of the rules [1]
inline constexpr double kSameValue = 0.20;   // reproduced: this near to the printed number
inline constexpr double kFactor = 2;         // partly: within this factor of it
inline constexpr double kEffectShare = 0.5;  // reproduced: this share of the printed effect
inline constexpr double kNoEffect = 0.05;    // a printed difference below this is none
inline constexpr double kNever = 0.001, kSeldom = 0.05;

/// A number: reproduced within 20 %, partly within a factor of 2.
Verdict JudgeValue(double paper, const Estimate& ours);

/// An effect, as a ratio to the row it is compared with. Reproduced: the same side of 1, our
/// interval does not hold 1, and at least half of the printed effect on a logarithmic scale (a
/// stronger one counts). Partly: the same side. Where the paper's ratio is within 5 % of 1:
/// reproduced within 10 % of 1, partly within 25 %.
Verdict JudgeEffect(double paper_ratio, const Estimate& ours);

/// A direction without a number: reproduced when the ratio is on that side of 1 with its interval,
/// partly when its value is.
Verdict JudgeDirection(bool larger, const Estimate& ratio);

/// "Never": reproduced up to 0.1 % of the samples, partly up to 5 %.
Verdict JudgeNever(double share);
/// "Periodically": reproduced from 5 % of the samples on, partly above none.
Verdict JudgeSometimes(double share);

/// Of a table: all reproduced; none of them even partly; or partly. Open ones do not count; only
/// open ones: open.
Verdict Together(const std::vector<Verdict>& verdicts);

}  // namespace silc
