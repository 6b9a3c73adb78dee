// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/stiffness/budget_command.h"
#include "silc/task/draw.h"
#include "silc/task/scalar.h"
#include "silc/task/task_config.h"

namespace silc {

/// Between what a training draws its budget commands: plain data of a TaskContext.
struct BudgetLimits {
  bool used;                                      // the budget is commanded
  float low[kNumCommanded], high[kNumCommanded];  // ln of the ends; 0 where there is no range
  int change_steps;                               // control steps of a piece; 0: one command each
};

/// Whose command: draws are a function of this and of the control step alone, so that nothing must
/// be remembered.
struct BudgetKey {
  std::uint64_t seed;
  std::uint32_t env;
  std::uint32_t episode;  // the control step in which it was reset
};

namespace step {

/// A piece of an episode: its command u_j, and how many control steps it takes to get there.
struct BudgetPiece {
  float u[kNumCommanded];
  float ramp_steps;  // 0: a jump
};
SILC_HD BudgetPiece DrawBudgetPiece(const TaskConfig::BudgetCommand& c,
                                    const BudgetLimits& limits,
                                    const BudgetKey& key,
                                    int piece,
                                    float control_dt) {
  // two blocks of four words for a piece, after the first, which says where the pieces begin
  Draw draw(key.seed,
            key.env,
            key.episode,
            DrawPurpose::kBudget,
            1 + 2 * static_cast<std::uint32_t>(piece));
  BudgetPiece drawn;
  for (int i = 0; i < kNumCommanded; ++i) {
    drawn.u[i] = draw.Uniform(limits.low[i], limits.high[i]);  // (B4)
  }
  const bool ramp = draw.Chance(c.ramp_prob);
  const float longest = static_cast<float>(limits.change_steps);
  const float steps = Min(draw.Uniform(c.ramp_min, c.ramp_max) / control_dt, longest);
  drawn.ramp_steps = ramp ? steps : 0.0f;
  return drawn;
}

}  // namespace step

/// The command u of control step k of an episode: (B1), drawn by (B4) and (B5) of docs/command.md.
/// @pre limits.used
SILC_HD void DrawBudget(const TaskConfig::BudgetCommand& c,
                        const BudgetLimits& limits,
                        const BudgetKey& key,
                        int k,
                        float control_dt,
                        float u[kNumCommanded]) {
  int piece = 0, since = 0;  // which piece, and control steps since it began
  if (limits.change_steps > 0) {
    Draw draw(key.seed, key.env, key.episode, DrawPurpose::kBudget);
    const int shifted = k + draw.Index(limits.change_steps);
    piece = shifted / limits.change_steps;
    since = shifted % limits.change_steps;
  }
  const step::BudgetPiece now = step::DrawBudgetPiece(c, limits, key, piece, control_dt);
  for (int i = 0; i < kNumCommanded; ++i) u[i] = now.u[i];
  const auto reached = static_cast<float>(since);
  // an episode begins at rest: its first command was not reached from another
  if (piece == 0 || reached >= now.ramp_steps) return;
  const step::BudgetPiece before = step::DrawBudgetPiece(c, limits, key, piece - 1, control_dt);
  const float share = reached / now.ramp_steps;
  for (int i = 0; i < kNumCommanded; ++i) u[i] = before.u[i] + share * (now.u[i] - before.u[i]);
}

}  // namespace silc
