// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "silc/physics/step_model.h"

namespace silc {

inline constexpr int kMaxTeam = 8;

/// How the members of a team (team.h) share out a robot's links: the trunk, which is closed under
/// "parent of", to the first member, whole subtrees of it to all.
struct TeamPlan {
  int size;       // members
  int num_trunk;  // first entries of member 0's run
  int num_ports, num_hubs;
  int hubs, sums;               // where they start in the team's memory, in numbers per robot
  int memory;                   // its size
  int begin[kMaxTeam + 1];      // runs of `link`, one per member
  signed char link[kMaxLinks];  // parents before children
  signed char owner[kMaxLinks];
  signed char slot[kMaxLinks];  // place in its owner's run
  signed char port[kMaxLinks];  // of links whose parent is another member's; −1: none
  signed char hub[kMaxLinks];   // of links with another member's link as a child; −1: none
};
inline constexpr int kPortSize = 28;
inline constexpr int kHubSize = 36;
inline constexpr int kSumSize = 6;
inline constexpr int kSumSlots = 3;
inline constexpr int kTeamPlanFloats = (sizeof(TeamPlan) + 127) / 128 * 32;

/// Shares out the links among at most `members` so that the longest way through the trunk and one
/// member's branches has the fewest links. Fewer members where more do not shorten it.
TeamPlan PlanTeam(const StepModel<float>& model, int members);

/// The most links and contact points that a member has.
struct TeamLoad {
  int links, contacts;
};
TeamLoad LoadOf(const StepModel<float>& model, const TeamPlan& plan);

}  // namespace silc
