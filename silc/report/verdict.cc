// SPDX-License-Identifier: Apache-2.0
#include "silc/report/verdict.h"

#include <cmath>

namespace silc {

const char* Describe(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReproduced:
      return "reproduced";
    case Verdict::kPartly:
      return "partly";
    case Verdict::kNot:
      return "not reproduced";
    case Verdict::kOpen:
      return "open";
  }
  return "";
}

Estimate Ratio(const Estimate& a, const Estimate& b) {
  Estimate ratio;
  if (!(a.value > 0 && b.value > 0) || std::isinf(a.value) || std::isinf(b.value)) return ratio;
  ratio.value = a.value / b.value;
  // an interval that reaches zero has no logarithm: then there is none for the ratio either
  if (a.low > 0 && b.low > 0 && a.high >= a.value && b.high >= b.value) {
    const double up = std::hypot(std::log(a.high / a.value), std::log(b.value / b.low));
    const double down = std::hypot(std::log(a.value / a.low), std::log(b.high / b.value));
    ratio.high = ratio.value * std::exp(up);
    ratio.low = ratio.value * std::exp(-down);
  }
  return ratio;
}

Verdict JudgeValue(double paper, const Estimate& ours) {
  if (!std::isfinite(paper) || !std::isfinite(ours.value)) return Verdict::kOpen;
  if (std::abs(ours.value - paper) <= kSameValue * std::abs(paper)) return Verdict::kReproduced;
  const double factor = ours.value / paper;
  return factor >= 1 / kFactor && factor <= kFactor ? Verdict::kPartly : Verdict::kNot;
}

Verdict JudgeEffect(double paper_ratio, const Estimate& ours) {
  if (!(paper_ratio > 0) || !(ours.value > 0) || std::isinf(ours.value)) return Verdict::kOpen;
  const double paper = std::log(paper_ratio), mine = std::log(ours.value);
  if (std::abs(paper_ratio - 1) < kNoEffect) {
    const double off = std::abs(ours.value - 1);
    return off <= 2 * kNoEffect   ? Verdict::kReproduced
           : off <= 5 * kNoEffect ? Verdict::kPartly
                                  : Verdict::kNot;
  }
  if (paper * mine <= 0) return Verdict::kNot;
  const bool sure = !(ours.low <= 1 && ours.high >= 1);  // true without an interval
  return sure && mine / paper >= kEffectShare ? Verdict::kReproduced : Verdict::kPartly;
}

Verdict JudgeDirection(bool larger, const Estimate& ratio) {
  if (!(ratio.value > 0)) return Verdict::kOpen;
  if ((ratio.value > 1) != larger || ratio.value == 1) return Verdict::kNot;
  return ratio.low <= 1 && ratio.high >= 1 ? Verdict::kPartly : Verdict::kReproduced;
}

Verdict JudgeNever(double share) {
  if (!std::isfinite(share)) return Verdict::kOpen;
  return share <= kNever    ? Verdict::kReproduced
         : share <= kSeldom ? Verdict::kPartly
                            : Verdict::kNot;
}

Verdict JudgeSometimes(double share) {
  if (!std::isfinite(share)) return Verdict::kOpen;
  return share >= kSeldom ? Verdict::kReproduced : share > 0 ? Verdict::kPartly : Verdict::kNot;
}

Verdict Together(const std::vector<Verdict>& verdicts) {
  int reproduced = 0, partly = 0, judged = 0;
  for (const Verdict verdict : verdicts) {
    judged += verdict != Verdict::kOpen;
    reproduced += verdict == Verdict::kReproduced;
    partly += verdict == Verdict::kPartly;
  }
  if (judged == 0) return Verdict::kOpen;
  if (reproduced == judged) return Verdict::kReproduced;
  return reproduced + partly == 0 ? Verdict::kNot : Verdict::kPartly;
}

}  // namespace silc
